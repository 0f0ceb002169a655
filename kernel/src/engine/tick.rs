//! rcu_ltimer: each CPU looks after itself on its tick, and none is ever forced.
//!
//! After the engine that was merged into Linux 2.5 (Arcangeli, Cao, McKenney, Sarma, FREENIX 2003;
//! Sarma and McKenney, Ottawa Linux Symposium 2002). Grace periods ("batches") have numbers. A CPU
//! that has callbacks asks for batch `current + 1` and runs them once `current` is beyond that:
//! even when nothing was in progress that takes two rounds, because the number does not say whether
//! the batch `current` has begun.
//!
//! CPUs in an extended quiescent state are left out when a batch begins, and report as they
//! enter it, as Linux did from 2.6 on. There a CPU that had callbacks kept its tick; here it may
//! give the tick up, and is raised when a batch has ended.

use grace::steps::{Intact, Steps};

use super::counters::{Counters, Start, is_after};
use super::mask::Mask;
use super::store::Store;
use super::{Access, Callback, Engine, Host, Line, Mode};

/// The steps that [`Tick`] must not leave out.
pub const STEPS: &[&str] = &[
    "snapshot",
    "wait-for-all-cpus",
    "batch-after-current",
    "separate-lists",
    "start-next",
    "pass-over-eqs",
    "report-on-entering-eqs",
    "return-from-eqs",
    "raise-sleepers",
];

/// The steps that it may leave out at the cost of speed: none.
pub const STEPS_FOR_SPEED: &[&str] = &[];

/// The mutex, the numbers and the mask.
const SHARED: Line = Line::Global(0);
/// CPUs in an extended quiescent state that have callbacks there.
const SLEEPERS: Line = Line::Global(1);

/// What a CPU has to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Own {
    /// Not yet in a batch.
    next: u64,
    /// In batch `batch`, which means nothing while there are none.
    current: u64,
    batch: u32,
    /// The counter when this CPU first saw that it is waited for.
    snapshot: Option<u32>,
}

/// The engine. Every function takes constant time, except that the start of a batch is linear in
/// the CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tick<A: Store, S: Steps = Intact> {
    steps: S,
    counters: Counters<A>,
    own: A::Of<Own>,
    /// The batch in progress, or that comes next.
    current: u32,
    /// The last batch that somebody asked for.
    furthest: u32,
    /// Whom the batch in progress waits for; empty if none is.
    mask: Mask<A>,
    /// CPUs with callbacks and without ticks.
    sleepers: Mask<A>,
}

impl<A: Store, S: Steps> Tick<A, S> {
    /// The engine from a given start, possibly without one of its [`STEPS`].
    pub fn with(store: A, start: Start, steps: S) -> Self {
        let own = Own { next: 0, current: 0, batch: 0, snapshot: None };
        Self {
            steps,
            counters: Counters::new(store, start),
            own: store.of(store.cpus(), own),
            current: start.number.wrapping_add(1),
            furthest: start.number,
            mask: Mask::new(store),
            sleepers: Mask::new(store),
        }
    }

    /// Whether the batch of `cpu`'s current callbacks has ended: it is neither the one in progress
    /// nor the next, however many batches ago the CPU looked last.
    fn is_ready(&self, cpu: usize) -> bool {
        let own = &self.own[cpu];
        own.current != 0 && own.batch.wrapping_sub(self.current) > 1
    }

    /// Whether a softirq on `cpu` has something to do.
    fn has_work(&self, cpu: usize) -> bool {
        let own = &self.own[cpu];
        self.is_ready(cpu) || own.current == 0 && own.next != 0 || self.mask.contains(cpu)
    }

    /// Begins the batch `current`, if it was asked for and is not in progress. The mutex is held.
    fn start(&mut self, host: &mut dyn Host) {
        while self.mask.is_empty() && !is_after(self.current, self.furthest) {
            host.began(0);
            for cpu in 0..self.counters.cpus() {
                if !self.counters.is_in_eqs(cpu) || self.steps.omits("pass-over-eqs") {
                    self.mask.insert(cpu);
                }
            }
            if self.mask.is_empty() {
                self.end(host);
            }
        }
    }

    /// The batch `current` has ended. The mutex is held.
    fn end(&mut self, host: &mut dyn Host) {
        self.current = self.current.wrapping_add(1);
        host.ended(0);
        if !self.steps.omits("raise-sleepers") {
            self.sleepers.iter().for_each(|cpu| host.raise(cpu));
        }
    }

    /// Takes `cpu` out of the mask; the last one ends the batch, and begins the next.
    fn pass(&mut self, cpu: usize, host: &mut dyn Host) {
        host.touch(SHARED, Access::Lock);
        self.own[cpu].snapshot = None;
        self.mask.remove(cpu);
        if self.steps.omits("wait-for-all-cpus") {
            self.mask.clear();
        }
        if self.mask.is_empty() {
            self.end(host);
            if !self.steps.omits("start-next") {
                self.start(host);
            }
        }
    }

    /// On the first visit after the batch began, remembers the counter; later, reports if it has
    /// moved.
    fn check(&mut self, cpu: usize, host: &mut dyn Host) {
        if !self.mask.contains(cpu) {
            return;
        }
        match self.own[cpu].snapshot {
            None if !self.steps.omits("snapshot") => {
                self.own[cpu].snapshot = Some(self.counters.read(cpu, host));
            }
            Some(snapshot) if !self.counters.has_passed(cpu, snapshot) => {}
            _ => self.pass(cpu, host),
        }
    }

    /// What was queued joins a batch that begins later.
    fn advance(&mut self, cpu: usize, host: &mut dyn Host) {
        let own = &mut self.own[cpu];
        if own.current != 0 || own.next == 0 {
            return;
        }
        own.current = core::mem::take(&mut own.next);
        host.touch(SHARED, Access::Lock);
        own.batch = self.current.wrapping_add(u32::from(!self.steps.omits("batch-after-current")));
        if is_after(own.batch, self.furthest) {
            self.furthest = own.batch;
        }
        self.start(host);
    }

    /// `cpu` has callbacks and no ticks: it is raised now, and when a batch has ended.
    fn sleep(&mut self, cpu: usize, host: &mut dyn Host) {
        if self.waiting(cpu) != 0 && self.counters.is_in_eqs(cpu) {
            host.touch(SLEEPERS, Access::Atomic);
            self.sleepers.insert(cpu);
            if !self.steps.omits("raise-sleepers") {
                host.raise(cpu);
            }
        }
    }
}

impl<A: Store, S: Steps> Engine for Tick<A, S> {
    fn queue(&mut self, cpu: usize, _: Callback, host: &mut dyn Host) {
        let Some(own) = self.own.get_mut(cpu) else { return };
        host.touch(Line::Cpu(cpu), Access::Write);
        if own.current != 0 && self.steps.omits("separate-lists") {
            own.current += 1;
        } else {
            own.next += 1;
        }
        self.sleep(cpu, host);
    }

    fn context_switch(&mut self, cpu: usize, host: &mut dyn Host) {
        self.counters.count(cpu, host);
    }

    fn tick(&mut self, cpu: usize, mode: Mode, host: &mut dyn Host) {
        if cpu >= self.own.len() {
            return;
        }
        if mode != Mode::Kernel {
            self.counters.count(cpu, host);
        }
        host.touch(SHARED, Access::Read);
        if self.has_work(cpu) {
            host.raise(cpu);
        }
    }

    fn softirq(&mut self, cpu: usize, host: &mut dyn Host) {
        if cpu >= self.own.len() {
            return;
        }
        host.touch(SHARED, Access::Read);
        let ready =
            if self.is_ready(cpu) { core::mem::take(&mut self.own[cpu].current) } else { 0 };
        self.advance(cpu, host);
        self.check(cpu, host);
        if ready != 0 {
            host.invoke(cpu, ready);
        }
        if self.waiting(cpu) == 0 && self.sleepers.remove(cpu) {
            host.touch(SLEEPERS, Access::Atomic);
        }
    }

    fn enter_eqs(&mut self, cpu: usize, host: &mut dyn Host) {
        if cpu >= self.own.len() {
            return;
        }
        self.counters.enter_eqs(cpu, host);
        host.touch(SLEEPERS, Access::Atomic);
        if self.mask.contains(cpu) && !self.steps.omits("report-on-entering-eqs") {
            self.pass(cpu, host);
        }
        self.sleep(cpu, host);
    }

    fn exit_eqs(&mut self, cpu: usize, host: &mut dyn Host) {
        if cpu >= self.own.len() {
            return;
        }
        self.counters.exit_eqs(cpu, &self.steps, host);
        host.touch(SLEEPERS, Access::Atomic);
        self.sleepers.remove(cpu);
    }

    fn is_holdout(&self, _: usize, cpu: usize) -> bool {
        self.mask.contains(cpu)
    }

    fn waiting(&self, cpu: usize) -> u64 {
        self.own.get(cpu).map_or(0, |own| own.next + own.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::store::Fixed;

    #[test]
    fn a_batch_is_over_however_late_that_is_noticed() {
        let mut tick = Tick::with(Fixed::<1>(1), Start::default(), Intact);
        let own = Own { next: 0, current: 1, batch: 8, snapshot: None };
        for (current, is_ready) in [(7, false), (8, false), (9, true)] {
            (tick.own[0], tick.current) = (own, current);
            assert_eq!(tick.is_ready(0), is_ready);
        }
        for late in [1 << 30, 1 << 31, u32::MAX - 2] {
            (tick.own[0], tick.current) = (own, 9_u32.wrapping_add(late));
            assert!(tick.is_ready(0), "{late} numbers later");
        }
    }
}
