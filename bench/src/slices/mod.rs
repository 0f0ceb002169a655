//! The one way in which loops are timed: by slices, of which only those count that had their CPUs.
//!
//! A *slice* is about a millisecond of a calibrated number of operations, on each thread of its row
//! at once. Rows are interleaved by slices, in an order that is drawn anew for each pass, so that
//! what drifts meets all of them. [`judge`] says when a slice counts; one that does not is drawn
//! again, until the time is over. A figure is the median of slices that count. A row with fewer than
//! [`COUNTED_MIN`] of them has no figure, but a reason that is true.
//!
//! Invariants:
//! - A value is of one slice that counts: nothing is mixed with what was measured without a CPU.
//! - The threads of a row are on CPUs of their own while its slice counts, and those of other rows
//!   sleep: a row of one thread has the machine as a program with one thread has it.
//! - A row without a figure has no values: nothing can be ranked by it.
//!
//! [`crew`]: the threads; [`control`]: what tells of a machine whose speed changed; [`verdict`]: how
//! good the whole run was.

mod control;
mod crew;
mod judge;
mod verdict;

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

use crate::Host;
use crate::cases::clock::ticks;
use control::{Control, Price, Prices};
pub(crate) use crew::Pinned;
use crew::{Crew, Raised};
pub use judge::Missing;
use judge::{Flaw, Span, judge};
pub use verdict::RunVerdict;

/// About how long a slice takes: hundreds of steps of the clock, and shorter than a thread's turn on
/// a CPU that others want.
const SLICE_NS: u64 = 1_000_000;
/// With its warm-up and its controls.
const SLICE_AND_ALL: Duration = Duration::from_micros(1_250);
/// Of the operations of a slice, so many are done before: they find caches and branches cold.
const WARM_UP: u64 = 8;
/// A burst hands over to rows of another number of threads after this time.
const BURST: Duration = Duration::from_millis(25);
/// After a burst that lost a CPU its threads sleep: who has slept is given a CPU at once.
const REST: Duration = Duration::from_millis(2);
/// Fewer slices than this that count are no figure: a median of three may be that of two accidents.
pub const COUNTED_MIN: usize = 5;
/// A run that is disturbed may take so many times as long as a calm one.
const PATIENCE: u32 = 3;
/// The parts of a slice between which the clock is read.
const PARTS: usize = 64;

thread_local! {
    /// The longest gap in the last [`timed`] of the thread, as a share of its time.
    static GAP: Cell<f64> = const { Cell::new(0.0) };
}

/// Something that is timed.
pub(crate) struct Row<'a> {
    /// Threads that work at once.
    pub(crate) threads: usize,
    /// Those whose time is taken, from the first; the others work until these have ended.
    pub(crate) timed: usize,
    /// It sleeps of its own accord, so that CPU time tells nothing.
    pub(crate) sleeps: bool,
    /// Operations in one count of the body.
    pub(crate) operations: u64,
    /// Does its part; how long the operations took.
    pub(crate) body: Body<'a>,
}

/// Does one thread's part of a slice, and says how long the operations took.
pub(crate) type Body<'a> = Box<dyn Fn(&Part<'_>) -> Duration + Sync + 'a>;

impl<'a> Row<'a> {
    /// One operation in so many threads at once.
    pub(crate) fn new(threads: usize, body: impl Fn(&Part<'_>) -> Duration + Sync + 'a) -> Row<'a> {
        Row { threads, timed: threads, sleeps: false, operations: 1, body: Box::new(body) }
    }

    /// The same, of which one count has so many operations.
    pub(crate) fn of(self, operations: u64) -> Row<'a> {
        Row { operations, ..self }
    }
}

/// What a thread is told of its part of a slice.
pub(crate) struct Part<'a> {
    /// The number of the thread among those of the row.
    pub(crate) me: usize,
    /// How often it does the operation.
    pub(crate) count: u64,
    /// The last phase that the timed threads have done, and the present one.
    over: (&'a AtomicU64, u64),
}

impl Part<'_> {
    /// Whether the timed threads have done their work: the others end theirs.
    pub(crate) fn is_over(&self) -> bool {
        // Relaxed: it ends loops and publishes nothing.
        self.over.0.load(Ordering::Relaxed) >= self.over.1
    }

    /// Works until the timed threads are done. Nobody asks how long that takes.
    pub(crate) fn until_over(&self, mut work: impl FnMut()) -> Duration {
        while !self.is_over() {
            work();
        }
        Duration::ZERO
    }

    /// Does `once` as often as this part has it; how long that took.
    #[inline(always)]
    pub(crate) fn times(&self, mut once: impl FnMut()) -> Duration {
        timed(self.count, |count| {
            for _ in 0..count {
                once();
            }
        })
    }
}

/// Does `batch` so many times in parts of nearly one length, and looks for time that was stolen
/// between them.
#[inline(always)]
pub(crate) fn timed(count: u64, mut batch: impl FnMut(u64)) -> Duration {
    let mut parts = [0_u64; PARTS];
    let mut done = 0;
    let begin = Instant::now();
    let mut last = ticks();
    for (number, part) in (1..).zip(&mut parts) {
        let until = count * number / PARTS as u64;
        if until > done {
            batch(until - done);
            let now = ticks();
            *part = now.saturating_sub(last);
            last = now;
            done = until;
        }
    }
    let elapsed = begin.elapsed();
    GAP.set(judge::gap(&mut parts));
    elapsed
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
}

impl Wanted {
    /// As many slices as fit into this time, for each row.
    pub(crate) fn in_time(budget: Duration, seed: u64) -> Wanted {
        let slices = (budget.as_nanos() / SLICE_AND_ALL.as_nanos()) as u32;
        Wanted { slices: slices.max(2 * COUNTED_MIN as u32), seed, pin: false }
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
    /// Why there are none.
    pub(crate) missing: Option<Missing>,
}

/// The same while it is measured.
struct Draws {
    count: u64,
    drawn: u32,
    /// With the price of the control then.
    counted: Vec<(f64, Price)>,
    /// How many had each flaw.
    flaws: [u32; Flaw::ALL.len()],
}

impl Draws {
    /// Enough is known, or it is known that nothing will be.
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

/// Measures these rows. After a stop, or when the time is over, those that have too few slices have
/// no figure.
pub(crate) fn run(
    rows: &[Row<'_>],
    wanted: &Wanted,
    host: &mut dyn Host,
) -> io::Result<(Vec<Measured>, RunVerdict)> {
    let threads = rows.iter().map(|row| row.threads).max().unwrap_or(1);
    let crew = Crew::new(rows);
    std::thread::scope(|scope| {
        let leader = crew.start(scope, threads, wanted.pin);
        // Threads that the library starts for itself are not to have the priority of a measurement.
        for row in rows.iter().filter(|row| row.threads == 1) {
            crew.try_once(row);
        }
        let raised = Raised::raise();
        let watch = verdict::Watch::begin();
        let mut run = Run {
            crew: &crew,
            rows,
            draws: rows.iter().map(|_| Draws::new()).collect(),
            control: Control::new(),
            prices: [Prices::default(), Prices::default()],
            generator: ChaCha8Rng::seed_from_u64(wanted.seed),
            wanted: *wanted,
        };
        let outcome = run.draw(host);
        let is_stopped = host.is_stopped();
        let verdict = watch.end(raised.is_raised(), wanted.pin);
        drop((raised, leader));
        outcome.map(|()| run.finish(is_stopped, verdict))
    })
}

struct Run<'r, 'a> {
    crew: &'r Crew<'a>,
    rows: &'a [Row<'a>],
    draws: Vec<Draws>,
    control: Control,
    /// Of rows of one thread, and of rows of several: a neighbour who waits takes its share.
    prices: [Prices; 2],
    generator: ChaCha8Rng,
    wanted: Wanted,
}

impl Draws {
    fn new() -> Draws {
        Draws { count: 1, drawn: 0, counted: Vec::new(), flaws: Default::default() }
    }
}

impl Run<'_, '_> {
    fn draw(&mut self, host: &mut dyn Host) -> io::Result<()> {
        let deadline = Instant::now() + self.wanted.duration(self.rows.len()) * PATIENCE;
        loop {
            let mut pending: Vec<usize> = (0..self.rows.len())
                .filter(|&row| !self.draws[row].is_done(self.wanted.slices))
                .collect();
            if pending.is_empty() || host.is_stopped() || Instant::now() >= deadline {
                return Ok(());
            }
            host.check()?;
            pending.shuffle(&mut self.generator);
            let threads = self.rows[pending[0]].threads;
            pending.retain(|&row| self.rows[row].threads == threads);
            host.announce(&format_args!("slices of {} rows, {threads} threads", pending.len()));
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
        let burst = self.crew.muster(threads);
        let mut price = self.control.price();
        while begin.elapsed() < BURST && !rows.is_empty() {
            rows.shuffle(&mut self.generator);
            for &number in &rows {
                let (flaw, after) = self.slice(number, price);
                price = after;
                // Another program has one of the CPUs now.
                if threads > 1 && flaw.is_some_and(Flaw::is_loss) {
                    drop(burst);
                    std::thread::sleep(REST);
                    return;
                }
            }
            let wanted = self.wanted.slices;
            rows.retain(|&row| !self.draws[row].is_done(wanted));
        }
    }

    /// Draws one slice; why it does not count, and the price of the control after it.
    fn slice(&mut self, number: usize, before: Price) -> (Option<Flaw>, Price) {
        let (row, draws) = (&self.rows[number], &mut self.draws[number]);
        let spans = self.crew.slice(number, draws.count, row.threads);
        let after = self.control.price();
        let price = before.worse(after);
        let prices = &mut self.prices[usize::from(row.threads > 1)];
        prices.add(after);
        let wall_ns = spans.iter().map(Span::wall_ns).max().unwrap_or_default();
        let took_ns = spans.iter().map(|span| span.took_ns).max().unwrap_or_default();
        // What is far too short tells so whether it counts or not.
        if took_ns * 2 < SLICE_NS && wall_ns < SLICE_NS {
            draws.calibrate(took_ns, wall_ns);
            return (None, after);
        }
        draws.drawn += 1;
        let flaw = judge(&spans, row.sleeps).err();
        let flaw = flaw.or_else(|| (!prices.is_usual(price)).then_some(Flaw::Control));
        match flaw {
            Some(flaw) => draws.flaws[flaw as usize] += 1,
            None => {
                let took: u64 = spans[..row.timed].iter().map(|span| span.took_ns).sum();
                let operations = row.timed as u64 * draws.count * row.operations;
                draws.counted.push((took as f64 / operations as f64, price));
                draws.calibrate(took_ns, wall_ns);
            }
        }
        (flaw, after)
    }

    /// The figures, without slices whose control is found to be dear by now.
    fn finish(self, is_stopped: bool, mut verdict: RunVerdict) -> (Vec<Measured>, RunVerdict) {
        let Run { rows, draws, prices, .. } = self;
        let finish = |(row, mut draws): (&Row<'_>, Draws)| {
            let prices = &prices[usize::from(row.threads > 1)];
            let before = draws.counted.len();
            draws.counted.retain(|(_, price)| prices.is_usual(*price));
            draws.flaws[Flaw::Control as usize] += (before - draws.counted.len()) as u32;
            let values: Vec<f64> = draws.counted.iter().map(|(ns, _)| *ns).collect();
            verdict.add_row(row, draws.drawn, values.len() as u32, &draws.flaws);
            if values.len() < COUNTED_MIN {
                let missing = if is_stopped {
                    Missing::Interrupted
                } else {
                    Missing::of(&draws.flaws, draws.drawn)
                };
                return Measured { values: Vec::new(), missing: Some(missing) };
            }
            Measured { values, missing: None }
        };
        let measured = rows.iter().zip(draws).map(finish).collect();
        verdict.drift_percent = prices.iter().map(Prices::drift_percent).fold(0.0, f64::max);
        (measured, verdict)
    }
}

#[cfg(test)]
mod tests;
