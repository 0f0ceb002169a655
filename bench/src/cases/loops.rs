//! One operation in a loop: what it takes in one thread, in several, and beside a thread that does
//! the opposite.
//!
//! All rivals of a case run the same two nested loops around the same shared thing, in threads that
//! start together; the inner loop is compiled into each of them.

use std::cell::Cell;
use std::hint::{black_box, spin_loop};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::BATCH;
use crate::serve::Domain;
use crate::slices::{Part, Row};

/// From one write to the next, of those who write beside a reader: often for what is mostly read,
/// and the same for all rivals, also for those whose writers wait for readers.
const WRITE_EVERY: Duration = Duration::from_micros(10);

/// What a rival does in a loop.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Looped {
    /// A word that is read.
    Read,
    /// A word that is read inside another section.
    Nested,
    /// Four words that are read whole.
    Cell,
    /// Four words that are written.
    CellStore,
    /// What stands for an `Arc` in a place where it can be replaced, for as long as it is read.
    Guard,
    /// An `Arc` out of a place where it can be replaced.
    Arc,
    /// A pointer that a hazard pointer protects for as long as its word is read.
    Protect,
    /// A reference to something that stays.
    Reference,
    /// A counter.
    Count,
    /// A section in which a reader may sleep.
    Sleepable,
    /// A section, or a lock, that is cheap to enter for one thread.
    Local,
}

impl Looped {
    /// How many there are.
    pub(crate) const COUNT: usize = Self::Local as usize + 1;
}

/// Does something in so many batches, in one of the threads that share it; how long that took.
type Run = Arc<dyn Fn(u64) -> Duration + Send + Sync>;

/// One operation of one rival, many times, and what its threads share.
pub(crate) struct Loop {
    run: Run,
    opposite: Option<Opposite>,
}

/// What another thread does meanwhile.
enum Opposite {
    /// Writes what is read, another value for each number, every 10 microseconds.
    Write(Box<dyn Fn(u64) + Send + Sync>),
    /// Reads what is written, in so many batches, all the time.
    Read(Run),
}

impl Loop {
    /// A loop that no thread does the opposite beside.
    pub(crate) fn new(run: impl Fn(u64) -> Duration + Send + Sync + 'static) -> Self {
        Self { run: Arc::new(run), opposite: None }
    }

    /// One that does this to what is shared, again and again.
    pub(crate) fn of<T: Send + Sync + 'static>(
        shared: T,
        once: impl Fn(&T) -> u64 + Send + Sync + 'static,
    ) -> Self {
        Self::new(move |batches| {
            let shared = black_box(&shared);
            repeat(batches, || once(shared))
        })
    }

    /// The same with something that writes.
    pub(crate) fn with_writer(self, write: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Self { opposite: Some(Opposite::Write(Box::new(write))), ..self }
    }

    /// A loop that writes another value each time, with one that reads: beside it, and at its end.
    pub(crate) fn writing(write: impl Fn(u64) + Send + Sync + 'static, reads: Loop) -> Self {
        let read = Arc::clone(&reads.run);
        let writes = Self::new(move |batches| {
            let number = Cell::new(0);
            let elapsed = repeat(batches, || {
                number.set(number.get() + 1);
                write(number.get());
                1
            });
            read(1);
            elapsed
        });
        Self { opposite: Some(Opposite::Read(reads.run)), ..writes }
    }

    /// It in the calling thread, in so many batches.
    pub(crate) fn times(&self, batches: u64) -> Duration {
        (self.run)(batches)
    }

    /// It in so many threads at once. So many per cent are done besides, and not counted.
    pub(crate) fn row(self, threads: usize, planted_percent: f64) -> Row<'static> {
        let more = planted_percent / 100.0;
        Row::new(threads, move |part| {
            // Batches that are planted, of which whole ones are done.
            let planted = Cell::new(0.0);
            part.timed(|batches| {
                planted.set(planted.get() + more * batches as f64);
                let whole = planted.get().floor();
                planted.set(planted.get() - whole);
                (self.run)(batches + whole as u64)
            })
        })
        .of(BATCH)
    }

    /// It in one thread, while another one writes every 10 microseconds, or reads.
    ///
    /// # Panics
    /// If the rival has no opposite.
    pub(crate) fn row_beside(mut self, planted_percent: f64) -> Row<'static> {
        let opposite = self.opposite.take().expect("only those that have one are asked");
        let alone = self.row(1, planted_percent);
        let body = move |part: &Part<'_>| match (part.me, &opposite) {
            (0, _) => (alone.body)(part),
            (_, Opposite::Write(write)) => write_until_over(part, write),
            (_, Opposite::Read(read)) => part.until_over(|| _ = read(1)),
        };
        Row { timed: 1, ..Row::new(2, body) }.of(BATCH)
    }
}

/// Writes on the dot until the part is over. What was missed is not made up for.
fn write_until_over(part: &Part<'_>, write: impl Fn(u64)) -> Duration {
    let (mut writes, mut next) = (0, Instant::now());
    part.until_over(|| {
        if Instant::now() >= next {
            write(writes);
            writes += 1;
            next = (next + WRITE_EVERY).max(Instant::now());
        } else {
            spin_loop();
        }
    })
}

/// Entering a section of a domain, or a lock, and leaving it.
pub(crate) fn sections<D: Domain>() -> Loop {
    Loop::of(D::new(), |domain| domain.read(|| 1))
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
    use std::sync::atomic::{AtomicU64, Ordering};

    use parking_lot::Mutex;

    use super::*;
    use crate::cases::read::{nested, reads};
    use crate::host::spend;
    use crate::serve::replace;
    use crate::slices;

    #[test]
    fn work_that_is_planted_is_done_and_not_counted() {
        static DONE: AtomicU64 = AtomicU64::new(0);
        let run = |batches| {
            DONE.fetch_add(batches, Ordering::Relaxed);
            Duration::from_nanos(batches * BATCH * 10)
        };
        for (percent, done, warm_up, ns) in [(0.0, 1_000, 125, 10.0), (25.0, 1_250, 156, 12.5)] {
            let row = Loop::new(run).row(1, percent);
            DONE.store(0, Ordering::Relaxed);
            assert!((slices::once(&row, 1_000) - ns).abs() < 1e-9);
            assert_eq!(DONE.load(Ordering::Relaxed), done + warm_up);
        }
    }

    /// A design whose threads take their time to register, and to leave.
    #[derive(Default)]
    struct Slow;

    /// Since when a thread is registered.
    struct Registered(Instant);

    /// How long threads were registered, in the order in which they left.
    static REGISTERED_FOR: Mutex<Vec<Duration>> = Mutex::new(Vec::new());

    impl Drop for Registered {
        fn drop(&mut self) {
            REGISTERED_FOR.lock().push(self.0.elapsed());
            spend();
        }
    }

    replace! {
        Slow => T, Registered;
        place: |_, value| value;
        thread: |_| {
            spend();
            Registered(Instant::now())
        };
        read: |_, _, place, look| look(place);
        replace: |_, _, place, value| drop((place, value));
    }

    /// If either were timed, it would take longer than threads are registered.
    #[test]
    fn neither_registering_nor_leaving_is_timed() {
        for make in [reads::<Slow>, nested::<Slow>] {
            let took = (make().run)(2);
            let registered_for = std::mem::take(&mut *REGISTERED_FOR.lock())[0];
            assert!(took <= registered_for, "{took:?} of {registered_for:?}");
        }
    }

    #[test]
    #[should_panic(expected = "each time gives 1")]
    fn a_rival_that_reads_something_else_is_found_out() {
        slices::once(&Loop::new(|batches| repeat(batches, || 2)).row(1, 0.0), 1);
    }
}
