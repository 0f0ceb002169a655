//! Running callbacks a few at a time, and what is done when they become too many.

use grace::steps::Steps;

use super::options::at_least_one;
use super::{Tree, Variant};
use crate::kernel::{Access, Host, Line};

impl<S: Steps> Tree<S> {
    /// Runs callbacks whose grace period is over: a few, or all if they have become too many.
    pub(super) fn invoke(&mut self, cpu: usize, host: &mut dyn Host) {
        let Some(own) = self.cpus.get_mut(cpu) else { return };
        let ready = own.callbacks.ready();
        if ready == 0 {
            return;
        }
        let part = ready.checked_shr(self.options.ready_shift).unwrap_or(0);
        let limit = u64::from(at_least_one(self.options.blimit)).max(part);
        let count = if own.is_limit_lifted { ready } else { ready.min(limit) };
        host.invoke(cpu, count);
        host.touch(Line::Cpu(cpu), Access::Write);
        own.callbacks.take(count);
        let left = own.callbacks.len();
        own.is_limit_lifted &= left > self.options.qlowmark;
        if left == 0 || left.saturating_add(self.options.qhimark) < own.checked_at {
            own.checked_at = left;
        }
        if own.callbacks.ready() != 0 {
            host.raise(cpu);
        }
        if left == 0 {
            self.sleepers.remove(cpu);
        }
        self.note_overload(cpu, host);
    }

    /// Tells the others when callbacks have become far too many here, or no longer are.
    pub(super) fn note_overload(&mut self, cpu: usize, host: &mut dyn Host) {
        let Some(own) = self.cpus.get_mut(cpu) else { return };
        let is_overloaded = own.callbacks.len() >= self.options.qovld;
        if self.options.variant != Variant::Today || own.is_overloaded == is_overloaded {
            return;
        }
        own.is_overloaded = is_overloaded;
        host.touch(Line::Node(self.nodes.leaf_of(cpu).0), Access::Lock);
        self.overloaded = match is_overloaded {
            true => self.overloaded + 1,
            false => self.overloaded.saturating_sub(1),
        };
    }

    /// Callbacks are becoming too many: hurry.
    pub(super) fn hurry(&mut self, cpu: usize, host: &mut dyn Host) {
        self.notice(cpu, host);
        if !self.sequence.in_progress() {
            host.touch(Line::Node(self.nodes.leaf_of(cpu).0), Access::Lock);
            if self.accelerate(cpu, host) {
                self.begin(cpu, host);
            }
        } else if let Some(own) = self.cpus.get_mut(cpu) {
            own.is_limit_lifted = true;
            own.checked_at = own.callbacks.len();
            self.scan(cpu, host);
        }
    }
}
