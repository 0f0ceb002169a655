//! Turns instruction pointers into frames, on the reporter's thread.
//!
//! It asks the dynamic linker, which takes locks. A child that is forked while they are held would
//! find them held for ever. Such a child prints addresses only.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, fence};

use crate::os::modules::{self, StackFrame};

/// Whether the reporter is asking the dynamic linker.
static ASKING: AtomicBool = AtomicBool::new(false);
/// Whether it was asking when this process was forked.
static CUT_OFF: AtomicBool = AtomicBool::new(false);

/// A frame for each pointer. The first pointer is exact. The others are return addresses, and
/// belong to the call right before.
pub(super) fn of(pointers: &[usize]) -> Vec<StackFrame> {
    // Relaxed: a process has one reporter. The fences keep both stores outside the linker's locks:
    // if another thread forks while one of them is held, the child's copy of `ASKING` is `true`.
    let is_cut_off = CUT_OFF.load(Relaxed);
    ASKING.store(!is_cut_off, Relaxed);
    fence(SeqCst);
    let frame = |(index, &address): (usize, &usize)| {
        let instruction = address.wrapping_sub(usize::from(index != 0));
        let found = if is_cut_off { None } else { modules::find(address, instruction) };
        found.unwrap_or(StackFrame { address, module: None, offset: None, function: None })
    };
    let frames = pointers.iter().enumerate().map(frame).collect();
    fence(SeqCst);
    ASKING.store(false, Relaxed);
    frames
}

/// In a child process.
pub(super) fn after_fork() {
    CUT_OFF.fetch_or(ASKING.swap(false, Relaxed), Relaxed);
}
