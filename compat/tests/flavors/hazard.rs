//! The domain of `<hazard_pointer>`, driven as its header drives it.

use std::collections::BTreeSet;
use std::sync::atomic::fence;

use crate::c::*;

/// What an object begins with, as the header has it; and where it says that it was reclaimed.
#[repr(C)]
struct Object {
    next: *mut Object,
    reclaim: Option<unsafe extern "C" fn(*mut Object)>,
    gone: *const AtomicBool,
}

/// A place, as far as the header knows it.
type Place = AtomicPtr<Object>;

unsafe extern "C" {
    safe fn quiescence_hazard_v1_acquire() -> *const Place;
    fn quiescence_hazard_v1_release(place: *const Place);
    fn quiescence_hazard_v1_retire(object: *mut Object);
}

unsafe extern "C" fn reclaim(object: *mut Object) {
    // SAFETY: from a box, below.
    let object = unsafe { Box::from_raw(object) };
    // SAFETY: the flag outlives the object, which its test waits for.
    unsafe { &*object.gone }.store(true, Release);
}

fn object(gone: &AtomicBool) -> *mut Object {
    Box::into_raw(Box::new(Object { next: ptr::null_mut(), reclaim: Some(reclaim), gone }))
}

fn retire(object: *mut Object) {
    // SAFETY: once, and where it was it is no more.
    unsafe { quiescence_hazard_v1_retire(object) };
}

fn acquire() -> &'static Place {
    // SAFETY: not null, with memory; places stay.
    unsafe { &*quiescence_hazard_v1_acquire() }
}

fn release(place: &'static Place) {
    // SAFETY: acquired, and not released before.
    unsafe { quiescence_hazard_v1_release(place) };
}

/// Returns when a look has begun after the call, and is over.
fn look() {
    for _ in 0..2 {
        let gone = AtomicBool::new(false);
        retire(object(&gone));
        until(|| gone.load(Acquire));
    }
}

#[test]
fn what_is_protected_stays_until_it_is_not() {
    attach();
    let gone = AtomicBool::new(false);
    let place = acquire();
    let protected = object(&gone);
    // As the header: a store, a fence, and a look whether it is still where it was.
    place.store(protected, Release);
    fence(SeqCst);
    retire(protected);
    look();
    assert!(!gone.load(Acquire), "reclaimed while it is protected");
    release(place);
    look();
    until(|| gone.load(Acquire));
}

#[test]
fn the_thread_that_reclaims_is_woken() {
    attach();
    for _ in 0..20 {
        look();
        // It waits a millisecond for more, and then sleeps until it is woken. Too short a pause
        // only means that it did not sleep.
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// It may register the thread that calls it, and unregister it. The next one, of the same look or
/// of a later one, found no reader.
#[test]
fn after_a_deleter_that_unregisters_the_next_is_a_reader_again() {
    static READERS: AtomicU32 = AtomicU32::new(0);

    unsafe extern "C" fn reclaim_as_a_reader(object: *mut Object) {
        READERS.fetch_add(u32::from(is_marked(MEMB)), SeqCst);
        register(MEMB);
        unregister(MEMB);
        // SAFETY: as there.
        unsafe { reclaim(object) };
    }

    attach();
    let gone = [const { AtomicBool::new(false) }; 20];
    for gone in &gone {
        let object = object(gone);
        // SAFETY: not retired yet.
        unsafe { (*object).reclaim = Some(reclaim_as_a_reader) };
        retire(object);
    }
    until(|| gone.iter().all(|gone| gone.load(Acquire)));
    assert_eq!(READERS.load(SeqCst), 20);
}

/// Also by another thread. No other test takes any meanwhile.
#[test]
fn places_are_used_again() {
    attached_in_its_own_process!();
    let acquired = || {
        let places: Vec<_> = (0..100).map(|_| acquire()).collect();
        assert!(places.iter().all(|place| place.load(Relaxed).is_null()));
        let addresses: BTreeSet<_> =
            places.iter().map(|place| ptr::from_ref::<Place>(place).addr()).collect();
        places.into_iter().for_each(release);
        addresses
    };
    let places = acquired();
    assert_eq!(places.len(), 100, "one place for each");
    assert_eq!(elsewhere(acquired), places);
}

/// A child has no such thread: the first to retire there starts one, and finds what was retired.
#[test]
fn a_child_reclaims_as_well() {
    attach();
    look();
    let gone: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    let place = acquire();
    let kept = object(gone);
    place.store(kept, Release);
    fence(SeqCst);
    retire(kept);
    look(); // and it is kept
    in_child(|| {
        release(place);
        look();
        until(|| gone.load(Acquire));
    });
    assert!(!gone.load(Acquire));
    release(place);
    look();
    until(|| gone.load(Acquire));
}

/// A thread that retires very many waits for room, and none waits where room cannot come.
#[test]
fn very_many_find_room() {
    attach();
    static ALL: AtomicBool = AtomicBool::new(false);
    (0..20_000).for_each(|_| retire(object(&ALL)));
    in_section(MEMB, || (0..5_000).for_each(|_| retire(object(&ALL))));
    look();
}
