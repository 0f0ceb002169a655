//! Small domains that grow meanwhile: each is read in until it has words for every CPU, while an
//! updater waits for its grace periods, now and then in a section of another domain.

use std::sync::Arc;

use quiescence::Srcu;

use super::sleepable::{self, Place, Yard};
use crate::arena::Participant;
use crate::context::ThreadContext;
use crate::fixture;
use crate::kinds::{Operation, ReaderKind, Way};
use crate::shuffler::Shuffler;

/// Threads that read in a small domain.
const READERS: usize = 3;

/// Sections of each of them, at most. A domain grows after some 64.
const SECTIONS_MAX: u64 = 300;

/// One domain after the other until the run is over.
pub(crate) fn run(beside: &Yard, shuffler: &Arc<Shuffler>, context: &ThreadContext) {
    context.rounds(Operation::Grown, || round(beside, shuffler, context));
}

fn round(beside: &Yard, shuffler: &Arc<Shuffler>, context: &ThreadContext) {
    let small = Yard::new("small sleepable domain", Place::Made(Arc::new(Srcu::new())));
    let sections = 1 + context.below(SECTIONS_MAX);
    let start = |_| {
        let (small, shuffler) = (small.clone(), Arc::clone(shuffler));
        context.spawn("reader of a small domain", move |own| {
            let _stay = shuffler.join();
            let participant = Participant::new(&small.arena, own);
            (0..sections).for_each(|_| sleepable::section(&small, &participant));
        })
    };
    // Where the system is short of threads there are fewer readers.
    let readers: Vec<_> = (0..READERS).filter_map(start).collect();
    while readers.iter().any(|reader| !reader.is_finished()) {
        update(beside, &small, context);
    }
    context.did(Operation::Grown);
    for reader in readers {
        context.join(reader, small.arena.name);
    }
    if context.one_in(2) {
        fixture::close(&small.arena, context);
        sleepable::expect_no_sections(&small.arena, context);
    }
    // Else the domain ends with what waits in it.
}

/// Updates once, by one who waits.
fn update(beside: &Yard, small: &Yard, context: &ThreadContext) {
    const WAYS: [Way; 6] =
        [Way::Synchronize, Way::Expedited, Way::StartPoll, Way::Store, Way::Retire, Way::IntoBox];
    let participant = Participant::new(&small.arena, context);
    let way = participant.begin(&WAYS);
    // Domains wait for their own sections only.
    let reader = Participant::new(&beside.arena, context);
    let held = context.one_in(4).then(|| beside.hold(&reader, ReaderKind::Srcu));
    participant.update(way);
    context.ledger.operations.add(Operation::Beside, u64::from(held.is_some()));
    held.into_iter().for_each(|visit| reader.leave(visit));
}
