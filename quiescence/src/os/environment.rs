//! What the environment says to the library, for those who may be in a signal handler.
//!
//! `std::env` locks and allocates; `getenv` of the C libraries of Linux does neither. It takes no
//! care of who changes the environment at the same time; but to do that while other threads run is
//! a fault anyway, and `unsafe` to say in Rust.

use std::ffi::{CStr, CString};
use std::fmt;
use std::io::Write;

/// Whether the variable has this value.
pub(crate) fn is(name: &CStr, value: &str) -> bool {
    imp::with(name, |found| found == value.as_bytes())
}

/// Says on standard error that the variable has a value which is neither of these, if it is so;
/// nothing at all is one. The thread that calls this has seen to it that it is done once.
pub(crate) fn complain_unless(name: &CStr, known: &[&str]) {
    imp::with(name, |found| {
        let is_known = |known: &&str| known.as_bytes() == found;
        if !found.is_empty() && !known.iter().any(is_known) {
            complain(name, found, format_args!("{known:?}"));
        }
    });
}

/// Says on standard error that a variable's value is not what is `wanted`. Neither locks nor
/// allocates; what does not fit into a line of 256 bytes is cut off.
pub(crate) fn complain(name: &CStr, found: &[u8], wanted: fmt::Arguments<'_>) {
    let mut line = [0_u8; 256];
    let (name, found) = (name.to_bytes().escape_ascii(), found.escape_ascii());
    let mut rest = &mut line[..255];
    // An error: it is full.
    let _ =
        write!(rest, "quiescence: {name}={found} is not {wanted}: it is as if nothing were set");
    let length = 255 - rest.len();
    line[length] = b'\n';
    imp::say(&line[..=length]);
}

/// The number that the variable has, if it has one.
pub(crate) fn number(name: &CStr) -> Option<u32> {
    imp::with(name, parse)
}

/// The number that these digits are.
pub(crate) fn parse<N: TryFrom<u64>>(digits: &[u8]) -> Option<N> {
    parse_u64(digits)?.try_into().ok()
}

#[inline(never)]
fn parse_u64(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// What the variable says, byte by byte, if there is one.
pub(crate) fn c_string(name: &CStr) -> Option<CString> {
    imp::with(name, |found| CString::new(found).ok())
}

/// What the variable says, if it says something.
pub(crate) fn value(name: &CStr) -> Option<String> {
    imp::with(name, |found| Some(String::from_utf8_lossy(found).into_owned()))
}

#[cfg(unix)]
mod imp {
    use super::CStr;

    /// Calls `f` with the variable's value, or nothing if it has none.
    pub(super) fn with<R: Default>(name: &CStr, f: impl FnOnce(&[u8]) -> R) -> R {
        // SAFETY: a C string.
        let found = unsafe { libc::getenv(name.as_ptr()) };
        if found.is_null() {
            return R::default();
        }
        // SAFETY: a C string, which stays as long as no thread changes the environment.
        f(unsafe { CStr::from_ptr(found) }.to_bytes())
    }

    /// In one piece, past the lock that a thread may hold which was interrupted. A failure cannot
    /// be reported.
    pub(super) fn say(line: &[u8]) {
        #[cfg(target_os = "linux")]
        crate::os::calls::write(libc::STDERR_FILENO, line);
        // SAFETY: writes these bytes to standard error.
        #[cfg(not(target_os = "linux"))]
        let _ = unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
    }
}

#[cfg(not(unix))]
mod imp {
    use super::CStr;

    /// As above.
    pub(super) fn with<R: Default>(name: &CStr, f: impl FnOnce(&[u8]) -> R) -> R {
        let name = name.to_str().expect("one of ours");
        std::env::var(name).map_or_else(|_| R::default(), |found| f(found.as_bytes()))
    }

    /// As above.
    pub(super) fn say(line: &[u8]) {
        let _ = std::io::Write::write_all(&mut std::io::stderr(), line);
    }
}
