//! Borrowed references.

use std::ptr;

use super::*;
use crate::hazptr::bias::{BIASED, Bias, CHANGING, FAIR};
use crate::hazptr::borrows::{Borrow, Borrowed};
use crate::hazptr::slots::{Block, Blocks, Place, Wants};
use crate::os::sync::AtomicPtr;

/// An object with a count, at an address where another one may be after it.
struct Object {
    count: AtomicUsize,
    /// How many objects have been here.
    value: UnsafeCell<u32>,
}

/// Two cells, and two addresses of objects.
struct Places {
    blocks: Blocks<Borrow>,
    bias: Bias,
    cells: [AtomicPtr<()>; 2],
    objects: [Object; 2],
}

/// The address that stands for an object: not null, and with room for a tag.
fn address(object: usize) -> *mut () {
    ptr::without_provenance_mut(8 * (object + 1))
}

/// The object that has this address.
fn object(address: *mut ()) -> usize {
    address.addr() / 8 - 1
}

impl Places {
    /// The first object is in the first cell; there is nothing in the other one.
    fn new(phase: u64) -> Arc<Self> {
        let bias = Bias::new();
        bias.go_to(phase);
        Arc::new(Self {
            blocks: Blocks::new(),
            bias,
            cells: [address(0), ptr::null_mut()].map(AtomicPtr::new),
            objects: [(); 2]
                .map(|()| Object { count: AtomicUsize::new(1), value: UnsafeCell::new(0) }),
        })
    }

    /// Reads an object, which is the first one at its address.
    fn read(&self, at: *mut ()) {
        // SAFETY: a read; that the object is not freed is what is tested.
        self.objects[object(at)].value.with(|value| assert_eq!(unsafe { *value }, 0));
    }

    /// Gives up a reference to an object; frees it, and says so, if that was the last one.
    fn give_up(&self, at: *mut ()) -> bool {
        let Object { count, value } = &self.objects[object(at)];
        let before = count.fetch_sub(1, AcqRel);
        assert_ne!(before, 0, "a reference too many is given up");
        if before == 1 {
            // SAFETY: a write; that no thread reads it is what is tested.
            value.with_mut(|value| unsafe { *value += 1 });
        }
        before == 1
    }

    /// Borrows what is in the first cell in the block's first slot, and reads it.
    fn borrow<'b>(&self, block: &'b Block<Borrow>) -> Borrowed<'b, ()> {
        assert!(block.first().is_free());
        let fence = |uses| {
            fence::light(&block.fence);
            self.bias.reader(uses, || 0);
        };
        let borrowed = block.first().borrow(&self.cells[0], 0, fence);
        match borrowed {
            Borrowed::Null => {}
            Borrowed::Confirmed(at, _) | Borrowed::Paid(at) => self.read(at),
        }
        borrowed
    }

    /// Ends what has been borrowed.
    fn give_back(&self, borrowed: &Borrowed<'_, ()>) {
        match *borrowed {
            Borrowed::Null => {}
            Borrowed::Confirmed(_, slot) if slot.give_back() => {}
            Borrowed::Confirmed(at, _) | Borrowed::Paid(at) => {
                self.give_up(at);
            }
        }
    }

    fn borrow_and_give_back(&self, number: usize) {
        let borrowed = self.borrow(block(number));
        self.give_back(&borrowed);
    }

    /// Replaces what is in a cell, and gives up the reference that the cell had. Whether the object
    /// is freed by now.
    fn replace(&self, cell: usize, new: *mut ()) -> bool {
        let old = self.cells[cell].swap(new, AcqRel);
        let heavy = || fence::heavy(self.blocks.all().map(|block| &block.fence));
        self.bias.updater(heavy, || 0);
        if old.is_null() {
            return false;
        }
        let add = || {
            self.objects[object(old)].count.fetch_add(1, Relaxed);
        };
        let is_left_over = self.blocks.pay_all(&self.cells[cell], old, 0, add);
        is_left_over && self.give_up(old) || self.give_up(old)
    }

    /// A block that is the caller's, as a number for a thread that is to have it.
    fn block(&self) -> usize {
        ptr::from_ref(self.blocks.adopt(Wants::Half).unwrap()).expose_provenance()
    }
}

/// The block of this number.
fn block<'b>(number: usize) -> &'b Block<Borrow> {
    // SAFETY: of a block of places that the caller keeps.
    unsafe { &*ptr::with_exposed_provenance(number) }
}

/// Runs the model with a reader that borrows `times` from the first cell and gives back, while
/// `others` use the cells: they leave one reference to the second object, or none.
fn with_reader(phase: u64, times: usize, others: impl Fn(&Arc<Places>) + Send + Sync + 'static) {
    bounded(3, move || {
        let places = &Places::new(phase);
        let number = places.block();
        let reader = spawn(places, move |places| {
            (0..times).for_each(|_| places.borrow_and_give_back(number));
        });
        others(places);
        reader.join().unwrap();
        assert_eq!(places.objects[0].count.load(Relaxed), 0);
        let holds = !places.cells[0].load(Relaxed).is_null();
        assert_eq!(places.objects[1].count.load(Relaxed), usize::from(holds));
    });
}

/// A reader that borrows twice, beside an updater that replaces what it borrows: no reference is
/// given up twice, and none too few.
#[test]
fn what_is_borrowed_is_paid_or_given_back() {
    with_reader(BIASED, 2, |places| {
        places.replace(0, address(1));
    });
}

/// The same where both execute full fences.
#[test]
fn a_fair_phase_needs_no_heavy_fence() {
    with_reader(FAIR, 2, |places| {
        places.replace(0, address(1));
    });
}

/// A third thread lets readers execute light fences again, while an updater executes none.
#[test]
fn a_fair_phase_becomes_a_biased_one() {
    with_reader(FAIR, 1, |places| {
        beside(places, |places| places.bias.go_to(BIASED), |places| places.replace(0, address(1)));
    });
}

/// One updater makes the phase fair, and another one relies on that.
#[test]
fn a_biased_phase_becomes_a_fair_one() {
    with_reader(BIASED, 1, |places| {
        let changes = |places: &Places| {
            places.bias.go_to(CHANGING);
            places.replace(1, ptr::null_mut());
        };
        beside(places, changes, |places| places.replace(0, address(1)));
    });
}

/// A borrow that another thread gives back, after it has read; the owner takes the slot again.
#[test]
fn a_slot_is_handed_on_with_what_was_read() {
    bounded(3, || {
        let places = &Places::new(BIASED);
        let number = places.block();
        let Borrowed::Confirmed(at, _) = places.borrow(block(number)) else {
            panic!("no other thread is there")
        };
        let at = at.addr();
        let gives_back = move |places: &Places| {
            let at = ptr::without_provenance_mut(at);
            places.read(at);
            places.give_back(&Borrowed::Confirmed(at, block(number).first()));
        };
        let replaces = |places: &Places| places.replace(0, address(1));
        beside_two(places, gives_back, replaces, |places| {
            if block(number).first().is_free() {
                places.borrow_and_give_back(number);
            }
        });
        assert_eq!(places.objects[0].count.load(Relaxed), 0);
        assert_eq!(places.objects[1].count.load(Relaxed), 1);
    });
}

/// An address is used again, by an object of another type in another cell: what was borrowed from
/// the first cell is what was there (arc-swap#210).
#[test]
fn an_address_that_is_used_again_is_another_cells() {
    bounded(3, || {
        let places = &Places::new(BIASED);
        let number = places.block();
        // Reads what it has borrowed: never the second object at an address.
        let borrows = move |places: &Places| places.borrow_and_give_back(number);
        beside(places, borrows, |places| {
            if places.replace(0, address(1)) {
                // The object is gone; another one is made there, and comes into the other cell.
                places.objects[0].count.store(1, Relaxed);
                places.cells[1].store(address(0), Release);
                places.replace(1, ptr::null_mut());
            }
        });
    });
}
