//! From instruction pointers to functions and lines, on the side of the reporter.
//!
//! The crate `backtrace` reads the program's symbols and debug information, and keeps them under a
//! lock of its own. A child that was forked in the midst of that would find the lock taken for
//! ever; it prints addresses instead.

use super::report::StackFrame;

/// A frame of each pointer, or several where functions were inlined. The first pointer is exact,
/// the others are return addresses.
pub(super) fn resolve(pointers: &[usize]) -> Vec<StackFrame> {
    imp::resolve(pointers)
}

/// When no report is to be made: gives back what has been read of symbols and debug information,
/// some 30 MB for a program of 7 MB, and a map of each file. The next report reads them anew.
pub(super) fn forget() {
    imp::forget();
}

/// In a child process.
pub(super) fn after_fork() {
    imp::after_fork();
}

#[cfg(feature = "stacks")]
mod imp {
    use std::ptr;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Relaxed;

    use super::StackFrame;
    use crate::os::memory;

    /// Whether the reporter is inside the crate.
    static RESOLVING: AtomicBool = AtomicBool::new(false);
    /// Whether it was when this process was forked.
    static CUT_OFF: AtomicBool = AtomicBool::new(false);
    /// Whether the crate keeps something.
    static KEPT: AtomicBool = AtomicBool::new(false);

    pub(super) fn resolve(pointers: &[usize]) -> Vec<StackFrame> {
        let mut frames = Vec::with_capacity(pointers.len());
        // Relaxed, all of it: in a process there is one reporter, and `fork` copies memory as the
        // CPU sees it.
        if CUT_OFF.load(Relaxed) {
            frames.extend(pointers.iter().map(|pointer| unknown(*pointer)));
            return frames;
        }
        RESOLVING.store(true, Relaxed);
        KEPT.store(true, Relaxed);
        for (index, pointer) in pointers.iter().enumerate() {
            let before = frames.len();
            // The crate takes one off: it expects return addresses.
            let address = if index == 0 { pointer.wrapping_add(1) } else { *pointer };
            backtrace::resolve(ptr::without_provenance_mut(address), |symbol| {
                frames.push(StackFrame {
                    address: *pointer,
                    function: symbol.name().map(|name| format!("{name:#}")),
                    file: symbol.filename().map(ToOwned::to_owned),
                    line: symbol.lineno(),
                });
            });
            if frames.len() == before {
                frames.push(unknown(*pointer));
            }
        }
        RESOLVING.store(false, Relaxed);
        frames
    }

    pub(super) fn forget() {
        if KEPT.load(Relaxed) && !CUT_OFF.load(Relaxed) {
            RESOLVING.store(true, Relaxed);
            backtrace::clear_symbol_cache();
            KEPT.store(false, Relaxed);
            RESOLVING.store(false, Relaxed);
            memory::give_free_pages_back();
        }
    }

    fn unknown(address: usize) -> StackFrame {
        StackFrame { address, function: None, file: None, line: None }
    }

    pub(super) fn after_fork() {
        CUT_OFF.fetch_or(RESOLVING.load(Relaxed), Relaxed);
    }
}

#[cfg(not(feature = "stacks"))]
mod imp {
    use super::StackFrame;

    pub(super) fn resolve(pointers: &[usize]) -> Vec<StackFrame> {
        let frame = |address| StackFrame { address, function: None, file: None, line: None };
        pointers.iter().copied().map(frame).collect()
    }

    pub(super) fn forget() {}

    pub(super) fn after_fork() {}
}
