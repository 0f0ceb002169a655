//! What another thread of this process is doing, for reports.
//!
//! It is read from `/proc/self/task`, without disturbing the thread, and may have changed by the
//! time it is reported.

#![cfg_attr(
    not(all(feature = "stacks", target_os = "linux", target_env = "gnu")),
    allow(dead_code)
)]

use std::ffi::c_int;
use std::fmt;

use super::files;

/// What a thread is doing, as the system tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ThreadState {
    /// It runs, or would if it had a CPU.
    Running,
    /// It sleeps: for a lock, a message, a file, a time.
    Sleeping,
    /// It sleeps where no signal reaches it: for a disk, most often.
    Uninterruptible,
    /// It was stopped by a signal (`SIGSTOP`, job control).
    Stopped,
    /// A debugger holds it.
    Traced,
    /// It has ended.
    Ended,
    /// The system does not tell.
    Unknown,
}

impl fmt::Display for ThreadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Sleeping => "sleeping",
            Self::Uninterruptible => "in an uninterruptible sleep",
            Self::Stopped => "stopped by a signal",
            Self::Traced => "stopped by a debugger",
            Self::Ended => "ended",
            Self::Unknown => "in an unknown state",
        })
    }
}

/// What was seen of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) name: Option<String>,
    pub(crate) state: ThreadState,
    /// The function of the kernel that it sleeps in, where the system tells.
    pub(crate) sleeps_in: Option<String>,
}

/// Bytes of what the system says of a thread in one file, as far as it is looked at.
const TEXT: usize = 4_096;

/// Looks at a thread of this process.
pub(crate) fn look_at(thread: u32) -> Seen {
    let mut text = [0; TEXT];
    let (name, state) = match read(thread, "stat", &mut text) {
        Ok(line) => parse_stat(line).unwrap_or((None, ThreadState::Unknown)),
        // Any other error: there is no /proc here.
        Err(libc::ENOENT | libc::ESRCH) if has_proc() => (None, ThreadState::Ended),
        Err(_) => (None, ThreadState::Unknown),
    };
    let sleeps_in = match read(thread, "wchan", &mut text) {
        // For a thread that runs, and for those who may not know.
        Ok(b"" | b"0") | Err(_) => None,
        Ok(function) => Some(String::from_utf8_lossy(function).into_owned()),
    };
    Seen { name, state, sleeps_in }
}

/// What the system says of a thread in this file.
fn read<'a>(thread: u32, file: &str, text: &'a mut [u8]) -> Result<&'a [u8], c_int> {
    files::read(format_args!("/proc/self/task/{thread}/{file}"), text)
}

fn has_proc() -> bool {
    files::read(format_args!("/proc/self/stat"), &mut [0; 1]).is_ok()
}

/// Whether a thread of this process blocks a signal, as far as the system tells.
pub(crate) fn blocks(thread: u32, signal: i32) -> bool {
    u32::try_from(signal - 1).is_ok_and(|bit| bit < 64 && blocked(thread) >> bit & 1 != 0)
}

/// The signals that a thread of this process blocks: bit 0 is signal 1.
fn blocked(thread: u32) -> u64 {
    blocked_in(format_args!("/proc/self/task/{thread}/status"))
}

/// The same, from this file. A thread that has ended blocks nothing; one of which the system
/// does not tell may block everything.
fn blocked_in(status: fmt::Arguments<'_>) -> u64 {
    match files::read_all(status) {
        Err(libc::ENOENT | libc::ESRCH) => 0,
        told => told.ok().and_then(|told| parse_blocked(&told)).unwrap_or(u64::MAX),
    }
}

/// Signals that some thread of this process blocks which does not block everything.
#[cfg(target_os = "linux")]
pub(crate) fn blocked_apart() -> u64 {
    let mut all = 0;
    files::each_in(c"/proc/self/task", usize::MAX, &mut |thread| {
        let blocked = super::environment::parse(thread.to_bytes()).map_or(0, blocked);
        if !blocks_everything(blocked) {
            all |= blocked;
        }
    });
    all
}

/// The stack pointer of a thread of this process, if it sleeps and the system tells.
pub(crate) fn sleeps_at(thread: u32) -> Option<usize> {
    parse_call(std::str::from_utf8(read(thread, "syscall", &mut [0; TEXT]).ok()?).ok()?)
}

/// The name and the state from a line of `/proc/PID/task/TID/stat`: `TID (NAME) STATE ...`. A name
/// may have spaces and parentheses of its own, so it ends at the last one.
fn parse_stat(line: &[u8]) -> Option<(Option<String>, ThreadState)> {
    let open = line.iter().position(|byte| *byte == b'(')?;
    let close = line.iter().rposition(|byte| *byte == b')')?;
    let name = String::from_utf8_lossy(line.get(open + 1..close)?).into_owned();
    let state = match line.get(close + 1..)? {
        [b' ', letter, b' ' | b'\n', ..] => match letter {
            b'R' => ThreadState::Running,
            b'S' | b'I' => ThreadState::Sleeping,
            b'D' => ThreadState::Uninterruptible,
            b'T' => ThreadState::Stopped,
            b't' => ThreadState::Traced,
            b'Z' | b'X' | b'x' => ThreadState::Ended,
            _ => ThreadState::Unknown,
        },
        _ => ThreadState::Unknown,
    };
    Some(((!name.is_empty()).then_some(name), state))
}

/// The set of blocked signals from `/proc/PID/task/TID/status`: bit 0 is signal 1.
fn parse_blocked(status: &[u8]) -> Option<u64> {
    hexadecimal(std::str::from_utf8(files::field(status, b"SigBlk:")?).ok()?)
}

/// Whether a thread with these signals blocked is one that is to handle none, as those of libraries
/// are: that says nothing about what the program uses signals for.
#[cfg(target_os = "linux")]
fn blocks_everything(blocked: u64) -> bool {
    // By the signals that programs use most.
    let numbers = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGALRM,
        libc::SIGTERM,
        libc::SIGCHLD,
    ];
    numbers.iter().all(|number| blocked >> (number - 1) & 1 != 0)
}

/// The stack pointer from `/proc/PID/task/TID/syscall`: `CALL ARGUMENTS... SP PC`, or `-1 SP PC`,
/// in hexadecimal; or `running`.
fn parse_call(call: &str) -> Option<usize> {
    let pointer = call.split_ascii_whitespace().rev().nth(1)?.strip_prefix("0x")?;
    hexadecimal(pointer)?.try_into().ok()
}

#[inline(never)]
fn hexadecimal(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    #![cfg_attr(not(target_os = "linux"), allow(unused_imports, reason = "some tests are Linux's"))]

    use super::*;
    use crate::common::threads::until;
    use crate::os::thread::id;

    fn stat(line: &str) -> Option<(Option<String>, ThreadState)> {
        parse_stat(line.as_bytes())
    }

    #[test]
    fn names_have_spaces_and_parentheses() {
        let named = |name: &str, state| Some((Some(name.to_owned()), state));
        assert_eq!(stat("7 (sh) S 6 7"), named("sh", ThreadState::Sleeping));
        assert_eq!(stat("7 (a b) R 6 7"), named("a b", ThreadState::Running));
        assert_eq!(stat("7 (x) R (y)) D 6"), named("x) R (y)", ThreadState::Uninterruptible));
        assert_eq!(stat("7 () T 6"), Some((None, ThreadState::Stopped)));
        assert_eq!(stat("7 (t) t 6"), named("t", ThreadState::Traced));
        assert_eq!(stat("7 (t) Z 6"), named("t", ThreadState::Ended));
        assert_eq!(stat("7 (t) I 6"), named("t", ThreadState::Sleeping));
    }

    #[test]
    fn what_cannot_be_understood_is_unknown() {
        let unknown = Some((Some("t".to_owned()), ThreadState::Unknown));
        for line in ["7 (t)", "7 (t) ", "7 (t) ? 6", "7 (t) SS 6"] {
            assert_eq!(stat(line), unknown, "{line}");
        }
        for line in ["", "7", "7 )t( S 6", "7 (t S"] {
            assert_eq!(stat(line), None, "{line}");
        }
        assert_eq!(parse_stat(b"7 (\xff) S 6").unwrap().1, ThreadState::Sleeping);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn blocked_signals_are_a_set_of_bits() {
        let status =
            b"Name:\tt\nSigPnd:\t0000000000000000\nSigBlk:\t0000000800000001\nSigIgn:\t0\n";
        assert_eq!(parse_blocked(status), Some(1 << 35 | 1));
        assert_eq!(parse_blocked(b"Name:\tt\n"), None);
        assert_eq!(parse_blocked(b"SigBlk:\tno number\n"), None);
    }

    /// A past error: of a thread in hundreds of groups only the beginning was read, which does not
    /// say what it blocks.
    #[test]
    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "there is no /proc")]
    fn what_a_thread_in_many_groups_blocks_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("status");
        let blocked = || blocked_in(format_args!("{}", path.display()));
        assert_eq!(blocked(), 0, "it has ended");
        for groups in [0, 582, 583, 65_536] {
            let groups = "100000 ".repeat(groups);
            let status = format!("Groups:\t{groups}\nSigBlk:\t0000000800000001\nSigIgn:\t0\n");
            std::fs::write(&path, status).unwrap();
            assert_eq!(blocked(), 1 << 35 | 1);
        }
        std::fs::write(&path, "Name:\tt\n").unwrap();
        assert_eq!(blocked(), u64::MAX, "it may block whatever it is asked for");
    }

    #[test]
    fn a_thread_that_sleeps_has_a_stack_pointer() {
        assert_eq!(parse_call("0 0x3 0x1 0x2 0x0 0x0 0x0 0x7ffd5f0 0x7f00\n"), Some(0x7ffd5f0));
        assert_eq!(parse_call("-1 0x7ffd5f0 0x7f00\n"), Some(0x7ffd5f0));
        for nothing in ["running\n", "", "\n", "1", "0 7 8"] {
            assert_eq!(parse_call(nothing), None, "{nothing:?}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn who_blocks_everything_waits_for_nothing() {
        assert!(blocks_everything(u64::MAX));
        assert!(blocks_everything(!(1 << (libc::SIGSEGV - 1) | 1 << (libc::SIGPROF - 1))));
        assert!(!blocks_everything(0) && !blocks_everything(u64::MAX << 34));
        assert!(!blocks_everything(!(1 << (libc::SIGTERM - 1))));
    }

    #[test]
    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "there is no /proc")]
    fn a_thread_sees_itself_run() {
        std::thread::Builder::new()
            .name("a (b) c".into())
            .spawn(|| {
                let seen = look_at(id());
                assert_eq!(seen.name.as_deref(), Some("a (b) c"));
                assert_eq!(seen.state, ThreadState::Running);
                assert_eq!(id(), id());
                assert!(!blocks(id(), libc::SIGURG));
                super::super::signals::without(|| assert!(blocks(id(), libc::SIGURG)));
            })
            .unwrap()
            .join()
            .unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "there is no /proc")]
    fn a_thread_that_is_gone_has_ended() {
        let thread = std::thread::spawn(id).join().unwrap();
        // The kernel may take a moment longer than `join`.
        until(|| look_at(thread).state == ThreadState::Ended);
    }
}
