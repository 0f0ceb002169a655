//! A table's size: how it is chosen, how it grows and shrinks, and how its buckets are linked into
//! the list.
//!
//! After Shalev and Shavit (J. ACM 2006): nodes never move; when a table doubles its size, each new
//! bucket begins in the middle of an old one. *Growing* is an allocation and one store. The thread
//! that finds the table too small does it, since it takes no grace period. The first update that
//! needs a bucket links it into the list, and the worker links the rest; until then readers begin
//! at the bucket from which it was split. *Shrinking* takes two grace periods, so the worker does
//! it. After the first, all readers and updaters know the smaller size, and the buckets are
//! unlinked; after the second, no thread accesses them any more.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};

use super::allocator::{Source, Stock};
use super::buckets::{Buckets, Memory};
use super::list::{BUCKET, Chain, LINKED};
use super::node::Node;
use super::split;
use super::worker::{self, Board, Locked, Work};
use super::{Options, Protection};
use crate::os::on_drop::OnDrop;
use crate::os::percpu;
use crate::sync::Counter;

/// How many new buckets the thread that grows the table links itself.
const LINKED_AT_ONCE: usize = 64;
/// How many buckets the worker links or unlinks in one section.
const BUCKETS_A_SECTION: usize = 256;
/// The nodes are counted once an update had to pass this many different hashes.
const CHAIN_IS_LONG: usize = 3;
/// One deletion in 2^this counts the nodes, to see whether the table is too big.
const DELETIONS_A_LOOK: u32 = 6;

/// A table without its owner.
#[repr(C, align(64))]
pub(super) struct Table<R> {
    /// Buckets in use: a power of two, at most as many as are allocated.
    size: AtomicUsize,
    counts: bool,
    resizes: bool,
    shrinks: bool,
    pub(super) reports_counts: bool,
    pub(super) memory: Memory,
    pub(super) buckets: Buckets,
    pub(super) count: Counter,
    pub(super) readers: R,
    changing: Changing,
}

/// State that changes rarely, in a cache line that no look-up reads.
#[repr(align(128))]
struct Changing {
    /// Long chains to be ignored before nodes are counted again: until then there cannot be enough
    /// nodes.
    passes: AtomicUsize,
    /// The target size. Written under the board's lock.
    target: AtomicUsize,
    /// The greatest size since buckets were last freed: no thread knows of buckets above it.
    published: AtomicUsize,
    /// Buckets below this number are in the list. Written by the thread that works on the table, or
    /// under the board's lock.
    linked: AtomicUsize,
    /// Buckets are being unlinked: growth must not use them again. Written under the board's lock.
    is_shrinking: AtomicBool,
    /// Buckets have been unlinked, or may have been: the shrink is finished before the table grows
    /// again, also by a child of the process that began it. Written under the board's lock.
    is_unlinking: AtomicBool,
}

impl<R: Protection> Table<R> {
    /// A table in memory of its source; [`end`](super::allocator::end) ends it.
    pub(super) fn new(options: &Options, readers: R, source: Source) -> Option<NonNull<Self>> {
        let max = if options.buckets_max == 0 { 1 << 63 } else { options.buckets_max };
        let default = if max >> 31 <= 2 { Memory::Mmap } else { Memory::Order };
        let memory = options.memory.unwrap_or(default);
        let buckets = Buckets::new(memory, options.buckets_min, max, source.clone())?;
        let size = options.buckets.clamp(1, max);
        let counts = options.auto_resize || options.accounting;
        if counts {
            percpu::path(); // the process's first counter tries that out: not in somebody's section
        }
        let table = Self {
            size: AtomicUsize::new(1),
            counts,
            resizes: options.auto_resize,
            shrinks: options.auto_resize && options.accounting,
            reports_counts: options.accounting,
            memory,
            buckets,
            count: Counter::new(),
            readers,
            changing: Changing {
                passes: AtomicUsize::new(0),
                target: AtomicUsize::new(size),
                published: AtomicUsize::new(size),
                linked: AtomicUsize::new(1),
                is_shrinking: AtomicBool::new(false),
                is_unlinking: AtomicBool::new(false),
            },
        };
        // SAFETY: allocated, and no other thread's.
        let first: &Node = unsafe { table.buckets.at(0) };
        first.next.store(BUCKET | LINKED, Relaxed);
        if !table.buckets.grow(size, &mut table.buckets.prepare(size)) {
            return None;
        }
        table.size.store(size, Relaxed);
        // SAFETY: no other thread uses the table.
        unsafe { table.link_range(1, size) };
        table.changing.linked.store(size, Relaxed);
        let place = NonNull::new(source.take(Layout::new::<Self>()).cast())?;
        // SAFETY: memory for it.
        unsafe { place.write(table) };
        Some(place)
    }

    /// Buckets in use.
    pub(super) fn size(&self) -> usize {
        self.size.load(Acquire)
    }

    /// Allocates memory for `buckets` buckets, whether or not they are used.
    pub(super) fn allocate(&self, buckets: usize) -> bool {
        let Some(count) = buckets.checked_next_power_of_two() else {
            return false;
        };
        let count = count.min(self.buckets.max);
        let mut stock = self.buckets.prepare(count);
        let _board = worker::lock();
        // Memory that is being taken away is not given at the same time.
        !self.changing.is_shrinking.load(Relaxed) && self.buckets.grow(count, &mut stock)
    }

    /// Frees what `allocate` allocated from bucket `buckets` on, unless it is used.
    pub(super) fn free_unused(&self, buckets: usize) {
        let mut freed = Stock::new(&self.buckets.source);
        let board = worker::lock();
        let from = buckets.checked_next_power_of_two().unwrap_or(usize::MAX);
        let from = from.max(self.changing.published.load(Relaxed));
        if !self.changing.is_shrinking.load(Relaxed) && from < self.buckets.allocated() {
            // SAFETY: no thread knows of them.
            unsafe { self.buckets.shrink(from, &board, &mut freed) };
        }
    }

    /// Returns a function from buckets to their nodes.
    ///
    /// # Safety
    /// That function is called for buckets that stay allocated as long as `'a`.
    #[inline(always)]
    unsafe fn at<'a>(&self) -> impl Fn(usize) -> &'a Node {
        // SAFETY: by the contract.
        |index| unsafe { self.buckets.at(index) }
    }

    /// The link of the bucket to begin at for a hash.
    ///
    /// # Safety
    /// In a section.
    #[inline(always)]
    pub(super) unsafe fn start_link(&self, hash: usize) -> usize {
        // Acquire: pairs with `grow`; the bucket's memory is seen.
        let index = hash & (self.size.load(Acquire) - 1);
        // SAFETY: below the size, so allocated, and freed only after this section.
        let at = unsafe { self.at() };
        // SAFETY: as this function.
        unsafe { split::start_link(at, index) }
    }

    /// The bucket at which an update of a hash begins. Links it, if it is not linked.
    ///
    /// # Safety
    /// In a section.
    #[inline(always)]
    pub(super) unsafe fn start<'a>(&self, hash: usize) -> &'a Node {
        let index = hash & (self.size.load(Acquire) - 1);
        // SAFETY: as in `start_link`.
        let at = unsafe { self.at() };
        // SAFETY: as this function.
        unsafe { split::start(at, index) }
    }

    /// Links buckets into the list.
    ///
    /// # Safety
    /// In a section. They are allocated, and not freed meanwhile.
    unsafe fn link_range(&self, from: usize, to: usize) {
        for index in from..to {
            // SAFETY: allocated.
            let at = unsafe { self.at() };
            // SAFETY: as this function.
            unsafe { split::start(at, index) };
        }
    }

    /// Called when a node was added, after passing `chain`.
    #[inline(always)]
    pub(super) fn added(&self, chain: Chain) {
        if self.counts {
            self.count.add(1);
            if self.resizes && chain.hashes >= CHAIN_IS_LONG {
                self.look_whether_too_small();
            }
        }
    }

    /// A node was deleted.
    #[inline(always)]
    pub(super) fn deleted(&self, node: *const Node) {
        if self.counts {
            self.count.add(-1);
            // A fraction of the nodes, chosen by their addresses.
            let spread = (node.addr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            if self.shrinks && spread.leading_zeros() >= DELETIONS_A_LOOK {
                self.look_whether_too_big();
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn look_whether_too_small(&self) {
        // Relaxed: a hint. If some of it is lost, the count comes earlier or later.
        let passes = self.changing.passes.load(Relaxed);
        if passes != 0 {
            return self.changing.passes.store(passes - 1, Relaxed);
        }
        let (nodes, size) = (self.nodes(), self.size.load(Relaxed));
        if nodes <= size {
            return self.changing.passes.store((size - nodes) / 32, Relaxed);
        }
        let wanted = nodes.next_power_of_two().min(self.buckets.max);
        if wanted > size && wanted > self.changing.target.load(Relaxed) {
            self.ask_to_grow(wanted);
        }
    }

    #[cold]
    #[inline(never)]
    fn look_whether_too_big(&self) {
        let (nodes, size) = (self.nodes(), self.size.load(Relaxed));
        if nodes >= size / 4 || size <= self.buckets.min {
            return;
        }
        let wanted = nodes.next_power_of_two().max(self.buckets.min);
        let mut board = worker::lock();
        let target = self.changing.target.load(Relaxed);
        // A thread that wants the table larger meanwhile knows better; and this request may be too
        // large by now.
        if wanted < target && target <= size {
            self.changing.target.store(wanted, Relaxed);
            board.ask(self.as_work());
        }
    }

    /// The approximate number of nodes.
    fn nodes(&self) -> usize {
        usize::try_from(self.count.sum()).unwrap_or(0)
    }

    pub(super) fn as_work(&self) -> *const dyn Work {
        std::ptr::from_ref::<Self>(self) as *const dyn Work
    }

    fn ask_to_grow(&self, wanted: usize) {
        let mut board = worker::lock();
        if wanted <= self.changing.target.load(Relaxed) {
            return;
        }
        self.changing.target.store(wanted, Relaxed);
        // An allocator of the caller's is called under no lock, and in no section: the worker grows
        // the table then.
        let is_callers = self.buckets.source.is_callers();
        if !self.changing.is_shrinking.load(Relaxed) && !is_callers {
            self.grow(&board, usize::MAX, &mut Stock::new(&self.buckets.source));
        }
        // The thread that works on the table sees the target before it ends.
        if self.changing.is_shrinking.load(Relaxed)
            || self.changing.linked.load(Relaxed) < self.size.load(Relaxed)
            || is_callers
        {
            board.ask(self.as_work());
        }
    }

    /// Grows to the target, as far as there is memory, and not beyond `most`, for which the stock
    /// was prepared: what is wanted beyond that stays wanted. Links a few new buckets at once.
    ///
    /// The caller is in a section, or the table is the caller's alone. Nothing shrinks.
    fn grow(&self, _board: &Locked, most: usize, stock: &mut Stock<'_>) {
        let (size, target) = (self.size.load(Relaxed), self.changing.target.load(Relaxed));
        let target = target.min(most);
        self.buckets.grow(target, stock);
        let grown = target.min(self.buckets.allocated());
        if grown < target {
            // No memory: the next long chain asks again.
            self.changing.target.store(grown, Relaxed);
        }
        if grown <= size {
            return;
        }
        // Release: a thread that reads this size sees the buckets' memory.
        self.size.store(grown, Release);
        self.changing.published.fetch_max(grown, Relaxed);
        if grown - size <= LINKED_AT_ONCE && self.changing.linked.load(Relaxed) == size {
            // SAFETY: the caller is in a section; nothing shrinks.
            unsafe { self.link_range(size, grown) };
            self.changing.linked.store(grown, Relaxed);
        }
    }

    /// Resizes the table to `size` buckets, and waits for that.
    pub(super) fn resize(&self, size: usize) {
        let size = size.clamp(self.buckets.min, self.buckets.max).next_power_of_two();
        // Once, but in a child of the process in which it began, where the board has forgotten it.
        while !self.resize_once(size) {}
    }

    /// The same, unless the caller's allocator forks meanwhile: then `false` in the child.
    fn resize_once(&self, size: usize) -> bool {
        self.readers.offline();
        let mut board = worker::lock();
        self.changing.target.store(size, Relaxed);
        while board.is_busy(self.as_work()) {
            board = worker::wait(board);
        }
        board.begin(self.as_work());
        drop(board);
        // If this thread panics, as one does that must not wait in a section, the table's thread
        // does the rest.
        let at_work = OnDrop(|| {
            worker::end_use(self.as_work());
            let mut board = worker::lock();
            _ = board.end(self.as_work());
            board.ask(self.as_work());
        });
        self.readers.online();
        let mut board = self.work();
        std::mem::forget(at_work);
        let is_done = board.works_on(self.as_work());
        // By the contract a table is not given up while this borrows it.
        _ = board.end(self.as_work());
        is_done
    }

    /// Shrinks to the target. The board says that it shrinks. A table that is given up meanwhile is
    /// left as it is. Each step may be repeated, in a child whose parent had begun it.
    fn shrink(&self) {
        self.readers.synchronize();
        let board = worker::lock();
        let (size, target) = (self.size.load(Relaxed), self.wanted(&board));
        if target > size && !self.changing.is_unlinking.load(Relaxed) {
            // A thread wants more again, and nothing has been freed yet.
            let grown = target.min(self.buckets.allocated());
            self.size.store(grown, Release);
            // Some of them may have been allocated by hand, and be in use now for the first time.
            self.changing.published.fetch_max(grown, Relaxed);
            self.changing.is_shrinking.store(false, Relaxed);
            return;
        }
        self.changing.is_unlinking.store(true, Relaxed);
        drop(board);
        // SAFETY: allocated, as no other thread frees.
        let at = unsafe { self.at() };
        // SAFETY: in a section, after a grace period of the smaller size.
        let unlink = |index| unsafe { split::unlink(&at, index) };
        let mut end = self.buckets.allocated();
        while end > size {
            let half = (end / 2).max(size);
            if !self.in_sections(half, end, unlink) {
                return;
            }
            end = half;
        }
        self.readers.synchronize();
        let mut freed = Stock::new(&self.buckets.source);
        self.in_use(|| {
            let board = worker::lock();
            // SAFETY: every section that could reach a bucket above `size` has ended, and no thread
            // holds the table.
            unsafe { self.buckets.shrink(size, &board, &mut freed) };
            let linked = self.changing.linked.load(Relaxed).min(size);
            self.changing.linked.store(linked, Relaxed);
            self.changing.published.store(size, Relaxed);
            self.changing.is_unlinking.store(false, Relaxed);
            self.changing.is_shrinking.store(false, Relaxed);
        });
    }

    /// Calls `f` for each bucket of a range, a piece in each section. Returns `false` if the table
    /// is given up meanwhile.
    fn in_sections(&self, from: usize, to: usize, f: impl Fn(usize) + Copy) -> bool {
        let mut at = from;
        while at < to {
            let end = to.min(at + BUCKETS_A_SECTION);
            if !self.in_use(|| self.readers.section(&mut || (at..end).for_each(f))) {
                return false;
            }
            at = end;
        }
        true
    }

    /// Calls `f` while no thread holds the table; or returns `false`, if it has been given up. For
    /// a thread that works on the table.
    fn in_use(&self, f: impl FnOnce()) -> bool {
        if !worker::begin_use(self.as_work()) {
            return false;
        }
        //~ point table-used
        f();
        worker::end_use(self.as_work());
        true
    }

    /// The target size, for a thread that works on the table. No thread changes it while the caller
    /// holds the lock.
    fn wanted(&self, _board: &Board) -> usize {
        self.changing.target.load(Relaxed) //~ lost-resize
    }

    /// The next step of a thread that works on the table.
    fn next_step(&self, board: &mut Board) -> Step {
        if !board.works_on(self.as_work()) {
            return Step::End;
        }
        let (size, target) = (self.size.load(Relaxed), self.wanted(board));
        // In a child, the thread that had begun this may not exist.
        if self.changing.is_shrinking.load(Relaxed) {
            return Step::Shrink;
        }
        if target > size {
            return Step::Grow;
        }
        if target < size {
            // Release: a thread that reads this size knows of fewer buckets than there are.
            self.size.store(target, Release);
            self.changing.is_shrinking.store(true, Relaxed);
            return Step::Shrink;
        }
        if self.changing.linked.load(Relaxed) < size { Step::Link } else { Step::End }
    }

    /// Works until there is nothing to do, which stays so while the board is locked. The table is
    /// on the board, as being worked on by the caller.
    fn work(&self) -> Locked {
        loop {
            let mut board = worker::lock();
            match self.next_step(&mut board) {
                Step::Grow => {
                    drop(board);
                    let target = self.changing.target.load(Relaxed);
                    let mut stock = self.buckets.prepare(target);
                    let mut grow = || self.grow(&worker::lock(), target, &mut stock);
                    self.in_use(|| self.readers.section(&mut grow));
                }
                Step::Shrink => {
                    drop(board);
                    self.shrink();
                }
                Step::Link => {
                    drop(board);
                    let from = self.changing.linked.load(Relaxed);
                    let to = self.size().min(from + BUCKETS_A_SECTION);
                    // SAFETY: in a section; only the thread that works on the table shrinks it.
                    let link = |index| unsafe { self.link_range(index, index + 1) };
                    if self.in_sections(from, to, link) {
                        self.changing.linked.store(to, Relaxed);
                    }
                }
                Step::End => return board,
            }
        }
    }
}

/// The next step of a thread that works on a table.
enum Step {
    Grow,
    Shrink,
    Link,
    End,
}

// SAFETY: any thread may do this work; the readers say how to be one there.
unsafe impl<R: Protection> Work for Table<R> {
    unsafe fn work_here(&self) {
        self.readers.begin();
        drop(self.work());
        self.readers.end();
    }

    fn is_done(&self, board: &mut Board) -> bool {
        matches!(self.next_step(board), Step::End)
    }

    fn source(&self) -> Source {
        self.buckets.source.clone()
    }
}

/// The full fence that the interface promises after a change of the list. Where locked instructions
/// are full fences, the exchange itself is one.
#[inline(always)]
pub(super) fn committed() {
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
}
