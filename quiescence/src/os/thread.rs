//! The calling thread: its token in the library and its id in the system, which each thread asks
//! for once; and what notices its end.

use std::cell::Cell;

use super::{exit, signals};

thread_local! {
    static TOKEN: u8 = const { 0 };
    /// The id; 0 until it is asked for. Without a destructor, so that it can be used until the very
    /// end.
    static ID: Cell<u32> = const { Cell::new(0) };
    /// Whether the thread is one of those that the end of the process [ends](super::forking), which
    /// is not waited for where such a thread calls `exit`. It says so itself as it begins. It does
    /// not wait for the worker, which it may be.
    pub(crate) static IS_OURS: Cell<bool> = const { Cell::new(false) };
}

/// A number that no other live thread has. It stays the same in a child process.
pub(crate) fn token() -> usize {
    TOKEN.with(|token| std::ptr::from_ref(token).addr())
}

/// Starts a thread of the library, which takes no signal: handlers run on the program's threads.
/// If the system gives none, returns its `errno`.
pub(crate) fn start(name: &str, run: Box<dyn FnOnce() + Send>) -> Result<(), i32> {
    let thread = std::thread::Builder::new().name(name.into());
    let started = signals::without(|| thread.spawn(run)).map(exit::outlive);
    started.map_err(|error| error.raw_os_error().unwrap_or(0))
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
