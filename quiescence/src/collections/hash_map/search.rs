//! How readers find an entry: without a lock, and without a store.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::bucket::{Bucket, node_of, search_node};
use super::entry::{At, EntryOf, Form};
use super::known::Seen;
use super::node::NodeRef;
use super::table::TableRef;
use crate::collections::tags::{self, MOVED, OVER};

/// The entry with this hash that `is_it` accepts.
///
/// Linearizable: an entry that is found was there at a moment of the call, and a key that is not
/// found was not there at one. Lock-free; wait-free where buckets have no nodes. Usually one cache
/// line, or two that lie side by side.
///
/// # Safety
/// The table was loaded in the section that is in progress; or the caller has it alone.
#[inline]
pub(super) unsafe fn search<F: Form>(
    table: TableRef<F>,
    hash: u64,
    mut is_it: impl FnMut(&EntryOf<F>) -> bool,
) -> Option<At<F>> {
    let tag = tags::of_hash(hash);
    let bucket = table.bucket(hash as usize);
    // Acquire: pairs with the Release that stored the tag; the slot has been written [HM-1].
    let word = bucket.head().word.load(Acquire); //~ map-relaxed-tag-load
    // SAFETY: loaded in the section.
    if let Some(entry) = unsafe { bucket.search_head(word, tag, &mut is_it) } {
        return Some(entry);
    }
    if word & (OVER | MOVED) == 0 {
        return None;
    }
    // SAFETY: by the contract.
    unsafe { search_further(table, hash, &mut is_it) }
}

/// The same where the bucket has a node, or its entries have moved.
#[cold]
#[inline(never)]
unsafe fn search_further<F: Form>(
    mut table: TableRef<F>,
    hash: u64,
    is_it: &mut impl FnMut(&EntryOf<F>) -> bool,
) -> Option<At<F>> {
    let tag = tags::of_hash(hash);
    loop {
        let bucket = table.bucket(hash as usize);
        let (word, node) = load::<F>(bucket);
        // SAFETY: loaded in the section.
        if let Some(entry) = unsafe { bucket.search_head(word, tag, is_it) } {
            return Some(entry);
        }
        if word & MOVED != 0 {
            // The entries have been copied before the flag was stored [HM-3].
            table = table.next().expect("entries have moved there");
            continue;
        }
        let node = node?;
        // SAFETY: loaded in the section.
        if let Some(entry) = unsafe { search_node(node, tag, is_it) } {
            return Some(entry);
        }
        //~ point node-missed
        // By [HM-I2] nothing was missed, unless the pointer has changed.
        //~ map-no-recheck:
        if is_still(bucket, node) {
            return None;
        }
    }
}

impl<F: Form> Seen<F> {
    /// Looks at the entries with this hash until it finds the one of the key, which `is_key`
    /// accepts: user code. Those of other keys are compared once.
    ///
    /// # Safety
    /// As [`search`].
    #[inline(always)]
    pub(super) unsafe fn look(
        &mut self,
        table: TableRef<F>,
        hash: u64,
        is_key: &impl Fn(&F::Key) -> bool,
    ) {
        let is_it = |entry: &EntryOf<F>| {
            if self.others.get(entry).is_some() {
                return false;
            }
            let is_it = is_key(&entry.key);
            if !is_it {
                self.others.add(entry, ());
            }
            is_it
        };
        // SAFETY: by the contract.
        self.found = unsafe { search(table, hash, is_it) };
        self.others.settle();
    }
}

/// Calls `f` with each entry of a bucket, as they are there at one moment or another.
///
/// # Safety
/// As [`search`].
pub(super) unsafe fn each<F: Form>(bucket: Bucket<F>, mut f: impl FnMut(&EntryOf<F>)) {
    let (word, node) = load(bucket);
    for slot in bucket.live(word, node) {
        // SAFETY: the tag said that there was an entry, in this section.
        let entry = unsafe { F::entry(slot) };
        // SAFETY: null, or an entry that is not written to, or freed, before the section ends.
        if let Some(entry) = unsafe { entry.as_ref() } {
            f(entry);
        }
    }
}

/// The word of a bucket, and the node that its pointer led to when the word was loaded.
pub(super) fn load<F: Form>(bucket: Bucket<F>) -> (u64, Option<NodeRef<F>>) {
    let head = bucket.head();
    loop {
        // Acquire: pairs with the Release in `copy_node`; the node has been written [HM-2]. It is
        // loaded before the word, so that what moves between both after that changes it.
        //~ map-relaxed-overflow-load:
        let over = head.over.load(Acquire);
        //~ node-loaded
        // Acquire: as in `search` [HM-1].
        let word = head.word.load(Acquire); //~ map-relaxed-tag-load
        if word & (OVER | MOVED) != OVER {
            return (word, None);
        }
        if let Some(node) = node_of(over)
            //~ map-no-recheck:
            && is_still(bucket, node)
        {
            return (word, Some(node));
        }
        //~ map-cookie-is-absence
        // An updater came in between, or an older pointer was loaded.
        crate::os::sync::relax();
    }
}

/// Whether a bucket's pointer is what it was.
pub(super) fn is_still<F: Form>(bucket: Bucket<F>, node: NodeRef<F>) -> bool {
    // The loads before this one, of words, are Acquire, so this one is not earlier. Relaxed: it is
    // compared only.
    std::ptr::eq(bucket.head().over.load(Relaxed), node.as_ptr())
}
