//! What users of a callback queue choose, and what its operations return.

use std::fmt;

use crate::reclaim::head::Head;

/// Whether a push wakes a runner that sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wakes {
    /// The push that a sleeping runner has to be woken for does it: one system call.
    Runner,
    /// No push below the limit makes a system call; the runner looks every 10 ms. For threads of
    /// real-time programs; they never wait for room either.
    Never,
}

/// What came of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "somebody may have to attend to the callback queue, or to wait for room"]
pub struct Pushed {
    /// No thread attends to the callback queue, and this was the first push to find it so: have
    /// somebody do it.
    pub unattended: bool,
    /// The domain is at its limit, or other threads wait for room and the caller has had its share:
    /// wait for room, where you may.
    pub crowded: bool,
}

/// Why a runner has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It was asked to [stop](crate::callback_queue::CallbackQueue::stop). Something may be left in
    /// the callback queue.
    Stopped,
    /// There was nothing to do for so long. Nothing is left.
    Idle,
    /// Another thread attends to the callback queue.
    Taken,
}

/// A head was queued while it waited already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct QueuedTwice {
    pub(super) head: *const Head,
    /// Or one that was queued near it.
    pub(super) about: bool,
}

// SAFETY: an address to be told.
unsafe impl Send for QueuedTwice {}
// SAFETY: as above.
unsafe impl Sync for QueuedTwice {}

impl fmt::Debug for QueuedTwice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for QueuedTwice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = if self.about { ", or one that was queued near it," } else { "" };
        write!(f, "the head at {:p}{about} is queued while it waits already", self.head)
    }
}

impl std::error::Error for QueuedTwice {}
