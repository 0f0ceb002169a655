//! How readers visit all entries of a map while it changes.
//!
//! A walk goes through the buckets of the table that it begins with. For each bucket it loads the
//! word and the node as of one moment. If the entries of a bucket have moved, the walk goes through
//! the buckets to which they moved. If the table has shrunk, these also have entries of other
//! buckets, which the walk skips. So an entry that is there all the time is seen once.

use super::bucket::{Bucket, SLOTS};
use super::node::NodeRef;
use super::search;
use super::table::TableRef;
use crate::collections::tags;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

/// Entries of some buckets of a table.
pub(super) struct Walk<E> {
    /// The table, and what is left of its buckets.
    table: TableRef<E>,
    next: usize,
    end: usize,
    /// Buckets of other tables, to which those of one bucket have moved.
    moved: Vec<Moved<E>>,
    /// Which entries of the bucket are wanted, if it may have others.
    only: Option<Hashes>,
    /// The entries in the slots of the bucket, and how many of them are left.
    head: [*const E; SLOTS],
    heads: usize,
    /// Those in its node that are left.
    others: Vec<*const E>,
}

/// A bucket to which entries have moved.
struct Moved<E> {
    table: TableRef<E>,
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

impl<E> Walk<E> {
    /// The entries of the buckets from `next` to `end`.
    pub(super) fn new(table: TableRef<E>, next: usize, end: usize) -> Self {
        let (moved, head, others) = (Vec::new(), [ptr::null(); SLOTS], Vec::new());
        Self { table, next, end, moved, only: None, head, heads: 0, others }
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
    pub(super) unsafe fn next(&mut self, hash_of: impl Fn(&E) -> u64) -> Option<*const E> {
        loop {
            let entry = if self.heads != 0 {
                self.heads -= 1;
                self.head[self.heads]
            } else if let Some(entry) = self.others.pop() {
                entry
            } else {
                self.enter_bucket()?;
                continue;
            };
            // SAFETY: found in this section.
            let hash = || hash_of(unsafe { &*entry }) as usize;
            if self.only.is_none_or(|of| hash() & of.mask == of.index) {
                return Some(entry);
            }
        }
    }

    fn enter_bucket(&mut self) -> Option<()> {
        let Moved { table, index, wanted } = match self.moved.pop() {
            Some(moved) => moved,
            None if self.next < self.end => {
                let (table, index) = (self.table, self.next);
                self.next += 1;
                table.bucket(self.next).prefetch(); // while the entries of this one are used
                Moved { table, index, wanted: Hashes { mask: table.mask(), index } }
            }
            None => return None,
        };
        let bucket = table.bucket(index);
        let (word, node) = self.load_head(bucket);
        if let Some(node) = node {
            let head = &self.head[..self.heads];
            // Where a slot of the bucket is filled from the node, a walk may find the entry there
            // whose word is from before.
            let is_other = |entry: &*const E| !head.contains(entry); //~ map-walk-twice
            self.others.extend(node.live().map(|(_, entry)| entry).filter(is_other));
        }
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
        Some(())
    }

    /// Loads the word of a bucket, the entries in its slots, and its node, while that is the same.
    fn load_head(&mut self, bucket: &Bucket<E>) -> (u64, Option<NodeRef<E>>) {
        loop {
            let (word, node) = search::load(bucket);
            //~ head-loaded
            self.heads = 0;
            for entry in bucket.live(word, None).filter(|entry| !entry.is_null()) {
                self.head[self.heads] = entry;
                self.heads += 1;
            }
            // Relaxed: it is compared only, after the Acquire of all that comes before it. If the
            // node has left the bucket, its entries may be in slots, and be others there by now.
            let is_still = |node: NodeRef<E>| ptr::eq(bucket.over.load(Relaxed), node.as_ptr());
            //~ map-no-recheck:
            if node.is_none_or(is_still) {
                return (word, node);
            }
        }
    }
}
