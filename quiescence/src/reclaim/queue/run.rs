//! What goes with running callbacks: panics that end there, the room that they make, how long it may take.

use std::cell::Cell;

use grace::limit::Amount;

use super::RUN_CHUNK;
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::stream::Progress;

/// The room that the callbacks of a domain have made on this thread, while they are run: for those that they
/// queue themselves.
#[derive(Debug)]
pub(crate) struct Credit {
    room: Cell<Amount>,
    /// How far the run in progress is, how much of it is in `room` already, and what each of it counts for.
    pub(super) progress: Progress,
    counted: Cell<u64>,
    bytes_each: Cell<u64>,
}

impl Credit {
    pub(crate) const fn new() -> Self {
        Self {
            room: Cell::new(Amount::NONE),
            progress: Progress::new(),
            counted: Cell::new(0),
            bytes_each: Cell::new(0),
        }
    }

    pub(super) fn begin_run(&self, bytes_each: u64) {
        self.room(); // what is left of the run before
        self.progress.reset();
        self.counted.set(0);
        self.bytes_each.set(bytes_each);
    }

    /// What there is now.
    pub(crate) fn room(&self) -> Amount {
        let begun = self.progress.begun();
        let new = begun - self.counted.replace(begun);
        let made = Amount { objects: new, bytes: new * self.bytes_each.get() };
        self.room.set(self.room.get().plus(made));
        self.room.get()
    }

    /// So much is used.
    pub(crate) fn spend(&self, amount: Amount) {
        self.room.set(self.room().minus(amount));
    }
}

/// How long callbacks may be run in one go; nobody looks at the clock for a few.
pub(super) struct Deadline {
    #[cfg(not(loom))]
    at_ns: Option<u64>,
}

impl Deadline {
    #[cfg(not(loom))]
    pub(super) fn of(core: &DomainState, callbacks: u64) -> Self {
        let run_ns = core.tuning.run_ns();
        let many = callbacks > 2 * RUN_CHUNK;
        Self { at_ns: many.then(|| crate::os::clock::monotonic_ns().saturating_add(run_ns)) }
    }

    #[cfg(not(loom))]
    pub(super) fn is_over(&self, ran: u64) -> bool {
        ran.is_multiple_of(RUN_CHUNK)
            && ran != 0
            && self.at_ns.is_some_and(|at_ns| crate::os::clock::monotonic_ns() >= at_ns)
    }

    #[cfg(loom)]
    pub(super) fn of(_core: &DomainState, _callbacks: u64) -> Self {
        Self {}
    }

    #[cfg(loom)]
    pub(super) fn is_over(&self, _ran: u64) -> bool {
        false
    }
}

/// Runs `f`, which runs callbacks of `core`; what they free is put into `credit`, for them to use.
#[cfg(not(loom))]
pub(super) fn running(core: &DomainState, credit: &Credit, f: impl FnOnce()) {
    crate::reclaim::local::running_callbacks(core, credit, f);
}

#[cfg(loom)]
pub(super) fn running(_core: &DomainState, _credit: &Credit, f: impl FnOnce()) {
    f();
}
