//! What the JSON documents of all commands share. The schemas are described in `docs/JSON.md`.

use bench::slices::RunVerdict;
use bench::statistics::{Ratio, Spread};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// `{"median": ..., "low": ..., "high": ...}`: a spread, whose low and high are the quartiles, or a
/// ratio with its interval. An interval without end has `"high": null`, since JSON knows no
/// infinity.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Middle {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl From<Spread> for Middle {
    fn from(Spread { median, low, high }: Spread) -> Self {
        Self { median, low, high }
    }
}

impl From<Ratio> for Middle {
    fn from(Ratio { median, low, high }: Ratio) -> Self {
        Self { median, low, high }
    }
}

/// How good the run was, in JSON.
#[derive(Debug)]
pub(crate) struct RunOut(pub(crate) RunVerdict);

impl Serialize for RunOut {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let run = &self.0;
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("verdict", run.name())?;
        object.serialize_entry("sentence", &run.to_string())?;
        object.serialize_entry("slices", &run.drawn)?;
        object.serialize_entry("slices_that_count", &run.counted)?;
        object.serialize_entry("rows", &run.rows)?;
        object.serialize_entry("rows_without_figure", &run.without_figure)?;
        object.serialize_entry("met_percent", &run.met_percent)?;
        object.serialize_entry("distance_ns", &run.distance_ns)?;
        object.serialize_entry("foreign_cpus", &run.foreign_cpus)?;
        object.serialize_entry("stolen_cpus", &run.stolen_cpus)?;
        object.serialize_entry("drift_percent", &run.drift_percent)?;
        object.serialize_entry("raised", &run.is_raised)?;
        object.serialize_entry("pinned", &run.is_pinned)?;
        object.serialize_entry("seconds", &run.seconds)?;
        object.end()
    }
}
