//! What all threads of the torture share: when to stop, what was counted, what was found wrong.
//!
//! Every count is an atomic, so that the report can be written while threads hang.

use std::array;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::kinds::{FaultKind, Operation, ReaderKind, Step, Way};
use super::mutants::Bug;
use super::pool::PIPE_LEN;
use super::task::Task;

/// Ages 0 to ten, and a last place for what is more.
pub(super) const HISTOGRAM: usize = PIPE_LEN + 2;

/// The shared state of a run.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) bug: Option<Bug>,
    stop: AtomicBool,
    started: Instant,
    ways: [AtomicU64; Way::ALL.len()],
    operations: [AtomicU64; Operation::ALL.len()],
    faults: [AtomicU64; FaultKind::ALL.len()],
    first: OnceLock<Fault>,
    /// Callbacks given to `call`, and those that have run.
    pub(super) calls_queued: AtomicU64,
    pub(super) calls_run: AtomicU64,
    /// One for each thread that lasts.
    pub(super) records: Vec<ThreadRecord>,
}

/// Something wrong.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Fault {
    pub(super) kind: FaultKind,
    /// Since the start of the run.
    pub(super) after_s: f64,
    pub(super) domain: String,
    /// Who saw it.
    pub(super) reader: Option<ReaderKind>,
    /// How the block had been taken out.
    pub(super) updater: Option<Way>,
    pub(super) detail: String,
}

/// A thread that lasts, as seen by the watchdog and by the report.
#[derive(Debug)]
pub(super) struct ThreadRecord {
    pub(super) name: String,
    /// Grows while the thread gets on.
    beats: AtomicU64,
    step: AtomicU8,
    /// The system's number of the thread; 0 until it runs.
    thread: AtomicU32,
    ended: AtomicBool,
    /// Reads by their kind.
    reads: [AtomicU64; ReaderKind::ALL.len()],
    /// Reads by the age of what was seen.
    pub(super) ages: Histogram,
    /// Some reads, by the grace periods that ended meanwhile.
    pub(super) batches: Histogram,
}

/// Counts by a small number.
#[derive(Debug)]
pub(super) struct Histogram([AtomicU64; HISTOGRAM]);

impl Histogram {
    fn new() -> Self {
        Self(array::from_fn(|_| AtomicU64::new(0)))
    }

    pub(super) fn count(&self, value: u64) {
        let place = value.min(HISTOGRAM as u64 - 1) as usize;
        self.0[place].fetch_add(1, Relaxed);
    }

    pub(super) fn add_to(&self, total: &mut [u64; HISTOGRAM]) {
        total.iter_mut().zip(&self.0).for_each(|(total, count)| *total += count.load(Relaxed));
    }
}

impl ThreadRecord {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            beats: AtomicU64::new(0),
            step: AtomicU8::new(Step::Start.code()),
            thread: AtomicU32::new(0),
            ended: AtomicBool::new(false),
            reads: array::from_fn(|_| AtomicU64::new(0)),
            ages: Histogram::new(),
            batches: Histogram::new(),
        }
    }

    /// The thread gets on, and this is what it does now.
    pub(super) fn begin(&self, step: Step) {
        self.step.store(step.code(), Relaxed);
        self.beat();
    }

    /// The thread gets on with what it does.
    pub(super) fn beat(&self) {
        self.beats.fetch_add(1, Relaxed);
    }

    /// A block was read in this way, and had this age.
    pub(super) fn read(&self, kind: ReaderKind, age: u32) {
        self.reads[kind.index()].fetch_add(1, Relaxed);
        self.ages.count(u64::from(age));
    }

    pub(super) fn beats(&self) -> u64 {
        self.beats.load(Relaxed)
    }

    pub(super) fn doing(&self) -> String {
        Step::describe(self.step.load(Relaxed))
    }

    /// The calling thread is this one.
    pub(super) fn start(&self) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        self.thread.store(thread, Relaxed); // only told
    }

    /// Whether it has the system start or end a process, where none of the library's code runs.
    pub(super) fn is_with_the_system(&self) -> bool {
        let step = self.step.load(Relaxed);
        [Operation::ChildStart, Operation::Child]
            .iter()
            .any(|&operation| step == Step::Defer(operation).code())
    }

    /// What the system says that the thread is at.
    pub(super) fn task(&self) -> Task {
        Task::of(self.thread.load(Relaxed))
    }

    pub(super) fn end(&self) {
        // Release: pairs with the Acquire in `has_ended`; what the thread counted is counted.
        self.ended.store(true, Release);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Acquire)
    }
}

impl Ledger {
    pub(super) fn new(bug: Option<Bug>, records: Vec<ThreadRecord>) -> Self {
        Self {
            bug,
            stop: AtomicBool::new(false),
            started: Instant::now(),
            ways: array::from_fn(|_| AtomicU64::new(0)),
            operations: array::from_fn(|_| AtomicU64::new(0)),
            faults: array::from_fn(|_| AtomicU64::new(0)),
            first: OnceLock::new(),
            calls_queued: AtomicU64::new(0),
            calls_run: AtomicU64::new(0),
            records,
        }
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Whether the threads should end.
    pub(super) fn is_over(&self) -> bool {
        self.stop.load(Relaxed)
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// An update was made in this way.
    pub(super) fn used(&self, way: Way) {
        self.ways[way.index()].fetch_add(1, Relaxed);
    }

    pub(super) fn uses(&self, way: Way) -> u64 {
        self.ways[way.index()].load(Relaxed)
    }

    /// Something was deferred in this way, so often.
    pub(super) fn did(&self, operation: Operation, times: u64) {
        self.operations[operation.index()].fetch_add(times, Relaxed);
    }

    pub(super) fn done(&self, operation: Operation) -> u64 {
        self.operations[operation.index()].load(Relaxed)
    }

    /// Something is wrong. The first time of all is kept whole.
    pub(super) fn fault(
        &self,
        kind: FaultKind,
        domain: &str,
        reader: Option<ReaderKind>,
        updater: Option<Way>,
        detail: impl FnOnce() -> String,
    ) {
        let after_s = self.elapsed().as_secs_f64();
        self.first.get_or_init(|| Fault {
            kind,
            after_s,
            domain: domain.to_owned(),
            reader,
            updater,
            detail: detail(),
        });
        // After the above, so that the thread that sees a count finds the first fault.
        self.faults[kind.index()].fetch_add(1, Release);
    }

    pub(super) fn faults(&self, kind: FaultKind) -> u64 {
        // Acquire: pairs with the Release in `fault`; the first fault can be reported.
        self.faults[kind.index()].load(Acquire)
    }

    pub(super) fn faults_total(&self) -> u64 {
        FaultKind::ALL.iter().map(|&kind| self.faults(kind)).sum()
    }

    pub(super) fn first_fault(&self) -> Option<&Fault> {
        self.first.get()
    }

    /// All reads of a kind.
    pub(super) fn reads(&self, kind: ReaderKind) -> u64 {
        self.records.iter().map(|record| record.reads[kind.index()].load(Relaxed)).sum()
    }

    /// All reads by age, and some by the grace periods that ended meanwhile.
    pub(super) fn histograms(&self) -> ([u64; HISTOGRAM], [u64; HISTOGRAM]) {
        let mut ages = [0; HISTOGRAM];
        let mut batches = [0; HISTOGRAM];
        for record in &self.records {
            record.ages.add_to(&mut ages);
            record.batches.add_to(&mut batches);
        }
        (ages, batches)
    }
}
