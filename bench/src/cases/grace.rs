//! How long a grace period takes, and what waiting for it costs the readers.
//!
//! [`idle`] threads are registered and do nothing, each of them with every rival, so that all of
//! these wait for the same crowd: the threads are real, and parked in the kernel. A thread that
//! asks for grace periods, and who reads meanwhile, comes and goes with each measurement.

use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::crowd::Rest;
use super::object::turn;
use super::wait::{Flavour, chain};
use crate::clock::{TICKS_MAX, cpu_time, histogram, ns_of, ticks};
use crate::sample::Sample;
use crate::slices::{Cue, Judged, Scene};

/// Grace periods before the first one that counts.
const WARM_UP: usize = 8;

/// What an idle thread of a [`crowd`](super::crowd) does: it is registered with all of these.
///
/// liburcu has one domain in a process: at most one set of idle threads at a time that has its
/// rivals.
pub(crate) fn idle(flavours: &[Box<dyn Flavour>]) -> impl Fn(usize, Rest<'_>) + Sync {
    |_, rest| {
        let _idle: Vec<_> = flavours.iter().map(|flavour| flavour.enrol_idle()).collect();
        rest.until_sent();
    }
}

/// So many readers of a rival, which enter and leave sections of so many steps of a [`chain`] (see
/// [`steps_for`]).
pub(crate) struct Beside<'a> {
    pub(crate) flavour: &'a dyn Flavour,
    pub(crate) readers: usize,
    pub(crate) steps: u32,
}

impl Beside<'_> {
    /// Waits for grace periods one after another until `budget` is used up: the median time of one
    /// in nanoseconds, and what one in a hundred exceeds. With no steps readers never hold up a
    /// grace period for long; with some, it waits for them to arrive as long again.
    pub(crate) fn measure(&self, budget: Duration) -> Sample {
        let (waits, judged) = self.waits(budget);
        Sample::new([0.50, 0.99].map(|at| ns_of(waits.value_at_quantile(at))), judged)
    }

    fn waits(&self, budget: Duration) -> (Histogram<u64>, Judged) {
        let (has_steps, mut waits) = (self.steps > 0, histogram(TICKS_MAX));
        let (_, judged) = self.play(|synchronize| {
            let begin = Instant::now();
            let mut count = 0;
            // Readers with sections of some length may be more than there are CPUs: until they have
            // all come to read, a grace period waits for no thread, and there would be many of
            // these.
            while count < WARM_UP || (has_steps && begin.elapsed() < budget) {
                synchronize();
                count += 1;
                if has_steps {
                    thread::yield_now();
                }
            }
            let first = Instant::now();
            loop {
                let begin = ticks();
                synchronize();
                waits.saturating_record(ticks().saturating_sub(begin));
                if first.elapsed() >= budget {
                    break;
                }
            }
        });
        (waits, judged)
    }

    /// Lets the readers read, and one updater wait for grace periods in a loop, all on whatever
    /// CPUs there are.
    pub(crate) fn contend(&self, run_for: Duration) -> Sample {
        let mut grace_periods_per_second = 0.0;
        let cpu_before = cpu_time();
        let begin = Instant::now();
        let (reads, _) = self.play(|synchronize| {
            let begin = Instant::now();
            let mut count = 0_u64;
            let mut elapsed = Duration::ZERO;
            while elapsed < run_for {
                synchronize();
                count += 1;
                elapsed = begin.elapsed();
            }
            grace_periods_per_second = count as f64 / elapsed.as_secs_f64();
        });
        let reads_per_second = reads as f64 / begin.elapsed().as_secs_f64();
        let cpu = cpu_time().saturating_sub(cpu_before);
        let reads_per_cpu_second = reads as f64 / cpu.as_secs_f64();
        // Readers waiting for a CPU are the point here.
        let values = [reads_per_cpu_second, reads_per_second, grace_periods_per_second];
        Sample::new(values, None)
    }

    /// Runs `update` beside the readers; counts their sections, and tells whether it counts.
    fn play(&self, update: impl FnOnce(&mut dyn FnMut()) + Send) -> (u64, Judged) {
        let _turn = turn();
        let &Beside { flavour, readers, steps } = self;
        let read = |cue: &Cue<'_>| {
            let mut member = flavour.enrol();
            cue.work(|stop| member.read_until(stop, steps))
        };
        let scene = Scene::beside(readers, read, |cue| {
            let mut member = flavour.enrol();
            cue.work(|_| {
                update(&mut || member.synchronize());
                0
            })
        });
        (scene.played.iter().map(|played| played.result).sum(), scene.judged())
    }
}

/// How many steps of a section take so long here, as measured now.
pub(crate) fn steps_for(section_us: u64) -> u32 {
    const STEPS: u32 = 1 << 14;
    if section_us == 0 {
        return 0;
    }
    let mut x = 1;
    // The fastest of many short runs: in none of the others did more than that get done.
    let fastest = (0..100)
        .map(|_| {
            let begin = Instant::now();
            x = chain(x, STEPS);
            begin.elapsed()
        })
        .min()
        .unwrap_or_default();
    std::hint::black_box(x);
    let section = Duration::from_micros(section_us);
    let steps = section.as_secs_f64() / fastest.as_secs_f64() * f64::from(STEPS);
    (steps as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rivals;

    #[test]
    fn a_budget_of_nothing_is_one_wait() {
        let (_, wait) = rivals::that(|rival| rival.wait).next().expect("one waits");
        let beside = Beside { flavour: &*wait(), readers: 1, steps: 0 };
        assert_eq!(beside.waits(Duration::ZERO).0.len(), 1);
    }

    #[test]
    fn a_longer_section_has_more_steps() {
        assert!(steps_for(1_000) > steps_for(1) && steps_for(0) == 0);
    }
}
