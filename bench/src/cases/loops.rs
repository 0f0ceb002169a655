//! One operation in a loop: what it takes in one thread, in several, and beside a thread that does
//! the opposite.
//!
//! All rivals of a case run the same two nested loops around the same shared thing, in threads that
//! start together; the inner loop is compiled into each of them.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::BATCH;
use super::thread_pool::{Presence, StopOnDrop, ThreadPool};

/// From one write to the next, of those who write beside a reader: often for what is mostly read,
/// and the same for all rivals, also for those whose writers wait for readers.
const WRITE_EVERY: Duration = Duration::from_micros(10);

/// One operation of one rival, many times.
#[derive(Clone, Copy, Debug)]
pub struct Loop {
    /// Does it in so many batches; how long that took.
    run: fn(batches: u64) -> Duration,
    opposite: Option<Opposite>,
}

/// What another thread does meanwhile.
#[derive(Clone, Copy, Debug)]
enum Opposite {
    /// Writes what is read, another value for each number, every 10 microseconds.
    Write(fn(number: u64)),
    /// Reads what is written, in so many batches, all the time.
    Read(fn(batches: u64) -> Duration),
}

/// What [`Loop::measure_beside`] saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beside {
    /// Nanoseconds for one operation.
    pub ns: f64,
    /// The share of the time that the other thread was not kept waiting for a CPU.
    pub other_share: f64,
    /// What the other one did meanwhile, and while this one made itself ready: writes, or batches
    /// of reads.
    pub done: u64,
}

impl Loop {
    /// A loop that no thread does the opposite beside.
    pub(crate) const fn new(run: fn(u64) -> Duration) -> Self {
        Self { run, opposite: None }
    }

    /// The same with something that writes.
    pub(crate) const fn with_writer(self, write: fn(u64)) -> Self {
        Self { opposite: Some(Opposite::Write(write)), ..self }
    }

    /// A loop that writes, with something that reads.
    pub(crate) const fn with_reader(self, read: fn(u64) -> Duration) -> Self {
        Self { opposite: Some(Opposite::Read(read)), ..self }
    }

    /// Nanoseconds for one operation, the mean over `threads` threads that do it at the same time,
    /// without the time that they were kept waiting for a CPU.
    ///
    /// Each does it `iterations` times, rounded up to whole batches of 1024, after a short warm-up.
    ///
    /// # Panics
    /// If the operation panics.
    pub fn measure(&self, threads: usize, iterations: u64) -> f64 {
        let batches = batches(iterations);
        let pool = ThreadPool::new(threads);
        let total: Duration = thread::scope(|scope| {
            let pool = &pool;
            let spawn = |number| scope.spawn(move || self.timed(pool, number, batches));
            let threads: Vec<_> = (0..threads).map(spawn).collect();
            threads.into_iter().map(|thread| thread.join().expect("no rival panics")).sum()
        });
        total.as_nanos() as f64 / (threads as u64 * batches * BATCH) as f64
    }

    /// The same of one thread while another one writes every 10 microseconds, or reads.
    ///
    /// # Panics
    /// If the rival has no opposite.
    pub fn measure_beside(&self, iterations: u64) -> Beside {
        let opposite = self.opposite.expect("only those that have one are asked");
        let batches = batches(iterations);
        let (pool, stop) = (ThreadPool::new(2), AtomicI32::new(0));
        let (elapsed, (done, other_share)) = thread::scope(|scope| {
            let (pool, stop) = (&pool, &stop);
            let other = scope.spawn(move || {
                pool.settle(1);
                pool.meet();
                let presence = Presence::new();
                let done = match opposite {
                    Opposite::Write(write) => write_until(stop, write),
                    Opposite::Read(read) => read_until(stop, read),
                };
                (done, presence.share())
            });
            let measured = scope.spawn(move || {
                let _stop = StopOnDrop(stop);
                self.timed(pool, 0, batches)
            });
            let elapsed = measured.join().expect("no rival panics");
            (elapsed, other.join().expect("no rival panics"))
        });
        let ns = elapsed.as_nanos() as f64 / (batches * BATCH) as f64;
        Beside { ns, other_share, done }
    }

    fn timed(&self, pool: &ThreadPool, number: usize, batches: u64) -> Duration {
        pool.settle(number);
        (self.run)(1);
        pool.meet();
        let presence = Presence::new();
        presence.own_time((self.run)(batches))
    }
}

fn batches(iterations: u64) -> u64 {
    iterations.div_ceil(BATCH).max(1)
}

/// Writes on the dot until told to stop; how often. What was missed is not made up for.
fn write_until(stop: &AtomicI32, write: fn(u64)) -> u64 {
    let (mut writes, mut next) = (0, Instant::now());
    // Relaxed: the flag ends the loop and publishes nothing.
    while stop.load(Ordering::Relaxed) == 0 {
        write(writes);
        writes += 1;
        next += WRITE_EVERY;
        if next < Instant::now() {
            next = Instant::now();
        }
        while Instant::now() < next && stop.load(Ordering::Relaxed) == 0 {
            spin_loop();
        }
    }
    writes
}

/// Reads until told to stop; how many batches.
fn read_until(stop: &AtomicI32, read: fn(u64) -> Duration) -> u64 {
    let mut done = 0;
    // Relaxed: as above.
    while stop.load(Ordering::Relaxed) == 0 {
        read(1);
        done += 1;
    }
    done
}

/// Does it `BATCH` times in each of so many batches, then `announce`; each time gives 1.
///
/// # Panics
/// If one did not: it did something else, or read what was never written.
#[inline(always)]
pub(crate) fn timed<S>(
    batches: u64,
    state: &mut S,
    once: impl Fn(&mut S) -> u64,
    announce: impl Fn(&mut S),
) -> Duration {
    let mut sum = 0_u64;
    let begin = Instant::now();
    for _ in 0..batches {
        for _ in 0..BATCH {
            sum = sum.wrapping_add(once(state));
        }
        announce(state);
    }
    let elapsed = begin.elapsed();
    assert_eq!(black_box(sum), batches * BATCH, "each time gives 1");
    elapsed
}

/// The same for what needs no state and announces nothing.
#[inline(always)]
pub(crate) fn repeat(batches: u64, once: impl Fn() -> u64) -> Duration {
    timed(batches, &mut (), |()| once(), |()| {})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rivals;

    /// Every rival does what is asked of it, alone, with another one, and beside its opposite.
    fn all_work(of: fn(&rivals::Rival) -> Option<Loop>) {
        for (name, looped) in rivals::all().filter_map(|rival| Some((rival.name, of(rival)?))) {
            for threads in [1, 2] {
                // What each of them gives is asserted within.
                let ns = looped.measure(threads, 3 * BATCH - 1);
                assert!(ns > 0.0 && ns.is_finite(), "{name}: {ns}");
            }
            // Until the other one has done something, however busy the machine is.
            while looped.opposite.is_some() {
                let seen = looped.measure_beside(16 * BATCH);
                assert!(seen.ns > 0.0 && seen.ns.is_finite(), "{name}: {seen:?}");
                assert!((0.0..=1.0).contains(&seen.other_share), "{name}: {seen:?}");
                if seen.done > 0 {
                    break;
                }
            }
        }
    }

    #[test]
    fn every_rival_reads_the_word_as_often_as_it_is_told() {
        all_work(|rival| rival.read);
        all_work(|rival| rival.nested);
    }

    #[test]
    fn every_cell_is_read_whole_also_beside_a_writer() {
        all_work(|rival| rival.cell);
    }

    #[test]
    fn every_cell_is_written_whole_also_beside_a_reader() {
        all_work(|rival| rival.cell_store);
    }

    #[test]
    fn every_reference_count_gives_what_is_there() {
        all_work(|rival| rival.arc);
        all_work(|rival| rival.reference);
    }

    #[test]
    fn no_counter_loses_any() {
        all_work(|rival| rival.count);
    }

    #[test]
    fn every_section_is_entered_and_left() {
        all_work(|rival| rival.sleepable);
        all_work(|rival| rival.local);
    }

    #[test]
    #[should_panic(expected = "no rival panics")]
    fn a_rival_that_reads_something_else_is_found_out() {
        Loop::new(|batches| repeat(batches, || 2)).measure(1, 1);
    }
}
