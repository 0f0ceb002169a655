//! The calling thread: its token in the library, its [id](id()), and how its end is noticed.

mod id;

pub(crate) use id::{after_fork, id};

thread_local! {
    static TOKEN: u8 = const { 0 };
}

/// A number that no other live thread has. It stays the same in a child process.
pub(crate) fn token() -> usize {
    TOKEN.with(|token| std::ptr::from_ref(token).addr())
}

thread_local! {
    /// Dropped at the end of the thread, if the thread has used it.
    static SENTINEL: Sentinel = const { Sentinel };
}

struct Sentinel;

impl Drop for Sentinel {
    fn drop(&mut self) {
        // SAFETY: dropped when the thread's function has returned, or by `exit` or `pthread_exit`,
        // which do not return.
        unsafe { (crate::HOOKS.thread_ends)() };
    }
}

/// Has the thread's end noticed. `false` if the thread is past it: the sentinel has been dropped.
pub(crate) fn notice_end() -> bool {
    SENTINEL.try_with(|_| ()).is_ok()
}
