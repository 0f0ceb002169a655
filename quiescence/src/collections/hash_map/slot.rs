//! Slots, which are pointers to the boxes of entries.
//!
//! A slot is used again at once; it is the box that waits for the grace period. A reader may have a
//! word from before a slot was used again, with the tag of the entry that was there. So it is the
//! pointer whose store is the moment at which an entry comes to a slot of a bucket and goes
//! (`Locked::add`, `Locked::remove`): it is null before the tag is stored, and until after.
//!
//! Where no reader can tell, the pointer is stored before the tag. `Locked::collapse` may, because
//! the node has the entry: a reader that does not find it in the slot finds it there. No reader
//! has the bucket of `add_unseen`. A slot of a node is not used for another key, and
//! never null again: an entry comes and goes there by its tag, stored after the pointer.

use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Release};

use crate::os::sync::{AtomicPtr, const_unless_loom};

/// A slot of a bucket or a node. Zeroes are an empty one.
pub(super) struct Slot<E>(AtomicPtr<E>);

impl<E> Slot<E> {
    const_unless_loom! {
        pub(super) fn empty() -> Self {
            Self(AtomicPtr::new(ptr::null_mut()))
        }
    }

    /// The entry; null, if it has not come yet, or is gone.
    #[inline(always)]
    pub(super) fn entry(&self) -> *const E {
        // Acquire: pairs with the Release in `set` [HM-1]. Who has the bucket needs it, too: the
        // entry's maker may have been another thread.
        self.0.load(Acquire) //~ map-relaxed-pointer-load
    }

    /// Has it lead to an entry, in the place of another one or of none. The caller has the bucket.
    #[inline(always)]
    pub(super) fn set(&self, entry: *const E) {
        // Release: readers that find the entry, by this tag or an older one, find what is in it
        // [HM-1].
        self.0.store(entry.cast_mut(), Release); //~ map-relaxed-pointer
    }

    /// Ends its entry. The caller has the bucket.
    #[inline(always)]
    pub(super) fn clear(&self) {
        // Release: the order of our own stores: before the byte of the slot is empty.
        self.0.store(ptr::null_mut(), Release);
    }
}
