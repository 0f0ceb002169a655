//! [`Cache`]: a kept reference to a cell's value, which each load checks and renews if needed.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::atomic::Ordering::Relaxed;

use super::{ArcCellAny, RefCnt};
use crate::domain::impls::shown_in_part;
use crate::os::user_code::{self, Site};

/// A thread's own reference to the value of a cell. A load exchanges it if the cell holds another
/// value by then.
///
/// A load is one load of the cell's pointer and a comparison, less than taking a guard. In return,
/// the cache keeps an old value alive until the next load, that load may drop it, and a load needs
/// `&mut`. `A` is anything that dereferences to the cell: `&ArcCell<T>`, `Arc<ArcCell<T>>`.
///
/// ```
/// use quiescence::ArcCell;
/// use quiescence::cell::Cache;
/// use std::sync::Arc;
///
/// let cell = ArcCell::from_pointee(1);
/// let mut cache = Cache::new(&cell);
/// assert_eq!(**cache.load(), 1);
/// cell.store(Arc::new(2));
/// assert_eq!(**cache.load(), 2);
/// ```
#[derive(Clone)]
pub struct Cache<A, P> {
    cell: A,
    cached: P,
}

#[inline(always)]
fn deref<D: Deref>(leads_there: &D) -> &D::Target {
    user_code::run(Site::Pointer, || &**leads_there)
}

impl<P: RefCnt, A: Deref<Target = ArcCellAny<P>>> Cache<A, P> {
    /// Creates a cache of the current value of the cell.
    pub fn new(cell: A) -> Self {
        Self { cached: deref(&cell).load_full(), cell }
    }

    /// Returns the current value of the cell.
    #[inline]
    pub fn load(&mut self) -> &P {
        // Relaxed: it is only compared. The object that is cached is alive, so that no other one
        // has its address.
        if deref(&self.cell).pointer.load(Relaxed) != P::as_ptr(&self.cached) {
            self.renew();
        }
        &self.cached
    }

    #[cold]
    fn renew(&mut self) {
        self.cached = deref(&self.cell).load_full();
    }

    /// What dereferences to the cell.
    pub fn cell(&self) -> &A {
        &self.cell
    }

    /// Consumes the cache, and returns what dereferences to the cell.
    pub fn into_inner(self) -> A {
        self.cell
    }

    /// Creates a cache of a part of the value.
    ///
    /// ```
    /// use quiescence::ArcCell;
    /// use quiescence::cell::Cache;
    ///
    /// let cell = ArcCell::from_pointee((1, "one"));
    /// let mut name = Cache::new(&cell).map(|pair| &pair.1);
    /// assert_eq!(*name.load(), "one");
    /// ```
    pub fn map<R: ?Sized, F: FnMut(&P) -> &R>(self, projection: F) -> MapCache<A, P, F, R> {
        MapCache { cache: self, projection, part: PhantomData }
    }
}

impl<P: RefCnt, A: Deref<Target = ArcCellAny<P>>> From<A> for Cache<A, P> {
    fn from(cell: A) -> Self {
        Self::new(cell)
    }
}

shown_in_part!([A, P: fmt::Debug] Cache<A, P> { cached: |cache| &cache.cached });

/// A [`Cache`] of a part of the value; made by [`Cache::map`].
pub struct MapCache<A, P, F, R: ?Sized> {
    cache: Cache<A, P>,
    projection: F,
    part: PhantomData<fn() -> *const R>,
}

impl<P, A, F, R> MapCache<A, P, F, R>
where
    P: RefCnt,
    A: Deref<Target = ArcCellAny<P>>,
    R: ?Sized,
    F: FnMut(&P) -> &R,
{
    /// Returns that part of the current value.
    #[inline]
    pub fn load(&mut self) -> &R {
        let value = self.cache.load();
        user_code::run(Site::Project, || (self.projection)(value))
    }

    /// Returns the cache of the whole value.
    pub fn into_inner(self) -> Cache<A, P> {
        self.cache
    }
}

impl<A: Clone, P: Clone, F: Clone, R: ?Sized> Clone for MapCache<A, P, F, R> {
    fn clone(&self) -> Self {
        let (cache, projection) = (self.cache.clone(), self.projection.clone());
        Self { cache, projection, part: PhantomData }
    }
}

shown_in_part!(
    [A, P: fmt::Debug, F, R: ?Sized] MapCache<A, P, F, R> { cache: |cache| &cache.cache }
);
