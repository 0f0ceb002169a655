//! Sections and callbacks without guards and boxes, for code that cannot have them: a C interface,
//! a kernel, a data structure with its own memory.
//!
//! This module does what the rest of the crate does, but the caller must ensure what types ensure
//! elsewhere. Prefer [`read`](crate::read), [`retire`](crate::retire) and [`call`](crate::call).
//!
//! | here | as in liburcu |
//! |---|---|
//! | [`read_lock`], [`read_unlock`], [`nesting`] | `rcu_read_lock`, `rcu_read_unlock`, `rcu_read_ongoing` |
//! | [`Head`], [`call_head`] | `struct rcu_head`, `call_rcu` |
//! | [`retire_with`] | `defer_rcu` |
//!
//! The smallest structure built on it, a pointer from a box:
//!
//! ```
//! use quiescence::{Domain, raw};
//! use std::sync::atomic::AtomicPtr;
//! use std::sync::atomic::Ordering::{AcqRel, Acquire};
//!
//! /// A name that is read and replaced: a pointer from a box, or null.
//! static NAME: AtomicPtr<String> = AtomicPtr::new(std::ptr::null_mut());
//!
//! fn length() -> Option<usize> {
//!     let _section = quiescence::read();
//!     // SAFETY: null, or freed a grace period after it was taken out, so after this section.
//!     unsafe { NAME.load(Acquire).as_ref() }.map(String::len)
//! }
//!
//! fn replace(name: &str) {
//!     let old = NAME.swap(Box::into_raw(Box::new(name.to_owned())), AcqRel); // unlink
//!     // SAFETY: null, or valid until it is retired, below.
//!     let Some(name) = (unsafe { old.as_ref() }) else { return };
//!     let bytes = size_of::<String>() + name.capacity();
//!     // SAFETY: new sections cannot reach it; any thread may free a String.
//!     unsafe { raw::retire_with(&Domain::global(), old, bytes, free) };
//! }
//!
//! unsafe fn free(name: *mut ()) {
//!     // SAFETY: from a box of that type; called once, when no reader has it.
//!     drop(unsafe { Box::from_raw(name.cast::<String>()) });
//! }
//!
//! replace("sda");
//! std::thread::scope(|scope| {
//!     scope.spawn(|| assert!([3, 5].contains(&length().unwrap())));
//!     replace("nvme0");
//! });
//! assert_eq!(length(), Some(5));
//! # quiescence::barrier();
//! ```
//!
//! It may access the calling thread's slot and the queues, through their own functions.

use std::panic::Location;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use grace::word;

use crate::domain::domain::Domain;
use crate::domain::guard::{GLOBAL, ThreadTag};
use crate::gp::slot::{NOT_READY, Slot};
use crate::gp::thread;
use crate::reclaim::debug_objects;
use crate::reclaim::defer::{self, Patience};
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::head::Anywhere;
pub use crate::reclaim::head::{Function, Head};
use crate::reclaim::local;
use crate::reclaim::retire::Retire;

/// Begins a read-side critical section that ends with [`read_unlock`] on the same thread.
///
/// Like [`Domain::read`], but no guard bounds the section. Sections nest, within each other and
/// within those of guards. A section that never ends delays every later grace period of the domain.
///
/// # Progress and cost
/// As [`read`](crate::read).
///
/// # Panics
/// If sections are nested 2^32 deep.
///
/// ```
/// use quiescence::{Domain, raw};
///
/// let domain = Domain::global();
/// raw::read_lock(&domain);
/// assert_eq!(raw::nesting(&domain), 1);
/// // SAFETY: the section was begun above, and nothing that was read in it is used any more.
/// unsafe { raw::read_unlock(&domain) };
/// assert_eq!(raw::nesting(&domain), 0);
/// ```
#[inline]
#[track_caller]
pub fn read_lock<K: ThreadTag>(domain: &Domain<K>) {
    std::mem::forget(domain.read());
    if cfg!(debug_assertions) {
        balance::count(domain.tag().core(), |count| count.checked_add(1));
    }
}

/// Ends the section that the calling thread began last with [`read_lock`].
///
/// # Panics
/// If the thread is in no section of the domain; nothing has changed then. In debug builds also if
/// it is only in sections of guards, which this function must not end.
///
/// # Safety
/// The section was begun by [`read_lock`] on this thread, and nothing that was loaded in it is used
/// any more, unless an enclosing section is still in progress.
///
/// ```should_panic
/// let domain = quiescence::Domain::global();
/// // SAFETY: none, since there is no section: the call is refused, and the panic names this line.
/// unsafe { quiescence::raw::read_unlock(&domain) };
/// ```
#[inline]
#[track_caller]
pub unsafe fn read_unlock<K: ThreadTag>(domain: &Domain<K>) {
    let core = domain.tag().core();
    match slot(core) {
        Some(slot) if !slot.is_quiescent() => {
            if cfg!(debug_assertions) && !balance::count(core, |count| count.checked_sub(1)) {
                let what = "only in read-side critical sections of guards";
                unbalanced(what, Location::caller());
            }
            slot.leave();
        }
        _ => unbalanced("in no read-side critical section", Location::caller()),
    }
}

/// How many nested read-side critical sections of the domain the calling thread is in: those begun
/// by [`read_lock`], and those of guards. QSBR readers are not counted.
#[inline]
pub fn nesting<K: ThreadTag>(domain: &Domain<K>) -> u32 {
    // Relaxed: the thread's own word.
    slot(domain.tag().core()).map_or(0, |slot| word::nesting(slot.word().load(Relaxed)))
}

/// The calling thread's slot of ordinary sections in a domain, if it has one.
#[inline]
fn slot(core: &DomainState) -> Option<&Slot> {
    if ptr::eq(core, ptr::from_ref::<DomainState>(&GLOBAL)) {
        let fast = thread::global_slot();
        if !ptr::eq(fast, NOT_READY) {
            return Some(fast);
        }
    }
    local::existing_slot(core)
}

#[cold]
fn unbalanced(what: &str, location: &Location<'_>) -> ! {
    panic!(
        "quiescence: unbalanced read_unlock() at {location}: this thread is {what} of the domain"
    );
}

/// Counts the sections without guards, in debug builds: the nesting alone does not tell them from
/// those that a guard will end.
mod balance {
    use std::cell::RefCell;

    use crate::reclaim::domain_state::DomainState;

    thread_local! {
        /// By domain. An address that is used again leaves a mistake unseen, and accuses no thread.
        static SECTIONS: RefCell<Vec<(usize, u32)>> = const { RefCell::new(Vec::new()) };
    }

    /// Changes the count of the calling thread in a domain. False if `change` gives none.
    pub(super) fn count(core: &DomainState, change: fn(u32) -> Option<u32>) -> bool {
        let domain = std::ptr::from_ref(core).addr();
        let changed = SECTIONS.try_with(|sections| {
            let mut sections = sections.borrow_mut();
            let index = sections.iter().position(|(other, _)| *other == domain);
            let index = index.unwrap_or_else(|| {
                sections.retain(|(_, count)| *count != 0);
                sections.push((domain, 0));
                sections.len() - 1
            });
            change(sections[index].1).map(|count| sections[index].1 = count)
        });
        // Late in a thread's life the counts are gone, and nothing is checked.
        changed.map_or(true, |changed| changed.is_some())
    }
}

/// Calls `function(head)` after a grace period, on the worker thread or on a thread in
/// [`barrier`](Domain::barrier).
///
/// As with [`Domain::call`] in order, cost and what the function may do, but the object supplies
/// the memory for the queue. The function often frees the object that contains the head; it may
/// also queue the head again.
///
/// # Panics
/// In debug builds, if the head is already queued: the message names it and this call. A panic *in*
/// the function cannot unwind out of it, since it is a C function: it aborts the process.
///
/// # Safety
/// - `head` is valid for reads and writes, does not move, and is not used by any other code until
///   the function is called. It is not already queued. It need not be initialised, unless Rust code
///   made it.
/// - Sections that begin from now on cannot reach anything that the function destroys.
/// - `function(head)` may be called on any thread.
///
/// ```
/// use quiescence::{Domain, raw};
///
/// #[repr(C)]
/// struct Route {
///     head: raw::Head, // first, so that a pointer to it is one to the route
///     metric: u32,
/// }
///
/// unsafe extern "C" fn free_route(head: *mut raw::Head) {
///     // SAFETY: from a box of a route, below, whose head comes first.
///     drop(unsafe { Box::from_raw(head.cast::<Route>()) });
/// }
///
/// let route = Box::into_raw(Box::new(Route { head: raw::Head::new(), metric: 10 }));
/// // ... published, read, and unlinked ...
/// // SAFETY: a head in a box that no thread can reach any more.
/// unsafe { raw::call_head(&Domain::global(), route.cast(), free_route) };
/// quiescence::barrier();
/// ```
#[track_caller]
pub unsafe fn call_head<K: ThreadTag>(domain: &Domain<K>, head: *mut Head, function: Function) {
    if cfg!(debug_assertions) {
        // SAFETY: by this function's contract; a second call at the same time is what is looked
        // for.
        unsafe { Head::set_mark(head) };
    }
    // SAFETY: by this function's contract; no thread reads it before the grace period is over.
    unsafe { Head::set(head, function) };
    let head = Anywhere(head);
    // SAFETY: the closure is called once, after a grace period.
    let run = move || unsafe { Head::run(head.get()) };
    let _queued: Result<(), _> = defer::call(domain.tag(), run, Patience::InAnyCase);
}

/// Calls `run(object)` after a grace period. Like [`Domain::retire`], for an object that is not in
/// a box, or that must be destroyed other than by dropping it.
///
/// `bytes` is the size that counts against the domain's limit.
///
/// # Progress
/// As [`Domain::retire`].
///
/// # Panics
/// In debug builds, if the object is already queued; the message names both calls.
///
/// # Safety
/// - `object` is valid until `run` is called. It is not already queued: to decrement an object's
///   count twice, use [`call`](crate::call).
/// - Sections that begin from now on cannot reach it.
/// - `run(object)` may be called on any thread.
///
/// ```
/// use quiescence::{Domain, raw};
///
/// unsafe fn free_page(page: *mut ()) {
///     // SAFETY: from a box of that type, below.
///     drop(unsafe { Box::from_raw(page.cast::<[u8; 4096]>()) });
/// }
///
/// let page = Box::into_raw(Box::new([0_u8; 4096]));
/// // ... published, read, and unlinked ...
/// // SAFETY: no thread can reach it any more.
/// unsafe { raw::retire_with(&Domain::global(), page, 4096, free_page) };
/// quiescence::barrier();
/// ```
#[track_caller]
pub unsafe fn retire_with<K: ThreadTag, T>(
    domain: &Domain<K>,
    object: *mut T,
    bytes: usize,
    run: unsafe fn(*mut ()),
) {
    debug_objects::note(object.cast(), size_of::<T>());
    let foreign = Foreign { object: Anywhere(object.cast()), run, bytes };
    let _queued: Result<(), _> = defer::retire(domain.tag(), foreign, Patience::InAnyCase);
}

/// What is ended by a function; by dropping this.
struct Foreign {
    object: Anywhere<()>,
    run: unsafe fn(*mut ()),
    bytes: usize,
}

impl Retire for Foreign {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        debug_objects::forget(self.object.get());
        // SAFETY: once, after a grace period, by the contract of `retire_with`.
        unsafe { (self.run)(self.object.get()) };
    }
}
