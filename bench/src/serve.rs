//! What a rival can serve: a trait for each kind of case that more than one of them has. (Of a loop
//! of its own the registry takes a function that makes it.)
//!
//! A measurement is compiled once for each rival, so that none pays for a call that another one
//! saves. More traits are those of `rcu advise`, in [`shapes`](crate::shapes); and beside their
//! only user those whose calls are virtual: [`Flavour`](crate::cases::wait::Flavour) and
//! [`Caller`](crate::cases::enqueue::Caller).

use quiescence::sync::Counter;

/// A place that is read and written whole: a copy of words, or an `Arc` of one's own.
pub(crate) trait Copied<T>: Send + Sync + 'static {
    fn new(value: T) -> Self
    where
        Self: Sized;
    fn read(&self) -> T;
    fn write(&self, value: T);
    /// Has what was replaced given up, if the design can be asked to.
    fn flush(&self) {}
}

/// [`Copied`] for places of an array, by what is their own: what makes one, and an expression for
/// each method.
macro_rules! copied {
    (
        $(
            $place:ident::$new:ident, |$reads:ident| $read:expr,
            |$writes:ident, $words:ident| $write:expr;
        )*
    ) => {$(
        impl<const WORDS: usize> $crate::serve::Copied<[u64; WORDS]> for $place<[u64; WORDS]> {
            fn new(words: [u64; WORDS]) -> Self {
                Self::$new(words)
            }

            #[inline(always)]
            fn read(&self) -> [u64; WORDS] {
                let $reads = self;
                $read
            }

            #[inline(always)]
            fn write(&self, $words: [u64; WORDS]) {
                let $writes = self;
                $write;
            }
        }
    )*};
}
pub(crate) use copied;

/// [`Copied`] and [`Replace`] for a cell of an `Arc`, which has `new`, `load`, `store` and a method
/// that gives an `Arc`.
macro_rules! arcs {
    ($scheme:ident => $cell:ident, $load_full:ident $(, flush: $flush:expr)?) => {
        impl $crate::serve::Copied<::std::sync::Arc<u64>> for $cell<u64> {
            fn new(arc: ::std::sync::Arc<u64>) -> Self {
                Self::new(arc)
            }

            #[inline(always)]
            fn read(&self) -> ::std::sync::Arc<u64> {
                self.$load_full()
            }

            fn write(&self, arc: ::std::sync::Arc<u64>) {
                self.store(arc);
            }

            $(fn flush(&self) {
                $flush;
            })?
        }

        /// The pointer to a counted object.
        #[derive(Debug, Default)]
        pub(super) struct $scheme;

        $crate::serve::replace! {
            $scheme => $cell<T>, ();
            place: |_, value| $cell::new(::std::sync::Arc::new(value));
            read: |_, _, place, look| look(&place.load());
            replace: |_, _, place, value| place.store(::std::sync::Arc::new(value));
            $(flush: |_| $flush;)?
        }
    };
}
pub(crate) use arcs;

/// A domain, or a lock, of which there may be thousands.
pub(crate) trait Domain: Send + Sync + 'static {
    /// One that was not used yet.
    fn new() -> Self;
    /// Runs `inside` in a section.
    fn read<R>(&self, inside: impl FnOnce() -> R) -> R;
    /// Waits for those that are in a section.
    fn wait(&self);

    /// The same in a hurry, where that can be said.
    fn wait_in_a_hurry(&self) {
        self.wait();
    }
}

/// A way to protect an object that readers look at from the thread that replaces it.
///
/// All of them allocate each new object, and give up the old one as their users would. What all
/// places share (a collector, mostly nothing) is made by default.
pub(crate) trait Replace: Default + Send + Sync + 'static {
    /// A pointer to an object, never empty.
    type Place<T: Send + Sync + 'static>: Send + Sync;
    /// What a thread holds while it works: a registration, mostly nothing.
    type Thread: 'static;

    /// A place with this object in it.
    fn place<T: quiescence::Weigh + Send + Sync + 'static>(&self, value: T) -> Self::Place<T>;
    /// Registers the calling thread.
    fn thread(&self) -> Self::Thread;
    /// Where the objects of this design, and of no other, are counted when they are freed.
    fn freed() -> &'static Counter;

    /// Hands the object to `look`, inside the read-side section.
    fn read<T: Send + Sync + 'static, R>(
        &self,
        thread: &mut Self::Thread,
        place: &Self::Place<T>,
        look: impl FnOnce(&T) -> R,
    ) -> R;

    /// Replaces the object, and retires the old one.
    fn replace<T: Send + Sync + 'static>(
        &self,
        thread: &mut Self::Thread,
        place: &Self::Place<T>,
        value: T,
    );

    /// Called every few operations, outside every section.
    fn pause(_thread: &mut Self::Thread) {}

    /// Frees some of what was retired, if the design can be asked to.
    fn flush(&self) {}
}

/// [`Replace`] for a design, by what is its own: its place of a `T` and what a thread holds, and an
/// expression for each method. Without `thread` nothing is held. Its freed objects are counted
/// apart. Designs that differ by a type say where, by `freed`: a static in their impl would be one
/// for all of them.
macro_rules! replace {
    (
        $(@[$($generics:tt)*])? $name:ty => $place:ty, $thread:ty;
        place: |$place_in:pat_param, $object:ident| $make:expr;
        $(thread: |$thread_in:pat_param| $register:expr;)?
        read: |$read_in:pat_param, $by:pat_param, $from:ident, $look:ident| $read:expr;
        replace: |$replace_in:pat_param, $with:pat_param, $at:ident, $value:ident| $replace:expr;
        $(pause: |$pauses:ident| $pause:expr;)?
        $(flush: |$flush_in:pat_param| $flush:expr;)?
        $(freed: $freed:expr;)?
    ) => {
        impl $(<$($generics)*>)? $crate::serve::Replace for $name {
            type Place<T: Send + Sync + 'static> = $place;
            type Thread = $thread;

            fn place<T: ::quiescence::Weigh + Send + Sync + 'static>(
                &self,
                $object: T,
            ) -> Self::Place<T> {
                let $place_in = self;
                $make
            }

            fn thread(&self) -> Self::Thread {
                $(
                    let $thread_in = self;
                    $register
                )?
            }

            fn freed() -> &'static ::quiescence::sync::Counter {
                static FREED: ::quiescence::sync::Counter = ::quiescence::sync::Counter::new();
                [$($freed,)? &FREED][0]
            }

            #[inline(always)]
            fn read<T: Send + Sync + 'static, R>(
                &self,
                thread: &mut Self::Thread,
                $from: &Self::Place<T>,
                $look: impl FnOnce(&T) -> R,
            ) -> R {
                let ($read_in, $by) = (self, thread);
                $read
            }

            #[inline(always)]
            fn replace<T: Send + Sync + 'static>(
                &self,
                thread: &mut Self::Thread,
                $at: &Self::Place<T>,
                $value: T,
            ) {
                let ($replace_in, $with) = (self, thread);
                $replace;
            }

            $(
                #[inline(always)]
                fn pause($pauses: &mut Self::Thread) {
                    $pause;
                }
            )?

            $(
                fn flush(&self) {
                    let $flush_in = self;
                    $flush;
                }
            )?
        }
    };
}
pub(crate) use replace;

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use super::*;

    /// What is replaced is dropped, sooner or later; what is in the place can be read and goes
    /// with it.
    pub(crate) fn keeps_its_word<R: Replace>(name: &str) {
        let scheme = R::default();
        let counted = Arc::new(());
        let place = scheme.place((0, Arc::clone(&counted)));
        let mut thread = scheme.thread();
        for i in 1..=1000_u32 {
            scheme.replace(&mut thread, &place, (i, Arc::clone(&counted)));
            assert_eq!(scheme.read(&mut thread, &place, |value| value.0), i);
            R::pause(&mut thread);
        }
        drop((thread, place));
        for _ in 0..10_000 {
            if Arc::strong_count(&counted) == 1 {
                break;
            }
            scheme.flush();
            std::thread::yield_now();
        }
        drop(scheme);
        let left = Arc::strong_count(&counted) - 1;
        // sdd and crossbeam keep a few until a thread retires again.
        assert!(left < 300, "{left} of 1,000 objects of {name} are left");
    }
}
