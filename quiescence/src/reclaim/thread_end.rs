//! The end of a thread: noticed by the destructor of a thread-local, which lower rooms and modules
//! need not know the work of.

thread_local! {
    /// Noticed at the end of the thread, if it has been used.
    static SENTINEL: Sentinel = const { Sentinel };
}

struct Sentinel;

impl Drop for Sentinel {
    fn drop(&mut self) {
        (crate::HOOKS.reclaim.thread_ends)();
    }
}

/// Has the thread give back what it keeps when it ends. `false` if that has gone by.
pub(crate) fn is_noticed() -> bool {
    SENTINEL.try_with(|_| ()).is_ok()
}
