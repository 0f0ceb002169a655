//! The id of the calling thread in the system, which each thread asks for once: it is shown, and
//! tells a child process from its parent.

use std::cell::Cell;

thread_local! {
    /// 0 until it is asked for. Without a destructor, so that it can be used until the very end.
    static ID: Cell<u32> = const { Cell::new(0) };
}

/// The calling thread's id, which no other thread of the system has now; 0 except on Linux.
pub(crate) fn id() -> u32 {
    if ID.get() == 0 {
        ID.set(system_id());
    }
    ID.get()
}

/// In a child process: stores the thread's new id.
pub(crate) fn after_fork() {
    ID.set(system_id());
}

fn system_id() -> u32 {
    #[cfg(target_os = "linux")]
    return crate::os::calls::thread_id();
    #[cfg(not(target_os = "linux"))]
    0
}
