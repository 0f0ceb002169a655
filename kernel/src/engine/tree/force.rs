//! Forcing quiescent states: the scan, and what it does about holdouts. How these then help is in
//! [`cpu`](super::cpu).

use grace::steps::Steps;

use super::cpu::{AllWords, At, Site};
use super::options::at_least_one;
use super::{FLAG, INTERRUPT, Options, SNAPSHOT, Shared, Variant};
use crate::engine::store::Store;
use crate::engine::{Access, Host, Line};

/// Once a grace period has reached half the stall time, a holdout is interrupted this often.
const BEAT_JIFFIES: u32 = 5;

impl<A: Store> Shared<A> {
    /// Asks the timer, and remembers how long.
    pub(super) fn ask_timer(&mut self, jiffies: u32, host: &mut (impl Host + ?Sized)) {
        self.asked_jiffies = at_least_one(jiffies);
        host.timer(self.asked_jiffies);
    }

    /// What the timer was asked to wait has gone by. Ages stop where nothing changes any more.
    pub(super) fn pass_time(&mut self, options: &Options) {
        let passed = self.asked_jiffies;
        let half_stall = options.stall_jiffies / 2;
        let oldest = match options.variant {
            Variant::V3_15 | Variant::V0 { .. } => 0,
            Variant::V1 { flag_after_jiffies: age } | Variant::V2 { sched_qs_jiffies: age } => age,
            Variant::Today => options.sched_qs_jiffies.saturating_mul(2),
        };
        let age_max = oldest.max(half_stall).saturating_add(1);
        self.age_jiffies = self.age_jiffies.saturating_add(passed).min(age_max);
        self.beat_in_jiffies = self.beat_in_jiffies.saturating_sub(passed);
        if options.variant == Variant::Today {
            for since in self.since_kick_jiffies.iter_mut() {
                *since = since.saturating_add(passed);
                if *since > options.sched_qs_jiffies.saturating_mul(3) {
                    *since = u32::MAX;
                }
            }
        }
    }

    /// Looks at the holdouts: those in an extended quiescent state, or (but for the first time)
    /// having been in one since, are none any more. Something is done about the others.
    pub(crate) fn scan(&mut self, at: &mut At<'_, impl Site>) {
        let is_first = !self.has_snapshot;
        self.has_snapshot = true;
        let mut is_over = false;
        for leaf in self.nodes.leaves() {
            at.host.touch(Line::Node(leaf), Access::Lock);
            let mut unseen = self.nodes.get(leaf).map_or(0, |node| node.holdouts);
            let mut quiescent = 0;
            while unseen != 0 {
                let bit = unseen & unseen.wrapping_neg();
                unseen &= !bit;
                let holdout = self.nodes.first_cpu(leaf) + bit.trailing_zeros() as usize;
                at.host.touch(Line::Cpu(holdout), Access::Read);
                let Some(words) = at.words.of(holdout) else { continue };
                let knows_moves = !is_first || at.plan.steps.omits(SNAPSHOT);
                if words.look(knows_moves, is_first) {
                    quiescent |= bit;
                } else if !is_first {
                    self.urge(at, holdout);
                }
            }
            is_over |= quiescent != 0 && self.clear(at, leaf, quiescent);
        }
        if is_over {
            self.end(at);
        }
    }

    /// Does about a holdout what the variant says.
    fn urge(&mut self, at: &mut At<'_, impl Site>, holdout: usize) {
        let is_tickless = at.words.is_tickless(holdout);
        let is_unaware = self.noticed.get(holdout).is_some_and(|noticed| *noticed != self.sequence);
        match at.plan.options.variant {
            Variant::V3_15 | Variant::V0 { .. } => self.beat(holdout, at.host),
            Variant::V1 { flag_after_jiffies } => {
                if self.age_jiffies >= flag_after_jiffies && !at.plan.steps.omits(FLAG) {
                    ask_for_help(at, holdout, true);
                }
                self.beat(holdout, at.host);
            }
            Variant::V2 { sched_qs_jiffies } => {
                let limit = sched_qs_jiffies.min(at.plan.options.stall_jiffies / 2);
                let is_old = self.age_jiffies >= limit && !at.plan.steps.omits(INTERRUPT);
                if is_old && ask_for_help(at, holdout, true) {
                    at.host.resched(holdout);
                } else {
                    self.beat(holdout, at.host);
                }
            }
            Variant::Today => return self.urge_today(at, holdout, is_tickless && is_unaware),
        }
        // The kernel has such a CPU turn its tick on, which raises the softirq.
        if is_tickless && is_unaware {
            at.host.raise(holdout);
        }
    }

    /// Interrupts a holdout of a very old grace period, now and then; if there are many, the first
    /// until it is none any more.
    fn beat(&mut self, holdout: usize, host: &mut (impl Host + ?Sized)) {
        if self.beat_in_jiffies == 0 {
            self.beat_in_jiffies = BEAT_JIFFIES;
            host.resched(holdout);
        }
    }

    /// Today's ways with a holdout.
    fn urge_today(&mut self, at: &mut At<'_, impl Site>, holdout: usize, needs_tick: bool) {
        let limit = at.plan.options.sched_qs_jiffies;
        let age = self.age_jiffies;
        let is_stalling = age > at.plan.options.stall_jiffies / 2;
        let is_overloaded = self.overloaded != 0;
        let is_tickless = at.words.is_tickless(holdout);
        if age > limit.saturating_mul(2) || is_stalling || is_overloaded {
            ask_for_help(at, holdout, true);
        } else if age > limit {
            ask_for_help(at, holdout, false);
        }
        let Some(since) = self.since_kick_jiffies.get_mut(holdout) else { return };
        let since_kick = *since;
        let is_kicked = is_tickless && (since_kick > limit.saturating_mul(3) || is_overloaded)
            || is_stalling && since_kick > limit;
        if is_kicked {
            *since = 0;
            if is_tickless {
                ask_for_help(at, holdout, false);
            }
            at.host.resched(holdout);
            if needs_tick {
                at.host.raise(holdout);
            }
        }
    }
}

/// Sets the flags of `holdout`. Returns whether it had none.
fn ask_for_help(at: &mut At<'_, impl Site>, holdout: usize, is_heavy: bool) -> bool {
    let Some(words) = at.words.of(holdout) else { return false };
    let (is_news, is_first) = words.ask(is_heavy);
    if is_news {
        at.host.touch(Line::Mailbox(holdout), Access::Write);
    }
    is_first
}
