//! The race: one row of slices for each design, by the one runner ([`crate::slices`]).

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Design;
use crate::Host;
use crate::shapes::{Plan, Prepared, Seat};
use crate::slices::{self, Missing, Part, Row, RunVerdict, Wanted};

/// Operations before a design is measured: threads that it starts for itself are started by them,
/// and have no other priority than in a program.
const FIRST_OPERATIONS: u64 = 2_000;

/// A design, filled with keys and values and ready to race.
pub struct Contender {
    /// Which one.
    pub design: &'static Design,
    prepared: Box<dyn Prepared>,
    /// How long it took to fill.
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
        let began = Instant::now();
        let prepared = (design.make)(plan);
        let mut seat = Seat::new(0);
        prepared.work(plan, &Part::alone(0, FIRST_OPERATIONS), &mut seat);
        Self { design, prepared, took: began.elapsed() }
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
pub fn race(
    contenders: &[&Contender],
    plan: &Plan,
    slices: u32,
    seed: u64,
    host: &mut dyn Host,
) -> (Vec<Heat>, RunVerdict) {
    let threads = plan.operations.len();
    let seats = |_| (0..threads).map(|number| Mutex::new(Seat::new(number))).collect();
    let seats: Vec<Vec<Mutex<Seat>>> = contenders.iter().map(seats).collect();
    let rows: Vec<Row<'_>> = contenders
        .iter()
        .zip(&seats)
        .map(|(contender, seats)| {
            let prepared = &*contender.prepared;
            let row = Row::new(threads, move |part: &Part<'_>| {
                prepared.work(plan, part, &mut seats[part.me].lock())
            });
            Row { blocks: true, is_compared: true, ..row }
        })
        .collect();
    let (measured, verdict) = slices::run(&rows, &wanted(slices, seed), host);
    drop(rows);
    let heat = |((contender, seats), measured): ((&&Contender, Vec<Mutex<Seat>>), _)| {
        let slices::Measured { values, slices, cpu, missing } = measured;
        let counts = |slice: &u32| slices.binary_search(slice).is_ok();
        let mut heat = Heat { ns: values, cpu_ns: cpu, missing, ..Heat::default() };
        heat.checksum_errors = contender.prepared.settle();
        for seat in seats {
            let seat = seat.into_inner();
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
    (heats, verdict)
}
