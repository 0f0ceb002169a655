//! What all threads of the torture share: when to stop, what was counted, what was found wrong.
//!
//! No lock is held but for a moment, so that the report can be written while threads hang.

use std::array;
use std::marker::PhantomData;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, fence};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::kinds::{FaultKind, Named, Operation, ReaderKind, Step, Way};
use super::pool::{PIPE_LEN, lock};
use super::task::Task;

/// Ages 0 to ten, and a last place for what is more.
pub(crate) const HISTOGRAM: usize = PIPE_LEN + 2;

/// How often each of these was.
pub(crate) struct Counts<T>(Vec<AtomicU64>, PhantomData<T>);

impl<T: Named> Default for Counts<T> {
    fn default() -> Self {
        Self(T::ALL.iter().map(|_| AtomicU64::new(0)).collect(), PhantomData)
    }
}

impl<T: Named> Counts<T> {
    pub(crate) fn add(&self, of: T, times: u64) {
        self.0[of.index()].fetch_add(times, Relaxed);
    }

    pub(crate) fn get(&self, of: T) -> u64 {
        self.0[of.index()].load(Relaxed)
    }
}

/// The shared state of a run.
pub(crate) struct Ledger {
    stop: AtomicBool,
    started: Instant,
    pub(crate) ways: Counts<Way>,
    pub(crate) operations: Counts<Operation>,
    faults: Counts<FaultKind>,
    pub(crate) first: OnceLock<Fault>,
    /// Callbacks given to `call`, and those that have run.
    pub(crate) calls_queued: AtomicU64,
    pub(crate) calls_run: AtomicU64,
    /// One for each thread that lasts.
    pub(crate) records: Vec<ThreadRecord>,
}

/// Something wrong.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    /// Since the start of the run.
    pub(crate) after_s: f64,
    pub(crate) domain: String,
    /// Who saw it.
    pub(crate) reader: Option<ReaderKind>,
    /// How the block had been taken out.
    pub(crate) updater: Option<Way>,
    pub(crate) detail: String,
}

/// A thread that lasts, as seen by the watchdog and by the report.
#[derive(Default)]
pub(crate) struct ThreadRecord {
    pub(crate) name: String,
    /// Grows while the thread gets on.
    beats: AtomicU64,
    step: Mutex<Step>,
    /// The system's number of the thread; 0 until it runs.
    thread: AtomicU32,
    ended: AtomicBool,
    /// Reads by their kind.
    reads: Counts<ReaderKind>,
    /// Reads by the age of what was seen.
    pub(crate) ages: Histogram,
    /// Some reads, by the grace periods that ended meanwhile.
    pub(crate) batches: Histogram,
}

/// Counts by a small number.
#[derive(Default)]
pub(crate) struct Histogram([AtomicU64; HISTOGRAM]);

impl Histogram {
    pub(crate) fn count(&self, value: u64) {
        let place = value.min(HISTOGRAM as u64 - 1) as usize;
        self.0[place].fetch_add(1, Relaxed);
    }
}

impl ThreadRecord {
    pub(crate) fn new(name: String) -> Self {
        Self { name, ..Self::default() }
    }

    /// The thread gets on, and this is what it does now.
    pub(crate) fn begin(&self, step: Step) {
        *lock(&self.step) = step;
        self.beat();
    }

    /// The thread gets on with what it does.
    pub(crate) fn beat(&self) {
        self.beats.fetch_add(1, Relaxed);
    }

    /// A block was read in this way, and had this age.
    pub(crate) fn read(&self, kind: ReaderKind, age: u32) {
        self.reads.add(kind, 1);
        self.ages.count(u64::from(age));
    }

    pub(crate) fn beats(&self) -> u64 {
        self.beats.load(Relaxed)
    }

    pub(crate) fn doing(&self) -> String {
        lock(&self.step).describe()
    }

    /// The calling thread is this one.
    pub(crate) fn start(&self) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        self.thread.store(thread, Relaxed); // only told
    }

    /// Whether it has the system start or end a process, where none of the library's code runs.
    pub(crate) fn is_with_the_system(&self) -> bool {
        matches!(*lock(&self.step), Step::Defer(Operation::ChildStart | Operation::Child))
    }

    /// What the system says that the thread is at.
    pub(crate) fn task(&self) -> Task {
        Task::of(self.thread.load(Relaxed))
    }

    pub(crate) fn end(&self) {
        // Release: pairs with the Acquire in `has_ended`; what the thread counted is counted.
        self.ended.store(true, Release);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Acquire)
    }
}

impl Ledger {
    pub(crate) fn new(records: Vec<ThreadRecord>) -> Self {
        Self {
            stop: AtomicBool::new(false),
            started: Instant::now(),
            ways: Counts::default(),
            operations: Counts::default(),
            faults: Counts::default(),
            first: OnceLock::new(),
            calls_queued: AtomicU64::new(0),
            calls_run: AtomicU64::new(0),
            records,
        }
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Whether the threads should end.
    pub(crate) fn is_over(&self) -> bool {
        self.stop.load(Relaxed)
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Something is wrong. The first time of all is kept whole.
    pub(crate) fn fault(
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
        // Release: pairs with the fence in `faults`.
        fence(Release);
        self.faults.add(kind, 1);
    }

    pub(crate) fn faults(&self, kind: FaultKind) -> u64 {
        let count = self.faults.get(kind);
        // Acquire: pairs with the fence in `fault`; the first fault can be reported.
        fence(Acquire);
        count
    }

    pub(crate) fn faults_total(&self) -> u64 {
        FaultKind::ALL.iter().map(|&kind| self.faults(kind)).sum()
    }

    /// All reads of a kind.
    pub(crate) fn reads(&self, kind: ReaderKind) -> u64 {
        self.records.iter().map(|record| record.reads.get(kind)).sum()
    }

    /// The sum of such histograms of all threads.
    pub(crate) fn histogram(&self, of: fn(&ThreadRecord) -> &Histogram) -> [u64; HISTOGRAM] {
        let records = || self.records.iter().map(|record| &of(record).0);
        array::from_fn(|place| records().map(|counts| counts[place].load(Relaxed)).sum())
    }
}
