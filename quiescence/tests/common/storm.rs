//! Signals in great number, and the same tests once more in a process with another environment.

use std::process::Command;
#[cfg(unix)]
use std::sync::{Mutex, OnceLock};
#[cfg(unix)]
use std::thread;
#[cfg(unix)]
use std::time::Duration;

#[cfg(unix)]
use super::OnDrop;

/// Has `handler` called for `signal` in this process.
#[cfg(unix)]
pub(crate) fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: integers, and an empty set of signals, which is all zero.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: a handler of this type, and no thread asks for the old one.
    assert_eq!(unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) }, 0);
}

/// What `signal` does in this process: the handler, or `SIG_DFL`.
#[cfg(unix)]
pub(crate) fn handler_of(signal: libc::c_int) -> usize {
    // SAFETY: plain data, for which zero is a value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: changes nothing, and writes to `action`.
    assert_eq!(unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) }, 0);
    action.sa_sigaction
}

/// A thread that gets signals.
#[cfg(unix)]
#[derive(Default)]
pub(crate) struct Target {
    thread: OnceLock<libc::pthread_t>,
    has_ended: Mutex<bool>,
}

#[cfg(unix)]
impl Target {
    pub(crate) const fn new() -> Self {
        Self { thread: OnceLock::new(), has_ended: Mutex::new(false) }
    }

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
#[cfg(unix)]
pub(crate) fn send_many(signal: libc::c_int, targets: &[Target]) {
    for _ in 0..32 {
        targets.iter().for_each(|target| target.send(signal));
        (0..100).for_each(|_| std::hint::spin_loop());
    }
    thread::sleep(Duration::from_micros(1));
}

/// Sends `signal` in turn to two threads, each of which does one of these again and again, until
/// `enough`. Each calls `first` before a signal comes.
#[cfg(unix)]
pub(crate) fn beside(
    signal: libc::c_int,
    first: impl Fn() + Sync,
    work: [&(dyn Fn() + Sync); 2],
    enough: impl Fn() -> bool,
) {
    let targets = [Target::new(), Target::new()];
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

/// Runs all other tests of these modules once more in a process with this in its environment,
/// unless that is where we are. For a test of one of the modules.
pub(crate) fn again_in_a_process_with(modules: &[&str], name: &str, value: &str) {
    const MARK: &str = "QUIESCENCE_TESTED_AGAIN";
    if cfg!(miri) || std::env::var_os(MARK).is_some() {
        return super::portable_fences_are_in_force_if_asked_for();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(modules.iter().map(|module| format!("{module}::")));
    command.env(name, value).env(MARK, "1");
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "with {name}={value}: {told}");
    assert!(!told.contains("running 0 tests"), "{told}");
}
