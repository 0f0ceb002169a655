//! The grace periods of a domain across a `fork`: locked before it, repaired in the child.

use std::sync::atomic::Ordering::Relaxed;

use super::{GracePeriods, State};
use crate::gp::registry::Registry;
use crate::os::sync::{self, MutexGuard};

/// The machine of a domain, locked across a `fork`.
pub(crate) struct HeldMachine<'a>(MutexGuard<'a, State>);

/// The registry of a domain, locked across a `fork`.
pub(crate) struct HeldRegistry<'a>(MutexGuard<'a, Registry>);

impl GracePeriods {
    /// Before a `fork`: locks it in addition to those of other domains.
    pub(crate) fn hold_machine(&self) -> HeldMachine<'_> {
        HeldMachine(sync::lock_another(&self.state))
    }

    /// Before a `fork`: locks it in addition to those of other domains.
    pub(crate) fn hold_registry(&self) -> HeldRegistry<'_> {
        HeldRegistry(sync::lock_another(&self.registry))
    }

    /// In the child: only `owner`'s readers are left, no thread drives and none sleeps.
    pub(crate) fn after_fork(
        &self,
        machine: &mut HeldMachine<'_>,
        registry: &mut HeldRegistry<'_>,
        owner: usize,
    ) {
        let state = &mut machine.0;
        registry.0.keep_only(owner);
        self.wake.0.left.store(0, Relaxed);
        if let Some(words) = self.liburcu_words() {
            words.futex.store(0, Relaxed);
        }
        state.driven = false;
        state.begun = None; // the grace period starts again from its fence
        self.end_term(state);
        state.sleepers = 0;
        state.protocol.abandon();
        self.tasks_forgotten.store(state.sleepers_to_tell.forget(), Relaxed);
        self.tasks.store(0, Relaxed);
    }
}
