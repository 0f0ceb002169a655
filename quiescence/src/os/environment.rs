//! The library's environment variables, for callers that may be in a signal handler.
//!
//! `std::env` locks and allocates; `getenv` of Linux's C libraries does neither. It is not safe
//! against concurrent changes of the environment; but a program that makes these while other
//! threads run is wrong anyway, and needs `unsafe` in Rust.

use std::ffi::{CStr, CString};

pub use imp::with;

/// Whether the variable has this value.
pub(crate) fn is(name: &CStr, value: &str) -> bool {
    with(name, |found| found == value.as_bytes())
}

/// Says on standard error that the variable has a value which is neither of these, separated by
/// " or ", if it is so; nothing at all is one. The thread that calls this has seen to it that it is
/// done once.
#[inline(never)]
pub(crate) fn complain_unless(name: &CStr, known: &str) {
    with(name, |found| {
        let is_known = |word: &[u8]| word != b"or" && word == found;
        if !found.is_empty() && !known.as_bytes().split(|byte| *byte == b' ').any(is_known) {
            complain(name, found, known);
        }
    });
}

/// Reports on standard error that a variable is ignored, since its value is not what is `wanted`.
/// Neither locks nor allocates. A line is cut off after 256 bytes.
pub fn complain(name: &CStr, found: &[u8], wanted: &str) {
    let mut line = Line::EMPTY;
    line.add(b"quiescence: ");
    line.add(name.to_bytes());
    line.add(b"=");
    escaped(found, &mut |byte| line.add(&[byte]));
    line.add(b" is not ");
    line.add(wanted.as_bytes());
    line.add(b": it is ignored");
    say(line.whole());
}

/// Calls `f` with each byte of the text, escaped where it is no printable character of ASCII.
pub(crate) fn escaped(text: &[u8], f: &mut dyn FnMut(u8)) {
    text.escape_ascii().for_each(f);
}

/// A line whose end is cut off if it is too long.
struct Line {
    text: [u8; 256],
    length: usize,
}

impl Line {
    const EMPTY: Self = Self { text: [b'\n'; 256], length: 0 };

    #[inline(never)] // eight copies would be as much as all the rest
    fn add(&mut self, more: &[u8]) {
        let last = self.text.len() - 1;
        let room = &mut self.text[self.length..last];
        let bytes = more.len().min(room.len());
        room[..bytes].copy_from_slice(&more[..bytes]);
        self.length += bytes;
    }

    /// With its line break.
    fn whole(&self) -> &[u8] {
        &self.text[..=self.length]
    }
}

/// Writes to standard error, in one piece, past the lock that a thread may hold which was
/// interrupted. A failure cannot be reported.
pub fn say(text: &[u8]) {
    imp::say(text);
}

/// Ends the process, whose fences fail.
#[cold]
pub(super) fn membarrier_fails(errno: i32) -> ! {
    let error = std::io::Error::from_raw_os_error(errno);
    let text = format!(
        "quiescence: membarrier(2), which worked when this process started, now fails: {error}. \
         No grace period can be completed safely, so the process ends. If a seccomp filter is \
         installed later on, allow membarrier in it or start with QUIESCENCE_FENCES=portable.\n"
    );
    say(text.as_bytes());
    std::process::abort()
}

/// The number that the variable has, if it has one.
pub(crate) fn number(name: &CStr) -> Option<u32> {
    with(name, parse)
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
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub(crate) fn c_string(name: &CStr) -> Option<CString> {
    with(name, |found| CString::new(found).ok())
}

/// What the variable says, if it says something.
pub(crate) fn value(name: &CStr) -> Option<String> {
    with(name, |found| Some(String::from_utf8_lossy(found).into_owned()))
}

#[cfg(unix)]
mod imp {
    use super::CStr;

    /// Calls `f` with the variable's value, or nothing if it has none.
    pub fn with<R: Default>(name: &CStr, f: impl FnOnce(&[u8]) -> R) -> R {
        // SAFETY: a C string.
        let found = unsafe { libc::getenv(name.as_ptr()) };
        if found.is_null() {
            return R::default();
        }
        // SAFETY: a C string, which stays as long as no thread changes the environment.
        f(unsafe { CStr::from_ptr(found) }.to_bytes())
    }

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
    pub fn with<R: Default>(name: &CStr, f: impl FnOnce(&[u8]) -> R) -> R {
        let name = name.to_str().expect("one of ours");
        std::env::var(name).map_or_else(|_| R::default(), |found| f(found.as_bytes()))
    }

    /// As above.
    pub(super) fn say(line: &[u8]) {
        let _ = std::io::Write::write_all(&mut std::io::stderr(), line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_cut_and_ends_with_a_line_break() {
        for (length, whole) in [(0, 1), (254, 255), (255, 256), (256, 256), (1_000, 256)] {
            let text = "x".repeat(length);
            let mut line = Line::EMPTY;
            let (one, other) = text.split_at(length / 2);
            line.add(one.as_bytes());
            line.add(other.as_bytes());
            let expected = format!("{}\n", &text[..whole - 1]);
            assert_eq!(line.whole(), expected.as_bytes());
        }
    }
}
