//! Whether another process traces this one: a debugger, `strace`, `rr`.
//!
//! Asked while the path of per-CPU words is chosen (`os/percpu.rs`), perhaps in a signal handler:
//! it neither allocates nor locks, and leaves `errno` as it is.

use std::ffi::CStr;

use crate::os::{calls, files};

/// Whether the process's first thread or the calling thread is traced. `false` where the system
/// does not say, and where the tracer is in a PID namespace outside this one's, in which it has no
/// number.
pub(crate) fn is_attached() -> bool {
    // A debugger attaches to all threads, `PTRACE_SEIZE` to one.
    [c"/proc/self/status", c"/proc/thread-self/status"].into_iter().any(says_so)
}

fn says_so(path: &CStr) -> bool {
    // The line is the eighth, behind the name (64 bytes, escaped) and numbers.
    let mut text = [0; 1 << 10];
    calls::read_file(path, &mut text).is_ok_and(names_a_tracer)
}

/// Whether `/proc/PID/status` has a number other than 0 in the line `TracerPid:`.
fn names_a_tracer(status: &[u8]) -> bool {
    let number = files::field(status, b"TracerPid:");
    number.is_some_and(|number| !matches!(number, b"" | b"0"))
}

#[cfg(test)]
mod tests {
    use super::names_a_tracer;

    #[test]
    fn the_line_of_the_tracer_is_found() {
        assert!(names_a_tracer(b"Name:\tt\nPid:\t7\nPPid:\t1\nTracerPid:\t42\nUid:\t0\n"));
        assert!(!names_a_tracer(b"Name:\tt\nPid:\t7\nPPid:\t1\nTracerPid:\t0\nUid:\t0\n"));
        assert!(!names_a_tracer(b"Name:\tTracerPid:\\t9\nPid:\t7\nTracerPid:\t0\n"));
        for nothing in ["", "\n", "Name:\tt\n", "TracerPid:", "TracerPid:\t\n"] {
            assert!(!names_a_tracer(nothing.as_bytes()), "{nothing:?}");
        }
    }
}
