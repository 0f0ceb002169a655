//! What is deferred is freed in bounded time though no thread does anything more: left alone, when
//! its thread ends, when its domain ends. In order, and once.

use std::sync::Arc;
use std::time::Duration;

use quiescence::{Domain, tag::Private, tuning::Engine};

use super::objects::{CallbackQueue, Field, Parcel, Tally, Ticket, UNBOUNDED};
use super::{Operation, ThreadContext, tuning};
use crate::kinds::{FaultKind, Named};
use crate::passing::at_the_end;

/// Objects, and closures, of one round.
const COUNT_MAX: u64 = 3000;

/// The domain in reports.
const NAME: &str = "domain that is left alone";

/// An object that has its place among those of its thread.
struct Numbered(Parcel, Ticket);

impl Drop for Numbered {
    fn drop(&mut self) {
        self.1.check(self.0.tally());
    }
}

/// One round.
pub(crate) fn round(engine: Engine, context: &ThreadContext) {
    let mut tuning = tuning(65_536, 64 << 20);
    tuning.lazy = Duration::from_micros(context.below(100_000));
    let domain = Domain::builder().engine(engine).tuning(tuning).build();
    let tally = Tally::new(context, NAME, UNBOUNDED);
    let field = Field::new(context, &domain, &tally);
    drop(domain);
    let objects = context.below_mostly_low(COUNT_MAX);
    let closures = context.below_mostly_low(COUNT_MAX);
    let operation = match context.below(4) {
        0 => {
            defer(&field, objects, closures);
            Operation::LeftAlone
        }
        1 => {
            defer(&field, objects, closures);
            drop(field);
            Operation::DomainEnd
        }
        end => {
            in_a_thread(&field, objects, closures, end == 3);
            if end == 3 { Operation::LastWords } else { Operation::ThreadEnd }
        }
    };
    context.did(operation);
    if context.await_idle(operation, || tally.waiting() == 0) {
        tally.expect_none("though nothing waits");
    } else {
        tally.fault(FaultKind::Late, || {
            format!("{} objects still wait; {}", tally.waiting(), operation.name())
        });
    }
}

/// Retires so many objects and calls so many closures.
fn defer(field: &Field<Private>, objects: u64, closures: u64) {
    field.context.begin(Operation::Box);
    let callback_queue: Arc<CallbackQueue> = Arc::default();
    for _ in 0..objects {
        let bytes = size_of::<Numbered>();
        // Inside a section nothing is dropped here, and none is refused: there is room.
        let guard = field.context.one_in(16).then(|| field.domain.read());
        let object = Numbered(field.tally.parcel(bytes), callback_queue.ticket());
        let is_taken = field.retire(Box::new(object), true).is_ok();
        field.tally.expect(is_taken, FaultKind::Limit, || "refused though there is room".into());
        drop(guard);
    }
    field.call(closures);
}

/// The same in a thread that ends then; or in the destructor of one of its thread-locals.
fn in_a_thread(field: &Field<Private>, objects: u64, closures: u64, last: bool) {
    let own = field.clone();
    let thread = field.context.spawn("ending", move |_| {
        let deferring = move || defer(&own, objects, closures);
        if last { at_the_end(deferring) } else { deferring() }
    });
    thread.map(|thread| field.context.join(thread, NAME));
}
