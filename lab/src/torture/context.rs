//! The run as one thread sees it: where it says that it gets on, what it has done, and what it has
//! found wrong.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use quiescence_chaos::Engine;

use super::kinds::{FaultKind, Operation, Step};
use super::ledger::{Ledger, ThreadRecord};

/// The thread that waits for something that nothing else does looks so often.
const LOOK: Duration = Duration::from_millis(20);

/// Looks after which what was deferred should have been freed long since. As with the watchdog's
/// patience: while the machine stands still, no thread looks.
const LOOKS_MAX: u32 = 750;

/// The run as one thread of the torture sees it.
#[derive(Clone, Debug)]
pub(super) struct ThreadContext {
    pub(super) ledger: Arc<Ledger>,
    /// Which of the ledger's thread records is this thread's.
    pub(super) record: usize,
    pub(super) engine: Engine,
    /// Threads that live for a moment, for the whole run.
    pub(super) short_threads: u64,
    /// The name of the step that is removed.
    pub(super) mutant: Option<&'static str>,
}

impl ThreadContext {
    pub(super) fn record(&self) -> &ThreadRecord {
        &self.ledger.records[self.record]
    }

    /// The thread gets on, and this is what it does now.
    pub(super) fn begin(&self, operation: Operation) {
        self.record().begin(Step::Defer(operation));
    }

    /// Something was done; so the thread gets on.
    pub(super) fn did(&self, operation: Operation) {
        self.record().beat();
        self.ledger.did(operation, 1);
    }

    pub(super) fn is_over(&self) -> bool {
        self.ledger.is_over()
    }

    pub(super) fn fault(&self, kind: FaultKind, domain: &str, detail: impl FnOnce() -> String) {
        self.ledger.fault(kind, domain, None, None, detail);
    }

    /// Waits for something that nothing this thread does brings about; `false` if it takes too
    /// long.
    pub(super) fn await_idle(&self, operation: Operation, is_there: impl Fn() -> bool) -> bool {
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
pub(super) mod tests {
    use super::*;

    /// One for tests, with a ledger of its own.
    pub(in crate::torture) fn context() -> ThreadContext {
        ThreadContext {
            ledger: Arc::new(Ledger::new(None, vec![ThreadRecord::new("a test".to_owned())])),
            record: 0,
            engine: Engine::default(),
            short_threads: 0,
            mutant: None,
        }
    }
}
