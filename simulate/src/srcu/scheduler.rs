//! A fair scheduler for one CPU: which task runs, by virtual runtime.
//!
//! As Linux's was in 2022 (CFS), for tasks of equal weight: a task that wakes is placed at most
//! half a latency behind the others, and preempts if it is behind the current one by more than the
//! wake-up granularity; a tick preempts once the current one has had its slice, or is ahead by a
//! slice. Virtual runtime is nanoseconds of CPU time here, since all weights are equal.

use super::options::SchedulerTimes;
use crate::events::Time;

/// A task of this CPU, by its number.
pub(crate) type TaskId = usize;

#[derive(Clone, Debug)]
struct Entity {
    task: TaskId,
    runtime: u64,
}

/// The run queue of one CPU, with the task that runs.
#[derive(Clone, Debug)]
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
        Self {
            times,
            entities: Vec::new(),
            runnable: Vec::new(),
            current: None,
            accounted: 0,
            ran: 0,
            // So that half a latency can be taken from it.
            min_runtime: times.latency_ns,
        }
    }

    pub(crate) fn add(&mut self, task: TaskId) {
        self.entities.push(Entity { task, runtime: self.min_runtime });
    }

    pub(crate) fn current(&self) -> Option<TaskId> {
        self.current
    }

    fn runtime(&mut self, task: TaskId) -> &mut u64 {
        let entity = self.entities.iter_mut().find(|entity| entity.task == task);
        &mut entity.expect("it is a task of this CPU").runtime
    }

    fn runtime_of(&self, task: TaskId) -> u64 {
        self.entities.iter().find(|entity| entity.task == task).map_or(0, |entity| entity.runtime)
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
            *self.runtime(current) += ran;
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
        let runtime = self.runtime(task);
        *runtime = (*runtime).max(floor);
        let behind = *runtime;
        self.runnable.push(task);
        match self.current {
            None => true,
            Some(current) => {
                let ahead = self.runtime_of(current);
                ahead.saturating_sub(behind) > self.times.wakeup_granularity_ns
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

    fn two() -> RunQueue {
        let mut queue = RunQueue::new(SchedulerTimes::MANY_CPUS);
        queue.add(0);
        queue.add(1);
        queue
    }

    #[test]
    fn one_that_slept_for_long_preempts_and_is_no_further_behind_than_half_a_latency() {
        let mut queue = two();
        assert!(queue.wake(0, 0));
        assert_eq!(queue.choose(0), Some(0));
        assert!(queue.wake(1, 100 * MS));
        assert_eq!(queue.runtime_of(0) - queue.runtime_of(1), 12 * MS);
        assert_eq!(queue.choose(100 * MS), Some(1));
    }

    #[test]
    fn one_that_is_behind_by_less_than_the_granularity_waits() {
        let mut queue = two();
        queue.wake(0, 0);
        queue.choose(0);
        assert!(!queue.wake(1, 4 * MS));
        assert!(!queue.tick(8 * MS), "it has not had its slice");
        assert!(queue.tick(13 * MS));
        assert_eq!(queue.choose(13 * MS), Some(1));
    }

    #[test]
    fn two_that_never_sleep_get_half_each() {
        let mut queue = two();
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
