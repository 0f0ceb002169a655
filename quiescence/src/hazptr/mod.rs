//! Hazard pointers: the slots in which threads announce which objects they read, and the scan that
//! finds protected objects. [`reclaim`](crate::reclaim) retires and frees objects. [`borrows`] has
//! the references that threads borrow from cells.
//!
//! A thread has a [`slots::Block`] of slots. To protect an object, it writes the object's address
//! into a free slot of its own, executes a light fence, and loads the pointer again: if that is
//! unchanged, the object was not unlinked before the slot was written. The thread that ends a
//! protection, not necessarily the one that began it, clears the slot.
//!
//! ```text
//! protect:  slot is null? (Acquire)                                              [HP-2]
//!           p = source (Relaxed)
//!           slot = p (Release); light fence; q = source (Acquire)                [HP-1]
//!           q != p? p = q, and again
//! release:  slot = null (Release)                                                [HP-2]
//! updater:  exchange(source, new, AcqRel); write the old one into a queue        [DS-1]
//! runner:   a grace period of the domain that began after that: one heavy fence  [HP-1]
//!           each slot (Acquire): what it names stays                             [HP-2]
//!           the others are freed
//! ```
//!
//! **Invariant [HZ-A]: an object is freed only after three steps in this order: its unlinking, a
//! heavy fence, and a scan that finds no slot with its address.** The scan sees a protection that
//! began before the fence, unless it has ended. A protection that began after the fence has loaded
//! the source again after the fence, and did not find the object there. So an object that a scan
//! finds unprotected stays unprotected; one that it finds protected needs no second fence, only
//! another scan.
//!
//! **Invariant [HZ-B]: only its owner writes a slot that is null, and only the thread that holds
//! the protection clears it.** The owner's Acquire and its next Release pass on to the scan what
//! the previous holder has read [HP-2].
//!
//! All slots of the process are in one list ([`slots::Blocks`]), for all domains: an address is
//! enough to identify an object.
//!
//! Source: Michael, *Hazard Pointers*, IEEE TPDS 2004; the asymmetric fence as in folly's.
//!
//! May import: [`os`](crate::os).

pub(crate) mod bias;
pub(crate) mod borrower;
pub(crate) mod borrows;
pub(crate) mod slots;
mod thread;

pub(crate) use thread::{
    BLOCKS, Protected, holder, holder_if_any, is_protected, protect, reader_fence, scan, with_slot,
};
