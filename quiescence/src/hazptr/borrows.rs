//! Borrowed references: a thread uses the reference that a cell holds. An updater that takes this
//! reference out of the cell gives the thread one of its own, by raising the count.
//!
//! A *hazard pointer* says that an object must not be freed, so a reference that a cell releases
//! has to wait. A *borrow* says that a thread uses a reference without a count. The updater adds
//! that count, and marks the borrow as *paid*: from then on its holder owns a reference. So the
//! updater owns the cell's reference at once, and the counts are exact.
//!
//! ```text
//! borrow:   slot is free? (Acquire)                                              [EB-2]
//!           p = cell (Acquire)
//!           lender = the cell, address = p (Release)                             [EB-2]
//!           state = next use, borrowed (Release); fence; q = cell (Acquire)       [EB-1]
//!           q == p?  lender = none (Relaxed): the borrow is confirmed
//!           q != p?  give it back; paid? it is a reference to p; else p = q, and again
//! give      state: borrowed -> free by exchange (Release; Acquire where it fails) [EB-2]
//!   back:   failed? it was paid: state = free (Release), and the reference is the caller's
//! updater:  old = exchange(cell, new, AcqRel); fence                             [EB-1]
//!           each slot: state (Acquire) is borrowed, address (Acquire) == old,
//!             and lender (Acquire) is this cell or none?                         [EB-2]
//!             add a count; state: borrowed -> paid, by exchange (AcqRel)         [EB-2]
//!           the cell's reference is the caller's
//! ```
//!
//! The fences are a light and a heavy one, or two full ones: [`bias`](super::bias).
//!
//! **Invariant [EB-A]: a confirmed borrow stands for a reference that a cell holds, or that an
//! updater has taken out of a cell and not yet passed on; a paid borrow is a reference.** An
//! updater sees each borrow that began before its fence, and pays it before it passes the reference
//! on. A borrow that began after the fence has loaded the cell again, and did not find the old
//! pointer there.
//!
//! **Invariant [EB-B]: only an updater of its own cell pays a borrow that is not confirmed.** Its
//! address may be stale: that of an object that is gone, and by now the address of another object,
//! of another type, in another cell. An updater of that other cell would add a count to an object
//! that the borrower takes for the first one (arc-swap#210). The reference that an updater of the
//! borrower's own cell takes out was in that cell, and is the one that the borrower has loaded.
//!
//! **Invariant [EB-C]: an updater pays the use of a slot that it has checked.** Each use has a
//! number, which is exchanged together with the phase. The address and the lender of a use are
//! written before its state, and the exchange fails if the slot has been used again meanwhile.
//!
//! A confirmed borrow names no cell, since a cell may be moved while guards borrow from it. A tag
//! in the address distinguishes two counts of one object, such as those of `Arc` and `Weak`.
//!
//! Source: the idea is from the `debt` module of arc-swap (Michal Vaner); the asymmetric fence is
//! that of [hazard pointers](super).

use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::slots::{Blocks, Place};
use crate::os::sync::{AtomicPtr, AtomicU64};

/// What a use of a slot is at. The number of the use stands above it.
const PHASES: u64 = 0b11;
const FREE: u64 = 0;
const BORROWED: u64 = 1;
const PAID: u64 = 2;

/// A reference that a thread has borrowed from a cell; or none. Two are a cache line.
#[repr(C, align(32))]
pub(crate) struct Borrow {
    /// The number of the use, and its phase.
    state: AtomicU64,
    /// The object's address, with the tag of its count.
    address: AtomicPtr<()>,
    /// The cell, until the borrow is confirmed; then null.
    lender: AtomicPtr<()>,
}

impl Place for Borrow {
    fn free() -> Self {
        Self {
            state: AtomicU64::new(FREE),
            address: AtomicPtr::new(ptr::null_mut()),
            lender: AtomicPtr::new(ptr::null_mut()),
        }
    }

    #[inline(always)]
    fn is_free(&self) -> bool {
        // Acquire: pairs with the Release in `give_back`, perhaps another thread's; what that one
        // has read is handed on with the next use [EB-2].
        self.state.load(Acquire) & PHASES == FREE //~ borrow-reuse
    }
}

/// What a thread has got from a cell.
pub(crate) enum Borrowed<'s, T> {
    /// Nothing was there.
    Null,
    /// The address of what was there, and the slot that has the borrow.
    Confirmed(*mut T, &'s Borrow),
    /// The same; an updater has paid, and the reference is the caller's.
    Paid(*mut T),
}

impl Borrow {
    /// Borrows what is in `cell`. Of a free slot, by its owner. Lock-free: once more for each time
    /// that the cell changes meanwhile. `fence` is told how often the slot was used.
    #[inline(always)]
    pub(crate) fn borrow<T>(
        &self,
        cell: &AtomicPtr<T>,
        tag: usize,
        fence: impl Fn(u64),
    ) -> Borrowed<'_, T> {
        // Acquire: for null, which is compared with nothing below.
        let mut seen = cell.load(Acquire);
        while !seen.is_null() {
            fence(self.begin(tagged(seen, tag), lender(cell))); // [EB-1]
            // Acquire: pairs with the Release of the updater that put it there; the object is
            // whole. And with the fence of an updater [EB-1].
            let again = cell.load(Acquire);
            //~ borrow-no-recheck:
            if again == seen {
                // Relaxed: only an updater of a cell that was moved relies on it, and a cell is
                // moved after all loads of it.
                self.lender.store(ptr::null_mut(), Relaxed);
                return Borrowed::Confirmed(again, self);
            }
            if !self.give_back() {
                // The address that was loaded may be stale, but the object at it was in the cell
                // when the updater paid: its provenance is the one that the updater has exposed.
                return Borrowed::Paid(ptr::with_exposed_provenance_mut(seen.addr()));
            }
            seen = again;
        }
        Borrowed::Null
    }

    /// Begins a use of the slot; returns its number.
    #[inline(always)]
    fn begin(&self, address: *mut (), lender: *mut ()) -> u64 {
        // Relaxed: written by this thread, or seen by it in `is_free`.
        let last = self.state.load(Relaxed);
        let uses = PHASES + 1; //~ borrow-same-use
        // Release: each of the three hands on what the thread that gave the slot back has read: an
        // updater may see the state of an earlier use, and pass over the slot for what it finds
        // here [EB-2].
        let order = Release; //~ borrow-reuse
        self.lender.store(lender, order);
        self.address.store(address, order);
        // And the two above come first [EB-C].
        let state = (last & !PHASES).wrapping_add(uses) | BORROWED;
        self.state.store(state, order);
        state / (PHASES + 1)
    }

    /// Ends the use of the slot, by the thread that has the borrow. False if it was paid: then the
    /// reference is the caller's.
    #[inline(always)]
    pub(crate) fn give_back(&self) -> bool {
        // Acquire: pairs with the exchange in `pay`, where it was paid: the count was added before
        // the caller takes it off [EB-2].
        let state = self.state.load(Acquire);
        let free = state & !PHASES | FREE;
        // Release: pairs with the Acquire in `pay` and in `is_free` [EB-2]; what was read was read
        // before the updater gives the reference on. Acquire: as above.
        if state & PHASES == BORROWED
            //~ borrow-release:
            && self.state.compare_exchange(state, free, Release, Acquire).is_ok()
        {
            return true;
        }
        // Release: pairs with the Acquire in `is_free`. The reference is one's own, but the slot's
        // next use must come after this one [EB-C].
        self.state.store(free, Release);
        false
    }

    /// Pays the borrow if it is one of this reference: then the one that `add` has added is the
    /// borrower's. By an updater that has the reference, after its fence; false if there is
    /// nothing to be paid, and what was added is the caller's still.
    fn pay(&self, address: *mut (), lender: *mut (), add: &mut impl FnMut()) -> bool {
        // Acquire: pairs with the Release in `begin` and in `give_back` [EB-2] [EB-C].
        let state = self.state.load(Acquire); //~ borrow-release
        if state & PHASES != BORROWED {
            return false;
        }
        // Acquire: pairs with the Release in `begin`. Of this use, or the exchange fails [EB-C]; of
        // a later one, what was read in this use was read before [EB-2].
        let from = self.lender.load(Acquire);
        let is_ours = from == lender || from.is_null(); //~ borrow-any-cell
        if self.address.load(Acquire) != address || !is_ours {
            return false;
        }
        add(); //~ borrow-count-late
        // AcqRel: pairs with `give_back`; the count is there before the borrower can take it off,
        // and what this thread has looked at was of this use. Acquire: as above.
        let paid =
            self.state.compare_exchange(state, state & !PHASES | PAID, AcqRel, Acquire).is_ok();
        //~ borrow-paid
        //~ borrow-count-late
        paid
    }
}

impl Blocks<Borrow> {
    /// How often slots were used.
    pub(crate) fn uses(&self) -> u64 {
        // Relaxed: a count.
        let uses = self.every_slot().map(|slot| slot.state.load(Relaxed) / (PHASES + 1));
        uses.fold(0, u64::wrapping_add)
    }

    /// Pays all borrows of `old`, a reference of the caller's that it has taken out of `cell`.
    /// `add` adds a count before each attempt to pay; gives whether the last one is left over.
    ///
    /// After the updater's fence, which came after `old` was taken out; or, if no thread can have
    /// the cell any more, after all loads of it.
    pub(crate) fn pay_all<T>(
        &self,
        cell: &AtomicPtr<T>,
        old: *mut T,
        tag: usize,
        mut add: impl FnMut(),
    ) -> bool {
        old.expose_provenance(); // for a borrower that is paid
        let (address, lender) = (tagged(old, tag), lender(cell));
        let mut left_over = false;
        for slot in self.every_slot() {
            let mut add = || {
                if !left_over {
                    add();
                    left_over = true;
                }
            };
            if slot.pay(address, lender, &mut add) {
                left_over = false;
            }
        }
        left_over
    }
}

/// What a slot names an object by.
#[inline(always)]
fn tagged<T>(address: *mut T, tag: usize) -> *mut () {
    address.cast::<()>().map_addr(|address| address | tag)
}

/// What a slot names a cell by.
#[inline(always)]
fn lender<T>(cell: &AtomicPtr<T>) -> *mut () {
    ptr::from_ref(cell).cast_mut().cast()
}
