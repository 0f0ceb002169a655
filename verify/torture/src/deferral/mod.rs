//! Deferral under torture: what is retired and called, by everybody at once, with little memory.
//!
//! [`objects`] is what is deferred: objects of all shapes that count themselves. [`flood`]
//! defers as fast as it can; [`limits`] does so in domains with hardly any room, and afterwards
//! looks whether the room is what it was; [`quiet`] defers a little, does nothing more, and waits
//! until it is freed; [`churn`] has threads that live for a moment; [`stalls`] are readers that
//! take long; [`children`] are processes that are stopped and continued while they do all that, and
//! processes that fork ([`forks`]).

mod children;
mod churn;
mod flood;
mod forks;
mod objects;
mod limits;
mod quiet;
mod stalls;

use std::sync::{Arc, Mutex};

use quiescence::Domain;
use quiescence::tag::{Global, Private, ThreadTag};
use quiescence::tuning::Tuning;

use objects::{Field, Tally, UNBOUNDED};

use super::context::ThreadContext;
use super::fixture::{Fixture, Play};
use super::kinds::{Operation, Step};
use super::pool::lock;
use super::report::Setup;
use super::themes::Theme;
use super::watch::LOW_PRIORITY;

/// What may wait in the domain of the floods.
const FLOOD_OBJECTS_MAX: u64 = 20_000;
const FLOOD_BYTES_MAX: u64 = 8 << 20;

/// What there is of each theme: how many threads, their name, and what they do.
const PARTS: [(Theme, usize, &str, Play<Deferral>); 11] = [
    (Theme::Floods, 2, "flooder of a private domain", flood::run),
    (Theme::Floods, 1, "QSBR reader that retires", flood::by_qsbr),
    (Theme::Floods, 1, "flooder of the global domain", flood::in_gushes),
    (Theme::Limits, 2, "filler of small domains", |own, context| {
        context.rounds(Operation::Room, || limits::round(own.setup.engine, context));
    }),
    (Theme::Quiet, 1, "one who waits for all to be freed", |own, context| {
        context.rounds(Operation::Box, || quiet::round(own.setup.engine, context));
    }),
    (Theme::Stalls, 1, "reader that blocks", stalls::block),
    (Theme::Stalls, 1, LOW_PRIORITY, stalls::crawl),
    (Theme::Churn, 1, "starter of threads that live for a moment", churn::run),
    (Theme::Processes, 1, "starter of processes", children::run),
    (Theme::Forks, 1, "thread that forks", forks::run),
    (Theme::Forks, 2, "thread in a storm of forks", forks::storm),
];

/// So much may wait; stalls, which are what this is about, are not reported.
pub(crate) fn tuning(objects_max: u64, bytes_max: u64) -> Tuning {
    let mut tuning = Domain::global().tuning();
    tuning.objects_max = objects_max;
    tuning.bytes_max = bytes_max;
    tuning.stall_after = None;
    tuning.stall_after_expedited = None;
    tuning
}

/// What the threads share.
pub(crate) struct Deferral {
    setup: Setup,
    flood: Domain<Private>,
    storm: Domain<Private>,
    /// One for each thread's view of a domain: what is to be empty in the end.
    tallies: Mutex<Vec<Arc<Tally>>>,
}

/// The threads of the themes that are about deferral.
pub(crate) fn cast(fixture: &mut Fixture, setup: &Setup) {
    let domain = |objects_max, bytes_max| {
        Domain::builder().engine(setup.engine).tuning(tuning(objects_max, bytes_max)).build()
    };
    let shared = Deferral {
        setup: setup.clone(),
        flood: domain(FLOOD_OBJECTS_MAX, FLOOD_BYTES_MAX),
        storm: domain(forks::OBJECTS_MAX, FLOOD_BYTES_MAX),
        tallies: Mutex::default(),
    };
    let parts = PARTS.iter().filter(|part| setup.themes.has(part.0));
    let parts: Vec<_> = parts.map(|&(_, count, name, play)| (count, name, play)).collect();
    fixture.parts(false, shared, &parts, Deferral::close);
}

impl Deferral {
    /// A thread's view of a domain; what it defers there is counted for the end.
    fn field<K: ThreadTag>(&self, context: &ThreadContext, domain: &Domain<K>) -> Field<K> {
        let tally = Tally::new(context, "domain under a flood", UNBOUNDED);
        lock(&self.tallies).push(Arc::clone(&tally));
        Field::new(context, domain, &tally)
    }

    /// When all threads have ended: waits for what they deferred, and looks for what is lost.
    fn close(&self, context: &ThreadContext) {
        let tallies = lock(&self.tallies);
        // So often: callbacks have queued callbacks, and they again.
        for _ in 0..2 * flood::DEPTH_MAX {
            context.record().begin(Step::Defer(Operation::DeferBarrier));
            self.flood.barrier();
            self.storm.barrier();
            Domain::<Global>::global().barrier();
            if tallies.iter().all(|tally| tally.waiting() == 0) {
                break;
            }
        }
        tallies.iter().for_each(|tally| tally.expect_none("at the end"));
        objects::expect_no_odd_ones(context);
    }
}
