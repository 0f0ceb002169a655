//! The slots of hazard pointers.

use std::ptr;

use super::*;
use crate::hazptr::slots::{Block, Blocks, Place, Wants};
use crate::os::sync::AtomicPtr;

/// A place, and two objects that may be in it, by their addresses.
struct Places {
    blocks: Blocks,
    source: AtomicPtr<()>,
    objects: [UnsafeCell<u32>; 2],
}

/// The address that stands for an object: not null.
fn address(object: usize) -> *mut () {
    ptr::without_provenance_mut(8 * (object + 1))
}

impl Places {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            blocks: Blocks::new(),
            source: AtomicPtr::new(address(0)),
            objects: [const { () }; 2].map(|()| UnsafeCell::new(0)),
        })
    }

    /// Protects what is there in the block's first slot, and reads it.
    fn protect(&self, block: &Block) {
        let slot = block.first();
        assert!(slot.is_free());
        let object = slot.protect(&self.source, &block.fence).addr() / 8 - 1;
        // SAFETY: a read; that the object is not freed is what is tested.
        self.objects[object].with(|cell| assert_eq!(unsafe { *cell }, 0));
    }

    /// Replaces the first object by the second, and frees it once no slot names it.
    fn replace(&self) {
        assert_eq!(self.source.swap(address(1), AcqRel), address(0));
        fence::heavy(self.blocks.all().map(|block| &block.fence));
        loop {
            let mut is_protected = false;
            self.blocks.scan(|found| is_protected |= ptr::eq(found, address(0)));
            if !is_protected {
                break;
            }
            thread::yield_now();
        }
        // SAFETY: a write; that no thread reads it is what is tested.
        self.objects[0].with_mut(|cell| unsafe { *cell = 1 });
    }
}

/// A reader that protects and reads twice, beside an updater that replaces what it reads.
#[test]
fn what_is_protected_is_not_freed() {
    model_of(3, Places::new, |places| {
        // Registered before: a thread that comes later sees the new object, as by [HP-1].
        let block = ptr::from_ref(places.blocks.adopt(Wants::Half).unwrap()).expose_provenance();
        let reads = move |places: &Places| {
            // SAFETY: a block of `places`, which this thread keeps.
            let block = unsafe { &*ptr::with_exposed_provenance::<Block>(block) };
            for _ in 0..2 {
                places.protect(block);
                block.first().release();
            }
        };
        beside(places, reads, Places::replace);
    });
}

/// A protection that another thread ends, after it has read; the owner takes the slot again.
#[test]
fn a_slot_is_handed_on_with_what_was_read() {
    model_of(3, Places::new, |places| {
        let block = places.blocks.adopt(Wants::Half).unwrap();
        places.protect(block);
        let at = ptr::from_ref(block).expose_provenance();
        let ends = move |places: &Places| {
            // SAFETY: a read; that the object is not freed is what is tested.
            places.objects[0].with(|cell| assert_eq!(unsafe { *cell }, 0));
            // SAFETY: a block of `places`, which this thread keeps.
            unsafe { &*ptr::with_exposed_provenance::<Block>(at) }.first().release();
        };
        beside_two(places, ends, Places::replace, |places| {
            if block.first().is_free() {
                places.protect(block);
                block.first().release();
            }
        });
    });
}

/// A block that a thread has left is the next one's, with what is protected there.
#[test]
fn a_block_changes_hands_with_its_protections() {
    model_of(3, Places::new, |places| {
        let first = spawn(places, |places| {
            let block = places.blocks.adopt(Wants::Half).unwrap();
            places.protect(block);
            block.give_back(&places.blocks);
            ptr::from_ref(block).expose_provenance()
        });
        let second = places.blocks.adopt(Wants::Half).unwrap();
        let free = second.slots().find(|slot| slot.is_free()).unwrap();
        let seen = free.protect(&places.source, &second.fence);
        assert_eq!(seen, address(0));
        free.release();
        let first = first.join().unwrap();
        // SAFETY: a block of `places`.
        let first = unsafe { &*ptr::with_exposed_provenance::<Block>(first) };
        let mut protected = 0;
        places.blocks.scan(|_| protected += 1);
        assert_eq!(protected, 1, "the protection of the thread that has left");
        first.first().release();
        places.blocks.scan(|_| panic!("nothing is protected"));
    });
}

/// A block is taken whole by a holder while a thread has it for a moment, and leaves a protection.
#[test]
fn a_holder_has_a_slot_that_protects_nothing() {
    model_of(3, Places::new, |places| {
        places.blocks.adopt(Wants::Half).unwrap().give_back(&places.blocks);
        let leaves = |places: &Places| {
            let block = places.blocks.adopt(Wants::Half).unwrap();
            if block.first().is_free() {
                places.protect(block); // by a guard that outlives the thread
            }
            block.give_back(&places.blocks);
        };
        beside(places, leaves, |places| {
            let block = places.blocks.adopt(Wants::All).unwrap();
            assert!(block.first().is_free(), "it protects something");
        });
    });
}
