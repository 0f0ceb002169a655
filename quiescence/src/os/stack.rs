//! The stack of another thread of this process, taken by a signal.
//!
//! The caller names the thread in a request, and sends it a real-time signal. The handler, on that
//! thread, finds the request, writes the instruction pointers of its frames into it, and marks it
//! as done. A late signal finds no request, or one for another thread, and does nothing. Only one
//! thread makes requests: the reporter of stalls.
//!
//! `stack/signal.rs` says which signal that is, and whether it may be sent. System calls that it
//! interrupts are restarted (`SA_RESTART`), except those that Linux never restarts (`poll`,
//! `epoll_wait`, `nanosleep` and others of `signal(7)`), which fail with `EINTR` as after any
//! signal. So the reporter does not ask liburcu readers that sleep.
//!
//! **Invariant: the signal needs no room on the program's stacks.** A thread may be at the end of
//! its stack, or on a small one (a coroutine's), and the system tells the stack pointer of a thread
//! only while the thread sleeps. So the handler runs on the thread's *alternate* stack
//! (`stack/alternate.rs`), and a thread that had no alternate stack of sufficient size when it
//! registered is not asked.
//!
//! **What the handler may do.** It neither allocates nor takes a lock: `_Unwind_Backtrace` finds
//! the frames, and gets their tables from glibc's `_dl_find_object` (2.35 or later, looked up at
//! run time). It preserves `errno`.

use std::fmt;

/// Why there is no stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StackMissing {
    /// The library was compiled without the feature `stacks`.
    NotCompiledIn,
    /// The system is not Linux with glibc 2.35 or later, or the system did not tell the thread's
    /// id.
    Unsupported,
    /// `QUIESCENCE_STALL_SIGNAL` is `off`.
    TurnedOff,
    /// The program uses every real-time signal itself: it handles them, or waits for them.
    NoSignalFree,
    /// The thread blocks the signal of this number.
    SignalBlocked(i32),
    /// The program has given the signal of this number, which was free when the first stack was
    /// wanted, another handler or disposition since. No stack is taken in this process any more.
    SignalTaken(i32),
    /// The thread has no alternate signal stack (`sigaltstack(2)`) on which the signal could be
    /// handled, or one that is too small, or it is on that already. On its own stack there might be
    /// too little room. Threads that Rust's standard library has made, and the first thread of a
    /// Rust program, have one.
    NoAlternateStack,
    /// The thread did not answer within 100 ms: it is stopped, or gets no CPU.
    NoAnswer,
    /// The thread has ended, or runs the destructors of its thread-locals.
    ThreadEnded,
    /// The section has ended, so that the stack would be that of something else.
    SectionEnded,
    /// Stacks of other holdouts have been taken, and these were enough.
    EnoughTaken,
    /// The thread did not run. It is one of a program that was compiled against liburcu and does
    /// not know of the signal, which may end the call it sleeps in with `EINTR`: such threads are
    /// asked only while they run.
    Asleep,
}

impl fmt::Display for StackMissing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotCompiledIn => "the feature `stacks` is not compiled in",
            Self::Unsupported => "stacks need Linux with glibc 2.35 or later",
            Self::TurnedOff => "QUIESCENCE_STALL_SIGNAL turns stacks off",
            Self::NoSignalFree => "the program uses every real-time signal itself",
            Self::SignalBlocked(signal) => return write!(f, "the thread blocks signal {signal}"),
            Self::SignalTaken(signal) => return write!(f, "the program has taken signal {signal}"),
            Self::NoAlternateStack => "the thread has no sufficient alternate signal stack",
            Self::NoAnswer => "no answer: the thread is stopped, or gets no CPU",
            Self::ThreadEnded => "the thread has ended, or is ending",
            Self::SectionEnded => "the section has ended meanwhile",
            Self::EnoughTaken => "enough stacks of other holdouts were taken",
            Self::Asleep => "a signal could end the system call that it sleeps in",
        })
    }
}

impl std::error::Error for StackMissing {}

pub(crate) use imp::{after_fork, take};

/// A thread's alternate signal stack; all zeroes if it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Alternate {
    /// The lowest address.
    start: usize,
    bytes: usize,
}

impl Alternate {
    pub(crate) const NONE: Self = Self { start: 0, bytes: 0 };

    /// The calling thread's. Async-signal-safe.
    pub(crate) fn of_this_thread() -> Self {
        imp::alternate()
    }
}

/// Frames that a stack has at most.
#[cfg_attr(not(all(feature = "stacks", target_os = "linux", target_env = "gnu")), allow(dead_code))]
const FRAMES_MAX: usize = 128;

#[cfg(all(feature = "stacks", target_os = "linux", target_env = "gnu"))]
#[path = "stack/capture.rs"]
mod imp;

#[cfg(not(all(feature = "stacks", target_os = "linux", target_env = "gnu")))]
mod imp {
    use super::{Alternate, StackMissing};

    pub(super) fn alternate() -> Alternate {
        Alternate::NONE
    }

    pub(crate) fn take(thread: u32, _: Alternate) -> Result<Vec<usize>, StackMissing> {
        Err(if cfg!(feature = "stacks") || thread == 0 {
            StackMissing::Unsupported
        } else {
            StackMissing::NotCompiledIn
        })
    }

    pub(crate) fn after_fork() {}
}
