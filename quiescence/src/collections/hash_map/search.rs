//! How readers find an entry, without a lock and without a store; and what an update learns about
//! entries before it takes a lock.
//!
//! **Invariant [HM-I3]: no user code runs while a bucket is locked.** Keys are compared and hashed
//! before. Under the lock only addresses are compared; each belongs to one entry as long as the
//! update's section lasts. If the update finds an entry that it has not checked, it releases the
//! lock, checks the entry, and takes the lock again. So if a `Hash` or an `Eq` panics, nothing is
//! half done, and if it uses the map, it does not wait for this update.

use std::collections::BTreeSet;
use std::ptr;
use std::sync::atomic::Ordering::Acquire;

use equivalent::Equivalent;

use super::bucket::{Bucket, node_of, search_node};
use super::node::NodeRef;
use super::table::TableRef;
use crate::collections::tags::{self, MOVED, OVER};
use crate::os::user_code::{self, Site};

/// Whether `other`, the key of an entry, is `key`.
#[inline(always)]
pub(crate) fn is_key<Q, K>(key: &Q, other: &K) -> bool
where
    Q: Equivalent<K> + ?Sized,
{
    user_code::run(Site::Key, || key.equivalent(other))
}

/// The entry with this hash that `is_it` accepts.
///
/// Linearizable: an entry that is found was there at a moment of the call, and a key that is not
/// found was not there at one. Wait-free, but for tables that are
/// replaced as fast as it goes from one to the next. Usually one cache line, and the box.
///
/// # Safety
/// The table was loaded in the section that is in progress; or the caller has it alone.
#[inline]
pub(super) unsafe fn search<E>(
    table: TableRef<E>,
    hash: u64,
    mut is_it: impl FnMut(&E) -> bool,
) -> Option<*const E> {
    let tag = tags::of_hash(hash);
    let bucket = table.bucket(hash as usize);
    // Acquire: pairs with the Release that stored the tag; the slot has been written [HM-1].
    let word = bucket.word.load(Acquire); //~ map-relaxed-tag-load
    // SAFETY: loaded in the section.
    if let Some((_, entry)) = unsafe { bucket.search_head(word, tag, &mut is_it) } {
        return Some(entry);
    }
    if word & (OVER | MOVED) == 0 {
        return None;
    }
    // SAFETY: by the contract.
    unsafe { search_further(table, hash, &mut is_it) }
}

/// The same where the bucket has a node, or its entries have moved.
///
/// # Safety
/// As [`search`].
#[cold]
#[inline(never)]
pub(super) unsafe fn search_further<E>(
    mut table: TableRef<E>,
    hash: u64,
    is_it: &mut impl FnMut(&E) -> bool,
) -> Option<*const E> {
    let tag = tags::of_hash(hash);
    loop {
        let bucket = table.bucket(hash as usize);
        let (word, node) = load(bucket);
        // SAFETY: loaded in the section.
        if let Some((_, entry)) = unsafe { bucket.search_head(word, tag, is_it) } {
            return Some(entry);
        }
        if word & MOVED != 0 {
            // The entries have been copied before the flag was stored [HM-3].
            table = table.next().expect("entries have moved there");
            continue;
        }
        let node = node?;
        //~ point node-sought
        // SAFETY: loaded in the section.
        return unsafe { search_node(node, tag, is_it) };
    }
}

/// What an update knows of the entries with the tag of its key.
pub(super) struct Seen<E> {
    /// The entry of the key; at the begin, if it is known already.
    pub(super) found: Option<*const E>,
    /// Entries of other keys, in the order in which they were found.
    pub(super) others: Vec<*const E>,
    /// Those that were found before the last look.
    known: BTreeSet<*const E>,
}

impl<E> Seen<E> {
    pub(super) const fn new(found: Option<*const E>) -> Self {
        Self { found, others: Vec::new(), known: BTreeSet::new() }
    }

    /// Looks at the entries with this hash until it finds the one of the key, which `is_key`
    /// accepts: user code. Those of other keys are compared once.
    ///
    /// # Safety
    /// As [`search`].
    pub(super) unsafe fn look(
        &mut self,
        table: TableRef<E>,
        hash: u64,
        is_key: &impl Fn(&E) -> bool,
    ) {
        self.known.extend(self.others.drain(..));
        let is_it = |entry: &E| {
            let is_it = !self.known.contains(&ptr::from_ref(entry)) && is_key(entry);
            if !is_it {
                self.others.push(entry);
            }
            is_it
        };
        // SAFETY: by the contract.
        self.found = unsafe { search(table, hash, is_it) };
    }
}

/// The word of a bucket, and the node that its pointer led to before, if the word speaks of one:
/// all entries that are there meanwhile are in one of both [HM-I2].
pub(super) fn load<E>(bucket: &Bucket<E>) -> (u64, Option<NodeRef<E>>) {
    // Acquire: pairs with the Release in `add_to_node`; the node has been written [HM-2].
    //~ map-relaxed-overflow-load:
    let over = bucket.over.load(Acquire);
    //~ node-loaded
    // Acquire: as in `search` [HM-1].
    let word = bucket.word.load(Acquire); //~ map-relaxed-tag-load
    let node = if word & (OVER | MOVED) == OVER { node_of(over) } else { None }; //~ map-late-node
    (word, node)
}
