//! What one measurement of a rival gives.

use crate::slices::{Judged, Scene};

/// A value for each metric of a case.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) values: Vec<f64>,
    /// Whether it counts; nothing of one that is not judged.
    pub(crate) judged: Judged,
}

impl Sample {
    /// What was not measured, because the system does not say, is NaN.
    pub(crate) fn new(values: impl Into<Vec<f64>>, judged: Judged) -> Self {
        Self { values: values.into(), judged }
    }

    /// Of threads that all did `each` operations: those of all in a second, and the CPU time for
    /// one.
    pub(crate) fn of<R: Send>(scene: &Scene<R>, each: f64) -> Self {
        Self::new(scene.speed(each), scene.judged())
    }
}

/// A single value that is not judged.
pub(crate) fn alone(value: f64) -> Sample {
    Sample::new([value], None)
}
