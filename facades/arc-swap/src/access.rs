//! What gives a value that is up to date, whatever place it is a part of.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use crate::strategy::Strategy;
use crate::{ArcSwapAny, Guard, RefCnt};

/// What gives a `T`.
pub trait Access<T> {
    /// What it gives it by.
    type Guard: Deref<Target = T>;

    /// The value there is now.
    fn load(&self) -> Self::Guard;
}

impl<T, A: Access<T> + ?Sized, P: Deref<Target = A>> Access<T> for P {
    type Guard = A::Guard;

    fn load(&self) -> Self::Guard {
        self.deref().load()
    }
}

/// Each trait object is an access.
macro_rules! objects {
    ($($object:ty)*) => {$(
        impl<T> Access<T> for $object {
            type Guard = DynGuard<T>;

            fn load(&self) -> Self::Guard {
                DynAccess::load(self)
            }
        }
    )*};
}

objects!(dyn DynAccess<T> + '_ dyn DynAccess<T> + '_ + Send dyn DynAccess<T> + '_ + Sync + Send);

impl<T: RefCnt, S: Strategy<T>> Access<T> for ArcSwapAny<T, S> {
    type Guard = Guard<T, S>;

    fn load(&self) -> Self::Guard {
        self.load()
    }
}

/// A guard that shows what the pointer leads to.
#[doc(hidden)]
pub struct DirectDeref<T: RefCnt, S: Strategy<T>>(Guard<T, S>);

impl<T: RefCnt + fmt::Debug, S: Strategy<T>> fmt::Debug for DirectDeref<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// For each pointer that always leads to something.
macro_rules! direct {
    ($($pointer:ident)*) => {$(
        impl<T, S: Strategy<$pointer<T>>> Access<T> for ArcSwapAny<$pointer<T>, S> {
            type Guard = DirectDeref<$pointer<T>, S>;

            fn load(&self) -> Self::Guard {
                DirectDeref(self.load())
            }
        }

        impl<T, S: Strategy<$pointer<T>>> Deref for DirectDeref<$pointer<T>, S> {
            type Target = T;

            fn deref(&self) -> &T {
                &self.0
            }
        }
    )*};
}

direct!(Arc Rc);

/// A guard whose type is not known.
pub struct DynGuard<T: ?Sized>(Box<dyn Deref<Target = T>>);

impl<T: ?Sized> Deref for DynGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for DynGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// As [`Access`], for trait objects: a load allocates.
pub trait DynAccess<T> {
    /// The value there is now.
    fn load(&self) -> DynGuard<T>;
}

impl<T, A> DynAccess<T> for A
where
    A: Access<T>,
    A::Guard: 'static,
{
    fn load(&self) -> DynGuard<T> {
        DynGuard(Box::new(Access::load(self)))
    }
}

/// A pointer to a [`DynAccess`], as an [`Access`].
#[derive(Debug)]
#[doc(hidden)]
pub struct AccessConvert<D>(pub D);

impl<T, D> Access<T> for AccessConvert<D>
where
    D: Deref,
    D::Target: DynAccess<T>,
{
    type Guard = DynGuard<T>;

    fn load(&self) -> Self::Guard {
        self.0.load()
    }
}

/// What a [`Map`] gives a part by.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct MapGuard<G, F, T, R> {
    guard: G,
    projection: F,
    types: PhantomData<fn(&T) -> &R>,
}

impl<G, F, T, R> Deref for MapGuard<G, F, T, R>
where
    G: Deref<Target = T>,
    F: Fn(&T) -> &R,
{
    type Target = R;

    fn deref(&self) -> &R {
        (self.projection)(&self.guard)
    }
}

/// A part of what an access gives.
#[derive(Clone, Copy, Debug)]
pub struct Map<A, T, F> {
    access: A,
    projection: F,
    types: PhantomData<fn() -> T>,
}

impl<A, T, F> Map<A, T, F> {
    /// The part that `projection` names. It is called at each use of the guard.
    pub fn new<R>(access: A, projection: F) -> Self
    where
        F: Fn(&T) -> &R + Clone,
    {
        Self { access, projection, types: PhantomData }
    }
}

impl<A, F, T, R> Access<R> for Map<A, T, F>
where
    A: Access<T>,
    F: Fn(&T) -> &R + Clone,
{
    type Guard = MapGuard<A::Guard, F, T, R>;

    fn load(&self) -> Self::Guard {
        let projection = self.projection.clone();
        MapGuard { guard: self.access.load(), projection, types: PhantomData }
    }
}

/// What a [`Constant`] gives its value by.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct ConstantDeref<T>(T);

impl<T> Deref for ConstantDeref<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A value that does not change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Constant<T>(pub T);

impl<T: Clone> Access<T> for Constant<T> {
    type Guard = ConstantDeref<T>;

    fn load(&self) -> Self::Guard {
        ConstantDeref(self.0.clone())
    }
}
