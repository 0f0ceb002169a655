//! The signal: the first one from `SIGRTMIN+1` that the program does not use when the first stack
//! is wanted.
//!
//! A signal counts as used if it has a handler or is ignored, or if a thread blocks it that does
//! not block everything, which is how programs prepare for `signalfd` and `sigwait`.
//! `QUIESCENCE_STALL_SIGNAL` in the environment names another signal, or is `off`. Any other value,
//! or a signal that already has a handler, is reported.
//!
//! The handler is installed once. The program may replace it later. So the library checks just
//! before each signal, and sends none to a handler of the program, nor if the default action would
//! end the process. **What cannot be excluded**: that the program replaces the handler between the
//! check and the signal, or while the signal waits for its thread to run. No system call does both.

use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;

use libc::{c_int, c_void, siginfo_t};

use super::super::StackMissing;
use super::unwind;
use crate::os::{environment, thread_state};

/// The signal; 0 until it is chosen, and negative if there is none. Written by the reporter.
static SIGNAL: AtomicI32 = AtomicI32::new(0);
const NONE_FREE: i32 = -1;
const UNSUPPORTED: i32 = -2;

const VARIABLE: &CStr = c"QUIESCENCE_STALL_SIGNAL";

/// Whether the program's user wants stacks at all.
pub(super) fn wanted() -> Result<(), StackMissing> {
    let is_off = environment::is(VARIABLE, "off");
    if is_off { Err(StackMissing::TurnedOff) } else { Ok(()) }
}

/// The signal, chosen and given its handler on the first call, if that is still its handler.
pub(super) fn usable() -> Result<c_int, StackMissing> {
    // Relaxed: one thread asks, and only it writes.
    if SIGNAL.load(Relaxed) == 0 {
        SIGNAL.store(choose(), Relaxed);
    }
    match SIGNAL.load(Relaxed) {
        NONE_FREE => Err(StackMissing::NoSignalFree),
        UNSUPPORTED => Err(StackMissing::Unsupported),
        signal if action(signal, None).is_some_and(|now| is_ours(&now)) => Ok(signal),
        signal => Err(StackMissing::SignalTaken(signal)),
    }
}

fn choose() -> i32 {
    let said = environment::value(VARIABLE).filter(|said| !said.is_empty());
    if !finds_frames() {
        return UNSUPPORTED;
    }
    if let Some(said) = said {
        let may_be = |signal: &c_int| (1..=libc::SIGRTMAX()).contains(signal);
        let signal = environment::parse::<c_int>(said.as_bytes()).filter(may_be);
        if let Some(signal) = signal.filter(|signal| install(*signal)) {
            return signal;
        }
        let wanted = "\"off\", or the number of a signal that has no handler";
        environment::complain(VARIABLE, said.as_bytes(), wanted);
    }
    let waited_for = thread_state::blocked_apart();
    let is_free = |signal: &c_int| waited_for >> (signal - 1) & 1 == 0;
    let mut free = (libc::SIGRTMIN() + 1..=libc::SIGRTMAX()).filter(is_free);
    free.find(|signal| install(*signal)).unwrap_or(NONE_FREE)
}

/// Whether frames can be found without a lock. Also has the unwinder do what it does once.
fn finds_frames() -> bool {
    // SAFETY: looks a name up.
    if unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) }.is_null() {
        return false;
    }
    let mut frames = 0;
    unwind::frames(|_| {
        frames += 1;
        frames < 3
    });
    frames != 0
}

/// Whether it is our handler that is installed.
fn is_ours(now: &libc::sigaction) -> bool {
    let ours = super::handler as extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
    now.sa_sigaction == ours as usize
}

/// Makes the handler the signal's, unless the program has one.
fn install(signal: c_int) -> bool {
    let old = action(signal, None);
    let ours = super::handler as extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
    let is_free = |old: &libc::sigaction| old.sa_sigaction == libc::SIG_DFL || is_ours(old);
    if !old.as_ref().is_some_and(is_free) {
        return false;
    }
    // SAFETY: plain data, for which zero is a value.
    let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
    new.sa_sigaction = ours as usize;
    new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: fills the set that it is given.
    unsafe { libc::sigfillset(&raw mut new.sa_mask) };
    match action(signal, Some(&new)) {
        Some(old) if is_free(&old) => true,
        Some(theirs) => {
            // Somebody was quicker, between the two calls.
            action(signal, Some(&theirs));
            false
        }
        None => false,
    }
}

/// Sets what a signal does, if `new` says so. Returns what it did before, if there is such a
/// signal.
fn action(signal: c_int, new: Option<&libc::sigaction>) -> Option<libc::sigaction> {
    // SAFETY: plain data, for which zero is a value.
    let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
    let new = new.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `new` is null or an action whose handler lives for ever, or one that was there
    // before;
    // `old` is written.
    (unsafe { libc::sigaction(signal, new, &raw mut old) } == 0).then_some(old)
}
