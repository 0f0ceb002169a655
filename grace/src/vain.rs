//! Waits for room that bring none: how seldom a thread waits then.

/// How many waits for room in a row were in vain, in a word that threads share. What runs may want
/// a lock that the thread which waits holds: until it returns, one call in n waits, after n waits
/// in vain, and at least one in 256.
///
/// The count is the lower half; the upper one says how often it began anew, so that a wait is not
/// counted after that.
///
/// ```
/// use grace::vain::Vain;
///
/// let mut vain = Vain(0);
/// assert!(vain.waits(0) && vain.waits(1));
/// vain.0 += 3;
/// assert!(vain.waits(0) && !vain.waits(1) && vain.waits(3));
/// assert_eq!(Vain(vain.anew(0)).in_a_row(), 0);
/// assert_ne!(vain.anew(3), vain.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vain(pub u64);

impl Vain {
    const ANEW: u64 = 1 << 32;

    /// The count.
    pub const fn in_a_row(self) -> u64 {
        self.0 % Self::ANEW
    }

    /// Whether the call of this number waits.
    pub fn waits(self, number: u64) -> bool {
        number.is_multiple_of(self.in_a_row().clamp(1, 256))
    }

    /// The word of a count that begins anew, with `count`.
    pub const fn anew(self, count: u64) -> u64 {
        (self.0 - self.in_a_row()).wrapping_add(Self::ANEW + count)
    }
}
