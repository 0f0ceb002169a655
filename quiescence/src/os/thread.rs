//! The calling thread: its token in the library and its id in the system, which each thread asks
//! for once; and what notices its end.

use std::cell::Cell;

thread_local! {
    static TOKEN: u8 = const { 0 };
    /// The id; 0 until it is asked for. Without a destructor, so that it can be used until the very
    /// end.
    static ID: Cell<u32> = const { Cell::new(0) };
}

/// A number that no other live thread has. It stays the same in a child process.
pub(crate) fn token() -> usize {
    TOKEN.with(|token| std::ptr::from_ref(token).addr())
}

/// The calling thread's id, which no other thread of the system has now; 0 except on Linux.
pub(crate) fn id() -> u32 {
    if ID.get() == 0 {
        ID.set(system_id());
    }
    ID.get()
}

thread_local! {
    /// Dropped at the end of the thread, if the thread has used it.
    static SENTINEL: Sentinel = const { Sentinel };
}

struct Sentinel;

impl Drop for Sentinel {
    fn drop(&mut self) {
        (crate::HOOKS.thread_ends)();
    }
}

/// Has the thread's end noticed. `false` if the thread is past it: the sentinel has been dropped.
pub(crate) fn notice_end() -> bool {
    SENTINEL.try_with(|_| ()).is_ok()
}

/// In a child process: stores the thread's new id.
pub(crate) fn after_fork() {
    ID.set(system_id());
}

fn system_id() -> u32 {
    #[cfg(target_os = "linux")]
    return super::calls::thread_id();
    #[cfg(not(target_os = "linux"))]
    0
}
