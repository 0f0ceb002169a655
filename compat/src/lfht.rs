//! The resizable hash table, with C's signatures.
//!
//! It is `quiescence::intrusive::HashTable`; a `struct cds_lfht *` is its pointer. Its readers are
//! whatever the flavour's structure says, which may be of any library that has one.

use std::ffi::{c_int, c_long, c_ulong, c_void};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use quiescence::intrusive::{
    Cursor, HashTable, Node, Protection, TableMemory, TableOptions, resume_resizing,
};

use crate::fatal::fatal;

const AUTO_RESIZE: c_int = 1;
const ACCOUNTING: c_int = 2;

/// `struct urcu_atfork`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct AtFork {
    before_fork: extern "C" fn(*mut c_void),
    after_fork_parent: extern "C" fn(*mut c_void),
    after_fork_child: extern "C" fn(*mut c_void),
    private: *mut c_void,
}

// SAFETY: functions, and a pointer that is null.
unsafe impl Sync for AtFork {}

/// Fork itself finds the table's thread: quiescence's own handlers hold its lock, and put right in
/// the child what it was at. What is left to a flavour's hooks is to start it there again, where a
/// thread may be started.
static AT_FORK: AtFork = AtFork {
    before_fork: nothing,
    after_fork_parent: nothing,
    after_fork_child: resume,
    private: ptr::null_mut(),
};

extern "C" fn nothing(_: *mut c_void) {}

extern "C" fn resume(_: *mut c_void) {
    resume_resizing();
}

type Simple = Option<unsafe extern "C" fn()>;

/// `struct rcu_flavor_struct`, as far as it is used.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct FlavorStruct {
    read_lock: Simple,
    read_unlock: Simple,
    read_ongoing: *const c_void,
    read_quiescent_state: Simple,
    update_call_rcu: *const c_void,
    update_synchronize_rcu: Simple,
    update_defer_rcu: *const c_void,
    thread_offline: Simple,
    thread_online: Simple,
    register_thread: Simple,
    unregister_thread: Simple,
    barrier: Simple,
    register_rculfhash_atfork: Option<unsafe extern "C" fn(*const AtFork)>,
    unregister_rculfhash_atfork: Option<unsafe extern "C" fn(*const AtFork)>,
}

const _: () = assert!(size_of::<FlavorStruct>() == 112);

/// The readers of a table, and what its maker wants back.
#[derive(Clone, Copy, Debug)]
struct Readers {
    /// Null for a table that was made by way of a memory type's function: it cannot be resized.
    flavor: *const FlavorStruct,
    attr: *mut libc::pthread_attr_t,
}

// SAFETY: a flavour's functions are for all threads; the attribute is only handed back.
unsafe impl Send for Readers {}
// SAFETY: as above.
unsafe impl Sync for Readers {}

impl Readers {
    fn flavor(&self) -> &FlavorStruct {
        // SAFETY: null, or valid as long as the table, by the contract of `_cds_lfht_new`.
        let flavor = unsafe { self.flavor.as_ref() };
        flavor.unwrap_or_else(|| {
            fatal(format_args!(
                "a hash table without a flavour is to be resized; make it with cds_lfht_new_flavor(), not with a \
                 function of a struct cds_lfht_mm_type"
            ))
        })
    }
}

fn call(function: Simple) {
    if let Some(function) = function {
        // SAFETY: of a flavour, called as its interface says.
        unsafe { function() };
    }
}

// SAFETY: a flavour's `synchronize_rcu` waits for the sections between its `read_lock` and
// `read_unlock`, and for QSBR readers, of which the worker is one while it is registered.
unsafe impl Protection for Readers {
    fn section(&self, f: &mut dyn FnMut()) {
        let flavor = self.flavor();
        call(flavor.read_lock);
        f();
        call(flavor.read_unlock);
        call(flavor.read_quiescent_state);
    }

    fn synchronize(&self) {
        call(self.flavor().update_synchronize_rcu);
    }

    fn offline(&self) {
        call(self.flavor().thread_offline);
    }

    fn online(&self) {
        call(self.flavor().thread_online);
    }

    fn begin(&self) {
        call(self.flavor().register_thread);
    }

    fn end(&self) {
        call(self.flavor().unregister_thread);
    }
}

type Table = HashTable<Readers>;

/// `struct cds_lfht`, by address.
type Raw = *mut ();

type Match = unsafe extern "C" fn(*mut Node, *const c_void) -> c_int;

/// The table that C means.
///
/// # Safety
/// It was made here, and has not been destroyed.
#[inline(always)]
unsafe fn table(raw: &Raw) -> &Table {
    // SAFETY: by the contract.
    unsafe { Table::borrow_raw(raw) }
}

/// The table that is passed to a function of this memory type.
///
/// # Safety
/// As [`table`].
unsafe fn table_of(raw: &Raw, memory: TableMemory) -> &Table {
    // SAFETY: by the contract.
    let table = unsafe { table(raw) };
    if table.memory() != memory {
        let is = table.memory();
        fatal(format_args!(
            "a function of one struct cds_lfht_mm_type ({memory:?}) is called with a table of another one ({is:?})"
        ));
    }
    table
}

/// What asks C whether a node is meant.
///
/// # Safety
/// The function may be called with this key and any node of the hash.
#[inline(always)]
unsafe fn by(matches: Match, key: *const c_void) -> impl Fn(NonNull<Node>) -> bool {
    move |node| {
        // SAFETY: by the contract.
        unsafe { matches(node.as_ptr(), key) != 0 }
    }
}

/// `struct cds_lfht_mm_type`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct MemoryType {
    alloc_cds_lfht: extern "C" fn(c_ulong, c_ulong) -> Raw,
    alloc_bucket_table: unsafe extern "C" fn(Raw, c_ulong),
    free_bucket_table: unsafe extern "C" fn(Raw, c_ulong),
    bucket_at: unsafe extern "C" fn(Raw, c_ulong) -> *mut Node,
}

/// Defines the four functions of a memory type.
macro_rules! memory_type {
    ($memory:ident, $new:ident, $allocate:ident, $free:ident, $at:ident) => {
        /// An empty table that keeps its buckets so, without flavour and flags; NULL if there is no
        /// memory.
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $new(
            min_nr_alloc_buckets: c_ulong,
            max_nr_buckets: c_ulong,
        ) -> Raw {
            let readers = Readers { flavor: ptr::null(), attr: ptr::null_mut() };
            let memory = Some(TableMemory::$memory);
            make(1, min_nr_alloc_buckets, max_nr_buckets, 0, memory, readers)
        }

        /// Memory for the buckets of this order: 0 is those that come with the table, and k those
        /// from 2^(k-1) on.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $allocate(ht: Raw, order: c_ulong) {
            // SAFETY: by C's contract.
            let table = unsafe { table_of(&ht, TableMemory::$memory) };
            let count = u32::try_from(order).ok().and_then(|order| 1_usize.checked_shl(order));
            if !count.is_some_and(|count| table.allocate(count)) {
                fatal(format_args!("no memory for the buckets of a hash table of order {order}"));
            }
        }

        /// Frees the buckets of this order and greater ones, but for those that are in use: these
        /// the table frees when it shrinks.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $free(ht: Raw, order: c_ulong) {
            // SAFETY: by C's contract.
            let table = unsafe { table_of(&ht, TableMemory::$memory) };
            let below = u32::try_from(order).ok().and_then(|order| order.checked_sub(1));
            // Order 0 is never freed alone.
            if let Some(count) = below.and_then(|below| 1_usize.checked_shl(below)) {
                table.free_unused(count);
            }
        }

        /// The node of a bucket; NULL if it has no memory.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $at(ht: Raw, index: c_ulong) -> *mut Node {
            // SAFETY: by C's contract.
            let table = unsafe { table_of(&ht, TableMemory::$memory) };
            // SAFETY: as above.
            let bucket = unsafe { table.bucket_at(index as usize) };
            bucket.map_or(ptr::null_mut(), NonNull::as_ptr)
        }
    };
}

memory_type!(
    Order,
    quiescence_cds_lfht_mm_order_alloc_cds_lfht,
    quiescence_cds_lfht_mm_order_alloc_bucket_table,
    quiescence_cds_lfht_mm_order_free_bucket_table,
    quiescence_cds_lfht_mm_order_bucket_at
);
memory_type!(
    Chunk,
    quiescence_cds_lfht_mm_chunk_alloc_cds_lfht,
    quiescence_cds_lfht_mm_chunk_alloc_bucket_table,
    quiescence_cds_lfht_mm_chunk_free_bucket_table,
    quiescence_cds_lfht_mm_chunk_bucket_at
);
memory_type!(
    Mmap,
    quiescence_cds_lfht_mm_mmap_alloc_cds_lfht,
    quiescence_cds_lfht_mm_mmap_alloc_bucket_table,
    quiescence_cds_lfht_mm_mmap_free_bucket_table,
    quiescence_cds_lfht_mm_mmap_bucket_at
);

/// The kind of memory that a client has chosen by its address.
fn memory_of(mm: &MemoryType) -> TableMemory {
    let new = mm.alloc_cds_lfht as *const ();
    if ptr::eq(new, quiescence_cds_lfht_mm_order_alloc_cds_lfht as *const ()) {
        TableMemory::Order
    } else if ptr::eq(new, quiescence_cds_lfht_mm_chunk_alloc_cds_lfht as *const ()) {
        TableMemory::Chunk
    } else if ptr::eq(new, quiescence_cds_lfht_mm_mmap_alloc_cds_lfht as *const ()) {
        TableMemory::Mmap
    } else {
        fatal(format_args!(
            "cds_lfht: a memory type of the program's own; pass &cds_lfht_mm_order, &cds_lfht_mm_chunk, \
             &cds_lfht_mm_mmap or NULL"
        ))
    }
}

/// A table, or NULL.
fn make(
    init_size: c_ulong,
    min: c_ulong,
    max: c_ulong,
    flags: c_int,
    memory: Option<TableMemory>,
    readers: Readers,
) -> Raw {
    let max = if max == 0 { 0 } else { (max as usize).max(min as usize) };
    let options = TableOptions {
        buckets: init_size as usize,
        buckets_min: min as usize,
        buckets_max: max,
        memory,
        auto_resize: flags & AUTO_RESIZE != 0,
        accounting: flags & ACCOUNTING != 0,
    };
    Table::new(readers, options).map_or(ptr::null_mut(), Table::into_raw)
}

/// Flavours that know of [`AT_FORK`]. Without a lock, which a fork might find held.
static TOLD: [AtomicPtr<FlavorStruct>; 16] = [const { AtomicPtr::new(ptr::null_mut()) }; 16];

/// Tells a flavour of [`AT_FORK`], once.
fn tell(flavor: *const FlavorStruct) {
    let flavor = flavor.cast_mut();
    for place in &TOLD {
        // Relaxed: a thread that finds it there has nothing to do.
        match place.compare_exchange(ptr::null_mut(), flavor, Relaxed, Relaxed) {
            Ok(_) => break,
            Err(other) if ptr::eq(other, flavor) => return,
            Err(_) => {}
        }
    }
    // SAFETY: valid, by the contract of `_cds_lfht_new`.
    if let Some(register) = unsafe { (*flavor).register_rculfhash_atfork } {
        // SAFETY: as its interface says; what is registered lives for ever.
        unsafe { register(&raw const AT_FORK) };
    }
}

/// `_cds_lfht_new`.
///
/// # Safety
/// `mm` is null or valid, `flavor` valid as long as the table.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn quiescence__cds_lfht_new(
    init_size: c_ulong,
    min_nr_alloc_buckets: c_ulong,
    max_nr_buckets: c_ulong,
    flags: c_int,
    mm: *const MemoryType,
    flavor: *const FlavorStruct,
    attr: *mut libc::pthread_attr_t,
) -> Raw {
    // SAFETY: by the contract.
    let memory = unsafe { mm.as_ref() }.map(memory_of);
    let readers = Readers { flavor, attr };
    let made = make(init_size, min_nr_alloc_buckets, max_nr_buckets, flags, memory, readers);
    if !made.is_null() && flags & AUTO_RESIZE != 0 {
        tell(flavor);
    }
    made
}

/// `cds_lfht_destroy`.
///
/// # Safety
/// The table is the caller's alone; `attr` is null or may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn quiescence_cds_lfht_destroy(
    ht: Raw,
    attr: *mut *mut libc::pthread_attr_t,
) -> c_int {
    // SAFETY: by the contract.
    let table = unsafe { Table::from_raw(ht) };
    let its = table.readers().attr;
    // SAFETY: by the contract.
    if let Err(table) = unsafe { table.destroy() } {
        table.into_raw();
        return -libc::EPERM;
    }
    if !attr.is_null() {
        // SAFETY: by the contract.
        unsafe { attr.write(its) };
    }
    0
}

/// `cds_lfht_lookup`.
///
/// # Safety
/// As its interface says; so everywhere below.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn quiescence_cds_lfht_lookup(
    ht: Raw,
    hash: c_ulong,
    matches: Match,
    key: *const c_void,
    iter: *mut Cursor,
) {
    // SAFETY: by the contract.
    let matches = unsafe { by(matches, key) };
    // SAFETY: by the contract.
    let table = unsafe { table(&ht) };
    // SAFETY: by the contract.
    let found = unsafe { table.lookup(hash as usize, matches) };
    // SAFETY: by the contract.
    unsafe { iter.write(found) };
}

/// `cds_lfht_next_duplicate`.
///
/// # Safety
/// As its interface says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn quiescence_cds_lfht_next_duplicate(
    ht: Raw,
    matches: Match,
    key: *const c_void,
    iter: *mut Cursor,
) {
    // SAFETY: by the contract.
    let matches = unsafe { by(matches, key) };
    // SAFETY: by the contract.
    let table = unsafe { table(&ht) };
    // SAFETY: by the contract.
    let from = unsafe { iter.read() };
    // SAFETY: by the contract.
    let found = unsafe { table.next_duplicate(from, matches) };
    // SAFETY: by the contract.
    unsafe { iter.write(found) };
}

/// `cds_lfht_first`.
///
/// # Safety
/// As its interface says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn quiescence_cds_lfht_first(ht: Raw, iter: *mut Cursor) {
    // SAFETY: by the contract.
    let table = unsafe { table(&ht) };
    // SAFETY: by the contract.
    let found = unsafe { table.first() };
    // SAFETY: by the contract.
    unsafe { iter.write(found) };
}

/// `cds_lfht_next`.
///
/// # Safety
/// As its interface says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn quiescence_cds_lfht_next(ht: Raw, iter: *mut Cursor) {
    // SAFETY: by the contract.
    let table = unsafe { table(&ht) };
    // SAFETY: by the contract.
    let from = unsafe { iter.read() };
    // SAFETY: by the contract.
    let found = unsafe { table.next(from) };
    // SAFETY: by the contract.
    unsafe { iter.write(found) };
}

/// `cds_lfht_add`.
///
/// # Safety
/// As its interface says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn quiescence_cds_lfht_add(
    ht: Raw,
    hash: c_ulong,
    node: NonNull<Node>,
) {
    // SAFETY: by the contract.
    let table = unsafe { table(&ht) };
    // SAFETY: by the contract.
    unsafe { table.add(hash as usize, node) };
}

/// `cds_lfht_add_unique`: the node added, or the one that was there.
///
/// # Safety
/// As its interface says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn quiescence_cds_lfht_add_unique(
    ht: Raw,
    hash: c_ulong,
    matches: Match,
    key: *const c_void,
    node: NonNull<Node>,
) -> NonNull<Node> {
    // SAFETY: by the contract.
    let matches = unsafe { by(matches, key) };
    // SAFETY: by the contract.
    let table = unsafe { table(&ht) };
    // SAFETY: by the contract.
    unsafe { table.add_unique(hash as usize, node, matches) }.err().unwrap_or(node)
}

/// `cds_lfht_add_replace`: the node that was replaced, or NULL.
///
/// # Safety
/// As its interface says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn quiescence_cds_lfht_add_replace(
    ht: Raw,
    hash: c_ulong,
    matches: Match,
    key: *const c_void,
    node: NonNull<Node>,
) -> Option<NonNull<Node>> {
    // SAFETY: by the contract.
    let matches = unsafe { by(matches, key) };
    // SAFETY: by the contract.
    let table = unsafe { table(&ht) };
    // SAFETY: by the contract.
    unsafe { table.add_replace(hash as usize, node, matches) }
}

/// `cds_lfht_replace`: 0, -ENOENT if the old node is not there, or -EINVAL if it is another key's.
///
/// # Safety
/// As its interface says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn quiescence_cds_lfht_replace(
    ht: Raw,
    old_iter: *const Cursor,
    hash: c_ulong,
    matches: Match,
    key: *const c_void,
    new_node: NonNull<Node>,
) -> c_int {
    // SAFETY: by the contract.
    let Some(old) = (unsafe { old_iter.read() }).node() else {
        return -libc::ENOENT;
    };
    // SAFETY: by the contract.
    let is_it = unsafe { by(matches, key) };
    // SAFETY: by the contract.
    let table = unsafe { table(&ht) };
    // SAFETY: by the contract.
    let has_hash = unsafe { table.has_hash(old, hash as usize) };
    if !has_hash || !is_it(old) {
        return -libc::EINVAL;
    }
    // SAFETY: by the contract.
    if unsafe { table.replace(old, new_node) } { 0 } else { -libc::ENOENT }
}

/// `cds_lfht_del`: 0, or -ENOENT.
///
/// # Safety
/// As its interface says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn quiescence_cds_lfht_del(
    ht: Raw,
    node: Option<NonNull<Node>>,
) -> c_int {
    // SAFETY: by the contract.
    let table = unsafe { table(&ht) };
    // SAFETY: by the contract.
    let deleted = node.is_some_and(|node| unsafe { table.delete(node) });
    if deleted { 0 } else { -libc::ENOENT }
}

/// `cds_lfht_is_node_deleted`.
///
/// # Safety
/// As its interface says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn quiescence_cds_lfht_is_node_deleted(node: *const Node) -> c_int {
    // SAFETY: by the contract.
    c_int::from(unsafe { &*node }.is_deleted())
}

/// `cds_lfht_count_nodes`.
///
/// # Safety
/// As its interface says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn quiescence_cds_lfht_count_nodes(
    ht: Raw,
    split_count_before: *mut c_long,
    count: *mut c_ulong,
    split_count_after: *mut c_long,
) {
    // SAFETY: by the contract.
    let table = unsafe { table(&ht) };
    // SAFETY: by the contract.
    let counts = unsafe { table.count_nodes() };
    // SAFETY: by the contract.
    unsafe { split_count_before.write(counts.before as c_long) };
    // SAFETY: by the contract.
    unsafe { count.write(counts.met as c_ulong) };
    // SAFETY: by the contract.
    unsafe { split_count_after.write(counts.after as c_long) };
}

/// `cds_lfht_resize`.
///
/// # Safety
/// As its interface says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn quiescence_cds_lfht_resize(ht: Raw, new_size: c_ulong) {
    // SAFETY: by the contract.
    unsafe { table(&ht) }.resize(new_size as usize);
}

/// `cds_lfht_fls_ulong`: the number of the last bit set, from 1; 0 for none.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn quiescence_cds_lfht_fls_ulong(x: c_ulong) -> u32 {
    c_ulong::BITS - x.leading_zeros()
}

/// `cds_lfht_get_count_order_ulong`: the logarithm, rounded up; -1 of 0.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn quiescence_cds_lfht_get_count_order_ulong(x: c_ulong) -> c_int {
    match x {
        0 => -1,
        _ => quiescence_cds_lfht_fls_ulong(x - 1) as c_int,
    }
}
