//! A copy of what is in a place, which is looked after for changes.

use std::ops::Deref;

use crate::strategy::Strategy;
use crate::{ArcSwapAny, RefCnt};

/// What gives a reference to a value that is up to date.
pub trait Access<T> {
    /// The value.
    fn load(&mut self) -> &T;
}

/// A pointer that was in a place, and the place: a load compares the address, and loads the pointer
/// where it has changed. It keeps the last value until then.
#[derive(Clone, Debug)]
pub struct Cache<A, T> {
    arc_swap: A,
    cached: T,
}

impl<A, T, S> Cache<A, T>
where
    A: Deref<Target = ArcSwapAny<T, S>>,
    T: RefCnt,
    S: Strategy<T>,
{
    /// With what is there now.
    pub fn new(arc_swap: A) -> Self {
        let cached = arc_swap.load_full();
        Self { arc_swap, cached }
    }

    /// The place.
    pub fn arc_swap(&self) -> &A::Target {
        &self.arc_swap
    }

    /// What is there now.
    #[inline]
    pub fn load(&mut self) -> &T {
        let now = self.arc_swap.load();
        if T::as_ptr(&self.cached) != T::as_ptr(&now) {
            self.cached = crate::Guard::into_inner(now);
        }
        &self.cached
    }

    /// A part of it.
    pub fn map<F, U>(self, f: F) -> MapCache<A, T, F>
    where
        F: FnMut(&T) -> &U,
    {
        MapCache { inner: self, projection: f }
    }
}

impl<A, T, S> Access<T::Target> for Cache<A, T>
where
    A: Deref<Target = ArcSwapAny<T, S>>,
    T: Deref<Target: Sized> + RefCnt,
    S: Strategy<T>,
{
    fn load(&mut self) -> &T::Target {
        Self::load(self)
    }
}

impl<A, T, S> From<A> for Cache<A, T>
where
    A: Deref<Target = ArcSwapAny<T, S>>,
    T: RefCnt,
    S: Strategy<T>,
{
    fn from(arc_swap: A) -> Self {
        Self::new(arc_swap)
    }
}

/// A part of what a [`Cache`] has.
#[derive(Clone, Debug)]
pub struct MapCache<A, T, F> {
    inner: Cache<A, T>,
    projection: F,
}

impl<A, T, S, F, U> Access<U> for MapCache<A, T, F>
where
    A: Deref<Target = ArcSwapAny<T, S>>,
    T: RefCnt,
    S: Strategy<T>,
    F: FnMut(&T) -> &U,
{
    fn load(&mut self) -> &U {
        (self.projection)(self.inner.load())
    }
}
