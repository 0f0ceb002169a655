//! `barrier` of a hazard domain returned while another thread was about to drop what had been
//! protected: that thread had taken it out of the domain, so nothing seemed to be left.

use crate::common::*;

use quiescence::hazard::{HazardDomain, HazardPointer};

use crate::kept_objects::retire_protected;

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
    let mut holder = HazardPointer::new();
    let protected = retire_protected(&domain, &mut holder, OnDrop(slow)); // it is kept now
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
