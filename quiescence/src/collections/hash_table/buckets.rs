//! Where the buckets' nodes are: memory that grows by doubling, and never moves.
//!
//! Bucket 0 and 1 come with the table, and as many more as its options say; then each doubling adds
//! its own piece. What was freed and is allocated again is all zero, which is what a bucket is that
//! no thread has linked.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicUsize};

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
    chunks: Box<[AtomicPtr<Node>]>,
    /// Order: by the logarithm of a bucket's number, where bucket 0 would be if its piece began
    /// there.
    pieces: [AtomicPtr<Node>; usize::BITS as usize],
    reserved: Option<Reserved>,
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
    pub(super) fn new(memory: Memory, min: usize, max: usize) -> Option<Self> {
        let max = max.max(2);
        let min = min.clamp(2, max);
        let mut buckets = Self {
            flat: ptr::null_mut(),
            chunk_shift: 0,
            pieces: [const { AtomicPtr::new(ptr::null_mut()) }; usize::BITS as usize],
            chunks: Box::default(),
            reserved: None,
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
                let chunks = (0..max / min).map(|_| AtomicPtr::new(ptr::null_mut()));
                buckets.chunks = chunks.collect();
            }
            Memory::Chunk if max >> 32 == 0 => {
                buckets.min = max / CHUNKS_MAX;
                buckets.chunk_shift = buckets.min.ilog2();
                let chunks = (0..CHUNKS_MAX).map(|_| AtomicPtr::new(ptr::null_mut()));
                buckets.chunks = chunks.collect();
            }
            Memory::Chunk | Memory::Order => {}
        }
        buckets.grow(buckets.min).then_some(buckets)
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
            let chunk = self.chunks[index >> self.chunk_shift].load(Relaxed);
            chunk.wrapping_add(index & ((1 << self.chunk_shift) - 1))
        };
        // SAFETY: by the contract; zeroes are a node.
        unsafe { &*node }
    }

    /// How many are allocated.
    pub(super) fn allocated(&self) -> usize {
        self.allocated.load(Relaxed)
    }

    /// Allocates up to `count` buckets, a power of two; `false` if there is no memory for them all.
    /// One at a time.
    pub(super) fn grow(&self, count: usize) -> bool {
        while self.allocated() < count {
            let from = self.allocated();
            let to = if from == 0 { self.min } else { from * 2 };
            if !self.allocate(from, to) {
                return false;
            }
            self.allocated.store(to, Relaxed);
        }
        true
    }

    fn allocate(&self, from: usize, to: usize) -> bool {
        if let Some(reserved) = &self.reserved {
            return reserved.commit(from * size_of::<Node>(), to * size_of::<Node>());
        }
        if self.chunk_shift != 0 {
            let size = 1 << self.chunk_shift;
            let wanted = &self.chunks[from / size..to / size];
            return wanted.iter().all(|chunk| {
                if chunk.load(Relaxed).is_null() {
                    chunk.store(take(size), Relaxed);
                }
                !chunk.load(Relaxed).is_null()
            });
        }
        let piece = take(to - from);
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
    pub(super) unsafe fn shrink(&self, count: usize, _board: &Locked) {
        while self.allocated() > count.max(self.min) {
            let half = self.allocated() / 2;
            self.free(half, self.allocated());
            self.allocated.store(half, Relaxed);
        }
        for index in count..self.allocated() {
            // SAFETY: allocated.
            let node: &Node = unsafe { self.at(index) };
            node.next.store(0, Relaxed);
        }
    }

    fn free(&self, from: usize, to: usize) {
        if let Some(reserved) = &self.reserved {
            reserved.forget(from * size_of::<Node>(), to * size_of::<Node>());
        } else if self.chunk_shift != 0 {
            let size = 1 << self.chunk_shift;
            for chunk in &self.chunks[from / size..to / size] {
                give_back(chunk.swap(ptr::null_mut(), Relaxed), size);
            }
        } else {
            let place = &self.pieces[(to / 2).ilog2() as usize];
            give_back(place.swap(ptr::null_mut(), Relaxed).wrapping_add(from), to - from);
        }
    }
}

impl Drop for Buckets {
    fn drop(&mut self) {
        while self.allocated() > self.min {
            let half = self.allocated() / 2;
            self.free(half, self.allocated());
            self.allocated.store(half, Relaxed);
        }
        if self.reserved.is_none() && self.chunk_shift == 0 {
            give_back(self.pieces[0].load(Relaxed), self.allocated());
        } else if self.reserved.is_none() {
            for chunk in &self.chunks {
                give_back(chunk.load(Relaxed), 1 << self.chunk_shift);
            }
        }
    }
}

fn layout(count: usize) -> Option<Layout> {
    let layout = Layout::array::<Node>(count).ok()?;
    layout.align_to(16).ok().filter(|layout| layout.size() != 0)
}

/// So many nodes, all zero; null if there is no memory.
fn take(count: usize) -> *mut Node {
    // SAFETY: not of no bytes.
    layout(count).map_or(ptr::null_mut(), |layout| unsafe { alloc_zeroed(layout) }).cast()
}

fn give_back(nodes: *mut Node, count: usize) {
    let Some(layout) = layout(count).filter(|_| !nodes.is_null()) else {
        return;
    };
    // SAFETY: from `take`, of so many.
    unsafe { dealloc(nodes.cast(), layout) };
}
