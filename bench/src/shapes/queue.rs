//! Queues: values that go from any thread to any other.
//!
//! An update adds a value and a read takes one. A thread does as many of one as of the other, so
//! that the queue stays about as long as it was.

use std::sync::atomic::{AtomicU64, Ordering};

use super::plan::Operation;
use super::subject::{Job, Subject};
use super::value::Value;

/// A queue, or a stack: what it promises of the order is not asked here.
pub(crate) trait Queueing: Send + Sync + 'static {
    fn new() -> Self;
    fn push(&self, value: Value);
    fn pop(&self) -> Option<Value>;

    /// Frees some of the nodes that were taken out, if the design can be asked to.
    fn flush(&self) {}
}

/// A queue of somebody's, which has the usual methods, as a [`Queueing`].
macro_rules! queueing {
    ($kind:ident $(, flush: $flush:expr)?) => {
        impl $crate::shapes::Queueing for $kind<$crate::shapes::Value> {
            fn new() -> Self {
                Self::new()
            }

            #[inline]
            fn push(&self, value: $crate::shapes::Value) {
                self.push(value);
            }

            #[inline]
            fn pop(&self) -> Option<$crate::shapes::Value> {
                self.pop()
            }

            $(fn flush(&self) {
                $flush;
            })?
        }
    };
}
pub(crate) use queueing;

/// Values in the queue before the first round, so that takers seldom find it empty.
const LENGTH: u64 = 1000;

/// A queue, and how many values have to be in it at rest.
pub(crate) struct Queued<Q> {
    queue: Q,
    expected: AtomicU64,
}

/// What a thread has added and taken.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    added: u64,
    taken: u64,
}

impl<Q: Queueing> Subject for Queued<Q> {
    const TIMED: bool = false;
    type Thread = Passed;

    fn new(job: &Job<'_>) -> Self {
        let queue = Q::new();
        for _ in 0..LENGTH {
            queue.push(job.value(0, 0));
        }
        Self { queue, expected: AtomicU64::new(LENGTH) }
    }

    fn thread(&self) -> Passed {
        Passed::default()
    }

    #[inline]
    fn read(&self, job: &Job<'_>, _operation: Operation, passed: &mut Passed) -> bool {
        let Some(value) = self.queue.pop() else { return false };
        passed.taken += 1;
        job.ledger.replaced.add(1);
        value.is_wrong(0, job.plan.work)
    }

    #[inline]
    fn change(&self, job: &Job<'_>, _: Operation, passed: &mut Passed, serial: u32) -> bool {
        self.queue.push(job.value(0, serial));
        passed.added += 1;
        false
    }

    fn leave(&self, passed: Passed) {
        // Relaxed: read after the threads were joined. It wraps where a thread took more than it
        // added, and the sum over all threads does not.
        self.expected.fetch_add(passed.added.wrapping_sub(passed.taken), Ordering::Relaxed);
    }

    /// Counts the values by taking them all out, and puts them back.
    fn errors_at_rest(&self) -> u64 {
        let values: Vec<Value> = std::iter::from_fn(|| self.queue.pop()).collect();
        let count = values.len() as u64;
        values.into_iter().for_each(|value| self.queue.push(value));
        count.abs_diff(self.expected.load(Ordering::Relaxed))
    }

    fn flush(&self) {
        self.queue.flush();
    }
}
