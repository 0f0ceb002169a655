//! Barriers: waiting for what is in the queues of a domain at one moment, and for nothing later.
//!
//! A barrier first notes, under the list's lock, how many callbacks each queue has ever been given
//! (its mark), and asks for grace periods for all of them; then it goes from queue to queue and
//! runs what is ready, up to the marks. So it needs two grace periods, however many queues there
//! are and however fast threads add to them: the one in progress, and the next.
//!
//! **Invariant [TQ-5]: nothing moves out of a queue while a barrier waits for it.** Each callback
//! that the barrier waits for was in one queue of the list when the mark was set [TQ-4], and runs
//! from there.

use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;

use grace::Urgency;

use super::{Queue, Queues};
use crate::gp::grace_periods::Me;
use crate::os::sync;
use crate::reclaim::charge::Charged;

/// What a barrier waits for in one queue. Nothing moves out of the queue while this exists.
#[derive(Debug)]
struct Awaited {
    queue: Arc<Queue>,
    /// How many callbacks had ever been added.
    mark: u64,
}

impl Awaited {
    /// All that has been added to a queue. The caller holds the lock of the list, or is the thread
    /// that adds.
    fn in_queue(queue: &Arc<Queue>) -> Self {
        let mut inner = sync::lock(&queue.inner);
        inner.barriers += 1;
        let mark = queue.own.0.stream.written();
        drop(inner);
        Self { queue: Arc::clone(queue), mark }
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        sync::lock(&self.queue.inner).barriers -= 1;
    }
}

impl Queues {
    /// Waits until all that has been added to any queue so far has run; runs it if no other thread
    /// does.
    pub(crate) fn drain(&self, core: &Charged, me: impl Fn() -> Me, runner: usize) {
        let list = sync::lock(&self.list);
        let awaited: Vec<_> = list.iter().map(Awaited::in_queue).collect();
        drop(list);
        run_all(core, &awaited, &me, runner);
        drop(awaited);
        self.forget_orphans(core);
    }
}

/// Waits until all that has been added to these queues, the calling thread's own, has run; runs it
/// if no other thread does.
pub(crate) fn drain(core: &Charged, queues: &[Arc<Queue>], me: &impl Fn() -> Me, runner: usize) {
    let awaited: Vec<_> = queues.iter().map(Awaited::in_queue).collect();
    run_all(core, &awaited, me, runner);
}

fn run_all(core: &Charged, awaited: &[Awaited], me: &impl Fn() -> Me, runner: usize) {
    // All batches first, so that one grace period serves them all.
    awaited.iter().for_each(|one| one.queue.close(core, Urgency::Expedited));
    for Awaited { queue, mark } in awaited {
        queue.run_until(core, *mark, me, runner); //~ late-mark
    }
}

impl Queue {
    /// Waits until all that has been added so far has run; runs it if no other thread does.
    #[cfg(loom)]
    pub(crate) fn drain(&self, core: &Charged, me: impl Fn() -> Me, runner: usize) {
        self.run_until(core, self.own.0.stream.written(), me, runner);
    }

    /// Waits until `mark` of the callbacks ever added have run; runs them if no other thread does.
    fn run_until(&self, core: &Charged, mark: u64, me: impl Fn() -> Me, runner: usize) {
        // Acquire: pairs with the Release in `Inner::finish`; shows what they did [DQ-2].
        while self.finished.load(Acquire) < mark {
            if self.run_some(core, runner, core.tuning.run_min()) == 0 {
                self.wait_for_progress(core, &me);
            }
        }
    }

    /// Waits for the queue's runner, or for the grace period of the oldest callback; may return
    /// early. `me` is called here, not earlier: a callback that has run on this thread may have
    /// changed what the thread has registered.
    fn wait_for_progress(&self, core: &Charged, me: impl Fn() -> Me) {
        let mut inner = sync::lock(&self.inner);
        if inner.runner != 0 {
            return self.until_stopped(inner);
        }
        inner.ripen(core);
        if inner.segments.ready() != 0 {
            return;
        }
        if inner.segments.awaited().is_none() {
            inner.close(self, core, Urgency::Expedited);
        }
        let cookie = inner.segments.awaited();
        drop(inner);
        if let Some(cookie) = cookie {
            // If it has not ended, the caller tries again, and `me` is called again.
            let _: bool = core.wait(cookie, Urgency::Expedited, me());
        }
    }
}
