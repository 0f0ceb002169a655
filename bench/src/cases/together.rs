//! Threads that work at the same time: one in front, whose work is measured, others at its back
//! ([`together`]); or all side by side ([`side_by_side`]).
//!
//! What a thread was kept waiting for a CPU is reported apart: by this process's own other threads
//! (a rival's worker, which is the rival's affair), or by a neighbour, which is no rival's fault.

use std::sync::atomic::AtomicI32;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::object::LineGuard;
use super::thread_pool::{Presence, StopOnDrop, ThreadPool};
use crate::cases::clock::{cpu_time, thread_cpu_time};

/// The work of one thread, and what it cost.
#[derive(Debug)]
pub(crate) struct TimedWork<R> {
    pub(crate) result: R,
    begin: Instant,
    /// From its beginning to its end.
    pub(crate) elapsed: Duration,
    /// How long of that it was kept waiting for a CPU.
    waited: Duration,
    /// Its CPU time.
    pub(crate) cpu: Duration,
    /// All that its thread had used in the end, earlier work included.
    thread_cpu: Duration,
    /// The CPU time of all threads of the process: before the work, and after it.
    process_cpu: (Duration, Duration),
}

impl<R> TimedWork<R> {
    pub(crate) fn of(work: impl FnOnce() -> R) -> Self {
        let presence = Presence::new();
        let (process_before, cpu_before) = (cpu_time(), thread_cpu_time());
        let begin = Instant::now();
        let result = work();
        let elapsed = begin.elapsed();
        let (cpu_after, process_after) = (thread_cpu_time(), cpu_time());
        Self {
            result,
            begin,
            elapsed,
            waited: presence.delay().min(elapsed),
            cpu: cpu_after.saturating_sub(cpu_before),
            thread_cpu: cpu_after,
            process_cpu: (process_before, process_after),
        }
    }

    /// The CPU time of the process's other threads meanwhile.
    pub(crate) fn others_cpu(&self) -> Duration {
        let (before, after) = self.process_cpu;
        after.saturating_sub(before).saturating_sub(self.cpu)
    }

    /// The CPU time of the whole process when the work began.
    pub(crate) fn process_cpu_before(&self) -> Duration {
        self.process_cpu.0
    }

    /// `elapsed` without the part that neighbours are to blame for, when the other threads of this
    /// process used `others_cpu` meanwhile. Never less than the work took of the CPU.
    pub(crate) fn own_time(&self, others_cpu: Duration) -> Duration {
        (self.elapsed - self.waited.saturating_sub(others_cpu)).max(self.cpu.min(self.elapsed))
    }
}

/// What [`together`] saw.
#[derive(Debug)]
pub(crate) struct Together<F, B> {
    pub(crate) front: TimedWork<F>,
    pub(crate) backs: Vec<TimedWork<B>>,
    /// CPU time of the process's other threads while the front worked.
    pub(crate) others_cpu: Duration,
    /// What the backs had used when the front began.
    backs_cpu_before: Duration,
}

impl<F, B> Together<F, B> {
    /// How long the front worked, but for neighbours.
    pub(crate) fn front_time(&self) -> Duration {
        self.front.own_time(self.others_cpu)
    }

    /// The least share of its time that one of the others was not kept waiting by neighbours.
    pub(crate) fn backs_share(&self) -> f64 {
        let share = |back: &TimedWork<B>| {
            back.own_time(self.others_cpu).as_secs_f64() / back.elapsed.as_secs_f64().max(1e-9)
        };
        self.backs.iter().map(share).fold(1.0, f64::min)
    }

    /// CPU time of all threads of the process since the front began, but for the backs'.
    pub(crate) fn cpu_since_front_began(&self) -> Duration {
        let all: Duration = self.backs.iter().map(|back| back.thread_cpu).sum();
        let backs = all.saturating_sub(self.backs_cpu_before);
        cpu_time().saturating_sub(self.front.process_cpu.0).saturating_sub(backs)
    }
}

/// Where one of the threads begins its work, once it is ready.
pub(crate) struct Gate<'a> {
    pool: &'a ThreadPool,
    stop: &'a AtomicI32,
    front: bool,
    backs: &'a Clocks,
}

/// The CPU clocks of the backs, and what they showed when the front began and ended.
#[derive(Debug, Default)]
struct Clocks {
    all: Mutex<Vec<ThreadClock>>,
    shown: OnceLock<(Duration, Duration)>,
}

impl Clocks {
    fn add(&self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).push(ThreadClock::own());
    }

    /// The sum of all. Their threads have not ended.
    fn sum(&self) -> Duration {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(ThreadClock::now).sum()
    }
}

impl Gate<'_> {
    /// Does the work, which in the back ends when the flag is not 0. The front waits until all
    /// others are here; when it has done its work, the flag is set.
    pub(crate) fn work<R>(&self, work: impl FnOnce(&AtomicI32) -> R) -> TimedWork<R> {
        if self.front {
            self.pool.wait();
            // They go on until they are asked to stop, so their clocks can be read until then.
            let _stop = StopOnDrop(self.stop);
            let before = self.backs.sum();
            let timed = TimedWork::of(|| work(self.stop));
            let first = self.backs.shown.set((before, self.backs.sum()));
            assert!(first.is_ok(), "a gate is gone through once");
            timed
        } else {
            self.backs.add();
            self.pool.report();
            TimedWork::of(|| work(self.stop))
        }
    }
}

/// Runs `front` and so many times `back`, each in a thread of its own with a line of its own. Each
/// makes itself ready and then goes through its gate, once.
pub(crate) fn together<F: Send, B: Send>(
    backs: usize,
    back: impl Fn(&Gate<'_>) -> TimedWork<B> + Sync,
    front: impl FnOnce(&Gate<'_>) -> TimedWork<F> + Send,
) -> Together<F, B> {
    let stop = AtomicI32::new(0);
    let pool = ThreadPool::new(backs + 1);
    let clocks = Clocks::default();
    let (front, backs) = thread::scope(|scope| {
        let (pool, stop, clocks, back) = (&pool, &stop, &clocks, &back);
        let backs: Vec<_> = (1..=backs)
            .map(|number| {
                scope.spawn(move || {
                    let _line_guard = LineGuard::take(number);
                    pool.settle(number);
                    back(&Gate { pool, stop, front: false, backs: clocks })
                })
            })
            .collect();
        let front = scope.spawn(move || {
            // Also if it panics before its gate: no thread waits for ever.
            let _stop = StopOnDrop(stop);
            let _line_guard = LineGuard::take(0);
            pool.settle(0);
            front(&Gate { pool, stop, front: true, backs: clocks })
        });
        let front = front.join().expect("the front does not panic");
        let backs = backs.into_iter().map(|b| b.join().expect("the backs do not panic"));
        (front, backs.collect::<Vec<_>>())
    });
    let (before, after) = clocks.shown.into_inner().expect("the front has gone through its gate");
    let others_cpu = front.others_cpu().saturating_sub(after.saturating_sub(before));
    Together { front, backs, others_cpu, backs_cpu_before: before }
}

/// What [`side_by_side`] saw: of each thread its state, and its work.
#[derive(Debug)]
pub(crate) struct SideBySide<T>(Vec<(T, TimedWork<()>)>);

/// How fast threads work that do the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Operations of all threads in a second, without what neighbours took.
    pub operations_per_second: f64,
    /// CPU time for an operation, that of workers and of what is freed afterwards included.
    pub cpu_ns: f64,
    /// The least share of its time that one of several threads was not kept waiting by neighbours,
    /// less the share in which not all of them had begun: the others worked without it. 1 of a
    /// thread alone.
    pub together_share: f64,
}

/// Runs `work` in so many threads that begin at the same time, each with a line and, where there
/// are enough, a CPU of its own, and with what `ready` has made there for its number.
pub(crate) fn side_by_side<T: Send>(
    threads: usize,
    ready: impl Fn(usize) -> T + Sync,
    work: impl Fn(&mut T) + Sync,
) -> SideBySide<T> {
    let pool = ThreadPool::new(threads);
    thread::scope(|scope| {
        let (pool, ready, work) = (&pool, &ready, &work);
        let threads: Vec<_> = (0..threads)
            .map(|number| {
                scope.spawn(move || {
                    let _line_guard = LineGuard::take(number);
                    pool.settle(number);
                    let mut state = ready(number);
                    pool.meet();
                    let timed = TimedWork::of(|| work(&mut state));
                    (state, timed)
                })
            })
            .collect();
        SideBySide(threads.into_iter().map(|t| t.join().expect("no thread panics")).collect())
    })
}

impl<T> SideBySide<T> {
    /// What the threads had, after their work.
    pub(crate) fn states(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(state, _)| state)
    }

    /// Of threads that did `each` operations each. All that belongs to the work is done by now.
    pub(crate) fn speed(&self, each: f64) -> Speed {
        let timeds = || self.0.iter().map(|(_, timed)| timed);
        // From when the first began: while it waited for the others, it span.
        let before = timeds().map(TimedWork::process_cpu_before).min().unwrap_or_default();
        let cpu = cpu_time().saturating_sub(before);
        let all_cpu: Duration = timeds().map(|timed| timed.cpu).sum();
        let others = |timed: &TimedWork<()>| {
            timed.others_cpu().saturating_sub(all_cpu.saturating_sub(timed.cpu))
        };
        let own_time = |timed: &TimedWork<()>| timed.own_time(others(timed));
        let own: Duration = timeds().map(own_time).sum();
        let share = |timed: &TimedWork<()>| {
            own_time(timed).as_secs_f64() / timed.elapsed.as_secs_f64().max(1e-9)
        };
        let least = timeds().map(share).fold(1.0, f64::min);
        let begins = timeds().map(|timed| (timed.begin, timed.elapsed));
        let threads = self.0.len() as f64;
        Speed {
            operations_per_second: each * threads / (own.as_secs_f64() / threads),
            cpu_ns: cpu.as_nanos() as f64 / (each * threads),
            together_share: if threads > 1.0 { least * begun_share(begins) } else { 1.0 },
        }
    }
}

/// The share of the longest work at whose time all had begun theirs.
fn begun_share(works: impl Iterator<Item = (Instant, Duration)> + Clone) -> f64 {
    let begins = works.clone().map(|(begin, _)| begin);
    let (first, last) = (begins.clone().min(), begins.max());
    let late = first.zip(last).map_or(Duration::ZERO, |(first, last)| last.duration_since(first));
    let longest = works.map(|(_, elapsed)| elapsed).max().unwrap_or_default();
    (1.0 - late.as_secs_f64() / longest.as_secs_f64().max(1e-9)).max(0.0)
}

/// The CPU clock of a thread, for others to read until it ends.
#[derive(Debug)]
struct ThreadClock(libc::clockid_t);

impl ThreadClock {
    fn own() -> Self {
        let mut clock = libc::CLOCK_THREAD_CPUTIME_ID;
        // SAFETY: it takes no arguments, and the calling thread is alive.
        let thread = unsafe { libc::pthread_self() };
        // SAFETY: the thread is the calling one, and there is room for the answer.
        let error = unsafe { libc::pthread_getcpuclockid(thread, &raw mut clock) };
        assert_eq!(error, 0, "every thread has a CPU clock");
        Self(clock)
    }

    fn now(&self) -> Duration {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: there is room for the answer; a clock whose thread has ended is an error.
        let error = unsafe { libc::clock_gettime(self.0, &raw mut time) };
        assert_eq!(error, 0, "the thread is still there");
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::cases::object::Turn;

    #[test]
    fn the_others_work_for_as_long_as_the_front_and_their_time_is_told_apart() {
        let _turn = Turn::wait();
        let spin = |gate: &Gate<'_>| {
            gate.work(|stop| {
                let mut turns = 0_u64;
                while stop.load(Ordering::Relaxed) == 0 {
                    turns += 1;
                }
                turns
            })
        };
        let seen = together(1, spin, |gate| {
            gate.work(|_| {
                let begin = thread_cpu_time();
                while thread_cpu_time() - begin < Duration::from_millis(3) {}
            })
        });
        assert!(seen.backs[0].elapsed > Duration::ZERO);
        assert!(seen.backs_cpu_before < seen.backs[0].thread_cpu, "{seen:?}");
        assert!(seen.front.cpu >= Duration::from_millis(3), "{seen:?}");
        assert!(seen.front_time() <= seen.front.elapsed);
        assert!((0.0..=1.0).contains(&seen.backs_share()), "{seen:?}");
        assert!(seen.cpu_since_front_began() >= seen.front.cpu, "{seen:?}");
    }

    #[test]
    fn a_thread_that_begins_late_leaves_the_others_alone() {
        let (now, ms) = (Instant::now(), Duration::from_millis);
        let share = |late| begun_share([(now, ms(10)), (now + ms(late), ms(8))].into_iter());
        assert_eq!(share(0), 1.0);
        assert!((share(1) - 0.9).abs() < 1e-9, "{}", share(1));
        assert_eq!(share(30), 0.0, "one after the other");
    }

    #[test]
    fn threads_side_by_side_are_together_or_said_not_to_be() {
        let _turn = Turn::wait();
        let spin = |(): &mut ()| {
            let begin = thread_cpu_time();
            while thread_cpu_time() - begin < Duration::from_millis(3) {}
        };
        let alone = side_by_side(1, |_| (), spin).speed(1.0);
        assert_eq!(alone.together_share, 1.0);
        let both = side_by_side(2, |_| (), spin).speed(1.0);
        assert!((0.0..=1.0).contains(&both.together_share), "{both:?}");
    }

    #[test]
    fn time_that_neighbours_took_is_not_counted_and_that_of_own_workers_is() {
        let ms = Duration::from_millis;
        let timed = TimedWork {
            result: (),
            begin: Instant::now(),
            elapsed: ms(10),
            waited: ms(4),
            cpu: ms(5),
            thread_cpu: ms(5),
            process_cpu: (ms(0), ms(9)),
        };
        assert_eq!(timed.own_time(Duration::ZERO), ms(6), "all neighbours");
        assert_eq!(timed.own_time(ms(1)), ms(7));
        assert_eq!(timed.own_time(ms(9)), ms(10), "all our own");
        let timed = TimedWork { cpu: ms(8), ..timed };
        assert_eq!(
            timed.own_time(Duration::ZERO),
            ms(8),
            "it ran for that long, whatever the books say"
        );
    }
}
