//! Threads that live for a moment: they register, read, retire, call and end, some of it in the
//! destructor of a thread-local. What they leave behind others adopt.

use std::thread::{self, JoinHandle};

use quiescence::{Domain, tag::ThreadTag};

use super::flood;
use super::objects::Field;
use super::{Deferral, Operation, ThreadContext};
use crate::passing::at_the_end;

/// Threads in two minutes.
const THREADS: u64 = 10_000;

/// Threads at a time.
const AT_A_TIME: u64 = 4;

/// Starts threads until the run is over, and there were enough.
pub(crate) fn run(own: &Deferral, context: &ThreadContext) {
    let (field, other) = (own.field(context, &own.flood), own.field(context, &Domain::global()));
    let mut started = 0;
    while !context.is_over() || started < THREADS * own.setup.seconds / 120 {
        context.begin(Operation::ShortThread);
        let mut threads = Vec::new();
        for _ in 0..AT_A_TIME {
            let is_other = context.one_in(4);
            threads.extend(if is_other { start(&other) } else { start(&field) });
        }
        if threads.is_empty() {
            thread::yield_now(); // the system is short of threads for the moment
        }
        started += threads.len() as u64;
        context.ledger.operations.add(Operation::ShortThread, threads.len() as u64);
        for thread in threads {
            context.join(thread, "");
        }
    }
}

fn start<K: ThreadTag>(field: &Field<K>) -> Option<JoinHandle<()>> {
    let own = field.clone();
    field.context.spawn("moment", |_| live(own))
}

/// The life of such a thread.
fn live<K: ThreadTag>(field: Field<K>) {
    match field.context.below(4) {
        0 => {
            // Registered before or after its thread-local: whose destructor runs first is the
            // system's choice.
            if field.context.one_in(2) {
                some(&field);
            }
            field.context.did(Operation::LastWords);
            at_the_end(move || some(&field));
        }
        1 => {
            let reader = field.domain.reader();
            let count = field.context.below(10);
            flood::under(&field, reader.read(), || flood::retire_what_fits(&field, count));
        }
        2 => flood::qsbr_rounds(&field, field.context.below(4)),
        _ => some(&field),
    }
}

fn some<K: ThreadTag>(field: &Field<K>) {
    drop(field.domain.read());
    flood::retire(field, field.context.below(40));
    field.call(field.context.below(40));
    if field.context.one_in(8) {
        flood::again(field, field.context.below(8));
    }
}
