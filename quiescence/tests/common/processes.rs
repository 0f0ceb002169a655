//! Children made by `fork`.
//!
//! The library's unit tests include this file, too.

#![allow(dead_code, unused_imports, reason = "each of them needs a part of it")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::thread::{self, ThreadId};

/// Runs `f` in a child process made by `fork`; a panic there is a failure here.
pub(crate) fn in_child(f: impl FnOnce()) {
    // SAFETY: the child runs only `f` on the one thread it has and leaves by `_exit`. What `f` uses
    // of the library is meant to work after a fork; glibc's allocator does.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => {
            // SAFETY: asks for a signal, which ends a child that hangs.
            unsafe { libc::alarm(300) };
            end_child(catch_unwind(AssertUnwindSafe(f)).is_ok())
        }
        child => assert_eq!(status_of(child), 0, "the child failed"),
    }
}

/// Ends a child process, which is well if it is whole, without running anything of the parent's.
pub(crate) fn end_child(is_whole: bool) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(i32::from(!is_whole)) }
}

/// Waits until a child made by `fork` has ended: 0 if that is well.
pub(crate) fn status_of(child: libc::pid_t) -> libc::c_int {
    let mut status = -1;
    // SAFETY: waits for a child of the caller's.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

/// A fork in the midst of what the library does, on the thread that has made this.
#[derive(Debug)]
pub(crate) struct ForksHere {
    on: ThreadId,
    /// What `fork` has returned; -1 until then.
    child: AtomicI32,
}

impl ForksHere {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { on: thread::current().id(), child: AtomicI32::new(-1) })
    }

    pub(crate) fn is_here(&self) -> bool {
        thread::current().id() == self.on
    }

    /// Forks, if the calling thread is the one. Both processes continue, the child with it only.
    pub(crate) fn fork(&self) {
        if self.is_here() {
            // SAFETY: the child ends by `_exit`, in `assert_in_both`.
            self.child.store(unsafe { libc::fork() }, SeqCst);
        }
    }

    pub(crate) fn has_forked(&self) -> bool {
        self.child.load(SeqCst) != -1
    }

    pub(crate) fn is_child(&self) -> bool {
        self.child.load(SeqCst) == 0
    }

    /// Ends the child, and fails in the parent if it is not so in both.
    pub(crate) fn assert_in_both(&self, is_so: bool, what: &str) {
        match self.child.load(SeqCst) {
            0 => end_child(is_so),
            child => assert_eq!(status_of(child), 0, "in the child: {what}"),
        }
        assert!(is_so, "{what}");
    }
}
