//! Counts, per prepared design, the values that were replaced and those that were freed.
//!
//! What a design has not reclaimed yet is measured the same way for all of them: by what the
//! values themselves report when they are dropped, not by what a library says of itself. The
//! counters are spread over cache lines so that counting does not become the contention that is
//! being measured.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Threads that count without sharing a line. More threads than this share lines and stay exact.
const LINES: usize = 32;

/// Two cache lines, since CPUs fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line {
    replaced: AtomicU64,
    freed: AtomicU64,
}

/// The counts of one prepared design.
///
/// Made by [`Ledger::leak`] and never freed: values that a design has not freed when it is dropped
/// still report to it. It takes 4 KiB for each design that was ever prepared.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    lines: [Line; LINES],
}

impl Ledger {
    pub(crate) fn leak() -> &'static Self {
        Box::leak(Box::default())
    }

    pub(crate) fn replaced(&self) {
        // Relaxed, here and below: the counts order nothing; readers of them who need exact
        // counts have joined the counting threads.
        self.line().replaced.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn freed(&self) {
        self.line().freed.fetch_add(1, Ordering::Relaxed);
    }

    /// Values replaced and not yet freed. While others count, this may be too small by what they
    /// free between the two sums, and never invents garbage for a design that frees at once.
    pub(crate) fn unreclaimed(&self) -> u64 {
        let replaced = self.sum(|line| &line.replaced);
        replaced.saturating_sub(self.sum(|line| &line.freed))
    }

    /// All values that were ever freed, replaced or not.
    #[cfg(test)]
    pub(crate) fn freed_total(&self) -> u64 {
        self.sum(|line| &line.freed)
    }

    fn sum(&self, which: impl Fn(&Line) -> &AtomicU64) -> u64 {
        self.lines.iter().map(|line| which(line).load(Ordering::Relaxed)).sum()
    }

    fn line(&self) -> &Line {
        &self.lines[line_of_this_thread()]
    }
}

/// Threads take the lines in turn, so that those of one round, started together, never share.
fn line_of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        // Const and without a destructor, so that it can be used by destructors of others.
        static LINE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    let line = LINE.get();
    if line != usize::MAX {
        return line;
    }
    let line = NEXT.fetch_add(1, Ordering::Relaxed) % LINES;
    LINE.set(line);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_many_threads_add_up() {
        let ledger = Ledger::leak();
        std::thread::scope(|scope| {
            for _ in 0..2 * LINES {
                scope.spawn(|| {
                    for _ in 0..100 {
                        ledger.replaced();
                    }
                    for _ in 0..40 {
                        ledger.freed();
                    }
                });
            }
        });
        let threads = 2 * LINES as u64;
        assert_eq!(ledger.freed_total(), threads * 40);
        assert_eq!(ledger.unreclaimed(), threads * 60);
    }
}
