//! Slots: pointers to the boxes of entries.
//!
//! A slot is reused at once; only the box waits for a grace period. A reader may have loaded the
//! word before the slot was reused, with the tag of the previous entry. So the store of the pointer
//! is the moment at which an entry comes to a slot of a bucket, or leaves it (`Locked::add`,
//! `Locked::remove`): the pointer is null before the tag is stored, and until after that.
//!
//! If no reader can notice, the pointer is stored before the tag. `Locked::tend` does that: a
//! reader that misses the entry in the slot finds it in the node. So does `add_unseen`, whose
//! bucket no reader has. A slot of a node is used for one key only, and never becomes null again:
//! there an entry comes and goes by its tag, which is stored after the pointer.

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

    /// Has it lead to an entry, or to none if that is null. The caller has the bucket.
    #[inline(always)]
    pub(super) fn set(&self, entry: *const E) {
        // Release: readers that find the entry, by this tag or an older one, find what is in it
        // [HM-1]. And null is here before the byte of the slot is empty.
        self.0.store(entry.cast_mut(), Release); //~ map-relaxed-pointer
    }
}
