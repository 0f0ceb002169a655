//! Floods: threads that defer as fast as they can, in every shape, and look whether all of it runs
//! in order.
//!
//! A closure that queues itself again and again is the kernel's forward-progress test
//! (`rcutorture`'s `rcu_torture_fwd_prog`): it must neither starve others nor end before its time.

use std::time::Duration;

use quiescence::Domain;
use quiescence::tag::{Section, ThreadTag};

use super::objects::{Field, Later, OUTSIDE, chain};
use super::{Deferral, FLOOD_BYTES_MAX, FLOOD_OBJECTS_MAX, Operation, ThreadContext};
use crate::kinds::FaultKind;

/// Callbacks in one burst.
const BURST_MAX: u64 = 400;

/// How often a callback queues another, at most.
pub(crate) const DEPTH_MAX: u64 = 200;

/// What closures are counted as: four words, which need no memory of their own, and more.
const SMALL: usize = 32;
const LARGE: usize = 96;

impl<K: ThreadTag> Field<K> {
    /// Queues closures, a few words or more each; they run in order. Outside of sections, where
    /// none is refused.
    pub(crate) fn call(&self, count: u64) {
        for _ in 0..count {
            let queued = match self.context.below(256) {
                0 => self.queue::<0>(Operation::Hurried, SMALL),
                1..16 => {
                    defer_later(self, self.queue::<0>(Operation::TryCall, SMALL).err());
                    Ok(())
                }
                16..80 => self.queue::<8>(Operation::LargeClosure, LARGE),
                _ => self.queue::<0>(Operation::Closure, SMALL),
            };
            let is_queued = queued.is_ok();
            self.tally.expect(is_queued, FaultKind::Limit, || format!("{OUTSIDE} was refused"));
        }
    }

    /// Queues one closure with so many words beside what it needs.
    fn queue<const WORDS: usize>(
        &self,
        operation: Operation,
        bytes: usize,
    ) -> Result<(), Later<K>> {
        let (ticket, words) = (self.closures.ticket(), [bytes; WORDS]);
        let parcel = self.tally.parcel(bytes);
        let closure = move || {
            ticket.check(parcel.tally());
            drop(parcel);
            std::hint::black_box(words);
        };
        assert_eq!(size_of_val(&closure), bytes, "what a closure is counted as");
        self.context.did(operation);
        let queued = match operation {
            Operation::Hurried => self.domain.call_hurry(closure),
            Operation::TryCall => self.domain.try_call(closure),
            _ => self.domain.call(closure),
        };
        self.taken(bytes, queued, |domain, closure| domain.call(closure).is_ok())
    }

    /// Queues closures inside a section, up to the first that is refused: they run in order.
    pub(crate) fn call_what_fits(&self, count: u64) -> Vec<Later<K>> {
        let mut queued = (0..count).map(|_| self.queue::<0>(Operation::InSectionCall, SMALL));
        queued.find_map(Result::err).into_iter().collect()
    }

    /// A barrier; it must have run what this thread has queued.
    pub(crate) fn barrier(&self) {
        self.context.did(Operation::DeferBarrier);
        self.domain.barrier();
        let (ran, queued) = self.closures.ran_of();
        self.tally.expect(ran == queued, FaultKind::Barrier, || {
            format!("barrier() returned when {ran} of {queued} closures had run")
        });
    }
}

/// Floods until the run is over.
pub(crate) fn run(own: &Deferral, context: &ThreadContext) {
    let field = own.field(context, &own.flood);
    context.rounds(Operation::Box, || step(&field));
    field.barrier();
}

/// Does something, drawn.
fn step<K: ThreadTag>(field: &Field<K>) {
    let context = &field.context;
    let burst = 1 + context.below_mostly_low(BURST_MAX);
    match context.below(16) {
        0..=3 => retire(field, burst),
        4 | 5 => retire_in_section(field, burst / 8),
        6 => try_retire(field, burst / 4),
        7..=9 => field.call(burst),
        10 => call_in_section(field, 1 + burst / 16),
        11 => {
            context.did(Operation::Again);
            again(field, context.below(DEPTH_MAX));
        }
        12 => {
            context.did(Operation::Chain);
            chain(field, context.below(8));
        }
        13 => field.retire_odd_ones(burst / 8),
        14 if context.one_in(4) => field.barrier(),
        _ => tune(field),
    }
}

/// Retires as a QSBR reader until the run is over.
pub(crate) fn by_qsbr(own: &Deferral, context: &ThreadContext) {
    let field = own.field(context, &own.flood);
    context.rounds(Operation::QsbrRetire, || qsbr_rounds(&field, 1 + context.below(200)));
}

/// Floods in gushes: others want to use the domain as well.
pub(crate) fn in_gushes(own: &Deferral, context: &ThreadContext) {
    let field = &own.field(context, &Domain::global());
    context.rounds(Operation::Box, || {
        let burst = 1 + context.below(BURST_MAX);
        if context.one_in(2) {
            retire(field, burst)
        } else {
            field.call(burst)
        }
        context.sleep(4000);
    });
    field.barrier();
}

/// So many quiescent states of one QSBR reader, and what it retires between them: it goes over the
/// limit by one object, and does its part at its quiescent states.
pub(crate) fn qsbr_rounds<K: ThreadTag>(field: &Field<K>, rounds: u64) {
    let mut reader = field.domain.qsbr();
    for _ in 0..rounds {
        field.context.did(Operation::QsbrRetire);
        let later = field.retire_some(true, field.context.below(40));
        if later.is_empty() {
            reader.quiescent_state();
        } else {
            reader.while_offline(|| defer_later(field, later));
        }
    }
}

/// Retires so many objects, outside of sections.
pub(crate) fn retire<K: ThreadTag>(field: &Field<K>, count: u64) {
    (0..count).for_each(|_| defer_later(field, field.retire_some(true, 1)));
}

/// The same inside a section; what is refused waits until it has ended.
pub(crate) fn retire_in_section<K: ThreadTag>(field: &Field<K>, count: u64) {
    under(field, field.domain.read(), || retire_what_fits(field, count));
}

/// Queues closures inside a section; so does the first one that is refused.
pub(crate) fn call_in_section<K: ThreadTag>(field: &Field<K>, count: u64) {
    under(field, field.domain.read(), || field.call_what_fits(count));
}

/// Defers inside the section of a guard, the only one that this thread is in; and after it what is
/// refused there.
pub(crate) fn under<K: ThreadTag, G: Section<K>>(
    field: &Field<K>,
    guard: G,
    defer: impl FnOnce() -> Vec<Later<K>>,
) {
    let later = defer();
    drop(guard);
    defer_later(field, later);
}

/// Retires inside a section what is not refused there.
pub(crate) fn retire_what_fits<K: ThreadTag>(field: &Field<K>, count: u64) -> Vec<Later<K>> {
    field.context.did(Operation::InSection);
    field.retire_some(true, count)
}

/// Retires where there is room; the rest by waiting.
pub(crate) fn try_retire<K: ThreadTag>(field: &Field<K>, count: u64) {
    field.context.did(Operation::TryRetire);
    defer_later(field, field.retire_some(false, count));
}

/// Defers what was refused, outside of sections.
fn defer_later<K: ThreadTag>(field: &Field<K>, later: impl IntoIterator<Item = Later<K>>) {
    for later in later {
        field.context.did(Operation::Refused);
        later(field);
    }
}

/// A closure that queues itself again, so often.
pub(crate) fn again<K: ThreadTag>(field: &Field<K>, left: u64) {
    let (parcel, field_of_next) = (field.tally.parcel(SMALL), Box::new(field.clone()));
    let closure = move || {
        drop(parcel);
        if left != 0 {
            again(&field_of_next, left - 1);
        }
    };
    assert_eq!(size_of_val(&closure), SMALL, "what a closure is counted as");
    // There is room for the one that is running.
    let is_taken = field.domain.call(closure).is_ok();
    field.tally.expect_admitted(SMALL, is_taken, "a closure that queues itself again");
}

/// Changes what may be changed; what may wait by a half.
fn tune<K: ThreadTag>(field: &Field<K>) {
    let Field { context, domain, .. } = field;
    context.did(Operation::Tune);
    let mut tuning = domain.tuning();
    tuning.objects_max = FLOOD_OBJECTS_MAX / (1 + context.below(2));
    tuning.bytes_max = FLOOD_BYTES_MAX / (1 + context.below(2));
    tuning.lazy = Duration::from_micros(context.below(100_000));
    tuning.run_min = 1 + context.below(200) as u32;
    tuning.run_time = Duration::from_micros(context.below(5000));
    domain.tune(tuning);
}
