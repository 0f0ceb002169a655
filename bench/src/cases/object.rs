//! The object that is replaced and retired, the same for all rivals: 64 bytes, or fewer, that are
//! counted when they are dropped; and the turns of those who measure by that.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

use parking_lot::{Mutex, MutexGuard};

use crate::serve::Replace;

/// Bytes of an object.
pub(crate) const OBJECT_BYTES: usize = 64;

/// Words that count themselves when they are dropped: 64 bytes of them, or fewer.
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
        S::freed().add(1);
    }
}

/// Waits for the right to measure: one measurement at a time in a process, since the counts are of
/// all.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock()
}

/// Measures when it is the caller's turn, in a thread of its own: designs would leave in the
/// caller's what they keep for threads.
pub(crate) fn in_turn<R: Send>(measure: impl FnOnce() -> R + Send) -> R {
    let _turn = turn();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::loops::tests::Slow;
    use crate::common::threads::threads;

    #[test]
    fn every_drop_is_counted_whoever_drops() {
        let _turn = turn();
        assert_eq!(size_of::<Object<Slow>>(), OBJECT_BYTES);
        let before = Slow::freed().sum();
        threads(34, |_| {
            for _ in 0..1000 {
                drop(Object::<Slow>::new());
            }
        });
        drop(Object::<Slow>::new());
        assert_eq!(Slow::freed().sum() - before, 1000 * 34 + 1);
    }
}
