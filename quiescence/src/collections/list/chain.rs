//! The links of a list. One updater at a time changes them, while readers follow them.
//!
//! Readers follow only `next`, starting at the list's `first`. Each change that they can see is one
//! store, so a traversal visits:
//! 1. every element that is in the list from the traversal's beginning to its end, once, in order;
//! 2. an element that is inserted or removed meanwhile, at most once;
//! 3. at most one of an element and its replacement, and one of them if nothing else happens.
//!
//! **A removed element keeps its `next`.** A reader that is on it continues with the element that
//! was its successor at the removal. That one may have been removed since, and has kept its own
//! `next`; so the reader comes back into the list. It skips no element that is in the list all the
//! time: at the moment of its removal, an element's `next` is its successor in the list, with none
//! between them. The memory of these elements is valid, since each was unlinked after the reader's
//! section had begun, so its grace period waits for that section.
//!
//! A store that links an element is a Release, even if a removal links an element that has been in
//! the list before: a reader that finds it there may never have seen the store that inserted it.
//! The updater that inserted it released the lock before this one acquired it, so the Release
//! publishes its content.
//!
//! Only updaters use `previous` and the ends, under their lock.

use std::ptr;
use std::sync::atomic::AtomicPtr as UpdatersPtr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::os::sync::{AtomicPtr, const_unless_loom};

/// An element of a list.
pub(super) struct Node<T> {
    /// Where the next element is found.
    pub(super) next: AtomicPtr<Node<T>>,
    /// The element before it; for one that has been removed, what its updater keeps there. (An
    /// atomic, since others have references to the node; it is the updaters' only.)
    previous: UpdatersPtr<Node<T>>,
    pub(super) value: T,
}

impl<T> Node<T> {
    pub(super) fn new(value: T) -> Self {
        let (next, previous) = (AtomicPtr::new(ptr::null_mut()), UpdatersPtr::default());
        Self { next, previous, value }
    }

    /// The element before it, for updaters; null if it is the first.
    pub(super) fn previous(&self) -> *mut Node<T> {
        self.previous.load(Relaxed) // under the updaters' lock
    }

    /// Keeps another element's address in one that has been removed.
    pub(super) fn keep(&self, other: *mut Node<T>) {
        self.previous.store(other, Relaxed); // the updater's own
    }
}

/// What a link leads to.
#[inline(always)]
pub(super) fn follow<T>(link: &AtomicPtr<Node<T>>) -> *mut Node<T> {
    // Acquire: pairs with the Release of `Chain::insert`, `remove` and `replace`: the content of
    // the element is seen.
    link.load(Acquire)
}

/// The way in for readers, and the number of elements.
pub(super) struct Chain<T> {
    /// Where the first element is found.
    pub(super) first: AtomicPtr<Node<T>>,
    /// Written under the updaters' lock.
    len: AtomicUsize,
}

/// What updaters need besides, under their lock.
pub(super) struct Ends<T> {
    last: *mut Node<T>,
}

// SAFETY: an address, which is used under the lock only; elements may be reached by any thread.
unsafe impl<T: Send + Sync> Send for Ends<T> {}

impl<T> Ends<T> {
    pub(super) const fn new() -> Self {
        Self { last: ptr::null_mut() }
    }

    pub(super) fn last(&self) -> *mut Node<T> {
        self.last
    }
}

impl<T> Chain<T> {
    const_unless_loom! {
        pub(super) fn new() -> Self {
            Self { first: AtomicPtr::new(ptr::null_mut()), len: AtomicUsize::new(0) }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len.load(Relaxed) // a number, which nothing goes with
    }

    fn count(&self, change: isize) {
        // Relaxed, and no exchange: under the updaters' lock.
        self.len.store(self.len().wrapping_add_signed(change), Relaxed);
    }

    /// The link that leads to what follows `previous`, or to the first.
    ///
    /// # Safety
    /// `previous` is null or an element that is in the list as long as the reference is used.
    unsafe fn link_behind(&self, previous: *mut Node<T>) -> &AtomicPtr<Node<T>> {
        // SAFETY: by this function's contract.
        match unsafe { previous.as_ref() } {
            Some(previous) => &previous.next,
            None => &self.first,
        }
    }

    /// Says what comes before `node`, or before the end.
    ///
    /// # Safety
    /// `node` is null or an element.
    unsafe fn set_previous(ends: &mut Ends<T>, node: *mut Node<T>, previous: *mut Node<T>) {
        // SAFETY: by this function's contract.
        match unsafe { node.as_ref() } {
            Some(node) => node.previous.store(previous, Relaxed), // under the updaters' lock
            None => ends.last = previous,
        }
    }

    /// Puts `node` behind `previous`; null: as the first.
    ///
    /// # Safety
    /// The caller has the updaters' lock, whose `ends` are. `previous` is null or in the list.
    /// `node` is valid until it has been removed and no reader can see it, and no other thread sees
    /// it so far.
    pub(super) unsafe fn insert(
        &self,
        ends: &mut Ends<T>,
        previous: *mut Node<T>,
        node: *mut Node<T>,
    ) {
        // SAFETY: by this function's contract.
        let link = unsafe { self.link_behind(previous) };
        // SAFETY: as above.
        let new = unsafe { &*node };
        let next = link.load(Relaxed); // written under the updaters' lock
        new.next.store(next, Relaxed); // published below
        new.previous.store(previous, Relaxed); // under the updaters' lock
        // Release: pairs with the Acquire in `follow`: readers see the element whole.
        link.store(node, Release); //~ unseen-element
        // SAFETY: the next one is in the list.
        unsafe { Self::set_previous(ends, next, node) };
        self.count(1);
    }

    /// Takes `node` out, and returns the next one. Readers that are on it continue by its `next`,
    /// which stays.
    ///
    /// # Safety
    /// The caller has the updaters' lock, whose `ends` are. `node` is in the list.
    pub(super) unsafe fn remove(&self, ends: &mut Ends<T>, node: *mut Node<T>) -> *mut Node<T> {
        // SAFETY: by this function's contract.
        let old = unsafe { &*node };
        let (next, previous) = (old.next.load(Relaxed), old.previous()); // under the updaters' lock
        // SAFETY: the previous one is in the list.
        let link = unsafe { self.link_behind(previous) };
        // Release: pairs with the Acquire in `follow`: readers see the next element whole, which
        // another updater may have inserted.
        link.store(next, Release); //~ unseen-element

        //~ removed-next
        // SAFETY: the next one is in the list.
        unsafe { Self::set_previous(ends, next, previous) };
        self.count(-1);
        next
    }

    /// Replaces `old` by `node`, with one store. Readers that are on `old` continue by its `next`,
    /// which stays.
    ///
    /// # Safety
    /// As for [`remove`](Self::remove) and [`insert`](Self::insert).
    pub(super) unsafe fn replace(&self, ends: &mut Ends<T>, old: *mut Node<T>, node: *mut Node<T>) {
        // SAFETY: by this function's contract.
        let old = unsafe { &*old };
        // SAFETY: as above.
        let new = unsafe { &*node };
        let (next, previous) = (old.next.load(Relaxed), old.previous()); // under the updaters' lock
        new.next.store(next, Relaxed); // published below
        new.previous.store(previous, Relaxed); // under the updaters' lock
        // SAFETY: the previous one is in the list.
        let link = unsafe { self.link_behind(previous) };
        //~ replaced-in-two
        // Release: pairs with the Acquire in `follow`, as in `insert`.
        link.store(node, Release); //~ unseen-element
        // SAFETY: the next one is in the list.
        unsafe { Self::set_previous(ends, next, node) };
    }

    /// Takes the first element out of a list that is the caller's alone, at its end.
    pub(super) fn take_first(&mut self) -> *mut Node<T> {
        // Relaxed, here and below: the thread that gave us the list saw to the order.
        let first = self.first.load(Relaxed);
        // SAFETY: in the list, which no other thread uses.
        if let Some(node) = unsafe { first.as_ref() } {
            self.first.store(node.next.load(Relaxed), Relaxed);
            self.count(-1);
        }
        first
    }
}
