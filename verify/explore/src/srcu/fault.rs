//! Faults: SRCU with one fence, one rule or one step of its machine left out, and what comes of it.

use grace::srcu::STEPS;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::harness::kebab;

/// What is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mutant {
    /// A step of [`grace::srcu::STEPS`].
    Omitted(#[serde(deserialize_with = "step")] &'static str),
    /// The fence between the two sums.
    NoFenceA,
    /// The fence after a reader has counted itself in.
    NoFenceB,
    /// The fence before it counts itself out.
    NoFenceC,
    /// The fence after the flip.
    NoFenceD,
    /// The fence before it.
    NoFenceE,
    /// Both fences of the flip.
    NoFenceDNorE,
    /// The fence between the sums, and both of the flip.
    NoFenceOfWorker,
    /// Locks are summed before unlocks.
    LocksFirst,
    /// One CPU's counts are looked at.
    FirstCpuOnly,
    /// Each CPU's counts must be equal, not only their sums.
    EachCpuByItself,
    /// A reader counts itself out of the index that it did not count itself into.
    UnlockOtherIndex,
}

impl Mutant {
    /// Its name.
    pub fn name(self) -> String {
        match self {
            Self::LocksFirst => "locks-first".to_owned(),
            Self::Omitted(step) => format!("srcu-without-{step}"),
            other => format!("srcu-{}", kebab(&other)),
        }
    }
}

/// One of the machine's steps, by its name.
fn step<'de, D: Deserializer<'de>>(from: D) -> Result<&'static str, D::Error> {
    let name = String::deserialize(from)?;
    let found = STEPS.iter().find(|step| **step == name);
    found.copied().ok_or_else(|| D::Error::custom("the machine has no such step"))
}
