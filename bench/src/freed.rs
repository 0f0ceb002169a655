//! How many objects of a design were freed, or were given up.
//!
//! The count costs all rivals the same, and little: each thread of a measurement has a line of its
//! own and adds to it without a locked instruction; other threads (a library's worker, a thread in
//! its last destructors) share a line and pay for one.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use scopeguard::{ScopeGuard, guard};

/// Threads of a measurement that have a line of their own.
pub(crate) const LINES: usize = 32;

/// The line of all other threads.
const STANDING: usize = LINES;

/// The objects of one design that were freed since the process began, by thread. A design has its
/// own, as a static: some free the last few of theirs in another one's measurement.
#[derive(Debug)]
pub(crate) struct Freed([CachePadded<AtomicU64>; LINES + 1]);

impl Freed {
    pub(crate) const fn new() -> Self {
        Self([const { CachePadded::new(AtomicU64::new(0)) }; LINES + 1])
    }

    /// Counts one more.
    #[inline(always)]
    pub(crate) fn add(&self) {
        let line = LINE.get();
        // Relaxed, here and in `count`: counts that order nothing.
        if line == STANDING {
            self.0[line].fetch_add(1, Ordering::Relaxed);
        } else {
            // Only the thread in this line writes here.
            self.0[line].store(self.0[line].load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|line| line.load(Ordering::Relaxed)).sum()
    }
}

thread_local! {
    // Const and without a destructor, so that the destructors of others can use it.
    static LINE: Cell<usize> = const { Cell::new(STANDING) };
}

/// A thread in its line.
type InLine = ScopeGuard<PhantomData<*const ()>, fn(PhantomData<*const ()>)>;

/// Takes the line of this number for the calling thread, until what is returned is dropped; beyond
/// the last there is standing room.
///
/// One measurement at a time in a process gives each of its threads another number.
pub(crate) fn take_line(number: usize) -> InLine {
    LINE.set(number.min(STANDING));
    guard(PhantomData, |_| LINE.set(STANDING))
}

/// Has what is `left` freed by `flush`, until that is all, or so many calls in a row have freed
/// nothing.
pub(crate) fn drain(patience: u32, left: impl Fn() -> u64, flush: impl Fn()) {
    let (mut least, mut in_vain) = (left(), 0);
    while least > 0 && in_vain < patience {
        flush();
        let now = left();
        (least, in_vain) = if now < least { (now, 0) } else { (least, in_vain + 1) };
    }
}
