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
//!
//! The state is in three parts, so that CPUs can run it at the same time: what a CPU keeps to
//! itself (`cpu::Own`), the words of it that others see (`cpu::Words`), and what the machine's
//! lock is for (`Shared`). A `Plan` never changes. [`Tree`] is all of them in one value, which
//! a driver steps through; [`Kernel`](crate::Kernel) has them where they belong.

pub(crate) mod cpu;
mod force;
mod invoke;
mod nodes;
pub mod options;
mod shared;

use core::marker::PhantomData;

use grace::Sequence;
use grace::steps::{Intact, Steps};

use super::mask::Mask;
use super::store::Store;
use super::{Access, Callback, Engine, Host, Line, Mode};
use cpu::{AllWords, At, Own, Site, Words};
pub use options::{Options, Variant};
pub use shared::Shared;

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

/// The steps that [`Tree`] must not leave out. Without one of the first six, callbacks run too
/// early; without one of the others, some may never run.
pub const STEPS: &[&str] =
    &[FULL, FORGET, SIBLINGS, OWN, SNAPSHOT, LEAVE, SCAN_AGAIN, WAKE, REPORT];

/// The number of [`STEPS`], from the first, that ensure safety; the others ensure progress.
pub const STEPS_OF_SAFETY: usize = 6;

/// The steps that it may leave out at the cost of speed: a CPU that finds its grace period ended
/// and its callbacks still waiting asks again.
pub const STEPS_FOR_SPEED: &[&str] = &[REMEMBER];

/// What [`Variant::V1`] and [`Variant::V2`] do about the holdouts of an old grace period: flag them
/// and interrupt them. Without these steps they behave as 3.15 does.
pub const FLAG: &str = "flag-holdouts";
/// See [`FLAG`].
pub const INTERRUPT: &str = "interrupt-holdouts";

/// What never changes, but for who is tickless.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Plan<S> {
    pub(crate) options: Options,
    pub(crate) steps: S,
}

/// The words of all CPUs, and those that have no tick while a single program runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Cpus<A: Store> {
    words: A::Of<Words>,
    tickless: Mask<A>,
}

impl<A: Store> AllWords for Cpus<A> {
    fn of(&self, cpu: usize) -> Option<&Words> {
        self.words.get(cpu)
    }

    fn is_tickless(&self, cpu: usize) -> bool {
        self.tickless.contains(cpu)
    }
}

/// Tree RCU.
///
/// Beginning and ending a grace period, and a scan, take time linear in the number of nodes (and,
/// for a scan, of holdouts), in whichever call triggers them. Everything else takes constant time,
/// or time linear in the height of the tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tree<A: Store, S: Steps = Intact> {
    plan: Plan<S>,
    shared: Shared<A>,
    own: A::Of<Own>,
    cpus: Cpus<A>,
}

impl<A: Store> Tree<A> {
    /// Tree RCU over the CPUs of `store`, each with a tick.
    pub fn new(options: Options, store: A) -> Self {
        Self::starting_at(Sequence::after(0), options, store, Intact)
    }
}

impl<A: Store, S: Steps> Tree<A, S> {
    /// Like [`new`](Self::new), after some grace periods, possibly without one of its [`STEPS`].
    /// Tests begin right before the counter wraps.
    pub fn starting_at(sequence: Sequence, options: Options, store: A, steps: S) -> Self {
        let sequence = sequence.end();
        let cpus = store.cpus();
        Self {
            plan: Plan { options, steps },
            shared: Shared::new(store, &options, sequence),
            own: store.of(cpus, Own::new(sequence)),
            cpus: Cpus { words: store.of(cpus, Words::new(false)), tickless: Mask::new(store) },
        }
    }

    /// Marks CPUs that have no tick while a single program runs (`nohz_full`). Those out of range
    /// are ignored. For an engine that has not been notified of anything yet.
    #[must_use]
    pub fn with_tickless(mut self, cpus: impl IntoIterator<Item = usize>) -> Self {
        for cpu in cpus {
            self.cpus.tickless.insert(cpu);
        }
        self
    }

    /// The grace period in progress, or the last one.
    pub const fn sequence(&self) -> Sequence {
        self.shared.sequence
    }

    /// Calls `what` for a CPU, if it is in range, with the lock, and all that it may touch.
    fn on<'h>(
        &mut self,
        cpu: usize,
        host: &'h mut (dyn Host + 'h),
        what: impl FnOnce(&mut Shared<A>, &mut At<'_, Stepped<'h, A, S>>),
    ) {
        if let Some(own) = self.own.get_mut(cpu) {
            let mut at = At { plan: &self.plan, cpu, own, words: &self.cpus, host };
            what(&mut self.shared, &mut at);
        }
    }
}

/// The site of an engine of which a driver has all parts.
struct Stepped<'h, A, S>(PhantomData<(&'h (), A, S)>);

impl<'h, A: Store, S: Steps> Site for Stepped<'h, A, S> {
    type Words = Cpus<A>;
    type Host = dyn Host + 'h;
    type Steps = S;
}

impl<A: Store, S: Steps> Engine for Tree<A, S> {
    fn queue(&mut self, cpu: usize, _: Callback, host: &mut dyn Host) {
        self.on(cpu, host, |shared, at| {
            at.host.touch(Line::Cpu(cpu), Access::Write);
            let is_first = !at.own.callbacks.has_untagged();
            at.own.callbacks.push(1);
            let is_extended = at.words.of(cpu).is_some_and(Words::is_extended);
            if is_extended || at.words.is_tickless(cpu) {
                shared.sleepers.insert(cpu);
                if is_first {
                    at.host.raise(cpu);
                }
            }
            shared.note_overload(at);
            if at.own.is_excess(&at.plan.options) {
                shared.hurry(at);
            }
        });
    }

    fn context_switch(&mut self, cpu: usize, host: &mut dyn Host) {
        self.on(cpu, host, |_, at| at.context_switch());
    }

    fn tick(&mut self, cpu: usize, mode: Mode, host: &mut dyn Host) {
        self.on(cpu, host, |shared, at| {
            match mode {
                Mode::User | Mode::Idle => at.note_quiescent(),
                Mode::Kernel => at.reschedule_if_urgent(),
            }
            at.host.touch(shared.line_of(cpu), Access::Read);
            if at.is_pending(shared.sequence) {
                at.host.raise(cpu);
            }
        });
    }

    fn softirq(&mut self, cpu: usize, host: &mut dyn Host) {
        self.on(cpu, host, |shared, at| {
            shared.advance(at);
            shared.invoke(at);
        });
    }

    fn timer(&mut self, cpu: usize, host: &mut dyn Host) {
        self.on(cpu, host, |shared, at| shared.timer(at));
    }

    fn cond_resched(&mut self, cpu: usize, host: &mut dyn Host) {
        self.on(cpu, host, |_, at| at.cond_resched());
    }

    fn enter_eqs(&mut self, cpu: usize, host: &mut dyn Host) {
        self.on(cpu, host, |shared, at| {
            at.move_eqs(true);
            if !at.own.callbacks.is_empty() {
                shared.sleepers.insert(cpu);
                if at.is_pending(shared.sequence) {
                    at.host.raise(cpu);
                }
            }
        });
    }

    fn exit_eqs(&mut self, cpu: usize, host: &mut dyn Host) {
        self.on(cpu, host, |shared, at| {
            at.move_eqs(false);
            if !at.words.is_tickless(cpu) {
                shared.sleepers.remove(cpu);
            }
        });
    }

    fn is_holdout(&self, of: usize, cpu: usize) -> bool {
        of == 0 && cpu < self.own.len() && self.shared.nodes.is_holdout(cpu)
    }

    fn waiting(&self, cpu: usize) -> u64 {
        self.own.get(cpu).map_or(0, |own| own.callbacks.len())
    }
}
