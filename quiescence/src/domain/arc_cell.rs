//! Cells for counted pointers: [`ArcCell`], [`ArcCellOption`], [`ArcCellWeak`]. A load does not
//! touch the count, and a value may be replaced at any time.
//!
//! A load writes the pointer into a hazard slot of the calling thread (`hazptr`), which the guard
//! holds. It writes nothing that other threads write. An updater exchanges the pointer and retires
//! the reference that the cell had (`reclaim::hazards`): it is dropped once a grace period of
//! hazard pointers has ended and no slot names the object.
//!
//! **Invariant [AC-1]: a guard protected by a slot borrows a reference that a cell holds, or one
//! that is retired.** When the slot was validated, the cell held a reference to the object with
//! that address; each reference that a cell releases waits until no slot has the address, or
//! leaves that to another one that waits ([`kept`](crate::reclaim::kept)). (An object may be in
//! several cells, and may return to one; each time with a reference of its own.)

mod access;
mod cache;
mod guard;
mod pointer;
#[cfg(feature = "serde")]
mod serde;

pub use access::{Access, Constant, ConstantGuard, DynAccess, DynGuard, Map, MapGuard};
pub use cache::{Cache, MapCache};
pub use guard::ArcGuard;
pub use pointer::{AsRaw, RefCnt};

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::{Arc, Weak};

use crate::domain::impls::made_of_value;
use crate::hazptr::{self, Protected};
use crate::os::on_drop::OnDrop;
use crate::os::sync::{AtomicPtr, const_unless_loom};
use crate::os::user_code::{self, Site};
use crate::reclaim::free::{Address, Pointee};
use crate::reclaim::hazards::{self, GlobalHazards, HAZARDS};
use crate::reclaim::weigh::{Scale, Weigh};

/// A cell with an [`Arc`] that many threads load and some replace. A load takes about a nanosecond,
/// and writes to no memory that other threads read.
///
/// All its methods are those of [`ArcCellAny`]; `ArcCell` is its usual form.
///
/// # Which cell
/// | | reads | updates |
/// |---|---|---|
/// | `ArcCell` | load one value at a time, with a guard that may be kept, sent and held across `.await` | store `Arc`s, which may be shared |
/// | [`Rcu`](crate::Rcu) | load in a section, which protects everything read in it | store values |
/// | [`Snapshot`](crate::cell::Snapshot) | copy a few words | copy a few words |
///
/// ```
/// use quiescence::ArcCell;
/// use std::sync::Arc;
///
/// let config = ArcCell::from_pointee(String::from("debug"));
/// let before = config.load();
/// config.store(Arc::new(String::from("info")));
/// assert_eq!(*before, "debug"); // as long as the guard lives
/// assert_eq!(*config.load(), "info");
///
/// // A guard goes to other threads.
/// std::thread::spawn(move || assert_eq!(before.len(), 5)).join().unwrap();
/// ```
#[doc(alias("ArcSwap", "arc-swap"))]
pub type ArcCell<T> = ArcCellAny<Arc<T>>;

/// An [`ArcCell`] that may be empty. [`empty`](ArcCellOption::empty) is for statics.
///
/// ```
/// use quiescence::cell::ArcCellOption;
/// use std::sync::Arc;
///
/// static SESSION: ArcCellOption<String> = ArcCellOption::empty();
/// assert!(SESSION.load().is_none());
/// SESSION.store(Some(Arc::new(String::from("token 17"))));
/// assert_eq!(SESSION.load().as_deref().map(String::as_str), Some("token 17"));
/// SESSION.store(None);
/// ```
pub type ArcCellOption<T> = ArcCellAny<Option<Arc<T>>>;

/// An [`ArcCell`] for a [`Weak`], which keeps no value alive.
///
/// ```
/// use quiescence::cell::ArcCellWeak;
/// use std::sync::Arc;
///
/// let value = Arc::new(7);
/// let last = ArcCellWeak::new(Arc::downgrade(&value));
/// assert_eq!(last.load().upgrade().as_deref(), Some(&7));
/// drop(value);
/// assert!(last.load().upgrade().is_none());
/// ```
pub type ArcCellWeak<T> = ArcCellAny<Weak<T>>;

/// A cell with a counted pointer, which is loaded without touching the count.
///
/// # Progress and cost
/// [`load`](Self::load) is lock-free: it retries if the cell was replaced between its two loads of
/// the pointer. It stores to a cache line of the calling thread's own; without `membarrier(2)`
/// ([`Fences`](crate::tuning::Fences)) it also executes a full fence. A thread's first load may
/// allocate. Updates are lock-free except as described under *Memory*: one exchange, and a write to
/// memory of the calling thread's own.
///
/// # Memory
/// A reference that a cell gives up is kept until no guard has it and a grace period of the [hazard
/// domain](crate::hazard) has ended; that is one `membarrier(2)` for up to 2,048 references.
/// Meanwhile it counts against that domain's limits ([`Tuning`](crate::tuning::Tuning)) with
/// everything the value owns ([`Weigh`]), as if it were the last reference. At the limit an update
/// waits, as [`Domain::retire`](crate::Domain::retire) does; in a section it exceeds the limit. An
/// update may drop values that were replaced earlier; [`Domain::retire`](crate::Domain::retire)
/// says which locks must not be held.
///
/// **So the update that replaces a value does not drop it.** If no guard protects the value, it is
/// dropped within 10 ms (twice the [lazy time](crate::tuning::Tuning::lazy) of that domain, plus
/// the time that the worker takes). If a guard does, it is dropped after the guard is gone, within
/// twice the time for which the guard existed, but 10 ms (a tick) at least and 1 s at most.
/// [`swap`](Self::swap), [`compare_and_swap`](Self::compare_and_swap), [`rcu`](Self::rcu) and
/// [`into_inner`](Self::into_inner) return a reference with a count of its own at once, so
/// [`Arc::try_unwrap`] on it may fail for a while. [`hazard::barrier`](crate::hazard::barrier)
/// waits until that is over.
///
/// # Signal handlers and `fork`
/// A handler may load on a thread that has loaded before and has fewer than eight guards, and must
/// drop its guards before it returns. In a child process, guards of threads that no longer exist
/// protect their values forever.
///
/// # Source
/// The interface is that of `arc-swap` (Michal Vaner). Hazard pointers take the place of its debts:
/// see [`hazard`](crate::hazard).
pub struct ArcCellAny<P: RefCnt> {
    /// From `Counted::into_ptr`. The cell has a reference to what is there.
    pointer: AtomicPtr<P::Base>,
    scale: Scale<P::Base>,
    /// Makes it `Send` and `Sync` exactly where a `P` is.
    owns: PhantomData<P>,
}

/// A reference that a cell gives up.
struct GivenUp<P>(PhantomData<P>);

impl<P: RefCnt> Pointee for GivenUp<P> {
    type Object = P::Base;

    const BYTES: usize = P::BYTES;

    // One object may be in several cells.
    const UNIQUE: bool = false;

    unsafe fn free(object: *mut P::Base) {
        // SAFETY: the reference that the cell had.
        drop(unsafe { P::from_ptr(object) });
    }
}

impl<P: RefCnt> ArcCellAny<P> {
    /// Creates a cell that holds `pointer`.
    pub fn new(pointer: P) -> Self
    where
        P::Base: Weigh,
    {
        Self::of(pointer, Scale::new())
    }

    /// Creates a cell that holds `pointer`, to a value that does not implement [`Weigh`]. `weight`
    /// returns the bytes of a value and of all that it owns; they count against the limit once the
    /// cell gives up its reference. A result below the value's size counts as that size.
    ///
    /// ```
    /// use quiescence::ArcCell;
    /// use std::sync::Arc;
    ///
    /// mod foreign {
    ///     pub struct Image(pub Vec<u8>);
    /// }
    ///
    /// let image = Arc::new(foreign::Image(vec![0; 1 << 20]));
    /// let cell = ArcCell::with_weight(image, |image| image.0.capacity());
    /// assert_eq!(cell.load().0.len(), 1 << 20);
    /// ```
    pub fn with_weight(pointer: P, weight: fn(&P::Base) -> usize) -> Self {
        Self::of(pointer, Scale::by(weight))
    }

    fn of(pointer: P, scale: Scale<P::Base>) -> Self {
        Self { pointer: AtomicPtr::new(P::into_ptr(pointer)), scale, owns: PhantomData }
    }

    /// Returns the current pointer, protected by a hazard slot of the calling thread.
    #[inline]
    pub fn load(&self) -> ArcGuard<P> {
        let Some(Protected { address, slot }) = hazptr::protect(&self.pointer) else {
            return ArcGuard::from_inner(self.load_counted());
        };
        // SAFETY: the cell had a reference to it when the slot was validated, which is not given up
        // while the slot names it [AC-1]; none needs no reference.
        let pointer = ManuallyDrop::new(unsafe { P::from_ptr(address) });
        // A slot of null protects nothing, and is free.
        ArcGuard { pointer, slot: (!address.is_null()).then_some(slot) }
    }

    /// With a count, for a thread whose slots are all in use.
    #[cold]
    #[inline(never)]
    fn load_counted(&self) -> P {
        hazptr::with_slot(&self.pointer, |address| {
            // SAFETY: protected while this is called; not dropped, since the reference is the
            // cell's.
            let pointer = ManuallyDrop::new(unsafe { P::from_ptr(address) });
            user_code::run(Site::Pointer, || P::clone(&pointer))
        })
    }

    /// Returns another reference to the current value. Costs as much as a clone: one locked
    /// instruction on the cache line of the count, which all threads that do this share.
    #[inline]
    pub fn load_full(&self) -> P {
        ArcGuard::into_inner(self.load())
    }

    /// Replaces the pointer by `new`, and gives up the reference to the old value: see
    /// [Memory](Self#memory).
    #[inline]
    #[track_caller]
    pub fn store(&self, new: P) {
        self.give_up(self.exchange(new));
    }

    /// Replaces the pointer by `new`, and returns a reference to the old value, which later loads
    /// do not find.
    #[track_caller]
    pub fn swap(&self, new: P) -> P {
        let old = self.exchange(new);
        // SAFETY: the cell's reference is here, and is given up below, not dropped.
        let pointer = ManuallyDrop::new(unsafe { P::from_ptr(old) });
        let give = || user_code::run(Site::Pointer, || P::clone(&pointer));
        self.give_up_after(old, give)
    }

    /// Replaces the pointer by `new` if it is `current`, and returns the previous pointer. So it
    /// has been replaced if and only if the result is `current`, as `Arc::ptr_eq` compares them.
    ///
    /// Addresses are compared, not values. While the caller holds `current`, no other object can
    /// have that address: a match means that the cell holds `current` itself, perhaps again.
    ///
    /// ```
    /// use quiescence::ArcCell;
    /// use std::sync::Arc;
    ///
    /// let cell = ArcCell::from_pointee(1);
    /// let one = cell.load();
    /// let was = cell.compare_and_swap(&one, Arc::new(2));
    /// assert!(Arc::ptr_eq(&was, quiescence::cell::ArcGuard::as_inner(&one)));
    /// assert_eq!(*cell.compare_and_swap(&one, Arc::new(3)), 2); // not replaced
    /// ```
    #[must_use = "says whether it was replaced"]
    #[track_caller]
    pub fn compare_and_swap<C: AsRaw<P::Base>>(&self, current: C, new: P) -> P {
        let (current, mut new) = (current.as_raw(), new);
        loop {
            let seen = self.load();
            if !ptr::eq(P::as_ptr(ArcGuard::as_inner(&seen)), current) {
                return ArcGuard::into_inner(seen);
            }
            match self.replace(current, new) {
                Ok(old) => {
                    return self.give_up_after(old, || ArcGuard::into_inner(seen));
                }
                Err(again) => new = again,
            }
        }
    }

    /// Replaces the pointer by the result of `f`, called with the current pointer, and returns the
    /// previous one. `f` is called again if another thread has replaced it meanwhile. If `f`
    /// panics, nothing has changed.
    ///
    /// ```
    /// let count = quiescence::ArcCell::from_pointee(1);
    /// count.rcu(|n| **n + 1);
    /// assert_eq!(*count.load(), 2);
    /// ```
    #[track_caller]
    pub fn rcu<R: Into<P>>(&self, mut f: impl FnMut(&P) -> R) -> P {
        loop {
            let seen = self.load();
            let new = user_code::run(Site::Update, || f(ArcGuard::as_inner(&seen)).into());
            let current = P::as_ptr(ArcGuard::as_inner(&seen));
            if let Ok(old) = self.replace(current, new) {
                return self.give_up_after(old, || ArcGuard::into_inner(seen));
            }
        }
    }

    /// Consumes the cell and returns the pointer. Guards may still be using the cell's reference,
    /// so the caller gets another one.
    pub fn into_inner(self) -> P {
        self.load_full()
    }

    /// A part of the value in the cell, as an [`Access`]. For one that does not borrow the cell,
    /// use [`Map::new`].
    ///
    /// ```
    /// use quiescence::ArcCell;
    /// use quiescence::cell::Access;
    ///
    /// let cell = ArcCell::from_pointee((80_u16, true));
    /// let port = cell.map(|config: &(u16, bool)| &config.0);
    /// assert_eq!(*port.load(), 80);
    /// ```
    pub fn map<R: ?Sized, F>(&self, projection: F) -> Map<&Self, P::Target, F>
    where
        F: Fn(&P::Target) -> &R + Clone,
    {
        Map::new(self, projection)
    }

    #[inline(always)]
    fn exchange(&self, new: P) -> *mut P::Base {
        // AcqRel: what is replaced is whole for us, and the new one for the thread that loads it.
        self.pointer.swap(P::into_ptr(new), AcqRel)
    }

    /// Puts `new` there if the address `current` is there, and gives the cell's reference to that
    /// object; else gives `new` again.
    fn replace(&self, current: *mut P::Base, new: P) -> Result<*mut P::Base, P> {
        let new = P::into_ptr(new);
        // AcqRel, Relaxed: as in `exchange`; what is only compared is not looked into. Of `current`
        // only the address counts: it may be a pointer that may not do what the cell's may.
        let replaced = self.pointer.compare_exchange(current, new, AcqRel, Relaxed);
        // SAFETY: from `into_ptr` above, and not the cell's.
        replaced.map_err(|_| unsafe { P::from_ptr(new) })
    }

    /// Gives up the reference that the cell had.
    #[inline]
    #[track_caller]
    fn give_up(&self, old: *mut P::Base) {
        if old.is_null() {
            return;
        }
        if !self.scale.by_size() {
            return self.give_up_weighed(old);
        }
        let bytes = const { Address::<GivenUp<P>>::charge(size_of::<P::Base>()) };
        // SAFETY: no load finds it in this cell any more, and its reference is given up once.
        unsafe { hazards::retire::<_, GivenUp<P>>(&GlobalHazards, old, bytes) };
    }

    /// The same after `give`, which clones the pointer, also where that panics.
    #[track_caller]
    fn give_up_after(&self, old: *mut P::Base, give: impl FnOnce() -> P) -> P {
        let _old = OnDrop(|| self.give_up(old));
        give()
    }

    /// [`give_up`](Self::give_up) of a value that is weighed. Out of line: the charge of the others
    /// is a constant.
    #[inline(never)]
    #[track_caller]
    fn give_up_weighed(&self, old: *mut P::Base) {
        // SAFETY: as in `swap`.
        let pointer = ManuallyDrop::new(unsafe { P::from_ptr(old) });
        let size = size_of::<P::Base>();
        let weight = P::base(&pointer).map_or(size, |value| self.scale.weight(&HAZARDS, value));
        let bytes = Address::<GivenUp<P>>::charge(weight);
        // SAFETY: as in `give_up`.
        unsafe { hazards::retire::<_, GivenUp<P>>(&GlobalHazards, old, bytes) };
    }
}

impl<T: Send + Sync + 'static> ArcCell<T> {
    /// Creates a cell that holds a new `Arc` of `value`. Allocates, so it is not `const`: for a
    /// static, use a [`LazyLock`](std::sync::LazyLock), or [`ArcCellOption::empty`].
    pub fn from_pointee(value: T) -> Self
    where
        T: Weigh,
    {
        Self::new(Arc::new(value))
    }
}

impl<T: Send + Sync + 'static> ArcCellOption<T> {
    const_unless_loom! {
        /// Creates an empty cell.
        pub fn empty() -> Self
        where
            T: Weigh,
        {
            let pointer = AtomicPtr::new(ptr::null_mut());
            Self { pointer, scale: Scale::new(), owns: PhantomData }
        }
    }

    /// Creates a cell that holds a new `Arc` of `value`, if there is one.
    pub fn from_pointee(value: impl Into<Option<T>>) -> Self
    where
        T: Weigh,
    {
        Self::new(value.into().map(Arc::new))
    }

    /// Empties the cell, and returns the previous value.
    #[track_caller]
    pub fn take(&self) -> Option<Arc<T>> {
        self.swap(None)
    }
}

/// The reference that the cell has is given up, as that of [`store`](ArcCellAny::store): a guard
/// may outlive the cell.
impl<P: RefCnt> Drop for ArcCellAny<P> {
    fn drop(&mut self) {
        // Relaxed: no other thread has the cell any more.
        let old = self.pointer.load(Relaxed);
        self.give_up(old);
    }
}

made_of_value!(ArcCellAny<P: RefCnt<Base: Weigh>>, new);

impl<T: Send + Sync + 'static + Weigh> From<Arc<T>> for ArcCellOption<T> {
    fn from(arc: Arc<T>) -> Self {
        Self::new(Some(arc))
    }
}

impl<P: RefCnt<Target: fmt::Debug>> fmt::Debug for ArcCellAny<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ArcCell").field(&self.load()).finish()
    }
}

impl<P: RefCnt<Target: fmt::Display>> fmt::Display for ArcCellAny<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.load().fmt(f)
    }
}
