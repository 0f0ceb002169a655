//! Floods: threads that defer as fast as they can, in every shape, and look whether all of it runs
//! in order.
//!
//! A closure that queues itself again and again is the kernel's forward-progress test
//! (`rcutorture`'s `rcu_torture_fwd_prog`): it must neither starve others nor end before its time.

use std::sync::Arc;
use std::time::Duration;

use quiescence::tag::{Section, ThreadTag};

use super::objects::{CallbackQueue, Field, Later, Ticket, chain};
use super::{FLOOD_BYTES_MAX, FLOOD_OBJECTS_MAX, Operation};
use crate::kinds::FaultKind;

/// Callbacks in one burst.
const BURST_MAX: u64 = 400;

/// How often a callback queues another, at most.
pub(crate) const DEPTH_MAX: u64 = 200;

/// What closures are counted as: four words, which need no memory of their own, and more.
const SMALL: usize = 32;
const LARGE: usize = 96;

/// A thread that floods.
pub(crate) struct Flooder<'a, K: ThreadTag> {
    pub(crate) field: &'a Field<K>,
    /// Its closures run in order, and so many were queued.
    callback_queue: Arc<CallbackQueue>,
    queued: u64,
}

impl<'a, K: ThreadTag> Flooder<'a, K> {
    pub(crate) fn new(field: &'a Field<K>) -> Self {
        Self { field, callback_queue: Arc::default(), queued: 0 }
    }

    /// Queues closures, a few words or more each; they run in order. Outside of sections, where
    /// none is refused.
    pub(crate) fn call(&mut self, count: u64) {
        for _ in 0..count {
            let refused = match self.field.context.below(256) {
                0 => self.queue::<0>(Operation::Hurried, SMALL).is_some(),
                1..16 => {
                    let refused = self.queue::<0>(Operation::TryCall, SMALL);
                    self.call_later(refused);
                    false
                }
                16..80 => self.queue::<8>(Operation::LargeClosure, LARGE).is_some(),
                _ => self.queue::<0>(Operation::Closure, SMALL).is_some(),
            };
            if refused {
                self.refused_outside();
            }
        }
    }

    fn refused_outside(&self) {
        self.field.tally.fault(FaultKind::Limit, || {
            "call() refused a closure outside of sections and callbacks".to_owned()
        });
    }

    /// Queues one closure with so many words beside what it needs. Returns it, if it is refused.
    fn queue<const WORDS: usize>(
        &mut self,
        operation: Operation,
        bytes: usize,
    ) -> Option<impl FnOnce() + Send + 'static + use<K, WORDS>> {
        let Field { context, domain, tally, .. } = self.field;
        let ticket =
            Ticket { callback_queue: Arc::clone(&self.callback_queue), number: self.queued };
        let (parcel, words) = (tally.parcel(bytes), [bytes; WORDS]);
        let closure = move || {
            ticket.check(parcel.tally());
            drop(parcel);
            std::hint::black_box(words);
        };
        assert_eq!(size_of_val(&closure), bytes, "what a closure is counted as");
        context.did(operation);
        let queued = match operation {
            Operation::Hurried => domain.call_hurry(closure),
            Operation::TryCall => domain.try_call(closure),
            _ => domain.call(closure),
        };
        match queued {
            Ok(()) => {
                tally.admitted(bytes);
                self.queued += 1;
                None
            }
            Err(refused) => Some(refused.into_inner()),
        }
    }

    /// Closures inside a section: some may be refused; the first such is queued after the section.
    pub(crate) fn call_in_section(&mut self, count: u64) {
        let guard = self.field.domain.read();
        let refused = self.call_what_fits(count);
        drop(guard);
        self.call_later(refused);
    }

    /// Queues closures, up to the first that is refused: that one is the answer.
    pub(crate) fn call_what_fits(
        &mut self,
        count: u64,
    ) -> Option<impl FnOnce() + Send + 'static + use<K>> {
        (0..count).find_map(|_| self.queue::<0>(Operation::InSectionCall, SMALL))
    }

    /// Queues the closure that was refused, outside of sections.
    pub(crate) fn call_later(&mut self, refused: Option<impl FnOnce() + Send + 'static>) {
        let Some(closure) = refused else { return };
        self.field.context.did(Operation::Refused);
        if self.field.domain.call(closure).is_err() {
            return self.refused_outside();
        }
        self.field.tally.admitted(SMALL);
        self.queued += 1;
    }

    /// A barrier; it must have run what this thread has queued.
    pub(crate) fn barrier(&self) {
        self.field.context.did(Operation::DeferBarrier);
        self.field.domain.barrier();
        let ran = self.callback_queue.ran();
        self.field.tally.expect(ran == self.queued, FaultKind::Barrier, || {
            format!("barrier() returned when {ran} of {} closures had run", self.queued)
        });
    }

    pub(crate) fn all_have_run(&self) -> bool {
        self.callback_queue.ran() == self.queued
    }

    /// Does something, drawn.
    fn step(&mut self) {
        let (field, context) = (self.field, &self.field.context);
        let burst = 1 + context.below_mostly_low(BURST_MAX);
        let begin = |operation| {
            context.begin(operation);
            field
        };
        let did = |operation| {
            context.did(operation);
            begin(operation)
        };
        match context.below(16) {
            0..=3 => retire(begin(Operation::Box), burst),
            4 | 5 => retire_in_section(begin(Operation::InSection), burst / 8),
            6 => try_retire(begin(Operation::TryRetire), burst / 4),
            7..=9 => {
                begin(Operation::Closure);
                self.call(burst);
            }
            10 => {
                begin(Operation::InSectionCall);
                self.call_in_section(1 + burst / 16);
            }
            11 => again(did(Operation::Again), context.below(DEPTH_MAX)),
            12 => chain(did(Operation::Chain), context.below(8)),
            13 => begin(Operation::Odd).retire_odd_ones(burst / 8),
            14 if context.one_in(4) => {
                begin(Operation::DeferBarrier);
                self.barrier();
            }
            _ => tune(did(Operation::Tune)),
        }
    }
}

/// Floods until the run is over.
pub(crate) fn run<K: ThreadTag>(field: &Field<K>) {
    let mut flooder = Flooder::new(field);
    field.context.rounds(Operation::Box, || flooder.step());
    flooder.barrier();
}

/// Floods in gushes: others want to use the domain as well.
pub(crate) fn in_gushes<K: ThreadTag>(field: &Field<K>) {
    let (mut flooder, context) = (Flooder::new(field), &field.context);
    context.rounds(Operation::Box, || {
        let burst = 1 + context.below(BURST_MAX);
        if context.one_in(2) {
            retire(field, burst);
        } else {
            context.begin(Operation::Closure);
            flooder.call(burst);
        }
        context.sleep(4000);
    });
    flooder.barrier();
}

/// Retires as a QSBR reader: it goes over the limit by one object, and does its part at its
/// quiescent states.
pub(crate) fn by_qsbr<K: ThreadTag>(field: &Field<K>) {
    field.context.rounds(Operation::QsbrRetire, || {
        qsbr_rounds(field, 1 + field.context.below(200));
    });
}

/// So many quiescent states of one reader, and what it retires between them.
pub(crate) fn qsbr_rounds<K: ThreadTag>(field: &Field<K>, rounds: u64) {
    let mut reader = field.domain.qsbr();
    for _ in 0..rounds {
        field.context.begin(Operation::QsbrRetire);
        field.context.did(Operation::QsbrRetire);
        let mut later: Vec<Later<K>> = Vec::new();
        for _ in 0..field.context.below(40) {
            later.extend(field.retire_some(true, field.context.next()).err());
        }
        if later.is_empty() {
            reader.quiescent_state();
        } else {
            reader.while_offline(|| retire_later(field, later));
        }
    }
}

/// Retires so many objects, outside of sections.
pub(crate) fn retire<K: ThreadTag>(field: &Field<K>, count: u64) {
    for _ in 0..count {
        let refused = field.retire_some(true, field.context.next());
        retire_later(field, refused.err());
    }
}

/// The same inside a section; what is refused waits until it has ended.
pub(crate) fn retire_in_section<K: ThreadTag>(field: &Field<K>, count: u64) {
    retire_under(field, field.domain.read(), count);
}

/// The same inside the section of a guard, the only one that this thread is in.
pub(crate) fn retire_under<K: ThreadTag, G: Section<K>>(field: &Field<K>, guard: G, count: u64) {
    let later = retire_what_fits(field, count);
    drop(guard);
    retire_later(field, later);
}

/// Retires inside a section what is not refused there.
pub(crate) fn retire_what_fits<K: ThreadTag>(field: &Field<K>, count: u64) -> Vec<Later<K>> {
    field.context.did(Operation::InSection);
    (0..count).filter_map(|_| field.retire_some(true, field.context.next()).err()).collect()
}

/// Retires where there is room; the rest by waiting.
pub(crate) fn try_retire<K: ThreadTag>(field: &Field<K>, count: u64) {
    field.context.did(Operation::TryRetire);
    let refused = |_| field.retire_some(false, field.context.next()).err();
    let later: Vec<_> = (0..count).filter_map(refused).collect();
    retire_later(field, later);
}

pub(crate) fn retire_later<K: ThreadTag>(
    field: &Field<K>,
    later: impl IntoIterator<Item = Later<K>>,
) {
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
    let mut tuning = domain.tuning();
    tuning.objects_max = FLOOD_OBJECTS_MAX / (1 + context.below(2));
    tuning.bytes_max = FLOOD_BYTES_MAX / (1 + context.below(2));
    tuning.lazy = Duration::from_micros(context.below(100_000));
    tuning.run_min = 1 + context.below(200) as u32;
    tuning.run_time = Duration::from_micros(context.below(5000));
    domain.tune(tuning);
}
