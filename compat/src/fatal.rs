//! What is said where a program uses the interface as it must not be used; then the process ends.
//!
//! liburcu asserts there, or goes on and fails somewhere else later. A C program can neither be given an error by these
//! functions nor go on: so the mistake is named, with what to do, and the process aborts. What costs something to look
//! for is looked for where `QUIESCENCE_DEBUG=1` is in the environment.

use std::ffi::{CStr, c_char, c_uint};
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;

use crate::flavor::Flavor;

/// Says what is wrong, with the advice that `what` ends with, and ends the process.
#[cold]
pub(crate) fn fatal(what: fmt::Arguments<'_>) -> ! {
    // In one piece, past any lock: another thread may be writing, or this one may have been interrupted in it.
    let said = format!("liburcu (quiescence): {what}\n");
    // SAFETY: standard error, which is not closed here.
    let mut stderr = ManuallyDrop::new(unsafe { File::from_raw_fd(libc::STDERR_FILENO) });
    // There is nobody to tell if that fails.
    let _ = stderr.write_all(said.as_bytes());
    std::process::abort()
}

/// Whether mistakes are looked for that cost something to find: `QUIESCENCE_DEBUG=1`.
pub(crate) fn debugging() -> bool {
    const UNKNOWN: u8 = 2;
    static DEBUGGING: AtomicU8 = AtomicU8::new(UNKNOWN);
    // Relaxed: whoever asks at the same time finds the same.
    match DEBUGGING.load(Relaxed) {
        UNKNOWN => {
            // SAFETY: a C string.
            let found = unsafe { libc::getenv(c"QUIESCENCE_DEBUG".as_ptr()) };
            // SAFETY: null, or a C string that stays as long as nobody changes the environment.
            let on = !found.is_null() && unsafe { CStr::from_ptr(found) } == c"1";
            DEBUGGING.store(u8::from(on), Relaxed);
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

/// Whether `QUIESCENCE_DEBUG=1` asks for checks that cost something, for the thin libraries.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn quiescence_urcu_debugging() -> bool {
    debugging()
}
