//! Bare hazard pointers: they protect objects that are retired in the global domain, in one with
//! hardly any room, and in some that end meanwhile.

use std::array;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::atomic::{AtomicPtr, AtomicU64};

use quiescence::hazard::{self, HazardDomain, HazardPointer};

use super::{Canary, FaultKind, Fixture, Live, Operation, ThreadContext, spin, tuning};

/// Bare pointers.
const PLACES: usize = 4;

/// Lines that are written just before a protection: what it stores waits behind them, in the CPU's
/// store buffer.
const LINES: usize = 24;

/// How seldom hazard pointers are made anew, and a domain ends.
const NEW_ONE_IN: u64 = 8192;

/// Objects that the small domain has room for.
const ROOM: u64 = 2;

static LIVE: Live = Live::none();

/// A cache line that several threads write.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line(AtomicU64);

/// The pointers.
struct Hazards {
    /// From boxes, never null. The objects of the first are retired in the small domain; the last
    /// ones are leaked.
    places: [AtomicPtr<Canary>; PLACES],
    small: HazardDomain,
    lines: [Line; LINES],
}

fn boxed(serial: u64) -> *mut Canary {
    Box::into_raw(Box::new(Canary::new(serial, &LIVE)))
}

/// Threads that use bare pointers.
pub(crate) fn cast(fixture: &mut Fixture, threads: usize) {
    let small = HazardDomain::named("torture");
    small.tune(tuning(ROOM, 1 << 20));
    let hazards = Hazards {
        places: array::from_fn(|_| AtomicPtr::new(boxed(0))),
        small,
        lines: array::from_fn(|_| Line::default()),
    };
    fixture.parts(
        true,
        hazards,
        &[
            (threads, "user of hazard pointers", Hazards::protect),
            (2, "updater of bare pointers", Hazards::retire),
        ],
        Hazards::close,
    );
}

impl Hazards {
    /// Protects what bare pointers lead to until the run is over.
    fn protect(&self, context: &ThreadContext) {
        let mut holders: [HazardPointer; 2] = array::from_fn(|_| HazardPointer::new());
        context.repeat(Operation::HazardProtect, || {
            self.protect_one(context, &mut holders);
            if context.one_in(NEW_ONE_IN) {
                holders = array::from_fn(|_| HazardPointer::new());
                end_domain(context, &mut holders[0]);
            }
        });
    }

    fn protect_one(&self, context: &ThreadContext, [first, second]: &mut [HazardPointer; 2]) {
        // Both of the same one now and then.
        let place = &self.places[context.below_mostly_low(PLACES as u64) as usize];
        if context.one_in(2) {
            self.write_lines(context);
        }
        // SAFETY: what is there is from a box, and is retired after it was taken out.
        let Some(one) = (unsafe { first.protect(place) }) else { return };
        let serial = one.loaded(context, "HazardPointer");
        if context.one_in(8) {
            let expected = one.as_ptr().as_ptr();
            // SAFETY: as above.
            if let Ok(Some(again)) = unsafe { second.try_protect(place, expected) } {
                drop(one);
                spin(context.below(500));
                again.expect(context, "HazardPointer", serial);
            }
        } else {
            if context.one_in(16) {
                spin(context.below(500));
            }
            one.expect(context, "HazardPointer", serial);
        }
    }

    fn write_lines(&self, context: &ThreadContext) {
        let any = context.next();
        self.lines.iter().for_each(|line| line.0.store(any, Relaxed));
    }

    /// Replaces what bare pointers lead to, and retires it, until the run is over.
    fn retire(&self, context: &ThreadContext) {
        context.repeat(Operation::HazardRetire, || {
            let at = context.below_mostly_low(PLACES as u64) as usize;
            let new = boxed(LIVE.next_serial());
            // AcqRel: the old one is whole for us, and the new one for those that load it.
            let old = self.places[at].swap(new, AcqRel);
            // SAFETY: from a box, and no thread finds it any more.
            let old = unsafe { Box::from_raw(old) };
            if at == 0 {
                self.small.retire(old)
            } else {
                hazard::global().retire(old)
            }
            if context.one_in(2) {
                self.write_lines(context);
            }
        });
    }

    /// When all threads have ended: looks for what is lost.
    fn close(&self, context: &ThreadContext) {
        self.small.barrier();
        hazard::barrier();
        LIVE.expect(context, "HazardDomain", PLACES);
        let waiting = self.small.statistics().callbacks_waiting();
        context.equal(FaultKind::Count, "HazardDomain", "objects after a barrier", waiting, 0);
    }
}

/// A domain ends while one of its objects is protected; that one outlives it.
fn end_domain(context: &ThreadContext, holder: &mut HazardPointer) {
    let domain = HazardDomain::new();
    let place = AtomicPtr::new(boxed(7));
    // SAFETY: from a box; retired below, after it was taken out.
    let protected = unsafe { holder.protect(&place) };
    for _ in 0..context.below(40) {
        domain.retire(Box::new(Canary::new(8, &LIVE)));
    }
    let old = place.swap(ptr::null_mut(), AcqRel);
    // SAFETY: from a box, and no thread finds it any more.
    domain.retire(unsafe { Box::from_raw(old) });
    if context.one_in(2) {
        domain.barrier();
    }
    drop(domain);
    protected.iter().for_each(|one| one.expect(context, "HazardDomain", 7));
    context.did(Operation::HazardDomainEnd);
}
