//! What a worker is doing, and what it is wanted to do: one word, on which a thread that waits for
//! either sleeps.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::fence;

use crate::futex::{sleep, wake_all};

/// To end when nothing is left to do.
const STOP: u32 = 1 << 0;
/// To stand still.
const PAUSE: u32 = 1 << 1;
/// It stands still.
const PAUSED: u32 = 1 << 2;
/// It sleeps, or is about to: a thread that queues work takes the bit away and wakes it.
const ASLEEP: u32 = 1 << 3;

/// What the worker does and is to do.
pub(super) struct State(AtomicU32);

impl State {
    pub(super) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Acquire: what was written before a wish, or before a pause, is seen after it.
    fn load(&self) -> u32 {
        self.0.load(Acquire)
    }

    /// Sets some bits and clears others, and wakes the threads that wait for any of them. Release:
    /// pairs with `load`.
    fn change(&self, set: u32, cleared: u32) {
        // Relaxed: the exchange compares.
        let mut value = self.0.load(Relaxed);
        while let Err(now) =
            self.0.compare_exchange_weak(value, (value | set) & !cleared, Release, Relaxed)
        {
            value = now;
        }
        wake_all(&raw const self.0);
    }

    /// Sleeps until all of `bits` are as wanted.
    fn wait(&self, bits: u32, set: bool) {
        loop {
            let value = self.load();
            if (value & bits != 0) == set {
                return;
            }
            sleep(&self.0, value, None);
        }
    }

    pub(super) fn stop_wanted(&self) -> bool {
        self.load() & STOP != 0
    }

    pub(super) fn pause_wanted(&self) -> bool {
        self.load() & PAUSE != 0
    }

    /// The worker stands still until it is to go on.
    pub(super) fn pause(&self) {
        self.change(PAUSED, 0);
        self.wait(PAUSE, false);
        self.change(0, PAUSED);
    }

    /// The worker sleeps until it is woken, or something is wanted of it; not at all if there is
    /// work.
    pub(super) fn sleep_unless(&self, work: impl Fn() -> bool) {
        // SeqCst, and the fence: pairs with `wake_sleeper`. Either it sees the bit, or we see the
        // work.
        self.0.fetch_or(ASLEEP, SeqCst);
        fence(SeqCst);
        loop {
            let value = self.load();
            if value & ASLEEP == 0 || value & (STOP | PAUSE) != 0 || work() {
                break;
            }
            sleep(&self.0, value, None);
        }
        // Relaxed: ours alone while it is set, or cleared already.
        self.0.fetch_and(!ASLEEP, Relaxed);
    }

    /// Wakes the worker if it sleeps. After work was queued, by a sequentially consistent exchange.
    pub(super) fn wake_sleeper(&self) {
        // SeqCst: pairs with `sleep_unless`, as the exchange before does. The worker may have run
        // the work by now, and the queue may be destroyed by it: but not before this returns, by
        // the contract of `urcu_workqueue_destroy`.
        if self.0.load(SeqCst) & ASLEEP != 0 {
            self.change(0, ASLEEP);
        }
    }

    pub(super) fn stop(&self) {
        self.change(STOP, PAUSE);
    }

    /// Wants the worker to stand still, and waits until it does.
    pub(super) fn want_pause(&self) {
        self.change(PAUSE, 0);
        self.wait(PAUSED, true);
    }

    /// Lets the worker go on, and waits until it does.
    pub(super) fn resume(&self) {
        self.change(0, PAUSE);
        self.wait(PAUSED, false);
    }

    /// There is no worker, and nothing is wanted of the next. For a child process.
    pub(super) fn begin_anew(&self) {
        self.change(0, STOP | PAUSE | PAUSED | ASLEEP);
    }
}
