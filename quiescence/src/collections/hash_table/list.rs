//! The list under the table: a single one for all buckets, sorted by reversed hash, and changed by
//! compare-and-exchange.
//!
//! Michael's list (SPAA 2002) after Harris's (DISC 2001): a thread deletes a node by a mark in the
//! node's *own* link, which does not change any more after that; any thread that passes then
//! unlinks the node. A link can be exchanged only while it is unmarked, so no thread links a node
//! behind one that is gone. A replacement does both in one exchange: the old node's link gets the
//! mark, and leads to the new node, which is inserted behind it.
//!
//! Every bucket has a node of its own in the list, before all nodes whose reversed hash is at least
//! its own. A bucket node is *linked* once (`split`), which a flag in it shows ([`LINKED`]). Until
//! then all threads begin at an earlier bucket.
//!
//! This file accesses only nodes. Everything here is lock-free.

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};

use super::node::Node;

/// In a node's own link: it is deleted, and the link is final.
pub(super) const REMOVED: usize = 1;
/// In a node's own link: it is a bucket's.
pub(super) const BUCKET: usize = 2;
/// In a bucket's own link: the bucket is in the list.
pub(super) const LINKED: usize = 4;
/// The bits of a link that are no address.
pub(super) const FLAGS: usize = REMOVED | BUCKET | LINKED;

/// The node that a link leads to.
///
/// # Safety
/// The link was read in a section that lasts as long as `'a`, from a node that the list had then.
#[inline(always)]
pub(super) unsafe fn follow<'a>(link: usize) -> Option<&'a Node> {
    // SAFETY: null, or a node, which is not freed before the section ends. Its address was exposed
    // by `address`.
    unsafe { ptr::with_exposed_provenance::<Node>(link & !FLAGS).as_ref() }
}

/// The address of a node, as it is in a link, without flags.
#[inline(always)]
pub(super) fn address(node: *const Node) -> usize {
    node.expose_provenance()
}

/// A pointer to the node for its owner, with the provenance of the whole object that it is part of.
#[inline(always)]
pub(super) fn pointer(node: &Node) -> NonNull<Node> {
    let whole = ptr::with_exposed_provenance_mut(ptr::from_ref(node).addr());
    NonNull::new(whole).unwrap_or(NonNull::from(node))
}

/// Whether a bucket with this link may be begun at.
#[inline(always)]
pub(super) fn is_linked(link: usize) -> bool {
    //~ unlinked-start
    link & LINKED != 0
}

/// Where something may be put: behind `before`, whose link was `link`.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    before: &'a Node,
    link: usize,
}

/// Goes along the list until `stop` says so of a node, unlinking what is deleted, and gives the
/// place before that node. `gone` is called with each node that this call has unlinked, and may
/// stop there.
///
/// # Safety
/// In a section, which `'a` does not outlast. `start` is a linked bucket that is not deleted before
/// the section ends.
#[inline(always)]
pub(super) unsafe fn seek<'a>(
    start: &'a Node,
    mut stop: impl FnMut(&Node, usize) -> bool,
    mut gone: impl FnMut(&Node) -> bool,
) -> Place<'a> {
    'again: loop {
        // Acquire, here and below: pairs with the exchange that linked the next node; what it holds
        // is seen.
        let mut place = Place { before: start, link: start.next.load(Acquire) };
        // SAFETY: by the contract.
        while let Some(node) = unsafe { follow(place.link) } {
            let link = node.next.load(Acquire);
            if link & REMOVED == 0 {
                if stop(node, link) {
                    return place;
                }
                place = Place { before: node, link };
                continue;
            }
            let without = link & !FLAGS | place.link & FLAGS;
            // AcqRel: hands on what the deleted node's link led to.
            let link = &place.before.next;
            if link.compare_exchange(place.link, without, AcqRel, Relaxed).is_err() {
                continue 'again;
            }
            place.link = without;
            if gone(node) {
                return place;
            }
        }
        return place;
    }
}

/// How many different hashes an update has passed. The table's size depends on it.
#[derive(Clone, Copy, Default)]
pub(super) struct Chain {
    last: usize,
    pub(super) hashes: usize,
}

impl Chain {
    /// A node was passed.
    #[inline(always)]
    fn pass(&mut self, node: &Node, link: usize) {
        let reverse_hash = node.reverse_hash();
        if link & BUCKET == 0 && (self.last != reverse_hash || self.hashes == 0) {
            self.hashes += 1;
            self.last = reverse_hash;
        }
    }
}

/// Adds a node behind those of its reversed hash. `start` gives the bucket to begin at.
///
/// # Safety
/// As [`seek`]. The node is in no list, and no other thread's.
#[inline(always)]
pub(super) unsafe fn add<'a>(start: impl Fn() -> &'a Node, node: &Node) -> Chain {
    let reverse_hash = node.reverse_hash();
    loop {
        let mut chain = Chain::default();
        let stop = |node: &Node, link| {
            chain.pass(node, link);
            node.reverse_hash() > reverse_hash
        };
        // SAFETY: by the contract.
        let place = unsafe { seek(start(), stop, |_| false) };
        // SAFETY: by the contract.
        if unsafe { place.put(node, 0) } {
            return chain;
        }
    }
}

/// Adds a node *before* those of its reversed hash, unless one matches: then `found` says what is
/// the end of it, or that it is to be tried again.
///
/// All threads that add use the same place, before these nodes, so one of two fails; and a
/// traversal that has met a node of this key is past that place, and meets no other one.
///
/// # Safety
/// As [`add`].
#[inline(always)]
pub(super) unsafe fn add_or<'a, T>(
    start: impl Fn() -> &'a Node,
    node: &Node,
    mut matches: impl FnMut(&Node) -> bool,
    mut found: impl FnMut(&'a Node) -> Option<T>,
) -> Result<Chain, T> {
    let reverse_hash = node.reverse_hash();
    loop {
        let mut chain = Chain::default();
        let stop = |node: &Node, link: usize| {
            chain.pass(node, link);
            let here = node.reverse_hash();
            here > reverse_hash || here == reverse_hash && link & BUCKET == 0
        };
        // SAFETY: by the contract.
        let place = unsafe { seek(start(), stop, |_| false) };
        // SAFETY: by the contract.
        if let Some((other, _)) = unsafe { find(place.link, reverse_hash, &mut matches) } {
            if let Some(end) = found(other) {
                return Err(end);
            }
            continue;
        }
        // SAFETY: by the contract.
        if unsafe { place.put(node, 0) } {
            return Ok(chain);
        }
    }
}

impl Place<'_> {
    /// Puts a node there, with `flags` in its own link, unless something has changed.
    ///
    /// # Safety
    /// As [`seek`]. The node is in no list, and no other thread's until it is in this one.
    #[inline(always)]
    pub(super) unsafe fn put(self, node: &Node, flags: usize) -> bool {
        // Relaxed: published by the exchange.
        node.next.store(self.link & !FLAGS | flags, Relaxed);
        let with = address(node) | self.link & FLAGS;
        // SeqCst: Release for the thread that finds the node; and the interface promises a full
        // fence.
        self.before.next.compare_exchange(self.link, with, SeqCst, Relaxed).is_ok() //~ relaxed-link
    }
}

/// Finds a node behind `link`: one of the same reversed hash of which `matches` says yes. Gives its
/// link as well.
///
/// # Safety
/// As [`follow`].
#[inline(always)]
pub(super) unsafe fn find<'a>(
    mut link: usize,
    reverse_hash: usize,
    mut matches: impl FnMut(&Node) -> bool,
) -> Option<(&'a Node, usize)> {
    loop {
        // SAFETY: by the contract.
        let node: &'a Node = unsafe { follow(link) }?;
        let here = node.reverse_hash();
        if here > reverse_hash {
            return None;
        }
        // Acquire: as in `seek`.
        link = node.next.load(Acquire);
        if here == reverse_hash && link & (REMOVED | BUCKET) == 0 && matches(node) {
            return Some((node, link));
        }
    }
}

/// The first node behind `link` that is neither a bucket nor deleted, with its link.
///
/// # Safety
/// As [`follow`].
pub(super) unsafe fn next<'a>(mut link: usize) -> Option<(&'a Node, usize)> {
    loop {
        // SAFETY: by the contract.
        let node: &'a Node = unsafe { follow(link) }?;
        // Acquire: as in `seek`.
        link = node.next.load(Acquire);
        if link & (REMOVED | BUCKET) == 0 {
            return Some((node, link));
        }
    }
}

/// Marks a node as deleted. Returns whether it was not before: then the caller is the thread that
/// has deleted it.
#[inline(always)]
pub(super) fn mark(node: &Node) -> bool {
    //~ no-owner
    // SeqCst: only one finds it unmarked; and the interface promises a full fence.
    node.next.fetch_or(REMOVED, SeqCst) & REMOVED == 0
}

/// Makes sure that a marked node is no longer in the list.
///
/// # Safety
/// As [`seek`]; `start` is before the node.
#[inline(always)]
pub(super) unsafe fn unlink(start: &Node, marked: &Node) {
    //~ no-unlink
    let reverse_hash = marked.reverse_hash();
    let behind = |node: &Node, _| node.reverse_hash() > reverse_hash;
    // SAFETY: by the contract.
    unsafe { seek(start, behind, |node| ptr::eq(node, marked)) };
}

/// Puts `new` in the place of `old`, unless that is deleted. `old` is to be unlinked then.
///
/// # Safety
/// As [`seek`]. `new` has the same reversed hash, is in no list, and no other thread's.
pub(super) unsafe fn replace(old: &Node, new: &Node) -> bool {
    let replaced = |link| {
        (link & REMOVED == 0).then(|| {
            new.next.store(link & !FLAGS, Relaxed);
            address(new) | REMOVED
        })
    };
    // SeqCst: as in `put`, and as in `mark`.
    fetch_update!(old.next, SeqCst, Acquire, replaced).is_ok()
}
