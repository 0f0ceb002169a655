//! Hazard pointers: what `<hazard_pointer>` of C++26 shares between all modules of a process.
//!
//! The header has inlined what a reader does, a few instructions on a word. The words are hazard
//! slots of the library's ([`quiescence::hazard::raw`]), which one scan sees with those of Rust's
//! cells. Retired objects and the thread that reclaims are here, once a process, for a module that
//! protects an object need not be the one that retires it. Its functions are called by programs: a
//! change of what they take, or of the first words of a place or an object, needs new names.
//!
//! An object is retired onto a stack ([`retire`]). The [runner](mod@runner) takes all that is
//! retired, executes a heavy fence, scans all places, keeps the objects that are protected, and
//! reclaims the others: [`scan`]. Deleters run on its thread only, under no lock and in no section:
//! so they may wait for what they like, `rcu_barrier` included.
//!
//! # Invariant
//! An object is reclaimed after a scan that began with it in hand, executed its fence [HP-1], and
//! found no place that names it. It was unlinked before it was retired, so a place that names it
//! later was refused by the reader's second load, which saw that.
//!
//! Source: Michael, *Hazard Pointers*, IEEE TPDS 2004; the asymmetric fence as in folly's.

mod runner;

use std::iter;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use quiescence::hazard::raw;

use crate::flavor::Flavor;

/// What an object begins with that may be protected.
#[repr(C)]
pub(crate) struct Object {
    /// The next one on the stack, or in a list of a scan's own.
    next: *mut Object,
    /// What ends it.
    reclaim: unsafe extern "C" fn(*mut Object),
}

/// So many may wait besides as many again as may be protected; a thread that retires more waits for
/// room.
const WAITING_MAX: usize = 1024;

/// What was retired since the last scan.
static RETIRED: AtomicPtr<Object> = AtomicPtr::new(ptr::null_mut());

/// What was protected at the last scan.
static KEPT: AtomicPtr<Object> = AtomicPtr::new(ptr::null_mut());

/// How many there are of both, and in the scan that is running.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// The address of `std::rcu_default_domain()`, wherever it is asked for. It has nothing in it.
#[unsafe(no_mangle)]
#[used]
#[allow(non_upper_case_globals, reason = "it is C++'s")]
pub(crate) static quiescence_rcu_domain_v1: u8 = 0;

exported! {
    /// A place that is the caller's alone, which protects nothing; null if there is no memory. Its
    /// only word is the interface's: the header has the stores to it inlined.
    fn quiescence_hazard_v1_acquire() -> *const AtomicPtr<()> {
        raw::acquire().map_or(ptr::null(), ptr::from_ref)
    }

    /// Gives a place back, which protects nothing from now on.
    fn quiescence_hazard_v1_release(place: &'static AtomicPtr<()>) { raw::release(place) }

    /// Has the object reclaimed when no place names it. Allocates nothing, and runs no deleter.
    /// Where very many wait it waits for room, 10 ms at most; not in a section, a callback or a
    /// deleter.
    ///
    /// `object` is valid until `reclaim` is called with it, once, on any thread, and retired once.
    /// A thread that protects it from now on finds that it is no longer where it was.
    fn quiescence_hazard_v1_retire(object: *mut Object) {
        // Relaxed: a number to be compared.
        let waiting = WAITING.fetch_add(1, Relaxed) + 1;
        let was_empty = push(&RETIRED, object);
        if was_empty || runner::is_absent() {
            runner::wake();
        }
        // Where each place protects an object, each scan still reclaims half of what it finds.
        if waiting >= WAITING_MAX + 2 * raw::count() {
            runner::wait_for_room(|| WAITING.load(Relaxed) < WAITING_MAX + 2 * raw::count());
        }
    }
}

/// Says whether the stack was empty.
///
/// # Safety
/// The object is valid, and the caller's alone.
unsafe fn push(stack: &AtomicPtr<Object>, object: *mut Object) -> bool {
    // Relaxed: compared again below.
    let mut first = stack.load(Relaxed);
    loop {
        // SAFETY: by the contract.
        unsafe { (*object).next = first };
        // Release: pairs with the Acquire in `scan` [HP-3]; the object is there as it was retired,
        // and unlinked.
        match stack.compare_exchange_weak(first, object, Release, Relaxed) {
            Ok(_) => return first.is_null(),
            Err(now) => first = now,
        }
    }
}

/// Reclaims what is retired and not protected. Returns whether there was anything. On the runner
/// only. Allocates nothing: it may be what memory is waited for.
fn scan() -> bool {
    // Acquire: pairs with the Release in `push` [HP-3].
    let mut taken = [&RETIRED, &KEPT].map(|stack| stack.swap(ptr::null_mut(), Acquire));
    if taken.iter().all(|first| first.is_null()) {
        return false;
    }
    let (mut named, mut count) = ([ptr::null(); 512], 0);
    // It executes a heavy fence first. After that each reader has said what it protects, or its
    // second load sees that the object is unlinked [HP-1].
    raw::scan(|address| {
        named[count] = address.cast();
        count += 1;
        if count == named.len() {
            keep(&mut taken, &mut named);
            count = 0;
        }
    });
    keep(&mut taken, &mut named[..count]);
    // Relaxed: a number to be compared.
    WAITING.fetch_sub(taken.map(length).iter().sum(), Relaxed);
    for mut object in taken {
        while !object.is_null() {
            // SAFETY: valid, and ours until it is reclaimed.
            let Object { next, reclaim } = unsafe { ptr::read(object) };
            // SAFETY: once, and no hazard pointer protects it.
            unsafe { reclaim(object) };
            object = next;
        }
    }
    true
}

/// Moves what is `named` from the lists, which are of objects of the caller's alone, to those that
/// were protected.
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

/// Of a list that no other thread takes from.
fn length(first: *mut Object) -> usize {
    // SAFETY: what is in a list is valid.
    let next = |object: &NonNull<Object>| NonNull::new(unsafe { object.as_ref() }.next);
    iter::successors(NonNull::new(first), next).count()
}

/// Whether the calling thread may wait for deleters, which may wait for grace periods and
/// callbacks.
fn may_wait() -> bool {
    let reads = |flavor: &Flavor| flavor.record().is_some_and(|record| !record.is_quiescent());
    let mut flavors = Flavor::ALL.into_iter().filter(|flavor| flavor.is_attached());
    !runner::is_this()
        && !quiescence::callback_queue::in_callback()
        && !flavors.any(|flavor| reads(&flavor))
}

/// In a child process: the runner is gone, and with it what it had in hand. The next one to retire
/// starts another.
pub(crate) fn after_fork() {
    runner::forget();
    // Relaxed: the only thread.
    let counts = [&RETIRED, &KEPT].map(|stack| length(stack.load(Relaxed)));
    WAITING.store(counts.iter().sum(), Relaxed);
}

const _: () = assert!(size_of::<Object>() == 2 * size_of::<usize>());
