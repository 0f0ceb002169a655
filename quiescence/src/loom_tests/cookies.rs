//! Cookies that are taken without the lock.

use super::*;

/// One thread unlinks an object and takes the cookie without a lock; others make grace periods.
/// Once one of them has ended that the cookie stands for, the object is destroyed.
fn a_cookie_without_the_lock(reads: bool, alone: bool) {
    bounded(3, move || {
        let world = World::new();
        let slot = std::ptr::from_ref(world.core.grace_periods.register(1, ReaderKind::Ordinary))
            .expose_provenance();
        let driver = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                // SAFETY: the registry keeps the slot while `world` lives.
                let slot = unsafe { &*std::ptr::with_exposed_provenance::<Slot>(slot) };
                let me = Me::owner(usize::from(alone));
                assert!(world.core.grace_periods.synchronize(Urgency::Normal, me));
                if alone {
                    enter(&world.core, slot);
                    world.look();
                    slot.leave();
                } else {
                    assert!(world.core.grace_periods.synchronize(Urgency::Normal, me));
                }
            }
        });
        let reader = reads.then(|| {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                // SAFETY: as above.
                let slot = unsafe { &*std::ptr::with_exposed_provenance::<Slot>(slot) };
                enter(&world.core, slot);
                world.look();
                slot.leave();
            })
        });
        let old = world.current.swap(1, AcqRel);
        let cookie = world.core.grace_periods.snapshot_after_unlinking();
        world.destroy_if_done(old, cookie);
        driver.join().unwrap();
        world.destroy_if_done(old, cookie);
        reader.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

/// The grace periods are another thread's.
#[test]
fn a_cookie_without_the_lock_beside_a_reader() {
    a_cookie_without_the_lock(true, false);
}

/// The driver is the only reader, and so executes no heavy fence.
#[test]
fn a_cookie_without_the_lock_beside_a_driver_that_reads() {
    a_cookie_without_the_lock(false, true);
}
