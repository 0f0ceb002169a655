//! Places in which hazard pointers say what they protect.
//!
//! A place is made once and stays; it is in use by one `hazard_pointer` of C++, kept by a thread
//! for its next one, or free. All of them are in one list, which only grows.

use std::alloc::{Layout, alloc_zeroed};
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};

use super::Object;
use quiescence::chaos::{self, Mutant};

/// One hazard pointer's. On cache lines of its own: its owner writes it all the time.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Place {
    /// What it protects, or null. The first word is the interface's: the header has the stores to
    /// it inlined.
    protects: AtomicPtr<Object>,
    in_use: AtomicBool,
    next: *const Place,
}

static ALL: AtomicPtr<Place> = AtomicPtr::new(ptr::null_mut());
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// How many are not in use: without any no thread looks for one.
static FREE: AtomicUsize = AtomicUsize::new(0);

/// How many there are.
pub(super) fn count() -> usize {
    COUNT.load(Relaxed) // a number to be compared
}

fn all() -> impl Iterator<Item = &'static Place> {
    // Acquire: pairs with the Release in `make`.
    let mut next = ALL.load(Acquire).cast_const();
    std::iter::from_fn(move || {
        // SAFETY: null, or a place, which stays.
        let place = unsafe { next.as_ref() }?;
        next = place.next;
        Some(place)
    })
}

/// Calls `f` with each object that is protected.
pub(super) fn for_each_protected(mut f: impl FnMut(*const Object)) {
    for place in all() {
        // Acquire: pairs with the Release by which a protection ends [HP-2]; what was read under it
        // was read before.
        let protected = place.protects.load(Acquire);
        if !protected.is_null() && !chaos::mutant(Mutant::HazardScan) {
            f(protected);
        }
    }
}

/// One that was free.
fn find() -> Option<&'static Place> {
    // Relaxed: a hint. A thread that misses one makes another.
    if FREE.load(Relaxed) == 0 {
        return None;
    }
    // Relaxed, then Acquire: the exchange decides, and pairs with the Release in `free`.
    let free = |place: &&Place| !place.in_use.load(Relaxed) && !place.in_use.swap(true, Acquire);
    all().find(free).inspect(|_| _ = FREE.fetch_sub(1, Relaxed))
}

/// A new one; none if there is no memory. Zeroed memory, since only that may be wanting: see
/// `memory`.
fn make() -> Option<&'static Place> {
    // SAFETY: of more than no bytes.
    let memory = unsafe { alloc_zeroed(Layout::new::<Place>()) }.cast::<Place>();
    if memory.is_null() {
        return None;
    }
    let protects = AtomicPtr::new(ptr::null_mut());
    // Relaxed: compared again below.
    let mut first = ALL.load(Relaxed);
    let place = Place { protects, in_use: AtomicBool::new(true), next: first };
    // SAFETY: of its size and alignment.
    unsafe { memory.write(place) };
    // Release: pairs with the Acquire in `all`; a thread that finds the slot finds it made.
    while let Err(now) = ALL.compare_exchange_weak(first, memory, AcqRel, Relaxed) {
        first = now;
        // SAFETY: in no list yet.
        unsafe { (*memory).next = first };
    }
    COUNT.fetch_add(1, Relaxed);
    // SAFETY: it stays for ever.
    Some(unsafe { &*memory })
}

fn free(place: &Place) {
    // Before it can be taken, so that it is never less than nothing. Relaxed: a hint.
    FREE.fetch_add(1, Relaxed);
    // Release: pairs with the Acquire in `find`; the next owner's stores come after the last one's.
    place.in_use.store(false, Release);
}

/// A slot that is the caller's alone, which protects nothing; null if there is no memory.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn quiescence_hazard_v1_acquire() -> *const Place {
    find().or_else(make).map_or(ptr::null(), ptr::from_ref)
}

/// Gives a place back, which protects nothing from now on.
///
/// # Safety
/// It is from `quiescence_hazard_v1_acquire`, and was not given back.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn quiescence_hazard_v1_release(place: *const Place) {
    // SAFETY: by the contract; places stay.
    let place = unsafe { &*place };
    // Release: pairs with the Acquire of the scan [HP-2].
    place.protects.store(ptr::null_mut(), Release);
    free(place);
}
