//! Hazard pointers: the part of C++26's `<hazard_pointer>` that all modules of a process share.
//!
//! The header inlines the reader: a few instructions on one word, here called a *place*. Places are
//! the library's hazard slots ([`quiescence::hazard::raw`]), so one scan covers them and those of
//! Rust's cells. The retired objects and the thread that reclaims them exist once in a process,
//! here: one module may protect an object and another retire it. Programs call these functions: a
//! change of their parameters, or of the first words of a place or an object, needs new names.
//!
//! A retired object is pushed onto a stack ([`quiescence_hazard_v1_retire`]). The
//! [runner](mod@runner) takes all retired objects, executes a heavy fence, scans all places, keeps
//! the protected objects, and reclaims the others ([`scan`]). Deleters run only on its thread,
//! under no lock and in no section. So they may wait for anything, `rcu_barrier` included.
//!
//! # Invariant
//! An object is reclaimed only after a scan that took it from its stack, then executed the fence
//! [HP-1], and then found no place that names it. The object was unlinked before it was retired.
//! So a reader that stores its address in a place later finds it unlinked by its second load, and
//! does not use it.
//!
//! Source: Michael, *Hazard Pointers*, IEEE TPDS 2004; the asymmetric fence as in folly's.

mod runner;

use std::iter;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicUsize};

use quiescence::hazard::raw;

use crate::flavor::Flavor;

/// The first words of an object that may be protected.
#[repr(C)]
pub(crate) struct Object {
    /// The next one on the stack, or in a scan's list.
    next: *mut Object,
    /// Reclaims the object.
    reclaim: unsafe extern "C" fn(*mut Object),
}

/// At `WAITING_MAX` waiting objects plus two for each place, a thread that retires waits for room.
const WAITING_MAX: usize = 1024;

/// The objects that were retired since the last scan.
static RETIRED: AtomicPtr<Object> = AtomicPtr::new(ptr::null_mut());

/// The objects that were protected at the last scan.
static KEPT: AtomicPtr<Object> = AtomicPtr::new(ptr::null_mut());

/// The number of objects in both, and in the scan that is running.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// `std::rcu_default_domain()` has this address in all modules. It holds no data.
#[unsafe(no_mangle)]
#[used]
#[allow(non_upper_case_globals, reason = "it is C++'s")]
pub(crate) static quiescence_rcu_domain_v1: u8 = 0;

exported! {
    /// A place that is the caller's alone and protects nothing; null if there is no memory. Its
    /// word is part of the interface: the header inlines the stores to it.
    fn quiescence_hazard_v1_acquire() -> *const AtomicPtr<()> {
        raw::acquire().map_or(ptr::null(), ptr::from_ref)
    }

    /// Gives a place back, which now protects nothing.
    fn quiescence_hazard_v1_release(place: &'static AtomicPtr<()>) { raw::release(place) }

    /// Has the object reclaimed when no place names it. Allocates nothing (except when it starts
    /// the runner), and runs no deleter. If too many objects wait it waits for room, 10 ms at most;
    /// not in a section, a callback or a deleter.
    ///
    /// `object` is retired once, and is valid until `reclaim` is called with it, once, on the
    /// runner. It has been unlinked: a thread that tries to protect it from now on notices that.
    fn quiescence_hazard_v1_retire(object: *mut Object) {
        // Relaxed: a count that is only compared.
        let waiting = WAITING.fetch_add(1, Relaxed) + 1;
        let was_empty = push(&RETIRED, object);
        if was_empty || runner::is_absent() {
            runner::wake();
        }
        // Even if each place protects an object, a scan at the limit reclaims more than half of
        // what it finds.
        let is_room = |waiting| waiting < WAITING_MAX + 2 * raw::count();
        if !is_room(waiting) {
            runner::wait_for_room(waiting, || is_room(WAITING.load(Relaxed)));
        }
    }
}

/// Pushes an object. Returns whether the stack was empty.
///
/// # Safety
/// The object is valid, and the caller's alone.
unsafe fn push(stack: &AtomicPtr<Object>, object: *mut Object) -> bool {
    // Relaxed: the exchange below compares it again.
    let mut first = stack.load(Relaxed);
    loop {
        // SAFETY: by the contract.
        unsafe { (*object).next = first };
        // Release: pairs with the Acquire in `scan` [HP-3]: the scan sees the object as it was
        // retired, and unlinked.
        match stack.compare_exchange_weak(first, object, Release, Relaxed) {
            Ok(_) => return first.is_null(),
            Err(now) => first = now,
        }
    }
}

/// Reclaims the retired objects that are not protected. Returns whether there were any retired
/// objects. Only on the runner. Allocates nothing: other threads may be waiting for the memory that
/// it frees.
fn scan() -> bool {
    // Acquire: pairs with the Release in `push` [HP-3].
    let mut taken = [&RETIRED, &KEPT].map(|stack| stack.swap(ptr::null_mut(), Acquire));
    if taken.iter().all(|first| first.is_null()) {
        return false;
    }
    let (mut named, mut count) = ([ptr::null(); 512], 0);
    // `raw::scan` executes a heavy fence first. After that each reader's place names the object, or
    // its second load sees that the object is unlinked [HP-1].
    raw::scan(|address| {
        named[count] = address.cast();
        count += 1;
        if count == named.len() {
            keep(&mut taken, &mut named);
            count = 0;
        }
    });
    keep(&mut taken, &mut named[..count]);
    // Relaxed: a count that is only compared.
    WAITING.fetch_sub(taken.map(length).iter().sum(), Relaxed);
    for mut object in taken {
        while !object.is_null() {
            // SAFETY: valid, and ours until it is reclaimed.
            let Object { next, reclaim } = unsafe { ptr::read(object) };
            // SAFETY: once, and no hazard pointer protects it.
            unsafe { reclaim(object) };
            runner::register(); // the deleter may have unregistered it
            object = next;
        }
    }
    true
}

/// Moves the objects that are `named` from the caller's lists to `KEPT`.
fn keep(lists: &mut [*mut Object], named: &mut [*const Object]) {
    named.sort_unstable();
    for mut link in lists.iter_mut().map(ptr::from_mut) {
        // SAFETY: the head of a list, or a link in it.
        while let Some(object) = NonNull::new(unsafe { *link }).map(NonNull::as_ptr) {
            // SAFETY: valid, and the caller's.
            let next = unsafe { &raw mut (*object).next };
            if named.binary_search(&object.cast_const()).is_err() {
                link = next;
                continue;
            }
            // SAFETY: both are as above.
            unsafe { ptr::copy(next, link, 1) };
            // SAFETY: in no list any more.
            unsafe { push(&KEPT, object) };
        }
    }
}

/// The length of a list from which no other thread takes.
fn length(first: *mut Object) -> usize {
    // SAFETY: objects in a list are valid.
    let next = |object: &NonNull<Object>| NonNull::new(unsafe { object.as_ref() }.next);
    iter::successors(NonNull::new(first), next).count()
}

/// Whether the calling thread may wait for deleters, which may wait for grace periods and
/// callbacks.
fn may_wait() -> bool {
    !runner::is_this()
        && !quiescence::callback_queue::in_callback()
        && !Flavor::ALL.into_iter().any(Flavor::is_reader)
}

/// In a child process: the runner is gone, and the objects of its scan are leaked. The next thread
/// that retires starts another.
pub(crate) fn after_fork() {
    runner::forget();
    // Relaxed: the only thread.
    let counts = [&RETIRED, &KEPT].map(|stack| length(stack.load(Relaxed)));
    WAITING.store(counts.iter().sum(), Relaxed);
}

const _: () = assert!(size_of::<Object>() == 2 * size_of::<usize>());
