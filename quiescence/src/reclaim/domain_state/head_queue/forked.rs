//! A callback queue across a `fork`.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

use grace::limit::Amount;

use super::{GIVEN_UP, Inner, Part, Shared, amount, double_queue};
use crate::os::forking::{self, AtFork, Held};
use crate::os::sync::{self, Rank};
use crate::os::thread;

impl AtFork for Inner {}

impl AtFork for Vec<Arc<Shared>> {
    fn hold(&self, held: &mut Held) {
        held.keep(self.clone(), |queues, wanted| {
            queues.iter().for_each(|queue| wanted.add(Rank::CallbackQueue, &queue.inner));
        });
    }
}

impl Shared {
    /// In a child process, whose other threads are gone. Returns what is charged.
    ///
    /// # Panics
    /// If no child is being repaired: the runner may be there.
    pub(super) fn after_fork(&self) -> Amount {
        forking::assert_in_child();
        let inner = &mut *sync::lock(&self.inner);
        if inner.runner != thread::token() {
            // What was being run is lost, and counts as run.
            self.finished.fetch_add(inner.claimed, Relaxed);
            (inner.claimed, inner.runs) = (0, false);
            // A barrier of the forking thread begins anew: its mark may have been among that.
            GIVEN_UP.fetch_add(1, Release);
            // A ring that the parent would have complained of is given up here.
            let _ = self.abandon(inner);
            (inner.runner, inner.part, inner.expected) = (0, Part::Runner, false);
            // Its thread is gone, and with it what it was about to queue.
            inner.ends = false;
        } else {
            let _ = self.take(inner);
        }
        // Those who have paused it are gone; if the forking thread has, its `resume` does nothing.
        (inner.waiters, inner.paused) = (0, 0);
        if double_queue::is_on() {
            inner
                .waiting
                .for_each(|head| _ = double_queue::note(ptr::without_provenance_mut(head)));
        }
        // Threads were stopped wherever they were: what is pushed is counted anew.
        let known = self.finished.load(Relaxed) + inner.claimed + inner.waiting.count();
        self.front.0.pushed.store(known, Relaxed);
        self.front.0.granted.store(known, Relaxed);
        self.front.0.rounds.fetch_add(1, Relaxed); // the forking thread's block is counted in that
        (inner.taken, inner.counted) = (known, known);
        amount(inner.waiting.count())
    }
}
