//! A reader's explicit handle: [`Reader`].

use std::marker::PhantomData;
use std::panic::Location;

use crate::domain::domain::Domain;
use crate::domain::guard::{Global, Guard, StaysOnItsThreadUnlikeSrcu, ThreadTag, enter};
use crate::domain::impls::shown_in_part;
use crate::gp::slot::{NOT_READY, ReaderKind, Slot};
use crate::reclaim::local;

impl<K: ThreadTag> Domain<K> {
    /// Registers the calling thread, and returns an explicit handle. Takes a lock.
    pub fn reader(&self) -> Reader<K> {
        let slot = local::handle_slot(self.tag().core(), self.tag(), ReaderKind::Ordinary);
        let slots: [*const Slot; 2] = [if slot.is_fast() { slot } else { NOT_READY }, slot];
        Reader { slots: StaysOnItsThreadUnlikeSrcu(slots, PhantomData), domain: self.clone() }
    }
}

/// A thread's registration in a domain, as a value: its [`read`](Self::read) does not access
/// thread-local storage.
///
/// For threads that alternate between domains. [`Domain::read`] finds the domain in which the
/// thread read last at once, and any other one in a table. Alternating between two domains costs
/// 30 ns per section that way, and 1.4 ns through `Reader`s. In the global domain
/// [`read`](crate::read) costs as much as a `Reader`, 1.2 ns; in a single domain of the program's
/// own it costs 1.9 ns, a `Reader` 1.4 ns.
///
/// All handles of a thread in a domain, and its implicit sections there, share one word, so their
/// sections nest.
///
/// ```
/// let reader = quiescence::Domain::global().reader();
/// let greeting = quiescence::Rcu::new("hello");
/// for _ in 0..3 {
///     let guard = reader.read();
///     assert_eq!(*greeting.load(&guard), "hello");
/// }
/// ```
pub struct Reader<K: ThreadTag = Global> {
    domain: Domain<K>,
    /// The slot, or `NOT_READY` if its fast path may not be used; and again the slot.
    slots: StaysOnItsThreadUnlikeSrcu<K, [*const Slot; 2]>,
}

impl<K: ThreadTag> Reader<K> {
    /// Begins a read-side critical section. Like [`crate::read`], without checking whether the
    /// thread is registered.
    ///
    /// # Panics
    /// If sections are nested 2^32 deep.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> Guard<'_, K> {
        Guard::on(self.enter(Location::caller()))
    }

    /// Begins a section, which ends when the slot is left.
    #[inline]
    pub(super) fn enter(&self, location: &'static Location<'static>) -> &Slot {
        // SAFETY: NOT_READY, or a slot of the domain that `self.domain` keeps alive.
        let fast = unsafe { &*self.slots.0[0] };
        enter(fast, self.domain.tag().core(), location, || self.slot())
    }

    /// Counts `handles` more handles of this thread, as if they had been made and leaked. For tests
    /// of the largest count.
    ///
    /// # Panics
    /// If the thread then has 2^64 handles or more.
    #[doc(hidden)]
    pub fn leak_more(&self, handles: u64) {
        self.slot().acquire(handles);
    }

    pub(super) fn slot(&self) -> &Slot {
        // SAFETY: registered by `Domain::reader`, unregistered by `drop`; `self.domain` keeps the
        // memory.
        unsafe { &*self.slots.0[1] }
    }
}

impl<K: ThreadTag> Drop for Reader<K> {
    fn drop(&mut self) {
        // SAFETY: it has been given for this handle, which stays on its thread and is dropped.
        unsafe { local::release_handle(self.slot()) };
    }
}

shown_in_part!([K: ThreadTag] Reader<K> { in_section: |reader| !reader.slot().is_quiescent() });
