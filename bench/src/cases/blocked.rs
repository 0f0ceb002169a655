//! What waiting costs when a reader stays in its section for long: CPU time, and how long the
//! waiting side runs without a sleep.
//!
//! The waiting side is every thread of the process but the one that holds the section and looks:
//! a rival may have somebody else do its waiting.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::kernel_says;
use super::object::turn;
use crate::clock::{cpu_time, thread_cpu_time};
use crate::sample::Sample;
use crate::serve::Domain;

/// From one look at the threads to the next. A stretch may be taken for longer than it was by what
/// the thread ran between two looks, never for shorter.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Waits for one reader that stays in its section for so long. Of the waiting side: its CPU time,
/// in per cent of one CPU; the longest CPU time of one thread between two sleeps, in nanoseconds;
/// sleeps by the second, of all its threads; and nanoseconds from the end of the section until it
/// knew it.
///
/// # Panics
/// If the waiter came back while the reader was in its section.
pub(crate) fn measure<D: Domain>(domain: &D, blocked_for: Duration) -> Sample {
    let _turn = turn();
    let is_over = AtomicBool::new(false);
    let (begun, has_begun) = mpsc::channel();
    thread::scope(|scope| {
        let ([cpu, stretch, sleeps], waiter) = domain.read(|| {
            let is_over = &is_over;
            let waiter = scope.spawn(move || {
                // Fails only if who holds the section is gone; then no thread looks.
                let _ = begun.send(());
                domain.wait_in_a_hurry();
                // Release: pairs with the Acquire below.
                is_over.store(true, Ordering::Release);
                Instant::now()
            });
            has_begun.recv().expect("the waiter says that it begins");
            let seen = look_on(blocked_for);
            // Acquire: pairs with the Release of the waiter.
            assert!(!is_over.load(Ordering::Acquire), "the waiter did not wait");
            (seen, waiter)
        });
        let left = Instant::now();
        let answered = waiter.join().expect("the waiter does not panic");
        let answer = answered.saturating_duration_since(left);
        Sample::new([cpu, stretch, sleeps, answer.as_nanos() as f64], None)
    })
}

/// Looks at all other threads until so much time has passed.
fn look_on(duration: Duration) -> [f64; 3] {
    let begin = Instant::now();
    let others_cpu = || cpu_time().saturating_sub(thread_cpu_time());
    let cpu_before = others_cpu();
    let mut watch = Watch::default();
    watch.look();
    while begin.elapsed() < duration {
        thread::sleep(LOOK_EVERY.min(duration.saturating_sub(begin.elapsed())));
        watch.look();
    }
    let cpu = others_cpu().saturating_sub(cpu_before);
    let elapsed = begin.elapsed().as_secs_f64();
    let [stretch_ns, sleeps] = watch.seen();
    [100.0 * cpu.as_secs_f64() / elapsed, stretch_ns, sleeps / elapsed]
}

/// What the threads of this process do, but for the one that looks.
#[derive(Debug, Default)]
struct Watch(BTreeMap<String, Followed>);

/// One thread.
#[derive(Clone, Copy, Debug)]
struct Followed {
    first: Books,
    last: Books,
    /// CPU time when it had surely not slept since.
    awake_since_ns: u64,
    stretch_ns: u64,
}

/// What the kernel writes down of a thread.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Books {
    cpu_ns: u64,
    /// Times that it gave up its CPU of its own accord.
    sleeps: u64,
}

impl Watch {
    fn look(&mut self) {
        let own = rustix::thread::gettid().as_raw_nonzero().to_string();
        for entry in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
            let thread = entry.file_name().to_string_lossy().into_owned();
            // A thread may end meanwhile: it is not there any more.
            if thread != own
                && let Some(now) = Books::of(&thread)
            {
                self.0.entry(thread).or_insert_with(|| Followed::new(now)).go_on(now);
            }
        }
    }

    /// The longest stretch, in nanoseconds, and all sleeps; NaN where no thread was followed.
    fn seen(&self) -> [f64; 2] {
        let Some(stretch_ns) = self.0.values().map(|thread| thread.stretch_ns).max() else {
            return [f64::NAN; 2];
        };
        let sleeps = |thread: &Followed| thread.last.sleeps - thread.first.sleeps;
        [stretch_ns, self.0.values().map(sleeps).sum()].map(|seen| seen as f64)
    }
}

impl Followed {
    fn new(now: Books) -> Self {
        Self { first: now, last: now, awake_since_ns: now.cpu_ns, stretch_ns: 0 }
    }

    fn go_on(&mut self, now: Books) {
        self.stretch_ns = self.stretch_ns.max(now.cpu_ns.saturating_sub(self.awake_since_ns));
        if now.sleeps != self.last.sleeps {
            // It may have slept right after the last look, and not since.
            self.awake_since_ns = self.last.cpu_ns;
        }
        self.last = now;
    }
}

impl Books {
    /// Nothing if there is no such thread, or no such books.
    fn of(thread: &str) -> Option<Self> {
        let says = |book, name| kernel_says(&format!("/proc/self/task/{thread}/{book}"), name);
        let sleeps = says("status", "voluntary_ctxt_switches:")?;
        Some(Self { cpu_ns: says("schedstat", "")?, sleeps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::domains::tests::Big;

    #[test]
    #[should_panic(expected = "did not wait")]
    fn who_does_not_wait_is_found_out() {
        measure(&Big::new(), Duration::from_millis(50));
    }

    #[test]
    fn a_stretch_goes_from_sleep_to_sleep() {
        let mut thread = Followed::new(Books { cpu_ns: 100, sleeps: 1 });
        for (cpu_ns, sleeps, stretch_ns, why) in [
            (150, 1, 50, ""),
            (250, 1, 150, "it has not slept"),
            (260, 2, 160, "it may have slept just now"),
            (300, 2, 160, "it slept before 260"),
            (450, 2, 200, "maybe since 250"),
        ] {
            thread.go_on(Books { cpu_ns, sleeps });
            assert_eq!(thread.stretch_ns, stretch_ns, "{why}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_that_spins_is_seen_to() {
        let own_id = || rustix::thread::gettid().as_raw_nonzero().to_string();
        let stop = AtomicBool::new(false);
        let (id, its_id) = mpsc::channel();
        thread::scope(|scope| {
            let stop = &stop;
            let spinner = scope.spawn(move || {
                id.send(own_id()).expect("somebody wants to know");
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let (id, mut watch) = (its_id.recv().expect("it says so"), Watch::default());
            // Until it has run for so long, however busy the machine is.
            while watch.0.get(&id).is_none_or(|thread| thread.stretch_ns < 20_000_000) {
                watch.look();
                thread::yield_now();
            }
            let books = watch.0[&id];
            stop.store(true, Ordering::Relaxed);
            spinner.join().expect("a spinner does not panic");
            assert_eq!(books.first.sleeps, books.last.sleeps, "{books:?}");
        });
    }
}
