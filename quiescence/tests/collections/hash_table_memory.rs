//! Hash tables whose memory is from an allocator that their maker brings along.

use crate::common::*;
use std::alloc::{GlobalAlloc, Layout, System};

use quiescence::intrusive::{
    Node, TableAllocator, TableError, TableMemory, TableOptions as Options,
};

use super::hash_table::{MEMORIES, Table};

thread_local! {
    /// Whether the thread is in a section, in which an allocator might wait for itself.
    static IN_SECTION: Cell<bool> = const { Cell::new(false) };
}

/// Counts what it gives, and gives no more than it may.
#[derive(Debug)]
struct Counting {
    live: AtomicI64,
    left: AtomicI64,
}

impl Counting {
    fn with(left: i64) -> Arc<Self> {
        Arc::new(Self { live: AtomicI64::new(0), left: AtomicI64::new(left) })
    }
}

// SAFETY: the system's own, unless there is to be none.
unsafe impl TableAllocator for Counting {
    fn allocate(&self, layout: Layout) -> *mut u8 {
        if IN_SECTION.get() {
            std::process::abort(); // no panic may come out of here
        }
        if self.left.fetch_sub(1, SeqCst) <= 0 {
            return ptr::null_mut();
        }
        self.live.fetch_add(1, SeqCst);
        // SAFETY: all that a table allocates has a size.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn free(&self, memory: *mut u8, layout: Layout) {
        if IN_SECTION.get() {
            std::process::abort();
        }
        self.live.fetch_sub(1, SeqCst);
        // SAFETY: by the contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn options(memory: Option<TableMemory>, auto_resize: bool) -> Options {
    let buckets_max = if memory == Some(TableMemory::Order) { 0 } else { 1 << 14 };
    Options { buckets: 4, buckets_min: 4, buckets_max, memory, auto_resize, accounting: true }
}

/// Calls `f` for each of the nodes with a key, in a section.
fn each(domain: &Domain<Private>, nodes: &[Node], f: impl Fn(usize, NonNull<Node>)) {
    for (key, node) in nodes.iter().enumerate() {
        let section = domain.read();
        IN_SECTION.set(true);
        f(key.wrapping_mul(0x9e37_79b9), NonNull::from(node));
        IN_SECTION.set(false);
        drop(section);
    }
}

fn add_all(table: &Table, domain: &Domain<Private>, nodes: &[Node]) {
    // SAFETY: in a section; the nodes outlive the table.
    each(domain, nodes, |key, node| unsafe { table.add(key, node) });
}

fn delete_all(table: &Table, domain: &Domain<Private>, nodes: &[Node]) {
    // SAFETY: in a section, and added before.
    each(domain, nodes, |_, node| assert!(unsafe { table.delete(node) }));
    domain.synchronize();
}

/// A table that grows, of an allocator that counts.
fn counting_table(domain: &Domain<Private>) -> (Table, Arc<Counting>) {
    let counting = Counting::with(i64::MAX);
    let options = options(Some(TableMemory::Order), true);
    (Table::new_in(domain.clone(), options, counting.clone()).unwrap(), counting)
}

/// On the library's thread: not in the call that finds it too small, which is in a section.
#[test]
fn a_table_grows_by_its_own_allocator() {
    let nodes: Vec<Node> = (0..4_000).map(|_| Node::new()).collect();
    let domain: Domain<Private> = Domain::new();
    let (table, _) = counting_table(&domain);
    add_all(&table, &domain, &nodes);
    until(|| table.buckets() >= nodes.len() / 4);
    delete_all(&table, &domain, &nodes);
    // SAFETY: no other thread uses it.
    unsafe { table.destroy() }.unwrap();
}

/// Wherever it is that there is none.
#[test]
fn without_memory_there_is_no_table_and_nothing_is_kept() {
    for memory in MEMORIES {
        for left in 0.. {
            assert!(left < 100, "a small table is a few pieces");
            let counting = Counting::with(left);
            let domain = Domain::new();
            let made = Table::new_in(domain, options(memory, false), counting.clone()).map(drop);
            assert_eq!(counting.live.load(SeqCst), 0);
            match made {
                Ok(()) => break,
                Err(error) => assert_eq!(error, TableError::NoMemory),
            }
        }
    }
}

/// A table that cannot grow is as good as before.
#[test]
fn without_memory_a_table_stays_as_it_is() {
    let nodes: Vec<Node> = (0..2_000).map(|_| Node::new()).collect();
    let domain: Domain<Private> = Domain::new();
    let (table, counting) = counting_table(&domain);
    counting.left.store(0, SeqCst);
    let buckets = table.buckets();
    assert!(!table.allocate(1 << 12));
    add_all(&table, &domain, &nodes);
    assert_eq!(table.buckets(), buckets);
    delete_all(&table, &domain, &nodes);
    // SAFETY: no other thread uses it.
    unsafe { table.destroy() }.unwrap();
    until(|| counting.live.load(SeqCst) == 0);
}
