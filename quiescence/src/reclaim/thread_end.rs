//! The end of a thread: the destructor of a thread-local notices it, and calls `HOOKS`. So modules
//! that may not import the code that runs then can ask for it.

thread_local! {
    /// Dropped at the end of the thread, if the thread has used it.
    static SENTINEL: Sentinel = const { Sentinel };
}

struct Sentinel;

impl Drop for Sentinel {
    fn drop(&mut self) {
        (crate::HOOKS.reclaim.thread_ends)();
    }
}

/// Has the thread's end noticed. `false` if the thread is past it: the sentinel has been dropped.
pub(crate) fn notice() -> bool {
    SENTINEL.try_with(|_| ()).is_ok()
}
