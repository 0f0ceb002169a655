//! From instruction pointers to frames, on the side of the reporter.
//!
//! The dynamic linker is asked, which has locks. A child that was forked while they are held would
//! find them taken for ever; it prints addresses instead.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, fence};

use super::report::StackFrame;
use crate::os::modules;

/// Whether the reporter is asking.
static ASKING: AtomicBool = AtomicBool::new(false);
/// Whether it was when this process was forked.
static CUT_OFF: AtomicBool = AtomicBool::new(false);

/// A frame of each pointer. The first pointer is exact, the others are return addresses: what they
/// belong to is the call before.
pub(super) fn of(pointers: &[usize]) -> Vec<StackFrame> {
    // Relaxed: in a process there is one reporter. What another thread's `fork` copies is `true`
    // wherever a lock of the linker's is taken, by the fences: neither store passes that lock.
    let is_cut_off = CUT_OFF.load(Relaxed);
    ASKING.store(!is_cut_off, Relaxed);
    fence(SeqCst);
    let frame = |(index, &address): (usize, &usize)| {
        let instruction = address.wrapping_sub(usize::from(index != 0));
        let place = if is_cut_off { None } else { modules::place_of(instruction) };
        let Some(modules::Place { module, offset, function }) = place else {
            return StackFrame { address, module: None, offset: None, function: None };
        };
        StackFrame { address, module: Some(module), offset: Some(offset), function }
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
