//! What the designs with a lock have in common: all but the lock.

use std::marker::PhantomData;
use std::mem;

use quiescence::sync::Counter;

use crate::serve::{Copied, Domain, replace};

/// A lock around a value. A mutex reads as it writes: alone.
pub(crate) trait Lock<T>: Send + Sync + 'static {
    /// An open lock.
    fn new(value: T) -> Self;

    /// Looks at the value under the lock.
    fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R;

    /// Changes the value under the lock.
    fn write<R>(&self, change: impl FnOnce(&mut T) -> R) -> R;
}

/// A kind of lock, around anything.
pub(crate) trait Locks: Default + Send + Sync + 'static {
    type Of<T: Send + Sync + 'static>: Lock<T>;
    /// Where the objects of this kind, and of no other, are counted when they are freed.
    fn freed() -> &'static Counter;
}

/// [`Lock`] and [`Locks`] for a lock, by its methods that read and write, and what becomes of their
/// result.
macro_rules! lock {
    (
        $kind:ident => $lock:ident<T: $($bound:ident)+>, $read:ident, $write:ident
        $(, $guard:expr)?
    ) => {
        /// The kind of this lock.
        #[derive(Debug, Default)]
        pub(crate) struct $kind;

        impl $crate::locks::Locks for $kind {
            type Of<T: Send + Sync + 'static> = $lock<T>;

            fn freed() -> &'static ::quiescence::sync::Counter {
                static FREED: ::quiescence::sync::Counter = ::quiescence::sync::Counter::new();
                &FREED
            }
        }

        impl<T: $($bound +)+ 'static> $crate::locks::Lock<T> for $lock<T> {
            fn new(value: T) -> Self {
                Self::new(value)
            }

            #[inline(always)]
            fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
                look(&$lock::$read(self)$(.unwrap_or_else($guard))?)
            }

            #[inline(always)]
            fn write<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
                change(&mut $lock::$write(self)$(.unwrap_or_else($guard))?)
            }
        }
    };
}
pub(crate) use lock;

/// Everything under one lock.
pub(crate) struct Locked<L>(pub(crate) L);

impl<T: Clone, L: Lock<T>> Copied<T> for Locked<L> {
    fn new(value: T) -> Self {
        Self(L::new(value))
    }

    #[inline(always)]
    fn read(&self) -> T {
        self.0.read(T::clone)
    }

    #[inline(always)]
    fn write(&self, value: T) {
        drop(self.0.write(|old| mem::replace(old, value)));
    }
}

impl<L: Lock<()>> Domain for Locked<L> {
    fn new() -> Self {
        Self(L::new(()))
    }

    #[inline(always)]
    fn read<R>(&self, inside: impl FnOnce() -> R) -> R {
        self.0.read(|()| inside())
    }

    fn wait(&self) {
        self.0.write(|()| ());
    }
}

/// A lock of this kind around each object.
#[derive(Debug, Default)]
pub(crate) struct InPlace<L>(PhantomData<L>);

replace! {
    @[L: Locks] InPlace<L> => L::Of<T>, ();
    place: |_, value| Lock::new(value);
    read: |_, _, place, look| place.read(look);
    // Dropped when the lock is free again: no thread waits for the allocator.
    replace: |_, _, place, value| drop(place.write(|old| mem::replace(old, value)));
    freed: L::freed();
}

/// A lock of this kind around each pointer to an object.
///
/// The pointer is replaced under the lock, and the old object freed after it. As with the others,
/// the object is the updater's to allocate.
#[derive(Debug, Default)]
pub(crate) struct Boxed<L>(PhantomData<L>);

replace! {
    @[L: Locks] Boxed<L> => L::Of<Box<T>>, ();
    place: |_, value| Lock::new(Box::new(value));
    read: |_, _, place, look| place.read(|object| look(object));
    replace: |_, _, place, value| {
        let new = Box::new(value);
        drop(place.write(|object| mem::replace(object, new)));
    };
    freed: L::freed();
}
