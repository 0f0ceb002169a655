//! The names of entries, [`Id`], and their marks, [`Mark`].

use std::fmt;
use std::num::NonZeroU32;

/// Names an entry of an [`IdMap`](super::IdMap): the index at which it is, and the *generation*,
/// which distinguishes it from earlier entries at that index.
///
/// Eight bytes, and so is an `Option` of it. Ordered by index.
///
/// ```
/// use quiescence::collections::{Id, IdMap};
///
/// let map = IdMap::new();
/// let id = map.insert("a");
/// assert_eq!((id.index(), id.generation()), (0, 1));
/// assert_eq!(Id::from_bits(id.to_bits()), Some(id));
/// assert_eq!(Id::from_bits(0), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    index: u32,
    generation: NonZeroU32,
}

impl Id {
    pub(super) fn new(index: u32, generation: u32) -> Option<Self> {
        NonZeroU32::new(generation).map(|generation| Self { index, generation })
    }

    /// The index of the entry. No two entries of a map have the same index at the same time.
    #[inline]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// The generation: 1 for the first entry at this index.
    #[inline]
    pub const fn generation(self) -> u32 {
        self.generation.get()
    }

    /// The id as a non-zero number: the generation in the upper half, the index in the lower half.
    /// For interfaces that can only pass numbers.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        (self.generation.get() as u64) << 32 | self.index as u64
    }

    /// The id whose [`to_bits`](Self::to_bits) is `bits`; `None` if the upper half is 0. An
    /// invented number is an id like any other: it finds an entry or nothing.
    #[inline]
    pub const fn from_bits(bits: u64) -> Option<Self> {
        match NonZeroU32::new((bits >> 32) as u32) {
            Some(generation) => Some(Self { index: bits as u32, generation }),
            None => None,
        }
    }
}

/// As index and generation: `7#2`.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.index, self.generation)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({self})")
    }
}

/// A mark of an entry of an [`IdMap`](super::IdMap). An entry has three, which are independent; the
/// program decides what they mean. The kernel's page cache has dirty, writeback and towrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// The first.
    M0,
    /// The second.
    M1,
    /// The third.
    M2,
}

impl Mark {
    /// All of them.
    pub const ALL: [Self; MARKS] = [Self::M0, Self::M1, Self::M2];

    /// Its bit in a slot.
    pub(super) const fn bit(self) -> usize {
        1 << self as usize
    }
}

/// How many there are.
pub(super) const MARKS: usize = 3;
