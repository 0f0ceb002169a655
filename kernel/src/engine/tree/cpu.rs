//! A CPU's own part of Tree RCU, and what it does without anybody's lock.
//!
//! [`Own`] is touched by its CPU alone, with interrupts off. [`Words`] are the few words of a CPU
//! that others look at or write: atomic, and on a line of their own where a driver cares.
//!
//! A quiescent state is a plain store into [`Own`]: the CPU has noticed the grace period under the
//! machine's lock before, and reports under the lock after, and the lock orders its sections with
//! the updates before the grace period and the callbacks after. An *extended* quiescent state has
//! no lock around it. There the CPU's exchange of [`Words`] meets the scan: see [`Words::enter`].

use core::fmt::Debug;
use core::hash::{Hash, Hasher};

use grace::steps::Steps;
use grace::{Cookie, Segments, Sequence};

use super::{LEAVE, Plan, REPORT, Variant};
use crate::engine::{Access, Host, Line};
use crate::sync::{AtomicU32, Ordering, fence};

/// What a CPU keeps to itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Own {
    /// The grace period that it has noticed.
    pub(crate) sequence: Sequence,
    /// That grace period waits for it, as far as it knows.
    pub(crate) is_needed: bool,
    /// It has passed a quiescent state since it noticed.
    pub(crate) has_passed: bool,
    /// Its callbacks are so many that it asks for everybody's help.
    pub(super) is_overloaded: bool,
    /// It runs all callbacks that are ready in one pass.
    pub(crate) is_limit_lifted: bool,
    /// Calls of `cond_resched()` since one counted ([`Variant::V0`]).
    cond_rescheds: u32,
    /// How many callbacks it had when they were last found to be too many.
    pub(crate) checked_at: u64,
    pub(crate) callbacks: Segments,
    /// The last grace period that a caller on this CPU asked for, without a callback.
    pub(crate) wanted: Cookie,
}

impl Own {
    pub(crate) const fn new(sequence: Sequence) -> Self {
        Self {
            sequence,
            is_needed: false,
            has_passed: false,
            is_overloaded: false,
            is_limit_lifted: false,
            cond_rescheds: 0,
            checked_at: 0,
            callbacks: Segments::new(sequence),
            wanted: Cookie::done_at(sequence),
        }
    }

    /// Whether a tick that finds this grace period has nothing to do for the CPU.
    #[inline]
    pub(crate) fn is_at_rest(&self, told: Sequence) -> bool {
        self.sequence == told && !(self.is_needed && self.has_passed) && !self.has_demand(told)
    }

    /// Whether the CPU must see to it that a grace period comes to its end, or has callbacks.
    #[inline]
    pub(crate) fn has_demand(&self, told: Sequence) -> bool {
        !self.callbacks.is_empty() || !told.is_done(self.wanted)
    }
}

/// The CPU is in an extended quiescent state. (The sign: to test it takes one instruction.)
const EXTENDED: u32 = 1 << 31;
/// It has entered or left one since the last snapshot.
const MOVED: u32 = 2;

/// Somebody wants the CPU to help with its next `cond_resched()` or context switch. (The sign.)
const URGENT: u32 = 1 << 31;
/// And to pass a momentary extended quiescent state then, for the scan to see. By itself it asks
/// for nothing: the tick may have taken note ([`Variant::Today`]).
const HEAVY: u32 = 2;

/// What others see of a CPU, or ask of it. Compared, hashed and cloned by what is in it, since an
/// engine's state is a value to those who explore it.
#[derive(Debug)]
#[allow(unreachable_pub, reason = "Rust 1.88 does not see that `Site` has it")]
pub struct Words {
    state: AtomicU32,
    help: AtomicU32,
}

impl Words {
    crate::sync::constant! {
        /// The words of a CPU that is awake, or is in an extended quiescent state.
        pub(crate) fn new(is_extended: bool) -> Self {
            let state = if is_extended { EXTENDED } else { 0 };
            Self { state: AtomicU32::new(state), help: AtomicU32::new(0) }
        }
    }

    fn values(&self) -> [u32; 2] {
        // Relaxed: whoever compares or clones an engine has it to itself.
        [&self.state, &self.help].map(|word| word.load(Ordering::Relaxed))
    }

    /// The CPU enters an extended quiescent state.
    ///
    /// Fence and Release [KN-2]: the sections before have ended. They pair with the Acquire of
    /// [`look`](Self::look): whoever sees the state frees what those sections read, afterwards.
    #[inline]
    pub(crate) fn enter(&self) {
        fence(Ordering::SeqCst);
        self.state.swap(EXTENDED | MOVED, Ordering::AcqRel);
    }

    /// And leaves it.
    ///
    /// The fence pairs with the one at a grace period's beginning [KN-1]. A scan that still sees
    /// the CPU inside comes before this exchange in the word's order; so what was updated before
    /// the grace period is seen by all sections after the fence here. Otherwise the scan sees that
    /// the CPU is out, and waits for it.
    #[inline]
    pub(crate) fn leave(&self) {
        self.state.swap(MOVED, Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }

    /// In and out again at once, for a scan to see.
    fn pass(&self) {
        fence(Ordering::SeqCst);
        self.state.fetch_or(MOVED, Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }

    /// Whether the CPU is in an extended quiescent state.
    #[inline]
    pub(crate) fn is_extended(&self) -> bool {
        // Relaxed: for the CPU itself, which wrote it, and for observers.
        self.state.load(Ordering::Relaxed) & EXTENDED != 0
    }

    /// Whether somebody wants the CPU to help.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        // Relaxed: as in `ask`.
        self.help.load(Ordering::Relaxed) & URGENT != 0
    }

    /// Whether a scan finds the CPU quiescent: it is in an extended quiescent state now; or, if
    /// that is asked, has been in one since the last snapshot. The first look takes the snapshot.
    pub(crate) fn look(&self, since_snapshot: bool, takes_snapshot: bool) -> bool {
        let is_quiescent = |state| state & EXTENDED != 0 || since_snapshot && state & MOVED != 0;
        // Acquire: pairs with the Release of `enter`, `leave` and `pass` [KN-2]; the sections
        // before have ended, and a callback that frees what they read comes after.
        is_quiescent(self.state.load(Ordering::Acquire))
            // AcqRel: the CPU may have entered since; one exchange comes first, and it is seen.
            || takes_snapshot && self.state.fetch_and(!MOVED, Ordering::AcqRel) & EXTENDED != 0
    }

    /// What was asked of the CPU is asked no more: it is dead, or helps in no other way.
    pub(crate) fn forget_asked(&self) {
        self.help.store(0, Ordering::Relaxed);
    }

    /// Asks the CPU to help. Returns whether that was news, and whether it was not asked before.
    pub(crate) fn ask(&self, is_heavy: bool) -> (bool, bool) {
        // Relaxed, here and in `help`: a flag; an answer to it is ordered by `pass`, or by the
        // lock. One that is missed is set again by a later scan.
        let asked = self.help.load(Ordering::Relaxed);
        let is_first = asked & URGENT == 0;
        let is_news = is_first || is_heavy && asked & HEAVY == 0;
        if is_news {
            self.help.fetch_or(URGENT | if is_heavy { HEAVY } else { 0 }, Ordering::Relaxed);
        }
        (is_news, is_first)
    }
}

impl Clone for Words {
    fn clone(&self) -> Self {
        let [state, help] = self.values().map(AtomicU32::new);
        Self { state, help }
    }
}

impl PartialEq for Words {
    fn eq(&self, other: &Self) -> bool {
        self.values() == other.values()
    }
}

impl Eq for Words {}

impl Hash for Words {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.values().hash(state);
    }
}

/// Everybody's words.
#[allow(unreachable_pub, reason = "Rust 1.88 does not see that `Site` has it")]
pub trait AllWords {
    /// Those of `cpu`; `None` out of range.
    fn of(&self, cpu: usize) -> Option<&Words>;

    /// Whether it has no tick while a single program runs, in the kernel or not (`nohz_full`).
    fn is_tickless(&self, cpu: usize) -> bool {
        let _ = cpu;
        false
    }
}

/// Where Tree RCU runs.
pub trait Site {
    /// Those of all its CPUs.
    type Words: AllWords + ?Sized;
    /// The driver.
    type Host: Host + ?Sized;
    /// Which steps are left out.
    type Steps: Steps;
}

/// A CPU that calls, with interrupts off: its own part, everybody's words, and the driver.
pub struct At<'a, S: Site> {
    pub(crate) plan: &'a Plan<S::Steps>,
    pub(crate) cpu: usize,
    pub(crate) own: &'a mut Own,
    pub(crate) words: &'a S::Words,
    pub(crate) host: &'a mut S::Host,
}

impl<S: Site> At<'_, S> {
    /// Whether the softirq would find anything to do, as the tick asks, where the machine tells
    /// this grace period.
    pub(crate) fn is_pending(&self, told: Sequence) -> bool {
        self.own.callbacks.ready() != 0 || self.has_business(told)
    }

    /// The same, but for callbacks that are ready.
    pub(crate) fn has_business(&self, told: Sequence) -> bool {
        let own = &*self.own;
        own.is_needed && own.has_passed && !self.plan.steps.omits(REPORT)
            || !told.in_progress() && own.callbacks.has_untagged()
            || own.sequence != told
    }

    /// A quiescent state, to be reported by and by.
    pub(crate) fn note_quiescent(&mut self) {
        if self.own.has_passed {
            return;
        }
        self.own.has_passed = true;
        self.host.touch(Line::Cpu(self.cpu), Access::Write);
        if self.own.is_needed && self.words.is_tickless(self.cpu) {
            self.host.raise(self.cpu);
        }
    }

    /// The CPU passes through its scheduler.
    pub(crate) fn context_switch(&mut self) {
        self.note_quiescent();
        self.help();
    }

    /// Kernel code that runs for long offers to be rescheduled.
    pub(crate) fn cond_resched(&mut self) {
        match self.plan.options.variant {
            Variant::V3_15 | Variant::V2 { .. } => {}
            Variant::V0 { period } => self.count_cond_resched(period),
            Variant::V1 { .. } | Variant::Today => {
                if self.help() {
                    self.note_quiescent();
                }
            }
        }
    }

    /// In no section, looks whether its help is wanted. Returns whether it was.
    fn help(&mut self) -> bool {
        let Some(words) = self.words.of(self.cpu) else { return false };
        if matches!(self.plan.options.variant, Variant::V3_15 | Variant::V0 { .. }) {
            // Only an expedited wait asks; its interrupt has done what it is for.
            if words.is_asked() {
                words.forget_asked();
            }
            return false;
        }
        self.host.touch(Line::Mailbox(self.cpu), Access::Read);
        if !words.is_asked() {
            return false;
        }
        self.host.touch(Line::Mailbox(self.cpu), Access::Write);
        if words.help.swap(0, Ordering::Relaxed) & HEAVY != 0 {
            words.pass();
            self.host.touch(Line::Cpu(self.cpu), Access::Atomic);
        }
        true
    }

    /// One more `cond_resched()`; the last of every `period` is a quiescent state. Between
    /// disabling preemption and enabling it, that resets the count and flags the CPU as passed: two
    /// writes, whether or not anybody waits for them.
    fn count_cond_resched(&mut self, period: u32) {
        self.own.cond_rescheds = self.own.cond_rescheds.saturating_add(1);
        self.host.touch(Line::Cpu(self.cpu), Access::Write);
        if self.own.cond_rescheds >= period {
            self.own.cond_rescheds = 0;
            (0..2).for_each(|_| self.host.touch(Line::Cpu(self.cpu), Access::Write));
            self.note_quiescent();
        }
    }

    /// The tick finds kernel code on a CPU whose help is wanted: have it go through the
    /// scheduler.
    pub(crate) fn reschedule_if_urgent(&mut self) {
        if self.plan.options.variant != Variant::Today {
            return;
        }
        let Some(words) = self.words.of(self.cpu) else { return };
        self.host.touch(Line::Mailbox(self.cpu), Access::Read);
        if words.is_asked() {
            // Whether it is to be heavy stays written: the context switch alone suffices here.
            words.help.fetch_and(!URGENT, Ordering::Relaxed);
            self.host.resched(self.cpu);
        }
    }

    /// The CPU enters an extended quiescent state, or leaves it.
    pub(super) fn move_eqs(&mut self, enters: bool) {
        let Some(words) = self.words.of(self.cpu) else { return };
        if enters || self.plan.steps.omits(LEAVE) {
            words.enter();
        } else {
            words.leave();
        }
        self.host.touch(Line::Cpu(self.cpu), Access::Atomic);
    }
}

impl<S: Site> Debug for At<'_, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("At").field("cpu", &self.cpu).field("own", &self.own).finish_non_exhaustive()
    }
}
