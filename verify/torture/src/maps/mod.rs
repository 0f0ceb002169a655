//! Maps under torture: every operation beside every other one, while the table grows and shrinks.
//!
//! A round has a domain with little room, a map, and a crew of threads ([`crew`]) that look up,
//! update, walk over it and keep references. Each operation is recorded with the moments of its
//! begin and its end; afterwards the [`history`] of each key must be one that a map has. Half of
//! the keys are never removed, so that a thread that misses one has found a fault. What the
//! references lead to must be what it was until their section ends; and in the end no value is
//! left, and none was dropped twice ([`entries`]).

mod crew;
mod entries;
mod history;

use std::sync::Arc;
use std::thread::JoinHandle;

use quiescence::{Domain, collections::HashMap, tuning::Engine};

use crew::{Log, Round};
use entries::{Crowded, NAME};

use super::context::ThreadContext;
use super::deferral::tuning;
use super::fixture::Fixture;
use super::kinds::{FaultKind, Operation};

/// Threads that share a map.
const CREW: usize = 4;

/// What may wait in the domain of a map.
const BYTES_MAX: u64 = 64 << 10;
const OBJECTS_MAX: u64 = 1_000;

/// Keys that have a history, at most.
const KEYS_MAX: u64 = 24;

/// A thread has one map after the other, until the run is over.
pub(crate) fn cast(fixture: &mut Fixture, engine: Engine) {
    fixture.part(false, "one whose crew uses maps", move |context| {
        context.rounds(Operation::MapUpdate, || round(engine, context));
    });
}

fn round(engine: Engine, context: &ThreadContext) {
    let tuning = tuning(OBJECTS_MAX, BYTES_MAX);
    let domain = Domain::builder().engine(engine).tuning(tuning).build();
    let crowded = *context.pick(&Crowded::ALL);
    let keys = 1 + context.below(KEYS_MAX);
    let map = HashMap::builder().domain(domain.clone()).hasher(crowded).build();
    let round = Arc::new(Round::new(map, crowded, keys, context));
    let crew: Vec<_> = (0..CREW)
        .filter_map(|_| {
            let round = Arc::clone(&round);
            context.spawn("crew of a map", move |context| round.work(context))
        })
        .collect();
    let Some(logs) = recorded(context, crew) else { return };
    let Some(round) = Arc::into_inner(round) else { unreachable!("the crew has ended") };
    check(context, &round, keys, &logs);
    round.end(&domain, context);
}

/// What the crew has recorded. None if one of it panicked: there is no whole history.
fn recorded(context: &ThreadContext, crew: Vec<JoinHandle<Log>>) -> Option<Vec<Log>> {
    // All are joined before that is known: they use the map.
    let logs: Vec<_> = crew.into_iter().map(|member| context.join(member, NAME)).collect();
    logs.into_iter().collect()
}

/// Checks the history of each key.
fn check(context: &ThreadContext, round: &Round, keys: u64, logs: &[Log]) {
    for key in 0..keys {
        let of_key = logs.iter().flatten().filter(|(of, _)| *of == key);
        let operations: Vec<_> = of_key.map(|(_, operation)| *operation).collect();
        context.did(Operation::MapHistory);
        if let Err(refused) = history::check(round.first(key), &operations) {
            context.fault(FaultKind::History, NAME, || format!("key {key}: {refused}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::tests::context;

    /// If the run was over by then it was none.
    #[test]
    fn a_panic_in_the_last_round_was_no_fault() {
        let context = context();
        context.ledger.stop();
        let member = context.spawn("crew of a map", |_| -> Log { panic!("on purpose") });
        let crew = vec![member.expect("a thread can be had")];
        assert!(recorded(&context, crew).is_none());
        assert_eq!(context.ledger.faults(FaultKind::Panic), 1);
    }
}
