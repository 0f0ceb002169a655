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
    warn(what);
    std::process::abort()
}

/// Says what is wrong where the process can go on.
#[cold]
pub(crate) fn warn(what: fmt::Arguments<'_>) {
    say(&format!("liburcu (quiescence): {what}\n"));
}

/// Says on standard error that a variable of the environment is not what is `wanted`. To be called once for each.
#[cold]
pub(crate) fn complain(name: &str, found: &str, wanted: &str) {
    say(&format!("quiescence: {name}={found} is not {wanted}: it is as if nothing were set\n"));
}

/// In one piece, past any lock: another thread may be writing, or this one may have been interrupted in it.
fn say(line: &str) {
    // SAFETY: standard error, which is not closed here.
    let mut stderr = ManuallyDrop::new(unsafe { File::from_raw_fd(libc::STDERR_FILENO) });
    // There is nobody to tell if that fails.
    let _ = stderr.write_all(line.as_bytes());
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
            let said = if found.is_null() {
                c""
            } else {
                // SAFETY: a C string that stays as long as nobody changes the environment.
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

/// Whether `QUIESCENCE_DEBUG=1` asks for checks that cost something, for the thin libraries.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn quiescence_urcu_debugging() -> bool {
    debugging()
}
