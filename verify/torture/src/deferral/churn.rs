//! Threads that live for a moment: they register, read, retire, call and end, some of it in the
//! destructor of a thread-local. What they leave behind others adopt.

use std::thread::{self, JoinHandle};

use quiescence::tag::ThreadTag;

use super::Operation;
use super::flood::{self, Flooder};
use super::test_objects::Field;
use crate::delays;
use crate::passing::at_the_end;
use crate::random::Random;

/// Threads in two minutes.
const THREADS: u64 = 10_000;

/// Threads at a time.
const AT_A_TIME: u64 = 4;

/// Starts threads until the run, of so many seconds, is over, and there were enough.
pub(crate) fn run<K: ThreadTag, L: ThreadTag>(
    seconds: u64,
    field: &Field<K>,
    other: &Field<L>,
    random: &Random,
) {
    let context = &field.context;
    let mut started = 0;
    while !context.is_over() || started < THREADS * seconds / 120 {
        context.begin(Operation::ShortThread);
        let mut threads = Vec::new();
        for _ in 0..AT_A_TIME {
            let is_other = random.one_in(4);
            threads.extend(if is_other { start(other, random) } else { start(field, random) });
        }
        if threads.is_empty() {
            thread::yield_now(); // the system is short of threads for the moment
        }
        started += threads.len() as u64;
        context.ledger.did(Operation::ShortThread, threads.len() as u64);
        for thread in threads {
            context.join(thread, "");
        }
    }
}

fn start<K: ThreadTag>(field: &Field<K>, random: &Random) -> Option<JoinHandle<()>> {
    let field = field.clone();
    delays::spawn("moment", random, |random| live(field, random))
}

/// The life of such a thread.
fn live<K: ThreadTag>(field: Field<K>, random: &Random) {
    let seed = random.next();
    match random.below(4) {
        0 => {
            // Registered before or after its thread-local: whose destructor runs first is the
            // system's choice.
            if random.one_in(2) {
                some(&field, random);
            }
            field.context.did(Operation::LastWords);
            at_the_end(move || some(&field, &Random::from_state(seed)));
        }
        1 => {
            let reader = field.domain.reader();
            flood::retire_under(&field, reader.read(), random.below(10), random);
        }
        2 => flood::qsbr_rounds(&field, random.below(4), random),
        _ => some(&field, random),
    }
}

fn some<K: ThreadTag>(field: &Field<K>, random: &Random) {
    drop(field.domain.read());
    flood::retire(field, random.below(40), random);
    Flooder::new(field).call(random.below(40), random);
    if random.one_in(8) {
        flood::again(field, random.below(8));
    }
}
