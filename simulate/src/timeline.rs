//! Which CPU held up the grace period, and when: the first grace periods of a run with their last
//! holdouts.

use kernel::engine::Engine;
use kernel::engine::mask::Mask;
use serde::Serialize;

use crate::Heap;
use crate::cpu::{Activity, Cpu};
use crate::events::Time;

/// What a CPU was doing that a grace period waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doing {
    /// Nothing.
    Idle,
    /// Running a program in user mode.
    User,
    /// Running a program that calls into the kernel again and again.
    Calls,
    /// Working in the kernel on one thing for long.
    Kernel,
    /// In a long read-side critical section.
    Reading,
    /// In softirqs or ksoftirqd.
    Softirq,
}

/// The CPU that a grace period waited for last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Holdout {
    /// Which one.
    pub cpu: usize,
    /// When it had been quiescent last before the grace period began, in nanoseconds.
    pub since: Time,
    /// When it was found to be quiescent.
    pub until: Time,
    /// What it was doing when the grace period began: that is what a grace period has to wait for.
    pub doing_at_first: Doing,
    /// What it was doing when it was found to be quiescent, which may be something else by then.
    pub doing: Doing,
}

/// One grace period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct GracePeriod {
    /// Whose it was, where CPUs have grace periods of their own; otherwise 0.
    pub of: usize,
    /// When it began, in nanoseconds.
    pub began: Time,
    /// When it ended; `None` if the run ended before.
    pub ended: Option<Time>,
    /// The CPU that it waited for last; `None` if none was left when the engine first looked.
    pub last_holdout: Option<Holdout>,
}

/// Whom the engine may have found to be quiescent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The CPU that it was called on.
    Own,
    /// Any.
    All,
}

/// Grace periods as they are being watched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    /// How many are to be shown.
    wanted: usize,
    pub(crate) shown: Vec<GracePeriod>,
    /// Those in progress.
    open: Vec<Open>,
}

#[derive(Clone, Debug)]
struct Open {
    shown: usize,
    holdouts: Mask<Heap>,
    /// When each was quiescent last, as the grace period began.
    since: Vec<Time>,
    /// What each was doing then.
    doing_at_first: Vec<Doing>,
    /// Began in the engine's call that is going on: it has not been asked for the holdouts yet.
    new: bool,
    /// When it was last asked for all of them.
    asked_at: Time,
}

impl Timeline {
    /// Up to so many CPUs each look of the engine at others is followed; beyond, only one in
    /// each [`Timeline::PAUSE`], and the last.
    const SMALL: usize = 64;
    /// In nanoseconds.
    const PAUSE: Time = 500_000;

    pub(crate) fn new(wanted: usize) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// Whether grace periods are in progress that are to be shown.
    pub(crate) fn is_watching(&self) -> bool {
        !self.open.is_empty()
    }

    pub(crate) fn began(&mut self, of: usize, now: Time, cpus: &[Cpu]) {
        if self.shown.len() == self.wanted {
            return;
        }
        self.open.push(Open {
            shown: self.shown.len(),
            holdouts: Mask::new(Heap(cpus.len())),
            since: cpus.iter().map(|cpu| cpu.quiescent_at).collect(),
            doing_at_first: cpus.iter().map(doing).collect(),
            new: true,
            asked_at: now,
        });
        self.shown.push(GracePeriod { of, began: now, ended: None, last_holdout: None });
    }

    /// The grace period of `of` ended, on whatever evidence: the last of those that were still held
    /// to be holdouts is the one that was quiescent latest.
    pub(crate) fn ended(&mut self, of: usize, now: Time, cpus: &[Cpu]) {
        let shown = &mut self.shown;
        let Some(place) = self.open.iter().position(|open| shown[open.shown].of == of) else {
            return;
        };
        let open = self.open.swap_remove(place);
        let entry = &mut shown[open.shown];
        entry.ended = Some(now);
        if let Some(last) = open.latest(open.holdouts.iter(), now, cpus) {
            entry.last_holdout = Some(last);
        }
    }

    /// The engine has been called on `cpu`.
    ///
    /// With many CPUs all are asked after not so often: see [`Timeline::SMALL`].
    pub(crate) fn look(
        &mut self,
        engine: &dyn Engine,
        (cpu, look): (usize, Look),
        now: Time,
        cpus: &[Cpu],
    ) {
        for open in &mut self.open {
            let entry = &mut self.shown[open.shown];
            if open.new {
                open.new = false;
                open.asked_at = now;
                let holdouts = (0..cpus.len()).filter(|&cpu| engine.is_holdout(entry.of, cpu));
                holdouts.for_each(|cpu| {
                    open.holdouts.insert(cpu);
                });
                continue;
            }
            let has_passed = |cpu: &usize| !engine.is_holdout(entry.of, *cpu);
            let is_due = cpus.len() <= Self::SMALL || now >= open.asked_at + Self::PAUSE;
            if look == Look::All && is_due {
                open.asked_at = now;
                let passed: Vec<usize> = open.holdouts.iter().filter(has_passed).collect();
                if let Some(last) = open.latest(passed.iter().copied(), now, cpus) {
                    entry.last_holdout = Some(last);
                }
                for cpu in passed {
                    open.holdouts.remove(cpu);
                }
            } else if open.holdouts.contains(cpu) && has_passed(&cpu) {
                entry.last_holdout = open.latest(core::iter::once(cpu), now, cpus);
                open.holdouts.remove(cpu);
            }
        }
    }
}

impl Open {
    /// The one of these CPUs that was quiescent latest.
    fn latest(
        &self,
        passed: impl Iterator<Item = usize>,
        now: Time,
        cpus: &[Cpu],
    ) -> Option<Holdout> {
        let cpu = passed.max_by_key(|&cpu| cpus[cpu].quiescent_at)?;
        Some(Holdout {
            cpu,
            since: self.since[cpu],
            until: now,
            doing_at_first: self.doing_at_first[cpu],
            doing: doing(&cpus[cpu]),
        })
    }
}

fn doing(cpu: &Cpu) -> Doing {
    if cpu.daemon.runs {
        return Doing::Softirq;
    }
    match cpu.stretch.activity {
        Activity::Idle => Doing::Idle,
        Activity::User => Doing::User,
        Activity::Mixed { .. } => Doing::Calls,
        Activity::Kernel { section: true, .. } => Doing::Reading,
        Activity::Kernel { .. } => Doing::Kernel,
    }
}
