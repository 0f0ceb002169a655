//! The race: one row of slices for each design, by the one runner ([`crate::slices`]).
//!
//! The loop is the same for every design and compiled once for each. A slice continues the
//! operations where the last one of its thread ended, and looks every few of them whether another
//! thread is done. Its thread registers before, and leaves after what is timed. Between two slices
//! the design frees what it can.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::ledger::Ledger;
use super::plan::{Operation, Plan, Workload};
use super::subject::{Job, Subject};
use super::{Design, UnknownDesign, build};
use crate::Host;
use crate::slices::{self, Missing, Part, Row, RunVerdict, Wanted};

/// Operations between two looks whether the slice is over, and between two quiescent states of
/// QSBR.
const CHUNK: usize = 32;

/// Updates of each thread in a slice whose latencies are kept.
const LATENCIES: usize = 1024;

/// Steps without any progress after which a design is taken to have freed all that it will.
const FLUSH_PATIENCE: u32 = 64;

/// Operations before a design is measured: threads that it starts for itself are started by them,
/// and have no other priority than in a program.
const FIRST_OPERATIONS: u64 = 2_000;

/// A design with its data.
pub(crate) trait Prepared: Send + Sync {
    /// One thread's part of a slice; how long the operations took.
    fn work(&self, plan: &Plan, part: &Part<'_>, seat: &mut Seat) -> Duration;

    /// Lets the design free what it can, while no thread works; what is wrong then.
    fn settle(&self) -> u64;

    /// The serial number of the update that made the value of this key.
    #[cfg(test)]
    fn serial(&self, key: &[u8]) -> Option<u32>;

    /// Counts the values that this design has freed, also after the design is gone.
    #[cfg(test)]
    fn freed(&self) -> Box<dyn Fn() -> u64>;
}

/// What a thread of a row keeps from one slice to the next.
#[derive(Debug)]
pub(crate) struct Seat {
    /// Its next operation.
    next: usize,
    serial: u32,
    pub(super) updates: u64,
    pub(super) checksum_errors: u64,
    /// The slice and the latency of updates.
    update_ns: Vec<(u32, u32)>,
    /// The slice, and the values that waited to be freed at its end.
    unreclaimed: Vec<(u32, u64)>,
}

impl Seat {
    pub(super) fn new(number: usize) -> Seat {
        Seat {
            next: 0,
            // Serial numbers name the thread and its updates; 0 is the value of the beginning.
            serial: (number as u32 + 1) << 24,
            updates: 0,
            checksum_errors: 0,
            update_ns: Vec::new(),
            unreclaimed: Vec::new(),
        }
    }
}

/// What a design shares between the threads, and the counts of its values.
pub(crate) struct Ready<S> {
    shared: S,
    ledger: &'static Ledger,
}

impl<S: Subject> Ready<S> {
    pub(crate) fn boxed(plan: &Plan) -> Box<dyn Prepared> {
        let ledger = Ledger::leak();
        Box::new(Self { shared: S::new(&Job { plan, ledger }), ledger })
    }

    #[inline]
    fn step(
        &self,
        job: &Job<'_>,
        operation: Operation,
        thread: &mut S::Thread<'_>,
        seat: &mut Seat,
        slice: Option<u32>,
    ) {
        if !operation.is_update() {
            seat.checksum_errors += u64::from(self.shared.read(job, operation, thread));
            return;
        }
        seat.serial = seat.serial.wrapping_add(1);
        seat.updates += 1;
        let gives_up = if S::TIMED {
            let begin = Instant::now();
            let gives_up = self.shared.change(job, operation, thread, seat.serial);
            let ns = begin.elapsed().as_nanos().try_into().unwrap_or(u32::MAX);
            // What is beyond the room that was made before is not kept: to make more takes time.
            if let (Some(slice), true) = (slice, seat.update_ns.len() < seat.update_ns.capacity()) {
                seat.update_ns.push((slice, ns));
            }
            gives_up
        } else {
            self.shared.change(job, operation, thread, seat.serial)
        };
        if gives_up {
            self.ledger.replaced();
        }
    }

    /// Lets the design free what it can.
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
    fn work(&self, plan: &Plan, part: &Part<'_>, seat: &mut Seat) -> Duration {
        if part.slice.is_some() {
            seat.update_ns.reserve_exact(LATENCIES);
        } else if part.me == 0 {
            // Before the warm-up, so that no slice has the garbage of the last one.
            self.flush();
        }
        let operations = &*plan.operations[part.me];
        let job = Job { plan, ledger: self.ledger };
        let mut thread = self.shared.thread();
        let mut left = part.count;
        let begin = Instant::now();
        while left > 0 && !operations.is_empty() && !part.is_over() {
            let rest = &operations[seat.next..];
            let chunk = &rest[..rest.len().min(CHUNK).min(left as usize)];
            for &operation in chunk {
                self.step(&job, operation, &mut thread, seat, part.slice);
            }
            left -= chunk.len() as u64;
            seat.next = (seat.next + chunk.len()) % operations.len();
            self.shared.pause(&mut thread);
        }
        let took = begin.elapsed();
        part.done(part.count - left);
        if let Some(slice) = part.slice.filter(|_| part.me == 0) {
            seat.unreclaimed.push((slice, self.ledger.unreclaimed()));
        }
        self.shared.leave(thread);
        took
    }

    fn settle(&self) -> u64 {
        self.flush();
        self.shared.errors_at_rest()
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

/// A design, filled with keys and values and ready to race.
pub struct Contender {
    /// Which one.
    pub design: &'static Design,
    workload: Workload,
    prepared: Box<dyn Prepared>,
    /// How long it took to fill.
    took: Duration,
}

/// A design is filled anew, in other memory, if that takes less than this share of what is measured
/// of it: where its words lie, and what shares their lines, differs from one run of a program to
/// the next, and slices in one memory do not show it.
const FILLING_SHARE: u32 = 4;

impl Contender {
    /// Fills a design with the plan's keys and values.
    ///
    /// # Errors
    /// When no design of this name solves the workload.
    pub fn filled(workload: Workload, name: &str, plan: &Plan) -> Result<Self, UnknownDesign> {
        let began = Instant::now();
        let (design, prepared) = build(workload, name, plan)?;
        let mut seat = Seat::new(0);
        prepared.work(plan, &Part::alone(0, FIRST_OPERATIONS), &mut seat);
        Ok(Self { design, workload, prepared, took: began.elapsed() })
    }

    /// Fills it anew, if that is quick beside so much time.
    pub fn refill(&mut self, plan: &Plan, beside: Duration) {
        if self.took * FILLING_SHARE < beside
            && let Ok(filled) = Self::filled(self.workload, self.design.name, plan)
        {
            *self = filled;
        }
    }
}

impl std::fmt::Debug for Contender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Contender").field(&self.design.name).finish()
    }
}

/// What the slices of one design gave.
#[derive(Clone, Debug, Default)]
pub struct Heat {
    /// Nanoseconds of a thread for one operation, of each slice that counts.
    pub ns: Vec<f64>,
    /// CPU time for one operation in nanoseconds, of all slices.
    pub cpu_ns: Vec<f64>,
    /// Why there are none that count.
    pub missing: Option<Missing>,
    /// Nanoseconds from the start of an update to its return, in slices that count. Empty for
    /// counters and queues, whose operations are shorter than the reading of a clock.
    pub update_ns: Vec<u32>,
    /// Objects replaced and not yet freed, the most at the end of a slice that counts.
    pub unreclaimed_peak: u64,
    /// Reads that saw a torn, freed or wrong value. Anything but 0 is a defect of the design.
    pub checksum_errors: u64,
}

/// How long a calm race of so many designs takes.
pub fn race_duration(contenders: usize, slices: u32) -> Duration {
    wanted(slices, 0).duration(contenders)
}

fn wanted(slices: u32, seed: u64) -> Wanted {
    Wanted { slices, seed, pin: false, least: 1 }
}

/// Races designs that are filled by this plan: so many slices of each that count.
///
/// # Errors
/// Those of the host.
pub fn race(
    contenders: &[&Contender],
    plan: &Plan,
    slices: u32,
    seed: u64,
    host: &mut dyn Host,
) -> io::Result<(Vec<Heat>, RunVerdict)> {
    let threads = plan.operations.len();
    let seats = |_| (0..threads).map(|number| Mutex::new(Seat::new(number))).collect();
    let seats: Vec<Vec<Mutex<Seat>>> = contenders.iter().map(seats).collect();
    let rows: Vec<Row<'_>> = contenders
        .iter()
        .zip(&seats)
        .map(|(contender, seats)| {
            let prepared = &*contender.prepared;
            let row = Row::new(threads, move |part: &Part<'_>| {
                let seat = seats[part.me].lock();
                prepared.work(plan, part, &mut seat.unwrap_or_else(PoisonError::into_inner))
            });
            Row { blocks: true, is_compared: true, ..row }
        })
        .collect();
    let (measured, verdict) = slices::run(&rows, &wanted(slices, seed), host)?;
    drop(rows);
    let heat = |((contender, seats), measured): ((&&Contender, Vec<Mutex<Seat>>), _)| {
        let slices::Measured { values, slices, cpu, missing } = measured;
        let counts = |slice: &u32| slices.binary_search(slice).is_ok();
        let mut heat = Heat { ns: values, cpu_ns: cpu, missing, ..Heat::default() };
        heat.checksum_errors = contender.prepared.settle();
        for seat in seats {
            let seat = seat.into_inner().unwrap_or_else(PoisonError::into_inner);
            heat.checksum_errors += seat.checksum_errors;
            let update_ns = seat.update_ns.iter().filter(|(slice, _)| counts(slice));
            heat.update_ns.extend(update_ns.map(|(_, ns)| ns));
            let waited = seat.unreclaimed.iter().filter(|(slice, _)| counts(slice));
            heat.unreclaimed_peak =
                waited.map(|(_, count)| *count).fold(heat.unreclaimed_peak, u64::max);
        }
        heat
    };
    let heats = contenders.iter().zip(seats).zip(measured).map(heat).collect();
    Ok((heats, verdict))
}
