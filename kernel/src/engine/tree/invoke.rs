//! Running callbacks a few at a time, and what is done when they become too many.

use super::cpu::{At, Own, Site};
use super::options::at_least_one;
use super::{Options, Shared, Variant};
use crate::engine::store::Store;
use crate::engine::{Access, Host, Line};

impl Own {
    /// How many of the callbacks that are ready run in one pass.
    pub(crate) fn batch(&self, options: &Options) -> u64 {
        let ready = self.callbacks.ready();
        let part = ready.checked_shr(options.ready_shift).unwrap_or(0);
        let limit = u64::from(at_least_one(options.blimit)).max(part);
        if self.is_limit_lifted { ready } else { ready.min(limit) }
    }

    /// Whether callbacks have become too many since that was last looked at.
    #[inline]
    pub(crate) fn is_excess(&self, options: &Options) -> bool {
        self.callbacks.len() > self.checked_at.saturating_add(options.qhimark)
    }

    /// So many have run.
    pub(crate) fn took(&mut self, options: &Options, count: u64) {
        self.callbacks.take(count);
        let left = self.callbacks.len();
        self.is_limit_lifted &= left > options.qlowmark;
        if left == 0 || left.saturating_add(options.qhimark) < self.checked_at {
            self.checked_at = left;
        }
    }

    /// Whether the others are to be told that callbacks have become far too many here, or no longer
    /// are.
    #[inline]
    pub(crate) fn overload_changes(&self, options: &Options) -> bool {
        let is_overloaded = self.callbacks.len() >= options.qovld;
        options.variant == Variant::Today && self.is_overloaded != is_overloaded
    }
}

impl<A: Store> Shared<A> {
    /// Runs callbacks whose grace period is over: a few, or all if they have become too many.
    pub(super) fn invoke(&mut self, at: &mut At<'_, impl Site>) {
        let count = at.own.batch(&at.plan.options);
        if count == 0 {
            return;
        }
        at.host.invoke(at.cpu, count);
        at.host.touch(Line::Cpu(at.cpu), Access::Write);
        at.own.took(&at.plan.options, count);
        if at.own.callbacks.ready() != 0 {
            at.host.raise(at.cpu);
        }
        if at.own.callbacks.is_empty() {
            self.sleepers.remove(at.cpu);
        }
        self.note_overload(at);
    }

    /// Tells the others, if that is due.
    pub(crate) fn note_overload(&mut self, at: &mut At<'_, impl Site>) {
        if !at.own.overload_changes(&at.plan.options) {
            return;
        }
        at.own.is_overloaded = !at.own.is_overloaded;
        at.host.touch(self.line_of(at.cpu), Access::Lock);
        self.overloaded = match at.own.is_overloaded {
            true => self.overloaded + 1,
            false => self.overloaded.saturating_sub(1),
        };
    }

    /// Callbacks are becoming too many: hurry.
    pub(crate) fn hurry(&mut self, at: &mut At<'_, impl Site>) {
        self.notice(at);
        if !self.sequence.in_progress() {
            self.ask(at);
        } else {
            at.own.is_limit_lifted = true;
            at.own.checked_at = at.own.callbacks.len();
            self.scan(at);
        }
    }
}
