//! What cannot be cut into slices: a boot, a stall, waits, programs side by side. In a *scene*
//! threads that do different things run at once.
//!
//! A scene counts by the rules of a slice, as far as they apply: its threads may sleep, may end one
//! after the other, and may lose their CPUs to a worker of the rival, which is the rival's affair.
//! So threads have to begin at once; the kernel says how long each waited for a CPU, and what
//! workers can have used meanwhile is subtracted. Time that a hypervisor stole is not seen.
//!
//! Invariants:
//! - No thread begins before all are ready.
//! - Threads that are not timed end when the timed ones have ended; if there are none, when the
//!   caller has.
//! - No thread waits for one that has panicked.

use std::fs;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use super::control::{Ball, Distances, Price, Prices, instructions_at_once};
use super::crew::{cores, own_cpus, pinned, spin_until};
use super::judge::{Flaw, Judged, Span, judge_scene};
use crate::clock::{cpu_time, now, thread_cpu_time};

/// What one thread of a scene does: it makes itself ready, and works once, by [`Cue::work`].
pub(crate) type Act<'a, R> = Box<dyn FnOnce(&Cue<'_>) -> Played<R> + Send + 'a>;

/// The work of one thread.
#[derive(Debug)]
pub(crate) struct Played<R> {
    pub(crate) result: R,
    /// From its beginning to its end.
    pub(crate) elapsed: Duration,
    span: Span,
    /// The CPU time of all threads of the process before and after.
    process_cpu: [Duration; 2],
}

impl<R> Played<R> {
    pub(crate) fn cpu(&self) -> Duration {
        Duration::from_nanos(self.span.cpu_ns)
    }
}

impl Played<u64> {
    /// So many by the second.
    pub(crate) fn per_second(&self) -> f64 {
        self.result as f64 / self.elapsed.as_secs_f64()
    }
}

/// When a thread of a scene begins, and when it is over.
pub(crate) struct Cue<'a> {
    threads: usize,
    ready: &'a AtomicUsize,
    ball: &'a Ball,
    /// The number of the thread, where several have CPUs of their own.
    placed: Option<usize>,
    stop: &'a AtomicI32,
    /// Another thread may need the CPU of one that waits.
    yields: bool,
    /// The others end when it has ended.
    is_timed: bool,
}

impl Cue<'_> {
    /// Does the work once all threads are ready. What is not timed is to end when the flag is not
    /// 0.
    ///
    /// # Panics
    /// If another thread has panicked before.
    pub(crate) fn work<R>(&self, work: impl FnOnce(&AtomicI32) -> R) -> Played<R> {
        self.meet();
        let at_once = self.placed.map_or(0, |_| instructions_at_once());
        let distance = self.placed.and_then(|me| self.ball.throw(me));
        // In this order before, and in the other one after: what looking takes is no worker's.
        let waited_before = run_delay_ns();
        let (process_before, cpu_before) = (cpu_time(), thread_cpu_time());
        let begin = now();
        let result = work(self.stop);
        let end = now();
        let (cpu, process_after) = (thread_cpu_time() - cpu_before, cpu_time());
        self.end();
        let span = Span {
            begin_ns: begin.as_nanos() as u64,
            end_ns: end.as_nanos() as u64,
            cpu_ns: cpu.as_nanos() as u64,
            waited_ns: run_delay_ns()
                .zip(waited_before)
                .map(|(now, before)| now.saturating_sub(before)),
            at_once,
            distance,
            ..Span::default()
        };
        Played { result, elapsed: end - begin, span, process_cpu: [process_before, process_after] }
    }

    /// Waits for all others. Where each has a CPU, all go on within a fraction of a microsecond.
    fn meet(&self) {
        // Release and Acquire: what the others have made ready is seen.
        self.ready.fetch_add(1, Ordering::Release);
        spin_until(self.yields, || {
            // Acquire: who ends it has seen all come, unless it has panicked.
            let is_over = self.stop.load(Ordering::Acquire) != 0;
            let are_here = self.ready.load(Ordering::Acquire) >= self.threads;
            assert!(are_here || !is_over, "no thread of a scene panics");
            are_here
        });
    }

    /// Has the others end, if it is timed.
    fn end(&self) {
        if self.is_timed {
            // Release: pairs with the Acquire in `meet`.
            self.stop.store(1, Ordering::Release);
        }
    }
}

impl Drop for Cue<'_> {
    fn drop(&mut self) {
        self.is_timed |= thread::panicking();
        self.end();
    }
}

/// What the threads of a scene did, in their order.
#[derive(Debug)]
pub(crate) struct Scene<R> {
    pub(crate) played: Vec<Played<R>>,
    timed: usize,
    is_crowded: bool,
    /// Its CPUs were one core, though there are enough, or not as far apart as those of most
    /// scenes.
    misplaced: Option<Flaw>,
}

/// Of callers before their scenes, that is alone; and of the scenes.
static SEEN: LazyLock<Mutex<(Prices, Distances)>> = LazyLock::new(Mutex::default);

/// How far apart the CPUs of most scenes were, in nanoseconds.
pub(crate) fn usual_distance_ns() -> Option<f64> {
    SEEN.lock().1.usual_ns()
}

impl<R: Send> Scene<R> {
    /// Has all acts played at once, each in a thread of its own, and on a CPU of its own where
    /// there are enough, and what the caller does beside them. The first `timed` acts are timed.
    pub(crate) fn play<'a, M>(
        timed: usize,
        acts: Vec<Act<'a, R>>,
        caller: impl FnOnce(&AtomicI32) -> M,
    ) -> (Scene<R>, M) {
        let (acting, cpus) = (acts.len(), own_cpus());
        let is_crowded = cpus.len() < acting;
        let price = Price::now();
        SEEN.lock().0.add(price);
        let (ready, stop, ball) = (&AtomicUsize::new(0), &AtomicI32::new(0), &Ball::default());
        let threads = acting + 1;
        let are_placed = acting > 1 && !is_crowded;
        let cue = |number: usize, is_timed, yields| {
            let placed = are_placed.then_some(number);
            Cue { threads, ready, ball, placed, stop, yields, is_timed }
        };
        thread::scope(|scope| {
            let start = |(number, act): (usize, Act<'a, R>)| {
                let cue = cue(number, number < timed, is_crowded);
                // A thread alone is best off where the kernel finds room for it.
                let cpu = cpus.get(number).filter(|_| are_placed).copied();
                scope.spawn(move || {
                    let _pinned = cpu.map(pinned);
                    act(&cue)
                })
            };
            // Before the threads: also where one of them cannot be started, the others end.
            let own = cue(acting, timed == 0, true);
            let started: Vec<_> = acts.into_iter().enumerate().map(start).collect();
            own.meet();
            let caller = caller(stop);
            own.end();
            let played = started.into_iter().map(|act| act.join().expect("no act panics"));
            let played: Vec<_> = played.collect();
            let misplaced = misplaced(&played, price, &cpus);
            (Scene { played, timed, is_crowded, misplaced }, caller)
        })
    }

    /// The same act in so many threads, all of which are timed; it gets the number of its thread.
    pub(crate) fn of(
        threads: usize,
        act: impl Fn(usize, &Cue<'_>) -> Played<R> + Sync,
    ) -> Scene<R> {
        let act = &act;
        let acts =
            (0..threads).map(|number| -> Act<'_, R> { Box::new(move |cue| act(number, cue)) });
        Scene::play(threads, acts.collect(), |_| ()).0
    }

    /// One act that is timed, and so many of another one that end with it.
    pub(crate) fn beside(
        backs: usize,
        back: impl Fn(&Cue<'_>) -> Played<R> + Sync,
        front: impl FnOnce(&Cue<'_>) -> Played<R> + Send,
    ) -> Scene<R> {
        let back = &back;
        let mut acts: Vec<Act<'_, R>> = vec![Box::new(front)];
        acts.extend((0..backs).map(|_| -> Act<'_, R> { Box::new(move |cue| back(cue)) }));
        Scene::play(1, acts, |_| ()).0
    }
}

impl<R> Scene<R> {
    /// The first of them, and the others.
    pub(crate) fn front(&self) -> (&Played<R>, &[Played<R>]) {
        self.played.split_first().expect("a scene has threads")
    }

    /// Whether it counts. Threads that are more than there are CPUs are not judged, which keep each
    /// other waiting; nor is a scene where the kernel does not say how long threads waited.
    pub(crate) fn judged(&self) -> Judged {
        let spans: Vec<Span> = self.played.iter().map(|played| played.span).collect();
        let workers_ns = self.workers_cpu().as_nanos() as u64;
        let is_known = spans.iter().all(|span| span.waited_ns.is_some());
        (is_known && !self.is_crowded).then(|| match judge_scene(&spans, workers_ns) {
            Ok(()) => self.misplaced.map_or(Ok(()), Err),
            judged => judged,
        })
    }

    /// The CPU time that the process's other threads used while it was played.
    pub(crate) fn workers_cpu(&self) -> Duration {
        let after = self.played.iter().map(|played| played.process_cpu[1]).max();
        (after.unwrap_or_default() - self.process_cpu_before()).saturating_sub(self.cpu(0))
    }

    /// The CPU time of the process since it began, but for that of threads that are not timed.
    pub(crate) fn cpu_since_it_began(&self) -> Duration {
        (cpu_time() - self.process_cpu_before()).saturating_sub(self.cpu(self.timed))
    }

    fn process_cpu_before(&self) -> Duration {
        self.played.iter().map(|played| played.process_cpu[0]).min().unwrap_or_default()
    }

    /// Of the threads from this one on.
    fn cpu(&self, from: usize) -> Duration {
        self.played[from..].iter().map(Played::cpu).sum()
    }

    /// Operations of all threads in a second, each of which did so many; and the CPU time for one
    /// in nanoseconds, that of workers and of what is freed afterwards included: what belongs to
    /// the work is done by now.
    pub(crate) fn speed(&self, each: f64) -> [f64; 2] {
        let operations = each * self.played.len() as f64;
        let cpu_ns = self.cpu_since_it_began().as_nanos() as f64;
        [operations / self.elapsed().as_secs_f64(), cpu_ns / operations]
    }

    /// From the first beginning to the last end: threads that share a CPU work one after the other.
    pub(crate) fn elapsed(&self) -> Duration {
        let spans = || self.played.iter().map(|played| &played.span);
        let begin = spans().map(|span| span.begin_ns).min().unwrap_or_default();
        let end = spans().map(|span| span.end_ns).max().unwrap_or_default();
        Duration::from_nanos(end - begin)
    }
}

/// What is wrong with the places of these threads, which have some of these CPUs of their own and,
/// if there are enough, cores.
fn misplaced<R>(played: &[Played<R>], alone: Price, cpus: &[usize]) -> Option<Flaw> {
    let (prices, distances) = &mut *SEEN.lock();
    let at_once = played.iter().map(|played| played.span.at_once).max()?;
    if prices.is_shared(alone.at_once(at_once)) {
        return (played.len() <= cores(cpus)).then_some(Flaw::Shared);
    }
    let distance = played[0].span.distance?;
    distances.add(distance);
    (!distances.is_usual(distance)).then_some(Flaw::Moved)
}

/// How long the calling thread has waited in the run queue: the second number of the kernel's
/// `schedstat`. Nothing where the kernel does not count it.
fn run_delay_ns() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::hint::spin_loop;

    use super::*;
    use crate::cases::object::turn;

    fn spin(work: Duration) {
        let begin = thread_cpu_time();
        while thread_cpu_time() - begin < work {}
    }

    #[test]
    fn those_at_the_back_work_as_long_as_the_front_and_their_time_is_told_apart() {
        let _turn = turn();
        let work = Duration::from_millis(3);
        let back = |cue: &Cue<'_>| {
            cue.work(|stop| {
                let mut turns = 0_u64;
                // Relaxed: it ends the loop.
                while turns == 0 || stop.load(Ordering::Relaxed) == 0 {
                    turns += 1;
                }
                turns
            })
        };
        let scene = Scene::beside(1, back, |cue| {
            cue.work(|_| {
                spin(work);
                0
            })
        });
        let [front, back] = &scene.played[..] else { panic!("{scene:?}") };
        assert!(back.result > 0 && back.elapsed > Duration::ZERO);
        assert!(front.cpu() >= work && front.elapsed >= work, "{scene:?}");
        assert!(scene.cpu_since_it_began() >= front.cpu(), "{scene:?}");
        assert_eq!(scene.judged().is_none(), own_cpus().len() < 2 || run_delay_ns().is_none());
        let moved = Scene { misplaced: Some(Flaw::Moved), is_crowded: false, ..scene };
        assert!(moved.judged().is_some_and(|judged| judged.is_err()), "{moved:?}");
    }

    #[test]
    fn those_side_by_side_do_all_of_their_work() {
        let _turn = turn();
        for threads in [1, 2, 64] {
            let ready = AtomicUsize::new(0);
            let scene = Scene::of(threads, |number, cue| {
                ready.fetch_add(1, Ordering::Relaxed);
                cue.work(|_| {
                    assert_eq!(ready.load(Ordering::Relaxed), threads, "none begins before");
                    number
                })
            });
            let numbers: Vec<usize> = scene.played.iter().map(|played| played.result).collect();
            assert_eq!(numbers, (0..threads).collect::<Vec<_>>());
            let speed = scene.speed(1.0);
            assert!(speed.iter().all(|figure| *figure > 0.0), "{speed:?}");
        }
    }

    fn played(span: Span) -> Played<()> {
        let elapsed = Duration::from_nanos(span.wall_ns());
        Played { result: (), elapsed, span, process_cpu: [Duration::ZERO; 2] }
    }

    /// It was taken for good where the cache line was not passed in time.
    #[test]
    fn a_core_that_threads_share_was_seen_only_where_their_distance_was() {
        let price = Price::now();
        SEEN.lock().0.add(price);
        let of = |at_once| {
            let one = || played(Span { at_once, ..Span::default() });
            // No CPUs of any machine, so each is a core.
            misplaced(&[one(), one()], price, &[100_000, 100_001])
        };
        assert_eq!([of(u64::MAX), of(0)], [Some(Flaw::Shared), None]);
    }

    #[test]
    fn threads_that_share_a_cpu_are_no_faster_than_one() {
        let turn = |begin_ns, end_ns| played(Span { begin_ns, end_ns, ..Span::default() });
        let played = vec![turn(5_000_000, 15_000_000), turn(15_000_000, 25_000_000)];
        let scene = Scene { played, timed: 2, is_crowded: true, misplaced: None };
        let [rate, _] = scene.speed(1000.0);
        assert!((rate - 100_000.0).abs() < 1.0, "2,000 in 20 ms: {rate}");
    }

    #[test]
    fn what_a_caller_does_ends_a_scene_of_which_nothing_is_timed() {
        let _turn = turn();
        let act: Act<'_, ()> = Box::new(|cue| {
            cue.work(|stop| {
                while stop.load(Ordering::Relaxed) == 0 {
                    spin_loop();
                }
            })
        });
        let (scene, said) = Scene::play(0, vec![act], |_| "done");
        assert_eq!((scene.played.len(), said), (1, "done"));
    }

    #[test]
    #[should_panic(expected = "no thread of a scene panics")]
    fn a_panic_before_the_beginning_keeps_no_thread_waiting() {
        let act = |number: usize, cue: &Cue<'_>| {
            assert_eq!(number, 0, "the other one");
            cue.work(|_| ())
        };
        Scene::of(2, act);
    }
}
