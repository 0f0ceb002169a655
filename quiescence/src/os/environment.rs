//! What the environment says to the library, for those who may be in a signal handler.
//!
//! `std::env` locks and allocates; `getenv` of the C libraries of Linux does neither. It takes no care of who
//! changes the environment at the same time; but to do that while other threads run is a fault anyway, and
//! `unsafe` to say in Rust.

use std::ffi::CStr;

/// Whether the variable has this value.
pub(crate) fn is(name: &CStr, value: &str) -> bool {
    imp::with(name, |found| found == value.as_bytes())
}

/// The number that the variable has, if it has one.
#[cfg(not(loom))]
pub(crate) fn number(name: &CStr) -> Option<u32> {
    imp::with(name, |found| std::str::from_utf8(found).ok()?.parse().ok())
}

/// What the variable says, if it says something.
#[cfg(not(loom))]
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
        // SAFETY: a C string, which stays as long as nobody changes the environment.
        f(unsafe { CStr::from_ptr(found) }.to_bytes())
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
}
