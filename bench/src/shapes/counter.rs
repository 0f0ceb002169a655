//! Counters: events that are counted, and what is in use up to a limit.
//!
//! An update counts, a read asks for the sum. What a thread counted itself is in every sum that it
//! asks for afterwards, and at rest nothing is missing: that is checked of every design, and more
//! is not, since a sum of many words is of no single moment.

use std::sync::atomic::{AtomicU64, Ordering};

use super::plan::Operation;
use super::subject::{Job, Subject};

/// Counts events.
pub(crate) trait Counting: Send + Sync + 'static {
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
pub(crate) trait Limiting: Send + Sync + 'static {
    fn new(limit: u64) -> Self;
    /// Counts one, unless that would exceed the limit.
    fn try_take(&self) -> bool;
    /// Counts one less, which was taken before.
    fn give(&self);
    fn value(&self) -> u64;
}

/// A counter of events, and what it has to say at rest.
pub(crate) struct Counted<C> {
    counter: C,
    expected: AtomicU64,
}

impl<C: Counting> Subject for Counted<C> {
    const TIMED: bool = false;
    /// What the thread has counted.
    type Thread = u64;

    fn new(_job: &Job<'_>) -> Self {
        Self { counter: C::new(), expected: AtomicU64::new(0) }
    }

    fn thread(&self) -> u64 {
        0
    }

    #[inline]
    fn read(&self, _job: &Job<'_>, _operation: Operation, own: &mut u64) -> bool {
        self.counter.sum() < *own
    }

    #[inline]
    fn change(&self, _: &Job<'_>, _: Operation, own: &mut u64, _: u32) -> bool {
        self.counter.add();
        *own += 1;
        false
    }

    fn leave(&self, own: u64) {
        // Relaxed: read after the threads were joined, which orders it.
        self.expected.fetch_add(own, Ordering::Relaxed);
    }

    fn errors_at_rest(&self) -> u64 {
        self.counter.sum().abs_diff(self.expected.load(Ordering::Relaxed))
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
        Self(C::new(job.plan.limit))
    }

    fn thread(&self) -> Held {
        Held::default()
    }

    #[inline]
    fn read(&self, job: &Job<'_>, _operation: Operation, held: &mut Held) -> bool {
        !(held.count..=job.plan.limit).contains(&self.0.value())
    }

    #[inline]
    fn change(&self, _: &Job<'_>, _: Operation, held: &mut Held, _: u32) -> bool {
        if held.gives {
            self.0.give();
            held.count -= 1;
            held.gives = held.count > 0;
        } else {
            let taken = self.0.try_take();
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

    fn errors_at_rest(&self) -> u64 {
        self.0.value()
    }
}
