//! How readers come to all entries of a map, while it changes.
//!
//! A walk goes over the buckets of the table that it begins with. Of each bucket it loads the word
//! and the node of one moment. Where the entries of a bucket have moved it goes over the buckets
//! that they moved to; these may have entries of other buckets too, if the table has shrunk, and of
//! those it takes none. So an entry that is there all the time is seen once.

use super::bucket::Bucket;
use super::entry::{At, Form};
use super::known::is_key;
use super::node::{NodeRef, WORD_SLOTS};
use super::search;
use super::table::TableRef;
use crate::collections::tags;
use std::ptr;
use std::sync::atomic::Ordering::Acquire;

/// Entries of some buckets of a table.
pub(super) struct Walk<F: Form> {
    /// The table, and what is left of its buckets.
    table: TableRef<F>,
    next: usize,
    end: usize,
    /// Buckets of other tables, to which those of one bucket have moved.
    moved: Vec<Moved<F>>,
    /// Which entries of the bucket are wanted, if it may have others.
    only: Option<Hashes>,
    /// The bucket that is being gone over, and its word of one moment.
    bucket: Option<(Bucket<F>, u64)>,
    /// The entries in its slots, how many these are, and how many of them are left.
    head: [At<F>; 7],
    loaded: usize,
    heads: usize,
    /// Its node, and which word of that is next.
    node: Option<(NodeRef<F>, usize)>,
    /// The word of the node that is being gone over, and what is left of it.
    tags: u64,
    found: u64,
}

/// A bucket to which entries have moved.
struct Moved<F> {
    table: TableRef<F>,
    index: usize,
    wanted: Hashes,
}

/// The hashes of one bucket: of the largest table that the entries have come through.
#[derive(Clone, Copy)]
struct Hashes {
    mask: usize,
    index: usize,
}

impl Hashes {
    /// The part of them that is in a bucket of a table; `None` if that is nothing.
    fn within(self, mask: usize, index: usize) -> Option<Self> {
        let both = mask & self.mask;
        let larger = if mask > self.mask { Self { mask, index } } else { self };
        (index & both == self.index & both).then_some(larger)
    }
}

impl<F: Form> Walk<F> {
    /// The entries of the buckets from `next` to `end`.
    pub(super) fn new(table: TableRef<F>, next: usize, end: usize) -> Self {
        let (moved, only, bucket, node) = (Vec::new(), None, None, None);
        let (head, loaded, heads, tags, found) = ([ptr::null(); 7], 0, 0, 0, 0);
        Self { table, next, end, moved, only, bucket, head, loaded, heads, node, tags, found }
    }

    /// Splits off the second half of the buckets that are left.
    #[cfg(feature = "rayon")]
    pub(super) fn split(&mut self) -> Option<Self> {
        let middle = self.next + self.end.saturating_sub(self.next) / 2;
        (middle > self.next).then(|| {
            let second = Self::new(self.table, middle, self.end);
            self.end = middle;
            second
        })
    }

    /// The next entry.
    ///
    /// # Safety
    /// The table was loaded in the section that is in progress; or the caller has it alone.
    /// `hash_of` is the map's.
    pub(super) unsafe fn next(&mut self, hash_of: impl Fn(&F::Key) -> u64) -> Option<At<F>>
    where
        F::Key: Eq,
    {
        loop {
            // SAFETY: by the contract.
            let (tag, entry) = unsafe { self.next_entry() }?;
            // SAFETY: found in this section.
            let key = unsafe { &(*entry).key };
            let is_wanted = self.only.is_none_or(|of| hash_of(key) as usize & of.mask == of.index);
            if is_wanted && !tag.is_some_and(|tag| self.is_in_head_too(tag, entry, key)) {
                return Some(entry);
            }
        }
    }

    /// Whether an entry of the node is in the slots of the bucket as well. For a moment it is,
    /// while it moves there from the slots; and where a slot with a pointer is filled from the
    /// node, a walk may find the pointer there whose word is from before.
    fn is_in_head_too(&self, tag: u64, entry: At<F>, key: &F::Key) -> bool
    where
        F::Key: Eq,
    {
        if !F::WAITS {
            return self.head[..self.loaded].contains(&entry);
        }
        let Some((bucket, word)) = self.bucket else { return false };
        // SAFETY: the word was loaded in this section.
        unsafe { bucket.search_head(word, tag, &mut |other| is_key(key, &other.key)) }.is_some()
    }

    /// The next entry, and its tag if it is in a node.
    ///
    /// # Safety
    /// As [`next`](Self::next).
    unsafe fn next_entry(&mut self) -> Option<(Option<u64>, At<F>)> {
        loop {
            if self.heads != 0 {
                self.heads -= 1;
                return Some((None, self.head[self.heads]));
            }
            match self.node {
                Some((node, next)) if self.found != 0 => {
                    let index = tags::first(self.found);
                    self.found &= self.found - 1;
                    // SAFETY: the tag said that there was an entry, in this section.
                    let entry = unsafe { F::entry(node.slot(next - 1, index)) };
                    return Some((Some(tags::get(self.tags, index)), entry));
                }
                Some((node, next)) if next < node.words() => {
                    // Acquire: pairs with the Release that stored the tags; the slots are written
                    // [HM-1].
                    self.tags = node.word(next).load(Acquire);
                    self.found = tags::live(self.tags) & tags::node_bytes(WORD_SLOTS);
                    self.node = Some((node, next + 1));
                }
                _ => self.enter_bucket()?,
            }
        }
    }

    fn enter_bucket(&mut self) -> Option<()> {
        let Moved { table, index, wanted } = match self.moved.pop() {
            Some(moved) => moved,
            None if self.next < self.end => {
                let (table, index) = (self.table, self.next);
                self.next += 1;
                Moved { table, index, wanted: Hashes { mask: table.mask(), index } }
            }
            None => return None,
        };
        let bucket = table.bucket(index);
        let (word, node) = self.load_head(bucket);
        self.node = node.map(|node| (node, 0));
        if word & tags::MOVED != 0 {
            let after = table.next().expect("entries have moved there");
            let mask = after.mask();
            let buckets = (index & mask..=mask).step_by(table.buckets());
            self.moved.extend(buckets.filter_map(|index| {
                let wanted = wanted.within(mask, index)?;
                Some(Moved { table: after, index, wanted })
            }));
            return Some(());
        }
        self.only = (table.mask() < wanted.mask).then_some(wanted);
        self.bucket = Some((bucket, word));
        Some(())
    }

    /// Loads the word of a bucket, the entries in its slots, and its node, as they are together at
    /// one moment [HM-I2].
    fn load_head(&mut self, bucket: Bucket<F>) -> (u64, Option<NodeRef<F>>) {
        loop {
            let (word, node) = search::load(bucket);
            self.heads = 0;
            for slot in bucket.live(word, None) {
                // SAFETY: the tag said that there was an entry, in this section.
                let entry = unsafe { F::entry(slot) };
                if !entry.is_null() {
                    self.head[self.heads] = entry;
                    self.heads += 1;
                }
            }
            self.loaded = self.heads;
            if node.is_none_or(|node| search::is_still(bucket, node)) {
                return (word, node);
            }
        }
    }
}
