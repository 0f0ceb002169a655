//! What the JSON documents of all commands share, which `docs/JSON.md` describes. The schemas are
//! in `lab/schema`.

use bench::slices::RunVerdict;
use serde_json::{Value, json};

/// How good the run was.
pub(crate) fn run(run: &RunVerdict) -> Value {
    json!({
        "verdict": run.name(),
        "sentence": run.to_string(),
        "slices": run.drawn,
        "slices_that_count": run.counted,
        "rows": run.rows,
        "rows_without_figure": run.without_figure,
        "met_percent": run.met_percent,
        "distance_ns": run.distance_ns,
        "foreign_cpus": run.foreign_cpus,
        "stolen_cpus": run.stolen_cpus,
        "drift_percent": run.drift_percent,
        "raised": run.is_raised,
        "pinned": run.is_pinned,
        "seconds": run.seconds,
    })
}
