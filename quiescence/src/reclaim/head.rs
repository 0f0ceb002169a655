//! Heads: what an object carries to wait for a grace period without memory of the library's.

use std::fmt;
use std::panic::Location;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use super::llist::Link;
use crate::os::sync::const_unless_loom;
use crate::os::user_code::{self, Site};

/// What an object embeds so that [`call_head`](crate::raw::call_head) need not allocate: 16 bytes
/// anywhere in it, laid out as liburcu's `struct rcu_head`.
#[repr(C)]
pub struct Head {
    /// For the domain, while the head waits. In debug builds: a mark that it does.
    link: Link,
    /// What to call.
    function: Option<Function>,
}

/// The function that a [`Head`] is queued with. It is called after a grace period, with that head.
pub type Function = unsafe extern "C" fn(*mut Head);

#[cfg(not(loom))]
const _: () = assert!(size_of::<Head>() == 2 * size_of::<usize>());

impl Head {
    const_unless_loom! {
        /// Creates a head that is not queued.
        pub fn new() -> Self {
            Self { link: Link::new(), function: None }
        }
    }

    /// What the link of a head that waits holds, in debug builds. A copy of it, and memory that was
    /// not written yet, hold something else.
    fn mark(head: *mut Self) -> usize {
        !head.addr().rotate_left(7)
    }

    /// Marks a head as waiting.
    ///
    /// # Panics
    /// If it is already.
    ///
    /// # Safety
    /// `head` may be written, but for other calls of this function.
    #[track_caller]
    pub(crate) unsafe fn set_mark(head: *mut Self) {
        // SAFETY: by this function's contract.
        let link = unsafe { &raw mut (*head).link };
        // SAFETY: aligned as its type is, and used as an atomic only, while somebody else may use
        // it.
        let word = unsafe { &*link }.word();
        // Relaxed: the thread that comes second sees the mark, and nothing else of the first.
        let before = word.swap(ptr::without_provenance_mut(Self::mark(head)), Relaxed);
        assert!(
            before.addr() != Self::mark(head),
            "quiescence: the head at {head:p} is queued twice, the second time at {}",
            Location::caller()
        );
    }

    /// Calls the function of a head that has waited.
    ///
    /// # Safety
    /// By [`call_head`](crate::raw::call_head) or
    /// [`CallbackQueue::push`](crate::callback_queue::CallbackQueue::push), after a grace period,
    /// once.
    pub(crate) unsafe fn run(head: *mut Self) {
        // SAFETY: the head is valid until its function is called, and no other thread uses it.
        let Head { link, function } = unsafe { &mut *head };
        // Before the call, which may free it or queue it again. Relaxed: no other thread uses it.
        link.word().store(ptr::null_mut(), Relaxed);
        if let Some(function) = *function {
            // SAFETY: by the contract of `call_head`.
            let call = || unsafe { function(head) };
            user_code::run(Site::Head, call);
        }
    }
}

impl Head {
    /// Says what is to be called, and gives the link by which it waits in a callback queue.
    ///
    /// # Safety
    /// `head` may be written.
    #[inline]
    pub(crate) unsafe fn set(head: *mut Self, function: Function) -> *mut Link {
        // SAFETY: by the contract.
        let place = unsafe { &raw mut (*head).function };
        // SAFETY: as above.
        unsafe { place.write(Some(function)) };
        head.cast()
    }
}

impl Default for Head {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Head").finish_non_exhaustive()
    }
}

/// A pointer to what may be ended on any thread.
pub(crate) struct Anywhere<T>(pub(crate) *mut T);

// SAFETY: by the contracts of the functions that make one.
unsafe impl<T> Send for Anywhere<T> {}

impl<T> Anywhere<T> {
    pub(crate) fn get(&self) -> *mut T {
        self.0
    }
}
