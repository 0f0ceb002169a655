//! How readers come to all entries of a map, while it changes.
//!
//! A walk goes over the buckets of the table that it begins with. Of each bucket it loads the word
//! and the node of one moment. Where the entries of a bucket have moved it goes over the buckets
//! that they moved to; these may have entries of other buckets too, if the table has shrunk, and of
//! those it takes none. So an entry that is there all the time is seen once.

use super::bucket::Bucket;
use super::entry::{At, Form};
use super::node::NodeRef;
use super::search;
use super::table::TableRef;
use super::tags;
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
    /// What is left of a bucket and of its node.
    bucket: Option<Bucket<F>>,
    found: u64,
    node: Option<(NodeRef<F>, usize)>,
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
    fn have(self, hash: usize) -> bool {
        hash & self.mask == self.index
    }

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
        Self { table, next, end, moved, only, bucket, found: 0, node }
    }

    /// The next entry.
    ///
    /// # Safety
    /// The table was loaded in the section that is in progress; or the caller has it alone.
    /// `hash_of` is the map's.
    pub(super) unsafe fn next(&mut self, hash_of: impl Fn(&F::Key) -> u64) -> Option<At<F>> {
        loop {
            // SAFETY: by the contract.
            let slot = unsafe { self.next_slot() }?;
            // SAFETY: a tag said that there was an entry, in this section.
            let entry = unsafe { F::entry(slot) };
            let is_wanted = self.only.is_none_or(|only| {
                // SAFETY: as above.
                let hash = hash_of(unsafe { &(*entry).key });
                only.have(hash as usize)
            });
            if is_wanted {
                return Some(entry);
            }
        }
    }

    unsafe fn next_slot(&mut self) -> Option<*mut u8> {
        loop {
            if self.found != 0 {
                let index = tags::first(self.found);
                self.found &= self.found - 1;
                return Some(match (self.node, self.bucket) {
                    (_, Some(bucket)) => bucket.slot(index),
                    (Some((node, word)), None) => node.slot(word, index),
                    (None, None) => unreachable!("slots are found in one of both"),
                });
            }
            match (self.bucket.take(), self.node) {
                // After the slots of a bucket those of its node.
                (Some(_), Some((node, _))) => self.enter_word(node, 0),
                (None, Some((node, word))) if word + 1 < node.words() => {
                    self.enter_word(node, word + 1);
                }
                _ => {
                    self.node = None;
                    self.enter_bucket()?;
                }
            }
        }
    }

    fn enter_word(&mut self, node: NodeRef<F>, word: usize) {
        // Acquire: pairs with the Release that stored the tags; the slots are written [HM-1].
        self.found =
            tags::live(node.word(word).load(Acquire)) & tags::node_bytes(node.word_slots());
        self.node = Some((node, word));
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
        let (word, node) = search::load(bucket);
        if word & tags::MOVED != 0 {
            let table_after = table.next().expect("entries have moved there");
            let mask = table_after.mask();
            let buckets = (index & mask..=mask).step_by(table.buckets());
            self.moved.extend(buckets.filter_map(|index| {
                let wanted = wanted.within(mask, index)?;
                Some(Moved { table: table_after, index, wanted })
            }));
            return Some(());
        }
        self.only = (table.mask() < wanted.mask).then_some(wanted);
        self.found = tags::live(word) & tags::head_bytes(F::SLOTS);
        self.bucket = Some(bucket);
        self.node = node.map(|node| (node, 0));
        Some(())
    }
}
