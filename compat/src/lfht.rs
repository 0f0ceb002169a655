//! The resizable hash table, with C's signatures.
//!
//! A `struct cds_lfht *` is the raw pointer of a `quiescence::intrusive::HashTable`. Its readers
//! are those of the flavour's structure, which may come from any library that has one.
//!
//! A `struct cds_lfht_mm_type` determines how the buckets lie in memory ([`memory_type`]), a
//! `struct cds_lfht_alloc` where all of the table's memory comes from ([`allocator`]).
//!
//! The contract of each function is that of liburcu's interface.

mod allocator;
mod memory_type;

use std::cell::Cell;
use std::ffi::{c_int, c_long, c_ulong, c_void};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use quiescence::intrusive::{
    Cursor, HashTable, Node, Protection, TableAllocator, TableMemory, TableOptions, resume_resizing,
};

use self::allocator::Functions;
use self::memory_type::MemoryType;
use crate::call_rcu::forks::Atfork;
use crate::fatal::fatal;
use crate::flavor::Flavor;
use crate::reader;

const AUTO_RESIZE: c_int = 1;
const ACCOUNTING: c_int = 2;

/// quiescence's own handlers for `fork` hold the lock of the tables' worker thread, and repair its
/// state in the child. A flavour's hooks only have to start that thread again in the child, at a
/// point where a thread may be started.
static AT_FORK: Atfork = Atfork {
    before: nothing,
    after_parent: nothing,
    after_child: resume,
    private: ptr::null_mut(),
};

unsafe extern "C" fn nothing(_: *mut c_void) {}

unsafe extern "C" fn resume(_: *mut c_void) {
    resume_resizing();
}

type Simple = Option<unsafe extern "C" fn()>;

/// `struct rcu_flavor_struct`, up to the last member that is used.
#[repr(C)]
pub(crate) struct FlavorStruct {
    read_lock: Simple,
    read_unlock: Simple,
    read_ongoing: Option<unsafe extern "C" fn() -> c_int>,
    read_quiescent_state: Simple,
    update_call_rcu: *const c_void,
    update_synchronize_rcu: Simple,
    update_defer_rcu: *const c_void,
    thread_offline: Simple,
    thread_online: Simple,
    register_thread: Simple,
    unregister_thread: Simple,
    barrier: Simple,
    register_rculfhash_atfork: Option<unsafe extern "C" fn(*const Atfork)>,
    unregister_rculfhash_atfork: Option<unsafe extern "C" fn(*const Atfork)>,
}

// The members that liburcu 0.14 added at the end are not read: a program built with 0.13 has none.
const _: () = assert!(size_of::<FlavorStruct>() == 112);

/// The readers of a table, and the attribute that `cds_lfht_destroy` returns.
#[derive(Clone, Copy, Debug)]
struct Readers {
    /// Null for a table that was made by a memory type's function: it cannot be resized.
    flavor: *const FlavorStruct,
    attr: *mut libc::pthread_attr_t,
}

// SAFETY: any thread may call a flavour's functions; the attribute is only returned.
unsafe impl Send for Readers {}
// SAFETY: as above.
unsafe impl Sync for Readers {}

impl Readers {
    fn flavor(&self) -> &FlavorStruct {
        // SAFETY: null, or valid as long as the table, by the contract of `_cds_lfht_new`.
        let flavor = unsafe { self.flavor.as_ref() };
        flavor.unwrap_or_else(|| {
            fatal(format_args!(
                "a hash table without a flavour cannot be resized; make it with \
                 cds_lfht_new_flavor(), not with a function of a struct cds_lfht_mm_type"
            ))
        })
    }
}

thread_local! {
    /// Whether the thread, which resizes a table by hand, was online before.
    static WAS_ONLINE: Cell<bool> = const { Cell::new(false) };
}

fn call(function: Simple) {
    if let Some(function) = function {
        // SAFETY: a flavour's function, called as its interface allows.
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
        let reads = self.flavor().read_ongoing;
        // SAFETY: a flavour's function, called as its interface allows.
        WAS_ONLINE.set(reads.is_none_or(|reads| unsafe { reads() } != 0));
        call(self.flavor().thread_offline);
    }

    fn online(&self) {
        // A thread that is no reader stays none.
        if WAS_ONLINE.get() || reader::is_registered(Flavor::Qsbr) {
            call(self.flavor().thread_online);
        }
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

/// The table behind C's pointer.
///
/// # Safety
/// The table was made here, and has not been destroyed.
#[inline(always)]
unsafe fn table(raw: &Raw) -> &Table {
    // SAFETY: by the contract.
    unsafe { Table::borrow_raw(raw) }
}

/// A closure that calls C's match function with `key`.
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

/// Makes a table with `buckets` buckets, at least `min` and at most `max`; NULL if that fails. A
/// `max` below `min` counts as `min`; 0 is no limit, which only the memory type `order` can have.
fn make(
    [buckets, min, max]: [c_ulong; 3],
    flags: c_int,
    memory: Option<TableMemory>,
    readers: Readers,
    allocator: Option<Arc<dyn TableAllocator>>,
) -> Raw {
    let has_no_limit = max == 0 && memory.is_none_or(|memory| memory == TableMemory::Order);
    if !has_no_limit && !max.is_power_of_two() {
        return ptr::null_mut();
    }
    let options = TableOptions {
        buckets: buckets as usize,
        buckets_min: min as usize,
        buckets_max: if has_no_limit { 0 } else { max.max(min) as usize },
        memory,
        auto_resize: flags & AUTO_RESIZE != 0,
        accounting: flags & ACCOUNTING != 0,
    };
    let made = match allocator {
        Some(allocator) => Table::new_in(readers, options, allocator),
        None => Table::new(readers, options),
    };
    made.map_or(ptr::null_mut(), Table::into_raw)
}

exported! {
    fn quiescence__cds_lfht_new(
        init_size: c_ulong,
        min_nr_alloc_buckets: c_ulong,
        max_nr_buckets: c_ulong,
        flags: c_int,
        mm: *const MemoryType,
        flavor: *const FlavorStruct,
        attr: *mut libc::pthread_attr_t
    ) -> Raw {
        quiescence__cds_lfht_new_with_alloc(
            init_size, min_nr_alloc_buckets, max_nr_buckets, flags, mm, flavor, ptr::null(), attr
        )
    }

    /// Since liburcu 0.15. `mm` and `alloc` are null or valid, `flavor` is valid as long as the
    /// table, and the functions of `alloc` return memory, as its interface requires.
    fn quiescence__cds_lfht_new_with_alloc(
        init_size: c_ulong,
        min_nr_alloc_buckets: c_ulong,
        max_nr_buckets: c_ulong,
        flags: c_int,
        mm: *const MemoryType,
        flavor: *const FlavorStruct,
        alloc: *const Functions,
        attr: *mut libc::pthread_attr_t
    ) -> Raw {
        let buckets = [init_size, min_nr_alloc_buckets, max_nr_buckets];
        let memory = mm.as_ref().map(memory_type::memory_of);
        let made = make(buckets, flags, memory, Readers { flavor, attr }, allocator::of(alloc));
        if !made.is_null()
            && flags & AUTO_RESIZE != 0
            && let Some(register) = (*flavor).register_rculfhash_atfork
        {
            register(&raw const AT_FORK); // once more than before changes nothing
        }
        made
    }

    /// The table is the caller's alone; `attr` is null or writable.
    fn quiescence_cds_lfht_destroy(ht: Raw, attr: *mut *mut libc::pthread_attr_t) -> c_int {
        let table = Table::from_raw(ht);
        let its = table.readers().attr;
        if let Err(table) = table.destroy() {
            table.into_raw();
            return -libc::EPERM;
        }
        if !attr.is_null() {
            attr.write(its);
        }
        0
    }

    fn quiescence_cds_lfht_lookup(
        ht: Raw,
        hash: c_ulong,
        matches: Match,
        key: *const c_void,
        iter: *mut Cursor
    ) {
        iter.write(table(&ht).lookup(hash as usize, by(matches, key)));
    }

    fn quiescence_cds_lfht_next_duplicate(
        ht: Raw,
        matches: Match,
        key: *const c_void,
        iter: *mut Cursor
    ) {
        iter.write(table(&ht).next_duplicate(iter.read(), by(matches, key)));
    }

    fn quiescence_cds_lfht_first(ht: Raw, iter: *mut Cursor) {
        iter.write(table(&ht).first());
    }

    fn quiescence_cds_lfht_next(ht: Raw, iter: *mut Cursor) {
        iter.write(table(&ht).next(iter.read()));
    }

    fn quiescence_cds_lfht_add(ht: Raw, hash: c_ulong, node: NonNull<Node>) {
        table(&ht).add(hash as usize, node);
    }

    /// The node added, or the one that was there.
    fn quiescence_cds_lfht_add_unique(
        ht: Raw,
        hash: c_ulong,
        matches: Match,
        key: *const c_void,
        node: NonNull<Node>
    ) -> NonNull<Node> {
        table(&ht).add_unique(hash as usize, node, by(matches, key)).err().unwrap_or(node)
    }

    /// The node that was replaced, or NULL.
    fn quiescence_cds_lfht_add_replace(
        ht: Raw,
        hash: c_ulong,
        matches: Match,
        key: *const c_void,
        node: NonNull<Node>
    ) -> Option<NonNull<Node>> {
        table(&ht).add_replace(hash as usize, node, by(matches, key))
    }

    /// 0, -ENOENT if the old node is not there, or -EINVAL if it is another key's.
    fn quiescence_cds_lfht_replace(
        ht: Raw,
        old_iter: *const Cursor,
        hash: c_ulong,
        matches: Match,
        key: *const c_void,
        new_node: NonNull<Node>
    ) -> c_int {
        let Some(old) = old_iter.read().node() else { return -libc::ENOENT };
        let table = table(&ht);
        if !table.has_hash(old, hash as usize) || !by(matches, key)(old) {
            return -libc::EINVAL;
        }
        if table.replace(old, new_node) { 0 } else { -libc::ENOENT }
    }

    /// 0, or -ENOENT.
    fn quiescence_cds_lfht_del(ht: Raw, node: Option<NonNull<Node>>) -> c_int {
        let table = table(&ht);
        if node.is_some_and(|node| table.delete(node)) { 0 } else { -libc::ENOENT }
    }

    /// Since liburcu 0.14. The node is the caller's alone, and in no table. It need not be
    /// initialised.
    fn quiescence_cds_lfht_node_init_deleted(node: &Node) { node.mark_deleted() }

    fn quiescence_cds_lfht_is_node_deleted(node: &Node) -> c_int { c_int::from(node.is_deleted()) }

    fn quiescence_cds_lfht_count_nodes(
        ht: Raw,
        split_count_before: *mut c_long,
        count: *mut c_ulong,
        split_count_after: *mut c_long
    ) {
        let counts = table(&ht).count_nodes();
        split_count_before.write(counts.before as c_long);
        count.write(counts.met as c_ulong);
        split_count_after.write(counts.after as c_long);
    }

    /// By a QSBR thread that is offline, too: it is online meanwhile.
    fn quiescence_cds_lfht_resize(ht: Raw, new_size: c_ulong) {
        let table = table(&ht);
        table.resize(new_size as usize);
        if !WAS_ONLINE.get() {
            table.readers().offline();
        }
    }

    /// The number of the highest bit set, counted from 1; 0 for none.
    fn quiescence_cds_lfht_fls_ulong(x: c_ulong) -> u32 { c_ulong::BITS - x.leading_zeros() }

    /// The binary logarithm of `x`, rounded up; -1 for 0.
    fn quiescence_cds_lfht_get_count_order_ulong(x: c_ulong) -> c_int {
        if x == 0 { -1 } else { quiescence_cds_lfht_fls_ulong(x - 1) as c_int }
    }
}
