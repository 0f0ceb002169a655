//! rcu_sched: a ring of CPUs, handed round in the scheduler, and one count of what is pending.
//!
//! After Arcangeli, Cao, McKenney, Sarma (FREENIX 2003). No lock, no interrupt, no mask: a CPU
//! that passes through its scheduler looks at its successor's number. But all of them read one
//! counter there, which every callback changes twice; and the token rests with a CPU that does
//! not schedule, so that a circuit takes N times as long as that takes.
//!
//! Not in the original: a CPU that sleeps in an extended quiescent state, without the idle
//! loop that looked at the counter, is rescheduled when the token has come to it.

use grace::steps::{Intact, Steps};

use super::{Passed, Station};
use crate::engine::mask::Mask;
use crate::engine::store::Store;
use crate::engine::{Access, Callback, Engine, Host, Line, Mode, Start};

/// What [`Published`] must not leave out.
pub const STEPS: &[&str] = &[
    "wait-for-successor",
    "wait-for-circuit",
    "separate-batches",
    "count-pending",
    "wake-sleepers",
];

/// What it may leave out, and be slower: the idle loop's look at what is pending.
pub const STEPS_FOR_SPEED: &[&str] = &["hop-when-idle"];

/// The count of pending callbacks.
const PENDING: Line = Line::Global(0);

/// All CPUs use one line for that count: what the published engine's overhead is said to come from.
/// Left out, it costs as if each had its own, and nothing else changes.
pub const ONE_COUNT: &str = "one-count";

/// What a CPU has to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Own {
    station: Station,
    /// The batch that is being filled.
    queueing: u64,
    /// The batch that waits until `station.finished`.
    waiting: u64,
}

/// The engine as published.
///
/// Callbacks run in the scheduler, where they were queued. Every function is constant in time, but
/// for the callbacks that it runs, and that the first callback after a pause looks at all CPUs that
/// sleep.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Published<A: Store, S: Steps = Intact> {
    steps: S,
    own: A::Of<Own>,
    pending: u64,
    /// Those in an extended quiescent state.
    eqs: Mask<A>,
}

impl<A: Store, S: Steps> Published<A, S> {
    /// The engine from a given start, possibly without one of its [`STEPS`].
    pub fn with(store: A, start: Start, steps: S) -> Self {
        let station = Station { ring: start.number, finished: start.number };
        let own = Own { station, queueing: 0, waiting: 0 };
        Self { steps, own: store.of(store.cpus(), own), pending: 0, eqs: Mask::new(store) }
    }

    fn successor(&self, cpu: usize) -> usize {
        (cpu + 1) % self.own.len()
    }

    /// Whether the token, or a part of it, is at `cpu`.
    fn has_token(&self, cpu: usize) -> bool {
        let next = self.own[self.successor(cpu)].station.ring;
        self.own[cpu].station.ring != next.wrapping_add(1)
    }

    /// The count, as `cpu` uses it.
    fn touch_pending(&self, cpu: usize, access: Access, host: &mut dyn Host) {
        host.touch(if self.steps.omits(ONE_COUNT) { Line::Cpu(cpu) } else { PENDING }, access);
    }

    fn is_pending(&self, cpu: usize, host: &mut dyn Host) -> bool {
        self.touch_pending(cpu, Access::Read, host);
        self.pending != 0
    }

    /// `cpu` passes through its scheduler while callbacks are pending.
    fn pass(&mut self, cpu: usize, host: &mut dyn Host) {
        let successor = self.successor(cpu);
        host.touch(Line::Cpu(successor), Access::Read);
        let next = match self.steps.omits("wait-for-successor") {
            true => self.own[cpu].station.ring,
            false => self.own[successor].station.ring,
        };
        let stations = if self.steps.omits("wait-for-circuit") { 0 } else { self.own.len() as u32 };
        let passed = self.own[cpu].station.pass(next, stations);
        if passed == Passed::Stayed {
            return;
        }
        host.touch(Line::Cpu(cpu), Access::Write);
        if passed == Passed::CameRound {
            self.run(cpu, host);
        }
        let predecessor = (cpu + self.own.len() - 1) % self.own.len();
        if self.pending != 0 {
            self.wake(predecessor, host);
        }
    }

    /// Runs the batch that waits; that which was being filled waits from now on.
    fn run(&mut self, cpu: usize, host: &mut dyn Host) {
        let own = &mut self.own[cpu];
        let count = core::mem::replace(&mut own.waiting, core::mem::take(&mut own.queueing));
        if count != 0 {
            host.ended(cpu);
        }
        if own.waiting != 0 {
            host.began(cpu);
        }
        if count == 0 {
            return;
        }
        host.invoke(cpu, count);
        for _ in 0..count {
            self.touch_pending(cpu, Access::Atomic, host);
        }
        self.pending = self.pending.saturating_sub(count);
    }

    /// Has `cpu` pass the token on, if it sleeps on it.
    fn wake(&self, cpu: usize, host: &mut dyn Host) {
        if self.eqs.contains(cpu) && self.has_token(cpu) && !self.steps.omits("wake-sleepers") {
            host.resched(cpu);
        }
    }
}

impl<A: Store, S: Steps> Engine for Published<A, S> {
    fn queue(&mut self, cpu: usize, _: Callback, host: &mut dyn Host) {
        let Some(own) = self.own.get_mut(cpu) else { return };
        host.touch(Line::Cpu(cpu), Access::Write);
        if self.steps.omits("separate-batches") {
            own.waiting += 1;
        } else {
            own.queueing += 1;
        }
        if self.steps.omits("count-pending") {
            return;
        }
        self.touch_pending(cpu, Access::Atomic, host);
        self.pending += 1;
        if self.pending == 1 {
            self.eqs.iter().for_each(|sleeper| self.wake(sleeper, host));
        }
    }

    fn context_switch(&mut self, cpu: usize, host: &mut dyn Host) {
        if cpu < self.own.len() && self.is_pending(cpu, host) {
            self.pass(cpu, host);
        }
    }

    /// The idle loop looks whether callbacks are pending, and goes through the scheduler if so. A
    /// tick in user mode is a quiescent state too, but the original makes no use of it.
    fn tick(&mut self, cpu: usize, mode: Mode, host: &mut dyn Host) {
        let is_idle = cpu < self.own.len() && mode == Mode::Idle;
        if is_idle && self.is_pending(cpu, host) && !self.steps.omits("hop-when-idle") {
            host.resched(cpu);
        }
    }

    fn softirq(&mut self, _: usize, _: &mut dyn Host) {}

    fn enter_eqs(&mut self, cpu: usize, host: &mut dyn Host) {
        if self.eqs.insert(cpu) && self.is_pending(cpu, host) {
            self.pass(cpu, host);
        }
    }

    fn exit_eqs(&mut self, cpu: usize, _: &mut dyn Host) {
        self.eqs.remove(cpu);
    }

    /// Whether the token rests with `cpu`.
    fn is_holdout(&self, _: usize, cpu: usize) -> bool {
        self.pending != 0 && cpu < self.own.len() && self.has_token(cpu)
    }

    fn waiting(&self, cpu: usize) -> u64 {
        self.own.get(cpu).map_or(0, |own| own.queueing + own.waiting)
    }
}
