//! What the race runs: a design with its data, behind the one trait of the timed loop.
//!
//! The loop is the same for every design and compiled once for each. A slice continues the
//! operations where the last one of its thread ended, and looks every few of them whether another
//! thread is done. Its thread registers before, and leaves after what is timed. What is replaced in
//! a slice is freed in later ones, as in a program: a design that frees late pays for that, too,
//! but for what still waits at the end of a round. Designs that share a domain free some of each
//! other's objects: a thread frees about as many as it retires, so each pays for its own number.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::plan::{Operation, Plan};
use super::subject::{Job, Subject};
#[cfg(test)]
use super::table::Key;
use super::value::Ledger;
use crate::freed::drain;
use crate::slices::{PARTS, Part};

/// Operations between two looks whether the slice is over, and between two quiescent states of
/// QSBR. A slice of fewer and longer operations has [`PARTS`] looks, too.
const CHUNK: usize = 32;

/// Updates of each thread in a slice whose latencies are kept.
const LATENCIES: usize = 1024;

/// Steps without any progress after which a design is taken to have freed all that it will.
const FLUSH_PATIENCE: u32 = 64;

/// A design with its data.
pub(crate) trait Prepared: Send + Sync {
    /// One thread's part of a slice; how long the operations took.
    fn work(&self, plan: &Plan, part: &Part<'_>, seat: &mut Seat) -> Duration;

    /// Lets the design free what it can, while no thread works; what is wrong then.
    fn settle(&self) -> u64;

    /// The serial number of the update that made the value of this key.
    #[cfg(test)]
    fn serial(&self, key: &Key) -> Option<u32>;

    /// Counts the values that this design has freed, also after the design is gone.
    #[cfg(test)]
    fn freed(&self) -> Box<dyn Fn() -> u64>;
}

/// Makes a design with its data.
pub(crate) type Make = fn(&Plan) -> Box<dyn Prepared>;

/// What a thread of a row keeps from one slice to the next.
#[derive(Default)]
pub(crate) struct Seat {
    /// Its next operation.
    next: usize,
    serial: u32,
    pub(crate) updates: u64,
    pub(crate) checksum_errors: u64,
    /// The slice and the latency of updates.
    pub(crate) update_ns: Vec<(u32, u32)>,
    /// The slice, and the values that waited to be freed at its end.
    pub(crate) unreclaimed: Vec<(u32, u64)>,
}

impl Seat {
    pub(crate) fn new(number: usize) -> Seat {
        // Serial numbers name the thread and its updates; 0 is the value of the beginning.
        Seat { serial: (number as u32 + 1) << 24, ..Seat::default() }
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
        thread: &mut S::Thread,
        seat: &mut Seat,
        slice: Option<u32>,
    ) {
        if !operation.is_update() {
            seat.checksum_errors += u64::from(self.shared.read(job, operation, thread));
            return;
        }
        seat.serial = seat.serial.wrapping_add(1);
        seat.updates += 1;
        let begin = S::TIMED.then(Instant::now);
        let gives_up = self.shared.change(job, operation, thread, seat.serial);
        if let Some(begin) = begin {
            let ns = begin.elapsed().as_nanos().try_into().unwrap_or(u32::MAX);
            // What is beyond the room that was made before is not kept: to make more takes time.
            if let (Some(slice), true) = (slice, seat.update_ns.len() < seat.update_ns.capacity()) {
                seat.update_ns.push((slice, ns));
            }
        }
        if gives_up {
            self.ledger.replaced.add(1);
        }
    }
}

impl<S: Subject> Prepared for Ready<S> {
    fn work(&self, plan: &Plan, part: &Part<'_>, seat: &mut Seat) -> Duration {
        if part.slice.is_some() {
            seat.update_ns.reserve_exact(LATENCIES);
        }
        let (operations, updates_before) = (&*plan.operations[part.me], seat.updates);
        let job = Job { plan, ledger: self.ledger };
        let mut thread = self.shared.thread();
        let mut left = part.count;
        let chunk_max = CHUNK.min(part.count.div_ceil(PARTS as u64) as usize);
        let begin = Instant::now();
        while left > 0 && !operations.is_empty() && !part.is_over() {
            let rest = &operations[seat.next..];
            let chunk = &rest[..rest.len().min(chunk_max).min(left as usize)];
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
        // Relaxed: read after the threads were joined, which orders it.
        self.ledger.updates.fetch_add(seat.updates - updates_before, Ordering::Relaxed);
        took
    }

    fn settle(&self) -> u64 {
        drain(FLUSH_PATIENCE, || self.ledger.unreclaimed(), || self.shared.flush());
        self.shared.errors_at_rest(self.ledger)
    }

    #[cfg(test)]
    fn serial(&self, key: &Key) -> Option<u32> {
        self.shared.serial(key)
    }

    #[cfg(test)]
    fn freed(&self) -> Box<dyn Fn() -> u64> {
        let ledger = self.ledger;
        Box::new(|| ledger.freed.sum().cast_unsigned())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Keyed, Whole};
    use super::*;
    use crate::cases::loops::tests::{FLUSHES, Slow, is_of_operations};

    /// It was freed before each slice, which was not timed: designs that free in batches of more
    /// than the updates of a slice were a fifth faster than in a program.
    #[test]
    fn what_a_slice_has_replaced_is_not_freed_for_nothing() {
        let plan = Plan::of_one_thread([Operation::update(0)]);
        let ready = Ready::<Keyed<Whole<Slow>, false>>::boxed(&plan);
        let mut seat = Seat::new(0);
        (0..2).for_each(|_| _ = ready.work(&plan, &Part::alone(0, 100), &mut seat));
        assert_eq!(FLUSHES.load(Ordering::Relaxed), 0);
        ready.settle();
        assert_ne!(FLUSHES.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn neither_registering_nor_leaving_is_timed() {
        let plan = Plan::of_one_thread([Operation::read(0), Operation::update(0)]);
        let ready = Ready::<Keyed<Whole<Slow>, false>>::boxed(&plan);
        is_of_operations(ready.work(&plan, &Part::alone(0, 100), &mut Seat::new(0)));
    }
}
