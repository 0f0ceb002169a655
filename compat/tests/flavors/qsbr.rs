//! Readers with quiescent states: online they are waited for, and a waiter is offline.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

use crate::c::*;

/// A registered thread, online, that runs what it is sent until its sender is dropped.
struct Reader {
    orders: mpsc::Sender<fn()>,
    done: mpsc::Receiver<()>,
    thread: thread::JoinHandle<()>,
}

impl Reader {
    fn new() -> Self {
        let (orders, told) = mpsc::channel::<fn()>();
        let (did, done) = mpsc::channel();
        let thread = thread::spawn(move || {
            register(QSBR);
            did.send(()).unwrap();
            for order in told {
                order();
                did.send(()).unwrap();
            }
            unregister(QSBR);
        });
        done.recv().unwrap();
        Self { orders, done, thread }
    }

    fn tell(&self, order: fn()) {
        self.orders.send(order).unwrap();
        self.done.recv().unwrap();
    }

    fn end(self) {
        drop(self.orders);
        self.thread.join().unwrap();
    }
}

#[test]
fn a_registered_reader_is_online_and_waited_for() {
    attach();
    let reader = Reader::new();
    let state = quiescence_urcu_start_poll(QSBR);
    assert_not_over(QSBR, state);
    reader.tell(quiescent_state);
    until(|| quiescence_urcu_poll_state(QSBR, state));
    let again = quiescence_urcu_start_poll(QSBR);
    assert_not_over(QSBR, again);
    reader.tell(offline);
    until(|| quiescence_urcu_poll_state(QSBR, again));
    quiescence_urcu_synchronize(QSBR); // it stays offline
    reader.tell(online);
    let last = quiescence_urcu_start_poll(QSBR);
    assert_not_over(QSBR, last);
    reader.end(); // unregisters online
    quiescence_urcu_synchronize(QSBR);
    assert!(quiescence_urcu_poll_state(QSBR, last));
}

#[test]
fn who_waits_is_offline_meanwhile_and_online_afterwards() {
    attach();
    register(QSBR);
    assert_ne!(word(QSBR).load(SeqCst), 0);
    quiescence_urcu_synchronize(QSBR);
    assert_ne!(word(QSBR).load(SeqCst), 0, "back online");
    let state = quiescence_urcu_start_poll(QSBR);
    assert_not_over(QSBR, state);
    quiescence_urcu_synchronize(QSBR);
    assert!(quiescence_urcu_poll_state(QSBR, state));
    offline();
    quiescence_urcu_synchronize(QSBR);
    assert_eq!(word(QSBR).load(SeqCst), 0, "still offline");
    unregister(QSBR);
}

/// Two online threads that wait at once would wait for each other, each of them online.
#[test]
fn online_threads_may_all_wait_at_once() {
    attach();
    let start = Arc::new(Barrier::new(3));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let start = Arc::clone(&start);
            thread::spawn(move || {
                register(QSBR);
                start.wait();
                for _ in 0..50 {
                    quiescence_urcu_synchronize(QSBR);
                }
                unregister(QSBR);
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
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

#[test]
fn a_thread_that_ends_online_is_no_reader_any_more() {
    attach();
    thread::spawn(|| register(QSBR)).join().unwrap();
    quiescence_urcu_synchronize(QSBR);
}
