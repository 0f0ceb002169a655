//! Hazard pointers: what `<hazard_pointer>` of C++26 shares between all modules of a process.
//!
//! The header has inlined what a reader does, a few instructions on a word. The words are hazard
//! slots of the library's ([`quiescence::hazard::raw`]), which one scan sees with those of Rust's
//! cells. Retired objects and the thread that reclaims are here, once a process, for a module that
//! protects an
//! object need not be the one that retires it. Its functions are called by programs: a change of
//! what they take, or of the first words of a place or an object, needs new names.
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

mod places;
mod runner;

use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::flavor::Flavor;

/// What an object begins with that may be protected.
#[derive(Debug)]
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

/// Has the object reclaimed when no place names it. Allocates nothing, and runs no deleter. Where
/// very many wait it waits for room, 10 ms at most; not in a section, a callback or a deleter.
///
/// # Safety
/// `object` is valid until `reclaim` is called with it, once, on any thread, and retired once. A
/// thread that protects it from now on finds that it is no longer where it was.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn quiescence_hazard_v1_retire(object: *mut Object) {
    // Relaxed: a number to be compared.
    let waiting = WAITING.fetch_add(1, Relaxed) + 1;
    // SAFETY: the caller's, and on no stack.
    let was_empty = unsafe { push(&RETIRED, object) };
    if was_empty || runner::is_absent() {
        runner::wake();
    }
    // Where each place protects an object, each scan still reclaims half of what it finds.
    if waiting >= WAITING_MAX + 2 * places::count() {
        runner::wait_for_room(|| WAITING.load(Relaxed) < WAITING_MAX + 2 * places::count());
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

/// Objects in lists by their addresses, so that those that places name are found fast.
struct Sorted {
    lists: [*mut Object; Self::LISTS],
    count: usize,
}

impl Sorted {
    const LISTS: usize = 256;

    fn index(object: *const Object) -> usize {
        (object.addr().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % Self::LISTS
    }

    /// # Safety
    /// The list is of valid objects that are the caller's alone.
    unsafe fn add_all(&mut self, mut object: *mut Object) {
        while !object.is_null() {
            let list = &mut self.lists[Self::index(object)];
            // SAFETY: by the contract.
            let next = unsafe { std::mem::replace(&mut (*object).next, *list) };
            *list = object;
            self.count += 1;
            object = next;
        }
    }

    /// Takes the object out, if it is here.
    fn take(&mut self, wanted: *const Object) -> Option<*mut Object> {
        let mut link: *mut *mut Object = &raw mut self.lists[Self::index(wanted)];
        loop {
            // SAFETY: the head of a list of ours, or a link in it.
            let object = unsafe { *link };
            if object.is_null() {
                return None;
            }
            // SAFETY: objects in our lists are valid and ours.
            let next = unsafe { &raw mut (*object).next };
            if ptr::eq(object, wanted) {
                // SAFETY: as above.
                let next = unsafe { *next };
                // SAFETY: as above.
                unsafe { *link = next };
                self.count -= 1;
                return Some(object);
            }
            link = next;
        }
    }
}

/// Reclaims what is retired and not protected. Returns how many there were. On the runner
/// only.
fn scan() -> usize {
    let mut mine = Sorted { lists: [ptr::null_mut(); Sorted::LISTS], count: 0 };
    for stack in [&RETIRED, &KEPT] {
        // Acquire: pairs with the Release in `push` [HP-3].
        let first = stack.swap(ptr::null_mut(), Acquire);
        // SAFETY: the whole stack is ours now.
        unsafe { mine.add_all(first) };
    }
    let found = mine.count;
    if found == 0 {
        return 0;
    }
    // After the fence each reader has said what it protects, or its second load sees that the
    // object is unlinked [HP-1].
    places::for_each_protected(|protected| {
        if let Some(object) = mine.take(protected) {
            // SAFETY: in no list of ours any more.
            unsafe { push(&KEPT, object) };
        }
    });
    // Relaxed: a number to be compared.
    WAITING.fetch_sub(mine.count, Relaxed);
    for mut object in mine.lists {
        while !object.is_null() {
            // SAFETY: valid, and ours until it is reclaimed.
            let Object { next, reclaim } = unsafe { ptr::read(object) };
            // SAFETY: once, and no hazard pointer protects it.
            unsafe { reclaim(object) };
            object = next;
        }
    }
    found
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
    let mut count = 0;
    for stack in [&RETIRED, &KEPT] {
        // Relaxed: the only thread.
        let mut object = stack.load(Relaxed);
        while !object.is_null() {
            count += 1;
            // SAFETY: what is on a stack is valid, and no other thread takes it.
            object = unsafe { (*object).next };
        }
    }
    WAITING.store(count, Relaxed);
}

const _: () = assert!(size_of::<Object>() == 2 * size_of::<usize>());
