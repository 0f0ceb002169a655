//! Memory of retired objects, which is given back late.

use std::alloc::Layout;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Objects that have been dropped and whose memory is kept.
const QUARANTINE: usize = 1 << 16;

/// Memory in quarantine, oldest first.
static QUARANTINED: Mutex<VecDeque<Memory>> = Mutex::new(VecDeque::new());

struct Memory {
    start: *mut u8,
    layout: Layout,
}

// SAFETY: memory that only the quarantine owns.
unsafe impl Send for Memory {}

/// Calls `f`, which forks, while the quarantine does not change: a child process might find its
/// lock held for ever. Callbacks take that lock, and hold no other one then.
pub fn with_quarantine_held<R>(f: impl FnOnce() -> R) -> R {
    let _held = QUARANTINED.lock().unwrap_or_else(PoisonError::into_inner);
    f()
}

/// Drops an object, and gives its memory back only after many others'.
pub fn free<T: ?Sized>(object: Box<T>) {
    let layout = Layout::for_value(&*object);
    let object = Box::into_raw(object);
    // SAFETY: from a box, and used as an object no more.
    unsafe { std::ptr::drop_in_place(object) };
    if layout.size() == 0 {
        return; // a box of it has no memory
    }
    let mut quarantined = QUARANTINED.lock().unwrap_or_else(PoisonError::into_inner);
    quarantined.push_back(Memory { start: object.cast(), layout });
    if quarantined.len() > QUARANTINE
        && let Some(oldest) = quarantined.pop_front()
    {
        drop(quarantined);
        // SAFETY: from a box of this layout, whose object has been dropped above.
        unsafe { std::alloc::dealloc(oldest.start, oldest.layout) };
    }
}
