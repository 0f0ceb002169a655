//! [`Access`]: a value that can be loaded, wherever it is: in a cell, in a part of a cell's value
//! ([`Map`]), or in a constant. So a library can require just the part of a configuration that it
//! needs.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use super::{ArcCellAny, ArcGuard, RefCnt};
use crate::domain::impls::shown_in_part;
use crate::os::user_code::{self, Site};

/// Something from which a `T` can be loaded.
///
/// ```
/// use quiescence::ArcCell;
/// use quiescence::cell::{Access, Constant, Map};
/// use std::sync::Arc;
///
/// #[derive(quiescence::Weigh)]
/// struct Config { port: u16, name: String }
///
/// fn serve(port: impl Access<u16>) -> String { format!("listens on {}", *port.load()) }
///
/// let config = Arc::new(ArcCell::from_pointee(Config { port: 80, name: "web".into() }));
/// assert_eq!(serve(Map::new(config.clone(), |config: &Config| &config.port)), "listens on 80");
/// assert_eq!(serve(Constant(8080)), "listens on 8080");
/// # assert_eq!(config.load().name, "web");
/// ```
pub trait Access<T: ?Sized> {
    /// A guard that keeps the value valid.
    type Guard: Deref<Target = T>;

    /// Returns the current value.
    fn load(&self) -> Self::Guard;
}

impl<P: RefCnt> Access<P::Target> for ArcCellAny<P> {
    type Guard = ArcGuard<P>;

    #[inline]
    fn load(&self) -> ArcGuard<P> {
        self.load()
    }
}

impl<T: ?Sized, A: Access<T> + ?Sized, D: Deref<Target = A>> Access<T> for D {
    type Guard = A::Guard;

    #[inline]
    fn load(&self) -> A::Guard {
        user_code::run(Site::Pointer, || &**self).load()
    }
}

/// A value that never changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Constant<T>(pub T);

/// The guard of a [`Constant`]: a copy.
#[derive(Clone, Debug)]
pub struct ConstantGuard<T>(T);

impl<T> Deref for ConstantGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> Access<T> for Constant<T> {
    type Guard = ConstantGuard<T>;

    fn load(&self) -> ConstantGuard<T> {
        ConstantGuard(user_code::run(Site::Pointer, || self.0.clone()))
    }
}

/// A part of the value loaded from `A`. Made by [`ArcCellAny::map`](super::ArcCellAny::map) or
/// [`Map::new`].
pub struct Map<A, T: ?Sized, F> {
    access: A,
    projection: F,
    whole: PhantomData<fn() -> *const T>,
}

impl<A, T: ?Sized, F> Map<A, T, F> {
    /// Creates an access to the part that `projection` selects from the value loaded from `access`.
    /// Each use of a guard calls `projection`, so it should be cheap.
    pub fn new<R: ?Sized>(access: A, projection: F) -> Self
    where
        A: Access<T>,
        F: Fn(&T) -> &R + Clone,
    {
        Self { access, projection, whole: PhantomData }
    }
}

impl<A: Access<T>, T: ?Sized, R: ?Sized, F: Fn(&T) -> &R + Clone> Access<R> for Map<A, T, F> {
    type Guard = MapGuard<A::Guard, T, R, F>;

    fn load(&self) -> Self::Guard {
        let guard = self.access.load();
        let projection = user_code::run(Site::Pointer, || self.projection.clone());
        MapGuard { guard, projection, parts: PhantomData }
    }
}

impl<A: Clone, T: ?Sized, F: Clone> Clone for Map<A, T, F> {
    fn clone(&self) -> Self {
        let (access, projection) = (self.access.clone(), self.projection.clone());
        Self { access, projection, whole: PhantomData }
    }
}

shown_in_part!([A: fmt::Debug, T: ?Sized, F] Map<A, T, F> { access: |map| &map.access });

/// The guard of a [`Map`].
#[must_use = "the value is protected while the guard lives"]
pub struct MapGuard<G, T: ?Sized, R: ?Sized, F> {
    guard: G,
    projection: F,
    parts: PhantomData<fn() -> (*const T, *const R)>,
}

impl<G: Deref<Target = T>, T: ?Sized, R: ?Sized, F: Fn(&T) -> &R> Deref for MapGuard<G, T, R, F> {
    type Target = R;

    fn deref(&self) -> &R {
        user_code::run(Site::Project, || (self.projection)(&self.guard))
    }
}

shown_in_part!([G, T: ?Sized, R: ?Sized, F] MapGuard<G, T, R, F>);

/// [`Access`] as a trait object: `Box<dyn DynAccess<T>>`. A load allocates.
pub trait DynAccess<T: ?Sized> {
    /// Returns the current value.
    fn load(&self) -> DynGuard<T>;
}

impl<T: ?Sized, A: Access<T> + ?Sized> DynAccess<T> for A
where
    A::Guard: 'static,
{
    fn load(&self) -> DynGuard<T> {
        DynGuard(Box::new(Access::load(self)))
    }
}

/// The guard of a [`DynAccess`].
#[must_use = "the value is protected while the guard lives"]
pub struct DynGuard<T: ?Sized>(Box<dyn Deref<Target = T>>);

impl<T: ?Sized> Deref for DynGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

shown_in_part!([T: ?Sized] DynGuard<T>);
