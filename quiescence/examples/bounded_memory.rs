//! `Tuning`, `try_retire` and `AtLimit`: what waits is bounded, and a thread that may not wait gets
//! an error.

use std::sync::Barrier;
use std::thread;

use quiescence::{AtLimit, Domain};

fn main() {
    let domain = Domain::builder().name("cache").build();
    let mut tuning = domain.tuning();
    tuning.objects_max = 100;
    tuning.bytes_max = 64 << 10;
    // The section below is in the way on purpose: no reports of it.
    (tuning.stall_after, tuning.stall_after_expedited) = (None, None);
    domain.tune(tuning);

    let (entered, leave) = (Barrier::new(2), Barrier::new(2));
    let mut refused = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            let section = domain.read();
            entered.wait();
            leave.wait();
            drop(section);
        });
        entered.wait();
        // Nothing can be freed now. The thread that must not wait gets back what finds no room.
        for entry in 0..1_000_u64 {
            refused.extend(domain.try_retire(Box::new(entry)).err());
        }
        assert_eq!(domain.statistics().callbacks_waiting(), 100);
        leave.wait();
    });
    println!("{} of 1000 were refused; {}", refused.len(), refused[0]);

    // Outside of sections `retire` waits for a grace period instead.
    for object in refused.into_iter().map(AtLimit::into_inner) {
        domain.retire(object).expect("not in a section");
    }
    domain.barrier();

    // In a section no thread waits: the first object that finds no room goes over the limit, and
    // the wait comes when the section ends. The next one is refused.
    let section = domain.read();
    let kept: Vec<_> =
        (0..200_u64).filter_map(|entry| domain.retire(Box::new(entry)).err()).collect();
    assert_eq!(domain.statistics().callbacks_waiting(), 101);
    drop(section);
    println!("{} of 200 were refused in a section", kept.len());
    // These were never published: no thread can be reading them.
    kept.into_iter().map(AtLimit::into_inner).for_each(drop);

    domain.barrier();
    assert_eq!(domain.statistics().callbacks_waiting(), 0);
}
