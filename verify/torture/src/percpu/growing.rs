//! Small domains that grow meanwhile: each is read in until it has words for every CPU, while an
//! updater waits for its grace periods, now and then in a section of another domain.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;

use quiescence::Srcu;

use super::shuffler::Shuffler;
use super::sleepable::{self, Place, Where, Yard, Yards};
use crate::context::ThreadContext;
use crate::delays;
use crate::kinds::{FaultKind, Operation, Step, Way};
use crate::random::Random;
use crate::updaters;

/// Threads that read in a small domain.
const READERS: usize = 3;

/// Sections of each of them, at most. A domain grows after some 64.
const SECTIONS_MAX: u64 = 300;

/// One domain after the other until the run is over.
pub(crate) fn run(
    yards: &Yards,
    shuffler: &Arc<Shuffler>,
    context: &ThreadContext,
    random: &mut Random,
) {
    while !context.is_over() {
        context.begin(Operation::Grown);
        round(yards, shuffler, context, random);
        context.did(Operation::Grown);
    }
}

fn round(yards: &Yards, shuffler: &Arc<Shuffler>, context: &ThreadContext, random: &mut Random) {
    let small = Yard::new("small sleepable domain", Place::Made(Arc::new(Srcu::new())));
    let sections = 1 + random.below(SECTIONS_MAX);
    thread::scope(|scope| {
        let mut readers = Vec::new();
        for _ in 0..READERS {
            let (small, seed) = (&small, random.next());
            let read = move || {
                let _stay = shuffler.join();
                delays::seed_thread(seed);
                let (participant, mut random) =
                    (small.participant(context), Random::from_state(seed));
                (0..sections).for_each(|_| sleepable::section(small, &participant, &mut random));
            };
            // Where the system is short of threads there are fewer readers.
            readers.extend(thread::Builder::new().spawn_scoped(scope, read));
        }
        while readers.iter().any(|reader| !reader.is_finished()) {
            update(yards, &small, context, random);
        }
        for reader in readers {
            if reader.join().is_err() {
                context.fault(FaultKind::Panic, small.arena.name, || {
                    "a reader of a small domain; see standard error".to_owned()
                });
            }
        }
    });
    if random.one_in(2) {
        sleepable::close(&small.arena, &context.ledger);
    }
    // Else the domain ends with what waits in it.
}

/// Updates once, by one who waits.
fn update(yards: &Yards, small: &Yard, context: &ThreadContext, random: &mut Random) {
    const WAYS: [Way; 6] =
        [Way::Synchronize, Way::Expedited, Way::StartPoll, Way::Store, Way::Retire, Way::IntoBox];
    let participant = small.participant(context);
    let way = WAYS[random.below(WAYS.len() as u64) as usize];
    context.record().begin(Step::Update(way));
    // Domains wait for their own sections only.
    let beside = random.one_in(4).then(|| yards.at(Where::Static).hold());
    updaters::update(&participant, way, &mut VecDeque::new(), random);
    context.ledger.did(Operation::Beside, u64::from(beside.is_some()));
}
