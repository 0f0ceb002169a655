//! Atomic pointers with tags: threads that are pinned load them, follow them, and check what they
//! have found once more at the end of the guard, while others exchange them and defer the end of
//! what they led to; in the default collector, and in one that has hardly any room.
//!
//! The tag says whether the serial of the object is odd. When all threads have ended, and what was
//! deferred has run, the objects that are left must be those that the pointers lead to.

use std::array;
use std::sync::Mutex;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use quiescence::Domain;
use quiescence::epoch::{self, Atomic, Collector, Guard, Owned, Shared};

use super::{Canary, FaultKind, Fixture, Live, Operation, ThreadContext, lock, spin, tuning};

/// Pointers of a collector.
const PLACES: usize = 4;

/// Objects that the small collector has room for.
const ROOM: u64 = 4;

static LIVE: Live = Live::none();

type Place = Atomic<Canary>;

/// The pointers, and the collectors.
struct Pointers {
    /// Never null. Of the default collector, and of the small one. The last objects are leaked.
    places: [[Place; PLACES]; 2],
    /// None at the end.
    small: Mutex<Option<Collector>>,
}

fn fresh(serial: u64) -> Owned<Canary> {
    Owned::new(Canary::new(serial, &LIVE)).with_tag((serial & 1) as usize)
}

/// Threads that read and exchange such pointers.
pub(crate) fn cast(fixture: &mut Fixture, threads: usize) {
    let domain = Domain::builder().name("epoch").tuning(tuning(ROOM, 1 << 20)).build();
    let pointers = Pointers {
        places: array::from_fn(|_| array::from_fn(|_| Atomic::from(fresh(0)))),
        small: Mutex::new(Some(Collector::new_in(domain))),
    };
    fixture.parts(
        true,
        pointers,
        &[
            (threads, "reader of epoch's pointers", Pointers::read),
            (3, "updater of epoch's pointers", Pointers::update),
        ],
        Pointers::close,
    );
}

/// Loads a pointer, and looks at what it leads to.
fn load<'g>(place: &Place, guard: &'g Guard, context: &ThreadContext) -> (&'g Canary, u64) {
    let shared = place.load(Acquire, guard);
    // SAFETY: never null; its end is deferred after it has been unlinked.
    let object = unsafe { shared.deref() };
    let serial = object.loaded(context, "epoch::Atomic");
    context.equal(FaultKind::Torn, "epoch::Atomic", "tag", shared.tag() as u64, serial & 1);
    (object, serial)
}

/// Has the end of what was unlinked run, when no guard is left.
fn defer_end(old: Shared<'_, Canary>, guard: &Guard, context: &ThreadContext) {
    if context.one_in(2) {
        context.did(Operation::EpochDestroy);
        // SAFETY: unlinked by the caller, and deferred here alone.
        return unsafe { guard.defer_destroy(old) };
    }
    context.did(Operation::EpochDefer);
    // SAFETY: as above; no other thread reaches it when it runs.
    let end = move || unsafe { old.into_owned() };
    // SAFETY: any thread may drop it.
    unsafe { guard.defer_unchecked(end) };
}

impl Pointers {
    /// Loads pointers until the run is over.
    fn read(&self, context: &ThreadContext) {
        let Some(handle) = lock(&self.small).as_ref().map(Collector::register) else { return };
        context.repeat(Operation::EpochPin, || {
            let which = context.below(2) as usize;
            let mut guard = if which == 0 { epoch::pin() } else { handle.pin() };
            // Another guard of the handle comes and goes: the section stays.
            drop(context.one_in(8).then(|| handle.pin()));
            self.read_under(which, &guard, context);
            if context.one_in(8) {
                guard.repin();
                context.did(Operation::EpochRepin);
                self.read_under(which, &guard, context);
            }
        });
    }

    /// Follows each pointer of a collector, and checks all objects once more afterwards.
    fn read_under(&self, which: usize, guard: &Guard, context: &ThreadContext) {
        let found: [_; PLACES] = array::from_fn(|at| load(&self.places[which][at], guard, context));
        if context.one_in(8) {
            spin(context.below(500));
        }
        for (object, serial) in found {
            object.expect(context, "epoch::Atomic", serial);
        }
    }

    /// Exchanges pointers until the run is over.
    fn update(&self, context: &ThreadContext) {
        let Some(handle) = lock(&self.small).as_ref().map(Collector::register) else { return };
        context.repeat(Operation::EpochExchange, || {
            let which = context.below(2) as usize;
            let guard = if which == 0 { epoch::pin() } else { handle.pin() };
            let place = &self.places[which][context.below(PLACES as u64) as usize];
            let new = fresh(LIVE.next_serial());
            // AcqRel: the old object is whole here, and the new one for those that load it.
            if context.one_in(2) {
                defer_end(place.swap(new, AcqRel, &guard), &guard, context);
            } else {
                let seen = place.load(Acquire, &guard);
                if place.compare_exchange(seen, new, AcqRel, Acquire, &guard).is_ok() {
                    defer_end(seen, &guard, context);
                }
            }
            if context.one_in(16) {
                guard.flush();
                context.did(Operation::EpochFlush);
            }
        });
    }

    /// When all threads have ended: looks for what is lost.
    fn close(&self, context: &ThreadContext) {
        // The last handle: what was deferred runs before the drop returns.
        drop(lock(&self.small).take());
        quiescence::barrier();
        LIVE.expect(context, "epoch::Atomic", 2 * PLACES);
    }
}
