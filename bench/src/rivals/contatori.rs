//! The crate contatori: atomic additions, to one of a fixed number of words by thread.

use std::hint::black_box;
use std::time::Duration;

use contatori::counters::unsigned::Unsigned;
use contatori::counters::{CounterValue, Observable};

use super::Rival;
use crate::advise::Counting;
use crate::cases::counters::counted;
use crate::cases::loops::Looped;

pub(super) const RIVALS: &[Rival] = &[Rival::new("contatori")
    .counter::<Unsigned>()
    .times(Looped::Count, count)];

impl Counting for Unsigned {
    const EXACT: bool = false;

    fn new() -> Self {
        Self::new()
    }

    #[inline]
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

fn count(batches: u64) -> Duration {
    static COUNTER: Unsigned = Unsigned::new();
    let counter = black_box(&COUNTER);
    let sum = || match counter.value() {
        CounterValue::Unsigned(sum) => sum,
        other => panic!("an unsigned counter says {other:?}"),
    };
    counted(batches, || counter.add(1), sum)
}
