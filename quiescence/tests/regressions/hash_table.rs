//! Faults of `intrusive::HashTable`: work on a table that was broken off.

use crate::common::*;

use std::alloc::{GlobalAlloc, Layout, System};

use quiescence::intrusive::{
    HashTable, Node, Protection, TableAllocator, TableOptions, resume_resizing,
};

/// Buckets of the table, and nodes that are added each time.
const BUCKETS: usize = 1 << 12;
const NODES: usize = 2_000;

/// Readers of the global domain. The fourth section of the table's work forks, and so in the midst
/// of a shrink: in the child the table is to grow.
#[derive(Clone, Debug)]
struct Forks;

static SECTIONS: AtomicUsize = AtomicUsize::new(usize::MAX / 2);
static STATUS: AtomicI32 = AtomicI32::new(-1);
static TABLE: OnceLock<HashTable<Forks>> = OnceLock::new();

// SAFETY: that is what a domain does.
unsafe impl Protection for Forks {
    fn section(&self, f: &mut dyn FnMut()) {
        let guard = quiescence::read();
        f();
        drop(guard);
        if SECTIONS.fetch_add(1, SeqCst) != 3 {
            return;
        }
        // SAFETY: the child has this thread only, and ends by `_exit`.
        match unsafe { libc::fork() } {
            0 => {
                // SAFETY: a child that waits for ever is killed.
                unsafe { libc::alarm(60) };
                end_child(catch_unwind(grow_in_child).is_ok());
            }
            child => STATUS.store(status_of(child), SeqCst),
        }
    }

    fn synchronize(&self) {
        Domain::global().synchronize();
    }
}

fn add(table: &HashTable<Forks>, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let node = Box::leak(Box::new(Node::new()));
        let _guard = quiescence::read();
        // SAFETY: in a section; the node stays for ever.
        unsafe { table.add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15), NonNull::from(node)) };
    }
}

fn grow_in_child() {
    let table = TABLE.get().unwrap();
    table.resize(BUCKETS);
    add(table, NODES..2 * NODES);
    let _guard = quiescence::read();
    // SAFETY: in a section.
    assert_eq!(unsafe { table.count_nodes() }.met, 2 * NODES as u64);
}

/// Buckets had been taken out of the list when the process forked; a child that wanted the table
/// bigger took these into use again as if they were there. What it added behind them was in no
/// list.
#[test]
fn a_child_used_buckets_that_its_parent_had_unlinked() {
    in_its_own_process!();
    let options = TableOptions { buckets: BUCKETS, auto_resize: false, ..Default::default() };
    let table = TABLE.get_or_init(|| HashTable::new(Forks, options).unwrap());
    add(table, 0..NODES);
    SECTIONS.store(0, SeqCst);
    table.resize(1);
    assert_eq!(STATUS.load(SeqCst), 0, "the child failed");
    let _guard = quiescence::read();
    // SAFETY: in a section.
    assert_eq!(unsafe { table.count_nodes() }.met, NODES as u64);
}

/// A resize in a section, which is refused with a panic, left the table as one that is worked on:
/// the next one waited for ever.
#[test]
fn a_resize_that_panicked_kept_all_others_waiting() {
    in_its_own_process!();
    let domain = Domain::global();
    let options = TableOptions { buckets: 64, auto_resize: false, ..Default::default() };
    let table = HashTable::new(domain, options).unwrap();
    let guard = domain.read();
    panic_of(|| table.resize(1));
    drop(guard);
    table.resize(1);
    assert_eq!(table.buckets(), 2); // as few as there may be
}

/// The system's allocator, which forks once it has been told to: when it is asked for memory next.
struct AllocatorForks {
    here: Arc<ForksHere>,
    is_told: AtomicBool,
    /// The child has a worker, which asks for memory before the thread that has forked continues,
    /// and gets it when that has given back its own.
    has_worker: bool,
    is_asked: AtomicBool,
    has_given_back: AtomicBool,
}

// SAFETY: the system's own.
unsafe impl TableAllocator for AllocatorForks {
    fn allocate(&self, layout: Layout) -> *mut u8 {
        if self.is_told.load(SeqCst) && !self.here.has_forked() {
            self.here.fork();
            if self.here.is_child() {
                // SAFETY: a child that waits for ever is killed.
                unsafe { libc::alarm(60) };
                if self.has_worker {
                    resume_resizing();
                    until(|| self.is_asked.load(SeqCst));
                }
            }
        } else if !self.here.is_here() {
            self.is_asked.store(true, SeqCst);
            until(|| self.has_given_back.load(SeqCst));
        }
        // SAFETY: all that a table allocates has a size.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn free(&self, memory: *mut u8, layout: Layout) {
        self.has_given_back.store(true, SeqCst);
        // SAFETY: by the contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn resized_while_the_allocator_forks(has_worker: bool) {
    let forks = Arc::new(AllocatorForks {
        here: ForksHere::new(),
        is_told: AtomicBool::new(false),
        has_worker,
        is_asked: AtomicBool::new(false),
        has_given_back: AtomicBool::new(false),
    });
    let options = TableOptions { auto_resize: false, ..Default::default() };
    let table = HashTable::new_in(Domain::global(), options, forks.clone()).unwrap();
    forks.is_told.store(true, SeqCst);
    table.resize(BUCKETS);
    let is_left = !forks.here.is_child() || forks.has_given_back.load(SeqCst);
    forks.here.assert_in_both(is_left && table.buckets() == BUCKETS, "not resized, or twice");
}

/// If a table's allocator forked while the table was resized, no thread worked on the table in the
/// child: the call there was refused each step, and tried again for ever.
#[test]
fn a_resize_did_not_end_in_a_child_of_its_allocator() {
    in_its_own_process!();
    resized_while_the_allocator_forks(false);
}

/// If the child's worker had taken the table meanwhile, that call changed the table beside it, and
/// took it off the board.
#[test]
fn a_resize_in_a_child_of_its_allocator_worked_beside_the_worker() {
    in_its_own_process!();
    resized_while_the_allocator_forks(true);
}
