//! Cookies that are taken without the lock.

use super::*;

/// One thread unlinks an object and takes the cookie without a lock; others make grace periods.
/// Once one of them has ended that the cookie stands for, the object is destroyed.
fn a_cookie_without_the_lock(reads: bool, alone: bool) {
    model_of(3, World::new, move |world| {
        let slot = registered(world, 1, ReaderKind::Ordinary);
        let driver = spawn(world, move |world| {
            let me = Me::owner(usize::from(alone));
            assert!(world.core.grace_periods.synchronize(Urgency::Normal, me));
            if alone {
                world.section(slot);
            } else {
                assert!(world.core.grace_periods.synchronize(Urgency::Normal, me));
            }
        });
        let reader = reads.then(|| spawn(world, move |world| world.section(slot)));
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
