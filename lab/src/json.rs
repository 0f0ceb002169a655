//! What the JSON documents of all commands share. The schemas are described in `docs/JSON.md`.

use bench::slices::RunVerdict;
use bench::statistics::{Ratio, Spread};
use serde::{Serialize, Serializer};

/// `{"median": ..., "low": ..., "high": ...}`; low and high are the quartiles.
#[derive(Serialize)]
struct Middle {
    median: f64,
    low: f64,
    high: f64,
}

/// Writes a spread as an object, and a missing one as `null`.
pub(crate) fn spread<S: Serializer>(
    value: &Option<Spread>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value.map(|Spread { median, low, high }| Middle { median, low, high }).serialize(serializer)
}

/// Writes a spread that is there.
pub(crate) fn all_of_spread<S: Serializer>(
    value: &Spread,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    spread(&Some(*value), serializer)
}

/// Writes a ratio as an object. An interval without end has `"high": null`, since JSON knows no
/// infinity.
pub(crate) fn ratio<S: Serializer>(value: &Ratio, serializer: S) -> Result<S::Ok, S::Error> {
    let Ratio { median, low, high } = *value;
    Middle { median, low, high }.serialize(serializer)
}

/// The same of one that there may not be.
pub(crate) fn optional_ratio<S: Serializer>(
    value: &Option<Ratio>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => ratio(value, serializer),
        None => serializer.serialize_none(),
    }
}

/// How good the run was, in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct RunOut {
    verdict: &'static str,
    sentence: String,
    slices: u32,
    slices_that_count: u32,
    rows: u32,
    rows_without_figure: u32,
    met_percent: Option<f64>,
    distance_ns: Option<f64>,
    foreign_cpus: Option<f64>,
    stolen_cpus: Option<f64>,
    drift_percent: Option<f64>,
    raised: bool,
    pinned: bool,
    seconds: f64,
}

impl From<&RunVerdict> for RunOut {
    fn from(run: &RunVerdict) -> Self {
        Self {
            verdict: run.name(),
            sentence: run.to_string(),
            slices: run.drawn,
            slices_that_count: run.counted,
            rows: run.rows,
            rows_without_figure: run.without_figure,
            met_percent: run.met_percent,
            distance_ns: run.distance_ns,
            foreign_cpus: run.foreign_cpus,
            stolen_cpus: run.stolen_cpus,
            drift_percent: run.drift_percent,
            raised: run.is_raised,
            pinned: run.is_pinned,
            seconds: run.seconds,
        }
    }
}
