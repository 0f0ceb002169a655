//! How a bucket is linked into the list, and unlinked again.
//!
//! Bucket `b` was split from the bucket whose number lacks the highest bit of `b`, that one from
//! another, and so on down to bucket 0, which is always in the list. These are its *ancestors*.
//! Each begins earlier in the list. So a thread that needs a bucket which is not yet linked can
//! begin at an ancestor, and the thread that links the bucket finds its place from one.
//!
//! A bucket is claimed first, so that only one thread links it. No thread waits for that thread:
//! until the bucket is marked as linked, all others begin at an ancestor.
//!
//! `at` returns a bucket's node. This file accesses only nodes; everything here is lock-free.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::list::{self, BUCKET, LINKED, REMOVED, is_linked};
use super::node::Node;

/// The link of a bucket, or of an ancestor's if it is not in the list.
///
/// # Safety
/// In a section, which `'a` does not outlast. The bucket and its ancestors are valid in it.
#[inline(always)]
pub(super) unsafe fn start_link<'a>(at: impl Fn(usize) -> &'a Node, index: usize) -> usize {
    // Acquire: as in `list`; and pairs with the end of `link_bucket`.
    let link = at(index).next.load(Acquire);
    if is_linked(link) {
        return link;
    }
    ancestor(at, index).1.next.load(Acquire)
}

/// A bucket, put into the list if it was not; or an ancestor, where another thread is about to do
/// that.
///
/// # Safety
/// As [`start_link`].
#[inline(always)]
pub(super) unsafe fn start<'a>(at: impl Fn(usize) -> &'a Node, index: usize) -> &'a Node {
    let bucket = at(index);
    // Acquire: as above.
    if is_linked(bucket.next.load(Acquire)) {
        return bucket;
    }
    // SAFETY: as this function.
    unsafe { link(at, index) }
}

/// The last ancestor that is in the list, with its number.
#[cold]
fn ancestor<'a>(at: impl Fn(usize) -> &'a Node, mut index: usize) -> (usize, &'a Node) {
    while index != 0 {
        index &= !(1 << index.ilog2());
        let bucket = at(index);
        let link = bucket.next.load(Acquire);
        if is_linked(link) && link & REMOVED == 0 {
            return (index, bucket);
        }
    }
    (0, at(0))
}

/// Puts a bucket into the list, after the ancestors that are not there. Gives the last one of them
/// that is.
///
/// # Safety
/// As [`start_link`].
#[cold]
#[inline(never)]
unsafe fn link<'a>(at: impl Fn(usize) -> &'a Node, index: usize) -> &'a Node {
    let (mut number, mut start) = ancestor(&at, index);
    while number != index {
        let missing = index ^ number;
        number |= missing & missing.wrapping_neg();
        let bucket = at(number);
        if !is_linked(bucket.next.load(Acquire)) {
            if !claim(bucket) {
                return start;
            }
            // SAFETY: claimed; `start` is in the list, before it.
            unsafe { link_bucket(start, bucket, number.reverse_bits()) };
        }
        start = bucket;
    }
    start
}

/// Takes it upon the caller to link a bucket, if no other thread has.
fn claim(bucket: &Node) -> bool {
    //~ no-claim
    // Relaxed: it is published by `put`.
    bucket.next.compare_exchange(0, BUCKET, Relaxed, Relaxed).is_ok()
}

/// Links a bucket that the caller has claimed.
///
/// # Safety
/// As [`seek`]; `start` is an earlier bucket.
unsafe fn link_bucket(start: &Node, bucket: &Node, reverse_hash: usize) {
    bucket.set_reverse_hash(reverse_hash);
    //~ point bucket-claimed
    loop {
        // SAFETY: by the contract.
        let place =
            unsafe { list::seek(start, |node, _| node.reverse_hash() >= reverse_hash, |_| false) };
        // SAFETY: claimed, so that no other thread puts it anywhere.
        if unsafe { place.put(bucket, BUCKET) } {
            break;
        }
    }
    // Release: the thread that begins here finds it in the list.
    bucket.next.fetch_or(LINKED, Release);
}

/// Takes a bucket out of the list, if it is there.
///
/// # Safety
/// As [`start_link`]. No thread begins at it any more, nor puts it there: a grace period has ended
/// in which no thread new could come to know of it. Those that were split from it are out already.
pub(super) unsafe fn unlink<'a>(at: impl Fn(usize) -> &'a Node, index: usize) {
    let bucket = at(index);
    if bucket.next.load(Acquire) == 0 {
        return;
    }
    list::mark(bucket);
    let (_, start) = ancestor(at, index);
    // SAFETY: by the contract; the ancestor is in the list. (A bucket that was claimed and not put
    // there, by a thread that a fork has left out, is not found.)
    unsafe { list::unlink(start, bucket) };
}
