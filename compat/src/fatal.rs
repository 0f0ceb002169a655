//! Messages about misuse of the interface.
//!
//! If liburcu would assert, wait for ever or use freed memory, the message names the mistake and
//! what to do, and the process aborts ([`fatal`]): these functions have no error to return. If
//! liburcu survives the mistake, programs may have made it for years: it is reported once, and the
//! call does whatever harms least ([`tolerated`]). With `QUIESCENCE_DEBUG=1` these mistakes abort
//! too, and the library makes the checks that take time.
//!
//! A message needs no memory: there may be none left, and the caller may be a signal handler.

use std::ffi::{CStr, c_char, c_uint};
use std::fmt;
use std::io::Write;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use quiescence::liburcu_readers::system;

use crate::flavor::Flavor;

/// Prints `what`, the mistake and what to do about it, and aborts the process.
#[cold]
pub(crate) fn fatal(what: fmt::Arguments<'_>) -> ! {
    warn(what);
    std::process::abort()
}

/// Prints `what`; the process continues.
#[cold]
pub(crate) fn warn(what: fmt::Arguments<'_>) {
    say(format_args!("liburcu (quiescence): {what}\n"));
}

/// Mistakes that liburcu survives.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mistake {
    /// `rcu_barrier` in a section.
    BarrierInside,
    /// An unlock outside of any section.
    UnlockOutside,
    /// A thread is unregistered in a section.
    UnregisterInside,
    /// A thread that is not registered waits for a grace period in a section.
    WaitUnregistered,
    /// A state is polled that this flavour has not returned.
    StateNotGiven,
}

/// Prints `what`, once for each kind of mistake. With `QUIESCENCE_DEBUG=1` the process aborts.
#[cold]
pub(crate) fn tolerated(mistake: Mistake, what: fmt::Arguments<'_>) {
    static SAID: AtomicU32 = AtomicU32::new(0);
    if debugging() {
        fatal(what);
    }
    let bit = 1 << mistake as u32;
    // Relaxed: exactly one thread finds the bit clear.
    if SAID.fetch_or(bit, Relaxed) & bit == 0 {
        warn(format_args!("{what} (reported once; with QUIESCENCE_DEBUG=1 the process aborts)"));
    }
}

/// The cached value of a [`variable`] that has not been read.
pub(crate) const UNREAD: u64 = u64::MAX;

/// The meaning of an environment variable, or `usual`. The variable is read once. A value without a
/// meaning is reported and ignored. Allocates nothing, and takes no lock that a fork could leave
/// held in the child.
pub(crate) fn variable(
    kept: &AtomicU64,
    name: &CStr,
    usual: u64,
    wanted: &str,
    meaning: impl Fn(&str) -> Option<u64>,
) -> u64 {
    // Relaxed: threads that read it at the same time find the same value.
    let known = kept.load(Relaxed);
    if known != UNREAD {
        return known;
    }
    let meant = system::with(name, |said| {
        let text = str::from_utf8(said).ok();
        let meant = text.and_then(&meaning).filter(|meant| *meant != UNREAD);
        // Exactly one thread finds it unread.
        if meant.is_none() && kept.swap(usual, Relaxed) == UNREAD && !said.is_empty() {
            system::complain(name, said, wanted);
        }
        meant
    });
    kept.store(meant.unwrap_or(usual), Relaxed);
    meant.unwrap_or(usual)
}

/// Prints a line without a lock, in one `write` if the system takes it whole: another thread may be
/// printing, or this one may have been interrupted while it did. Preserves `errno`, and is no
/// cancellation point, unlike libc's `write`.
fn say(line: fmt::Arguments<'_>) {
    let mut bytes = [0_u8; 1024];
    let mut room = &mut bytes[..];
    // A line that is too long is cut.
    _ = room.write_fmt(line);
    let length = 1024 - room.len();
    system::say(&bytes[..length]);
}

/// Whether to make the checks that take time: `QUIESCENCE_DEBUG=1`.
pub(crate) fn debugging() -> bool {
    static DEBUGGING: AtomicU64 = AtomicU64::new(UNREAD);
    let meaning = |said: &str| match said {
        "0" => Some(0),
        "1" => Some(1),
        _ => None,
    };
    variable(&DEBUGGING, c"QUIESCENCE_DEBUG", 0, "0 or 1", meaning) != 0
}

exported! {
    /// Prints `what`, a C string, and aborts; for the thin libraries.
    fn quiescence_urcu_fatal(flavor: c_uint, what: *const c_char) -> ! {
        let what = CStr::from_ptr(what).to_str().unwrap_or_default();
        fatal(format_args!("{}: {what}", Flavor::from_raw(flavor)))
    }

    /// Reports an unlock outside a section, once, and returns.
    fn quiescence_urcu_unlock_outside(flavor: c_uint, what: *const c_char) {
        let what = CStr::from_ptr(what).to_str().unwrap_or_default();
        let flavor = Flavor::from_raw(flavor);
        tolerated(Mistake::UnlockOutside, format_args!("{flavor}: {what}"));
    }

    /// Whether `QUIESCENCE_DEBUG=1` asks for the checks that take time.
    fn quiescence_urcu_debugging() -> bool { debugging() }
}
