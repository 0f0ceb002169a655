//! Sleeping until a word changes: the futex, with a portable twin.
//!
//! The twin (other systems, loom, and if `QUIESCENCE_FUTEX=portable` is in the environment) keeps
//! one lock and one condition variable for all words; a wake-up wakes every sleeper, each of which
//! loads its own word again. Which of the two is used is decided once, at the first use: a sleeper
//! of one would not see a wake-up of the other. Another value of the variable is reported on
//! standard error.
//!
//! A fork takes the twin's lock ([`hold`]). A signal handler must not take it, so sections in
//! handlers need the kernel's futex.

use std::time::Duration;

use super::sync::AtomicU32;

#[cfg(target_os = "linux")]
use super::calls::{futex_wait, futex_wake};
#[cfg(target_os = "linux")]
use super::fence::Choice;

/// Whether this process uses the twin; decided by the first caller.
#[cfg(target_os = "linux")]
fn is_portable() -> bool {
    static CHOICE: Choice = Choice::new(c"QUIESCENCE_FUTEX");
    CHOICE.is_portable(|| cfg!(loom))
}

/// Sleeps while `word` is `value`, but no longer than `most`; may return early. Call it in a loop.
///
/// Returns whether it has slept until `most` ran out.
#[inline(never)]
pub(crate) fn wait(word: &AtomicU32, value: u32, most: Option<Duration>) -> bool {
    #[cfg(target_os = "linux")]
    if !is_portable() {
        return futex_wait(word, true, value, most);
    }
    twin::wait(word, value, most)
}

/// As [`wait`], for wake-ups from outside the library: the kernel takes the word as one that
/// processes may share.
pub(crate) fn wait_shared(word: &AtomicU32, value: u32, most: Option<Duration>) {
    #[cfg(target_os = "linux")]
    if !is_portable() {
        futex_wait(word, false, value, most);
        return;
    }
    let most = most.map_or(twin::POLL, |most| most.min(twin::POLL));
    twin::wait(word, value, Some(most));
}

/// Wakes the threads that sleep in [`wait_shared`]. The word must have been changed before.
pub(crate) fn wake_shared(word: &AtomicU32) {
    wake(word, false);
}

/// Wakes the threads that sleep on `word`. The word must have been changed before.
pub(crate) fn wake_all(word: &AtomicU32) {
    wake(word, true);
}

fn wake(_word: &AtomicU32, _is_private: bool) {
    #[cfg(target_os = "linux")]
    if !is_portable() {
        return futex_wake(_word, _is_private);
    }
    twin::wake();
}

pub(super) mod twin {
    use super::{AtomicU32, Duration};
    use crate::os::forking::ForkMutex;
    use crate::os::sync::{self, Condvar, Rank, const_unless_loom};
    use std::sync::atomic::Ordering::Relaxed;

    const_unless_loom! {
        /// Last of all: a thread that holds another lock may wake a sleeper.
        pub(crate) static LOCK: ForkMutex<()> = ForkMutex::new(Rank::Futex, ());
        static CHANGED: Condvar = Condvar::new();
    }

    pub(super) fn wait(word: &AtomicU32, value: u32, most: Option<Duration>) -> bool {
        let guard = LOCK.lock();
        // Relaxed: the waker takes the lock after it changed the word, so either this load sees the
        // change or the sleeper is on the condition variable before the waker notifies.
        word.load(Relaxed) == value && sync::wait_at_most(&CHANGED, guard, most).1
    }

    /// How often a sleeper loads its word if the wake-up may be the kernel's: a reader compiled
    /// against liburcu does not know the twin.
    pub(super) const POLL: Duration = Duration::from_millis(10);

    pub(super) fn wake() {
        drop(LOCK.lock());
        CHANGED.notify_all();
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{AtomicU32, is_portable, wait, wait_shared, wake_all};
    use crate::common::{again::*, processes::*, threads::until};
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::{Acquire, Release, SeqCst};
    use std::thread;
    use std::time::{Duration, Instant};

    /// A process whose futex is the twin.
    const PORTABLE: &[(&str, &str)] = &[("QUIESCENCE_FUTEX", "portable")];

    #[test]
    #[cfg_attr(miri, ignore = "a child process")]
    fn the_environment_chooses_the_twin() {
        in_its_own_process!(PORTABLE);
        assert!(is_portable());
        let word = AtomicU32::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                while word.load(Acquire) == 0 {
                    wait(&word, 0, None);
                }
            });
            // Release: pairs with the sleeper's load.
            word.store(1, Release);
            wake_all(&word);
        });
    }

    /// A reader that is compiled against liburcu wakes by the kernel's futex, which the twin does
    /// not see.
    #[test]
    #[cfg_attr(miri, ignore = "a child process")]
    fn the_twin_does_without_wake_ups_of_compiled_readers() {
        in_its_own_process!(PORTABLE);
        // The word stays as it is, and no thread wakes this one: it returns, to load it again.
        wait_shared(&AtomicU32::new(0), 0, None);
    }

    /// A child finds the twin's lock free, whichever thread held it when the fork began.
    #[test]
    #[cfg_attr(miri, ignore = "a child process")]
    fn a_child_finds_the_twin_free() {
        in_its_own_process!(PORTABLE);
        // Forks take the locks once there is a domain.
        drop(crate::Domain::new().read());
        let (is_held, is_forked) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let held = super::twin::LOCK.lock();
                is_held.store(true, SeqCst);
                // The fork waits for this thread. A fork that did not would end long before.
                let began = Instant::now();
                until(|| is_forked.load(SeqCst) || began.elapsed() >= Duration::from_millis(500));
                drop(held);
            });
            until(|| is_held.load(SeqCst));
            in_child(|| assert!(super::twin::LOCK.is_free(), "the lock is held in the child"));
            is_forked.store(true, SeqCst);
        });
    }
}
