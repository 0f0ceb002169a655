//! Cells for counted pointers whose counts are exact: [`ExactCell`]. A store drops the old value at
//! once if no guard has it; [`Arc::try_unwrap`](std::sync::Arc::try_unwrap) succeeds on the result
//! of a swap; and values need be neither `'static` nor `Weigh`.
//!
//! A load borrows the cell's reference, in a slot of the calling thread. An updater that takes the
//! reference out adds a count for each borrower (`hazptr::borrows` has the protocol and its
//! invariants). So an update costs a fence and a scan of all threads' slots, while an
//! [`ArcCell`](crate::ArcCell) retires the old reference and returns.
//!
//! The crate `facades/arc-swap` is built on this cell.

mod counted;
mod guard;

pub use counted::{AT_END, Counted};
pub use guard::ExactGuard;

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use crate::domain::impls::made_of_value;
use crate::hazptr::borrower;
use crate::os::sync::{AtomicPtr, const_unless_loom};
use crate::os::user_code::{self, Site};

/// A cell with a counted pointer that many threads load without touching the count, and some
/// replace. The counts are exact: see [`cell`](crate::cell).
///
/// # Progress and cost
/// [`load`](Self::load) is lock-free: it retries if the cell was replaced between its two loads of
/// the pointer. It writes to a cache line of the calling thread's own; a thread's first load may
/// allocate. Dropping the guard costs a locked instruction. A thread may have any number of guards;
/// from the ninth on, each has a count of its own.
///
/// An update ([`store`](Self::store), [`swap`](Self::swap),
/// [`compare_and_swap`](Self::compare_and_swap)) is lock-free and waits for no reader. It costs a
/// fence, and nine loads for each thread that has loaded. It adds a count for each guard that
/// borrows the replaced pointer.
///
/// If the process makes more than some thousand loads for each update of such cells, the fence is a
/// `membarrier(2)` (and nine loads more for each thread), and loads execute none; else each load
/// and each update executes a full fence. The process changes between the two by itself. With
/// [`Fences::Portable`](crate::tuning::Fences), all of them always execute a full fence.
///
/// # Signal handlers and `fork`
/// A signal handler may not load. In a child process, guards of threads that no longer exist keep
/// the pointers that they borrow alive forever.
///
/// ```
/// use quiescence::cell::ExactCell;
/// use std::sync::Arc;
///
/// let cell = ExactCell::new(Arc::new(String::from("debug")));
/// let guard = cell.load();
/// let old = cell.swap(Arc::new(String::from("info")));
/// assert_eq!(Arc::strong_count(&old), 2); // `old`, and the guard's
/// drop(guard);
/// assert_eq!(Arc::try_unwrap(old).as_deref(), Ok("debug"));
/// ```
///
/// # Source
/// The interface is that of `arc-swap` (Michal Vaner), and so is the idea that a load borrows the
/// cell's reference, and an update pays for what is borrowed.
pub struct ExactCell<P: Counted> {
    /// From `Counted::into_ptr`. The cell has a reference to what is there.
    pointer: AtomicPtr<P::Base>,
    /// `Send` and `Sync` are implemented below.
    owns: PhantomData<(P, *const ())>,
}

// SAFETY: it is a place of a pointer, which moves with it.
unsafe impl<P: Counted + Send> Send for ExactCell<P> {}
// SAFETY: threads clone what is in it, and take it out.
unsafe impl<P: Counted + Send + Sync> Sync for ExactCell<P> {}

impl<P: Counted> ExactCell<P> {
    /// Creates a cell that holds `pointer`.
    ///
    /// # Panics
    /// If its address has a bit of [`Counted::TAG`] set.
    pub fn new(pointer: P) -> Self {
        Self { pointer: AtomicPtr::new(into_ptr(pointer)), owns: PhantomData }
    }

    /// Returns the current pointer, borrowed until the guard is dropped.
    #[inline]
    pub fn load(&self) -> ExactGuard<P> {
        match borrower::borrow(&self.pointer, P::TAG) {
            // SAFETY: the cell had a reference to it when the borrow was confirmed [EB-A]; or it
            // was paid, and the reference is the guard's.
            Some(borrowed) => unsafe { ExactGuard::of(borrowed) },
            None => self.load_counted(),
        }
    }

    /// With a count, for a thread whose slots are all in use.
    #[cold]
    #[inline(never)]
    fn load_counted(&self) -> ExactGuard<P> {
        borrower::borrow_transiently(&self.pointer, P::TAG, |borrowed| {
            // SAFETY: as in `load`.
            let guard = unsafe { ExactGuard::of(borrowed) };
            ExactGuard::from_inner(ExactGuard::into_inner(guard))
        })
    }

    /// Returns a reference to the current value, with a count of its own.
    #[inline]
    pub fn load_full(&self) -> P {
        ExactGuard::into_inner(self.load())
    }

    /// Replaces the pointer by `new`, and drops the cell's reference to the old value; this drops
    /// the value if there is no other reference.
    ///
    /// # Panics
    /// As [`new`](Self::new); the cell is unchanged then. Also if the drop of the value panics.
    pub fn store(&self, new: P) {
        drop(self.swap(new));
    }

    /// Replaces the pointer by `new`, and returns the reference that the cell had.
    ///
    /// # Panics
    /// As [`new`](Self::new); the cell is unchanged then.
    pub fn swap(&self, new: P) -> P {
        let new = into_ptr(new);
        // AcqRel: what is replaced is whole for us, and the new one for the thread that loads it.
        let old = self.pointer.swap(new, AcqRel);
        // SAFETY: just taken out.
        unsafe { self.taken(old) }
    }

    /// Replaces the pointer by `new` if its address is `current`, and returns the previous pointer.
    /// So it has been replaced if and only if the result has the address `current`. Otherwise `new`
    /// is dropped.
    ///
    /// While the caller holds a reference to the object at `current`, no other object can have that
    /// address.
    ///
    /// # Panics
    /// As [`new`](Self::new); the cell is unchanged then.
    ///
    /// ```
    /// use quiescence::cell::ExactCell;
    /// use std::sync::Arc;
    ///
    /// let cell = ExactCell::new(Arc::new(1));
    /// let one = cell.load();
    /// let was = cell.compare_and_swap(Arc::as_ptr(&one), Arc::new(2));
    /// assert!(Arc::ptr_eq(&was, &one));
    /// assert_eq!(**cell.compare_and_swap(Arc::as_ptr(&one), Arc::new(3)), 2); // not replaced
    /// ```
    pub fn compare_and_swap(&self, current: *const P::Base, new: P) -> ExactGuard<P> {
        let (current, mut new) = (current.cast_mut(), new);
        check_tag(&new);
        loop {
            // A borrow besides: the address may be that of an object which is gone.
            let seen = self.load();
            if P::as_ptr(&seen) != current {
                return seen;
            }
            let address = P::into_ptr(new);
            // AcqRel, Relaxed: as in `swap`; what is only compared is not looked into.
            match self.pointer.compare_exchange(current, address, AcqRel, Relaxed) {
                Ok(old) => {
                    drop(seen);
                    // SAFETY: just taken out.
                    return ExactGuard::from_inner(unsafe { self.taken(old) });
                }
                // SAFETY: from `into_ptr` above, and not the cell's.
                Err(_) => new = unsafe { P::from_ptr(address) },
            }
        }
    }

    /// Replaces the pointer by the result of `f`, called with the current pointer, and returns the
    /// previous one. `f` is called again if another thread has replaced it meanwhile.
    ///
    /// # Panics
    /// As [`new`](Self::new), or if `f` panics; the cell is unchanged then.
    ///
    /// ```
    /// use quiescence::cell::ExactCell;
    /// use std::sync::Arc;
    ///
    /// let count = ExactCell::new(Arc::new(1));
    /// count.rcu(|n| **n + 1);
    /// assert_eq!(**count.load(), 2);
    /// ```
    pub fn rcu<R: Into<P>>(&self, mut f: impl FnMut(&P) -> R) -> P {
        let mut seen = self.load();
        loop {
            let new = user_code::run(Site::Update, || f(&seen).into());
            let was = self.compare_and_swap(P::as_ptr(&seen), new);
            if P::as_ptr(&was) == P::as_ptr(&seen) {
                return ExactGuard::into_inner(was);
            }
            seen = was;
        }
    }

    /// Consumes the cell and returns the pointer.
    pub fn into_inner(self) -> P {
        let mut cell = ManuallyDrop::new(self);
        // SAFETY: taken once: the cell is not dropped.
        unsafe { cell.take() }
    }

    /// The reference that the cell had, with all that was borrowed of it paid.
    ///
    /// # Safety
    /// The caller has taken it out of the cell just now, and does not use it.
    unsafe fn taken(&self, old: *mut P::Base) -> P {
        if !old.is_null() {
            borrower::updater_fence(); // [EB-1]
        }
        // SAFETY: by the contract.
        unsafe { self.paid(old) }
    }

    /// As [`taken`](Self::taken), of what is in the cell now.
    ///
    /// # Safety
    /// The cell is not used any more.
    unsafe fn take(&mut self) -> P {
        // Relaxed: no other thread has the cell any more.
        let old = self.pointer.load(Relaxed);
        // SAFETY: the cell is the caller's alone, after all loads of it; and its reference is taken
        // once.
        unsafe { self.paid(old) }
    }

    /// A reference that was the cell's, with all that was borrowed of it paid.
    ///
    /// # Safety
    /// The caller has it, and does not use it. The updater's fence, or all loads of the cell,
    /// came before.
    unsafe fn paid(&self, old: *mut P::Base) -> P {
        // Not dropped where a clone panics: it may be borrowed then.
        // SAFETY: by the contract.
        let pointer = ManuallyDrop::new(unsafe { P::from_ptr(old) });
        if !old.is_null() {
            // An added count is a borrower's, or is dropped below.
            let clone = || user_code::run(Site::Pointer, || P::clone(&pointer));
            let add = || std::mem::forget(clone());
            if borrower::pay_all(&self.pointer, old, P::TAG, add) {
                // SAFETY: that of the last clone, which no borrower has got.
                drop(unsafe { P::from_ptr(old) });
            }
        }
        ManuallyDrop::into_inner(pointer)
    }
}

impl<P: Counted> ExactCell<Option<P>> {
    const_unless_loom! {
        /// Creates an empty cell.
        ///
        /// ```
        /// use quiescence::cell::ExactCell;
        /// use std::sync::Arc;
        ///
        /// static SESSION: ExactCell<Option<Arc<String>>> = ExactCell::empty();
        /// assert!(SESSION.load().is_none());
        /// SESSION.store(Some(Arc::new(String::from("token 17"))));
        /// assert!(SESSION.load().is_some());
        /// ```
        pub fn empty() -> Self {
            Self { pointer: AtomicPtr::new(ptr::null_mut()), owns: PhantomData }
        }
    }
}

/// The address of a pointer, whose reference is given away.
fn into_ptr<P: Counted>(pointer: P) -> *mut P::Base {
    check_tag(&pointer);
    P::into_ptr(pointer)
}

#[inline(always)]
fn check_tag<P: Counted>(pointer: &P) {
    let address = P::as_ptr(pointer).addr();
    // What a tag takes are the bits up to its highest one.
    let bits = usize::MAX.checked_shr(P::TAG.leading_zeros()).unwrap_or(0);
    assert!(
        address & bits == 0,
        "quiescence: the address of a counted pointer uses bits of its Counted::TAG"
    );
}

impl<P: Counted> Drop for ExactCell<P> {
    fn drop(&mut self) {
        // SAFETY: the cell ends.
        let value = unsafe { self.take() };
        user_code::run(Site::Drop, || drop(value));
    }
}

made_of_value!(ExactCell<P: Counted>, new);

impl<P: Counted + fmt::Debug> fmt::Debug for ExactCell<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ExactCell").field(&*self.load()).finish()
    }
}
