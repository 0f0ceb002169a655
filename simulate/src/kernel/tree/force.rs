//! Forcing quiescent states: the scan, what it does about holdouts, and how these then help.

use grace::steps::Steps;

use super::options::at_least_one;
use super::{FLAG, INTERRUPT, SNAPSHOT, Tree, Variant};
use crate::kernel::{Access, Host, Line};

/// Once a grace period has reached half the stall time, a holdout is interrupted this often.
const BEAT_JIFFIES: u32 = 5;

impl<S: Steps> Tree<S> {
    /// Asks the timer, and remembers how long.
    pub(super) fn ask_timer(&mut self, jiffies: u32, host: &mut dyn Host) {
        self.asked_jiffies = at_least_one(jiffies);
        host.timer(self.asked_jiffies);
    }

    /// What the timer was asked to wait has gone by. Ages stop where nothing changes any more.
    pub(super) fn pass_time(&mut self) {
        let passed = self.asked_jiffies;
        let half_stall = self.options.stall_jiffies / 2;
        let oldest = match self.options.variant {
            Variant::V3_15 | Variant::V0 { .. } => 0,
            Variant::V1 { flag_after_jiffies: age } | Variant::V2 { sched_qs_jiffies: age } => age,
            Variant::Today => self.options.sched_qs_jiffies.saturating_mul(2),
        };
        let age_max = oldest.max(half_stall).saturating_add(1);
        self.age_jiffies = self.age_jiffies.saturating_add(passed).min(age_max);
        self.beat_in_jiffies = self.beat_in_jiffies.saturating_sub(passed);
        if self.options.variant == Variant::Today {
            for own in &mut self.cpus {
                own.since_kick_jiffies = own.since_kick_jiffies.saturating_add(passed);
                if own.since_kick_jiffies > self.options.sched_qs_jiffies.saturating_mul(3) {
                    own.since_kick_jiffies = u32::MAX;
                }
            }
        }
    }

    /// Looks at the holdouts: those in an extended quiescent state, or (but for the first time)
    /// having been in one since, are none any more. Something is done about the others.
    pub(super) fn scan(&mut self, cpu: usize, host: &mut dyn Host) {
        let is_first = !self.has_snapshot;
        self.has_snapshot = true;
        let mut is_over = false;
        for leaf in self.nodes.leaves() {
            host.touch(Line::Node(leaf), Access::Lock);
            let mut unseen = self.nodes.get(leaf).map_or(0, |node| node.holdouts);
            let mut quiescent = 0;
            while unseen != 0 {
                let bit = unseen & unseen.wrapping_neg();
                unseen &= !bit;
                let holdout = self.nodes.first_cpu(leaf) + bit.trailing_zeros() as usize;
                host.touch(Line::Cpu(holdout), Access::Read);
                let Some(own) = self.cpus.get_mut(holdout) else { continue };
                let knows_moves = !is_first || self.steps.omits(SNAPSHOT);
                if own.is_extended || knows_moves && own.has_moved {
                    quiescent |= bit;
                } else if is_first {
                    own.has_moved = false;
                } else {
                    self.urge(holdout, host);
                }
            }
            is_over |= quiescent != 0 && self.clear(leaf, quiescent, host);
        }
        if is_over {
            self.end(cpu, host);
        }
    }

    /// Does about a holdout what the variant says.
    fn urge(&mut self, holdout: usize, host: &mut dyn Host) {
        let is_tickless = self.tickless.contains(holdout);
        let is_unaware = self.cpus.get(holdout).is_some_and(|own| own.sequence != self.sequence);
        match self.options.variant {
            Variant::V3_15 | Variant::V0 { .. } => self.beat(holdout, host),
            Variant::V1 { flag_after_jiffies } => {
                if self.age_jiffies >= flag_after_jiffies && !self.steps.omits(FLAG) {
                    self.ask_for_help(holdout, true, host);
                }
                self.beat(holdout, host);
            }
            Variant::V2 { sched_qs_jiffies } => {
                let limit = sched_qs_jiffies.min(self.options.stall_jiffies / 2);
                let is_old = self.age_jiffies >= limit && !self.steps.omits(INTERRUPT);
                if is_old && self.ask_for_help(holdout, true, host) {
                    host.resched(holdout);
                } else {
                    self.beat(holdout, host);
                }
            }
            Variant::Today => return self.urge_today(holdout, is_tickless && is_unaware, host),
        }
        // The kernel has such a CPU turn its tick on, which raises the softirq.
        if is_tickless && is_unaware {
            host.raise(holdout);
        }
    }

    /// Interrupts a holdout of a very old grace period, now and then; if there are many, the first
    /// until it is none any more.
    fn beat(&mut self, holdout: usize, host: &mut dyn Host) {
        if self.beat_in_jiffies == 0 {
            self.beat_in_jiffies = BEAT_JIFFIES;
            host.resched(holdout);
        }
    }

    /// Today's ways with a holdout.
    fn urge_today(&mut self, holdout: usize, needs_tick: bool, host: &mut dyn Host) {
        let limit = self.options.sched_qs_jiffies;
        let age = self.age_jiffies;
        let is_stalling = age > self.options.stall_jiffies / 2;
        let is_overloaded = self.overloaded != 0;
        let is_tickless = self.tickless.contains(holdout);
        if age > limit.saturating_mul(2) || is_stalling || is_overloaded {
            self.ask_for_help(holdout, true, host);
        } else if age > limit {
            self.ask_for_help(holdout, false, host);
        }
        let Some(own) = self.cpus.get_mut(holdout) else { return };
        let since_kick = own.since_kick_jiffies;
        let is_kicked = is_tickless && (since_kick > limit.saturating_mul(3) || is_overloaded)
            || is_stalling && since_kick > limit;
        if is_kicked {
            own.since_kick_jiffies = 0;
            if is_tickless {
                self.ask_for_help(holdout, false, host);
            }
            host.resched(holdout);
            if needs_tick {
                host.raise(holdout);
            }
        }
    }

    /// Sets the flags of `holdout`. Returns whether it had none.
    fn ask_for_help(&mut self, holdout: usize, is_heavy: bool, host: &mut dyn Host) -> bool {
        let Some(own) = self.cpus.get_mut(holdout) else { return false };
        let was_urgent = own.is_urgent;
        if !was_urgent || is_heavy && !own.is_heavy {
            own.is_urgent = true;
            own.is_heavy |= is_heavy;
            host.touch(Line::Mailbox(holdout), Access::Write);
        }
        !was_urgent
    }

    /// `cpu`, in no section, looks whether its help is wanted. Returns whether it was.
    pub(super) fn help(&mut self, cpu: usize, host: &mut dyn Host) -> bool {
        if matches!(self.options.variant, Variant::V3_15 | Variant::V0 { .. }) {
            return false;
        }
        let Some(own) = self.cpus.get_mut(cpu) else { return false };
        host.touch(Line::Mailbox(cpu), Access::Read);
        if !own.is_urgent {
            return false;
        }
        own.is_urgent = false;
        host.touch(Line::Mailbox(cpu), Access::Write);
        if own.is_heavy {
            own.is_heavy = false;
            own.has_moved = true;
            host.touch(Line::Cpu(cpu), Access::Atomic);
        }
        true
    }

    /// One more `cond_resched()`; the last of every `period` is a quiescent state. Between
    /// disabling preemption and enabling it, that resets the count and flags the CPU as passed: two
    /// writes, whether or not anybody waits for them.
    pub(super) fn count_cond_resched(&mut self, cpu: usize, period: u32, host: &mut dyn Host) {
        let Some(own) = self.cpus.get_mut(cpu) else { return };
        own.cond_rescheds = own.cond_rescheds.saturating_add(1);
        host.touch(Line::Cpu(cpu), Access::Write);
        if own.cond_rescheds >= period {
            own.cond_rescheds = 0;
            (0..2).for_each(|_| host.touch(Line::Cpu(cpu), Access::Write));
            self.note_quiescent(cpu, host);
        }
    }

    /// The tick finds kernel code on a CPU whose help is wanted: have it go through the
    /// scheduler.
    pub(super) fn reschedule_if_urgent(&mut self, cpu: usize, host: &mut dyn Host) {
        if self.options.variant != Variant::Today {
            return;
        }
        if let Some(own) = self.cpus.get_mut(cpu) {
            host.touch(Line::Mailbox(cpu), Access::Read);
            if own.is_urgent {
                // Whether it is to be heavy stays written: the context switch alone suffices here.
                own.is_urgent = false;
                host.resched(cpu);
            }
        }
    }
}
