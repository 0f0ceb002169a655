//! The object that is replaced and retired, the same for all rivals: 64 bytes, or fewer, that are
//! counted when they are dropped.
//!
//! The count costs all rivals the same, and little: each thread of a measurement has a line of its
//! own and adds to it without a locked instruction; other threads (a library's worker, a thread in
//! its last destructors) share a line and pay for one. A rival's objects are counted apart from
//! those of others, since some rivals free the last few of them in another rival's measurement.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::serve::Replace;

/// Bytes of an object.
pub(crate) const OBJECT_BYTES: usize = 64;

/// Threads of a measurement that have a line of their own.
const LINE_GUARDS: usize = 8;

/// The line of all other threads.
const STANDING: usize = LINE_GUARDS;

/// Two cache lines, since CPUs fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Line(AtomicU64);

/// The objects of one design that were freed since the process began, by thread. A design has its
/// own, as a static.
#[derive(Debug)]
pub(crate) struct Freed([Line; LINE_GUARDS + 1]);

impl Freed {
    pub(crate) const fn new() -> Self {
        Self([const { Line(AtomicU64::new(0)) }; LINE_GUARDS + 1])
    }

    #[inline]
    pub(crate) fn count(&self) -> u64 {
        // Relaxed, here and in `Object::drop`: counts that order nothing.
        self.0.iter().map(|line| line.0.load(Ordering::Relaxed)).sum()
    }
}

thread_local! {
    // Const and without a destructor, so that the destructors of others can use it.
    static LINE_GUARD: Cell<usize> = const { Cell::new(STANDING) };
}

/// Words that count themselves when they are dropped: 64 bytes of them, or fewer.
#[derive(Debug)]
pub(crate) struct Object<S: Replace, const WORDS: usize = { OBJECT_BYTES / 8 }> {
    words: [u64; WORDS],
    scheme: PhantomData<fn() -> S>,
}

impl<S: Replace, const WORDS: usize> quiescence::Weigh for Object<S, WORDS> {
    const OWNS: bool = false;
}

impl<S: Replace, const WORDS: usize> Object<S, WORDS> {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self { words: [1; WORDS], scheme: PhantomData }
    }

    /// What a read of an object reads: 1.
    #[inline(always)]
    pub(crate) fn word(&self) -> u64 {
        self.words[0]
    }
}

impl<S: Replace, const WORDS: usize> Drop for Object<S, WORDS> {
    #[inline(always)]
    fn drop(&mut self) {
        let line_guard = LINE_GUARD.get();
        let freed = &S::freed().0[line_guard].0;
        if line_guard == STANDING {
            freed.fetch_add(1, Ordering::Relaxed);
        } else {
            // Only the thread in this line writes here.
            freed.store(freed.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }
}

/// The right to measure: one measurement at a time in a process, since the counts are of all.
pub(crate) struct Turn(#[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Turn {
    pub(crate) fn wait() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        // A measurement that panicked leaves nothing half done that the next one would see.
        Self(TURN.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Measures when it is the caller's turn, in a thread of its own: designs would leave in the
/// caller's what they keep for threads.
pub(crate) fn in_turn<R: Send>(measure: impl FnOnce() -> R + Send) -> R {
    let _turn = Turn::wait();
    thread::scope(|scope| scope.spawn(measure).join().expect("a measurement does not panic"))
}

/// Lets go who holds a section until this flag is set: dropped, also by a panic.
pub(crate) struct Release<'a>(pub(crate) &'a AtomicI32);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        // Relaxed: it ends the section and publishes nothing.
        self.0.store(1, Ordering::Relaxed);
    }
}

/// The line of the calling thread, until this is dropped.
pub(crate) struct LineGuard(PhantomData<*const ()>);

impl LineGuard {
    /// Takes the line of this number for the calling thread; beyond the last there is standing
    /// room.
    ///
    /// The caller holds a [`Turn`], and gives each of its threads another number.
    pub(crate) fn take(number: usize) -> Self {
        LINE_GUARD.set(number.min(STANDING));
        Self(PhantomData)
    }
}

impl Drop for LineGuard {
    fn drop(&mut self) {
        LINE_GUARD.set(STANDING);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::{InPlace, Locks};
    use crate::serve::Replace;

    struct Standard;

    impl Locks for Standard {
        type Of<T: Send + Sync + 'static> = std::sync::RwLock<T>;

        fn freed() -> &'static Freed {
            crate::serve::freed!()
        }
    }

    #[test]
    fn every_drop_is_counted_whoever_drops() {
        let _turn = Turn::wait();
        assert_eq!(size_of::<Object<InPlace<Standard>>>(), OBJECT_BYTES);
        let before = InPlace::<Standard>::freed().count();
        std::thread::scope(|scope| {
            for number in 0..LINE_GUARDS + 2 {
                scope.spawn(move || {
                    let _line_guard = LineGuard::take(number);
                    for _ in 0..1000 {
                        drop(Object::<InPlace<Standard>, 8>::new());
                    }
                });
            }
        });
        drop(Object::<InPlace<Standard>, 8>::new());
        assert_eq!(
            InPlace::<Standard>::freed().count() - before,
            1000 * (LINE_GUARDS as u64 + 2) + 1
        );
    }
}
