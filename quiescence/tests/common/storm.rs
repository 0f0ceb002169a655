//! Signals in great number.

use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use super::OnDrop;

/// Has `handler` called for `signal` in this process.
pub(crate) fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: integers, and an empty set of signals, which is all zero.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: a handler of this type, and no thread asks for the old one.
    assert_eq!(unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) }, 0);
}

/// What `signal` does in this process: the handler, or `SIG_DFL`.
pub(crate) fn handler_of(signal: libc::c_int) -> usize {
    // SAFETY: plain data, for which zero is a value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: changes nothing, and writes to `action`.
    assert_eq!(unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) }, 0);
    action.sa_sigaction
}

/// A thread that gets signals.
#[derive(Default)]
pub(crate) struct Target {
    thread: OnceLock<libc::pthread_t>,
    has_ended: Mutex<bool>,
}

impl Target {
    /// Says that the calling thread is the one, until what is returned goes, which calls `again`.
    pub(crate) fn is_here(&self, mut again: impl FnMut()) -> impl FnMut() {
        // SAFETY: asks for a number.
        self.thread.set(unsafe { libc::pthread_self() }).unwrap();
        let at_the_end = OnDrop(|| *self.has_ended.lock().unwrap() = true);
        move || {
            let _ = &at_the_end;
            again();
        }
    }

    /// Sends `signal` to the thread, and panics if that has ended, as one does that panics.
    pub(crate) fn send(&self, signal: libc::c_int) {
        let thread = *self.thread.wait();
        let has_ended = self.has_ended.lock().unwrap();
        assert!(!*has_ended, "a thread that gets signals has ended");
        // SAFETY: a thread that does not end before it has the lock.
        assert_eq!(unsafe { libc::pthread_kill(thread, signal) }, 0);
    }
}

/// Sends `signal` in turn to some threads. A thread that does not run takes but one of them: this
/// one sleeps, if shortly, for when it wakes it interrupts, as one that yields does not.
pub(crate) fn send_many(signal: libc::c_int, targets: &[Target]) {
    for _ in 0..32 {
        targets.iter().for_each(|target| target.send(signal));
        (0..100).for_each(|_| std::hint::spin_loop());
    }
    thread::sleep(Duration::from_micros(1));
}

/// Sends `signal` in turn to two threads, each of which does one of these again and again, until
/// `enough`. Each calls `first` before a signal comes.
pub(crate) fn beside(
    signal: libc::c_int,
    first: impl Fn() + Sync,
    work: [&(dyn Fn() + Sync); 2],
    enough: impl Fn() -> bool,
) {
    let targets = [Target::default(), Target::default()];
    let begin = |thread: usize| {
        first();
        targets[thread].is_here(work[thread])
    };
    super::beside(2, begin, || {
        while !enough() {
            send_many(signal, &targets);
        }
    });
}
