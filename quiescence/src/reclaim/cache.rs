//! A per-thread cache of free blocks: a thread keeps blocks of memory from objects that it has
//! freed, for objects that it makes next.
//!
//! Replacing a value makes one and frees one of the same type: with blocks at hand neither calls
//! the allocator, and the memory is likely to be in this CPU's cache still. What a thread has
//! retired comes back a batch later, so it keeps about as many small blocks as a batch has. It
//! keeps a block of a size only after it has asked for one of that size in vain, so a thread that
//! only frees keeps none. In the worst case, if it has asked for as many blocks of every size, it
//! keeps 2 MiB until it ends: 64 sizes, of [`KEEP`] bytes each. They are free memory, and in no
//! domain's `bytes_waiting`.
//!
//! Blocks come from the global allocator and are used with the layout that they were allocated
//! with: multiples of eight bytes, aligned to eight, up to [`SIZE_MAX`]. All other layouts go
//! straight to the allocator.
//!
//! Source of the idea: the slab allocator's per-CPU object caches (Bonwick, USENIX 1994 and 2001).

use std::alloc::{self, Layout};
use std::cell::Cell;
use std::ptr::{self, NonNull};

use crate::os::on_drop::OnDrop;
use crate::os::thread;
use crate::reclaim::debug_objects;

/// The largest block that is kept.
const SIZE_MAX: usize = 512;

/// Bytes of the blocks of one size that a thread keeps at most: of small ones as many as wait in a
/// batch, so that the next batch is made of what the last one gave back.
const KEEP: usize = 64 * SIZE_MAX;

const SIZES: usize = SIZE_MAX / 8 + 1;

/// A free block; its first word points to the next.
#[derive(Debug)]
struct Block {
    next: *mut Block,
}

/// The free blocks of one size.
#[derive(Debug)]
struct Shelf {
    first: Cell<*mut Block>,
    /// How many more may be kept.
    room: Cell<u16>,
    /// How many were asked for while none was kept, up to [`KEEP`] bytes of them.
    missed: Cell<u16>,
}

thread_local! {
    /// Indexed by size in words. No destructor, so that a thread can use it until it has ended.
    static SHELVES: [Shelf; SIZES] = const {
        [const { Shelf { first: Cell::new(ptr::null_mut()), room: Cell::new(0), missed: Cell::new(0) } };
            SIZES]
    };
}

/// Whether blocks of this layout are kept.
pub(crate) const fn is_kept(layout: Layout) -> bool {
    layout.align() == 8 && layout.size() <= SIZE_MAX && layout.size() != 0
}

/// A box, in a kept block if there is one.
#[inline]
pub(crate) fn boxed<T>(value: T) -> Box<T> {
    if const { is_kept(Layout::new::<T>()) } {
        let block = take(size_of::<T>());
        if !block.is_null() {
            let place = block.cast::<T>();
            // SAFETY: a free block with the layout of T.
            unsafe { place.write(value) };
            // SAFETY: allocated by the global allocator with the layout of T, and not in use.
            return unsafe { Box::from_raw(place) };
        }
    }
    Box::new(value)
}

/// Uninitialised memory of this layout, a kept block if there is one; `None` if the allocator has
/// no memory.
#[inline]
pub(crate) fn allocate(layout: Layout) -> Option<NonNull<u8>> {
    debug_assert!(layout.size() != 0);
    let block = if is_kept(layout) { take(layout.size()) } else { ptr::null_mut() };
    // SAFETY: its size is not 0.
    NonNull::new(block.cast::<u8>()).or_else(|| NonNull::new(unsafe { alloc::alloc(layout) }))
}

/// Drops an object that came from a box, and keeps its memory or returns it to the allocator, even
/// if the drop panics.
///
/// # Safety
/// `object` came from a box, and is not used any more.
#[inline]
pub(crate) unsafe fn free<T>(object: *mut T) {
    // SAFETY: the object has been dropped, and nothing else has its memory.
    let _memory = OnDrop(|| unsafe { release(&[object.cast()], Layout::new::<T>()) });
    // SAFETY: by this function's contract.
    unsafe { ptr::drop_in_place(object) };
}

#[inline]
fn take(size: usize) -> *mut Block {
    SHELVES.with(|shelves| {
        let shelf = &shelves[size / 8];
        let block = shelf.first.get();
        // SAFETY: a free block that this thread keeps.
        match unsafe { block.as_ref() } {
            Some(free) => {
                shelf.first.set(free.next);
                shelf.room.set(shelf.room.get() + 1);
            }
            // `notice` arranges for `clear` at the thread's end: a thread may make objects, and
            // free those of others, without ever reading or retiring.
            None if usize::from(shelf.missed.get()) < KEEP / size && thread::notice_end() => {
                shelf.missed.set(shelf.missed.get() + 1);
                shelf.room.set(shelf.room.get() + 1);
            }
            None => {}
        }
        block
    })
}

/// Keeps the memory of objects, or returns it to the allocator.
///
/// # Safety
/// All of it was allocated by the global allocator with this layout, and is not used any more.
#[inline(always)]
pub(crate) unsafe fn release(all: &[*mut u8], layout: Layout) {
    if layout.size() == 0 {
        return; // a box of a zero-sized type has no memory
    }
    // SAFETY: by the contract.
    all.iter().for_each(|memory| unsafe { debug_objects::poison(*memory, layout.size()) });
    let keep = |shelves: &[Shelf; SIZES]| {
        let shelf = &shelves[layout.size() / 8];
        let (kept, others) = all.split_at(all.len().min(shelf.room.get().into()));
        shelf.room.set(shelf.room.get() - kept.len() as u16);
        shelf.first.set(kept.iter().fold(shelf.first.get(), |next, memory| {
            let block = memory.cast::<Block>();
            // SAFETY: by the contract not in use; large and aligned enough.
            unsafe { block.write(Block { next }) };
            block
        }));
        others
    };
    let others = if is_kept(layout) { SHELVES.with(keep) } else { all };
    // SAFETY: by the contract.
    others.iter().for_each(|memory| unsafe { alloc::dealloc(*memory, layout) });
}

/// Returns all blocks, at the end of the thread. What it frees afterwards goes to the allocator.
pub(crate) fn clear() {
    SHELVES.with(|shelves| {
        for (words, shelf) in shelves.iter().enumerate() {
            let layout = Layout::from_size_align(words * 8, 8).expect("small");
            shelf.room.set(0);
            // Count no more misses: nothing would return a block that is kept from now on.
            shelf.missed.set(u16::MAX);
            let mut block = shelf.first.replace(ptr::null_mut());
            while !block.is_null() {
                let memory = block.cast::<u8>();
                // SAFETY: a free block that this thread keeps.
                block = unsafe { (*block).next };
                // SAFETY: allocated with this layout; see `is_kept`.
                unsafe { alloc::dealloc(memory, layout) };
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_comes_back_once_one_was_missed_and_none_is_kept_before() {
        struct Odd([u64; 9]);
        let first = Box::into_raw(Box::new(Odd([1; 9])));
        // SAFETY: from a box.
        unsafe { free(first) };
        let shelf_is_empty =
            SHELVES.with(|shelves| shelves[size_of::<Odd>() / 8].first.get().is_null());
        assert!(shelf_is_empty, "nobody has asked for this size");
        let second = Box::into_raw(boxed(Odd([2; 9])));
        // SAFETY: from a box.
        unsafe { free(second) };
        let third = boxed(Odd([3; 9]));
        assert_eq!(ptr::from_ref(&*third), second.cast_const(), "the block of the second");
        assert_eq!(third.0, [3; 9]);
        drop(third);
        clear();
    }

    /// A past limit was 64 blocks of any size, fewer than a batch has.
    #[test]
    fn as_many_blocks_as_a_batch_has_come_back() {
        type Small = [u64; 7];
        const BATCH: usize = 512;
        let made = |_| Box::into_raw(boxed(Small::default()));
        let first: Vec<_> = (0..BATCH).map(made).collect();
        // SAFETY: from boxes.
        first.iter().for_each(|&object| unsafe { free(object) });
        let again: Vec<_> = (0..BATCH).map(made).collect();
        assert!(again.iter().eq(first.iter().rev()), "the last one that was freed first");
        // SAFETY: as above.
        again.iter().for_each(|&object| unsafe { free(object) });
        clear();
    }

    #[test]
    fn a_panicking_drop_gives_its_memory_back() {
        struct Bad([u64; 11]);
        impl Drop for Bad {
            fn drop(&mut self) {
                assert!(self.0[0] != 1, "on purpose");
            }
        }
        drop(boxed(Bad([0; 11]))); // a miss, so one block may be kept
        let bad = Box::into_raw(boxed(Bad([1; 11])));
        // SAFETY: from a box.
        let result = std::panic::catch_unwind(|| unsafe { free(bad) });
        assert!(result.is_err());
        let again = boxed(Bad([2; 11]));
        assert_eq!(ptr::from_ref(&*again), bad.cast_const());
        drop(again);
        clear();
    }
}
