//! The places where user code runs, by name; and the check, in builds with debug assertions, that
//! nothing is held there ([UC-1]). Nothing else depends on it.

use std::cell::Cell;

use crate::os::lock_rank;
use crate::os::on_drop::OnDrop;

/// A place where user code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// A callback of a domain, or the drop of what was retired.
    Callback,
    /// A deferred function, or the drop of what was retired, that runs at once: no wait is needed.
    OnTheSpot,
    /// The function of a callback head, in C.
    Head,
    /// The weight of a value, by its `Weigh` or a function in place of that.
    Weigh,
    /// A waker is cloned.
    WakerClone,
    /// A waker is called.
    Wake,
    /// A waker is dropped.
    WakerDrop,
    /// A subscriber of `tracing`.
    Subscriber,
    /// The stall hook.
    StallHook,
    /// A closure that computes the new value of a cell, or of an entry.
    Update,
    /// A closure that borrows what a section protects, and returns a part of it.
    Project,
    /// A closure during which the thread is offline, in some section, or has the lock of a sequence
    /// lock or latch.
    Scope,
    /// A closure that makes the value of a new entry, or for a CPU.
    Make,
    /// A closure that chooses among entries.
    Choose,
    /// A closure that attends to a callback queue.
    Attend,
    /// The function that a `BigRef` ends with.
    Release,
    /// The test whether a node of a hash table is the one that is searched for.
    Equal,
    /// `Hash`, `Eq` or `Clone` of a map's key, or its `BuildHasher`.
    Key,
    /// `Clone` or `Deref` of a counted pointer, or of a pointer to a cell.
    Pointer,
    /// The drop of a value that was refused, taken out, or dropped with its container.
    Drop,
    /// A user's allocator, of a hash table.
    Allocate,
}

impl Site {
    /// Whether readers run user code here too, or an allocator, under any lock, that counts.
    fn is_of_readers(self) -> bool {
        matches!(self, Self::Project | Self::Scope | Self::Equal | Self::Key | Self::Pointer)
    }
}

/// Whether anything is checked. In other builds what is here is empty.
const CHECKS: bool = cfg!(all(debug_assertions, not(loom)));

thread_local! {
    static HERE: Cell<Option<Site>> = const { Cell::new(None) };
}

/// The thread is in user code while the result exists; that restores the place before it on drop.
#[inline(always)]
#[cfg_attr(debug_assertions, track_caller)]
pub(super) fn enter(site: Site) -> OnDrop<impl FnMut()> {
    // Readers may be in a signal handler, which may have interrupted a lock or a borrow; allocators
    // are called under both.
    if CHECKS && !site.is_of_readers() {
        lock_rank::assert_none_held("user code is called");
    }
    let before = if CHECKS { HERE.replace(Some(site)) } else { None };
    OnDrop(move || {
        if CHECKS {
            HERE.set(before);
        }
    })
}

/// The place at which this thread entered user code, in a build with debug assertions; `None` in
/// others. For tests, whose user code calls it.
pub fn here() -> Option<Site> {
    HERE.get()
}
