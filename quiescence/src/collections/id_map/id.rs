//! What names an entry, [`Id`], and what may be noted of it, [`Mark`].

use std::fmt;
use std::num::NonZeroU32;

use crate::reclaim::weigh::Weigh;

/// What names an entry of an [`IdMap`](super::IdMap): the index where it stands, and the
/// *generation*, which tells it from the entries that stood there before.
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

impl Weigh for Id {
    const OWNS: bool = false;
}

impl Id {
    pub(super) fn new(index: u32, generation: u32) -> Option<Self> {
        NonZeroU32::new(generation).map(|generation| Self { index, generation })
    }

    /// Where the entry stands. No two entries of a map stand at one index at the same time.
    #[inline]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Which entry of those that have stood there it is: 1 for the first.
    #[inline]
    pub const fn generation(self) -> u32 {
        self.generation.get()
    }

    /// The id as a number that is not 0: the generation in the upper half, the index in the lower
    /// half. For interfaces that have numbers only.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        (self.generation.get() as u64) << 32 | self.index as u64
    }

    /// The id of [`to_bits`](Self::to_bits); none, if the upper half is 0. A number that was made
    /// up is an id like any other: it finds an entry or none.
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

/// A mark that an entry of an [`IdMap`](super::IdMap) may have: there are three, each on its own,
/// and what one means is the program's to say. The kernel's page cache has dirty, writeback and
/// towrite.
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
