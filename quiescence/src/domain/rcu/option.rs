//! The operations of an [`RcuOption`], on which [`Rcu`](super::Rcu) is built: load, replace,
//! compare and exchange.

use std::panic::Location;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

#[cfg(doc)]
use super::Rcu;
use super::{RcuOption, Unlinked, changes, into_raw};
use crate::domain::domain::Domain;
use crate::domain::sections;
use crate::domain::tag::{DomainTag, Section};
use crate::reclaim::debug_objects;
use crate::reclaim::free::{AtLimit, Pending};
use crate::reclaim::unlink::{self, Reservation};
use crate::reclaim::weigh::{Scale, Weigh};

/// The old value, or the new one given back.
type Exchanged<T, K> = Result<Option<Unlinked<T, K>>, Option<Box<T>>>;

impl<T: Send + Sync + 'static> RcuOption<T> {
    /// Creates an empty cell in the global domain; may be a static.
    ///
    /// ```
    /// static CONFIG: quiescence::RcuOption<String> = quiescence::RcuOption::empty();
    /// CONFIG.store(Some("ready".into()));
    /// assert_eq!(*CONFIG.read().unwrap(), "ready");
    /// ```
    pub const fn empty() -> Self
    where
        T: Weigh,
    {
        Self::empty_in(Domain::global())
    }

    /// Creates a cell with `value` in the global domain.
    pub fn new(value: T) -> Self
    where
        T: Weigh,
    {
        Self::new_in(Some(value), Domain::global())
    }
}

impl<T: Send + Sync + 'static, K: DomainTag> RcuOption<T, K> {
    /// Creates a cell with `value`, or an empty one, in `domain`.
    pub fn new_in(value: Option<T>, domain: Domain<K>) -> Self
    where
        T: Weigh,
    {
        Self { pointer: AtomicPtr::new(into_raw(value)), scale: Scale::new(), domain }
    }

    /// The same, for a type that does not implement [`Weigh`]. See [`Rcu::with_weight`].
    pub fn with_weight_in(value: Option<T>, weight: fn(&T) -> usize, domain: Domain<K>) -> Self {
        Self { pointer: AtomicPtr::new(into_raw(value)), scale: Scale::by(weight), domain }
    }

    /// Creates an empty cell in `domain`; may be a static, if the domain is a declared one.
    ///
    /// ```
    /// use quiescence::{Domain, RcuOption};
    ///
    /// quiescence::domain! { struct Zones; }
    /// static SERIAL: RcuOption<u32, Zones> = RcuOption::empty_in(Domain::of(Zones));
    /// SERIAL.store(Some(7));
    /// assert_eq!(*SERIAL.read().unwrap(), 7);
    /// ```
    pub const fn empty_in(domain: Domain<K>) -> Self
    where
        T: Weigh,
    {
        Self { pointer: AtomicPtr::new(ptr::null_mut()), scale: Scale::new(), domain }
    }

    /// Returns the current value, if there is one. See [`Rcu::load`].
    ///
    /// # Panics
    /// As [`Rcu::load`].
    #[inline]
    #[track_caller]
    pub fn load<'s, S: Section<K>>(&'s self, section: &'s S) -> Option<&'s T> {
        // SAFETY: loaded under the section; null is none.
        unsafe { self.load_pointer(section).as_ref() }
    }

    /// Replaces the value; the old one is dropped after a grace period. See [`Rcu::store`].
    ///
    /// # Panics
    /// As [`Rcu::store`].
    #[inline]
    #[track_caller]
    pub fn store(&self, value: Option<T>) {
        if let Err(value) = self.store_or_refuse(value) {
            self.store_without_room(value);
        }
    }

    /// The domain has no room for the value that would be replaced, and it must not be waited for.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn store_without_room(&self, value: Option<T>) {
        if !self.is_sleepable() {
            sections::refuse("store", "try_store()");
        }
        drop(self.swap(value)); // waits, and goes over the limit, as `retire` there
    }

    /// Like [`store`](Self::store), but returns the value where `store` would panic. See
    /// [`Rcu::try_store`].
    ///
    /// # Errors
    /// `value`: in a section at the domain's limit, if this thread has gone over it already; in a
    /// sleepable domain whenever it is at its limit.
    #[track_caller]
    pub fn try_store(&self, value: Option<T>) -> Result<(), AtLimit<Option<T>>> {
        self.store_or_refuse(value).map_err(AtLimit::unchanged)
    }

    /// Replaces the value, or gives `value` back where [`try_store`](Self::try_store) does.
    #[inline]
    #[track_caller]
    pub(super) fn store_or_refuse(&self, value: Option<T>) -> Result<(), Option<T>> {
        let tag = self.domain.tag();
        // Usually the thread's stock has room for a value by its size. The place is not looked at
        // before the exchange, not even its scale: where readers on other CPUs have its cache line,
        // a load and an exchange cost more than an exchange. (The handle of a domain that was made
        // at run time stands there, too, and is loaded.)
        let by_size = if self.is_sleepable() { None } else { unlink::reserve_by_size::<K, T>(tag) };
        let Some(room) = by_size else { return self.store_slowly(value) };
        let old = self.exchange(into_raw(value));
        if self.scale.by_size() {
            changes::tell(self.place());
            // SAFETY: it came from a box or is null, and is out of reach now.
            let old = unsafe { Pending::boxed(tag.core(), old) };
            room.retire_as_reserved(tag, old);
        } else {
            // Given back: what the value weighs may be waited for.
            room.put_back(tag.core());
            // SAFETY: as above.
            unsafe { self.retire_old(old, None) };
        }
        Ok(())
    }

    /// The same where the thread's stock has no room for a value by its size; and in sleepable
    /// domains.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn store_slowly(&self, value: Option<T>) -> Result<(), Option<T>> {
        let tag = self.domain.tag();
        //~ retire-before-unlink
        if self.is_sleepable() {
            // Whether this is a section is not known, so nothing is waited for.
            return self.store_if_room(value);
        }
        if !unlink::may_replace(tag, self.scale.constant::<T>()) {
            return Err(value);
        }
        // SAFETY: what was in the place, and is out of reach now.
        unsafe { self.retire_old(self.exchange(into_raw(value)), None) };
        Ok(())
    }

    /// Whether the readers are counted, not registered. Those of a domain that a type names are
    /// registered threads.
    #[inline(always)]
    fn is_sleepable(&self) -> bool {
        !K::STATIC && self.domain.core().grace_periods.is_sleepable()
    }

    /// What the value that is in the place now would be charged; an estimate, for it may be
    /// replaced.
    #[cold]
    #[track_caller]
    pub(super) fn charge_now(&self) -> usize {
        let tag = self.domain.tag();
        let section = tag.enter(Location::caller());
        self.load(&section).map_or(0, |value| self.scale.charge::<T>(tag.core(), value))
    }

    /// Tells those who wait for changes, and retires what was in the place, with the room that was
    /// reserved for it.
    ///
    /// # Safety
    /// `old` is null, or was in this place, out of which the caller has taken it.
    #[inline(never)]
    #[track_caller]
    pub(super) unsafe fn retire_old(&self, old: *mut T, room: Option<Reservation<'_>>) {
        changes::tell(self.place());
        let tag = self.domain.tag();
        // SAFETY: it came from a box or is null; others may read it, and T is Sync.
        let bytes = match unsafe { old.as_ref() } {
            Some(value) => self.scale.charge::<T>(tag.core(), value),
            None => 0,
        };
        // SAFETY: as above; it is out of reach, by the contract.
        let old = unsafe { Pending::boxed(tag.core(), old) };
        match room {
            Some(room) => room.retire(tag, old, bytes),
            None => unlink::retire_box(tag, old, bytes),
        }
    }

    /// Replaces the value and returns the old one, which may still be read.
    pub fn swap(&self, value: Option<T>) -> Option<Unlinked<T, K>> {
        let new = into_raw(value);
        //~ retire-before-unlink
        // SAFETY: it was in the place, so it came from a box, and now it is ours alone to retire.
        let old = unsafe { Unlinked::new(self.exchange(new), self.scale, &self.domain) };
        changes::tell(self.place());
        old
    }

    /// Empties the cell and returns the value, which may still be read.
    pub fn take(&self) -> Option<Unlinked<T, K>> {
        self.swap(None)
    }

    /// Replaces the value if it is still `current`, the very same object (or none); otherwise
    /// returns `new`.
    ///
    /// `current` should come from [`load`](Self::load) in `section`, which keeps its address from
    /// being reused, so there is no ABA problem.
    ///
    /// # Errors
    /// `new`, if the value has been replaced by another one.
    ///
    /// # Panics
    /// If the section belongs to another domain, as in [`Rcu::load`].
    ///
    /// ```
    /// use quiescence::RcuOption;
    ///
    /// let first_wins = RcuOption::empty();
    /// let guard = quiescence::read();
    /// for candidate in ["a", "b"] {
    ///     let _ = first_wins.compare_exchange(&guard, None, Some(Box::new(candidate)));
    /// }
    /// assert_eq!(first_wins.load(&guard), Some(&"a"));
    /// ```
    #[track_caller]
    pub fn compare_exchange<S: Section<K>>(
        &self,
        section: &S,
        current: Option<&T>,
        new: Option<Box<T>>,
    ) -> Result<Option<Unlinked<T, K>>, Option<Box<T>>> {
        sections::check(section, &self.domain, "value");
        let current = current.map_or(ptr::null(), ptr::from_ref);
        self.exchange_if(current, new).inspect(|_| changes::tell(self.place()))
    }

    /// The same, but that those who wait for changes are not told yet.
    pub(super) fn exchange_if(&self, current: *const T, new: Option<Box<T>>) -> Exchanged<T, K> {
        let new = new.map_or(ptr::null_mut(), Box::into_raw);
        // AcqRel: the Release pairs with the Acquire in `load_pointer` [GP-10]; the Acquire lets
        // the owner of the old value see how it was made.
        match self.pointer.compare_exchange(current.cast_mut(), new, AcqRel, Acquire) {
            // SAFETY: it was in the place, so it came from a box, and now it is ours alone to
            // retire.
            Ok(old) => Ok(unsafe { Unlinked::new(old, self.scale, &self.domain) }),
            // SAFETY: made by `into_raw` above and not published; or null.
            Err(_) => Err((!new.is_null()).then(|| unsafe { Box::from_raw(new) })),
        }
    }

    /// Borrows the value. The cell is borrowed exclusively, so no other thread can read it.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        // SAFETY: from a box, or null; references that were loaded from here borrow `self`.
        unsafe { self.pointer.get_mut().as_mut() }
    }

    /// Takes the value out. Waits for nothing: no other thread can read it.
    pub fn into_inner(mut self) -> Option<T> {
        let pointer = std::mem::replace(self.pointer.get_mut(), ptr::null_mut());
        // SAFETY: as in `get_mut`; `drop` finds the place empty.
        (!pointer.is_null()).then(|| *unsafe { Box::from_raw(pointer) })
    }

    /// The domain whose sections protect the value.
    pub fn domain(&self) -> &Domain<K> {
        &self.domain
    }

    #[inline]
    #[track_caller]
    pub(super) fn load_pointer<S: Section<K>>(&self, section: &S) -> *const T {
        sections::check(section, &self.domain, "value");
        // Acquire: pairs with the Release in `exchange` and `exchange_if` [GP-10]; the value
        // was made before it was published. The section's begin comes before this load [GP-1].
        let pointer = self.pointer.load(Acquire);
        debug_objects::check_reachable(pointer.cast_const().cast(), || {
            ptr::eq(self.pointer.load(Acquire), pointer)
        });
        pointer
    }

    /// Puts another pointer in the place; no thread finds the old one from now on. The caller
    /// [tells](changes::tell) those who wait for changes.
    #[inline]
    pub(super) fn exchange(&self, new: *mut T) -> *mut T {
        // AcqRel: as in `exchange_if` [GP-10].
        let old = self.pointer.swap(new, AcqRel);
        //~ point unlinked
        old
    }
}
