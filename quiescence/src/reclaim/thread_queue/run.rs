//! What goes with running callbacks of a queue: how long it may take.

use grace::batch::{self, RUN_CHUNK};

use crate::reclaim::charge::Charged;
use crate::reclaim::running::Uncharged;

/// How long callbacks may be run in one go; no thread looks at the clock for a few.
pub(super) struct Deadline {
    #[cfg(not(loom))]
    at_ns: Option<u64>,
}

impl Deadline {
    #[cfg(not(loom))]
    pub(super) fn of(core: &Charged, callbacks: u64) -> Self {
        let run_ns = core.tuning.run_ns();
        let timed = batch::is_timed(callbacks);
        Self { at_ns: timed.then(|| crate::os::clock::monotonic_ns().saturating_add(run_ns)) }
    }

    #[cfg(not(loom))]
    pub(super) fn is_over(&self, ran: u64) -> bool {
        ran.is_multiple_of(RUN_CHUNK)
            && ran != 0
            && self.at_ns.is_some_and(|at_ns| crate::os::clock::monotonic_ns() >= at_ns)
    }

    #[cfg(loom)]
    pub(super) fn of(_core: &Charged, _callbacks: u64) -> Self {
        Self {}
    }

    #[cfg(loom)]
    pub(super) fn is_over(&self, _ran: u64) -> bool {
        false
    }
}

/// Runs `f`, which runs callbacks of `core`; what they free is put into `uncharged`, for them to
/// use.
#[cfg(not(loom))]
pub(super) fn running(core: &Charged, uncharged: &Uncharged, f: impl FnOnce()) {
    crate::reclaim::running::running_callbacks(core, uncharged, f);
}

#[cfg(loom)]
pub(super) fn running(_core: &Charged, _uncharged: &Uncharged, f: impl FnOnce()) {
    f();
}
