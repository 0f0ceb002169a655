//! What a rival can serve: a trait for each kind of case that is more than one loop. (Of a loop, as
//! of sections or of counts, the registry takes a function: how long so many batches took.)
//!
//! A measurement is compiled once for each rival, so that none pays for a call that another one
//! saves. Two more traits stand beside their only user: [`Config`](crate::advise::Config) and
//! [`Table`](crate::advise::Table), the workloads of `rcu advise`; and so do those whose calls are
//! virtual: [`Flavour`](crate::cases::wait::Flavour), [`Caller`](crate::cases::enqueue::Caller) and
//! the sites of [`boot`](crate::cases::boot) and [`blocked`](crate::cases::blocked).

use std::sync::Arc;
use std::time::Duration;

use crate::cases::loops::repeat;
use crate::cases::object::Freed;

/// Reads four words whole, which are now and then replaced: see
/// [`cases::cells`](crate::cases::cells).
pub(crate) trait Cell {
    /// Loads in so many batches; how long that took.
    ///
    /// # Panics
    /// If the words of one load were not of one store.
    fn load(batches: u64) -> Duration;

    /// Stores [`words(number)`](crate::cases::cells::words).
    fn store(number: u64);

    /// Stores in so many batches; how long that took.
    ///
    /// # Panics
    /// If something else is there afterwards than was stored by somebody.
    fn stores(batches: u64) -> Duration {
        let number = std::cell::Cell::new(0);
        let elapsed = repeat(batches, || {
            number.set(number.get() + 1);
            Self::store(number.get());
            1
        });
        Self::load(1);
        elapsed
    }
}

/// A place with an `Arc` in it, which is replaced.
pub(crate) trait StoreArc {
    /// The number behind the `Arc`.
    fn load() -> u64;
    /// Replaces the `Arc`.
    fn store(arc: Arc<u64>);
    /// Has the references that were replaced given up, if the design can be asked to.
    fn flush() {}
}

/// A domain, or a lock, of which there may be thousands.
pub(crate) trait Domain: Sync {
    /// One that was not used yet.
    fn new() -> Self;
    /// Enters a section and leaves it.
    fn read(&self);
    /// Waits for those that are in a section.
    fn wait(&self);
}

/// A way to protect an object that readers look at from the thread that replaces it.
///
/// All of them allocate each new object, and give up the old one as their users would.
pub(crate) trait Replace: Sized + Send + Sync + 'static {
    /// A pointer to an object, never empty.
    type Place<T: Send + Sync + 'static>: Send + Sync;
    /// What a thread holds while it works: a registration, mostly nothing.
    type Thread<'a>;

    /// What all places share: a collector, mostly nothing.
    fn new() -> Self;
    /// A place with this object in it.
    fn place<T: quiescence::Weigh + Send + Sync + 'static>(&self, value: T) -> Self::Place<T>;
    /// Registers the calling thread.
    fn thread(&self) -> Self::Thread<'_>;
    /// Where the objects of this design, and of no other, are counted when they are freed.
    fn freed() -> &'static Freed;

    /// Hands the object to `look`, inside the read-side section.
    fn read<T: Send + Sync + 'static, R>(
        &self,
        thread: &mut Self::Thread<'_>,
        place: &Self::Place<T>,
        look: impl FnOnce(&T) -> R,
    ) -> R;

    /// Replaces the object, and retires the old one.
    fn replace<T: Send + Sync + 'static>(
        &self,
        thread: &mut Self::Thread<'_>,
        place: &Self::Place<T>,
        value: T,
    );

    /// Called every few operations, outside every section.
    fn pause(_thread: &mut Self::Thread<'_>) {}

    /// Frees some of what was retired, if the design can be asked to.
    fn flush(&self) {}
}

/// [`Replace`] for a design, by what is its own: its place of a `T` and what a thread holds, and an
/// expression for each method. Its freed objects are counted apart.
macro_rules! replace {
    (
        $(const $constant:ident: $of:ty,)? $name:ty => $place:ty, $thread:ty;
        new: $new:expr;
        place: |$place_in:pat_param, $object:ident| $make:expr;
        thread: |$thread_in:pat_param| $register:expr;
        read: |$read_in:pat_param, $by:pat_param, $from:ident, $look:ident| $read:expr;
        replace: |$replace_in:pat_param, $at:ident, $value:ident| $replace:expr;
        $(pause: |$pauses:ident| $pause:expr;)?
        $(flush: |$flush_in:pat_param| $flush:expr;)?
    ) => {
        impl $(<const $constant: $of>)? $crate::serve::Replace for $name {
            type Place<T: Send + Sync + 'static> = $place;
            type Thread<'a> = $thread;

            fn new() -> Self {
                $new
            }

            fn place<T: ::quiescence::Weigh + Send + Sync + 'static>(
                &self,
                $object: T,
            ) -> Self::Place<T> {
                let $place_in = self;
                $make
            }

            fn thread(&self) -> Self::Thread<'_> {
                let $thread_in = self;
                $register
            }

            fn freed() -> &'static $crate::cases::object::Freed {
                static FREED: $crate::cases::object::Freed = $crate::cases::object::Freed::new();
                &FREED
            }

            #[inline(always)]
            fn read<T: Send + Sync + 'static, R>(
                &self,
                thread: &mut Self::Thread<'_>,
                $from: &Self::Place<T>,
                $look: impl FnOnce(&T) -> R,
            ) -> R {
                let ($read_in, $by) = (self, thread);
                $read
            }

            #[inline(always)]
            fn replace<T: Send + Sync + 'static>(
                &self,
                _thread: &mut Self::Thread<'_>,
                $at: &Self::Place<T>,
                $value: T,
            ) {
                let $replace_in = self;
                $replace;
            }

            $(
                #[inline(always)]
                fn pause($pauses: &mut Self::Thread<'_>) {
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
    use super::*;

    /// What is replaced is dropped, sooner or later; what is in the place can be read and goes
    /// with it.
    pub(crate) fn keeps_its_word<R: Replace>(name: &'static str) {
        let scheme = R::new();
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
