//! One operation in a loop: what it takes in one thread, in several, and beside a thread that does
//! the opposite.
//!
//! All rivals of a case run the same two nested loops around the same shared thing, in threads that
//! start together; the inner loop is compiled into each of them.
//!
//! - Reads: enter a section, load the pointer, read its word, leave.
//! - Cells: a few words that are read whole and now and then replaced.
//! - Counters: adding one to a counter that many threads add to, now and then read. `atomic-own` is
//!   the measure: an atomic addition to a word that no other thread touches.

use std::cell::Cell;
use std::hint::{black_box, spin_loop};
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::BATCH;
use crate::serve::{Copied, Domain, Replace};
use crate::shapes::Counting;
use crate::slices::{Body, Part, Row};

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
    /// What another thread does meanwhile, if it has an opposite.
    opposite: Option<Body<'static>>,
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

    /// Reads beside something that writes another value for each number, every 10 microseconds. Or,
    /// if it is what is timed, such writes, with reads beside them all the time, and at their end.
    pub(crate) fn cell<const IS_WRITTEN: bool>(
        reads: Loop,
        write: impl Fn(u64) + Send + Sync + 'static,
    ) -> Self {
        if !IS_WRITTEN {
            let opposite: Body<'static> = Box::new(move |part| write_until_over(part, &write));
            return Self { opposite: Some(opposite), ..reads };
        }
        let read = Arc::clone(&reads.run);
        let opposite: Body<'static> = Box::new(move |part| part.until_over(|| _ = read(1)));
        let run = move |batches| {
            let number = Cell::new(0);
            let elapsed = repeat(batches, || {
                number.set(number.get() + 1);
                write(number.get());
                1
            });
            (reads.run)(1);
            elapsed
        };
        Self { opposite: Some(opposite), ..Self::new(run) }
    }

    /// It in the calling thread, in so many batches.
    pub(crate) fn times(&self, batches: u64) -> Duration {
        (self.run)(batches)
    }

    /// It in so many threads at once. So many per cent are done besides, and not counted.
    pub(crate) fn row(self, threads: usize, planted_percent: f64) -> Row<'static> {
        let more = planted_percent / 100.0;
        Row::new(threads, move |part| {
            // Batches that are planted, of which whole ones are done: what is left of a slice is
            // of the next one.
            let slices_before = f64::from(part.slice.unwrap_or(0));
            let planted = Cell::new((more * slices_before * part.count as f64).fract());
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
        let bodies = [alone.body, opposite];
        let body = move |part: &Part<'_>| bodies[part.me](part);
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

/// The word that is read, for the rivals that load a pointer themselves. Never replaced.
static WORD: u64 = 1;

/// Where the word is.
pub(crate) static SLOT: AtomicPtr<u64> = AtomicPtr::new((&raw const WORD).cast_mut());

/// Reads of a word in a place.
pub(crate) fn reads<R: Replace>() -> Loop {
    let scheme = R::default();
    let place = scheme.place(1);
    Loop::new(move |batches| read::<R, false>(batches, &scheme, &place))
}

/// The same inside another section of the thread.
pub(crate) fn nested<R: Replace>() -> Loop {
    let scheme = R::default();
    let place = scheme.place(1);
    Loop::new(move |batches| {
        let outer = &mut scheme.thread();
        scheme.read(outer, &place, |_| read::<R, true>(batches, &scheme, &place))
    })
}

/// Compiled for each of the two apart, or what they share is a call in both.
#[inline(always)]
fn read<R: Replace, const IS_NESTED: bool>(
    batches: u64,
    scheme: &R,
    place: &R::Place<u64>,
) -> Duration {
    let (scheme, place) = black_box((scheme, place));
    let once = |thread: &mut R::Thread| scheme.read(thread, place, |word| *word);
    timed(batches, &mut scheme.thread(), once, R::pause)
}

/// What a cell holds: four words whose sum is always 1. A reader that sees half of one value and
/// half of another finds another sum, and the loop says so.
pub(crate) type Words = [u64; 4];

/// Words whose sum is 1, all of them different for each number.
pub(crate) const fn words(number: u64) -> Words {
    let (a, b) = (number, number.wrapping_mul(3));
    let c = !number;
    [a, b, c, 1_u64.wrapping_sub(a).wrapping_sub(b).wrapping_sub(c)]
}

/// 1, of words that belong together.
#[inline(always)]
pub(crate) fn sum(words: &Words) -> u64 {
    words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

/// Reads of a cell and something that writes it, or the other way round: compiled for each of the
/// two apart, or what they share is a call in both.
pub(crate) fn cells<C: Copied<Words>, const IS_WRITTEN: bool>() -> Loop {
    let cell = Arc::new(C::new(words(0)));
    let read = Arc::clone(&cell);
    let reads = Loop::new(move |batches| {
        let cell = black_box(&*read);
        repeat(batches, || sum(&cell.read()))
    });
    Loop::cell::<IS_WRITTEN>(reads, move |number| black_box(&*cell).write(words(number)))
}

/// Additions to a counter of all threads.
pub(crate) fn counts<C: Counting>() -> Loop {
    let counter = C::new();
    Loop::new(move |batches| counted(batches, &counter))
}

/// Adds so many ones and checks that all of them are there at least: others add to the same
/// counter.
#[inline(always)]
pub(crate) fn counted<C: Counting>(batches: u64, counter: &C) -> Duration {
    let counter = black_box(counter);
    let before = counter.sum();
    let elapsed = repeat(batches, || {
        counter.add();
        1
    });
    let added = counter.sum().wrapping_sub(before);
    assert!(added >= batches * BATCH, "{added} of {batches} batches were counted");
    elapsed
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::RefCell;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::host::spend;
    use crate::serve::replace;
    use crate::shapes::counting;
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

    /// It was not done where it was less than a batch of a slice.
    #[test]
    fn work_that_is_planted_was_lost_with_the_slice() {
        static DONE: AtomicU64 = AtomicU64::new(0);
        let count = |batches| {
            DONE.fetch_add(batches, Ordering::Relaxed);
            Duration::ZERO
        };
        let row = Loop::new(count).row(1, 25.0);
        for slice in 0..8 {
            let mut part = Part::alone(0, 2);
            part.slice = Some(slice);
            (row.body)(&part);
        }
        assert_eq!(DONE.load(Ordering::Relaxed), 16 + 4);
    }

    /// A design whose threads take their time to register, and to leave. It frees nothing.
    #[derive(Default)]
    pub(crate) struct Slow;

    pub(crate) static FLUSHES: AtomicU64 = AtomicU64::new(0);

    /// Since when a thread is registered.
    pub(crate) struct Registered(Instant);

    thread_local! {
        /// How long the thread was registered each time, in the order in which it left.
        static REGISTERED_FOR: RefCell<Vec<Duration>> = const { RefCell::new(Vec::new()) };
    }

    impl Drop for Registered {
        fn drop(&mut self) {
            REGISTERED_FOR.with_borrow_mut(|all| all.push(self.0.elapsed()));
            spend();
        }
    }

    /// That what took so long, by [`Slow`] in this thread, was nothing but its operations.
    pub(crate) fn is_of_operations(took: Duration) {
        let registered_for = REGISTERED_FOR.take()[0];
        assert!(took <= registered_for, "{took:?} of {registered_for:?}");
    }

    replace! {
        Slow => T, Registered;
        place: |_, value| value;
        thread: |_| {
            spend();
            Registered(Instant::now())
        };
        read: |_, _, place, look| look(place);
        replace: |_, _, _place, value| std::mem::forget(value);
        flush: |_| FLUSHES.fetch_add(1, Ordering::Relaxed);
    }

    /// If either were timed, it would take longer than threads are registered.
    #[test]
    fn neither_registering_nor_leaving_is_timed() {
        for make in [reads::<Slow>, nested::<Slow>] {
            is_of_operations((make().run)(2));
        }
    }

    #[test]
    #[should_panic(expected = "each time gives 1")]
    fn a_rival_that_reads_something_else_is_found_out() {
        slices::once(&Loop::new(|batches| repeat(batches, || 2)).row(1, 0.0), 1);
    }

    #[test]
    fn half_of_one_value_and_half_of_another_are_found_out() {
        for number in 0..100 {
            let (old, new) = (words(number), words(number + 1));
            assert_eq!((sum(&old), sum(&new)), (1, 1));
            for torn in 1..4 {
                let mut seen = old;
                seen[..torn].copy_from_slice(&new[..torn]);
                assert_ne!(sum(&seen), 1, "{torn} new words of {number}");
            }
        }
    }

    /// Counts no further than to a hundred.
    #[derive(Default)]
    pub(crate) struct Forgets(pub(crate) AtomicU64);

    counting! {
        Forgets, exact: true,
            add: |counter| {
                let next = |count| (count < 100).then_some(count + 1);
                _ = counter.0.try_update(Ordering::Relaxed, Ordering::Relaxed, next);
            },
            sum: |counter| counter.0.load(Ordering::Relaxed);
    }

    #[test]
    #[should_panic(expected = "were counted")]
    fn a_counter_that_loses_some_is_found_out() {
        counted(1, &Forgets::new());
    }
}
