//! Guards: [`LocalGuard`], which belongs to a thread, and [`OwnedGuard`], which may go to others.

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use quiescence::{SrcuOwnedGuard, tag::Private};

use crate::collector::Collector;
use crate::thread;

/// A conditional exchange: the method of this name of an atomic pointer.
macro_rules! exchange {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[inline]
        fn $name<T>(
            &self,
            ptr: &AtomicPtr<T>,
            current: *mut T,
            new: *mut T,
            success: Ordering,
            failure: Ordering,
        ) -> Result<*mut T, *mut T> {
            ptr.$name(current, new, of_update(success), of_load(failure))
        }
    };
}

/// Protects objects of a collector from being reclaimed while it lives.
pub trait Guard {
    /// Ends the protection, and begins a new one. Does nothing if the thread has another guard of
    /// the collector.
    fn refresh(&mut self);

    /// Closes the thread's batch, however few objects it has.
    fn flush(&self);

    /// The collector.
    fn collector(&self) -> &Collector;

    /// A small number that no other living thread has.
    fn thread_id(&self) -> usize {
        thread::id()
    }

    /// Loads a pointer, with at least Acquire. Its target is protected, if it was not retired
    /// before the guard began.
    #[inline]
    fn protect<T>(&self, ptr: &AtomicPtr<T>, order: Ordering) -> *mut T {
        ptr.load(of_load(order))
    }

    /// Exchanges a pointer; as [`protect`](Self::protect).
    #[inline]
    fn swap<T>(&self, ptr: &AtomicPtr<T>, value: *mut T, order: Ordering) -> *mut T {
        ptr.swap(value, of_update(order))
    }

    exchange! {
        /// Exchanges a pointer if it is `current`; as [`protect`](Self::protect).
        ///
        /// # Errors
        /// The pointer that is there.
        compare_exchange
    }
    exchange! {
        /// The same, but it may fail spuriously.
        ///
        /// # Errors
        /// The pointer that is there.
        compare_exchange_weak
    }

    /// As [`Collector::retire`], but reclaims nothing in this call.
    ///
    /// # Safety
    /// As [`Collector::retire`].
    unsafe fn defer_retire<T>(&self, ptr: *mut T, reclaim: unsafe fn(*mut T, &Collector)) {
        // SAFETY: by the contract.
        unsafe { self.collector().add(ptr, reclaim) };
    }
}

/// The caller's ordering, but at least Acquire, so that a load sees the pointer's target.
#[inline]
const fn of_load(order: Ordering) -> Ordering {
    match order {
        SeqCst => SeqCst,
        _ => Acquire,
    }
}

/// The same for an exchange.
#[inline]
const fn of_update(order: Ordering) -> Ordering {
    match order {
        Relaxed | Acquire => Acquire,
        Release | AcqRel => AcqRel,
        _ => SeqCst,
    }
}

/// Defines a guard: how its section begins, what is called when it has ended, whether `refresh` may
/// renew it, and what it flushes.
macro_rules! guard {
    (
        $(#[$about:meta])*
        $name:ident of $section:ty: $begin:ident, $ended:ident, $refreshes:ident, $flush:ident
    ) => {
        $(#[$about])*
        #[must_use = "what is loaded is protected until the guard is dropped"]
        pub struct $name<'a> {
            collector: &'a Collector,
            section: ManuallyDrop<$section>,
        }

        impl<'a> $name<'a> {
            #[inline]
            pub(crate) fn new(collector: &'a Collector) -> Self {
                Self { collector, section: ManuallyDrop::new(collector.$begin()) }
            }

            /// # Safety
            /// The section is not used any more, unless a new one is stored in its place.
            #[inline]
            unsafe fn leave(&mut self) {
                // SAFETY: by the contract.
                unsafe { ManuallyDrop::drop(&mut self.section) };
                self.collector.$ended();
            }
        }

        impl Guard for $name<'_> {
            fn refresh(&mut self) {
                /// Stores a new section, even if a reclaimer panics.
                struct Anew<'g, 'a>(&'g mut $name<'a>);
                impl Drop for Anew<'_, '_> {
                    fn drop(&mut self) {
                        self.0.section = ManuallyDrop::new(self.0.collector.$begin());
                    }
                }
                if self.collector.$refreshes() {
                    let anew = Anew(self);
                    // SAFETY: the drop of `anew` stores a new section.
                    unsafe { anew.0.leave() };
                }
            }

            fn flush(&self) {
                self.collector.$flush();
            }

            #[inline]
            fn collector(&self) -> &Collector {
                self.collector
            }
        }

        impl Drop for $name<'_> {
            #[inline]
            fn drop(&mut self) {
                // SAFETY: the last use.
                unsafe { self.leave() };
            }
        }

        impl fmt::Debug for $name<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).finish()
            }
        }
    };
}

guard! {
    /// A guard that belongs to a thread.
    LocalGuard of quiescence::Guard<'a, Private>: read, has_ended, is_outermost, flush
}
guard! {
    /// A guard that may go to other threads, and be used by several at once. It flushes the batches
    /// of all threads, since another thread may have retired with it.
    OwnedGuard of SrcuOwnedGuard: read_owned, owned_has_ended, is_any, flush_all
}
