//! Faults of the cells for counted pointers.

use crate::common::*;
use quiescence::cell::Counted;
use quiescence::{
    ArcCell,
    cell::{ArcCellAny, ExactCell},
    hazard,
};

use crate::common::user_types::{SHAKES, Shaky};

/// References to the object that begins where the `Arc`'s memory ends.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A pointer to it. (It is not looked at, so it need not be there.)
struct Next(*mut u8);

impl Clone for Next {
    fn clone(&self) -> Self {
        NEXT.fetch_add(1, SeqCst);
        Self(self.0)
    }
}

impl Drop for Next {
    fn drop(&mut self) {
        NEXT.fetch_sub(1, SeqCst);
    }
}

// SAFETY: one address, and one count.
unsafe impl Counted for Next {
    type Base = u8;

    fn into_ptr(me: Self) -> *mut u8 {
        std::mem::ManuallyDrop::new(me).0
    }

    fn as_ptr(me: &Self) -> *mut u8 {
        me.0
    }

    unsafe fn from_ptr(address: *const u8) -> Self {
        Self(address.cast_mut())
    }
}

/// The address of an `Arc` of no bytes is where its memory ends. An update of a cell whose object
/// begins there paid the guard of the `Arc` with a count of that object, and the guard took one off
/// the `Arc`'s.
#[test]
fn an_arc_of_no_bytes_was_taken_for_what_follows_it() {
    let arc = Arc::new(());
    let units = ExactCell::new(Arc::clone(&arc));
    NEXT.store(1, SeqCst);
    let next = ExactCell::new(Next(Arc::as_ptr(&arc).cast_mut().cast()));
    let guard = units.load();
    let old = next.swap(Next(std::ptr::NonNull::<u64>::dangling().as_ptr().cast()));
    NEXT.fetch_add(1, SeqCst); // of the second object
    drop(guard);
    assert_eq!((Arc::strong_count(&arc), NEXT.load(SeqCst)), (2, 2));
    drop((old, next, units));
    assert_eq!((Arc::strong_count(&arc), NEXT.load(SeqCst)), (1, 0));
}

/// The pointer that the caller compares with was retired in the place of the one that the cell had.
/// One from a reference to the value may not touch the count beside it. (Miri finds it.)
#[test]
fn the_callers_pointer_was_given_up_for_the_cells() {
    let cell = ArcCell::new(Arc::new(5_u64));
    let guard = cell.load();
    let value: &u64 = &guard;
    let was = cell.compare_and_swap(std::ptr::from_ref(value), Arc::new(6));
    assert_eq!((*was, *cell.load_full()), (5, 6));
    drop((guard, was));
    quiescence::hazard::barrier();
}

/// Has a cell call a clone that panics. Then the only reference to the value is the one here.
fn a_clone_panics(update: impl FnOnce(&ArcCellAny<Shaky>)) {
    let value = Arc::new(1);
    let cell = ArcCellAny::new(Shaky::new(Arc::clone(&value)));
    SHAKES.set(true);
    panic_of(|| update(&cell));
    SHAKES.set(false);
    drop(cell);
    hazard::barrier();
    assert_eq!(Arc::strong_count(&value), 1);
}

/// Its slot protected the value for ever.
#[test]
fn a_clone_that_panics_lets_go_of_the_guards_slot() {
    a_clone_panics(|cell| drop(cell.load_full()));
}

/// The reference that the cell had had was no one's.
#[test]
fn a_clone_that_panics_leaves_no_reference_behind() {
    a_clone_panics(|cell| drop(cell.swap(Shaky::new(Arc::new(2)))));
    a_clone_panics(|cell| drop(cell.rcu(|_| Shaky::new(Arc::new(2)))));
    a_clone_panics(|cell| {
        let seen = cell.load();
        drop(cell.compare_and_swap(&seen, Shaky::new(Arc::new(2))));
    });
}

/// A structure with such a cell could be read from JSON, and not be written.
#[cfg(feature = "serde")]
#[test]
fn a_cell_that_may_be_empty_was_not_serialised() {
    use quiescence::cell::ArcCellOption;

    for json in ["7", "null"] {
        let cell: ArcCellOption<u32> = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&cell).unwrap(), json);
    }
}
