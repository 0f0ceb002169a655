//! Readers with quiescent states: online they are waited for, and a waiter is offline.

use crate::c::*;

#[test]
fn who_waits_is_offline_meanwhile_and_online_afterwards() {
    attach();
    register(QSBR);
    assert_ne!(word(QSBR).load(SeqCst), 0);
    quiescence_urcu_synchronize(QSBR);
    assert_ne!(word(QSBR).load(SeqCst), 0, "back online");
    let state = begun(QSBR);
    quiescence_urcu_synchronize(QSBR);
    assert!(quiescence_urcu_poll_state(QSBR, state));
    offline();
    quiescence_urcu_synchronize(QSBR);
    assert_eq!(word(QSBR).load(SeqCst), 0, "still offline");
    unregister(QSBR);
}

/// A reader that becomes an updater is the last that the sleeping driver waits for: it must wake
/// it, and wait for its own grace period then. The other way to leave for good is to unregister.
#[test]
fn going_offline_wakes_an_updater_that_sleeps() {
    attach();
    let ways: [fn(); 2] = [|| quiescence_urcu_synchronize(QSBR), || unregister(QSBR)];
    // Often: a reader that leaves before the driver has scanned once more need wake no thread.
    for way in ways.into_iter().cycle().take(100) {
        let (is_online, online) = mpsc::channel();
        let reader = thread::spawn(move || {
            register(QSBR);
            is_online.send(()).unwrap();
            until(|| GP[QSBR as usize].futex.load(SeqCst) == u32::MAX);
            way();
        });
        online.recv().unwrap();
        quiescence_urcu_synchronize(QSBR);
        reader.join().unwrap();
    }
}
