//! One virtual CPU: what it is doing, until when, and where its time went.
//!
//! A task is not simulated operation by operation, but in *stretches*: spans of time of one kind,
//! at whose end something may happen. What the CPU does at a moment within a stretch is drawn only
//! when it matters: at an interrupt, or in the scheduler.

use grace::Urgency;
use kernel::engine::Mode;

use crate::cost::PICOS;
use crate::events::Time;
use crate::random::Random;

/// What a stretch of a task is like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Nothing: the task sleeps, and no other wants to run.
    #[default]
    Idle,
    /// A program in user mode.
    User,
    /// A program that calls into the kernel again and again.
    Mixed {
        /// Share of its time in the kernel.
        kernel_ppm: u32,
        /// Share of its time in the kernel in which it cannot be preempted in a preemptible kernel.
        section_ppm: u32,
        /// Mean of what is left, at any moment, of the time in which it cannot be preempted.
        section: Time,
        /// From one `cond_resched()` to the next; 0 if there are none.
        cond_resched: Time,
    },
    /// The kernel working on one thing for long.
    Kernel {
        /// From one `cond_resched()` to the next; 0 if there are none.
        cond_resched: Time,
        /// Whether all of it is one read-side critical section.
        section: bool,
        /// Whether the CPU has only this task, so that the tick stays off where it can be.
        alone: bool,
        /// Whether it is `cond_resched_rcu_qs()`, which a preemptible kernel has as well.
        rcu_qs: bool,
    },
}

/// What happens at the end of a stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Then {
    /// The next stretch begins.
    #[default]
    GoOn,
    /// The scheduler runs another task.
    Switch,
    /// The task waits until a callback of its own has been invoked.
    Wait(Urgency),
    /// The task waits until all others have come to the barrier.
    Barrier {
        /// The barrier is the one at the end of a round.
        ends_round: bool,
    },
}

/// A span of time of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) activity: Activity,
    /// How long it takes if nothing comes in between. An idle one ends then in any case.
    pub(crate) length: Time,
    /// Operations of the workload that are done at its end.
    pub(crate) operations: u32,
    /// Callbacks that are queued at its end, for objects that were allocated in it.
    pub(crate) calls: u32,
    /// The memory that each gives back.
    pub(crate) bytes: u32,
    pub(crate) then: Then,
}

impl Stretch {
    /// One in which nothing is done, and after which the next one begins.
    pub(crate) const fn new(activity: Activity, length: Time) -> Self {
        Self { activity, length, operations: 0, calls: 0, bytes: 0, then: Then::GoOn }
    }
}

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// A callback, since then.
    Callback(Time),
    /// The others.
    Barrier,
}

/// What CPU time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Category {
    User,
    Kernel,
    Idle,
    Engine,
    Callback,
}

/// How many categories there are.
const CATEGORIES: usize = 5;

/// From when to when time is counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    pub(crate) from: Time,
    pub(crate) to: Time,
}

/// ksoftirqd: runs softirqs that raise themselves again and again, in turn with the task.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Daemon {
    /// Softirqs are its business, not the interrupts' any more.
    pub(crate) awake: bool,
    /// It has the CPU.
    pub(crate) runs: bool,
    /// For how long it has had it this time.
    pub(crate) used: Time,
    /// It has waited for the task to come out of its section.
    pub(crate) admitted: bool,
    /// Not before this does it get it again from a task: it is their turn.
    pub(crate) not_before: Time,
}

/// One virtual CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cpu {
    /// Up to when its time has been accounted for. Ahead of the clock while it works on an
    /// interrupt: whatever else comes has to wait until then.
    pub(crate) at: Time,
    /// Picoseconds beyond.
    fraction: u64,
    pub(crate) stretch: Stretch,
    /// What is left of it.
    pub(crate) left: Time,
    /// The number of the event that ends the stretch; those with other numbers are stale.
    pub(crate) ticket: u32,
    /// The task waits for something and has no end of its own.
    pub(crate) blocked: Option<Blocked>,
    /// Part of the way to the next `cond_resched()`.
    since_cond_resched: Time,
    /// Calls of `cond_resched()` of which the engine has not been notified.
    pub(crate) cond_resched_due: u64,
    pub(crate) in_eqs: bool,
    pub(crate) need_resched: bool,
    /// A kernel thread wants to run: the next pass through the scheduler is not the engine's doing.
    pub(crate) background: bool,
    /// An event will come when it can schedule.
    pub(crate) resched_event: bool,
    pub(crate) softirq: bool,
    /// An event for the softirq is on its way.
    pub(crate) softirq_event: bool,
    /// Its number; those with others are stale.
    pub(crate) softirq_ticket: u32,
    /// How often in a row the softirq has raised itself.
    pub(crate) restarts: u32,
    pub(crate) daemon: Daemon,
    /// Since when softirqs have been busy without a pause.
    pub(crate) worker_since: Option<Time>,
    /// When it was last seen in a quiescent state, for the timeline; and at which step of the run,
    /// to see whether the engine waited for it.
    pub(crate) quiescent_at: Time,
    pub(crate) quiescent_step: u64,
    pub(crate) random: Random,
    time: [Time; CATEGORIES],
}

impl Cpu {
    pub(crate) fn new(random: Random) -> Self {
        Self { random, ..Self::default() }
    }

    /// Whether no task is running.
    pub(crate) fn is_idle(&self) -> bool {
        self.stretch.activity == Activity::Idle
    }

    /// Time passes until `now`, in the stretch.
    pub(crate) fn run_until(&mut self, now: Time, window: Window) {
        if now <= self.at {
            return;
        }
        let (from, passed) = (self.at, now - self.at);
        self.at = now;
        self.left = self.left.saturating_sub(passed);
        let counted = overlap(from, now, window);
        let (kernel_ppm, cond_resched) = match self.stretch.activity {
            Activity::Idle => {
                self.time[Category::Idle as usize] += counted;
                return;
            }
            Activity::User => (0, 0),
            Activity::Mixed { kernel_ppm, cond_resched, .. } => (kernel_ppm, cond_resched),
            Activity::Kernel { cond_resched, .. } => (1_000_000, cond_resched),
        };
        let kernel = counted * u64::from(kernel_ppm) / 1_000_000;
        self.time[Category::Kernel as usize] += kernel;
        self.time[Category::User as usize] += counted - kernel;
        self.since_cond_resched += passed;
        self.cond_resched_due += self.since_cond_resched.checked_div(cond_resched).unwrap_or(0);
        self.since_cond_resched = self.since_cond_resched.checked_rem(cond_resched).unwrap_or(0);
    }

    /// It works on something else than the stretch, for so many picoseconds.
    pub(crate) fn charge(&mut self, category: Category, picos: u64, window: Window) {
        let picos = picos + self.fraction;
        let to = self.at + picos / PICOS;
        self.fraction = picos % PICOS;
        self.time[category as usize] += overlap(self.at, to, window);
        self.at = to;
    }

    /// What is on the clock after so many picoseconds more.
    pub(crate) const fn time_after(&self, picos: u64) -> Time {
        self.at + (self.fraction + picos) / PICOS
    }

    /// The time counted of a category.
    pub(crate) const fn counted(&self, category: Category) -> Time {
        self.time[category as usize]
    }

    /// What the tick finds it doing.
    pub(crate) fn mode(&mut self, now: Time) -> Mode {
        if self.at > now || self.daemon.runs {
            return Mode::Kernel;
        }
        match self.stretch.activity {
            Activity::Idle => Mode::Idle,
            Activity::User => Mode::User,
            Activity::Mixed { kernel_ppm, .. } if !self.random.chance_ppm(kernel_ppm) => Mode::User,
            Activity::Mixed { .. } | Activity::Kernel { .. } => Mode::Kernel,
        }
    }

    /// How long from now until the task can be taken off the CPU; `None` if not before its
    /// stretch ends.
    pub(crate) fn until_preemptible(&mut self, preemptible: bool) -> Option<Time> {
        match self.stretch.activity {
            Activity::Idle | Activity::User => Some(0),
            Activity::Mixed { kernel_ppm, section_ppm, section, .. } => {
                let held = self.random.chance_ppm(kernel_ppm)
                    && (!preemptible || self.random.chance_ppm(section_ppm));
                let wait = if held { self.random.exponential(section) } else { 0 };
                (wait < self.left).then_some(wait)
            }
            Activity::Kernel { section: true, .. } => None,
            Activity::Kernel { .. } if preemptible => Some(0),
            Activity::Kernel { cond_resched: 0, .. } => None,
            Activity::Kernel { cond_resched, .. } => {
                let wait = cond_resched - self.since_cond_resched;
                (wait < self.left).then_some(wait)
            }
        }
    }

    /// Whether what it does now is an extended quiescent state on a tickless machine.
    pub(crate) const fn can_be_in_eqs(&self) -> bool {
        matches!(self.stretch.activity, Activity::Idle | Activity::User)
            && !self.softirq
            && !self.daemon.awake
            && !self.need_resched
    }
}

/// How much of a span lies in the window.
fn overlap(from: Time, to: Time, window: Window) -> Time {
    to.clamp(window.from, window.to) - from.clamp(window.from, window.to)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { from: 100, to: 1_000 };

    #[test]
    fn time_is_counted_once_and_only_in_the_window() {
        let mut cpu = Cpu::new(Random::new(1));
        cpu.stretch.activity =
            Activity::Mixed { kernel_ppm: 250_000, section_ppm: 0, section: 10, cond_resched: 30 };
        cpu.left = 5_000;
        cpu.run_until(300, WINDOW);
        cpu.run_until(200, WINDOW); // the past is over
        assert_eq!((cpu.counted(Category::Kernel), cpu.counted(Category::User)), (50, 150));
        assert_eq!((cpu.left, cpu.cond_resched_due), (4_700, 10));
        cpu.charge(Category::Engine, 99_500, WINDOW);
        cpu.charge(Category::Engine, 500, WINDOW);
        assert_eq!((cpu.at, cpu.counted(Category::Engine), cpu.left), (400, 100, 4_700));
        cpu.charge(Category::Callback, 700_000, WINDOW);
        assert_eq!((cpu.at, cpu.counted(Category::Callback)), (1_100, 600));
    }
}
