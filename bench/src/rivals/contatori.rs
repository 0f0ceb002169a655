//! The crate contatori: atomic additions, to one of a fixed number of words by thread.

use contatori::counters::unsigned::Unsigned;
use contatori::counters::{CounterValue, Observable};

use super::Rival;
use crate::cases::loops::{Looped, counts};
use crate::shapes::counting;

pub(super) const RIVALS: &[Rival] =
    &[Rival::new("contatori").counter::<Unsigned>().times(Looped::Count, counts::<Unsigned>)];

counting! {
    Unsigned, exact: false,
        add: |counter| counter.add(1),
        sum: |counter| match counter.value() {
            CounterValue::Unsigned(sum) => sum,
            other => panic!("an unsigned counter says {other:?}"),
        };
}
