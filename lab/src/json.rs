//! What the JSON documents of all commands share, which `docs/JSON.md` describes. The schemas are
//! in `lab/schema`.

use bench::slices::RunVerdict;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// A JSON object with these members, in this order: what a document says stands once, where it is
/// computed.
macro_rules! object {
    (@) => { () };
    (@ $name:literal: $value:expr $(, $names:literal: $values:expr)*) => {
        ($name, $value, $crate::json::object!(@ $($names: $values),*))
    };
    ($($name:literal: $value:expr,)+) => {
        $crate::json::Object($crate::json::object!(@ $($name: $value),+))
    };
}
pub(crate) use object;

/// What [`object!`] makes.
#[derive(Debug)]
pub(crate) struct Object<M>(pub(crate) M);

/// A member with its name, and those behind it; or none.
pub(crate) trait Members {
    fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}

impl Members for () {
    fn write<M: SerializeMap>(&self, _: &mut M) -> Result<(), M::Error> {
        Ok(())
    }
}

impl<T: Serialize, R: Members> Members for (&'static str, T, R) {
    fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let (name, value, rest) = self;
        map.serialize_entry(name, value)?;
        rest.write(map)
    }
}

impl<M: Members> Serialize for Object<M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.0.write(&mut map)?;
        map.end()
    }
}

/// How good the run was.
pub(crate) fn run(run: &RunVerdict) -> impl Serialize + use<> {
    object! {
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
    }
}
