//! Our delay function: check for a moment, then nap; each nap is half as long again as the one
//! before.
//!
//! The kernel's variants differ in one decision: what to do while a reader is still in its section.
//! Spinning (5.18) is fast, but the thread never sleeps if the reader blocks. Sleeping for a jiffy
//! (5.19-rc1) is kind to other tasks, but costs two ticks for a section of a microsecond. Both
//! overlook that the most frequent holdout is the *caller itself*, preempted by the worker that it
//! woke: spinning keeps the CPU from the very task that the worker waits for.
//!
//! So the function first waits for a moment, in which the caller can leave the section from which
//! it asks. Then it allows a bounded number of runs without a wait, for readers on other CPUs that
//! are about to leave. Then comes a nap of microseconds by a high-resolution timer, in which a
//! preempted reader gets the CPU back; then naps that are each half as long again as the one
//! before, up to jiffies. A reader that takes *t* is found gone after about 1.5 *t* and the first
//! nap. The first nap is as long as the spinning before it. So vain checks take at most half a CPU
//! even if grace periods follow each other directly, and ever less of it while a reader blocks. A
//! nap follows at most `runs_max` failed runs, so no thread spins for ever.

use super::delay::{Delay, Situation, Wait};

/// The delay function `adaptive`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AdaptiveDelay {
    /// The moment before the first run; 0 for none, where the caller is in no section.
    pub first_nap_us: u32,
    /// Runs of a phase before the next nap, while somebody is in a hurry; 0 counts as 1.
    pub runs_max: u32,
    /// That nap, which should be no shorter than `runs_max` runs that fail; 0 counts as 1.
    pub nap_us: u32,
    /// The length of a jiffy: naps that reach it are made by the timer wheel.
    pub jiffy_us: u32,
    /// The longest wait.
    pub wait_jiffies_max: u32,
    /// What the worker waits at first if no thread is in a hurry.
    pub interval_jiffies: u32,
}

impl AdaptiveDelay {
    /// A moment of 5 us, one run, naps from 50 us to ten jiffies. `hz` is taken as 1 to 1,000,000.
    pub const fn at(hz: u32) -> Self {
        let hz = if hz == 0 { 1 } else { hz };
        let jiffy_us = if hz > 1_000_000 { 1 } else { 1_000_000 / hz };
        Self {
            first_nap_us: 5,
            runs_max: 1,
            nap_us: 50,
            jiffy_us,
            wait_jiffies_max: 10,
            interval_jiffies: 1,
        }
    }

    fn is_longest(&self, nap_us: u64) -> bool {
        nap_us / u64::from(self.jiffy_us.max(1)) >= u64::from(self.wait_jiffies_max.max(1))
    }

    /// The nap after so many others of the phase, or the longest; and how many come before the
    /// longest. At most 100 steps, since half as long again that often is beyond every limit.
    fn nap_us(&self, naps: u32) -> (u64, u32) {
        let mut nap_us = u64::from(self.nap_us.max(1));
        let mut before = 0;
        while before < naps.min(100) && !self.is_longest(nap_us) {
            nap_us = nap_us.saturating_add((nap_us / 2).max(1));
            before += 1;
        }
        (nap_us, before)
    }

    fn nap(&self, naps: u32) -> Wait {
        let (nap_us, _) = self.nap_us(naps);
        let jiffies = nap_us / u64::from(self.jiffy_us.max(1));
        if jiffies == 0 {
            Wait::Microseconds(nap_us as u32) // below a jiffy, so it fits
        } else {
            Wait::Jiffies(jiffies.min(u64::from(self.wait_jiffies_max.max(1))) as u32)
        }
    }
}

impl Delay for AdaptiveDelay {
    fn extra_check(&self, _: &mut u32, now: Situation) -> bool {
        now.is_expedited
    }

    fn asks_after_each_check(&self) -> bool {
        false
    }

    fn spin_us(&self, _: bool) -> u32 {
        5
    }

    fn first_wait(&self, _: &mut u32, now: Situation) -> Wait {
        if now.is_expedited {
            Wait::Microseconds(self.first_nap_us)
        } else {
            Wait::Jiffies(self.interval_jiffies.min(1))
        }
    }

    fn wait(&self, count: &mut u32, now: Situation) -> Wait {
        if !now.is_expedited {
            let jiffies = self.interval_jiffies.saturating_add(now.age_jiffies.saturating_sub(1));
            return Wait::Jiffies(jiffies.min(self.wait_jiffies_max.max(1)));
        }
        let runs_max = self.runs_max.max(1);
        let (_, naps_max) = self.nap_us(u32::MAX);
        *count = count.saturating_add(1).min(runs_max.saturating_add(naps_max));
        if *count < runs_max { Wait::NONE } else { self.nap(*count - runs_max) }
    }

    fn callback_delay_jiffies(&self, _: &mut u32, now: Situation) -> u32 {
        u32::from(!now.is_expedited)
    }

    fn runs_per_jiffy_max(&self) -> u32 {
        // Grace periods that succeed at once cost no more than the caller spends between two.
        u32::MAX
    }
}
