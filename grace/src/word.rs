//! The reader's word: what a reader stores so that a grace period can see it.
//!
//! The layout is liburcu's, so that the readers of programs already compiled against it can be
//! scanned: the low half counts the nesting of sections, the high half is the grace-period number
//! that was current when the outermost one began. The global word `gp.ctr` has the same layout with
//! a count of one, so a reader begins its section by copying it.
//!
//! liburcu has one bit in the high half, a phase, and needs two flips and two scans per grace
//! period. Here it is a number. A reader is a holdout if it is inside a section under *any other*
//! number than the one just announced: numbers only go up, so every other number is older.
//! [`Machine`] handles the exception, numbers that wrap after 2^32 announcements.
//!
//! [`Machine`]: crate::Machine

/// A grace-period number as readers record it: the high half of a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Number(pub u32);

/// What one level of nesting adds to a word.
pub const COUNT: u64 = 1;

/// The bits that count the nesting.
pub const NESTING_MASK: u64 = (1 << NUMBER_SHIFT) - 1;

/// The number's lowest bit.
pub const NUMBER_SHIFT: u32 = 32;

/// The word of a reader that is in no section.
pub const QUIESCENT: u64 = 0;

/// The word that `gp.ctr` holds, and an outermost section copies, under `number`.
pub const fn entered(number: Number) -> u64 {
    ((number.0 as u64) << NUMBER_SHIFT) | COUNT
}

/// How deep the sections of a reader with this word are nested; 0 outside of any.
#[inline(always)]
pub const fn nesting(word: u64) -> u32 {
    (word & NESTING_MASK) as u32
}

/// The number under which the outermost section began.
pub const fn number(word: u64) -> Number {
    Number((word >> NUMBER_SHIFT) as u32)
}

/// Whether a grace period that announced `current` has to wait for a reader with this word.
pub const fn is_holdout(word: u64, current: Number) -> bool {
    nesting(word) != 0 && number(word).0 != current.0
}
