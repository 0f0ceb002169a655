//! What programs on seize 0.3 rely on, beyond the original's own tests
//! (`cargo xtask facades seize`).

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use seize::{AsLink, Collector, Guard, Link, Linked, reclaim};

/// Counts its drops; for one thread.
#[derive(Clone, Default)]
struct Drops(Rc<Cell<u32>>);

struct Counted(Drops);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.set(self.0.0.get() + 1);
    }
}

#[test]
fn what_is_retired_lives_as_long_as_the_guard() {
    let (collector, drops) = (Collector::new().batch_size(1), Drops::default());
    let place = AtomicPtr::new(collector.link_boxed(Counted(drops.clone())));
    let guard = collector.enter();
    let seen = guard.protect(&place, Acquire);
    let old = place.swap(ptr::null_mut(), AcqRel);
    // SAFETY: from a box, and nothing leads to it any more.
    unsafe { guard.defer_retire(old, reclaim::boxed::<Linked<Counted>>) };
    // SAFETY: the guard lives.
    assert_eq!(unsafe { &*seen }.0.0.get(), 0);
    drop(guard);
    assert_eq!(drops.0.get(), 1);
}

/// What the test below retires an object with.
///
/// # Safety
/// The link is that of such an object from a box, which is not used any more.
unsafe fn drop_in_box(link: *mut Link) {
    let object = Link::cast::<Linked<ManuallyDrop<Counted>>>(link);
    // SAFETY: by the contract.
    let mut object = unsafe { Box::from_raw(object) };
    // SAFETY: it was not dropped before, and is not used afterwards.
    unsafe { ManuallyDrop::drop(&mut object.value) };
}

/// As flurry does with the bins of its trees.
#[test]
fn an_object_is_reclaimed_by_the_function_that_it_was_retired_with() {
    let (collector, drops) = (Collector::new(), Drops::default());
    let object = collector.link_boxed(ManuallyDrop::new(Counted(drops.clone())));
    // SAFETY: from a box that no other thread knows of.
    unsafe { collector.retire(object, drop_in_box) };
    drop(collector);
    assert_eq!(drops.0.get(), 1);
}

/// An object of a type of the program's own, in memory of its own.
#[test]
fn an_object_may_be_dropped_in_place() {
    #[repr(C)]
    struct Own(Link, Counted);
    // SAFETY: `repr(C)`, and the link is the first field.
    unsafe impl AsLink for Own {}
    let (collector, drops) = (Collector::new(), Drops::default());
    let mut object = ManuallyDrop::new(Own(collector.link(), Counted(drops.clone())));
    // SAFETY: it lives longer than the collector, and is not dropped by its owner.
    unsafe { collector.retire(&raw mut *object, reclaim::in_place::<Own>) };
    drop(collector);
    assert_eq!(drops.0.get(), 1);
}

#[test]
fn a_guard_that_protects_nothing_reclaims_at_once() {
    let (collector, drops) = (Collector::new(), Drops::default());
    // SAFETY: one thread.
    let guard = unsafe { Guard::unprotected() };
    assert!(guard.collector().is_none());
    let object = collector.link_boxed(Counted(drops.clone()));
    // SAFETY: from a box that no other thread knows of.
    unsafe { guard.defer_retire(object, reclaim::boxed::<Linked<Counted>>) };
    assert_eq!(drops.0.get(), 1);
}

#[test]
fn a_clone_is_a_collector_of_its_own() {
    let collector = Collector::new().batch_size(7);
    let other = collector.clone();
    assert!(!Collector::ptr_eq(&collector, &other));
    assert!(Collector::ptr_eq(&collector, collector.enter().collector().unwrap()));
    assert_eq!(format!("{collector:?}"), format!("{other:?}"));
}
