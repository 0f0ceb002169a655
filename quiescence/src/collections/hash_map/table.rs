//! Tables: a head, and a power of two of buckets behind it, in one allocation.

use std::iter;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use super::bucket::{Bucket, node_of};
use super::headed::Headed;
use super::node::NodeRef;
use crate::collections::lines::Lines;
use crate::collections::tags;
use crate::os::sync::{AtomicPtr, AtomicU64, const_unless_loom};

/// The head of a table; its buckets follow.
#[repr(C, align(64))]
pub(super) struct Table<E> {
    /// The number of buckets, less one.
    mask: usize,
    /// The table that the entries of this one move to, if it is growing or shrinking.
    next: AtomicPtr<Table<E>>,
    /// How often updaters have passed a bucket of the smaller of both tables, to move it.
    pub(super) passed: AtomicU64,
    /// How many of them have moved.
    pub(super) moved: AtomicU64,
    /// The tables before this one.
    before: Option<Arc<Old<E>>>,
    /// The memory that it is in.
    lines: Option<Lines>,
}

/// A table that another one takes the place of, and those before it.
pub(super) struct Old<E> {
    /// Null, once it is freed.
    table: AtomicPtr<Table<E>>,
    bytes: usize,
    others: Option<Arc<Self>>,
}

impl<E> Old<E> {
    /// The first of these that is not freed.
    fn first(old: &Option<Arc<Self>>) -> Option<&Arc<Self>> {
        // Relaxed: it becomes null, and stays that.
        let is_there = |old: &&Arc<Self>| !old.table.load(Relaxed).is_null();
        iter::successors(old.as_ref(), |old| old.others.as_ref()).find(is_there)
    }

    /// Frees it, unless that has been done.
    ///
    /// # Safety
    /// All its entries have moved, and a grace period has gone by since it was out of reach; or the
    /// caller has the map alone.
    pub(super) unsafe fn end(&self) {
        // Relaxed: by the contract no other thread uses it.
        if let Some(table) = NonNull::new(self.table.swap(ptr::null_mut(), Relaxed)) {
            // SAFETY: no other thread gets the table.
            let table = unsafe { TableRef::of(table) };
            // SAFETY: by the contract.
            unsafe { table.free() };
        }
    }

    /// The same with those before it.
    ///
    /// # Safety
    /// As for each of them.
    pub(super) unsafe fn end_all(&self) {
        let all = iter::successors(Some(self), |old| old.others.as_deref());
        // SAFETY: by the contract.
        all.for_each(|old| unsafe { old.end() });
    }
}

/// A table, with its buckets.
pub(super) type TableRef<E> = Headed<Table<E>, Bucket<E>>;

/// A table of one bucket that is empty, of whatever entries: what a map begins with. It is never
/// written to.
#[repr(C, align(64))]
struct Nothing {
    table: Table<()>,
    bucket: Bucket<()>,
}

const_unless_loom! {
    static NOTHING: Nothing = Nothing {
        table: Table {
            mask: 0,
            next: AtomicPtr::new(ptr::null_mut()),
            passed: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            before: None,
            lines: None,
        },
        bucket: Bucket::empty(),
    };
}

impl<E> TableRef<E> {
    /// The table of maps that have none of their own.
    pub(super) fn nothing() -> *mut Table<E> {
        let nothing: &Nothing = &NOTHING;
        ptr::from_ref(nothing).cast_mut().cast()
    }

    /// Whether it is that one.
    pub(super) fn is_nothing(self) -> bool {
        ptr::eq(self.at.as_ptr(), Self::nothing())
    }

    /// An empty table, which takes the place of others if there are some.
    ///
    /// # Panics
    /// If `buckets` buckets do not fit in the address space.
    pub(super) fn new(buckets: usize, before: Option<Arc<Old<E>>>) -> Self {
        debug_assert!(buckets.is_power_of_two());
        let bytes = buckets.checked_mul(size_of::<Bucket<E>>());
        let lines = Lines::new(bytes.and_then(|bytes| bytes.checked_add(size_of::<Table<E>>())));
        let table = lines.at().cast();
        let head = Table {
            mask: buckets - 1,
            next: AtomicPtr::new(ptr::null_mut()),
            passed: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            before,
            lines: Some(lines),
        };
        // SAFETY: it begins the memory.
        unsafe { table.write(head) };
        // SAFETY: the memory has `buckets` buckets.
        let this = unsafe { Self::of(table) };
        if cfg!(loom) {
            // SAFETY: within the memory, which is ours. (Zeroes are none of loom's buckets.)
            (0..buckets).for_each(|index| unsafe { this.element(index).write(Bucket::empty()) });
        }
        this
    }

    /// Gives its memory back.
    ///
    /// # Safety
    /// No thread uses it any more; what is in it has another owner. It came from `new`.
    pub(super) unsafe fn free(self) {
        // SAFETY: written by `new`, and not used any more. Its memory goes with the head.
        drop(unsafe { self.as_ptr().read() });
    }

    pub(super) fn buckets(self) -> usize {
        self.mask() + 1
    }

    #[inline(always)]
    pub(super) fn mask(self) -> usize {
        self.head().mask
    }

    /// Bytes of its memory.
    fn bytes(self) -> usize {
        self.head().lines.as_ref().map_or(0, Lines::bytes)
    }

    /// Bytes of all tables of a map, of which this one is the root.
    pub(super) fn bytes_of_all(self) -> usize {
        let newer = iter::successors(Some(self), |table| table.next());
        let old = iter::successors(self.old(), |old| Old::first(&old.others));
        newer.map(Self::bytes).sum::<usize>() + old.map(|old| old.bytes).sum::<usize>()
    }

    /// The bucket of a hash, or with an index.
    #[inline(always)]
    pub(super) fn bucket<'t>(self, hash: usize) -> &'t Bucket<E> {
        // SAFETY: there are as many as the mask says, and one more; it lives as the table does.
        unsafe { &*self.element(hash & self.mask()) }
    }

    /// The table that its entries move to.
    #[inline]
    pub(super) fn next(self) -> Option<Self> {
        // Acquire: pairs with the Release in `set_next`: the table has been made.
        let next = NonNull::new(self.head().next.load(Acquire))?;
        // SAFETY: it lives longer than this one.
        Some(unsafe { Self::of(next) })
    }

    /// Makes its entries move to another table of `buckets` buckets, unless they do already.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub(super) fn set_next(self, buckets: usize) {
        let old = Old {
            table: AtomicPtr::new(self.as_ptr()),
            bytes: self.bytes(),
            others: self.old().cloned(),
        };
        let next = Self::new(buckets, Some(Arc::new(old)));
        let (none, new) = (ptr::null_mut(), next.as_ptr());
        // AcqRel: pairs with the Acquire in `next`.
        if self.head().next.compare_exchange(none, new, AcqRel, Relaxed).is_err() {
            // SAFETY: no other thread has seen it, and it is empty.
            unsafe { next.free() };
        }
    }

    /// The old ones that are not freed, of its map.
    pub(super) fn old<'t>(self) -> Option<&'t Arc<Old<E>>> {
        Old::first(&self.head().before)
    }

    /// This one as what its next one knows of it.
    pub(super) fn into_old(self) -> Arc<Old<E>> {
        let next = self.next().expect("entries have moved there");
        next.head().before.clone().expect("made by `set_next`")
    }

    /// Frees it, the tables after it, with their nodes, and the old ones; `end`, which does not
    /// unwind, has the box of each entry.
    ///
    /// # Safety
    /// The caller has it alone.
    pub(super) unsafe fn end(self, mut end: impl FnMut(*const E)) {
        if let Some(old) = self.old() {
            // SAFETY: the caller has the map alone.
            unsafe { old.end_all() };
        }
        let mut table = Some(self);
        while let Some(this) = table {
            table = this.next();
            for index in 0..this.buckets() {
                let bucket = this.bucket(index);
                this.bucket(index + 1).prefetch(); // while the boxes of this one are freed
                let word = bucket.word.load(Relaxed);
                // One that is locked was another thread's when this process was forked: what is in
                // it leaks, as it may be in the next table, too, or not yet be there.
                //~ map-end-locked:
                if word & (tags::MOVED | tags::LOCK) != 0 {
                    continue;
                }
                let node = node_of(bucket.over.load(Relaxed));
                bucket.live(word, node).for_each(&mut end);
                if let Some(node) = node {
                    // SAFETY: the caller has it alone.
                    unsafe { NodeRef::free(node) };
                }
            }
            if !this.is_nothing() {
                // SAFETY: the caller has it alone.
                unsafe { this.free() };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A map that is dropped in a section leaves no tables until that ends: it has no readers.
    #[test]
    fn a_map_that_ends_frees_its_old_tables() {
        let first = TableRef::<u64>::new(4, None);
        first.set_next(8);
        let second = first.next().expect("just set");
        let old = Some(first.into_old());
        assert!(Old::first(&old).is_some());
        // SAFETY: there is no map, and all are ours; the first one has no entries.
        unsafe { second.end(|_| unreachable!("no entry")) };
        assert!(Old::first(&old).is_none());
    }
}
