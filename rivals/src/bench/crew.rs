//! The threads of a measurement: where they run, and that they do run when it begins.
//!
//! A reader that has been started but not scheduled yet makes every rival look as if there were no
//! reader. So an updater waits until its readers run, and where there are CPUs for all, each
//! thread has one of its own.

use std::hint;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::thread;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Some threads that measure together.
#[derive(Debug)]
pub(super) struct Crew {
    threads: usize,
    running: AtomicUsize,
    /// The CPUs that the threads get, one each; empty if there are not enough.
    cpus: Vec<usize>,
}

impl Crew {
    pub(super) fn new(threads: usize) -> Self {
        let allowed = sched_getaffinity(None).unwrap_or_default();
        let mut cpus: Vec<_> = (0..CpuSet::MAX_CPU)
            .filter(|&cpu| allowed.is_set(cpu))
            .collect();
        // A thread alone is best off where the kernel finds room for it.
        if threads == 1 || cpus.len() < threads {
            cpus.clear();
        }
        Self {
            threads,
            running: AtomicUsize::new(0),
            cpus,
        }
    }

    /// Gives the calling thread the CPU of this number.
    pub(super) fn settle(&self, number: usize) {
        if let Some(&cpu) = self.cpus.get(number) {
            let mut set = CpuSet::new();
            set.set(cpu);
            // Where it is forbidden, the kernel's own choice has to do.
            let _ = sched_setaffinity(None, &set);
        }
    }

    /// Says that the calling thread runs and is ready.
    pub(super) fn report(&self) {
        // Release: pairs with the Acquire in `wait`; what was made ready is seen.
        self.running.fetch_add(1, Ordering::Release);
    }

    /// Waits until all threads but the caller run.
    pub(super) fn wait(&self) {
        // Acquire: pairs with the Release in `report`.
        while self.running.load(Ordering::Acquire) + 1 < self.threads {
            // The others may need this CPU.
            thread::yield_now();
        }
    }

    /// Says that the calling thread runs, and waits for all others, without leaving the CPU unless
    /// there are too few of them: all go on within a fraction of a microsecond.
    pub(super) fn meet(&self) {
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

/// Tells readers to end when it is dropped, also when the updater panics: nobody waits for ever.
pub(super) struct StopOnDrop<'a>(pub(super) &'a AtomicI32);

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
    fn a_crew_meets_whether_there_are_cpus_for_all_or_not() {
        for threads in [1, 2, 64] {
            let crew = Crew::new(threads);
            let arrived = AtomicUsize::new(0);
            thread::scope(|scope| {
                for number in 0..threads {
                    let (crew, arrived) = (&crew, &arrived);
                    scope.spawn(move || {
                        crew.settle(number);
                        arrived.fetch_add(1, Ordering::Relaxed);
                        crew.meet();
                        assert_eq!(arrived.load(Ordering::Relaxed), threads);
                    });
                }
            });
        }
    }
}
