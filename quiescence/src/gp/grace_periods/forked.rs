//! The grace periods of a domain across a `fork`: locked before it, repaired in the child.

use std::sync::atomic::Ordering::Relaxed;

use super::{GracePeriods, State};
use crate::gp::registry::Registry;
use crate::os::forking::{AtFork, Held};
use crate::os::sync::{self, Rank};

impl AtFork for State {}
impl AtFork for Registry {}

impl GracePeriods {
    /// Before a `fork`: has the locks taken.
    pub(crate) fn hold(&'static self, held: &mut Held) {
        held.add(Rank::GracePeriods, &self.state);
        held.add(Rank::Registry, &self.registry);
    }

    /// In the child: only `owner`'s readers are left, no thread drives and none sleeps.
    pub(crate) fn after_fork(&self, owner: usize) {
        let state = &mut *sync::lock(&self.state);
        sync::lock(&self.registry).keep_only(owner);
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
