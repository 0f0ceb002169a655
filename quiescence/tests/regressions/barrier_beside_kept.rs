//! `barrier` of a hazard domain returned while another thread was about to drop what had been
//! protected: that thread had taken it out of the domain, so nothing seemed to be left.

use crate::common::*;
use std::ptr;

use quiescence::hazard::{HazardDomain, HazardPointer};

#[test]
fn a_barrier_waits_for_what_another_one_is_dropping() {
    let domain = HazardDomain::new();
    let dropping = Arc::new(Barrier::new(2));
    let (waiting, dropped) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let (begins, waits, ends) = (dropping.clone(), waiting.clone(), dropped.clone());
    // It lasts until a second thread waits for it, and some more.
    let slow = move || {
        begins.wait();
        until(|| waits.load(Acquire));
        // Time for a barrier that does not wait to return.
        (0..1_000).for_each(|_| thread::yield_now());
        ends.store(true, Release);
    };
    let place = AtomicPtr::new(Box::into_raw(Box::new(OnDrop(slow))));
    let mut holder = HazardPointer::new();
    // SAFETY: from a box, and retired below after it was taken out.
    let protected = unsafe { holder.protect(&place) };
    let old = place.swap(ptr::null_mut(), AcqRel);
    // SAFETY: from a box, and no thread finds it any more.
    domain.retire(unsafe { Box::from_raw(old) });
    domain.barrier(); // it is kept now
    drop(protected);
    thread::scope(|scope| {
        scope.spawn(|| domain.barrier());
        dropping.wait();
        // One of the two threads, or the worker, is in the drop.
        waiting.store(true, Release);
        domain.barrier();
        assert!(dropped.load(Acquire), "the barrier returned before the object was dropped");
    });
}
