//! The state of a worker and the requests to it: one word, on which the worker and the threads that
//! wait for it sleep.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::fence;

use quiescence::liburcu_readers::system::{futex_wait, futex_wake};

/// Request: end when no items are left.
const STOP: u32 = 1 << 0;
/// Request: pause.
const PAUSE: u32 = 1 << 1;
/// The worker has paused.
const PAUSED: u32 = 1 << 2;
/// The worker sleeps, or is about to: a thread that queues an item clears the bit and wakes it.
const ASLEEP: u32 = 1 << 3;

/// The worker's state and the requests to it.
pub(super) struct State(AtomicU32);

impl State {
    pub(super) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Acquire: pairs with the Release in `change`.
    fn load(&self) -> u32 {
        self.0.load(Acquire)
    }

    /// Sets some bits and clears others, and wakes all threads that sleep on the word. Release:
    /// pairs with the Acquire in `load`; what was written before a request, or before a pause, is
    /// seen after it.
    fn change(&self, set: u32, cleared: u32) {
        // Relaxed: the exchange compares it again.
        let mut value = self.0.load(Relaxed);
        while let Err(now) =
            self.0.compare_exchange_weak(value, (value | set) & !cleared, Release, Relaxed)
        {
            value = now;
        }
        futex_wake(&self.0, true);
    }

    /// Sleeps until any of `bits` is set, or until all are clear.
    fn wait(&self, bits: u32, set: bool) {
        loop {
            let value = self.load();
            if (value & bits != 0) == set {
                return;
            }
            futex_wait(&self.0, true, value, None);
        }
    }

    pub(super) fn stop_wanted(&self) -> bool {
        self.load() & STOP != 0
    }

    pub(super) fn pause_wanted(&self) -> bool {
        self.load() & PAUSE != 0
    }

    /// On the worker: pauses until the request is withdrawn.
    pub(super) fn pause(&self) {
        self.change(PAUSED, 0);
        self.wait(PAUSE, false);
        self.change(0, PAUSED);
    }

    /// On the worker: sleeps until it is woken, or there is a request; returns at once if there is
    /// work.
    pub(super) fn sleep_unless(&self, work: impl Fn() -> bool) {
        // SeqCst, and the fence: pairs with `wake_sleeper`. Either that thread sees the bit, or the
        // worker sees the item.
        self.0.fetch_or(ASLEEP, SeqCst);
        fence(SeqCst);
        loop {
            let value = self.load();
            if value & ASLEEP == 0 || value & (STOP | PAUSE) != 0 || work() {
                break;
            }
            futex_wait(&self.0, true, value, None);
        }
        // Relaxed: only the worker waits by this bit; another thread may have cleared it already.
        self.0.fetch_and(!ASLEEP, Relaxed);
    }

    /// Wakes the worker if it sleeps. The caller has queued an item, by a sequentially consistent
    /// exchange.
    pub(super) fn wake_sleeper(&self) {
        // SeqCst: pairs with `sleep_unless`, as does that exchange. The worker may have run the
        // item by now, but the queue is not destroyed before this returns, by the contract of
        // `urcu_workqueue_destroy`.
        if self.0.load(SeqCst) & ASLEEP != 0 {
            self.change(0, ASLEEP);
        }
    }

    pub(super) fn stop(&self) {
        self.change(STOP, PAUSE);
    }

    /// Requests a pause, and waits until the worker has paused.
    pub(super) fn want_pause(&self) {
        self.change(PAUSE, 0);
        self.wait(PAUSED, true);
    }

    /// Withdraws that request, and waits until the worker has resumed.
    pub(super) fn resume(&self) {
        self.change(0, PAUSE);
        self.wait(PAUSED, false);
    }

    /// In a child process: there is no worker, and the next one finds no request.
    pub(super) fn begin_anew(&self) {
        self.change(0, STOP | PAUSE | PAUSED | ASLEEP);
    }
}
