//! Grace-period sequence numbers, and the cookies that stand for requests.
//!
//! The lowest bit of a [`Sequence`] says whether a grace period is in progress; the rest counts the
//! grace periods that have ended. A [`Cookie`] is the value that the sequence has once a *full*
//! grace period has gone by: the next one if none is in progress, else the one after, because the
//! one in progress may have begun before the requester's update. The idea is the kernel's
//! (`kernel/rcu/rcu.h`, `rcu_seq_snap()`), with one state bit in place of two.
//!
//! Comparisons are by signed distance, so the counter may wrap. At one grace period per nanosecond
//! it wraps after 292 years; the tests start right before the wrap.

pub use crate::refused::NotGiven;

/// How many grace periods have ended, and whether one is in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sequence(u64);

/// The end of a full grace period, as a value that a [`Sequence`] reaches.
///
/// Cheap to copy and to keep; [`Sequence::is_done`] returns whether it has been reached. An answer
/// of "done" stays right for 2^62 grace periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cookie(u64);

impl Sequence {
    const IN_PROGRESS: u64 = 1;
    const STEP: u64 = 2;

    /// An idle sequence after `ended` grace periods. Tests pass values right before the wrap.
    pub const fn after(ended: u64) -> Self {
        Self(ended << 1)
    }

    /// A sequence from the value that [`to_bits`](Self::to_bits) gave, as kept in an atomic word.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The value to keep in an atomic word.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// Whether a grace period is in progress.
    pub const fn in_progress(self) -> bool {
        self.0 & Self::IN_PROGRESS != 0
    }

    /// The number of grace periods that have ended, modulo 2^63.
    pub const fn ended(self) -> u64 {
        self.0 >> 1
    }

    /// The sequence with a grace period in progress; unchanged if one is already.
    #[must_use]
    pub const fn begin(self) -> Self {
        Self(self.0 | Self::IN_PROGRESS)
    }

    /// The sequence with the grace period in progress ended; unchanged if there is none.
    #[must_use]
    pub const fn end(self) -> Self {
        Self(self.0.wrapping_add(self.0 & Self::IN_PROGRESS))
    }

    /// The cookie of a full grace period from here on.
    pub const fn snapshot(self) -> Cookie {
        Cookie(self.0.wrapping_add(Self::STEP + Self::IN_PROGRESS) & !Self::IN_PROGRESS)
    }

    /// Whether the grace period that `cookie` stands for has ended.
    pub const fn is_done(self, cookie: Cookie) -> bool {
        self.0.wrapping_sub(cookie.0) as i64 >= 0
    }

    /// Whether this sequence, now or earlier, can have given `cookie`.
    ///
    /// Snapshots never decrease. So a `cookie` that this sequence has given is <= its present
    /// [`snapshot`](Self::snapshot), which is at most two grace periods ahead. A number more than
    /// half the range behind is taken as ahead, and so as not given.
    pub const fn has_given(self, cookie: Cookie) -> bool {
        cookie.0 & Self::IN_PROGRESS == 0 && self.snapshot().is_at_or_after(cookie)
    }
}

impl Cookie {
    /// A cookie for which [`Sequence::is_done`] is true at `sequence` and later: for a thread that
    /// has nothing to wait for.
    pub const fn done_at(sequence: Sequence) -> Self {
        Self(sequence.0 & !Sequence::IN_PROGRESS)
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
