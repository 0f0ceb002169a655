//! How long a grace period takes, and what waiting for it costs the readers.
//!
//! [`IdleThreads`] are a crowd of registered threads that sit idle, each of them registered with
//! every rival, so that all rivals wait for the same crowd: the threads are real, and parked in the
//! kernel. A thread that asks for grace periods, and who reads meanwhile, comes and goes with each
//! measurement.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::crowd::Crowd;
use super::object::Turn;
use super::wait::{Flavour, chain};
use crate::cases::clock::cpu_time;
use crate::rivals::Rival;
use crate::slices::{Cue, Judged, Scene};

/// Grace periods before the first one that counts.
const WARM_UP: usize = 8;

/// The longest grace period that is distinguished from longer ones.
const LATENCY_MAX_NS: u64 = 60_000_000_000;

/// What [`IdleThreads::measure`] saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// Grace periods that were waited for.
    pub count: u64,
    /// The median, in nanoseconds, without the cost of reading the clock.
    pub p50_ns: f64,
    /// Exceeded by one grace period in a hundred.
    pub p99_ns: f64,
    /// Whether it counts.
    pub(crate) judged: Judged,
}

/// What [`IdleThreads::contend`] saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contention {
    /// Sections of all readers, from the start of the first to the end of the last.
    pub reads_per_second: f64,
    /// The same for each second of CPU time that the process used, readers and updater together:
    /// what is left of it when somebody else wants the CPUs too.
    pub reads_per_cpu_second: f64,
    /// Grace periods of the one updater, once all readers ran.
    pub grace_periods_per_second: f64,
}

/// The rivals that have grace periods.
#[cfg(test)]
pub(crate) fn rivals() -> Vec<&'static Rival> {
    super::those(|rival| rival.wait.is_some() && !rival.is_restartable)
}

/// The same, and those whose updaters wait for none.
#[cfg(test)]
pub(crate) fn rivals_and_restartable() -> Vec<&'static Rival> {
    super::those(|rival| rival.wait.is_some())
}

fn domain(rival: &Rival) -> Arc<dyn Flavour> {
    (rival.wait.expect("only rivals that wait are asked"))()
}

/// Idle threads that are registered with every rival, and one domain of each rival.
pub struct IdleThreads {
    flavours: Vec<(&'static str, Arc<dyn Flavour>)>,
    idle: Crowd,
    clock_ns: u64,
}

impl std::fmt::Debug for IdleThreads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Idle threads").field("idle", &self.idle.len()).finish_non_exhaustive()
    }
}

impl IdleThreads {
    /// Gathers so many idle threads, all registered when this returns.
    ///
    /// liburcu has one domain in a process: at most one set of idle threads at a time that has its
    /// rivals.
    ///
    /// # Errors
    /// When the system does not give so many threads.
    pub fn gather(rivals: &[&Rival], idle: usize) -> io::Result<Self> {
        let flavours: Vec<_> = rivals.iter().map(|rival| (rival.name, domain(rival))).collect();
        let all: Vec<_> = flavours.iter().map(|(_, flavour)| Arc::clone(flavour)).collect();
        let enrol = move |rest: &dyn Fn()| {
            let _idle: Vec<_> = all.iter().map(|flavour| flavour.enrol_idle()).collect();
            rest();
        };
        Ok(Self { flavours, idle: Crowd::gather(idle, enrol)?, clock_ns: clock_ns() })
    }

    /// Waits for grace periods one after another until `budget` is used up, while `readers` threads
    /// read without pause. The thread that waits is registered with the rival.
    ///
    /// # Panics
    /// When the idle threads were gathered without this rival.
    pub fn measure(&self, rival: &Rival, readers: usize, budget: Duration) -> Latency {
        self.measure_sections(rival, readers, 0, budget)
    }

    /// The same beside readers whose sections take so many steps: see [`steps_for`]. Before it
    /// counts, grace periods are waited for for as long again.
    ///
    /// # Panics
    /// As [`measure`](Self::measure).
    pub fn measure_sections(
        &self,
        rival: &Rival,
        readers: usize,
        steps: u32,
        budget: Duration,
    ) -> Latency {
        let mut waits = Histogram::<u64>::new_with_bounds(1, LATENCY_MAX_NS, 3)
            .expect("the bounds are constants in range");
        let (_, judged) = self.beside_readers(rival, readers, steps, |synchronize| {
            let begin = Instant::now();
            let mut count = 0;
            // Readers with sections of some length may be more than there are CPUs: until they have
            // all come to read, a grace period waits for no thread, and there would be many of
            // these.
            while count < WARM_UP || (steps > 0 && begin.elapsed() < budget) {
                synchronize();
                count += 1;
                if steps > 0 {
                    thread::yield_now();
                }
            }
            let first = Instant::now();
            loop {
                let begin = Instant::now();
                synchronize();
                let end = Instant::now();
                waits.saturating_record(((end - begin).as_nanos() as u64).max(1));
                if end - first >= budget {
                    break;
                }
            }
        });
        let without_clock = |ns: u64| ns.saturating_sub(self.clock_ns).max(1) as f64;
        Latency {
            count: waits.len(),
            p50_ns: without_clock(waits.value_at_quantile(0.50)),
            p99_ns: without_clock(waits.value_at_quantile(0.99)),
            judged,
        }
    }

    /// Lets `readers` threads read in sections of `steps` steps (see [`steps_for`]), and one
    /// updater wait for grace periods in a loop, all on whatever CPUs there are.
    ///
    /// # Panics
    /// When the idle threads were gathered without this rival.
    pub fn contend(
        &self,
        rival: &Rival,
        readers: usize,
        steps: u32,
        run_for: Duration,
    ) -> Contention {
        let mut grace_periods_per_second = 0.0;
        let cpu_before = cpu_time();
        let begin = Instant::now();
        let (reads, _) = self.beside_readers(rival, readers, steps, |synchronize| {
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
        Contention { reads_per_second, reads_per_cpu_second, grace_periods_per_second }
    }

    /// Runs `update` beside so many readers; counts their sections, and tells whether it counts.
    fn beside_readers(
        &self,
        rival: &Rival,
        readers: usize,
        steps: u32,
        update: impl FnOnce(&mut dyn FnMut()) + Send,
    ) -> (u64, Judged) {
        let _turn = Turn::wait();
        let (_, flavour) = self
            .flavours
            .iter()
            .find(|(name, _)| *name == rival.name)
            .expect("the idle threads were gathered for this rival");
        let read = |cue: &Cue<'_>| {
            let mut member = flavour.enrol();
            cue.work(|stop| member.read_until(stop, steps, &mut 1))
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

/// How many steps of a section take this long here, as measured now.
pub fn steps_for(section: Duration) -> u32 {
    const STEPS: u32 = 1 << 14;
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
    let steps = section.as_secs_f64() / fastest.as_secs_f64() * f64::from(STEPS);
    (steps as u32).max(1)
}

/// What two looks at the clock with nothing between them show: the least of many, so that it is
/// never more than what was paid.
fn clock_ns() -> u64 {
    let look = || {
        let begin = Instant::now();
        begin.elapsed().as_nanos() as u64
    };
    (0..1000).map(|_| look()).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// liburcu has one domain only.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    fn everybody() -> Vec<&'static Rival> {
        rivals()
    }

    #[test]
    fn every_rival_ends_its_grace_periods_in_any_idle_threads() {
        let _one = ONE_AT_A_TIME.lock().unwrap();
        for idle in [0, 20] {
            let everybody = rivals_and_restartable();
            let idle_threads = IdleThreads::gather(&everybody, idle).unwrap();
            for rival in everybody {
                for readers in [0, 1] {
                    let latency = idle_threads.measure(rival, readers, Duration::ZERO);
                    assert_eq!(latency.count, 1, "{}: a budget of nothing is one", rival.name);
                    assert!(latency.p50_ns <= latency.p99_ns);
                }
            }
        }
    }

    #[test]
    fn readers_and_updater_both_get_on_when_cpus_are_short() {
        let _one = ONE_AT_A_TIME.lock().unwrap();
        let idle_threads = IdleThreads::gather(&everybody(), 0).unwrap();
        for rival in rivals() {
            let contention = idle_threads.contend(rival, 3, 100, Duration::from_nanos(1));
            assert!(contention.grace_periods_per_second > 0.0, "{}", rival.name);
        }
    }

    #[test]
    fn a_longer_section_has_more_steps() {
        assert!(steps_for(Duration::from_millis(1)) > steps_for(Duration::from_nanos(1)));
    }
}
