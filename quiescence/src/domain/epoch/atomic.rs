//! [`Atomic`]: a tagged pointer that threads share.

use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use super::guard::Guard;
use super::owned::Owned;
use super::pointable::{self, Pointable};
use super::shared::{Pointer, Shared};
use crate::domain::impls::default_by;
use crate::os::user_code::{self, Site};

/// A tagged pointer that threads share: the links of a structure.
///
/// The pointer owns nothing: dropping an `Atomic` does not drop the object that it points to.
///
/// Each method is one atomic instruction, except [`fetch_update`](Self::fetch_update), which
/// retries until it succeeds or its function gives up.
pub struct Atomic<T: ?Sized + Pointable> {
    word: AtomicUsize,
    leads_to: PhantomData<*mut T>,
}

// SAFETY: it hands out references to T on every thread that has it, and owners of it.
unsafe impl<T: ?Sized + Pointable + Send + Sync> Send for Atomic<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Pointable + Send + Sync> Sync for Atomic<T> {}

/// The error of a failed exchange: the pointer that was found, and the one that was not stored.
pub struct CompareExchangeError<'g, T: ?Sized + Pointable, P: Pointer<T>> {
    /// The pointer that was found.
    pub current: Shared<'g, T>,
    /// The pointer that was not stored.
    pub new: P,
}

impl<T, P: Pointer<T> + fmt::Debug> fmt::Debug for CompareExchangeError<'_, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompareExchangeError")
            .field("current", &self.current)
            .field("new", &self.new)
            .finish()
    }
}

/// The older name of [`CompareExchangeError`].
#[deprecated(note = "use `CompareExchangeError`")]
pub type CompareAndSetError<'g, T, P> = CompareExchangeError<'g, T, P>;

/// The orderings that [`Atomic::compare_and_set`] takes: one, or one for each outcome.
#[deprecated(note = "use `compare_exchange`, which takes two orderings")]
pub trait CompareAndSetOrdering {
    /// The ordering on success.
    fn success(&self) -> Ordering;

    /// The ordering on failure.
    fn failure(&self) -> Ordering;
}

#[expect(deprecated)]
impl CompareAndSetOrdering for Ordering {
    fn success(&self) -> Ordering {
        *self
    }

    fn failure(&self) -> Ordering {
        match self {
            Relaxed | Release => Relaxed,
            Acquire | AcqRel => Acquire,
            _ => SeqCst,
        }
    }
}

#[expect(deprecated)]
impl CompareAndSetOrdering for (Ordering, Ordering) {
    fn success(&self) -> Ordering {
        self.0
    }

    fn failure(&self) -> Ordering {
        self.1
    }
}

impl<T> Atomic<T> {
    /// Allocates an object, and points to it.
    pub fn new(init: T) -> Self {
        Self::init(init)
    }
}

/// A conditional exchange, which is the word's of this name; and how it was called before.
macro_rules! exchange {
    ($(#[$about:meta])* $name:ident; $(#[$about_earlier:meta])* $earlier:ident) => {
        $(#[$about])*
        pub fn $name<'g, P: Pointer<T>>(
            &self,
            current: Shared<'_, T>,
            new: P,
            success: Ordering,
            failure: Ordering,
            _: &'g Guard,
        ) -> Result<Shared<'g, T>, CompareExchangeError<'g, T, P>> {
            let new = new.into_usize();
            match self.word.$name(current.into_usize(), new, success, failure) {
                Ok(_) => Ok(shared(new)),
                Err(current) => {
                    // SAFETY: made from a P above, and not put there.
                    let new = unsafe { P::from_usize(new) };
                    Err(CompareExchangeError { current: shared(current), new })
                }
            }
        }

        $(#[$about_earlier])*
        #[expect(deprecated)]
        pub fn $earlier<'g, O: CompareAndSetOrdering, P: Pointer<T>>(
            &self,
            current: Shared<'_, T>,
            new: P,
            ord: O,
            guard: &'g Guard,
        ) -> Result<Shared<'g, T>, CompareAndSetError<'g, T, P>> {
            self.$name(current, new, ord.success(), ord.failure(), guard)
        }
    };
}

impl<T: ?Sized + Pointable> Atomic<T> {
    /// Allocates an object from its initialiser, and points to it.
    pub fn init(init: T::Init) -> Self {
        Self::from(Owned::init(init))
    }

    /// Creates a null pointer.
    pub const fn null() -> Self {
        Self::from_word(0)
    }

    const fn from_word(word: usize) -> Self {
        Self { word: AtomicUsize::new(word), leads_to: PhantomData }
    }

    /// Loads the pointer.
    #[inline]
    pub fn load<'g>(&self, ord: Ordering, _: &'g Guard) -> Shared<'g, T> {
        shared(self.word.load(ord))
    }

    /// Loads the pointer with the ordering of a consume load: implemented as an Acquire load.
    #[inline]
    pub fn load_consume<'g>(&self, _: &'g Guard) -> Shared<'g, T> {
        shared(self.word.load(Acquire))
    }

    /// Stores a pointer. The object of the previous pointer leaks, unless another pointer points to
    /// it.
    pub fn store<P: Pointer<T>>(&self, new: P, ord: Ordering) {
        self.word.store(new.into_usize(), ord);
    }

    /// Stores a pointer, and returns the previous one.
    pub fn swap<'g, P: Pointer<T>>(&self, new: P, ord: Ordering, _: &'g Guard) -> Shared<'g, T> {
        shared(self.word.swap(new.into_usize(), ord))
    }

    exchange! {
        /// Stores `new` if the pointer is `current`, including the tag. Returns `new`.
        ///
        /// # Errors
        /// The pointer that was found, with `new`.
        compare_exchange;
        /// Like [`compare_exchange`](Self::compare_exchange), with one ordering or two.
        ///
        /// # Errors
        /// As [`compare_exchange`](Self::compare_exchange).
        #[deprecated(note = "use `compare_exchange`")]
        compare_and_set
    }
    exchange! {
        /// Like [`compare_exchange`](Self::compare_exchange), but it may fail spuriously, which is
        /// cheaper in a loop on some machines.
        ///
        /// # Errors
        /// As [`compare_exchange`](Self::compare_exchange); the pointer may have been `current`.
        compare_exchange_weak;
        /// Like [`compare_exchange_weak`](Self::compare_exchange_weak), with one ordering or two.
        ///
        /// # Errors
        /// As [`compare_exchange_weak`](Self::compare_exchange_weak).
        #[deprecated(note = "use `compare_exchange_weak`")]
        compare_and_set_weak
    }

    /// Stores the result of `func`, called with the current pointer. Calls it again for as long as
    /// other threads store first. Returns the previous pointer.
    ///
    /// # Errors
    /// The pointer for which `func` returned `None`.
    pub fn fetch_update<'g, F>(
        &self,
        set_order: Ordering,
        fail_order: Ordering,
        guard: &'g Guard,
        mut func: F,
    ) -> Result<Shared<'g, T>, Shared<'g, T>>
    where
        F: FnMut(Shared<'g, T>) -> Option<Shared<'g, T>>,
    {
        let mut seen = self.load(fail_order, guard);
        while let Some(new) = user_code::run(Site::Update, || func(seen)) {
            match self.compare_exchange_weak(seen, new, set_order, fail_order, guard) {
                Ok(_) => return Ok(seen),
                Err(error) => seen = error.current,
            }
        }
        Err(seen)
    }

    /// Stores the bitwise "and" of the tag and `val`. Returns the previous pointer.
    pub fn fetch_and<'g>(&self, val: usize, ord: Ordering, _: &'g Guard) -> Shared<'g, T> {
        // The address stays: of `val` it has all bits set.
        shared(self.word.fetch_and(pointable::with_tag::<T>(usize::MAX, val), ord))
    }

    /// Stores the bitwise "or" of the tag and `val`. Returns the previous pointer.
    pub fn fetch_or<'g>(&self, val: usize, ord: Ordering, _: &'g Guard) -> Shared<'g, T> {
        shared(self.word.fetch_or(pointable::tag::<T>(val), ord))
    }

    /// Stores the bitwise "exclusive or" of the tag and `val`. Returns the previous pointer.
    pub fn fetch_xor<'g>(&self, val: usize, ord: Ordering, _: &'g Guard) -> Shared<'g, T> {
        shared(self.word.fetch_xor(pointable::tag::<T>(val), ord))
    }

    /// Takes ownership of the object.
    ///
    /// # Safety
    /// It is not null, and no other pointer to the object is used from now on, on any thread.
    pub unsafe fn into_owned(self) -> Owned<T> {
        // SAFETY: by the contract.
        unsafe { Owned::from_usize(self.word.into_inner()) }
    }

    /// Takes ownership of the object, if the pointer is not null.
    ///
    /// # Safety
    /// It is null, or as for [`into_owned`](Self::into_owned).
    pub unsafe fn try_into_owned(self) -> Option<Owned<T>> {
        // SAFETY: by the contract.
        unsafe { shared::<T>(self.word.into_inner()).try_into_owned() }
    }
}

/// A pointer from a word that an `Atomic` had: it is used under a guard only, and that by `unsafe`.
#[inline]
fn shared<'g, T: ?Sized + Pointable>(word: usize) -> Shared<'g, T> {
    // SAFETY: the word of a pointer that was put into an `Atomic`.
    unsafe { Shared::from_usize(word) }
}

impl<T: ?Sized + Pointable> fmt::Debug for Atomic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word.load(SeqCst);
        f.debug_struct("Atomic")
            .field("raw", &pointable::address::<T>(word))
            .field("tag", &pointable::tag::<T>(word))
            .finish()
    }
}

impl<T: ?Sized + Pointable> fmt::Pointer for Atomic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = pointable::address::<T>(self.word.load(SeqCst));
        fmt::Pointer::fmt(&ptr::without_provenance::<()>(address), f)
    }
}

/// The same pointer, read with a Relaxed load, in an `Atomic` of its own.
impl<T: ?Sized + Pointable> Clone for Atomic<T> {
    fn clone(&self) -> Self {
        Self::from_word(self.word.load(Relaxed))
    }
}

default_by!(null, impl<T: ?Sized + Pointable> Default for Atomic<T>);

impl<T: ?Sized + Pointable> From<Owned<T>> for Atomic<T> {
    fn from(owned: Owned<T>) -> Self {
        Self::from_word(owned.into_usize())
    }
}

impl<T> From<Box<T>> for Atomic<T> {
    fn from(value: Box<T>) -> Self {
        Self::from(Owned::from(value))
    }
}

impl<T> From<T> for Atomic<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<'g, T: ?Sized + Pointable> From<Shared<'g, T>> for Atomic<T> {
    fn from(pointer: Shared<'g, T>) -> Self {
        Self::from_word(pointer.into_usize())
    }
}

impl<T> From<*const T> for Atomic<T> {
    fn from(raw: *const T) -> Self {
        Self::from_word(raw.expose_provenance())
    }
}
