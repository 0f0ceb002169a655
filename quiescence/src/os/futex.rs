//! Sleeping until a word changes: the futex, with a portable twin.
//!
//! The twin (other systems, and loom) keeps one lock and one condition variable for all words; a
//! wake-up rouses every sleeper, who looks at its own word again.

use std::time::Duration;

use super::sync::AtomicU32;

/// Sleeps while `word` is `value`, but no longer than `most`; may return early. Call it in a loop.
///
/// Returns whether it has slept for as long as it may.
pub(crate) fn wait(word: &AtomicU32, value: u32, most: Option<Duration>) -> bool {
    imp::wait(word, value, most)
}

/// As [`wait`], where those who wake are not ours: the word is known to the kernel as one that processes may share.
pub(crate) fn wait_shared(word: &AtomicU32, value: u32, most: Option<Duration>) {
    imp::wait_shared(word, value, most);
}

/// Wakes one that sleeps by [`wait_shared`]. The word must have been changed before.
pub(crate) fn wake_shared(word: &AtomicU32) {
    imp::wake_shared(word);
}

/// Wakes whoever sleeps on `word`. The word must have been changed before.
pub(crate) fn wake_all(word: &AtomicU32) {
    imp::wake_all(word);
}

#[cfg(all(target_os = "linux", not(loom)))]
mod imp {
    use super::{AtomicU32, Duration};
    use rustix::thread::futex::{self, Timespec};

    pub(super) fn wait(word: &AtomicU32, value: u32, most: Option<Duration>) -> bool {
        sleep(word, futex::Flags::PRIVATE, value, most)
    }

    pub(super) fn wait_shared(word: &AtomicU32, value: u32, most: Option<Duration>) {
        sleep(word, futex::Flags::empty(), value, most);
    }

    fn sleep(word: &AtomicU32, flags: futex::Flags, value: u32, most: Option<Duration>) -> bool {
        // Too long for the kernel is for ever.
        let most = most.and_then(|most| Timespec::try_from(most).ok());
        // Whatever else it returns (woken, the value differs, interrupted), the caller looks again.
        futex::wait(word, flags, value, most.as_ref()) == Err(rustix::io::Errno::TIMEDOUT)
    }

    pub(super) fn wake_shared(word: &AtomicU32) {
        // As in `wake_all`.
        let _ = futex::wake(word, futex::Flags::empty(), 1);
    }

    pub(super) fn wake_all(word: &AtomicU32) {
        // It can fail for a bad address only, and this one is a reference.
        let _ = futex::wake(word, futex::Flags::PRIVATE, i32::MAX.cast_unsigned());
    }
}

#[cfg(any(not(target_os = "linux"), loom))]
mod imp {
    use super::{AtomicU32, Duration};
    use crate::os::sync::{self, Condvar, Mutex};
    use std::sync::atomic::Ordering::Relaxed;

    #[cfg(not(loom))]
    static LOCK: Mutex<()> = Mutex::new(());
    #[cfg(not(loom))]
    static CHANGED: Condvar = Condvar::new();
    #[cfg(loom)]
    loom::lazy_static! {
        static ref LOCK: Mutex<()> = Mutex::new(());
        static ref CHANGED: Condvar = Condvar::new();
    }

    pub(super) fn wait(word: &AtomicU32, value: u32, most: Option<Duration>) -> bool {
        let guard = sync::lock(&LOCK);
        // Relaxed: the waker takes the lock after it changed the word, so either this load sees the
        // change or the sleeper is on the condition variable before the waker notifies.
        word.load(Relaxed) == value && sync::wait_at_most(&CHANGED, guard, most).1
    }

    pub(super) fn wait_shared(word: &AtomicU32, value: u32, most: Option<Duration>) {
        wait(word, value, most);
    }

    pub(super) fn wake_shared(word: &AtomicU32) {
        wake_all(word);
    }

    pub(super) fn wake_all(_word: &AtomicU32) {
        drop(sync::lock(&LOCK));
        CHANGED.notify_all();
    }
}
