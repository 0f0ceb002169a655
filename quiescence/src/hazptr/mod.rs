//! Hazard pointers: the slots in which threads say which object they are reading, and the scan that
//! finds what is protected. What is retired, and who frees it, is [`reclaim`](crate::reclaim)'s.
//! And references that threads borrow from cells: [`borrows`].
//!
//! A thread has a [`slots::Block`] of slots. To protect what a pointer leads to it writes the
//! address into a free slot of its own, passes a light fence and loads the pointer again: if that
//! is the same, the object was not unlinked before the slot was written. A thread that ends a
//! protection, which may be another one than the one that began it, clears the slot.
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
//! **Invariant [HZ-A]: an object is freed after a scan that came after a heavy fence that came
//! after its unlinking, and that found no slot with its address.** A protection that began before
//! the fence is seen by the scan, unless it has ended. One that began after it has loaded the
//! source again after the fence, and did not find the object there. So what a scan has found
//! unprotected stays so, and what it has found protected needs no second fence: it is looked for
//! again in the slots.
//!
//! **Invariant [HZ-B]: a slot is written by its owner where it is null, and cleared by the thread
//! that has the protection.** The Acquire of the owner and its Release hand on, to the scan, what
//! the thread before has read [HP-2].
//!
//! All slots of the process are in one list ([`slots::Blocks`]), whatever domain an object is
//! retired in: an address says all.
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
    Protected, blocks, end_holder, for_each_protected, holder, holder_if_any, is_protected,
    protect, reader_fence, scan, with_slot,
};
