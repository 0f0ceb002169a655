//! What of a design's objects is not freed yet.
//!
//! How many are freed, and how many were given up, say counters of the library's: whoever frees
//! adds to the word of its CPU, at the same cost for all rivals, half a nanosecond. (Liburcu counts
//! in C.) Where the library's path is the portable one, it is several, and a locked instruction:
//! figures of the two paths are not to be compared. A design has its own, as a static: some free
//! the last few of theirs in another one's measurement.

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
