//! What the JSON documents of all commands share. The schemas are described in `docs/JSON.md`.

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
