//! Slots, the blocks that contain them, and the list of all blocks. A block has slots for hazard
//! pointers, or for borrowed references ([`borrows`](super::borrows)).

use std::alloc::{Layout, alloc_zeroed};
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::os::fence;
use crate::os::sync::{AtomicBool, AtomicPtr, AtomicU32, const_unless_loom};

/// An element of a block: a slot of one thread, whose use another thread may end.
pub(crate) trait Place {
    /// A free one.
    fn free() -> Self;

    /// Whether its owner may use it.
    fn is_free(&self) -> bool;
}

/// The address of an object that a thread is reading; or null.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Slot(pub(crate) AtomicPtr<()>);

impl Slot {
    const_unless_loom! {
        pub(crate) fn new(address: *mut ()) -> Self {
            Self(AtomicPtr::new(address))
        }
    }

    /// Protects what `source` leads to, with light fences; returns its address. Of a free slot, by
    /// its owner. Lock-free: once more for each time that the source changes meanwhile.
    #[inline(always)]
    pub(crate) fn protect<T>(&self, source: &AtomicPtr<T>, cell: &fence::Cell) -> *mut T {
        self.protect_with(source, || fence::light(cell))
    }

    /// As [`protect`](Self::protect), with whatever fence readers have in this process.
    #[inline(always)]
    pub(crate) fn protect_with<T>(&self, source: &AtomicPtr<T>, fence: impl Fn()) -> *mut T {
        // Relaxed: it is compared below.
        let mut seen = source.load(Relaxed);
        loop {
            let (again, is_same) = self.try_protect(source, seen, &fence);
            if is_same {
                return again;
            }
            seen = again;
        }
    }

    /// Protects `expected`, if the source still leads there. Returns where it leads, and whether
    /// that is it; if not, the slot still names what was expected.
    #[inline(always)]
    pub(crate) fn try_protect<T>(
        &self,
        source: &AtomicPtr<T>,
        expected: *mut T,
        fence: impl Fn(),
    ) -> (*mut T, bool) {
        //~ point protecting
        // Release: hands on what the thread that cleared the slot before has read [HP-2].
        self.0.store(expected.cast(), Release); //~ hazard-reuse
        fence(); // [HP-1]
        // Acquire: pairs with the Release of the thread that put it there; the object is whole. And
        // with the fence of a grace period: see the module [HP-1].
        let again = source.load(Acquire);
        //~ hazard-no-recheck
        (again, again == expected)
    }

    /// Ends the protection.
    #[inline(always)]
    pub(crate) fn release(&self) {
        // Release: pairs with the Acquire in `Blocks::scan` and in `is_free` [HP-2]; what was read
        // under the protection was read before the object is freed.
        self.0.store(ptr::null_mut(), Release); //~ hazard-release
    }
}

impl Place for Slot {
    fn free() -> Self {
        Self::new(ptr::null_mut())
    }

    #[inline(always)]
    fn is_free(&self) -> bool {
        // Acquire: pairs with the Release in `release`, perhaps another thread's; what that one has
        // read is handed on with the next address [HP-2].
        self.0.load(Acquire).is_null() //~ hazard-reuse
    }
}

/// Two slots: a thread that has one in use most often has the other one free.
#[derive(Debug)]
#[repr(C, align(16))]
pub(crate) struct Pair<S = Slot>(pub(crate) [S; 2]);

/// Pairs of a thread. Eight hazard slots are a cache line.
const PAIRS: usize = if cfg!(loom) { 1 } else { 4 };

/// The slots of one thread. The first word is that of its first slot: holders are found by it. In a
/// pair of cache lines of its own: the owner writes it all the time.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Block<S = Slot> {
    pub(crate) pairs: [Pair<S>; PAIRS],
    /// For a protection that ends before the call that began it returns.
    pub(crate) transient: S,
    /// Whether a thread has it.
    in_use: AtomicBool,
    /// The next block of the list. Written before the block is in it.
    next: AtomicPtr<Self>,
    pub(crate) fence: fence::Cell,
}

impl<S: Place> Block<S> {
    fn new() -> Self {
        Self {
            pairs: std::array::from_fn(|_| Pair([S::free(), S::free()])),
            transient: S::free(),
            in_use: AtomicBool::new(true),
            next: AtomicPtr::new(ptr::null_mut()),
            fence: fence::Cell::new(),
        }
    }

    /// A new one in a box; none if there is no memory. Zeroed memory, since the allocator of the
    /// libraries for C ends the process where other memory is wanting.
    fn allocate() -> Option<NonNull<Self>> {
        // SAFETY: of more than no bytes.
        let memory = NonNull::new(unsafe { alloc_zeroed(Layout::new::<Self>()) })?.cast::<Self>();
        // SAFETY: of its size and alignment.
        unsafe { memory.write(Self::new()) };
        // A slot is given back by its address: `hazard::raw::release`.
        memory.as_ptr().expose_provenance();
        Some(memory)
    }

    /// The first slot: a holder's.
    #[inline(always)]
    pub(crate) fn first(&self) -> &S {
        &self.pairs[0].0[0]
    }

    /// The slots that a protection may keep.
    #[inline(always)]
    pub(crate) fn slots(&self) -> impl Iterator<Item = &S> {
        self.pairs.iter().flat_map(|pair| &pair.0)
    }

    /// Whether as many of its slots are free as `wants` says: protections may outlive the thread
    /// that began them.
    fn has_free(&self, wants: Wants) -> bool {
        let free = self.slots().filter(|slot| slot.is_free()).count();
        match wants {
            Wants::Half => free >= PAIRS,
            Wants::All => free == 2 * PAIRS && self.transient.is_free(),
        }
    }

    /// The same of a block that was taken just now. Another owner may have come between, and left a
    /// protection [HZ-B]; then it is given back.
    fn is_still_free(&self, wants: Wants) -> bool {
        let is_free = self.has_free(wants); //~ hazard-adopt
        if !is_free {
            // Release: as in `give_back`.
            self.in_use.store(false, Release);
        }
        is_free
    }

    /// Gives the block back. Its protections stay.
    pub(crate) fn give_back(&self, blocks: &Blocks<S>) {
        // Relaxed: a hint. Before the block can be taken, so that the count is never below zero.
        blocks.free.fetch_add(1, Relaxed);
        // Release: pairs with the Acquire in `Blocks::adopt`; the next owner's stores come after
        // the last one's.
        self.in_use.store(false, Release);
    }
}

/// How many slots of a block are to be free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    /// At least half: for a thread, which passes over the others.
    Half,
    /// All of them.
    All,
}

/// All blocks of the process, of one kind of slots. The list only grows; a thread that ends leaves
/// its block to the next one. So there are as many as there were threads at once.
pub(crate) struct Blocks<S = Slot> {
    first: AtomicPtr<Block<S>>,
    /// How many have no owner: where there is none, the list is not gone through.
    free: AtomicU32,
    count: AtomicU32,
}

impl<S> Blocks<S> {
    const_unless_loom! {
        pub(crate) fn new() -> Self {
            Self {
                first: AtomicPtr::new(ptr::null_mut()),
                free: AtomicU32::new(0),
                count: AtomicU32::new(0),
            }
        }
    }
}

impl<S: Place> Blocks<S> {
    /// A block that is the caller's. Lock-free; allocates if there is none to be had. `None` if
    /// there is no memory.
    pub(crate) fn adopt(&self, wants: Wants) -> Option<&Block<S>> {
        // Relaxed: a hint. A thread that misses a block makes another.
        if self.free.load(Relaxed) != 0
            && let Some(found) = self.all().find(|block| {
                // Relaxed, then Acquire: the exchange decides, and pairs with the Release in
                // `give_back`.
                !block.in_use.load(Relaxed)
                    && block.has_free(wants)
                    && !block.in_use.swap(true, Acquire)
                    && block.is_still_free(wants)
            })
        {
            self.free.fetch_sub(1, Relaxed);
            return Some(found);
        }
        let memory = Block::allocate()?.as_ptr();
        // SAFETY: from a box, and it stays as long as the list.
        let block = unsafe { &*memory };
        // AcqRel: pairs with the Acquire in `all`; a thread that finds the block finds it made.
        let _before: Result<_, _> = fetch_update!(self.first, AcqRel, Relaxed, |first| {
            block.next.store(first, Relaxed);
            Some(memory)
        });
        self.count.fetch_add(1, Relaxed); // a count
        Some(block)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Relaxed) // a count
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Block<S>> {
        // Acquire: pairs with the exchange in `adopt`. [HP-1]: a block that is added later belongs
        // to a thread whose protections begin later.
        let mut next = self.first.load(Acquire);
        std::iter::from_fn(move || {
            // SAFETY: null, or a block, which stays as long as the list.
            let block = unsafe { next.as_ref() }?;
            // Relaxed: written before the block came into the list.
            next = block.next.load(Relaxed);
            Some(block)
        })
    }

    /// The slots of all blocks.
    pub(crate) fn every_slot(&self) -> impl Iterator<Item = &S> {
        self.all().flat_map(|block| block.slots().chain([&block.transient]))
    }
}

impl Blocks {
    /// Calls `f` with each address that is protected.
    pub(crate) fn scan(&self, mut f: impl FnMut(*const ())) {
        for slot in self.every_slot() {
            // Acquire: pairs with the Release by which a protection ends [HP-2].
            let address = slot.0.load(Acquire); //~ hazard-release

            //~ hazard-scan:
            if !address.is_null() {
                f(address);
            }
        }
    }
}

impl<S> Drop for Blocks<S> {
    fn drop(&mut self) {
        let mut next = self.first.load(Relaxed);
        while !next.is_null() {
            // SAFETY: from a box; no thread has the list any more.
            let block = unsafe { Box::from_raw(next) };
            next = block.next.load(Relaxed);
        }
    }
}
