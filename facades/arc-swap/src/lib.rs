//! The interface of `arc-swap` 1.9 on [`quiescence::cell::ExactCell`], for programs that depend on
//! it: by `[patch.crates-io]`, with no change to the program. Counts are exact, as there: a store
//! drops the old value where no guard has it.
//!
//! What differs:
//! - An address that is used again by another cell is never taken for one's own (arc-swap#210).
//! - A load is lock-free, not wait-free: it begins again where the value was replaced between its
//!   two looks.
//! - An update executes a `membarrier(2)` while there are more than some thousand loads for each;
//!   otherwise loads and updates execute a full fence each.
//! - Loads are Acquire and updates are AcqRel. Those of two places have no order that all threads
//!   agree on: no operation is sure to have a `SeqCst` read-modify-write.
//! - [`RefCnt`] has one condition more: the byte at the address belongs to the object, unless its
//!   `TAG` says that the object may end there. That is its default if `Base` has no bytes.
//! - Each [strategy] works in the same way; `RwLock<()>` takes no lock.
//! - It needs the standard library.

pub mod access;
mod as_raw;
pub mod cache;
#[cfg(feature = "serde")]
mod serde;
pub mod strategy;

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use quiescence::cell::{ExactCell, ExactGuard};

pub use as_raw::AsRaw;
pub use cache::Cache;
pub use quiescence::cell::Counted as RefCnt;
pub use strategy::{DefaultStrategy, IndependentStrategy};

use access::{Access, Map};
use strategy::{CaS, Strategy};

/// What a load gives: a pointer that is borrowed from the cell, or has a count of its own.
// Not `must_use`, which the original's is not: programs may deny what the compiler says of it.
pub struct Guard<T: RefCnt, S: Strategy<T> = DefaultStrategy> {
    inner: ExactGuard<T>,
    strategy: PhantomData<fn() -> S>,
}

impl<T: RefCnt, S: Strategy<T>> Guard<T, S> {
    fn of(inner: ExactGuard<T>) -> Self {
        Self { inner, strategy: PhantomData }
    }

    /// A reference of one's own, in place of the guard.
    pub fn into_inner(lease: Self) -> T {
        ExactGuard::into_inner(lease.inner)
    }

    /// A guard of a pointer that no cell has to hold.
    pub fn from_inner(inner: T) -> Self {
        Self::of(ExactGuard::from_inner(inner))
    }
}

impl<T: RefCnt, S: Strategy<T>> Deref for Guard<T, S> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: RefCnt, S: Strategy<T>> From<T> for Guard<T, S> {
    fn from(inner: T) -> Self {
        Self::from_inner(inner)
    }
}

impl<T: Default + RefCnt, S: Strategy<T>> Default for Guard<T, S> {
    fn default() -> Self {
        Self::from_inner(T::default())
    }
}

impl<T: fmt::Debug + RefCnt, S: Strategy<T>> fmt::Debug for Guard<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Display + RefCnt, S: Strategy<T>> fmt::Display for Guard<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A place for a counted pointer: [`ArcSwap`] and [`ArcSwapOption`] are its usual forms.
pub struct ArcSwapAny<T: RefCnt, S: Strategy<T> = DefaultStrategy> {
    cell: ExactCell<T>,
    /// Kept for its type, and dropped with the cell.
    _strategy: S,
}

impl<T: RefCnt, S: Strategy<T>> ArcSwapAny<T, S> {
    /// A place with `val` in it.
    pub fn new(val: T) -> Self
    where
        S: Default,
    {
        Self::with_strategy(val, S::default())
    }

    /// The same, of a strategy; all of them work in the same way.
    pub fn with_strategy(val: T, strategy: S) -> Self {
        Self { cell: ExactCell::new(val), _strategy: strategy }
    }

    /// What is there.
    pub fn into_inner(self) -> T {
        self.cell.into_inner()
    }

    /// What is there, with a count of its own.
    pub fn load_full(&self) -> T {
        self.cell.load_full()
    }

    /// What is there, borrowed until the guard is dropped.
    #[inline]
    pub fn load(&self) -> Guard<T, S> {
        Guard::of(self.cell.load())
    }

    /// Puts `val` there, and drops the reference to what was there.
    pub fn store(&self, val: T) {
        self.cell.store(val);
    }

    /// Puts `new` there, and gives what was there.
    pub fn swap(&self, new: T) -> T {
        self.cell.swap(new)
    }

    /// Puts `new` there if `current` is there, and gives what was there.
    pub fn compare_and_swap<C>(&self, current: C, new: T) -> Guard<T, S>
    where
        C: AsRaw<T::Base>,
        S: CaS<T>,
    {
        Guard::of(self.cell.compare_and_swap(current.as_raw(), new))
    }

    /// Replaces what is there by what `f` makes of it, and gives what was there. `f` is called
    /// again where it has been replaced meanwhile.
    pub fn rcu<R, F>(&self, f: F) -> T
    where
        F: FnMut(&T) -> R,
        R: Into<T>,
        S: CaS<T>,
    {
        self.cell.rcu(f)
    }

    /// A part of what is there, as an [`Access`].
    pub fn map<I, R, F>(&self, f: F) -> Map<&Self, I, F>
    where
        F: Fn(&I) -> &R + Clone,
        Self: Access<I>,
    {
        Map::new(self, f)
    }
}

impl<T: RefCnt, S: Default + Strategy<T>> From<T> for ArcSwapAny<T, S> {
    fn from(val: T) -> Self {
        Self::with_strategy(val, S::default())
    }
}

impl<T: RefCnt + Default, S: Default + Strategy<T>> Default for ArcSwapAny<T, S> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: fmt::Debug + RefCnt, S: Strategy<T>> fmt::Debug for ArcSwapAny<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ArcSwapAny").field(&self.load()).finish()
    }
}

impl<T: fmt::Display + RefCnt, S: Strategy<T>> fmt::Display for ArcSwapAny<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.load().fmt(f)
    }
}

/// A place for an [`Arc`].
pub type ArcSwap<T> = ArcSwapAny<Arc<T>>;

impl<T, S: Strategy<Arc<T>>> ArcSwapAny<Arc<T>, S> {
    /// A place with a new `Arc` of `val` in it.
    pub fn from_pointee(val: T) -> Self
    where
        S: Default,
    {
        Self::from(Arc::new(val))
    }
}

/// A place for an [`Arc`], or none.
pub type ArcSwapOption<T> = ArcSwapAny<Option<Arc<T>>>;

impl<T, S: Strategy<Option<Arc<T>>>> ArcSwapAny<Option<Arc<T>>, S> {
    /// A place with a new `Arc` of the value in it, if there is one.
    pub fn from_pointee<V: Into<Option<T>>>(val: V) -> Self
    where
        S: Default,
    {
        Self::new(val.into().map(Arc::new))
    }

    /// A place with nothing in it.
    pub fn empty() -> Self
    where
        S: Default,
    {
        Self::new(None)
    }
}

impl<T> ArcSwapOption<T> {
    /// The same, for statics.
    pub const fn const_empty() -> Self {
        Self { cell: ExactCell::empty(), _strategy: DefaultStrategy::NEW }
    }
}

/// As [`ArcSwap`].
#[doc(hidden)]
pub type IndependentArcSwap<T> = ArcSwapAny<Arc<T>, IndependentStrategy>;

/// A place for a [`Weak`](std::sync::Weak).
#[cfg(feature = "weak")]
pub type ArcSwapWeak<T> = ArcSwapAny<std::sync::Weak<T>>;
