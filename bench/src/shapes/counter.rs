//! Counters: events that are counted, and what is in use up to a limit.
//!
//! An update counts, a read asks for the sum. What a thread counted itself is in every sum that it
//! asks for afterwards, and at rest nothing is missing: that is checked of every design, and more
//! is not, since a sum of many words is of no single moment.

use std::sync::atomic::Ordering;

use super::plan::Operation;
use super::subject::{Job, Subject};
use super::value::Ledger;

/// Counts events.
pub(crate) trait Counting: Sized + Send + Sync + 'static {
    /// Whether a sum is the value that the counter had at one moment.
    const EXACT: bool;

    fn new() -> Self;
    /// Counts one.
    fn add(&self);
    fn sum(&self) -> u64;
}

/// [`Counting`] for a counter, by an expression for each method.
macro_rules! counting {
    ($(
        $counter:ty, exact: $exact:literal,
        add: |$to:ident| $add:expr, sum: |$of:ident| $sum:expr;
    )*) => {$(
        impl $crate::shapes::Counting for $counter {
            const EXACT: bool = $exact;

            fn new() -> Self {
                Self::default()
            }

            #[inline(always)]
            fn add(&self) {
                let $to = self;
                $add;
            }

            #[inline]
            fn sum(&self) -> u64 {
                let $of = self;
                $sum
            }
        }
    )*};
}
pub(crate) use counting;

/// Counts what is in use, up to a limit.
pub(crate) trait Limiting: Counting {
    /// One that is only asked for this limit.
    fn up_to(_limit: u64) -> Self {
        Self::new()
    }

    /// Counts one, unless that would exceed the limit.
    fn try_take(&self, limit: u64) -> bool;
    /// Counts one less, which was taken before.
    fn give(&self);
}

/// A counter of events.
pub(crate) struct Counted<C>(C);

impl<C: Counting> Subject for Counted<C> {
    const TIMED: bool = false;
    /// What the thread has counted.
    type Thread = u64;

    fn new(_job: &Job<'_>) -> Self {
        Self(C::new())
    }

    fn thread(&self) -> u64 {
        0
    }

    #[inline]
    fn read(&self, _job: &Job<'_>, _operation: Operation, own: &mut u64) -> bool {
        self.0.sum() < *own
    }

    #[inline]
    fn change(&self, _: &Job<'_>, _: Operation, own: &mut u64, _: u32) -> bool {
        self.0.add();
        *own += 1;
        false
    }

    fn errors_at_rest(&self, ledger: &Ledger) -> u64 {
        // Relaxed: the threads were joined, which orders it.
        self.0.sum().abs_diff(ledger.updates.load(Ordering::Relaxed))
    }
}

/// How much a thread takes before it gives it back.
const HELD_MAX: u64 = 32;

/// What a thread has taken, and whether it gives back at the moment.
#[derive(Debug, Default)]
pub(crate) struct Held {
    count: u64,
    gives: bool,
}

/// A counter with a limit: each thread takes up to [`HELD_MAX`], and gives them back one by one.
pub(crate) struct Bounded<C>(C);

impl<C: Limiting> Subject for Bounded<C> {
    const TIMED: bool = false;
    type Thread = Held;

    fn new(job: &Job<'_>) -> Self {
        Self(C::up_to(job.plan.limit))
    }

    fn thread(&self) -> Held {
        Held::default()
    }

    #[inline]
    fn read(&self, job: &Job<'_>, _operation: Operation, held: &mut Held) -> bool {
        !(held.count..=job.plan.limit).contains(&self.0.sum())
    }

    #[inline]
    fn change(&self, job: &Job<'_>, _: Operation, held: &mut Held, _: u32) -> bool {
        if held.gives {
            self.0.give();
            held.count -= 1;
            held.gives = held.count > 0;
        } else {
            let taken = self.0.try_take(job.plan.limit);
            held.count += u64::from(taken);
            // A refused thread gives back what it holds, as a program does that sheds load.
            held.gives = held.count == HELD_MAX || (!taken && held.count > 0);
        }
        false
    }

    fn leave(&self, held: Held) {
        for _ in 0..held.count {
            self.0.give();
        }
    }

    fn errors_at_rest(&self, _: &Ledger) -> u64 {
        self.0.sum()
    }
}
