//! The table, as users see it.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::allocator::{self, Allocator, Source};
use super::buckets::Memory;
use super::list::{self, FLAGS, REMOVED};
use super::node::{Cursor, Node};
use super::protection::Protection;
use super::resize::{Table, committed};
use super::worker;
use crate::domain::impls::shown_in_part;
use crate::os::forking;
use crate::os::user_code::{self, Site};

/// The options of a new table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The initial number of buckets.
    pub buckets: usize,
    /// The number of buckets that stay allocated, however small the table gets.
    pub buckets_min: usize,
    /// The maximum number of buckets; 0 is no limit.
    pub buckets_max: usize,
    /// Where the buckets are kept; `None` chooses by the limit.
    pub memory: Option<Memory>,
    /// Whether the table grows as nodes are added: to about one bucket per node.
    pub auto_resize: bool,
    /// Whether nodes are counted as they are added and deleted; with `auto_resize` the table then
    /// also shrinks.
    pub accounting: bool,
}

impl Default for Options {
    /// A table that begins small, grows and shrinks.
    fn default() -> Self {
        Self {
            buckets: 1,
            buckets_min: 1,
            buckets_max: 0,
            memory: None,
            auto_resize: true,
            accounting: true,
        }
    }
}

/// Why no table was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TableError {
    /// Numbers of buckets must be powers of two.
    NotPowersOfTwo,
    /// The system has not enough memory or address space for that many buckets: ask for fewer, or
    /// set a smaller limit.
    NoMemory,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotPowersOfTwo => "numbers of buckets must be powers of two",
            Self::NoMemory => "there is no memory for that many buckets: ask for fewer",
        })
    }
}

impl std::error::Error for TableError {}

/// Three counts of the nodes in a table: see [`HashTable::count_nodes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// The accounted number before the traversal; 0 without accounting.
    pub before: i64,
    /// The number of nodes found by the traversal.
    pub met: u64,
    /// The accounted number after the traversal.
    pub after: i64,
}

/// A hash table of nodes that are embedded in the caller's objects.
///
/// `R` is what protects the nodes, usually a [`Domain`](crate::Domain).
///
/// ```
/// use quiescence::Domain;
/// use quiescence::intrusive::{HashTable, Node, TableOptions};
/// use std::ptr::NonNull;
///
/// #[repr(C)]
/// struct Host {
///     node: Node, // first, so that its address is the host's
///     number: u32,
/// }
///
/// let domain = Domain::global();
/// let table = HashTable::new(domain.clone(), TableOptions::default()).unwrap();
/// let host = Box::leak(Box::new(Host { node: Node::new(), number: 7 }));
/// let is_it = |node: NonNull<Node>| unsafe { node.cast::<Host>().as_ref() }.number == 7;
///
/// let section = domain.read();
/// // SAFETY: in a section; the host stays until it was deleted and a grace period has ended.
/// let found = unsafe {
///     table.add(7, NonNull::from(&host.node));
///     table.lookup(7, is_it)
/// };
/// let node = found.node().unwrap();
/// // SAFETY: as above.
/// assert!(unsafe { table.delete(node) });
/// drop(section);
/// domain.synchronize();
/// // SAFETY: no thread sees it any more.
/// drop(unsafe { Box::from_raw(node.cast::<Host>().as_ptr()) });
/// ```
///
/// # Requirements of every `unsafe` function
/// - The caller is in a section of `R`, in which it obtained the cursors and nodes that it passes.
/// - A node stays valid and does not move, from when it is added until a grace period has ended
///   that began after it was deleted or replaced. No other code writes to it. A node that is added
///   is in no table. This holds even for an owner that drops the table: the table's thread may be
///   resizing it. So nodes are deleted and retired first, not freed.
/// - [`lookup`](Self::lookup) and other functions read nodes through `matches`, on any thread.
///
/// # Promise
/// - Adding, deleting and replacing are atomic for all threads. A node that is in the table all
///   through a lookup or a traversal is found, once, even while the table is resized and while
///   nodes are replaced.
/// - If keys are added only by [`add_unique`](Self::add_unique) and
///   [`add_replace`](Self::add_replace), no thread ever sees a key twice, not even in a traversal.
/// - Nodes with the same hash are adjacent; those added by [`add`](Self::add) are in the order in
///   which they were added.
/// - A successful change of the table is a full fence; lookups are acquire loads.
/// - No request to resize is lost.
///
/// # Progress and cost
/// Lookups are wait-free, except that they visit nodes added in front of them. Changes are
/// lock-free; they take one locked instruction, deletions two. The thread that makes the table grow
/// allocates memory, under a lock that is held for moments. A thread that requests a shrink leaves
/// it to the table's thread, which is then started. A node is 16 bytes, a bucket another 16 bytes.
#[repr(transparent)]
pub struct HashTable<R: Protection> {
    table: NonNull<Table<R>>,
}

// SAFETY: made to be shared. What `R` is is used by any thread.
unsafe impl<R: Protection> Send for HashTable<R> {}
// SAFETY: as above.
unsafe impl<R: Protection> Sync for HashTable<R> {}

impl<R: Protection> HashTable<R> {
    /// Creates an empty table.
    ///
    /// # Errors
    /// If the numbers are not powers of two, or there is no memory.
    pub fn new(readers: R, options: Options) -> Result<Self, TableError> {
        Self::make(readers, &options, Source(None))
    }

    /// Like [`new`](Self::new), with memory of another allocator. The table grows on the library's
    /// thread, not in the call that finds it too small.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn new_in(
        readers: R,
        options: Options,
        allocator: Arc<dyn Allocator>,
    ) -> Result<Self, TableError> {
        Self::make(readers, &options, Source(Some(allocator)))
    }

    fn make(readers: R, options: &Options, source: Source) -> Result<Self, TableError> {
        let counts = [options.buckets, options.buckets_min, options.buckets_max.max(1)];
        if !counts.iter().all(|count| count.is_power_of_two()) {
            return Err(TableError::NotPowersOfTwo);
        }
        forking::watch();
        let table = Table::new(options, readers, source).ok_or(TableError::NoMemory)?;
        Ok(Self { table })
    }

    #[inline(always)]
    fn table(&self) -> &Table<R> {
        // SAFETY: valid until `self` is dropped.
        unsafe { self.table.as_ref() }
    }

    /// What protects the nodes.
    pub fn readers(&self) -> &R {
        &self.table().readers
    }

    /// The number of buckets in use.
    pub fn buckets(&self) -> usize {
        self.table().size()
    }

    /// Finds the first node with this hash for which `matches` returns `true`.
    ///
    /// # Safety
    /// As the [type](Self) says.
    #[inline]
    pub unsafe fn lookup(&self, hash: usize, matches: impl FnMut(NonNull<Node>) -> bool) -> Cursor {
        // SAFETY: by the contract.
        let link = unsafe { self.table().start_link(hash) };
        // SAFETY: by the contract.
        cursor(unsafe { list::find(link, hash.reverse_bits(), asked(matches)) })
    }

    /// Finds the next node with the same hash for which `matches` returns `true`. From an empty
    /// cursor it finds nothing.
    ///
    /// # Safety
    /// As the [type](Self) says.
    #[inline]
    pub unsafe fn next_duplicate(
        &self,
        from: Cursor,
        matches: impl FnMut(NonNull<Node>) -> bool,
    ) -> Cursor {
        // SAFETY: by the contract.
        let Some(node) = (unsafe { from.node.as_ref() }) else {
            return Cursor::default();
        };
        let (link, reverse_hash) = (from.next.addr(), node.reverse_hash());
        // SAFETY: by the contract.
        cursor(unsafe { list::find(link, reverse_hash, asked(matches)) })
    }

    /// The first node in the table.
    ///
    /// # Safety
    /// As the [type](Self) says.
    pub unsafe fn first(&self) -> Cursor {
        // SAFETY: always allocated; not freed in a section.
        let bucket: &Node = unsafe { self.table().buckets.at(0) };
        // SAFETY: by the contract.
        cursor(unsafe { list::next(bucket.next.load(Acquire)) })
    }

    /// The node after the cursor's node.
    ///
    /// # Safety
    /// As the [type](Self) says.
    pub unsafe fn next(&self, from: Cursor) -> Cursor {
        // SAFETY: by the contract.
        cursor(unsafe { list::next(from.next.addr()) })
    }

    /// Adds a node, after those with the same hash.
    ///
    /// # Safety
    /// As the [type](Self) says.
    #[inline]
    pub unsafe fn add(&self, hash: usize, node: NonNull<Node>) {
        // SAFETY: by the contract the node is the caller's.
        let node = unsafe { prepare(node, hash.reverse_bits()) };
        // SAFETY: by the contract.
        let start = || unsafe { self.table().start(hash) };
        // SAFETY: by the contract.
        let chain = unsafe { list::add(start, node) };
        committed();
        self.table().added(chain);
    }

    /// Adds a node, unless there is one for which `matches` returns `true`.
    ///
    /// # Errors
    /// The node for which `matches` returned `true`.
    ///
    /// # Safety
    /// As the [type](Self) says. What `matches` returns depends on the node only.
    #[inline]
    pub unsafe fn add_unique(
        &self,
        hash: usize,
        node: NonNull<Node>,
        matches: impl FnMut(NonNull<Node>) -> bool,
    ) -> Result<(), NonNull<Node>> {
        // SAFETY: by the contract.
        let found = unsafe { self.add_or(hash, node, matches, |found, _| Some(found)) };
        found.map_or(Ok(()), |found| Err(list::pointer(found)))
    }

    /// Adds a node. If there is one for which `matches` returns `true`, the new node replaces it,
    /// and the old one is returned.
    ///
    /// # Safety
    /// As the [type](Self) says. What `matches` returns depends on the node only.
    #[inline]
    pub unsafe fn add_replace(
        &self,
        hash: usize,
        node: NonNull<Node>,
        matches: impl FnMut(NonNull<Node>) -> bool,
    ) -> Option<NonNull<Node>> {
        let replace = |found, new: &Node| {
            // SAFETY: by the contract.
            unsafe { self.replace_node(found, new, hash) }.then_some(found)
        };
        // SAFETY: by the contract.
        unsafe { self.add_or(hash, node, matches, replace) }.map(list::pointer)
    }

    /// Adds a node unless one matches: see [`list::add_or`].
    ///
    /// # Safety
    /// As the [type](Self) says.
    #[inline(always)]
    unsafe fn add_or<'a>(
        &'a self,
        hash: usize,
        node: NonNull<Node>,
        matches: impl FnMut(NonNull<Node>) -> bool,
        mut found: impl FnMut(&'a Node, &Node) -> Option<&'a Node>,
    ) -> Option<&'a Node> {
        // SAFETY: by the contract the node is the caller's.
        let node = unsafe { prepare(node, hash.reverse_bits()) };
        // SAFETY: by the contract.
        let start = || unsafe { self.table().start(hash) };
        // SAFETY: by the contract.
        match unsafe { list::add_or(start, node, asked(matches), |other| found(other, node)) } {
            Ok(chain) => {
                committed();
                self.table().added(chain);
                None
            }
            Err(other) => Some(other),
        }
    }

    /// Replaces `old` by `new`, atomically for all threads. Returns `false`, and changes nothing,
    /// if `old` is already deleted or replaced.
    ///
    /// # Safety
    /// As the [type](Self) says, and `new` has the same hash as `old`, and the same key.
    pub unsafe fn replace(&self, old: NonNull<Node>, new: NonNull<Node>) -> bool {
        // SAFETY: by the contract.
        let old = unsafe { old.as_ref() };
        // SAFETY: by the contract the node is the caller's.
        let new = unsafe { prepare(new, old.reverse_hash()) };
        // SAFETY: by the contract.
        unsafe { self.replace_node(old, new, old.reverse_hash().reverse_bits()) }
    }

    /// As [`replace`](Self::replace).
    ///
    /// # Safety
    /// As there; `new` is prepared.
    unsafe fn replace_node(&self, old: &Node, new: &Node, hash: usize) -> bool {
        // SAFETY: by the contract.
        let replaced = unsafe { list::replace(old, new) };
        if replaced {
            // SAFETY: by the contract.
            let start = unsafe { self.table().start(hash) };
            // SAFETY: by the contract.
            unsafe { list::unlink(start, old) };
            committed();
        }
        replaced
    }

    /// Whether a cursor's node has this hash.
    ///
    /// # Safety
    /// As the [type](Self) says.
    pub unsafe fn has_hash(&self, node: NonNull<Node>, hash: usize) -> bool {
        // SAFETY: by the contract.
        unsafe { node.as_ref() }.reverse_hash() == hash.reverse_bits()
    }

    /// Deletes a node. Returns `false` if another thread has deleted or replaced it.
    ///
    /// # Safety
    /// As the [type](Self) says. The node was in this table.
    #[inline]
    pub unsafe fn delete(&self, node: NonNull<Node>) -> bool {
        // SAFETY: by the contract.
        let node = unsafe { node.as_ref() };
        if !list::mark(node) {
            return false;
        }
        // SAFETY: by the contract.
        let start = unsafe { self.table().start(node.reverse_hash().reverse_bits()) };
        // SAFETY: by the contract.
        unsafe { list::unlink(start, node) };
        committed();
        self.table().deleted(node);
        true
    }

    /// Traverses the table and counts its nodes.
    ///
    /// # Safety
    /// As the [type](Self) says.
    pub unsafe fn count_nodes(&self) -> NodeCounts {
        let counted = || if self.table().reports_counts { self.table().count.sum() } else { 0 };
        let before = counted();
        let mut met = 0;
        // SAFETY: by the contract.
        let mut at = unsafe { self.first() };
        while at.node().is_some() {
            met += 1;
            // SAFETY: by the contract.
            at = unsafe { self.next(at) };
        }
        NodeCounts { before, met, after: counted() }
    }

    /// Whether there is no node.
    ///
    /// # Safety
    /// As the [type](Self) says.
    pub unsafe fn is_empty(&self) -> bool {
        // SAFETY: by the contract.
        unsafe { self.first() }.node().is_none()
    }

    /// Destroys the table if it has no nodes; otherwise returns it, and it remains in use,
    /// including resizing. Afterwards none of the table's threads reads nodes that were deleted
    /// from it.
    ///
    /// It waits for no reader, and may be called anywhere: inside or outside of a section, in a
    /// callback, and by threads that are no readers. It goes through the buckets that are in use.
    ///
    /// # Errors
    /// The table, if it is not empty.
    ///
    /// # Safety
    /// No other thread uses the table any more. The nodes in it are valid.
    pub unsafe fn destroy(self) -> Result<(), Self> {
        let this = ManuallyDrop::new(self);
        let table = this.table.as_ptr();
        worker::hold_off(table);
        //~ point table-held
        // SAFETY: whether the caller is in a section or not: the thread that works on the table,
        // which alone frees buckets, is held off, and nodes go by the caller only.
        let is_empty = unsafe { this.is_empty() };
        if !is_empty {
            worker::release(table);
            return Err(ManuallyDrop::into_inner(this));
        }
        // SAFETY: from `new`, and by the contract no other thread's; it is held.
        unsafe { give_up(table) };
        Ok(())
    }

    /// Resizes the table to this many buckets, rounded up to a power of two, within its limits, and
    /// waits until that is done. May wait for grace periods: do not call it in a section.
    pub fn resize(&self, buckets: usize) {
        self.table().resize(buckets);
    }

    /// Allocates memory for this many buckets in advance, rounded up to a power of two, within the
    /// limit. Returns `false` if there is none.
    pub fn allocate(&self, buckets: usize) -> bool {
        self.table().allocate(buckets)
    }

    /// Frees what [`allocate`](Self::allocate) has allocated from bucket `buckets` on, unless it is
    /// already in use.
    pub fn free_unused(&self, buckets: usize) {
        self.table().free_unused(buckets);
    }

    /// Where its buckets are kept.
    pub fn memory(&self) -> Memory {
        self.table().memory
    }

    /// The number of buckets for which memory is allocated.
    pub fn allocated(&self) -> usize {
        self.table().buckets.allocated()
    }

    /// The node of a bucket, if memory is allocated for it.
    ///
    /// # Safety
    /// As the [type](Self) says; no thread may write to it.
    pub unsafe fn bucket_at(&self, index: usize) -> Option<NonNull<Node>> {
        let buckets = &self.table().buckets;
        // SAFETY: allocated; by the contract in a section, in which it is not freed.
        (index < buckets.allocated()).then(|| NonNull::from(unsafe { buckets.at(index) }))
    }

    /// Converts the table into a pointer, for a C interface. [`from_raw`](Self::from_raw) converts
    /// it back.
    pub fn into_raw(self) -> *mut () {
        ManuallyDrop::new(self).table.as_ptr().cast()
    }

    /// Converts a pointer back into a table.
    ///
    /// # Safety
    /// The pointer is from [`into_raw`](Self::into_raw) of the same `R`, and is converted once.
    pub unsafe fn from_raw(table: *mut ()) -> Self {
        // SAFETY: not null, by the contract.
        Self { table: unsafe { NonNull::new_unchecked(table.cast()) } }
    }

    /// The table that a pointer stands for, without converting it back.
    ///
    /// # Safety
    /// The pointer is from [`into_raw`](Self::into_raw) of the same `R`, and is not converted back
    /// while the reference is used.
    #[inline(always)]
    pub unsafe fn borrow_raw(table: &*mut ()) -> &Self {
        // SAFETY: a pointer that is not null, as is all that this type has.
        unsafe { &*ptr::from_ref(table).cast() }
    }
}

impl<R: Protection> Drop for HashTable<R> {
    /// Frees the buckets, whether there are nodes or not; the table's thread does not look at those
    /// afterwards. It waits for no reader, and may be done in a section.
    fn drop(&mut self) {
        worker::hold_off(self.table.as_ptr());
        // SAFETY: from `new`, and its owner's no more; it is held.
        unsafe { give_up(self.table.as_ptr()) };
    }
}

/// Frees a table, or has the thread that works on it do so, which looks at its nodes no more.
/// Without a wait for readers.
///
/// # Safety
/// It came from [`Table::new`], no thread uses it any more, and it is held.
unsafe fn give_up<R: Protection>(table: *mut Table<R>) {
    let is_free = worker::lock().give_up(table);
    if is_free {
        // SAFETY: from `Table::new`, and on no board.
        unsafe { allocator::end(table) };
    }
}

shown_in_part!([R: Protection] HashTable<R> { buckets: |table| table.buckets() });

impl Node {
    /// Marks a node that is in no table as deleted, as [`is_deleted`](Self::is_deleted) reports
    /// until it is added.
    ///
    /// # Safety
    /// The node is in no table, and belongs to the caller alone.
    pub unsafe fn mark_deleted(&self) {
        // Relaxed: the node is the caller's alone.
        self.next.store(REMOVED, Relaxed);
    }

    /// Whether the node has been deleted or replaced, or was [marked](Self::mark_deleted). A node
    /// that was added to a table may be asked about only in a section.
    pub fn is_deleted(&self) -> bool {
        // Acquire: a thread that finds it deleted sees what was written before that.
        self.next.load(Acquire) & REMOVED != 0
    }
}

/// A node that is the caller's alone, made ready. What it held before does not matter.
///
/// # Safety
/// It may be written.
#[inline(always)]
unsafe fn prepare<'a>(node: NonNull<Node>, reverse_hash: usize) -> &'a Node {
    list::address(node.as_ptr());
    // SAFETY: by the contract; a node's words may hold anything.
    let node = unsafe { node.as_ref() };
    node.set_reverse_hash(reverse_hash);
    node
}

/// What a node is asked: whether it is the one.
#[inline(always)]
fn asked(mut matches: impl FnMut(NonNull<Node>) -> bool) -> impl FnMut(&Node) -> bool {
    move |node| user_code::run(Site::Equal, || matches(list::pointer(node)))
}

#[inline(always)]
fn cursor(found: Option<(&Node, usize)>) -> Cursor {
    found.map_or_else(Cursor::default, |(node, link)| Cursor {
        node: list::pointer(node).as_ptr(),
        next: ptr::with_exposed_provenance_mut(link & !FLAGS),
    })
}
