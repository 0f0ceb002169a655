//! The slot of a QSBR reader: the reader comes online, renews its section at each quiescent state,
//! and goes offline.
//!
//! ```text
//! online:   current = gp.ctr (Acquire)             [GP-3]
//!           word = current   (Release)             [GP-2]
//!           full fence                             [GP-8]
//! renew:    current = the source (Acquire)         [GP-3]
//!           done if word == current
//!           word = current   (Release)             [GP-2]
//!           light fence                            [GP-6]
//!           if there are marks: act on them
//! offline:  as a section ends, in [`super::slot`]
//! ```
//!
//! The source is `gp.ctr`, or the word of the preceding reader in a [relay](super::relay).

use std::panic::Location;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use grace::word::QUIESCENT;

use crate::gp::relay::ARRIVED;
use crate::gp::slot::Slot;
use crate::gp::wake::OVERDUE;
use crate::os::fence;
use crate::os::sync::AtomicU64;

impl Slot {
    /// A QSBR reader begins to hold references. Owner only, word quiescent.
    pub(crate) fn online(&self, gp: &AtomicU64, location: &'static Location<'static>) {
        let relays = self.notes.relays.get();
        let mut current = gp.load(Acquire); // [GP-3]

        //~ online-as-passed:
        if relays {
            current = ARRIVED; // [RL-1]
        }
        //~ point enter-before-store
        self.notes.begin(location);
        self.word.store(current, Release); // as in `enter_outermost` [GP-2]
        // A full fence, so that updaters need no membarrier for QSBR readers [GP-8].
        fence::full();
        //~ online-for-good:
        if relays {
            // The reader holds no reference yet: a quiescent state. One that goes offline again and
            // again, and has no other quiescent state, hands the number on here.
            self.renew();
        }
    }

    /// Announces that a QSBR reader holds no reference, and begins its next section. Owner only.
    /// Returns whether there may be work to do: the number was new, or some is overdue.
    #[inline(always)]
    pub(crate) fn renew(&self) -> bool {
        // Acquire: pairs with the Release in `set_source`; the word that it points to is
        // initialised, in a chunk that may be newer than any that this thread has seen.
        let source = self.notes.source.load(Acquire);
        // Acquire: pairs with the Release in GracePeriods::announce [GP-3], directly or through the
        // words of the readers that have handed the number on. SAFETY: it points to `gp.ctr` or to
        // a word in the registry; both live as long as this slot.
        let mut current = unsafe { &*source }.load(Acquire);
        // Relaxed: the owner's own word and mark.
        if current == self.word.load(Relaxed) {
            // The source shows no number that is new to this reader.
            return self.marks.has(OVERDUE);
        }
        if self.notes.relays.get() {
            match self.relayed(source, current) {
                Some(handed_on) => current = handed_on,
                None => return self.marks.has(OVERDUE),
            }
        }
        //~ point enter-before-store
        // Release: ends the previous section as `leave` does [GP-2]. The loads of the next section
        // are ordered by the Acquire above: a grace period waits for words with older numbers only.
        self.word.store(current, Release);
        fence::light(&self.fence);
        //~ point left
        if self.marks.any() {
            self.marks.fence_if_portable(); // as in `leave_slow` [GP-6]
            self.report_quiescent();
        }
        true
    }

    /// A QSBR reader holds no reference from now on, until it comes online again. Owner only.
    pub(crate) fn offline(&self) {
        if self.leave_to(QUIESCENT) {
            self.leave_slow();
        }
    }
}
