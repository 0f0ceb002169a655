//! The crate contatori: atomic additions, to one of a fixed number of words by thread.

use contatori::counters::unsigned::Unsigned;
use contatori::counters::{CounterValue, Observable};

use super::Rival;
use crate::cases::counters::counts;
use crate::cases::loops::Looped;
use crate::shapes::Counting;

pub(super) const RIVALS: &[Rival] =
    &[Rival::new("contatori").counter::<Unsigned>().times(Looped::Count, counts::<Unsigned>)];

impl Counting for Unsigned {
    const EXACT: bool = false;

    fn new() -> Self {
        Self::new()
    }

    #[inline(always)]
    fn add(&self) {
        self.add(1);
    }

    #[inline]
    fn sum(&self) -> u64 {
        match self.value() {
            CounterValue::Unsigned(sum) => sum,
            other => panic!("an unsigned counter says {other:?}"),
        }
    }
}
