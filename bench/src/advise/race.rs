//! The race: one row of slices for each design, by the one runner ([`crate::slices`]).

use std::time::Duration;

use hdrhistogram::Histogram;
use parking_lot::Mutex;

use super::Design;
use crate::Host;
use crate::clock::thread_cpu_time;
use crate::shapes::{Plan, Prepared, Seat};
use crate::slices::{self, Aim, COUNTED_MIN, Missing, Part, Row, RunVerdict, Wanted};
use crate::statistics::OfRound;

/// Operations before a design is measured: threads that it starts for itself are started by them,
/// and have no other priority than in a program.
const FIRST_OPERATIONS: u64 = 2_000;

/// A design, filled with keys and values and ready to race.
pub struct Contender {
    /// Which one.
    pub design: &'static Design,
    prepared: Box<dyn Prepared>,
    /// The CPU time that it took to fill.
    took: Duration,
}

/// A design is filled anew, in other memory, if that takes less than this share of what is measured
/// of it: where its words lie, and what shares their lines, differs from one run of a program to
/// the next, and slices in one memory do not show it.
const FILLING_SHARE: u32 = 4;

impl Contender {
    /// Fills a design with the plan's keys and values. It runs this plan, or those that differ in
    /// their operations only.
    pub fn filled(design: &'static Design, plan: &Plan) -> Self {
        let began = thread_cpu_time();
        let prepared = (design.make)(plan);
        let mut seat = Seat::new(0);
        prepared.work(plan, &Part::alone(0, FIRST_OPERATIONS), &mut seat);
        Self { design, prepared, took: thread_cpu_time() - began }
    }

    /// Fills it anew, if that is quick beside so much time.
    pub fn refill(&mut self, plan: &Plan, beside: Duration) {
        if self.took * FILLING_SHARE < beside {
            *self = Self::filled(self.design, plan);
        }
    }
}

impl std::fmt::Debug for Contender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Contender").field(&self.design.name).finish()
    }
}

/// What the slices of one design gave, in all of its races.
#[derive(Clone, Debug)]
pub struct Series {
    /// Which one.
    pub design: &'static Design,
    /// Nanoseconds of a thread for one operation, of each slice that counts.
    pub ns: Vec<OfRound>,
    /// CPU time for one operation in nanoseconds, of all slices.
    pub cpu_ns: Vec<OfRound>,
    /// The count that made a slice in the last race.
    pub known: Option<u64>,
    /// Why none counted, in the last race.
    pub missing: Option<Missing>,
    /// Nanoseconds from the start of an update to its return, in slices that count. Empty for
    /// counters and queues, whose operations are shorter than the reading of a clock.
    pub update_ns: Histogram<u64>,
    /// Objects replaced and not yet freed, the most at the end of a slice that counts.
    pub unreclaimed_peak: u64,
    /// Reads that saw a torn, freed or wrong value. Anything but 0 is a defect of the design.
    pub checksum_errors: u64,
}

impl Series {
    /// That of a design that has not run yet.
    ///
    /// # Panics
    /// Never: a histogram of three significant figures can be had.
    pub fn new(design: &'static Design) -> Self {
        let update_ns = Histogram::new(3).expect("three significant figures are within the limits");
        Self {
            design,
            ns: Vec::new(),
            cpu_ns: Vec::new(),
            known: None,
            missing: None,
            update_ns,
            unreclaimed_peak: 0,
            checksum_errors: 0,
        }
    }

    /// Whether enough slices count.
    pub fn has_figure(&self) -> bool {
        self.ns.len() >= COUNTED_MIN
    }

    /// Adds what the slices of a race gave, the round of this number.
    fn add(&mut self, measured: slices::Measured, round: u32) {
        let of_round = |ns: f64| ns.is_finite().then_some((round, ns));
        self.ns.extend(measured.values.into_iter().filter_map(of_round));
        self.cpu_ns.extend(measured.cpu.into_iter().filter_map(of_round));
        self.known = measured.count;
        self.missing = measured.missing;
    }

    /// Adds what a thread saw in these slices, which count.
    pub(super) fn add_seat(&mut self, seat: Seat, slices: &[u32]) {
        let counts = |slice: u32| slices.binary_search(&slice).is_ok();
        self.checksum_errors += seat.checksum_errors;
        for (_, ns) in seat.update_ns.into_iter().filter(|(slice, _)| counts(*slice)) {
            self.update_ns.record(ns.into()).expect("it grows with what it holds");
        }
        let waited = seat.unreclaimed.into_iter().filter(|(slice, _)| counts(*slice));
        self.unreclaimed_peak =
            waited.map(|(_, count)| count).fold(self.unreclaimed_peak, u64::max);
    }
}

/// How long a calm race of so many designs takes.
pub fn race_duration(contenders: usize, slices: u32) -> Duration {
    wanted(slices, 0).duration(contenders)
}

fn wanted(slices: u32, seed: u64) -> Wanted {
    Wanted { slices, seed, pin: false, least: 1 }
}

/// Races designs that are filled by this plan, in the round of this number: so many slices of each
/// that count, which are added to what is known of it.
pub fn race(
    racing: &mut [(&Contender, &mut Series)],
    plan: &Plan,
    slices: u32,
    (seed, round): (u64, u32),
    host: &mut dyn Host,
) -> RunVerdict {
    let threads = plan.operations.len();
    let seats = |_| (0..threads).map(|number| Mutex::new(Seat::new(number))).collect();
    let seats: Vec<Vec<Mutex<Seat>>> = racing.iter().map(seats).collect();
    let rows: Vec<Row<'_>> = racing
        .iter()
        .zip(&seats)
        .map(|((contender, series), seats)| {
            let row = Row::new(threads, move |part: &Part<'_>| {
                contender.prepared.work(plan, part, &mut seats[part.me].lock())
            });
            Row { aim: Aim::Compared, known: series.known, ..row }
        })
        .collect();
    let (measured, verdict) =
        slices::run(&rows, &wanted(slices, seed.wrapping_add(round.into())), host);
    drop(rows);
    for (((contender, series), seats), measured) in racing.iter_mut().zip(seats).zip(measured) {
        series.checksum_errors += contender.prepared.settle();
        for seat in seats {
            series.add_seat(seat.into_inner(), &measured.slices);
        }
        series.add(measured, round);
    }
    verdict
}
