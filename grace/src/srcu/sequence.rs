//! Sequence numbers of an SRCU domain: which grace period, and how far it has come.
//!
//! As [`crate::sequence`], with two state bits instead of one: a grace period here has two scans,
//! and the number alone tells which one is in progress. After the kernel's `rcu_seq` (four states,
//! of which SRCU uses three). Comparisons are by signed distance, so the counter may wrap.

/// How far a grace period has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// None is in progress.
    Idle,
    /// The index that is not current drains: stragglers of the last flip.
    Scan1,
    /// The indexes have been flipped; the index that was current drains.
    Scan2,
}

/// How many grace periods have ended, and the phase of the one in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sequence(u64);

/// The end of a full grace period, as a value that a [`Sequence`] reaches. An answer of "done"
/// stays right for 2^61 grace periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cookie(u64);

impl Sequence {
    const STATE: u64 = 3;
    const STEP: u64 = 4;

    /// An idle sequence after `ended` grace periods. Tests pass values right before the wrap.
    pub const fn after(ended: u64) -> Self {
        Self(ended << 2)
    }

    /// A sequence from the value that [`to_bits`](Self::to_bits) gave.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The value to keep in an atomic word.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// How far the grace period in progress has come. The state that is never made counts as the
    /// last.
    pub const fn phase(self) -> Phase {
        match self.0 & Self::STATE {
            0 => Phase::Idle,
            1 => Phase::Scan1,
            _ => Phase::Scan2,
        }
    }

    /// The number of grace periods that have ended, modulo 2^62.
    pub const fn ended(self) -> u64 {
        self.0 >> 2
    }

    /// The sequence with a grace period begun; unchanged if one is in progress.
    #[must_use]
    pub const fn begin(self) -> Self {
        if self.0 & Self::STATE == 0 { Self(self.0 | 1) } else { self }
    }

    /// The sequence in its second scan; unchanged if no grace period is in progress.
    #[must_use]
    pub const fn flipped(self) -> Self {
        if self.0 & Self::STATE == 0 { self } else { Self((self.0 & !Self::STATE) | 2) }
    }

    /// The sequence with the grace period in progress ended; unchanged if there is none.
    #[must_use]
    pub const fn end(self) -> Self {
        if self.0 & Self::STATE == 0 {
            self
        } else {
            Self((self.0 & !Self::STATE).wrapping_add(Self::STEP))
        }
    }

    /// The cookie of a full grace period from here on: the next one if none is in progress, else
    /// the one after, since the one in progress may have begun before the asker's update.
    pub const fn snapshot(self) -> Cookie {
        Cookie(self.0.wrapping_add(Self::STEP + Self::STATE) & !Self::STATE)
    }

    /// The cookie of the next grace period to end. The one in progress may be too early for the
    /// asker: for callers that know better, and for a mutant.
    pub(super) const fn next_end(self) -> Cookie {
        Cookie((self.0 & !Self::STATE).wrapping_add(Self::STEP))
    }

    /// Whether the grace period that `cookie` stands for has ended.
    pub const fn is_done(self, cookie: Cookie) -> bool {
        self.0.wrapping_sub(cookie.0) as i64 >= 0
    }

    /// Whether this sequence, now or earlier, can have given `cookie`: as
    /// [`crate::Sequence::has_given`].
    pub const fn has_given(self, cookie: Cookie) -> bool {
        cookie.0 & Self::STATE == 0 && self.snapshot().is_at_or_after(cookie)
    }
}

impl Cookie {
    /// The cookie that is done at `sequence` and ever after.
    pub const fn done_at(sequence: Sequence) -> Self {
        Self(sequence.0 & !Sequence::STATE)
    }

    /// Whether `self` is reached at the same time as `other`, or later.
    pub const fn is_at_or_after(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0) as i64 >= 0
    }

    /// The cookie as a number, for statistics and messages.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// A cookie from the number that [`to_bits`](Self::to_bits) gave.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}
