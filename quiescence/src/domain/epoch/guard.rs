//! [`Guard`]: keeps a thread pinned, and defers functions and destructions.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::ptr;

use grace::limit::Amount;

use super::collector::{Collector, Local, default_collector};
use super::deferred::{Function, Object};
use super::due;
use super::pointable::Pointable;
use super::shared::Shared;
use crate::domain::guard::{self, Global, GuardsChangeThreads};
use crate::domain::impls::shown_in_part;
use crate::gp::slot::Slot;
use crate::os::user_code::{self, Site};
use crate::reclaim::defer::{self, Patience};
use crate::reclaim::domain_state::{DomainState, Named};
use crate::reclaim::free::{Callback, Pending};
use crate::reclaim::local;
use crate::reclaim::thread_queue::Contents;

/// Keeps the thread pinned until it is dropped: no function deferred after it was created runs
/// before then.
///
/// It stays on its thread. Guards of a thread may be dropped in any order. A guard that is leaked
/// with [`std::mem::forget`] keeps the thread pinned forever.
///
/// # Invariant
/// **\[EP-1\]: while the guard lives, its thread is in a section that began before it:** one of its
/// own, or one that the guards of its handle share, which ends with the last of them. So everything
/// that is deferred on whatever thread after the guard began waits for a grace period that the
/// section is in the way of.
#[must_use = "the thread is pinned until the guard is dropped"]
pub struct Guard {
    /// The thread's slot in the domain; null in the guard of [`unprotected`].
    slot: *const Slot,
    /// The registration that made it, null for the default collector's; and in the low bits what is
    /// due ([`DUE`]).
    local: Cell<*const Local>,
}

// SAFETY: never: no type implements `GuardsChangeThreads`. (Without `for` that is an error here.)
#[doc(hidden)]
unsafe impl Send for Guard where for<'never> Global: GuardsChangeThreads {}
// SAFETY: as above.
#[doc(hidden)]
unsafe impl Sync for Guard where for<'never> Global: GuardsChangeThreads {}

/// The bits of a pointer to a registration that are not the address's: what a guard's thread has to
/// do, once it is not pinned any more.
const DUE: usize = SHARE | EVERYTHING;
/// It has deferred something, and [a share](due::tend_if_share) of what waits is to be run. A guard
/// that ends in an outer section runs nothing; later the guard is marked under which the thread
/// next looks, which it does at the end of a round of additions.
const SHARE: usize = 1;
/// It has flushed.
const EVERYTHING: usize = 2;
const _: () = assert!(align_of::<Local>() > DUE);

impl Guard {
    /// The guard of a section that has begun.
    ///
    /// # Safety
    /// The thread is in a section of the slot, for this guard. `local` is a registration of it that
    /// counts the guard; or null, in the global domain.
    #[inline(always)]
    pub(super) unsafe fn new(slot: &Slot, local: *const Local) -> Self {
        Self { slot, local: Cell::new(local) }
    }

    /// Calls `f` once no guard that exists now is left, on any thread.
    ///
    /// A closure of at most four words is stored inline; one that is larger, or has an alignment
    /// above a word's, is allocated.
    ///
    /// # Progress
    /// Never waits. If it exceeds the domain's limit, the thread waits when its outermost guard is
    /// dropped.
    ///
    /// # Panics
    /// Never. A panic in `f` is caught and counted
    /// ([`Statistics::callbacks_panicked`](crate::report::Statistics::callbacks_panicked)).
    ///
    /// ```
    /// let guard = quiescence::epoch::pin();
    /// let page = vec![0_u8; 4096];
    /// guard.defer(move || drop(page));
    /// ```
    pub fn defer<F, R>(&self, f: F)
    where
        F: FnOnce() -> R + Send + 'static,
    {
        // SAFETY: Send, and without borrows.
        unsafe { self.defer_unchecked(f) };
    }

    /// Like [`defer`](Self::defer), for closures that the compiler cannot prove callable later by
    /// another thread.
    ///
    /// # Safety
    /// Any thread may call `f`, after this call has returned, and as late as the end of the
    /// process.
    #[inline(always)]
    pub unsafe fn defer_unchecked<F, R>(&self, f: F)
    where
        F: FnOnce() -> R,
    {
        if self.slot.is_null() {
            return user_code::run(Site::OnTheSpot, || drop(f()));
        }
        // SAFETY: by the contract.
        unsafe { self.retire(Function::new(f), Function::<F, R>::AMOUNT) };
    }

    /// Drops the object that the pointer points to, and frees its memory, once no guard that exists
    /// now is left. Counts with the bytes of that memory.
    ///
    /// # Safety
    /// The pointer is not null, any thread may drop the object, no thread that pins itself from now
    /// on can reach it, and it is deferred once.
    pub unsafe fn defer_destroy<T: ?Sized + Pointable>(&self, ptr: Shared<'_, T>) {
        if self.slot.is_null() {
            // SAFETY: by the contract of `unprotected`.
            return user_code::run(Site::OnTheSpot, || drop(unsafe { ptr.into_owned() }));
        }
        let object = Object::<T>::at(ptr.address());
        // SAFETY: valid under this guard, by the contract.
        let amount = unsafe { object.amount() };
        // SAFETY: by the contract, no other pointer to it is used when it runs.
        unsafe { self.retire(object, amount) };
    }

    /// Among the objects, over the limit where there is no room: in a section nothing waits.
    ///
    /// # Safety
    /// To run the callback once, on any thread, after a grace period from now on, is sound.
    unsafe fn retire<C: Callback>(&self, callback: C, amount: Amount) {
        let is_due = if !self.local.get().is_null()
            && let Some(domain) = self.collector_or_default().own_domain()
        {
            // SAFETY: by the contract.
            unsafe { retire(domain.tag(), callback, amount) }
        } else {
            // SAFETY: as above.
            unsafe { retire(&Global, callback, amount) }
        };
        if is_due {
            self.note_due(SHARE);
        }
    }

    /// Makes the functions that the thread has deferred run soon. If no other thread is registered
    /// with the collector, everything deferred in it runs when this guard is dropped, provided that
    /// this unpins the thread. Otherwise the grace period begins now if 64 objects and functions of
    /// the thread wait for one, or it has flushed the collector 64 times since it deferred them,
    /// and in any case within the tick ([`Tuning::lazy`](crate::tuning::Tuning::lazy)).
    ///
    /// # Cost
    /// Takes a few locks for a moment.
    pub fn flush(&self) {
        if let Some(core) = self.core() {
            due::close_own(core);
            self.note_due(EVERYTHING);
        }
    }

    /// Unpins the thread and pins it again, if this is its only guard in the domain; otherwise does
    /// nothing. For threads that stay pinned for long. References loaded under the guard end here:
    /// the exclusive borrow ensures that.
    #[track_caller]
    pub fn repin(&mut self) {
        let is_only = self.local().is_none_or(|local| local.guards.get() == 1);
        if is_only && self.slot().is_some_and(Slot::is_outermost) {
            self.repin_after(|| {});
        }
    }

    /// Unpins the thread while `f` runs, as far as this guard is concerned, and pins it again, even
    /// if `f` panics. References loaded under the guard end here: the exclusive borrow ensures
    /// that. Aborts the process if the thread cannot be pinned: where `f` leaves sections that are
    /// nested 2^32 deep.
    ///
    /// ```
    /// let mut guard = quiescence::epoch::pin();
    /// let sum = guard.repin_after(|| {
    ///     assert!(!quiescence::epoch::is_pinned());
    ///     1 + 2
    /// });
    /// assert_eq!((sum, quiescence::epoch::is_pinned()), (3, true));
    /// ```
    #[track_caller]
    pub fn repin_after<F, R>(&mut self, f: F) -> R
    where
        F: FnOnce() -> R,
    {
        struct PinsAnew<'g>(&'g mut Guard, &'static Location<'static>);
        impl Drop for PinsAnew<'_> {
            fn drop(&mut self) {
                self.0.pin_anew(self.1);
            }
        }
        if self.slot.is_null() {
            return user_code::run(Site::Scope, f);
        }
        let anew = PinsAnew(self, Location::caller());
        anew.0.unpin();
        user_code::run(Site::Scope, f)
    }

    /// The collector; `None` for the guard of [`unprotected`].
    pub fn collector(&self) -> Option<&Collector> {
        (!self.slot.is_null()).then(|| self.collector_or_default())
    }

    fn collector_or_default(&self) -> &Collector {
        self.local().map_or(default_collector(), |local| &local.collector)
    }

    /// The registration that made it; none for the default collector's guards.
    #[inline(always)]
    fn local(&self) -> Option<&Local> {
        if self.local.get().is_null() {
            return None;
        }
        // SAFETY: null, or counted, since the guard lives.
        unsafe { self.registration().as_ref() }
    }

    #[inline]
    fn registration(&self) -> *const Local {
        self.local.get().map_addr(|address| address & !DUE)
    }

    /// The domain; none for the guard of [`unprotected`].
    fn core(&self) -> Option<&DomainState> {
        let own = self.collector()?.own_domain();
        Some(own.map_or_else(|| Named::core(&Global), |domain| domain.core()))
    }

    fn note_due(&self, what: usize) {
        self.local.set(self.local.get().map_addr(|address| address | what));
    }

    /// The slot; none for the guard of [`unprotected`].
    #[inline(always)]
    fn slot(&self) -> Option<&Slot> {
        // SAFETY: null, or registered while the section lasts.
        unsafe { self.slot.as_ref() }
    }

    /// A guard of these ends, and something is due before it does. It is not given as a whole: it
    /// would have to be in memory.
    #[cold]
    fn end_late(slot: *const Slot, local: *const Local) {
        let guard = ManuallyDrop::new(Self { slot, local: Cell::new(local) });
        guard.unpin();
        let local = guard.registration();
        if !local.is_null() {
            // SAFETY: the guard's registration, which kept it, and which it does not use any more.
            unsafe { Local::release(local) };
        }
    }

    /// Pins the thread again, as far as this guard is concerned, after [`unpin`](Self::unpin). By
    /// its ABI it does not unwind: the guard would live on and pin nothing.
    #[allow(improper_ctypes_definitions)] // no C calls it
    extern "C" fn pin_anew(&mut self, location: &'static Location<'static>) {
        let slot: *const Slot = match self.local() {
            None => guard::enter_global(location),
            Some(local) => local.pin_kept(location),
        };
        self.slot = slot;
    }

    /// Unpins the thread, as far as this guard is concerned: keeps the registration, if there is
    /// one, and does what is due.
    fn unpin(&self) {
        let is_last = self.local().is_none_or(Local::keep);
        if let Some(slot) = self.slot().filter(|_| is_last) {
            slot.leave();
        }
        let marks = self.local.get().addr() & DUE;
        self.local.set(self.registration());
        if marks != 0
            && let Some(core) = self.core()
        {
            due::catch_up_after_section(core, marks & EVERYTHING != 0);
        }
    }
}

/// As [`Guard::retire`]. Returns whether so many wait by now that a share of them is to be run.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn retire<K: Named, C: Callback>(tag: &K, callback: C, amount: Amount) -> bool {
    // SAFETY: by the contract.
    let pending = unsafe { Pending::new(tag.core(), callback) };
    let queue = local::queue(tag.core(), tag, Contents::Objects);
    match defer::queue_only(tag, queue, pending, amount, Patience::InAnyCase) {
        Ok(None) => false,
        Ok(Some(queue)) => due::tend_if_share(tag, queue),
        Err(_) => unreachable!("a guard's thread is in a section: nothing waits"),
    }
}

impl Drop for Guard {
    #[inline(always)]
    fn drop(&mut self) {
        let slot = self.slot;
        if slot.is_null() {
            return;
        }
        let local = self.local.get();
        if local.addr() & DUE != 0 {
            return Self::end_late(slot, local);
        }
        // SAFETY: this guard's registration, if it has one, which it does not use any more; and its
        // slot.
        unsafe { Local::unpin(local, slot) };
    }
}

shown_in_part!([] Guard);

/// Returns a guard that pins no thread: functions deferred through it run at once. For structures
/// that no other thread can reach, for example in their `drop`.
///
/// # Safety
/// No other thread defers or drops what is loaded under it meanwhile, and no other thread uses what
/// is deferred through it.
///
/// ```
/// use quiescence::epoch::{self, Atomic};
/// use std::sync::atomic::Ordering::Relaxed;
///
/// let last = Atomic::new(7);
/// // SAFETY: no other thread knows of it.
/// let guard = unsafe { epoch::unprotected() };
/// let node = last.load(Relaxed, guard);
/// // SAFETY: as above, and it is not used any more.
/// unsafe { guard.defer_destroy(node) };
/// ```
#[inline]
pub unsafe fn unprotected() -> &'static Guard {
    struct Unprotected(Guard);
    // SAFETY: without a slot it touches nothing of its own: each method looks at that first.
    unsafe impl Sync for Unprotected {}
    static UNPROTECTED: Unprotected =
        Unprotected(Guard { slot: ptr::null(), local: Cell::new(ptr::null()) });
    &UNPROTECTED.0
}
