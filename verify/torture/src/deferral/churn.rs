//! Threads that live for a moment: they register, read, retire, call and end, some of it in the
//! destructor of a thread-local. What they leave behind others adopt.

use std::thread;

use quiescence::tag::ThreadTag;

use super::Operation;
use super::flood::{self, Flooder};
use super::test_objects::Field;
use crate::delays;
use crate::kinds::FaultKind;
use crate::passing::at_the_end;
use crate::random::Random;

/// Threads in two minutes.
const THREADS: u64 = 10_000;

/// Threads at a time.
const AT_A_TIME: u64 = 4;

/// How many threads a run of so many seconds has.
pub(crate) const fn quota(seconds: u64) -> u64 {
    THREADS * seconds / 120
}

/// Starts threads until the run is over, and there were enough.
pub(crate) fn run<K: ThreadTag, L: ThreadTag>(
    field: &Field<K>,
    other: &Field<L>,
    random: &mut Random,
) {
    let context = &field.context;
    let mut started = 0;
    while !context.is_over() || started < context.short_threads {
        context.begin(Operation::ShortThread);
        let mut threads = Vec::new();
        for _ in 0..AT_A_TIME {
            let seed = random.next();
            let thread = if random.one_in(4) { start(other, seed) } else { start(field, seed) };
            threads.extend(thread);
        }
        if threads.is_empty() {
            thread::yield_now(); // the system is short of threads for the moment
        }
        started += threads.len() as u64;
        context.ledger.did(Operation::ShortThread, threads.len() as u64);
        for thread in threads {
            if thread.join().is_err() {
                context.fault(FaultKind::Panic, "", || {
                    "a thread that lives for a moment panicked; see standard error".to_owned()
                });
            }
        }
    }
}

fn start<K: ThreadTag>(field: &Field<K>, seed: u64) -> Option<thread::JoinHandle<()>> {
    let field = field.clone();
    let life = move || {
        delays::seed_thread(seed);
        live(field, &mut Random::from_state(seed));
    };
    thread::Builder::new().name("moment".to_owned()).spawn(life).ok()
}

/// The life of such a thread.
fn live<K: ThreadTag>(field: Field<K>, random: &mut Random) {
    let seed = random.next();
    match random.below(4) {
        0 => {
            // Registered before or after its thread-local: whose destructor runs first is the
            // system's choice.
            if random.one_in(2) {
                some(&field, random);
            }
            field.context.did(Operation::LastWords);
            at_the_end(move || some(&field, &mut Random::from_state(seed)));
        }
        1 => {
            let reader = field.domain.reader();
            flood::retire_under(&field, reader.read(), random.below(10), random);
        }
        2 => flood::qsbr_rounds(&field, random.below(4), random),
        _ => some(&field, random),
    }
}

fn some<K: ThreadTag>(field: &Field<K>, random: &mut Random) {
    drop(field.domain.read());
    flood::retire(field, random.below(40), random);
    Flooder::new(field).call(random.below(40), random);
    if random.one_in(8) {
        flood::again(field, random.below(8));
    }
}
