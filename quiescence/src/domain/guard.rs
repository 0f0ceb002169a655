//! Read-side critical sections of ordinary readers: [`Guard`] and the explicit handle [`Reader`].

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::ptr;

use crate::domain::domain::Domain;
use crate::domain::kind::{AnyKind, GLOBAL, Global, Kind};
use crate::gp::slot::{NOT_READY, Slot};
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::local;

/// Proof that a read-side critical section of the domain `K` is in progress.
///
/// # Safety
/// While the value lives, no grace period of `core` that begins may end.
#[diagnostic::on_unimplemented(
    message = "this is no section of the domain `{K}`",
    label = "a guard of another domain, or none at all",
    note = "the value is protected by sections of `{K}`: read in that domain: with `quiescence::read()` if it is `Global`, `Srcu::read` if it is `Sleepable`, else `Domain::of({K}).read()`"
)]
pub unsafe trait Section<K: AnyKind> {
    /// The domain that the section belongs to.
    #[doc(hidden)]
    fn core(&self) -> *const DomainState;
}

/// A read-side critical section; it ends when the guard is dropped.
///
/// What [`Rcu::load`](crate::Rcu::load) hands out under it stays valid as long as the guard lives.
/// Guards nest, in any order of dropping. To drop one is wait-free, but for a thread that has retired an object over the
/// domain's limit in the section ([`Domain::retire`]): the drop of its outermost guard waits for a grace period then, and
/// drops objects that the thread has retired. A guard belongs to its thread. A guard that is leaked
/// with [`std::mem::forget`] is a section that never ends: sound, but every later grace period of
/// the domain waits for ever.
#[must_use = "the section ends when the guard is dropped"]
pub struct Guard<'d, K: AnyKind = Global> {
    slot: &'d Slot,
    // Not Send, not Sync: the slot is the thread's.
    kind: PhantomData<(&'d K, *mut ())>,
}

// SAFETY: the slot's nesting is not zero until the guard is dropped, so every scan that comes after
// the section's begin counts it [M-2].
unsafe impl<K: AnyKind> Section<K> for Guard<'_, K> {
    #[inline(always)]
    fn core(&self) -> *const DomainState {
        DomainState::of(self.slot.core_ptr())
    }
}

/// Begins a read-side critical section of the global domain.
///
/// # Promise
/// What is retired or waited for after this call is not freed before the guard is dropped.
///
/// # Progress and cost
/// Wait-free. To begin and to end a section takes three stores to the thread's own cache line, a few
/// loads from it, and one load of a word that changes once in a grace period; no atomic
/// read-modify-write, and no fence instruction where the kernel has `membarrier(2)`; a full fence
/// each way elsewhere. The section that a sleeping updater waits for last wakes it, by a system
/// call. A thread that retires in its sections may wait where the outermost one ends: see [`Guard`]. The first call of a thread registers it, which takes a lock and may allocate.
///
/// # Panics
/// If sections are nested 2^32 deep.
///
/// # Source
/// The reader of liburcu's memb flavour (Desnoyers, McKenney, Stern, Dagenais, Walpole, IEEE TPDS
/// 2012), with a full counter in place of the phase bit.
///
/// ```
/// use quiescence::Rcu;
///
/// let greeting = Rcu::new(String::from("hello"));
/// let guard = quiescence::read();
/// assert_eq!(greeting.load(&guard), "hello");
/// ```
#[inline]
#[track_caller]
pub fn read() -> Guard<'static> {
    read_at(Location::caller())
}

#[inline(always)]
fn read_at<K: AnyKind>(place: &'static Location<'static>) -> Guard<'static, K> {
    // SAFETY: points to NOT_READY or to a slot of the global domain, which is never freed.
    let slot: &'static Slot = unsafe { &*local::FAST.get() };
    enter(slot, &GLOBAL, place, || {
        let slot = local::implicit_slot(&GLOBAL, || Global.handle());
        local::make_fast(slot);
        slot
    })
}

/// Begins a section with `slot` if its fast path may be used, else with what `ready` gives.
#[inline(always)]
fn enter<'d, K: AnyKind>(
    slot: &'d Slot,
    core: &'d DomainState,
    place: &'static Location<'static>,
    ready: impl FnOnce() -> &'d Slot,
) -> Guard<'d, K> {
    if slot.is_quiescent() {
        slot.enter_outermost(&core.gp.0, place);
        return Guard { slot, kind: PhantomData };
    }
    enter_slow(slot, core, place, ready)
}

/// Nested, or not registered, or no membarrier.
#[cold]
#[inline(never)]
fn enter_slow<'d, K: AnyKind>(
    slot: &'d Slot,
    core: &'d DomainState,
    place: &'static Location<'static>,
    ready: impl FnOnce() -> &'d Slot,
) -> Guard<'d, K> {
    let slot = if ptr::eq(slot, &raw const NOT_READY) { ready() } else { slot };
    slot.enter_slow(&core.gp.0, place);
    Guard { slot, kind: PhantomData }
}

impl<'d, K: AnyKind> Guard<'d, K> {
    /// A section of the calling thread, by way of its table.
    #[inline]
    pub(crate) fn begin(kind: &'d K, place: &'static Location<'static>) -> Self {
        let core = kind.core();
        if ptr::eq(core, &raw const GLOBAL) {
            return read_at(place);
        }
        enter(&NOT_READY, core, place, || local::implicit_slot(core, || kind.handle()))
    }
}

impl<K: AnyKind> Drop for Guard<'_, K> {
    #[inline]
    fn drop(&mut self) {
        self.slot.leave();
    }
}

impl<K: AnyKind> fmt::Debug for Guard<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("began", &self.slot.began()).finish_non_exhaustive()
    }
}

/// A thread's registration in a domain, held in a value: [`read`](Self::read) on it skips the look
/// at thread-local storage.
///
/// All handles of a thread in a domain, and its implicit sections there, share one word, so their
/// sections nest in each other.
///
/// ```
/// let reader = quiescence::reader();
/// let greeting = quiescence::Rcu::new("hello");
/// for _ in 0..3 {
///     let guard = reader.read();
///     assert_eq!(*greeting.load(&guard), "hello");
/// }
/// ```
pub struct Reader<K: Kind = Global> {
    domain: Domain<K>,
    /// `slot`, or `NOT_READY` where the fast path may not be used.
    fast: *const Slot,
    slot: *const Slot,
}

impl<K: Kind> Reader<K> {
    pub(crate) fn new(domain: Domain<K>) -> Self {
        let kind = domain.kind();
        let slot = local::handle_slot(kind.core(), || kind.handle());
        let fast = if slot.is_fast() { slot } else { &NOT_READY };
        Self { fast, slot, domain }
    }

    /// Begins a read-side critical section. As [`crate::read`], without the check whether the
    /// thread is registered.
    ///
    /// # Panics
    /// If sections are nested 2^32 deep.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> Guard<'_, K> {
        // SAFETY: NOT_READY, or a slot of the domain that `self.domain` keeps alive.
        let fast = unsafe { &*self.fast };
        enter(fast, self.domain.kind().core(), Location::caller(), || self.slot())
    }

    /// The domain.
    pub fn domain(&self) -> &Domain<K> {
        &self.domain
    }

    /// As if so many more handles of this thread had been made and leaked: tests come to the ends of counts so.
    ///
    /// # Panics
    /// If the thread has 2^64 handles then.
    #[doc(hidden)]
    pub fn leak_more(&self, handles: u64) {
        self.slot().acquire(handles);
    }

    fn slot(&self) -> &Slot {
        // SAFETY: registered in `new`, unregistered by `drop`; `self.domain` keeps the memory.
        unsafe { &*self.slot }
    }
}

impl<K: Kind> Drop for Reader<K> {
    fn drop(&mut self) {
        let kind = self.domain.kind();
        local::release_handle(kind.core(), || kind.handle(), self.slot());
    }
}

impl<K: Kind> fmt::Debug for Reader<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let in_section = !self.slot().is_quiescent();
        f.debug_struct("Reader").field("in_section", &in_section).finish_non_exhaustive()
    }
}
