//! Loads that are slow or fast by where their data lies in the caches: the lessons of 2005.
//!
//! Each load does the same work in two or three forms, which differ in the places of its data, or
//! in what is fetched early. [`alone`]: what one CPU sees; [`queue`]: wake-ups and packets, whose
//! misses are known early; [`shared`]: what two CPUs do to each other by their neighbourhood on a
//! line.

pub(crate) mod alone;
pub(crate) mod queue;
pub(crate) mod shared;

use super::form::Form;
use crate::slices::Row;
use crate::units;

/// One cache of the first CPU.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cache {
    /// Its size.
    pub bytes: u64,
    /// Lines of one set.
    pub ways: u64,
}

/// The caches of this machine, as far as a load must know them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Geometry {
    /// Bytes of a cache line.
    pub line_bytes: u64,
    /// The data cache of the first level.
    pub first: Cache,
    /// The size of the cache of the second level.
    pub second_bytes: u64,
    /// The size of the last cache before memory.
    pub last_bytes: u64,
    /// Whether the system said all of it; else some figures are those of [`Geometry::USUAL`].
    pub is_known: bool,
}

impl Geometry {
    /// The caches of a small server CPU: taken where the system does not say.
    pub const USUAL: Geometry = Geometry {
        line_bytes: 64,
        first: Cache { bytes: 32 << 10, ways: 8 },
        second_bytes: 1 << 20,
        last_bytes: 32 << 20,
        is_known: false,
    };

    /// Sets of the first level.
    pub(crate) fn sets(&self) -> u64 {
        (self.first.bytes / self.first.ways / self.line_bytes).max(1)
    }

    /// From one address to the next one that has the same set of the first level.
    pub(crate) fn way_bytes(&self) -> u64 {
        self.sets() * self.line_bytes
    }

    /// Words of a line.
    pub(crate) fn line_words(&self) -> usize {
        (self.line_bytes / 8) as usize
    }

    /// What is known of the caches, for people.
    pub(crate) fn describe(&self) -> String {
        let [first, second, last] =
            [self.first.bytes, self.second_bytes, self.last_bytes].map(units::bytes);
        let source = if self.is_known {
            "read from /sys/devices/system/cpu/cpu0/cache"
        } else {
            "not all of it in /sys/devices/system/cpu/cpu0/cache: the rest is assumed"
        };
        format!(
            "lines of {} bytes; L1 {first}, {} ways of {} sets; L2 {second}; last cache {last} \
             ({source})",
            self.line_bytes,
            self.first.ways,
            self.sets()
        )
    }
}

/// What is measured, in each form.
pub(crate) type Load = Box<dyn Fn(Form) -> Row<'static>>;

/// Fetches the line of this place, without waiting for it: into all caches, or for one use, past
/// those that others need, where the CPU has an instruction for it.
#[inline(always)]
fn prefetch<const ONCE: bool, T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_NTA, _MM_HINT_T0, _mm_prefetch};
        let place = std::ptr::from_ref(place).cast();
        if ONCE {
            // SAFETY: a prefetch changes nothing that a program can see, and each x86-64 has SSE.
            unsafe { _mm_prefetch::<_MM_HINT_NTA>(place) };
        } else {
            // SAFETY: as above.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(place) };
        }
    }
    // Elsewhere there is no stable intrinsic: all forms are the same loop, and the table says so.
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Caches so small that a test is over at once.
    pub(crate) const TINY: Geometry = Geometry {
        line_bytes: 64,
        first: Cache { bytes: 4 << 10, ways: 4 },
        second_bytes: 16 << 10,
        last_bytes: 64 << 10,
        is_known: true,
    };

    #[test]
    fn sets_follow_from_bytes_ways_and_lines() {
        assert_eq!((Geometry::USUAL.sets(), Geometry::USUAL.way_bytes()), (64, 4096));
        assert_eq!((TINY.sets(), TINY.way_bytes(), TINY.line_words()), (16, 1024, 8));
        assert!(TINY.describe().contains("4 ways of 16 sets") && TINY.describe().contains("read"));
        assert!(Geometry::USUAL.describe().contains("assumed"));
    }
}
