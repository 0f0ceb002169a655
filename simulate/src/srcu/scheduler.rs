//! A fair scheduler for one CPU: which task runs, by virtual runtime.
//!
//! It models Linux's of 2022 (CFS), for tasks of equal weight. A task that wakes is placed at most
//! half a latency behind the others, and preempts the current task if it is behind that by more
//! than the wake-up granularity. A tick preempts the current task once it has had its slice, or is
//! ahead by a slice. Virtual runtime is nanoseconds of CPU time here, since all weights are equal.
//!
//! With other times it stands in for EEVDF, Linux's current scheduler ([`SchedulerTimes::eevdf`]).
//!
//! A task that moves to another CPU keeps its distance from the least runtime of its run queue
//! ([`RunQueue::leave`], [`RunQueue::join`]), as Linux does when it renormalizes `vruntime`. A
//! per-CPU kernel thread does not move; it is an entity of each queue.

use super::options::SchedulerTimes;
use crate::events::Time;

/// A task of this CPU, by its number.
pub(crate) type TaskId = usize;

#[derive(Clone, Debug)]
struct Entity {
    task: TaskId,
    runtime: u64,
    /// When it last ran here; `None` if it never did.
    ran_at: Option<Time>,
}

/// A task on its way from one CPU to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moving {
    task: TaskId,
    /// How far it was ahead of the least runtime, and is to be again.
    ahead: i64,
    ran_at: Option<Time>,
    is_runnable: bool,
}

/// The run queue of one CPU, with the task that runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunQueue {
    times: SchedulerTimes,
    /// All tasks of this CPU, asleep or not.
    entities: Vec<Entity>,
    runnable: Vec<TaskId>,
    current: Option<TaskId>,
    /// When the current one was last accounted for, and its CPU time since it was chosen.
    accounted: Time,
    ran: u64,
    min_runtime: u64,
}

impl RunQueue {
    pub(crate) fn new(times: SchedulerTimes) -> Self {
        // So that half a latency can be taken from it.
        Self { times, min_runtime: times.latency_ns, ..Self::default() }
    }

    pub(crate) fn add(&mut self, task: TaskId) {
        self.entities.push(Entity { task, runtime: self.min_runtime, ran_at: None });
    }

    /// A task of this CPU that has slept for long. No effect if it is one already.
    pub(super) fn add_sleeper(&mut self, task: TaskId) {
        if self.find(task).is_none() {
            self.entities.push(Entity { task, runtime: 0, ran_at: None });
        }
    }

    pub(crate) fn current(&self) -> Option<TaskId> {
        self.current
    }

    /// Whether no task runs or waits to run.
    pub(super) fn is_idle(&self) -> bool {
        self.current.is_none() && self.runnable.is_empty()
    }

    fn find(&self, task: TaskId) -> Option<&Entity> {
        self.entities.iter().find(|entity| entity.task == task)
    }

    fn entity(&mut self, task: TaskId) -> &mut Entity {
        let entity = self.entities.iter_mut().find(|entity| entity.task == task);
        entity.expect("it is a task of this CPU")
    }

    fn runtime_of(&self, task: TaskId) -> u64 {
        self.find(task).map_or(0, |entity| entity.runtime)
    }

    /// Whether a task waits here to run, and has not run for the cost of a migration: what it had
    /// in the cache is taken to be gone.
    pub(super) fn waits_cold(&self, task: TaskId, now: Time) -> bool {
        let ran_at = self.find(task).and_then(|entity| entity.ran_at);
        let is_cold = |at| now - at >= self.times.migration_cost_ns;
        self.runnable.contains(&task) && ran_at.is_none_or(is_cold)
    }

    /// A task that does not run now leaves for another CPU.
    pub(super) fn leave(&mut self, task: TaskId, now: Time) -> Moving {
        self.account(now);
        let is_runnable = self.runnable.contains(&task);
        let Entity { runtime, ran_at, .. } = *self.entity(task);
        self.runnable.retain(|other| *other != task);
        self.entities.retain(|entity| entity.task != task);
        let ahead = runtime.wrapping_sub(self.min_runtime) as i64;
        Moving { task, ahead, ran_at, is_runnable }
    }

    /// A task comes from another CPU.
    pub(super) fn join(&mut self, moving: Moving, now: Time) {
        self.account(now);
        let Moving { task, ahead, ran_at, is_runnable } = moving;
        let runtime = self.min_runtime.saturating_add_signed(ahead);
        self.entities.push(Entity { task, runtime, ran_at });
        if is_runnable {
            self.runnable.push(task);
        }
    }

    /// The first in line that does not run: least runtime, then least number.
    fn first(&self) -> Option<TaskId> {
        self.runnable.iter().copied().min_by_key(|task| (self.runtime_of(*task), *task))
    }

    /// Accounts for the time that the current task has run.
    pub(crate) fn account(&mut self, now: Time) {
        if let Some(current) = self.current {
            let ran = now - self.accounted;
            self.ran += ran;
            let entity = self.entity(current);
            entity.runtime += ran;
            entity.ran_at = Some(now);
            let first = self.first().map(|task| self.runtime_of(task));
            let least = self.runtime_of(current).min(first.unwrap_or(u64::MAX));
            self.min_runtime = self.min_runtime.max(least);
        }
        self.accounted = now;
    }

    /// A task wakes. Returns whether it should preempt the current one.
    pub(crate) fn wake(&mut self, task: TaskId, now: Time) -> bool {
        self.account(now);
        let floor = self.min_runtime.saturating_sub(self.times.latency_ns / 2);
        let entity = self.entity(task);
        entity.runtime = entity.runtime.max(floor);
        let behind = entity.runtime;
        self.runnable.push(task);
        match self.current {
            None => true,
            Some(current) => {
                let ahead = self.runtime_of(current);
                self.ran >= self.times.protected_ns
                    && ahead.saturating_sub(behind) > self.times.wakeup_granularity_ns
            }
        }
    }

    /// The current task goes to sleep.
    pub(crate) fn sleep(&mut self, now: Time) {
        self.account(now);
        self.current = None;
    }

    /// The tick comes. Returns whether the current task should be preempted.
    pub(crate) fn tick(&mut self, now: Time) -> bool {
        self.account(now);
        let (Some(current), Some(first)) = (self.current, self.first()) else { return false };
        let running = self.runnable.len() as u64 + 1;
        let slice = (self.times.latency_ns / running).max(self.times.min_granularity_ns);
        if self.ran > slice {
            return true;
        }
        let ahead = self.runtime_of(current).saturating_sub(self.runtime_of(first));
        self.ran >= self.times.min_granularity_ns && ahead > slice
    }

    /// How many tasks wait for the CPU.
    pub(crate) fn waiting(&self) -> usize {
        self.runnable.len()
    }

    /// Takes the first in line away, which does not run: it waits for another CPU.
    pub(crate) fn take_first(&mut self) -> Option<TaskId> {
        let first = self.first()?;
        self.runnable.retain(|task| *task != first);
        Some(first)
    }

    /// A task that neither runs nor waits here is of another CPU from now on.
    pub(crate) fn remove(&mut self, task: TaskId) {
        self.entities.retain(|entity| entity.task != task);
    }

    /// Chooses the task that runs next: the first in line, the current task put back among them.
    pub(crate) fn choose(&mut self, now: Time) -> Option<TaskId> {
        self.account(now);
        if let Some(current) = self.current.take() {
            self.runnable.push(current);
        }
        let next = self.first()?;
        self.runnable.retain(|task| *task != next);
        self.current = Some(next);
        self.ran = 0;
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const MANY_CPUS: SchedulerTimes = SchedulerTimes::MANY_CPUS;

    fn two(times: SchedulerTimes) -> RunQueue {
        let mut queue = RunQueue::new(times);
        queue.add(0);
        queue.add(1);
        queue
    }

    /// Two, of which the first runs.
    fn first_runs(times: SchedulerTimes) -> RunQueue {
        let mut queue = two(times);
        assert!(queue.wake(0, 0));
        assert_eq!(queue.choose(0), Some(0));
        queue
    }

    #[test]
    fn one_that_slept_for_long_preempts_and_is_no_further_behind_than_half_a_latency() {
        let mut queue = first_runs(MANY_CPUS);
        assert!(queue.wake(1, 100 * MS));
        assert_eq!(queue.runtime_of(0) - queue.runtime_of(1), 12 * MS);
        assert_eq!(queue.choose(100 * MS), Some(1));
    }

    #[test]
    fn one_that_wakes_does_not_preempt_one_that_is_protected() {
        let times = SchedulerTimes::eevdf(2);
        assert_eq!(times.protected_ns, 1_400_000);
        for (ran_ns, preempts) in [(times.protected_ns - 1, false), (times.protected_ns, true)] {
            let mut queue = first_runs(times);
            assert_eq!(queue.wake(1, ran_ns), preempts, "after {ran_ns} ns");
        }
    }

    #[test]
    fn one_that_is_behind_by_less_than_the_granularity_waits() {
        let mut queue = first_runs(MANY_CPUS);
        assert!(!queue.wake(1, 4 * MS));
        assert!(!queue.tick(8 * MS), "it has not had its slice");
        assert!(queue.tick(13 * MS));
        assert_eq!(queue.choose(13 * MS), Some(1));
    }

    #[test]
    fn a_kernel_thread_that_has_slept_for_ever_is_half_a_latency_behind() {
        let mut queue = first_runs(MANY_CPUS);
        queue.add_sleeper(2);
        queue.add_sleeper(2);
        assert!(queue.wake(2, MS));
        assert_eq!(queue.runtime_of(0) - queue.runtime_of(2), 12 * MS);
    }

    #[test]
    fn one_that_moves_keeps_its_distance_and_is_cold_after_a_while() {
        let (mut from, mut to) = (first_runs(MANY_CPUS), RunQueue::new(MANY_CPUS));
        assert!(from.wake(1, 5 * MS));
        assert_eq!(from.choose(5 * MS), Some(1));
        assert!(!from.waits_cold(1, 9 * MS), "it runs");
        assert!(!from.waits_cold(0, 5 * MS + MS / 2 - 1));
        assert!(from.waits_cold(0, 5 * MS + MS / 2));
        let ahead = from.runtime_of(0) - from.min_runtime;
        let moving = from.leave(0, 6 * MS);
        assert_eq!((from.choose(30 * MS), to.is_idle()), (Some(1), true));
        to.join(moving, 6 * MS);
        assert!(!to.is_idle());
        assert_eq!(to.runtime_of(0) - to.min_runtime, ahead);
        assert_eq!(to.choose(6 * MS), Some(0));
    }

    #[test]
    fn one_that_sleeps_moves_asleep() {
        let (mut from, mut to) = (two(MANY_CPUS), RunQueue::new(MANY_CPUS));
        to.join(from.leave(1, MS), MS);
        assert!(to.is_idle() && to.wake(1, MS));
        assert_eq!(to.choose(MS), Some(1));
    }

    #[test]
    fn two_that_never_sleep_get_half_each() {
        let mut queue = two(MANY_CPUS);
        queue.wake(0, 0);
        queue.wake(1, 0);
        queue.choose(0);
        for tick in 1..1_000 {
            if queue.tick(tick * 4 * MS) {
                queue.choose(tick * 4 * MS);
            }
        }
        let (a, b) = (queue.runtime_of(0), queue.runtime_of(1));
        assert!(a.abs_diff(b) <= 16 * MS, "{a} and {b}");
    }
}
