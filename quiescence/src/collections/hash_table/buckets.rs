//! Where the bucket nodes are: memory that grows by doubling, and never moves.
//!
//! A table begins with buckets 0 and 1, and as many more as its options say. Then each doubling
//! adds a piece of its own. A piece that was freed and is allocated again is zeroed: a zero bucket
//! is one that no thread has linked.

use std::alloc::Layout;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicUsize};

use super::allocator::{Source, Stock};
use super::node::Node;
use super::worker::Locked;
use crate::os::reserved::Reserved;

/// How a table's buckets are kept in memory: liburcu's `cds_lfht_mm_order`, `_chunk`, `_mmap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// A piece for each doubling, from the allocator. The default where the number of buckets has
    /// no limit.
    Order,
    /// Pieces of one size, from the allocator: no big ones. With a limit only; else as `Order`.
    Chunk,
    /// Addresses for all that there may be, reserved from the system; memory comes and goes with
    /// the buckets. The default where there is a limit.
    Mmap,
}

/// Pieces of a table of chunks, at most.
const CHUNKS_MAX: usize = 1 << 16;

/// The nodes of all buckets. What a lookup reads comes first.
#[repr(C)]
pub(super) struct Buckets {
    /// Mmap: of bucket 0. Else null.
    flat: *mut Node,
    /// Chunk: the logarithm of buckets in one; else 0.
    chunk_shift: u32,
    /// Chunk: the chunks, `chunk_count` of them, from the source. Else null.
    chunks: *mut AtomicPtr<Node>,
    chunk_count: usize,
    /// Order: by the logarithm of a bucket's number, where bucket 0 would be if its piece began
    /// there.
    pieces: [AtomicPtr<Node>; usize::BITS as usize],
    reserved: Option<Reserved>,
    pub(super) source: Source,
    /// Buckets that stay allocated as long as the table; a power of two.
    pub(super) min: usize,
    /// Buckets that there may be; a power of two.
    pub(super) max: usize,
    /// Buckets that are allocated, by the thread that resizes.
    allocated: AtomicUsize,
}

// SAFETY: the pointers are to memory that this value owns, used as atomics.
unsafe impl Send for Buckets {}
// SAFETY: as above.
unsafe impl Sync for Buckets {}

impl Buckets {
    /// With `min` of at most `max` buckets allocated, both powers of two. `None` if there is no
    /// memory.
    pub(super) fn new(memory: Memory, min: usize, max: usize, source: Source) -> Option<Self> {
        let max = max.max(2);
        let min = min.clamp(2, max);
        let mut buckets = Self {
            flat: ptr::null_mut(),
            chunk_shift: 0,
            pieces: [const { AtomicPtr::new(ptr::null_mut()) }; usize::BITS as usize],
            chunks: ptr::null_mut(),
            chunk_count: 0,
            reserved: None,
            source,
            min,
            max,
            allocated: AtomicUsize::new(0),
        };
        match memory {
            Memory::Mmap => {
                let reserved = Reserved::new(max.checked_mul(size_of::<Node>())?)?;
                buckets.flat = reserved.start().cast();
                buckets.reserved = Some(reserved);
            }
            Memory::Chunk if max <= CHUNKS_MAX.saturating_mul(min) => {
                buckets.chunk_shift = min.ilog2();
                buckets.take_chunks(max / min)?;
            }
            Memory::Chunk if max >> 32 == 0 => {
                buckets.min = max / CHUNKS_MAX;
                buckets.chunk_shift = buckets.min.ilog2();
                buckets.take_chunks(CHUNKS_MAX)?;
            }
            Memory::Chunk | Memory::Order => {}
        }
        let is_there = buckets.grow(buckets.min, &mut buckets.prepare(buckets.min));
        is_there.then_some(buckets)
    }

    /// Takes memory for `count` pointers to chunks, all null. `None` if there is none.
    fn take_chunks(&mut self, count: usize) -> Option<()> {
        self.chunks = self.source.take(Layout::array::<AtomicPtr<Node>>(count).ok()?).cast();
        self.chunk_count = if self.chunks.is_null() { 0 } else { count };
        (!self.chunks.is_null()).then_some(())
    }

    /// The pointers to chunks.
    #[inline(always)]
    fn chunks(&self) -> &[AtomicPtr<Node>] {
        if self.chunks.is_null() {
            return &[];
        }
        // SAFETY: there are `chunk_count` pointers, initialised, until `self` is dropped.
        unsafe { std::slice::from_raw_parts(self.chunks, self.chunk_count) }
    }

    /// The node of an allocated bucket.
    ///
    /// # Safety
    /// It is allocated, and not freed as long as `'a`.
    #[inline(always)]
    pub(super) unsafe fn at<'a>(&self, index: usize) -> &'a Node {
        let node = if !self.flat.is_null() {
            self.flat.wrapping_add(index)
        } else if self.chunk_shift == 0 {
            // Relaxed: the thread that knows of the bucket has seen what was written before it was
            // published, with the size.
            let piece = &self.pieces[(index | 1).ilog2() as usize];
            piece.load(Relaxed).wrapping_add(index)
        } else {
            let chunk = self.chunks()[index >> self.chunk_shift].load(Relaxed);
            chunk.wrapping_add(index & ((1 << self.chunk_shift) - 1))
        };
        // SAFETY: by the contract; zeroes are a node.
        unsafe { &*node }
    }

    /// How many are allocated.
    pub(super) fn allocated(&self) -> usize {
        self.allocated.load(Relaxed)
    }

    /// How many are allocated after `from`.
    fn after(&self, from: usize) -> usize {
        if from == 0 { self.min } else { from * 2 }
    }

    /// What [`grow`](Self::grow) to `count` buckets needs of an allocator that is the caller's: so
    /// that it need not be called there. As much as there is.
    pub(super) fn prepare(&self, count: usize) -> Stock<'_> {
        let mut stock = Stock::new(&self.source);
        let mut from = self.allocated();
        while from < count && self.source.is_callers() && self.reserved.is_none() {
            let new = self.after(from) - from;
            let piece = if self.chunk_shift == 0 { new } else { 1 << self.chunk_shift };
            if !(0..new / piece).all(|_| stock.add(piece)) {
                break;
            }
            from = self.after(from);
        }
        stock
    }

    /// Allocates up to `count` buckets, a power of two; `false` if there is no memory for them all.
    /// One at a time.
    pub(super) fn grow(&self, count: usize, stock: &mut Stock<'_>) -> bool {
        while self.allocated() < count {
            let from = self.allocated();
            let to = self.after(from);
            if !self.allocate(from, to, stock) {
                return false;
            }
            self.allocated.store(to, Relaxed);
        }
        true
    }

    fn allocate(&self, from: usize, to: usize, stock: &mut Stock<'_>) -> bool {
        if let Some(reserved) = &self.reserved {
            return reserved.commit(from * size_of::<Node>(), to * size_of::<Node>());
        }
        if self.chunk_shift != 0 {
            let size = 1 << self.chunk_shift;
            let wanted = &self.chunks()[from / size..to / size];
            return wanted.iter().all(|chunk| {
                if chunk.load(Relaxed).is_null() {
                    chunk.store(stock.take(size), Relaxed);
                }
                !chunk.load(Relaxed).is_null()
            });
        }
        let piece = stock.take(to - from);
        if piece.is_null() {
            return false;
        }
        let place = piece.wrapping_sub(from);
        for order in (from | 1).ilog2()..to.ilog2() {
            self.pieces[order as usize].store(place, Relaxed);
        }
        true
    }

    /// Frees all from bucket `count` on, a power of two, but for the least number, of which those
    /// are zeroed. The board is locked so that no `fork` comes between: a child would free again
    /// what is free.
    ///
    /// # Safety
    /// No thread uses them.
    pub(super) unsafe fn shrink(&self, count: usize, _board: &Locked, freed: &mut Stock<'_>) {
        self.free_down_to(count.max(self.min), freed);
        for index in count..self.allocated() {
            // SAFETY: allocated.
            let node: &Node = unsafe { self.at(index) };
            node.next.store(0, Relaxed);
        }
    }

    fn free_down_to(&self, count: usize, freed: &mut Stock<'_>) {
        while self.allocated() > count {
            let half = self.allocated() / 2;
            self.free(half, self.allocated(), freed);
            self.allocated.store(half, Relaxed);
        }
    }

    fn free(&self, from: usize, to: usize, freed: &mut Stock<'_>) {
        if let Some(reserved) = &self.reserved {
            reserved.forget(from * size_of::<Node>(), to * size_of::<Node>());
        } else if self.chunk_shift != 0 {
            let size = 1 << self.chunk_shift;
            for chunk in &self.chunks()[from / size..to / size] {
                // SAFETY: of a stock; no thread uses what is freed.
                unsafe { freed.give_back(chunk.swap(ptr::null_mut(), Relaxed), size) };
            }
        } else {
            let place = &self.pieces[(to / 2).ilog2() as usize];
            let piece = place.swap(ptr::null_mut(), Relaxed).wrapping_add(from);
            // SAFETY: as above.
            unsafe { freed.give_back(piece, to - from) };
        }
    }
}

impl Drop for Buckets {
    fn drop(&mut self) {
        let source = self.source.clone();
        let mut freed = Stock::new(&source);
        self.free_down_to(self.min, &mut freed);
        if self.reserved.is_none() && self.chunk_shift == 0 {
            // SAFETY: of a stock, or null; no thread uses it any more.
            unsafe { freed.give_back(self.pieces[0].load(Relaxed), self.allocated()) };
        } else if self.reserved.is_none() {
            for chunk in self.chunks() {
                // SAFETY: as above.
                unsafe { freed.give_back(chunk.load(Relaxed), 1 << self.chunk_shift) };
            }
        }
        if let Ok(layout) = Layout::array::<AtomicPtr<Node>>(self.chunk_count)
            && !self.chunks.is_null()
        {
            // SAFETY: from `take_chunks`.
            unsafe { self.source.give_back(self.chunks.cast(), layout) };
        }
    }
}
