//! Queues: values that go from any thread to any other.
//!
//! An update adds a value and a read takes one. A thread does as many of one as of the other, so
//! that the queue stays about as long as it was.

use std::sync::atomic::Ordering;

use super::plan::Operation;
use super::subject::{Job, Subject};
use super::value::{Ledger, Value};

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

/// A queue.
pub(crate) struct Queued<Q>(Q);

impl<Q: Queueing> Subject for Queued<Q> {
    const TIMED: bool = false;
    type Thread = ();

    fn new(job: &Job<'_>) -> Self {
        let queue = Q::new();
        for _ in 0..LENGTH {
            queue.push(job.value(0, 0));
        }
        Self(queue)
    }

    fn thread(&self) {}

    #[inline]
    fn read(&self, job: &Job<'_>, _operation: Operation, (): &mut ()) -> bool {
        let Some(value) = self.0.pop() else { return false };
        job.ledger.replaced.add(1);
        value.is_wrong(0, job.plan.work)
    }

    #[inline]
    fn change(&self, job: &Job<'_>, _: Operation, (): &mut (), serial: u32) -> bool {
        self.0.push(job.value(0, serial));
        false
    }

    /// Counts the values by taking them all out, and puts them back.
    fn errors_at_rest(&self, ledger: &Ledger) -> u64 {
        let values: Vec<Value> = std::iter::from_fn(|| self.0.pop()).collect();
        let here_and_taken = values.len() as u64 + ledger.replaced.sum().cast_unsigned();
        values.into_iter().for_each(|value| self.0.push(value));
        // Relaxed: the threads were joined, which orders it.
        here_and_taken.abs_diff(LENGTH + ledger.updates.load(Ordering::Relaxed))
    }

    fn flush(&self) {
        self.0.flush();
    }
}
