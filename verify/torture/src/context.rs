//! The run as one thread sees it: where it says that it gets on, what it has done, and what it has
//! found wrong.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use quiescence::tuning::Engine;

use super::kinds::{FaultKind, Operation, Step};
use super::ledger::{Ledger, ThreadRecord};

/// The thread that waits for something that nothing else does looks so often.
const LOOK: Duration = Duration::from_millis(20);

/// Looks after which what was deferred should have been freed long since. As with the watchdog's
/// patience: while the machine stands still, no thread looks.
const LOOKS_MAX: u32 = 750;

/// The run as one thread of the torture sees it.
#[derive(Clone, Debug)]
pub(crate) struct ThreadContext {
    pub(crate) ledger: Arc<Ledger>,
    /// Which of the ledger's thread records is this thread's.
    pub(crate) record: usize,
    pub(crate) engine: Engine,
    /// Threads that live for a moment, for the whole run.
    pub(crate) short_threads: u64,
    /// The name of the step that is removed.
    pub(crate) mutant: Option<&'static str>,
}

impl ThreadContext {
    pub(crate) fn record(&self) -> &ThreadRecord {
        &self.ledger.records[self.record]
    }

    /// The thread gets on, and this is what it does now.
    pub(crate) fn begin(&self, operation: Operation) {
        self.record().begin(Step::Defer(operation));
    }

    /// Something was done; so the thread gets on.
    pub(crate) fn did(&self, operation: Operation) {
        self.record().beat();
        self.ledger.did(operation, 1);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.ledger.is_over()
    }

    pub(crate) fn fault(&self, kind: FaultKind, domain: &str, detail: impl FnOnce() -> String) {
        self.ledger.fault(kind, domain, None, None, detail);
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
        ThreadContext {
            ledger: Arc::new(Ledger::new(vec![ThreadRecord::new("a test".to_owned())])),
            record: 0,
            engine: Engine::default(),
            short_threads: 0,
            mutant: None,
        }
    }
}
