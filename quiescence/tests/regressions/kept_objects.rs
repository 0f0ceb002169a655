//! Objects that hazard pointers protected: one was freed at once where the user's `Weigh` panicked,
//! one that found no room was never looked for again, and those of a thread that protects what it
//! retires went over the limit without end.

use std::ptr;
#[cfg(target_os = "linux")]
use std::sync::atomic::AtomicI32;
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

/// Forks in its drop, on one thread. The parent waits for the child there.
#[cfg(target_os = "linux")]
struct Forks {
    on: thread::ThreadId,
    dropped: &'static AtomicBool,
}

#[cfg(target_os = "linux")]
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// How the child has ended.
#[cfg(target_os = "linux")]
static STATUS: AtomicI32 = AtomicI32::new(-1);

#[cfg(target_os = "linux")]
impl Weigh for Forks {}

#[cfg(target_os = "linux")]
impl Drop for Forks {
    fn drop(&mut self) {
        if thread::current().id() != self.on {
            return;
        }
        self.dropped.store(true, Release);
        // SAFETY: the child has this thread only, and ends by `_exit`.
        match unsafe { libc::fork() } {
            -1 => panic!("fork: {}", std::io::Error::last_os_error()),
            0 => IS_CHILD.store(true, Release),
            child => {
                let mut status = -1;
                // SAFETY: waits for the child made above.
                unsafe { libc::waitpid(child, &raw mut status, 0) };
                STATUS.store(status, Release); // a panic would end here
            }
        }
    }
}

/// The child counted what stood in the list and forgot as many as its thread had in hand, so that
/// nothing seemed to be left of what was protected still.
#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore = "a child process")]
fn what_is_protected_is_not_forgotten_where_a_drop_forks() {
    const TEST: &str = "kept_objects::what_is_protected_is_not_forgotten_where_a_drop_forks";
    if crate::common::role().is_none() {
        let output = crate::common::again_in_time(TEST, "parent", &[]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?}: {error}", output.status);
        return;
    }
    let domain = HazardDomain::new();
    let (forked, dropped) = (Box::leak(Box::<AtomicBool>::default()), Box::leak(Box::default()));
    let (on, flag) = (thread::current().id(), Flag { dropped, panics: false });
    let places = (AtomicPtr::new(Box::into_raw(Box::new(flag))), AtomicPtr::default());
    let mut holder = HazardPointer::new();
    // SAFETY: from a box, and retired below after it was taken out.
    let protected = unsafe { holder.protect(&places.0) };
    // SAFETY: from a box, and no thread finds it any more.
    domain.retire(unsafe { Box::from_raw(places.0.swap(ptr::null_mut(), AcqRel)) });
    domain.barrier();
    assert_eq!(domain.statistics().objects_protected, 1);
    // Until no other thread, the worker say, is the one that drops it.
    while !forked.load(Acquire) {
        places.1.store(Box::into_raw(Box::new(Forks { on, dropped: forked })), Release);
        let mut holder = HazardPointer::new();
        // SAFETY: as above.
        let protected = unsafe { holder.protect(&places.1) };
        // SAFETY: as above.
        domain.retire(unsafe { Box::from_raw(places.1.swap(ptr::null_mut(), AcqRel)) });
        domain.barrier();
        drop(protected);
        domain.barrier(); // also in the child
    }
    let is_kept = domain.statistics().objects_protected == 1 && !dropped.load(Acquire);
    drop(protected);
    domain.barrier();
    let is_whole = is_kept && dropped.load(Acquire) && domain.statistics().bytes_waiting == 0;
    if IS_CHILD.load(Acquire) {
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(i32::from(!is_whole)) };
    }
    assert!(is_whole);
    assert_eq!(STATUS.load(Acquire), 0, "the child failed");
}
