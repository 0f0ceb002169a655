//! The threads of a measurement: where they run, and that they do run when it begins.
//!
//! A reader that has been started but not scheduled yet makes every rival look as if there were no
//! reader. So an updater waits until its readers run, and where there are CPUs for all, each
//! thread has one of its own.

use std::fs;
use std::hint;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::slices::own_cpus;

/// Some threads that measure together.
#[derive(Debug)]
pub(crate) struct ThreadPool {
    threads: usize,
    running: AtomicUsize,
    /// The CPUs that the threads get, one each; empty if there are not enough.
    cpus: Vec<usize>,
}

impl ThreadPool {
    pub(crate) fn new(threads: usize) -> Self {
        let mut cpus = own_cpus();
        // A thread alone is best off where the kernel finds room for it.
        if threads == 1 || cpus.len() < threads {
            cpus.clear();
        }
        Self { threads, running: AtomicUsize::new(0), cpus }
    }

    /// Gives the calling thread the CPU of this number.
    pub(crate) fn settle(&self, number: usize) {
        if let Some(&cpu) = self.cpus.get(number) {
            let mut set = CpuSet::new();
            set.set(cpu);
            // Where it is forbidden, the kernel's own choice has to do.
            let _ = sched_setaffinity(None, &set);
        }
    }

    /// Says that the calling thread runs and is ready.
    pub(crate) fn report(&self) {
        // Release: pairs with the Acquire in `wait`; what was made ready is seen.
        self.running.fetch_add(1, Ordering::Release);
    }

    /// Waits until all threads but the caller run.
    pub(crate) fn wait(&self) {
        // Acquire: pairs with the Release in `report`.
        while self.running.load(Ordering::Acquire) + 1 < self.threads {
            // The others may need this CPU.
            thread::yield_now();
        }
    }

    /// Says that the calling thread runs, and waits for all others, without leaving the CPU unless
    /// there are too few of them: all go on within a fraction of a microsecond.
    pub(crate) fn meet(&self) {
        self.report();
        while self.running.load(Ordering::Acquire) < self.threads {
            if self.cpus.is_empty() {
                thread::yield_now();
            } else {
                hint::spin_loop();
            }
        }
    }
}

/// How much of the time the calling thread was not kept waiting for a CPU: what tells a measurement
/// beside a reader from one beside a reader that was not there. A thread that sleeps of its own
/// accord, as for a lock, is not kept waiting.
pub(crate) struct Presence {
    begin: Instant,
    delay_ns: u64,
}

impl Presence {
    pub(crate) fn new() -> Self {
        Self { begin: Instant::now(), delay_ns: run_delay_ns() }
    }

    /// The share since `new`, from 0 to 1.
    pub(crate) fn share(&self) -> f64 {
        let elapsed_ns = self.begin.elapsed().as_nanos().max(1) as f64;
        (1.0 - self.delay().as_nanos() as f64 / elapsed_ns).max(0.0)
    }

    /// `elapsed`, which passed since `new`, without what the thread was kept waiting meanwhile: the
    /// time of a neighbour who wanted the CPU is not the rival's. A wait that is longer was not in
    /// it, but just before or after.
    pub(crate) fn own_time(&self, elapsed: Duration) -> Duration {
        elapsed.checked_sub(self.delay()).filter(|own| !own.is_zero()).unwrap_or(elapsed)
    }

    /// How long the thread was kept waiting since `new`.
    pub(crate) fn delay(&self) -> Duration {
        Duration::from_nanos(run_delay_ns().saturating_sub(self.delay_ns))
    }
}

/// How long the calling thread has waited in the run queue: the second number of the kernel's
/// `schedstat`. 0 where the kernel does not count it, and then nothing looks disturbed.
fn run_delay_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0)
}

/// Tells readers to end when it is dropped, also when the updater panics: no thread waits for ever.
pub(crate) struct StopOnDrop<'a>(pub(crate) &'a AtomicI32);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        // Relaxed: it ends loops and publishes nothing.
        self.0.store(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_waits_of_its_own_accord_is_present() {
        let presence = Presence::new();
        let share = presence.share();
        assert!((0.0..=1.0).contains(&share), "{share}");
        let long_ago = Presence { begin: Instant::now(), delay_ns: u64::MAX };
        assert_eq!(long_ago.share(), 1.0, "nothing was waited for since");
        let second = Duration::from_secs(1);
        assert_eq!(long_ago.own_time(second), second);
    }

    #[test]
    fn a_pool_meets_whether_there_are_cpus_for_all_or_not() {
        for threads in [1, 2, 64] {
            let pool = ThreadPool::new(threads);
            let arrived = AtomicUsize::new(0);
            thread::scope(|scope| {
                for number in 0..threads {
                    let (pool, arrived) = (&pool, &arrived);
                    scope.spawn(move || {
                        pool.settle(number);
                        arrived.fetch_add(1, Ordering::Relaxed);
                        pool.meet();
                        assert_eq!(arrived.load(Ordering::Relaxed), threads);
                    });
                }
            });
        }
    }
}
