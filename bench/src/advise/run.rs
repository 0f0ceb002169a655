//! The timed loop, the same for every design and compiled once for each.
//!
//! Threads start together behind a barrier, run their operations cyclically and look every few
//! operations whether to stop. The coordinating thread sleeps meanwhile and samples how much is
//! waiting to be freed. Threads are not pinned: a design that suffers from being moved between
//! CPUs suffers from it in programs too.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};

use super::ledger::Ledger;
use super::plan::{Operation, Outcome, Plan};
use super::subject::{Job, Subject};

/// Operations between two looks at the stop flag, and between two quiescent states of QSBR.
const CHUNK: usize = 32;

/// How often the coordinating thread samples. Often enough for a peak, seldom enough not to take
/// part in the contest for the CPUs.
const SAMPLE_EVERY: Duration = Duration::from_millis(2);

/// The longest update latency that is distinguished from longer ones, in nanoseconds.
const LATENCY_MAX_NS: u64 = 60_000_000_000;

/// Digits of the latency histogram: 1 % is enough for tails, and keeps it in the cache.
const LATENCY_DIGITS: u8 = 2;

/// Steps without any progress after which a design is taken to have freed all that it will.
const FLUSH_PATIENCE: u32 = 64;

/// A design with its data, ready to run.
pub trait Prepared: Send {
    /// Runs the plan once, for as long as it says, and then lets the design free what it can.
    fn round(&mut self, plan: &Plan) -> Outcome;

    /// Runs the plan once, each thread for so many operations, however long that takes.
    fn round_of(&mut self, plan: &Plan, operations_per_thread: u64) -> Outcome;

    /// The serial number of the update that made the value of this key.
    #[cfg(test)]
    fn serial(&self, key: &[u8]) -> Option<u32>;

    /// Counts the values that this design has freed, also after the design is gone.
    #[cfg(test)]
    fn freed(&self) -> Box<dyn Fn() -> u64>;
}

/// What a design shares between the threads, and the counts of its values.
pub(crate) struct Ready<S> {
    shared: S,
    ledger: &'static Ledger,
}

/// What one thread did.
struct Tally {
    reads: u64,
    updates: u64,
    checksum_errors: u64,
    latency: Histogram<u64>,
    begin: Instant,
    end: Instant,
}

/// What a thread needs besides its operations.
struct Round<'a> {
    plan: &'a Plan,
    limit: Option<u64>,
    start: Barrier,
    stop: AtomicBool,
}

impl<S: Subject> Ready<S> {
    pub(crate) fn boxed(plan: &Plan) -> Box<dyn Prepared> {
        let ledger = Ledger::leak();
        Box::new(Self { shared: S::new(&Job { plan, ledger }), ledger })
    }

    fn run(&mut self, plan: &Plan, limit: Option<u64>) -> Outcome {
        let round = Round {
            plan,
            limit,
            start: Barrier::new(plan.operations.len() + 1),
            stop: AtomicBool::new(false),
        };
        let this = &*self;
        let (tallies, mut peak, cpu_before) = thread::scope(|scope| {
            let threads: Vec<_> = (0..plan.operations.len())
                .map(|number| {
                    let round = &round;
                    scope.spawn(move || this.work(round, number))
                })
                .collect();
            let cpu_before = cpu_time();
            round.start.wait();
            let peak = this.watch(&round, || threads.iter().all(|thread| thread.is_finished()));
            let tallies: Vec<Tally> = threads
                .into_iter()
                .map(|thread| {
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect();
            (tallies, peak, cpu_before)
        });
        peak = peak.max(self.ledger.unreclaimed());
        self.flush();
        let mut outcome = summary(&tallies, cpu_time().saturating_sub(cpu_before), peak);
        outcome.checksum_errors += self.shared.errors_at_rest();
        outcome
    }

    /// Samples until the round is over; the most that waited to be freed.
    fn watch(&self, round: &Round<'_>, all_finished: impl Fn() -> bool) -> u64 {
        let begin = Instant::now();
        let mut peak = 0;
        while !all_finished() {
            let left = match round.limit {
                Some(_) => SAMPLE_EVERY,
                None => round.plan.run_for.saturating_sub(begin.elapsed()),
            };
            // Relaxed, as all accesses to the two flags: they end loops and publish nothing.
            if left.is_zero() || round.plan.stop.load(Ordering::Relaxed) {
                break;
            }
            thread::sleep(left.min(SAMPLE_EVERY));
            peak = peak.max(self.ledger.unreclaimed());
        }
        round.stop.store(true, Ordering::Relaxed);
        peak
    }

    /// The life of one thread.
    fn work(&self, round: &Round<'_>, number: usize) -> Tally {
        let operations = &*round.plan.operations[number];
        let mut left = round.limit.unwrap_or(u64::MAX);
        let mut tally = Tally::new();
        // Serial numbers name the thread and its updates; 0 is the value of the beginning.
        let mut serial = (number as u32 + 1) << 24;
        let mut thread = self.shared.thread();
        let job = Job { plan: round.plan, ledger: self.ledger };
        round.start.wait();
        tally.begin = Instant::now();
        'round: while !operations.is_empty() {
            for chunk in operations.chunks(CHUNK) {
                if left == 0 || round.stop.load(Ordering::Relaxed) {
                    break 'round;
                }
                let chunk = &chunk[..(chunk.len() as u64).min(left) as usize];
                for &operation in chunk {
                    self.step(&job, operation, &mut thread, &mut serial, &mut tally);
                }
                left -= chunk.len() as u64;
                self.shared.pause(&mut thread);
            }
        }
        tally.end = Instant::now();
        self.shared.leave(thread);
        tally
    }

    #[inline]
    fn step(
        &self,
        job: &Job<'_>,
        operation: Operation,
        thread: &mut S::Thread<'_>,
        serial: &mut u32,
        tally: &mut Tally,
    ) {
        if !operation.is_update() {
            tally.checksum_errors += u64::from(self.shared.read(job, operation, thread));
            tally.reads += 1;
            return;
        }
        *serial = serial.wrapping_add(1);
        if S::TIMED {
            let begin = Instant::now();
            let gives_up = self.shared.change(job, operation, thread, *serial);
            tally.latency.saturating_record(begin.elapsed().as_nanos() as u64);
            if gives_up {
                self.ledger.replaced();
            }
        } else if self.shared.change(job, operation, thread, *serial) {
            self.ledger.replaced();
        }
        tally.updates += 1;
    }

    /// Lets the design free what it can, so that no round starts with the garbage of the last.
    fn flush(&self) {
        let mut least = self.ledger.unreclaimed();
        let mut patience = FLUSH_PATIENCE;
        while least > 0 && patience > 0 {
            self.shared.flush();
            let now = self.ledger.unreclaimed();
            if now < least {
                least = now;
                patience = FLUSH_PATIENCE;
            } else {
                patience -= 1;
            }
        }
    }
}

impl<S: Subject> Prepared for Ready<S> {
    fn round(&mut self, plan: &Plan) -> Outcome {
        self.run(plan, None)
    }

    fn round_of(&mut self, plan: &Plan, operations_per_thread: u64) -> Outcome {
        self.run(plan, Some(operations_per_thread))
    }

    #[cfg(test)]
    fn serial(&self, key: &[u8]) -> Option<u32> {
        self.shared.serial(key)
    }

    #[cfg(test)]
    fn freed(&self) -> Box<dyn Fn() -> u64> {
        let ledger = self.ledger;
        Box::new(|| ledger.freed_total())
    }
}

impl Tally {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            reads: 0,
            updates: 0,
            checksum_errors: 0,
            latency: latencies(),
            begin: now,
            end: now,
        }
    }
}

fn latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MAX_NS, LATENCY_DIGITS)
        .expect("the bounds are constants in range")
}

fn summary(tallies: &[Tally], cpu: Duration, unreclaimed_peak: u64) -> Outcome {
    let mut update_latency = latencies();
    for tally in tallies {
        update_latency.add(&tally.latency).expect("all histograms have the same bounds");
    }
    let begin = tallies.iter().map(|tally| tally.begin).min();
    let end = tallies.iter().map(|tally| tally.end).max();
    Outcome {
        reads: tallies.iter().map(|tally| tally.reads).sum(),
        updates: tallies.iter().map(|tally| tally.updates).sum(),
        elapsed: begin.zip(end).map_or(Duration::ZERO, |(begin, end)| end - begin),
        cpu,
        update_latency,
        unreclaimed_peak,
        checksum_errors: tallies.iter().map(|tally| tally.checksum_errors).sum(),
    }
}

/// The time of all CPUs that this process has used.
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
