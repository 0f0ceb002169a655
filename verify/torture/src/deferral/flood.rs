//! Floods: threads that defer as fast as they can, in every shape, and look whether all of it runs in order.
//!
//! A closure that queues itself again and again is the kernel's forward-progress test (`rcutorture`'s
//! `rcu_torture_fwd_prog`): it must neither starve others nor end before its time.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use quiescence::{Domain, Kind, Section};

use super::goods::{Field, Lane, Later, Ticket, chain};
use super::{Deed, FLOOD_BYTES_MAX, FLOOD_OBJECTS_MAX};
use crate::kinds::FaultKind;
use crate::random::Random;

/// Callbacks in one burst.
const BURST_MAX: u64 = 400;

/// How often a callback queues another, at most.
pub(crate) const DEPTH_MAX: u64 = 200;

/// What closures are counted as: four words, which need no memory of their own, and more.
const SMALL: usize = 32;
const LARGE: usize = 96;

/// A thread that floods.
pub(crate) struct Flooder<'a, K: Kind> {
    pub(crate) field: &'a Field<K>,
    /// Its closures run in order, and so many were queued.
    lane: Arc<Lane>,
    queued: u64,
}

impl<'a, K: Kind> Flooder<'a, K> {
    pub(crate) fn new(field: &'a Field<K>) -> Self {
        Self { field, lane: Arc::default(), queued: 0 }
    }

    /// Queues closures, a few words or more each; they run in order. Outside of sections, where none is refused.
    pub(crate) fn call(&mut self, count: u64, random: &mut Random) {
        for _ in 0..count {
            let refused = match random.below(256) {
                0 => self.queue::<0>(Deed::Hurried, SMALL).is_some(),
                1..16 => {
                    let refused = self.queue::<0>(Deed::TryCall, SMALL);
                    self.call_later(refused);
                    false
                }
                16..80 => self.queue::<8>(Deed::LargeClosure, LARGE).is_some(),
                _ => self.queue::<0>(Deed::Closure, SMALL).is_some(),
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

    /// Queues one closure with so many words beside what it needs. Answers it, if it is refused.
    fn queue<const WORDS: usize>(
        &mut self,
        deed: Deed,
        bytes: usize,
    ) -> Option<impl FnOnce() + Send + 'static + use<K, WORDS>> {
        let Field { station, domain, tally, .. } = self.field;
        let ticket = Ticket { lane: Arc::clone(&self.lane), number: self.queued };
        let (parcel, words) = (tally.parcel(bytes), [bytes; WORDS]);
        let closure = move || {
            ticket.check(parcel.tally());
            drop(parcel);
            std::hint::black_box(words);
        };
        assert_eq!(size_of_val(&closure), bytes, "what a closure is counted as");
        station.did(deed);
        let queued = match deed {
            Deed::Hurried => domain.call_hurried(closure),
            Deed::TryCall => domain.try_call(closure),
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
        (0..count).find_map(|_| self.queue::<0>(Deed::InSectionCall, SMALL))
    }

    /// Queues the closure that was refused, outside of sections.
    pub(crate) fn call_later(&mut self, refused: Option<impl FnOnce() + Send + 'static>) {
        let Some(closure) = refused else { return };
        self.field.station.did(Deed::Refused);
        if self.field.domain.call(closure).is_err() {
            return self.refused_outside();
        }
        self.field.tally.admitted(SMALL);
        self.queued += 1;
    }

    /// A barrier; it must have run what this thread has queued.
    pub(crate) fn barrier(&self) {
        self.field.station.did(Deed::DeferBarrier);
        self.field.domain.barrier();
        let ran = self.lane.ran();
        if ran != self.queued {
            self.field.tally.fault(FaultKind::Barrier, || {
                format!("barrier() returned when {ran} of {} closures had run", self.queued)
            });
        }
    }

    pub(crate) fn all_have_run(&self) -> bool {
        self.lane.ran() == self.queued
    }

    /// Does something, drawn.
    fn step(&mut self, random: &mut Random) {
        let Field { station, .. } = self.field;
        let burst = 1 + random.below_mostly_low(BURST_MAX);
        match random.below(16) {
            0..=3 => {
                station.begin(Deed::Box);
                retire(self.field, burst, random);
            }
            4 | 5 => {
                station.begin(Deed::InSection);
                retire_in_section(self.field, burst / 8, random);
            }
            6 => {
                station.begin(Deed::TryRetire);
                try_retire(self.field, burst / 4, random);
            }
            7..=9 => {
                station.begin(Deed::Closure);
                self.call(burst, random);
            }
            10 => {
                station.begin(Deed::InSectionCall);
                self.call_in_section(1 + burst / 16);
            }
            11 => {
                station.begin(Deed::Again);
                station.did(Deed::Again);
                again(self.field, random.below(DEPTH_MAX));
            }
            12 => {
                station.begin(Deed::Chain);
                station.did(Deed::Chain);
                chain(self.field, random.below(8));
            }
            13 => {
                station.begin(Deed::Odd);
                self.field.retire_odd_ones(burst / 8);
            }
            14 if random.one_in(4) => {
                station.begin(Deed::DeferBarrier);
                self.barrier();
            }
            _ => {
                station.begin(Deed::Tune);
                station.did(Deed::Tune);
                tune(&self.field.domain, random);
            }
        }
    }
}

/// Floods until the run is over.
pub(crate) fn run<K: Kind>(field: &Field<K>, random: &mut Random) {
    let mut flooder = Flooder::new(field);
    while !field.station.is_over() {
        flooder.step(random);
        if random.one_in(8) {
            thread::yield_now();
        }
    }
    flooder.barrier();
}

/// Floods in gushes: others want to use the domain as well.
pub(crate) fn in_gushes<K: Kind>(field: &Field<K>, random: &mut Random) {
    let mut flooder = Flooder::new(field);
    while !field.station.is_over() {
        let burst = 1 + random.below(BURST_MAX);
        if random.one_in(2) {
            field.station.begin(Deed::Box);
            retire(field, burst, random);
        } else {
            field.station.begin(Deed::Closure);
            flooder.call(burst, random);
        }
        thread::sleep(Duration::from_micros(random.below(4000)));
    }
    flooder.barrier();
}

/// Retires as a QSBR reader: it goes over the limit by one object, and does its part at its quiescent states.
pub(crate) fn by_qsbr<K: Kind>(field: &Field<K>, random: &mut Random) {
    while !field.station.is_over() {
        let rounds = 1 + random.below(200);
        qsbr_rounds(field, rounds, random);
        thread::yield_now();
    }
}

/// So many quiescent states of one reader, and what it retires between them.
pub(crate) fn qsbr_rounds<K: Kind>(field: &Field<K>, rounds: u64, random: &mut Random) {
    let mut reader = field.domain.qsbr();
    for _ in 0..rounds {
        field.station.begin(Deed::QsbrRetire);
        field.station.did(Deed::QsbrRetire);
        let mut later: Vec<Later<K>> = Vec::new();
        for _ in 0..random.below(40) {
            later.extend(field.retire_some(true, random.next()).err());
        }
        if later.is_empty() {
            reader.quiescent_state();
        } else {
            reader.while_offline(|| retire_later(field, later));
        }
    }
}

/// Retires so many objects, outside of sections.
pub(crate) fn retire<K: Kind>(field: &Field<K>, count: u64, random: &mut Random) {
    for _ in 0..count {
        let refused = field.retire_some(true, random.next());
        retire_later(field, refused.err());
    }
}

/// The same inside a section; what is refused waits until it has ended.
pub(crate) fn retire_in_section<K: Kind>(field: &Field<K>, count: u64, random: &mut Random) {
    retire_under(field, field.domain.read(), count, random);
}

/// The same inside the section of a guard, the only one that this thread is in.
pub(crate) fn retire_under<K: Kind, G: Section<K>>(
    field: &Field<K>,
    guard: G,
    count: u64,
    random: &mut Random,
) {
    let later = retire_what_fits(field, count, random);
    drop(guard);
    retire_later(field, later);
}

/// Retires inside a section what is not refused there.
pub(crate) fn retire_what_fits<K: Kind>(
    field: &Field<K>,
    count: u64,
    random: &mut Random,
) -> Vec<Later<K>> {
    field.station.did(Deed::InSection);
    (0..count).filter_map(|_| field.retire_some(true, random.next()).err()).collect()
}

/// Retires where there is room; the rest by waiting.
pub(crate) fn try_retire<K: Kind>(field: &Field<K>, count: u64, random: &mut Random) {
    field.station.did(Deed::TryRetire);
    let refused = |_| field.retire_some(false, random.next()).err();
    let later: Vec<_> = (0..count).filter_map(refused).collect();
    retire_later(field, later);
}

pub(crate) fn retire_later<K: Kind>(field: &Field<K>, later: impl IntoIterator<Item = Later<K>>) {
    for later in later {
        field.station.did(Deed::Refused);
        later(field);
    }
}

/// A closure that queues itself again, so often.
pub(crate) fn again<K: Kind>(field: &Field<K>, left: u64) {
    let (parcel, field_of_next) = (field.tally.parcel(SMALL), Box::new(field.clone()));
    let closure = move || {
        drop(parcel);
        if left != 0 {
            again(&field_of_next, left - 1);
        }
    };
    assert_eq!(size_of_val(&closure), SMALL, "what a closure is counted as");
    match field.domain.call(closure) {
        Ok(()) => field.tally.admitted(SMALL),
        // There was room for the one that is running.
        Err(_) => field.tally.fault(FaultKind::Limit, || {
            "a closure that queues itself again was refused".to_owned()
        }),
    }
}

/// Changes what may be changed; what may wait by a half.
fn tune<K: Kind>(domain: &Domain<K>, random: &mut Random) {
    let mut tuning = domain.tuning();
    tuning.objects_max = FLOOD_OBJECTS_MAX / (1 + random.below(2));
    tuning.bytes_max = FLOOD_BYTES_MAX / (1 + random.below(2));
    tuning.lazy = Duration::from_micros(random.below(100_000));
    tuning.run_min = 1 + random.below(200) as u32;
    tuning.run_time = Duration::from_micros(random.below(5000));
    domain.tune(tuning);
}
