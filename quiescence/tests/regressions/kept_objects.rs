//! Objects that hazard pointers protected: one was freed at once where the user's `Weigh` panicked,
//! one that found no room was never looked for again, and those of a thread that protects what it
//! retires went over the limit without end.

use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr};
use std::thread;

use quiescence::Weigh;
use quiescence::hazard::{HazardDomain, HazardPointer};

/// Says when it is dropped, and cannot be weighed, if it is to be so.
struct Flag {
    dropped: &'static AtomicBool,
    panics: bool,
}

impl Weigh for Flag {
    fn owned(&self) -> usize {
        assert!(!self.panics, "it cannot be weighed");
        0
    }
}

impl Drop for Flag {
    fn drop(&mut self) {
        self.dropped.store(true, Release);
    }
}

/// Retires what is in the place while it is protected, and looks whether it is freed then, and
/// later with no further call.
fn is_freed_later(domain: &HazardDomain, panics: bool) {
    let dropped: &'static AtomicBool = Box::leak(Box::default());
    let place = AtomicPtr::new(Box::into_raw(Box::new(Flag { dropped, panics })));
    let mut holder = HazardPointer::new();
    // SAFETY: from a box, and retired below after it was taken out.
    let protected = unsafe { holder.protect(&place) };
    let old = place.swap(ptr::null_mut(), AcqRel);
    // SAFETY: from a box, and no thread finds it any more.
    domain.retire(unsafe { Box::from_raw(old) });
    domain.barrier();
    assert!(!dropped.load(Acquire), "freed while it is protected");
    drop(protected);
    while !dropped.load(Acquire) {
        thread::yield_now();
    }
}

#[test]
fn an_object_that_cannot_be_weighed_is_protected_all_the_same() {
    is_freed_later(&HazardDomain::new(), true);
}

#[test]
fn an_object_that_found_no_room_is_looked_for_by_the_worker() {
    let domain = HazardDomain::new();
    let mut tuning = domain.tuning();
    tuning.bytes_max = 1;
    domain.tune(tuning);
    is_freed_later(&domain, false);
}

/// What had been kept filled the limit until the worker's next tick, though it was protected no
/// more. So each of these went over the limit: thousands.
#[test]
fn what_a_thread_protects_while_it_retires_it_stays_within_the_limit() {
    const MAX: u64 = 64;
    let domain = HazardDomain::new();
    let mut tuning = domain.tuning();
    tuning.objects_max = MAX;
    domain.tune(tuning);
    let place = AtomicPtr::new(Box::into_raw(Box::new(0_u64)));
    let retire = |number| {
        let old = place.swap(Box::into_raw(Box::new(number)), AcqRel);
        // SAFETY: from a box, and no thread finds it any more.
        domain.retire(unsafe { Box::from_raw(old) });
    };
    let mut holders: Vec<_> = (0..MAX).map(|_| HazardPointer::new()).collect();
    let protections: Vec<_> = holders
        .iter_mut()
        .zip(1..)
        .map(|(holder, number)| {
            // SAFETY: from a box, and retired after it was taken out.
            let protected = unsafe { holder.protect(&place) };
            retire(number);
            protected
        })
        .collect();
    domain.barrier();
    assert_eq!(domain.statistics().objects_protected, MAX);
    drop(protections);
    let mut holder = HazardPointer::new();
    for number in 0..200 {
        // SAFETY: as above.
        let protected = unsafe { holder.protect(&place) };
        retire(number);
        let waiting = domain.statistics().callbacks_waiting();
        assert!(waiting <= MAX + 1, "{waiting} wait after {number}");
        drop(protected);
    }
    // SAFETY: as above.
    domain.retire(unsafe { Box::from_raw(place.into_inner()) });
}
