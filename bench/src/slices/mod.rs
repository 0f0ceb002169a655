//! How loops are timed: by slices, of which only those count whose threads had their CPUs.
//!
//! A *slice* is about a millisecond of a calibrated number of operations, on each thread of its row
//! at once. Rows are interleaved slice by slice, in an order that is drawn anew for each pass, so
//! drift affects all of them. `judge` says whether a slice counts; one that does not is repeated
//! until the time is over. A figure is the median of the slices that count. A row with fewer than
//! [`COUNTED_MIN`] of them has no figure, but the reason.
//!
//! Invariants:
//! - A value comes from one slice that counts: nothing measured without a CPU is mixed in.
//! - While its slice counts, the threads of a row have CPUs of their own, and those of other rows
//!   sleep: a row of one thread has the machine to itself, as a program with one thread does.
//! - A row without a figure has no values, so nothing can be ranked by it.
//!
//! `crew`: the threads; `control`: whether the machine's speed has changed, and where CPUs are;
//! `scene`: what cannot be cut into slices; `verdict`: how good the whole run was.

mod control;
mod crew;
mod judge;
mod scene;
mod verdict;

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::{IndexedRandom, SliceRandom};

use crate::Host;
use crate::clock::ticks;
pub(crate) use control::{Aim, STREAM, stream};
use control::{Distances, Price, Prices};
pub use crew::own_cpus;
use crew::{Crew, cores, raised, raised_session};
pub(crate) use crew::{pinned, spin_until};
pub use judge::Missing;
pub(crate) use judge::{Flaw, Flaws, Judged, both};
use judge::{Span, Told, UNEVEN, judge};
pub(crate) use scene::{Act, Cue, Played, Scene, usual_distance_ns};
pub use verdict::{RunVerdict, Watch, load_field};

/// About how long a slice takes: hundreds of steps of the clock, and shorter than a thread's turn
/// on a CPU that others want.
const SLICE_NS: u64 = 1_000_000;
/// With its warm-up and its controls.
const SLICE_AND_ALL: Duration = Duration::from_micros(1_250);
/// Of the operations of a slice, so many are done before: they find caches and branches cold.
const WARM_UP: u64 = 8;
/// A burst hands over to rows of another number of threads after this time.
const BURST: Duration = Duration::from_millis(25);
/// After a burst that lost a CPU its threads sleep: who has slept is given a CPU at once.
const REST: Duration = Duration::from_millis(2);
/// Bursts of several threads that lost a CPU become rarer by this power of two at most.
const LOST_MAX: u32 = 5;
/// Fewer slices than this that count are no figure: a median of three may be that of two accidents.
pub const COUNTED_MIN: usize = 5;
/// A run that is disturbed may take so many times as long as a calm one.
const PATIENCE: u32 = 3;
/// And this long at least: a turn of other programs may be longer than a short run. One of several
/// that make a figure has its share.
const PATIENCE_MIN: Duration = Duration::from_millis(250);
/// The parts of a slice between which the clock is read.
pub(crate) const PARTS: usize = 64;

/// Something that is timed.
pub(crate) struct Row<'a> {
    /// Threads that work at once.
    pub(crate) threads: usize,
    /// Those whose time is taken, from the first. A slice is over when one of them has done its
    /// count.
    pub(crate) timed: usize,
    /// It sleeps of its own accord, so that CPU time tells nothing: then, how many threads of its
    /// own it works with.
    pub(crate) sleeps: Option<u64>,
    /// What its figure is for.
    pub(crate) aim: Aim,
    /// Operations in one count of the body.
    pub(crate) operations: u64,
    /// The count that made a slice in a run before, if there was one.
    pub(crate) known: Option<u64>,
    /// Does its part; how long the operations took.
    pub(crate) body: Body<'a>,
}

/// Does one thread's part of a slice, and says how long the operations took. Where it is over
/// before its count is done, it says so by [`Part::done`].
pub(crate) type Body<'a> = Box<dyn Fn(&Part<'_>) -> Duration + Sync + 'a>;

impl<'a> Row<'a> {
    /// One operation in so many threads at once.
    pub(crate) fn new(threads: usize, body: impl Fn(&Part<'_>) -> Duration + Sync + 'a) -> Row<'a> {
        Row {
            threads,
            timed: threads,
            sleeps: None,
            aim: Aim::Figure,
            operations: 1,
            known: None,
            body: Box::new(body),
        }
    }

    /// The same, of operations that are all alike.
    pub(crate) fn even(self) -> Row<'a> {
        Row { aim: Aim::Even, ..self }
    }

    /// The same, of which one count has so many operations.
    pub(crate) fn of(self, operations: u64) -> Row<'a> {
        Row { operations, ..self }
    }
}

/// A thread's part of a slice.
pub(crate) struct Part<'a> {
    /// The number of the thread among those of the row.
    pub(crate) me: usize,
    /// How often it does the operation, unless another thread is done before.
    pub(crate) count: u64,
    /// The number of the slice among those of its row. Nothing of what no figure is made of: the
    /// warm-up of each, and those that the count is worked out from.
    pub(crate) slice: Option<u32>,
    /// The last phase that a timed thread has done, and the present one.
    over: (&'a AtomicU64, u64),
    /// How often it has done the operation.
    did: Cell<u64>,
    /// What its parts tell.
    told: Cell<Told>,
}

impl<'a> Part<'a> {
    fn new(me: usize, count: u64, slice: Option<u32>, over: (&'a AtomicU64, u64)) -> Part<'a> {
        Part { me, count, slice, over, did: Cell::new(count), told: Cell::new(Told::default()) }
    }

    /// A part whose count is always done, and that is not timed.
    pub(crate) fn alone(me: usize, count: u64) -> Part<'static> {
        static NEVER: AtomicU64 = AtomicU64::new(0);
        Part::new(me, count, None, (&NEVER, u64::MAX))
    }

    /// Whether a timed thread has done its count: all others end.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        // Relaxed: it ends loops and publishes nothing.
        self.over.0.load(Ordering::Relaxed) >= self.over.1
    }

    /// Says how often the operation was done, where that is less than the count.
    pub(crate) fn done(&self, times: u64) {
        self.did.set(times);
    }

    /// Works until a timed thread is done. How long that takes is no matter.
    pub(crate) fn until_over(&self, mut work: impl FnMut()) -> Duration {
        while !self.is_over() {
            work();
        }
        Duration::ZERO
    }

    /// Does `once` as often as this part has it; how long that took.
    #[inline(always)]
    pub(crate) fn times(&self, mut once: impl FnMut()) -> Duration {
        self.batches(|count| {
            for _ in 0..count {
                once();
            }
        })
    }

    /// Does `batch` of so many operations at a time, in parts of nearly one length, until the count
    /// is done or another thread has done its own. Looks for time that was stolen between them.
    #[inline(always)]
    pub(crate) fn batches(&self, mut batch: impl FnMut(u64)) -> Duration {
        let begin = Instant::now();
        let mut last = ticks();
        self.parts(|count| {
            batch(count);
            let now = ticks();
            now.saturating_sub(std::mem::replace(&mut last, now))
        });
        begin.elapsed()
    }

    /// The same with what makes itself ready before each part, and says how long it took without.
    pub(crate) fn timed(&self, mut part: impl FnMut(u64) -> Duration) -> Duration {
        Duration::from_nanos(self.parts(|count| part(count).as_nanos() as u64))
    }

    /// Does so many operations at a time; the sum of what each part took.
    #[inline(always)]
    fn parts(&self, mut part: impl FnMut(u64) -> u64) -> u64 {
        let mut took = [0_u64; PARTS];
        let mut done = 0;
        for (number, took) in (1..).zip(&mut took) {
            let until = self.count * number / PARTS as u64;
            if until > done {
                if self.is_over() {
                    break;
                }
                *took = part(until - done);
                done = until;
            }
        }
        self.done(done);
        let sum = took.iter().sum();
        self.told.set(Told::by(&mut took));
        sum
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Slices of each row that count.
    pub(crate) slices: u32,
    /// The order is drawn from this.
    pub(crate) seed: u64,
    /// Each thread stays on a CPU of its own.
    pub(crate) pin: bool,
    /// Fewer that count are no figure: [`COUNTED_MIN`], unless several runs make one.
    pub(crate) least: usize,
}

impl Wanted {
    /// As many slices as fit into this time, for each row.
    pub(crate) fn in_time(budget: Duration, seed: u64) -> Wanted {
        let slices = (budget.as_nanos() / SLICE_AND_ALL.as_nanos()) as u32;
        Wanted { slices: slices.max(2 * COUNTED_MIN as u32), seed, pin: false, least: COUNTED_MIN }
    }

    /// How long a calm run of so many rows takes.
    pub(crate) fn duration(&self, rows: usize) -> Duration {
        SLICE_AND_ALL * self.slices * rows as u32
    }
}

/// What came of a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    /// Nanoseconds for one operation, of each slice that counts, in the order in which they were
    /// drawn. The nth of two rows are from about the same time: passes hold each row once.
    pub(crate) values: Vec<f64>,
    /// The numbers of these slices.
    pub(crate) slices: Vec<u32>,
    /// CPU time of its threads for one operation, in nanoseconds, of every slice that was drawn.
    pub(crate) cpu: Vec<f64>,
    /// The count that makes a slice, if it is known.
    pub(crate) count: Option<u64>,
    /// Why there are none.
    pub(crate) missing: Option<Missing>,
}

/// The same while it is measured.
#[derive(Default)]
struct Draws {
    count: u64,
    /// A slice of this count is long enough.
    is_calibrated: bool,
    /// Its value, its number, and what the control told then.
    counted: Vec<(f64, u32, Seen)>,
    /// CPU time an operation, of all.
    cpu: Vec<f64>,
    /// How many had each flaw.
    flaws: Flaws,
}

impl Draws {
    fn of(row: &Row<'_>) -> Draws {
        let (count, is_calibrated) = (row.known.unwrap_or(1), row.known.is_some());
        Draws { count, is_calibrated, ..Draws::default() }
    }

    /// Whether as many count as are wanted.
    fn is_done(&self, wanted: u32) -> bool {
        self.counted.len() >= wanted as usize
    }

    /// Works out how many operations make a slice, from one whose operations took `took_ns` of its
    /// `wall_ns`: the rest is what a body does before and after them, or sleeps.
    fn calibrate(&mut self, took_ns: u64, wall_ns: u64) {
        let slice_ns = SLICE_NS as f64;
        let longer = (2.0 * slice_ns / wall_ns.max(1) as f64).clamp(1.0, 16.0);
        let times = (slice_ns / took_ns.max(1) as f64).min(longer);
        self.count = ((self.count as f64 * times) as u64).max(1);
    }
}

/// One slice of a row, of so many operations, whether it counts or not; nanoseconds for one of
/// them.
#[cfg(test)]
pub(crate) fn once(row: &Row<'_>, count: u64) -> f64 {
    let rows = std::slice::from_ref(row);
    let crew = Crew::new(rows);
    std::thread::scope(|scope| {
        let _leader = crew.start(scope, false);
        let _burst = crew.muster(row.threads, None);
        let spans = crew.slice(0, count, None);
        let sum = |of: fn(&Span) -> u64| spans[..row.timed].iter().map(of).sum::<u64>() as f64;
        sum(|span| span.took_ns) / (sum(|span| span.did) * row.operations as f64)
    })
}

/// Measures these rows. After a stop, or when the time is over, those that have too few slices have
/// no figure.
pub(crate) fn run(
    rows: &[Row<'_>],
    wanted: &Wanted,
    host: &mut dyn Host,
) -> (Vec<Measured>, RunVerdict) {
    let crew = Crew::new(rows);
    std::thread::scope(|scope| {
        let leader = crew.start(scope, wanted.pin);
        // Threads that the library starts for itself are not to have the priority of a measurement.
        for row in rows.iter().filter(|row| row.threads == 1) {
            (row.body)(&Part::alone(0, 1));
        }
        let raised = (raised(), raised_session());
        let watch = verdict::Watch::begin();
        let mut run = Run {
            crew: &crew,
            rows,
            draws: rows.iter().map(Draws::of).collect(),
            prices: Prices::default(),
            distances: Distances::default(),
            cores: cores(&crew.cpus),
            lost: 0,
            generator: ChaCha8Rng::seed_from_u64(wanted.seed),
            wanted: *wanted,
        };
        run.draw(host);
        let is_stopped = host.must_stop();
        let verdict = watch.end(raised.0.is_some(), wanted.pin);
        drop((raised, leader));
        run.finish(is_stopped, verdict)
    })
}

struct Run<'r, 'a> {
    crew: &'r Crew<'a>,
    rows: &'a [Row<'a>],
    draws: Vec<Draws>,
    prices: Prices,
    /// Of slices whose threads shared no core.
    distances: Distances,
    /// Rows of no more threads than this have no need to share one.
    cores: usize,
    /// How many bursts of several threads, up to the last one, ended because one lost its CPU.
    lost: u32,
    generator: ChaCha8Rng,
    wanted: Wanted,
}

impl Run<'_, '_> {
    fn draw(&mut self, host: &mut dyn Host) {
        let calm = self.wanted.duration(self.rows.len());
        let least = PATIENCE_MIN * self.wanted.least as u32 / COUNTED_MIN as u32;
        let deadline = Instant::now() + (calm * PATIENCE).max(least);
        loop {
            let mut pending: Vec<usize> = (0..self.rows.len())
                .filter(|&row| !self.draws[row].is_done(self.wanted.slices))
                .collect();
            if pending.is_empty() || host.must_stop() || Instant::now() >= deadline {
                return;
            }
            pending.shuffle(&mut self.generator);
            // Which bursts follow which is drawn by what is left to be done. Those of several
            // threads take long where other programs have the CPUs.
            let left = |row: &usize| {
                let left = self.wanted.slices as usize - self.draws[*row].counted.len();
                let lost = if self.rows[*row].threads > 1 { self.lost.min(LOST_MAX) } else { 0 };
                left << LOST_MAX >> lost
            };
            let chosen = pending.choose_weighted(&mut self.generator, left);
            let threads = self.rows[*chosen.expect("all of them lack some")].threads;
            pending.retain(|&row| self.rows[row].threads == threads);
            host.announce(&format_args!("slices of {} rows, threads: {threads}", pending.len()));
            let before = self.counted();
            self.burst(pending, threads);
            host.advance(SLICE_AND_ALL * (self.counted() - before) as u32);
        }
    }

    fn counted(&self) -> usize {
        self.draws.iter().map(|draws| draws.counted.len()).sum()
    }

    /// Draws slices of these rows, pass by pass, while the threads keep their CPUs.
    fn burst(&mut self, mut rows: Vec<usize>, threads: usize) {
        let begin = Instant::now();
        let mut price = Price::now();
        self.prices.add(price);
        let place = (threads > 1 && self.lost > 0 && !self.wanted.pin).then_some(self.lost);
        let burst = self.crew.muster(threads, place);
        while begin.elapsed() < BURST && !rows.is_empty() {
            rows.shuffle(&mut self.generator);
            let mut is_lost = true;
            for &number in &rows {
                // A thread that sleeps would not come back for long.
                if self.rows[number].sleeps.is_some() && verdict::runnable() > 1 {
                    self.draws[number].flaws[Flaw::Others as usize] += 1;
                    continue;
                }
                let (flaw, after) = self.slice(number, price);
                price = after;
                // Another thread has a CPU of this slice.
                is_lost = threads > 1 && matches!(flaw, Some(Flaw::Apart | Flaw::Taken));
                if threads > 1 {
                    self.lost = if is_lost { self.lost + 1 } else { 0 };
                }
                if is_lost {
                    break;
                }
            }
            if is_lost {
                drop(burst);
                std::thread::sleep(REST);
                return;
            }
            let wanted = self.wanted.slices;
            rows.retain(|&row| !self.draws[row].is_done(wanted));
        }
    }

    /// Draws one slice; why it does not count, and the price of the control after it.
    fn slice(&mut self, number: usize, before: Price) -> (Option<Flaw>, Price) {
        let (row, draws) = (&self.rows[number], &mut self.draws[number]);
        let slice = draws.is_calibrated.then_some(draws.cpu.len() as u32);
        let spans = self.crew.slice(number, draws.count, slice);
        let after = Price::now();
        let at_once = spans.iter().map(|span| span.at_once).max().unwrap_or_default();
        let seen = Seen {
            price: before.worse(after),
            at_once: before.at_once(at_once),
            distance: spans[0].distance,
            uneven: spans.iter().map(|span| span.told.uneven).fold(1.0, f64::max),
        };
        if let Some(ticks) = seen.distance.filter(|_| !self.prices.is_shared(seen.at_once)) {
            self.distances.add(ticks);
        }
        self.prices.add(after);
        let wall_ns = spans.iter().map(Span::wall_ns).max().unwrap_or_default();
        let took_ns = spans.iter().map(|span| span.took_ns).max().unwrap_or_default();
        // What is far too short tells so whether it counts or not. A slice may also be long because
        // its thread had no CPU, so all are asked.
        let is_short = took_ns * 2 < SLICE_NS && wall_ns < SLICE_NS;
        if is_short {
            draws.calibrate(took_ns, wall_ns);
        }
        draws.is_calibrated |= !is_short;
        let Some(slice) = slice else { return (None, after) };
        let timed = &spans[..row.timed];
        let sum = |of: fn(&Span) -> u64| timed.iter().map(of).sum::<u64>() as f64;
        let operations = sum(|span| span.did) * row.operations as f64;
        draws.cpu.push(sum(|span| span.cpu_ns) / operations);
        if is_short {
            return (None, after);
        }
        let flaw = judge(&spans, row.sleeps.is_some()).err();
        let flaw = flaw.or_else(|| seen.flaw(row, &self.prices, &self.distances, self.cores));
        match flaw {
            Some(flaw) => draws.flaws[flaw as usize] += 1,
            None => {
                draws.counted.push((sum(|span| span.took_ns) / operations, slice, seen));
                draws.calibrate(took_ns, wall_ns);
            }
        }
        (flaw, after)
    }

    /// The figures, without slices whose control is found to be dear by now.
    fn finish(self, is_stopped: bool, mut verdict: RunVerdict) -> (Vec<Measured>, RunVerdict) {
        let Run { rows, draws, prices, distances, cores, wanted, .. } = self;
        let finish = |(row, mut draws): (&Row<'_>, Draws)| {
            let flaws = &mut draws.flaws;
            draws.counted.retain(|(_, _, seen)| {
                let flaw = seen.flaw(row, &prices, &distances, cores);
                flaw.inspect(|flaw| flaws[*flaw as usize] += 1).is_none()
            });
            let (cpu, count) = (draws.cpu, draws.is_calibrated.then_some(draws.count));
            let counted = draws.counted.len();
            verdict.add_row(row.threads > 1, counted as u32, &draws.flaws, counted < wanted.least);
            if counted < wanted.least {
                let missing = if is_stopped {
                    Missing::Interrupted
                } else {
                    Missing::of(&draws.flaws, counted as u32)
                };
                return Measured { cpu, count, missing: Some(missing), ..Measured::default() };
            }
            let (values, slices) = draws.counted.iter().map(|(ns, slice, _)| (*ns, *slice)).unzip();
            Measured { values, slices, cpu, count, missing: None }
        };
        let measured = rows.iter().zip(draws).map(finish).collect();
        verdict.drift_percent = Some(prices.drift_percent());
        verdict.distance_ns = distances.usual_ns();
        (measured, verdict)
    }
}

/// What the control told of a slice.
struct Seen {
    /// Of the leader while others wait, before and after.
    price: Price,
    /// Of all threads at once.
    at_once: Price,
    /// Of the CPUs of the first two.
    distance: Option<u64>,
    /// How uneven the parts were.
    uneven: f64,
}

impl Seen {
    /// What that is against a slice of this row.
    fn flaw(
        &self,
        row: &Row<'_>,
        prices: &Prices,
        distances: &Distances,
        cores: usize,
    ) -> Option<Flaw> {
        let is_figure = row.threads > 1 && row.aim != Aim::Compared;
        if is_figure && row.threads <= cores && prices.is_shared(self.at_once) {
            return Some(Flaw::Shared);
        }
        if is_figure && self.distance.is_some_and(|ticks| !distances.is_usual(ticks)) {
            return Some(Flaw::Moved);
        }
        let is_slower = row.aim == Aim::Even && self.uneven > UNEVEN;
        (is_slower || !prices.is_usual(self.price, row.aim)).then_some(Flaw::Control)
    }
}

#[cfg(test)]
mod tests;
