//! The run as one thread sees it: where it says that it gets on, what it has done, and what it has
//! found wrong; and what it draws from.

use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::delays;
use super::kinds::{FaultKind, Operation, Step};
use super::ledger::{Ledger, ThreadRecord};
use super::random::Random;

/// Between two looks of a thread that waits, or watches whether others get on.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// Turns of a thread between two messages to the watchdog.
pub(crate) const TURNS: u64 = 32;

/// Looks after which what was deferred should have been freed long since. As with the watchdog's
/// patience: while the machine stands still, no thread looks.
const LOOKS_MAX: u32 = 750;

/// Objects that were dropped though they were not alive, or while somebody had them. In a static:
/// what was dropped too early may not lead anywhere.
pub(crate) static DROPPED_WRONGLY: AtomicU64 = AtomicU64::new(0);

/// The run as one thread of the torture sees it.
#[derive(Clone)]
pub(crate) struct ThreadContext {
    pub(crate) ledger: Arc<Ledger>,
    /// Which of the ledger's thread records is this thread's.
    pub(crate) record: usize,
    /// What it draws from. A clone, which is another thread's, draws other numbers.
    pub(crate) random: Random,
}

impl Deref for ThreadContext {
    type Target = Random;

    fn deref(&self) -> &Random {
        &self.random
    }
}

impl ThreadContext {
    pub(crate) fn record(&self) -> &ThreadRecord {
        &self.ledger.records[self.record]
    }

    /// The thread gets on, and this is what it does now.
    pub(crate) fn begin(&self, operation: Operation) {
        self.record().begin(Step::Defer(operation));
    }

    /// The same; and it is counted.
    pub(crate) fn did(&self, operation: Operation) {
        self.begin(operation);
        self.ledger.operations.add(operation, 1);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.ledger.is_over()
    }

    /// Does something until the run is over, or something is found that is not alive. It yields,
    /// too.
    pub(crate) fn rounds(&self, operation: Operation, mut round: impl FnMut()) {
        while !self.is_over() && !self.has_died() {
            self.begin(operation);
            round();
            self.give_way();
        }
    }

    /// Gives the CPU away now and then.
    pub(crate) fn give_way(&self) {
        if self.one_in(4) {
            thread::yield_now();
        }
    }

    /// The same, some times between two messages to the watchdog.
    pub(crate) fn turns(&self, operation: Operation, mut turn: impl FnMut()) {
        self.rounds(operation, || (0..TURNS).for_each(|_| turn()));
    }

    /// The same, and the times are counted.
    pub(crate) fn repeat(&self, operation: Operation, mut turn: impl FnMut()) {
        self.rounds(operation, || {
            (0..TURNS).for_each(|_| turn());
            self.ledger.operations.add(operation, TURNS);
        });
    }

    /// Whether something was found that was not alive; a thread had better stop then.
    pub(crate) fn has_died(&self) -> bool {
        let wrongly = DROPPED_WRONGLY.load(Relaxed) != 0;
        self.expect(!wrongly, FaultKind::Freed, "", || {
            "an object was dropped twice, or while somebody had it".to_owned()
        });
        wrongly || self.ledger.faults(FaultKind::Freed) != 0
    }

    pub(crate) fn fault(&self, kind: FaultKind, domain: &str, detail: impl FnOnce() -> String) {
        self.ledger.fault(kind, domain, None, None, detail);
    }

    /// A fault unless something holds.
    pub(crate) fn expect(
        &self,
        holds: bool,
        kind: FaultKind,
        domain: &str,
        detail: impl FnOnce() -> String,
    ) {
        if !holds {
            self.fault(kind, domain, detail);
        }
    }

    /// A fault unless what was found is what it should be.
    pub(crate) fn equal<T: Debug + PartialEq>(
        &self,
        kind: FaultKind,
        domain: &str,
        what: &str,
        found: T,
        right: T,
    ) {
        let holds = found == right;
        self.expect(holds, kind, domain, || format!("{what}: {found:?}, and not {right:?}"));
    }

    /// Starts a thread, which draws from a stream of its own; none if the system is short of
    /// threads for the moment.
    pub(crate) fn spawn<R: Send + 'static>(
        &self,
        name: &str,
        life: impl FnOnce(&Self) -> R + Send + 'static,
    ) -> Option<JoinHandle<R>> {
        let (seed, own) = (self.next(), self.clone());
        let started = thread::Builder::new().name(name.to_owned()).spawn(move || {
            delays::seed_thread(seed);
            life(&own)
        });
        started.ok()
    }

    /// Sleeps for less than so many microseconds.
    pub(crate) fn sleep(&self, limit_us: u64) {
        thread::sleep(Duration::from_micros(self.below(limit_us)));
    }

    /// Waits for a thread to end, its destructors included; a panic of its is a fault.
    pub(crate) fn join<R>(&self, thread: JoinHandle<R>, domain: &str) -> Option<R> {
        let name = thread.thread().name().unwrap_or_default().to_owned();
        let result = thread.join().ok();
        self.expect(result.is_some(), FaultKind::Panic, domain, || {
            format!("a thread ({name}) panicked; see standard error")
        });
        result
    }

    /// Waits for something that nothing this thread does brings about; `false` if it takes too
    /// long.
    pub(crate) fn await_idle(&self, operation: Operation, is_there: impl Fn() -> bool) -> bool {
        for _ in 0..LOOKS_MAX {
            self.begin(operation);
            if is_there() {
                return true;
            }
            thread::sleep(LOOK);
        }
        is_there()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// One for tests, with a ledger of its own.
    pub(crate) fn context() -> ThreadContext {
        let ledger = Arc::new(Ledger::new(vec![ThreadRecord::new("a test".to_owned())]));
        ThreadContext { ledger, record: 0, random: Random::new(1, 0) }
    }
}
