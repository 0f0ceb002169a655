//! What is said where a program uses the interface as it must not be used.
//!
//! Where liburcu asserts, waits for ever or uses freed memory, the mistake is named, with what to
//! do, and the process aborts ([`fatal`]): these functions have no error to return. Where liburcu
//! survives, a program that has run for years runs on: its mistake is named once, and the call does
//! what does least harm ([`tolerated`]). Under `QUIESCENCE_DEBUG=1` it aborts there as well, and
//! mistakes are looked for that cost something to find.
//!
//! A message needs no memory: there may be none left, and the caller may be a signal handler.

use std::ffi::{CStr, c_char, c_uint};
use std::fmt;
use std::io::ErrorKind::Interrupted;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU32};

use crate::errno_guard::with_errno;
use crate::flavor::Flavor;

/// Says what is wrong, with the advice that `what` ends with, and ends the process.
#[cold]
pub(crate) fn fatal(what: fmt::Arguments<'_>) -> ! {
    warn(what);
    std::process::abort()
}

/// Says what is wrong where the process can go on.
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
    /// A grace period in a section of a thread that is not registered.
    WaitUnregistered,
}

/// Says what is wrong, once for each kind of mistake. With `QUIESCENCE_DEBUG=1` the process ends.
#[cold]
pub(crate) fn tolerated(mistake: Mistake, what: fmt::Arguments<'_>) {
    static SAID: AtomicU32 = AtomicU32::new(0);
    if debugging() {
        fatal(what);
    }
    let bit = 1 << mistake as u32;
    // Relaxed: one of the first threads says it.
    if SAID.fetch_or(bit, Relaxed) & bit == 0 {
        warn(format_args!("{what} (said once; QUIESCENCE_DEBUG=1 aborts where it happens)"));
    }
}

/// Says on standard error that a variable of the environment is not what is `wanted`. To be called
/// once for each.
#[cold]
pub(crate) fn complain(name: &str, found: &str, wanted: &str) {
    say(format_args!("quiescence: {name}={found} is not {wanted}: it is as if nothing were set\n"));
}

/// A text of limited length, without memory.
struct Line {
    bytes: [u8; 1024],
    length: usize,
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.length..];
        let taken = text.len().min(room.len());
        room[..taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.length += taken;
        Ok(())
    }
}

/// In one piece, past any lock: another thread may be writing, or this one may have been
/// interrupted in it. `errno` stays as it was, and a thread that was cancelled is not ended here,
/// as it would be in `write`.
fn say(line: fmt::Arguments<'_>) {
    let mut text = Line { bytes: [0; 1024], length: 0 };
    // It never fails: what is too long is cut.
    let _ = fmt::Write::write_fmt(&mut text, line);
    let mut left = &text.bytes[..text.length];
    with_errno(|| {
        while !left.is_empty() {
            let (from, length) = (left.as_ptr(), left.len());
            // SAFETY: so many bytes are there.
            let written =
                unsafe { libc::syscall(libc::SYS_write, libc::STDERR_FILENO, from, length) };
            match usize::try_from(written) {
                Ok(written) if written != 0 => left = left.get(written..).unwrap_or_default(),
                Ok(_) => return,
                // A failure cannot be reported.
                Err(_) if std::io::Error::last_os_error().kind() != Interrupted => return,
                Err(_) => {}
            }
        }
    });
}

/// Whether mistakes are looked for that cost something to find: `QUIESCENCE_DEBUG=1`.
pub(crate) fn debugging() -> bool {
    const UNKNOWN: u8 = 2;
    static DEBUGGING: AtomicU8 = AtomicU8::new(UNKNOWN);
    // Relaxed: threads that ask at the same time find the same.
    match DEBUGGING.load(Relaxed) {
        UNKNOWN => {
            // SAFETY: a C string.
            let found = unsafe { libc::getenv(c"QUIESCENCE_DEBUG".as_ptr()) };
            let said = if found.is_null() {
                c""
            } else {
                // SAFETY: a C string that stays as long as the environment is not changed.
                unsafe { CStr::from_ptr(found) }
            };
            let on = said == c"1";
            let is_first = DEBUGGING.swap(u8::from(on), Relaxed) == UNKNOWN;
            if is_first && !on && said != c"" && said != c"0" {
                complain("QUIESCENCE_DEBUG", &said.to_string_lossy(), "0 or 1");
            }
            on
        }
        known => known != 0,
    }
}

/// Says what is wrong, for the thin libraries.
///
/// # Safety
/// `what` is a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn quiescence_urcu_fatal(flavor: c_uint, what: *const c_char) -> ! {
    // SAFETY: by the contract.
    let what = unsafe { CStr::from_ptr(what) }.to_string_lossy();
    fatal(format_args!("{}: {what}", Flavor::from_raw(flavor).name()))
}

/// Says what is wrong with an unlock, once, and returns; for the thin libraries.
///
/// # Safety
/// `what` is a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn quiescence_urcu_unlock_outside(
    flavor: c_uint,
    what: *const c_char,
) {
    // SAFETY: by the contract.
    let what = unsafe { CStr::from_ptr(what) }.to_str().unwrap_or_default();
    let name = Flavor::from_raw(flavor).name();
    tolerated(Mistake::UnlockOutside, format_args!("{name}: {what}"));
}

/// Whether `QUIESCENCE_DEBUG=1` asks for checks that cost something, for the thin libraries.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn quiescence_urcu_debugging() -> bool {
    debugging()
}
