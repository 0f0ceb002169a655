//! Tree RCU: quiescent states go up a combining tree; a scan now and then helps those that are
//! late.
//!
//! A CPU notes a quiescent state on its own line. Its next tick finds that there is something to
//! report and raises the softirq, which clears the CPU's bit in a leaf; the CPU that clears the
//! last bit of a node continues with the parent, and the grace period ends when the root is empty.
//! That wakes no CPU: each finds at its next tick that its leaf tells another grace period.
//! Meanwhile, every few jiffies, a scan looks for CPUs in extended quiescent states, which report
//! nothing, and does about the other holdouts what the [`Variant`] says.
//!
//! After `kernel/rcu/tree.c`; which facts of which year is said in [`options`]. What is different
//! here:
//! - The kernel's grace-period thread begins and ends grace periods and scans. Its waiting is
//!   [`Engine::timer`]; what it does on being woken is done at once by the CPU that would wake it.
//! - Time is what the timer was asked to wait, while a grace period is in progress. The ages
//!   derived from it saturate, so that an engine without callbacks has few states.
//! - The counter of extended quiescent states that a scan compares with its snapshot is one bit,
//!   "has moved since the snapshot".
//! - A kernel keeps the tick of an idle CPU that has callbacks, and gives those of a tickless
//!   one to a thread. Here both are raised when a grace period ends. Where it forces the tick of a
//!   tickless CPU on, the softirq that this tick would raise is raised.
//! - The kernel stops a long pass of callbacks after 3 ms. A driver that has time does so within
//!   [`Host::invoke`]: other work may come in between.
//! - Nothing is expedited: [`Callback::urgency`] means nothing to Tree RCU's callbacks, nor do
//!   their bytes.

mod force;
mod invoke;
mod nodes;
pub mod options;

use grace::steps::{Intact, Steps};
use grace::{Cookie, Segments, Sequence};

use super::mask::Mask;
use super::{Access, Callback, Engine, Host, Line, Mode};
use nodes::Nodes;
pub use options::{Options, Variant};

/// A callback queued in mid grace period asks for the next one, not for the end of this one.
const FULL: &str = "full-grace-period";
/// A quiescent state of before the grace period does not count.
const FORGET: &str = "forget-earlier-quiescent-states";
/// A node reports to its parent when all its children have.
const SIBLINGS: &str = "wait-for-siblings";
/// Callbacks run when *their* grace period has ended.
const OWN: &str = "wait-for-own-grace-period";
/// The first scan takes a snapshot, which later ones compare with.
const SNAPSHOT: &str = "take-snapshot";
/// A CPU that leaves an extended quiescent state is in it no longer.
const LEAVE: &str = "leave-extended-quiescent-state";
/// A request in mid grace period is remembered until its end.
const REMEMBER: &str = "remember-requests";
/// The timer is asked for again after a scan that found holdouts.
const SCAN_AGAIN: &str = "scan-again";
/// CPUs without ticks are notified of the end of a grace period.
const WAKE: &str = "wake-those-without-ticks";
/// The tick raises the softirq when there is something to report.
const REPORT: &str = "report-at-tick";

/// What [`Tree`] must not leave out. Without one of the first six callbacks run too early; without
/// one of the others some may never run.
pub const STEPS: &[&str] =
    &[FULL, FORGET, SIBLINGS, OWN, SNAPSHOT, LEAVE, SCAN_AGAIN, WAKE, REPORT];

/// How many of [`STEPS`], from the first, are there for safety; the others are for progress.
pub const STEPS_OF_SAFETY: usize = 6;

/// What it may leave out, and be slower: a CPU that finds its grace period over and its callbacks
/// still waiting asks again.
pub const STEPS_FOR_SPEED: &[&str] = &[REMEMBER];

/// What [`Variant::V1`] and [`Variant::V2`] do about the holdouts of an old grace period: flag them
/// and interrupt them. Left out, they do what 3.15 does.
pub const FLAG: &str = "flag-holdouts";
/// See [`FLAG`].
pub const INTERRUPT: &str = "interrupt-holdouts";

/// What a CPU keeps, on its own line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Cpu {
    /// The grace period that it has noticed.
    sequence: Sequence,
    /// That grace period waits for it, as far as it knows.
    is_needed: bool,
    /// It has passed a quiescent state since it noticed.
    has_passed: bool,
    /// It is in an extended quiescent state.
    is_extended: bool,
    /// It has entered or left one since the last snapshot.
    has_moved: bool,
    /// Somebody wants it to help with its next `cond_resched()` or context switch.
    is_urgent: bool,
    /// And to pass a momentary extended quiescent state then, for the scan to see.
    is_heavy: bool,
    /// Its callbacks are so many that it asks for everybody's help.
    is_overloaded: bool,
    /// It runs all callbacks that are ready in one pass.
    is_limit_lifted: bool,
    /// Calls of `cond_resched()` since one counted ([`Variant::V0`]).
    cond_rescheds: u32,
    /// Time since it was interrupted last ([`Variant::Today`]).
    since_kick_jiffies: u32,
    /// How many callbacks it had when they were last found to be too many.
    checked_at: u64,
    callbacks: Segments,
}

/// Tree RCU.
///
/// Beginning and ending a grace period, and a scan, take time linear in the number of nodes (and,
/// for a scan, of holdouts); they happen in whatever call leads to them. All else is constant, or
/// linear in the height of the tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tree<S: Steps = Intact> {
    options: Options,
    steps: S,
    sequence: Sequence,
    nodes: Nodes,
    cpus: Vec<Cpu>,
    /// Those that have no tick while a single program runs, in the kernel or not (`nohz_full`).
    tickless: Mask,
    /// Those that have callbacks, and may have no tick that finds them ready.
    sleepers: Mask,
    /// How many CPUs have too many callbacks.
    overloaded: usize,
    /// The age of the grace period in progress, as far as the timer has shown it.
    age_jiffies: u32,
    /// What the timer was last asked to wait.
    asked_jiffies: u32,
    /// Until a holdout of a very old grace period is interrupted next.
    beat_in_jiffies: u32,
    /// The grace period in progress has been scanned.
    has_snapshot: bool,
}

impl Tree {
    /// Tree RCU over `cpus` CPUs, each with a tick.
    pub fn new(options: Options, cpus: usize) -> Self {
        Self::starting_at(Sequence::after(0), options, cpus, Intact)
    }
}

impl<S: Steps> Tree<S> {
    /// The same after some grace periods, possibly without one of its [`STEPS`]. Tests begin right
    /// before the counter wraps.
    pub fn starting_at(sequence: Sequence, options: Options, cpus: usize, steps: S) -> Self {
        let sequence = sequence.end();
        let cpu = Cpu {
            sequence,
            is_needed: false,
            has_passed: false,
            is_extended: false,
            has_moved: false,
            is_urgent: false,
            is_heavy: false,
            is_overloaded: false,
            is_limit_lifted: false,
            cond_rescheds: 0,
            since_kick_jiffies: u32::MAX,
            checked_at: 0,
            callbacks: Segments::new(sequence),
        };
        Self {
            steps,
            sequence,
            nodes: Nodes::new(cpus, options.leaf_fanout, options.fanout, sequence),
            cpus: vec![cpu; cpus],
            tickless: Mask::new(cpus),
            sleepers: Mask::new(cpus),
            overloaded: 0,
            age_jiffies: 0,
            asked_jiffies: 0,
            beat_in_jiffies: 0,
            has_snapshot: false,
            options,
        }
    }

    /// The same, where these CPUs have no tick while a single program runs (`nohz_full`). Those out
    /// of range are ignored. Meant for an engine that has not been notified of anything yet.
    #[must_use]
    pub fn with_tickless(mut self, cpus: impl IntoIterator<Item = usize>) -> Self {
        for cpu in cpus {
            self.tickless.insert(cpu);
        }
        self
    }

    /// Which grace period is in progress, or was the last.
    pub const fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// Whether its softirq would find anything to do, as the tick asks.
    fn is_pending(&self, cpu: usize) -> bool {
        let Some(own) = self.cpus.get(cpu) else { return false };
        own.is_needed && own.has_passed && !self.steps.omits(REPORT)
            || own.callbacks.ready() != 0
            || !self.sequence.in_progress() && own.callbacks.has_untagged()
            || own.sequence != self.leaf_sequence(cpu)
    }

    /// The grace period that the leaf of `cpu` tells.
    fn leaf_sequence(&self, cpu: usize) -> Sequence {
        self.nodes.get(self.nodes.leaf_of(cpu).0).map_or(self.sequence, |leaf| leaf.sequence)
    }

    /// A quiescent state, to be reported by and by.
    fn note_quiescent(&mut self, cpu: usize, host: &mut dyn Host) {
        let Some(own) = self.cpus.get_mut(cpu) else { return };
        if own.has_passed {
            return;
        }
        own.has_passed = true;
        host.touch(Line::Cpu(cpu), Access::Write);
        if own.is_needed && self.tickless.contains(cpu) {
            host.raise(cpu);
        }
    }

    /// Looks whether a grace period has begun or ended; if so, does what that asks for.
    fn notice(&mut self, cpu: usize, host: &mut dyn Host) {
        let leaf = Line::Node(self.nodes.leaf_of(cpu).0);
        host.touch(leaf, Access::Read);
        if self.cpus.get(cpu).is_some_and(|own| own.sequence != self.leaf_sequence(cpu)) {
            host.touch(leaf, Access::Lock);
            if self.notice_locked(cpu, host) {
                self.begin(cpu, host);
            }
        }
    }

    /// The same, by a CPU that has the leaf's lock. Returns whether a grace period must begin.
    fn notice_locked(&mut self, cpu: usize, host: &mut dyn Host) -> bool {
        let sequence = self.leaf_sequence(cpu);
        let is_holdout = self.nodes.is_holdout(cpu);
        let Some(own) = self.cpus.get_mut(cpu) else { return false };
        if own.sequence == sequence {
            return false;
        }
        own.sequence = sequence;
        match self.steps.omits(OWN) {
            false => own.callbacks.advance(sequence),
            true => own.callbacks.advance_all(),
        }
        own.is_needed = is_holdout;
        if sequence.in_progress() && !self.steps.omits(FORGET) {
            own.has_passed = false;
        }
        self.accelerate(cpu, host)
    }

    /// Tags callbacks with the next full grace period and asks for it. Returns whether one must
    /// begin. The caller has the leaf's lock.
    fn accelerate(&mut self, cpu: usize, host: &mut dyn Host) -> bool {
        let Some(own) = self.cpus.get_mut(cpu) else { return false };
        if own.callbacks.len() == own.callbacks.ready() {
            return false;
        }
        host.touch(Line::Global(0), Access::Read);
        let cookie = match self.steps.omits(FULL) {
            false => self.sequence.snapshot(),
            true => Cookie::done_at(self.sequence.begin().end()),
        };
        let leaf = self.nodes.leaf_of(cpu).0;
        own.callbacks.accelerate(cookie) && self.request(leaf, cookie, host)
    }

    /// Asks for the grace period of `cookie`, from a leaf whose lock the caller has up to where it
    /// has been asked for already, or one is in progress: then it is found at that one's end.
    fn request(&mut self, leaf: usize, cookie: Cookie, host: &mut dyn Host) -> bool {
        let mut at = leaf;
        while let Some(node) = self.nodes.get_mut(at) {
            if at != leaf {
                host.touch(Line::Node(at), Access::Lock);
            }
            if node.needed.is_at_or_after(cookie) {
                return false;
            }
            if node.sequence.in_progress() {
                if !self.steps.omits(REMEMBER) {
                    node.needed = cookie;
                }
                return false;
            }
            node.needed = cookie;
            match node.parent {
                Some((parent, _)) => at = parent,
                None => break,
            }
        }
        !self.sequence.in_progress()
    }

    /// Reports a quiescent state, if one has been passed and is waited for.
    fn report(&mut self, cpu: usize, host: &mut dyn Host) {
        let Some(own) = self.cpus.get_mut(cpu) else { return };
        if !own.is_needed || !own.has_passed {
            return;
        }
        own.is_needed = false;
        let (leaf, bit) = self.nodes.leaf_of(cpu);
        host.touch(Line::Node(leaf), Access::Lock);
        if self.clear(leaf, bit, host) {
            self.end(cpu, host);
        }
    }

    /// Those `bits` of `leaf`, whose lock the caller has, are no holdouts any more. Returns
    /// whether none is.
    fn clear(&mut self, leaf: usize, bits: u64, host: &mut dyn Host) -> bool {
        let (mut at, mut bits) = (leaf, bits);
        while let Some(node) = self.nodes.get_mut(at) {
            if node.holdouts & bits == 0 {
                // A scan was here before.
                return false;
            }
            node.holdouts &= !bits;
            if node.holdouts != 0 && !self.steps.omits(SIBLINGS) {
                return false;
            }
            match node.parent {
                None => return true,
                Some((parent, bit)) => (at, bits) = (parent, bit),
            }
            host.touch(Line::Node(at), Access::Lock);
        }
        false
    }

    /// A grace period begins, unless one is in progress.
    fn begin(&mut self, cpu: usize, host: &mut dyn Host) {
        if self.sequence.in_progress() {
            return;
        }
        self.sequence = self.sequence.begin();
        self.age_jiffies = 0;
        self.beat_in_jiffies = self.options.stall_jiffies / 2;
        self.has_snapshot = false;
        host.touch(Line::Global(0), Access::Write);
        host.began(0);
        for index in self.nodes.all() {
            host.touch(Line::Node(index), Access::Lock);
            self.nodes.set_sequence(index, self.sequence);
        }
        // It cannot ask for another one to begin: one is in progress.
        self.notice_locked(cpu, host);
        self.ask_timer(self.options.first_fqs_jiffies, host);
    }

    /// The grace period in progress has ended; the next begins, if it was asked for.
    fn end(&mut self, cpu: usize, host: &mut dyn Host) {
        self.sequence = self.sequence.end();
        // Without meaning until the next begins: idle engines are equal.
        (self.age_jiffies, self.beat_in_jiffies, self.has_snapshot) = (0, 0, false);
        host.touch(Line::Global(0), Access::Write);
        host.ended(0);
        let mut is_wanted = false;
        for index in self.nodes.all() {
            host.touch(Line::Node(index), Access::Lock);
            self.nodes.set_sequence(index, self.sequence);
            let needed = self.nodes.get(index).map(|node| node.needed);
            is_wanted |= needed.is_some_and(|needed| !self.sequence.is_done(needed));
        }
        if !self.steps.omits(WAKE) {
            for sleeper in self.sleepers.iter() {
                host.raise(sleeper);
            }
        }
        if is_wanted || self.notice_locked(cpu, host) {
            self.begin(cpu, host);
        } else {
            host.timer_off();
        }
    }
}

impl<S: Steps> Engine for Tree<S> {
    fn queue(&mut self, cpu: usize, _: Callback, host: &mut dyn Host) {
        let Some(own) = self.cpus.get_mut(cpu) else { return };
        host.touch(Line::Cpu(cpu), Access::Write);
        let is_first = !own.callbacks.has_untagged();
        own.callbacks.push(1);
        let is_excess = own.callbacks.len() > own.checked_at.saturating_add(self.options.qhimark);
        if own.is_extended || self.tickless.contains(cpu) {
            self.sleepers.insert(cpu);
            if is_first {
                host.raise(cpu);
            }
        }
        self.note_overload(cpu, host);
        if is_excess {
            self.hurry(cpu, host);
        }
    }

    fn context_switch(&mut self, cpu: usize, host: &mut dyn Host) {
        self.note_quiescent(cpu, host);
        self.help(cpu, host);
    }

    fn tick(&mut self, cpu: usize, mode: Mode, host: &mut dyn Host) {
        if cpu >= self.cpus.len() {
            return;
        }
        match mode {
            Mode::User | Mode::Idle => self.note_quiescent(cpu, host),
            Mode::Kernel => self.reschedule_if_urgent(cpu, host),
        }
        host.touch(Line::Node(self.nodes.leaf_of(cpu).0), Access::Read);
        if self.is_pending(cpu) {
            host.raise(cpu);
        }
    }

    fn softirq(&mut self, cpu: usize, host: &mut dyn Host) {
        if cpu >= self.cpus.len() {
            return;
        }
        self.notice(cpu, host);
        self.report(cpu, host);
        let has_untagged = self.cpus.get(cpu).is_some_and(|own| own.callbacks.has_untagged());
        if has_untagged && !self.sequence.in_progress() {
            host.touch(Line::Node(self.nodes.leaf_of(cpu).0), Access::Lock);
            if self.accelerate(cpu, host) {
                self.begin(cpu, host);
            }
        }
        self.invoke(cpu, host);
    }

    fn timer(&mut self, cpu: usize, host: &mut dyn Host) {
        let sequence = self.sequence;
        if !sequence.in_progress() {
            return;
        }
        self.pass_time();
        self.scan(cpu, host);
        if self.sequence == sequence && !self.steps.omits(SCAN_AGAIN) {
            self.ask_timer(self.options.next_fqs_jiffies, host);
        }
    }

    fn cond_resched(&mut self, cpu: usize, host: &mut dyn Host) {
        match self.options.variant {
            Variant::V3_15 | Variant::V2 { .. } => {}
            Variant::V0 { period } => self.count_cond_resched(cpu, period, host),
            Variant::V1 { .. } | Variant::Today => {
                if self.help(cpu, host) {
                    self.note_quiescent(cpu, host);
                }
            }
        }
    }

    fn enter_eqs(&mut self, cpu: usize, host: &mut dyn Host) {
        let Some(own) = self.cpus.get_mut(cpu) else { return };
        (own.is_extended, own.has_moved) = (true, true);
        host.touch(Line::Cpu(cpu), Access::Atomic);
        if !own.callbacks.is_empty() {
            self.sleepers.insert(cpu);
            if self.is_pending(cpu) {
                host.raise(cpu);
            }
        }
    }

    fn exit_eqs(&mut self, cpu: usize, host: &mut dyn Host) {
        let Some(own) = self.cpus.get_mut(cpu) else { return };
        (own.is_extended, own.has_moved) = (self.steps.omits(LEAVE), true);
        host.touch(Line::Cpu(cpu), Access::Atomic);
        if !self.tickless.contains(cpu) {
            self.sleepers.remove(cpu);
        }
    }

    fn is_holdout(&self, of: usize, cpu: usize) -> bool {
        of == 0 && cpu < self.cpus.len() && self.nodes.is_holdout(cpu)
    }

    fn waiting(&self, cpu: usize) -> u64 {
        self.cpus.get(cpu).map_or(0, |own| own.callbacks.len())
    }
}
