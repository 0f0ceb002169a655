//! The list of a domain's queues: what they need from the worker, and the sums of their counts;
//! barriers; and the queues of threads that have ended.
//!
//! # Barriers
//! A barrier waits for what is in the queues of a domain at one moment, and for nothing later.
//!
//! A barrier first notes, under the list's lock, how many callbacks each queue has ever been given
//! (its mark), and asks for grace periods for all of them; then it goes from queue to queue and
//! runs what is ready, up to the marks. So it needs two grace periods, however many queues there
//! are and however fast threads add to them: the one in progress, and the next.
//!
//! **Invariant [TQ-5]: nothing moves out of a queue while a barrier waits for it.** Each callback
//! that the barrier waits for was in one queue of the list when the mark was set [TQ-4], and runs
//! from there.
//!
//! # Orphans
//! Orphaned callbacks: the last callbacks of a thread that has ended move to a queue that all such
//! threads share, with those that it adds while it ends. The holder of the list's lock is its
//! writer.
//!
//! A queue costs a page and its counts, however few callbacks it has; short-lived threads would
//! leave thousands of queues behind one stalled reader. So the callbacks are moved, in their order,
//! to the end of the shared queue of their [`Contents`](super::Contents), and the thread's queue is
//! removed. They stay charged, and wait for a grace period that begins after the move.
//!
//! **Invariant [TQ-4]: whenever the list's lock is free, a callback that moves is in exactly one
//! queue of the list; and it moves into a shared queue.** A thread that asks all queues at one
//! moment, as the worker does before it leaves a domain, holds that lock. Nothing moves out of a
//! queue that a barrier waits for [TQ-5].
//!
//! **A callback moves at most once**, together with all others of its queue: so callbacks of one
//! thread stay in order [TQ-2].

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use grace::limit::Amount;
use grace::{Segments, Urgency};

use super::run::Ran;
use super::{Contents, Queue, Wants};
use crate::gp::grace_periods::Me;
use crate::os::fence;
use crate::os::sync::{self, AtomicBool, AtomicU64, Mutex, Rank, const_unless_loom};
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::running::{RoomMade, running_callbacks};

/// The queues of a domain.
#[derive(Debug)]
pub(crate) struct Queues {
    pub(super) list: Mutex<Vec<Arc<Queue>>>,
    /// Callbacks that have run in queues no longer in the list. Written under the list's lock.
    pub(super) gone: AtomicU64,
    /// Whether the worker knows that there is something to do here.
    pub(crate) announced: AtomicBool,
    /// Whether the worker should close open callbacks now.
    pub(crate) hurried: AtomicBool,
}

impl Queues {
    const_unless_loom! {
        pub(crate) fn new() -> Self {
            Self {
                list: Mutex::new(Rank::Queues, Vec::new()),
                gone: AtomicU64::new(0),
                announced: AtomicBool::new(false),
                hurried: AtomicBool::new(false),
            }
        }
    }

    /// A new queue in the list.
    pub(crate) fn add(&self, domain: &DomainState, owner: usize, contents: Contents) -> Arc<Queue> {
        let queue = Arc::new(Queue::new(domain, owner, contents));
        let mut list = sync::lock(&self.list);
        list.push(Arc::clone(&queue));
        domain.charge.queues.store(list.len() as u64, Relaxed);
        queue
    }

    /// Calls `f` with the queue for `contents` that threads share which are ending. Meanwhile the
    /// calling thread is its writer, under the list's lock; `f` runs no user code.
    pub(crate) fn with_shared<R>(
        &self,
        domain: &DomainState,
        contents: Contents,
        f: impl FnOnce(&Queue) -> R,
    ) -> R {
        let mut list = sync::lock(&self.list);
        f(&shared(&mut list, domain, contents))
    }

    /// All queues, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Queue>> {
        sync::lock(&self.list).clone()
    }

    /// At the end of a domain, which has no reader left: runs everything. The thread, which may be
    /// the worker, counts as in a callback meanwhile, so it does not wait for callbacks.
    pub(crate) fn run_all(&self, domain: &DomainState) {
        running_callbacks(&domain.grace_periods, &RoomMade::default(), || {
            while self.all().iter().map(|queue| queue.run_all(domain)).sum::<u64>() != 0 {}
        });
    }

    /// Clears `announced`, since the worker is about to leave the domain alone. If there is
    /// something to do after all, sets it again. Returns what there is to do.
    ///
    /// The thread that adds writes the callback, passes a light fence and loads `announced`; here
    /// `announced` is cleared, a heavy fence follows, and then the queues are examined. One of the
    /// two sees the other's store [DQ-3].
    pub(crate) fn leave(&self) -> Wants {
        self.announced.store(false, Relaxed);
        //~ point leaving
        fence::heavy(self.all().iter().map(|queue| &queue.fence)); // [DQ-3] //~ no-idle-fence
        let wants = self.wants();
        if wants != Wants::Nothing {
            self.announced.store(true, Relaxed);
        }
        wants
    }

    /// Whether all that was added to any queue has run.
    pub(crate) fn is_empty(&self) -> bool {
        // Under the lock: as in `counts`.
        sync::lock(&self.list).iter().all(|queue| queue.is_empty())
    }

    /// The most that a queue needs from the worker now; [`Wants::Looks`] if another thread holds a
    /// queue's lock [W-2].
    pub(crate) fn wants(&self) -> Wants {
        //~ one-by-one
        // Under the lock: as in `counts`.
        let list = sync::lock(&self.list);
        list.iter().map(|queue| queue.wants()).max().unwrap_or(Wants::Nothing)
    }
}

/// The queue in the list that threads without queues of their own share: one for objects, one for
/// closures, since a closure may take long. Creates it if there is none.
fn shared(list: &mut Vec<Arc<Queue>>, domain: &DomainState, contents: Contents) -> Arc<Queue> {
    let is_it = |queue: &&Arc<Queue>| queue.is_shared() && queue.contents == contents;
    if let Some(queue) = list.iter().find(is_it) {
        return Arc::clone(queue);
    }
    let queue = Arc::new(Queue::new(domain, Queue::SHARED, contents));
    list.push(Arc::clone(&queue));
    domain.charge.queues.store(list.len() as u64, Relaxed);
    queue
}

// ---- barriers -----------------------------------------------------------------------------------

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
    pub(crate) fn drain(&self, domain: &DomainState, me: impl Fn() -> Me, runner: usize) {
        let list = sync::lock(&self.list);
        let awaited: Vec<_> = list.iter().map(Awaited::in_queue).collect();
        drop(list);
        run_all(domain, &awaited, &me, runner);
        drop(awaited);
        self.forget_orphans(domain);
    }
}

/// Waits until all that has been added to these queues, the calling thread's own, has run; runs it
/// if no other thread does.
pub(crate) fn drain(
    domain: &DomainState,
    queues: &[Arc<Queue>],
    me: &impl Fn() -> Me,
    runner: usize,
) {
    let awaited: Vec<_> = queues.iter().map(Awaited::in_queue).collect();
    run_all(domain, &awaited, me, runner);
}

fn run_all(domain: &DomainState, awaited: &[Awaited], me: &impl Fn() -> Me, runner: usize) {
    // All batches first, so that one grace period serves them all.
    awaited.iter().for_each(|one| one.queue.close(domain, Urgency::Expedited));
    for Awaited { queue, mark } in awaited {
        queue.run_until(domain, *mark, me, runner); //~ late-mark
    }
}

impl Queue {
    /// Waits until all that has been added so far has run; runs it if no other thread does.
    #[cfg(loom)]
    pub(crate) fn drain(&self, domain: &DomainState, me: impl Fn() -> Me, runner: usize) {
        self.run_until(domain, self.own.0.stream.written(), me, runner);
    }

    /// Waits until `mark` of the callbacks ever added have run; runs them if no other thread does.
    fn run_until(&self, domain: &DomainState, mark: u64, me: impl Fn() -> Me, runner: usize) {
        // Acquire: pairs with the Release in `Inner::finish`; shows what they did [DQ-2].
        while self.finished.load(Acquire) < mark {
            if self.run_some(domain, runner, domain.grace_periods.tuning.run_min()) == 0 {
                self.wait_for_progress(domain, &me);
            }
        }
    }

    /// Waits for the queue's runner, or for the grace period of the oldest callback; may return
    /// early. `me` is called here, not earlier: a callback that has run on this thread may have
    /// changed what the thread has registered.
    fn wait_for_progress(&self, domain: &DomainState, me: impl Fn() -> Me) {
        let mut inner = sync::lock(&self.inner);
        if inner.runner != 0 {
            return self.until_stopped(inner);
        }
        inner.ripen(domain);
        let (ready, awaited) = (inner.segments.ready(), inner.segments.awaited());
        drop(inner);
        match awaited {
            _ if ready != 0 => {}
            None => self.close(domain, Urgency::Expedited),
            Some(cookie) => {
                // If it has not ended, the caller tries again, and `me` is called again.
                let _: bool = domain.grace_periods.wait(cookie, Urgency::Expedited, me());
            }
        }
    }
}

// ---- orphans ------------------------------------------------------------------------------------

/// The most callbacks that are moved. A longer queue is worth its pages; and the thread that moves
/// them holds locks.
const MERGE_MAX: u64 = 1_024;

impl Queues {
    /// Removes from the list the queues of threads that are gone, which have marked them as
    /// orphans, and moves their callbacks to a shared one, unless [`Queue::move_to`] refuses.
    pub(crate) fn forget_orphans(&self, domain: &DomainState) {
        let mut list = sync::lock(&self.list);
        let mut at = 0;
        while let Some(queue) = list.get(at).cloned() {
            at += 1;
            if !queue.is_shared() && !queue.is_orphan() {
                continue;
            }
            //~ lost-tail:
            let moved = if queue.is_empty() {
                Some(0)
            } else if queue.is_shared() {
                None
            } else {
                queue.move_to(domain, || shared(&mut list, domain, queue.contents))
            };
            if let Some(moved) = moved {
                // Relaxed: under the list's lock. Moved callbacks are counted in the shared queue.
                self.gone.fetch_add(queue.own.0.stream.written() - moved, Relaxed);
                at -= 1;
                list.remove(at);
            }
        }
        domain.charge.queues.store(list.len() as u64, Relaxed);
    }
}

impl Queue {
    /// Moves all callbacks to the queue that `to` returns. Returns how many; `None` if none moved,
    /// since a thread runs them, some are ready or lost, a barrier waits for them, or there are
    /// more than [`MERGE_MAX`]. The thread that added them is gone; the caller holds the lock of
    /// the list.
    fn move_to(&self, domain: &DomainState, to: impl FnOnce() -> Arc<Self>) -> Option<u64> {
        let mut inner = sync::lock(&self.inner);
        inner.ripen(domain);
        inner.count(self);
        let count = inner.segments.len();
        let is_awaited = inner.barriers != 0; // [TQ-5] //~ awaited-move
        let stays = inner.runner != 0 || inner.segments.ready() != 0 || inner.lost.is_some();
        if stays || is_awaited || count > MERGE_MAX {
            return None;
        }
        let to = to();
        let mut cursor = inner.cursor;
        let mut left = count;
        while left != 0 {
            // SAFETY: `left` callbacks were counted and not read yet, and no other thread reads:
            // there is no runner, and the lock is held.
            let run = unsafe { cursor.next(left) };
            left -= run.count;
            // SAFETY: the caller is the writer of the shared queue; what was read here is not run
            // here.
            unsafe { to.own.0.stream.push_run(&run) };
        }
        // Relaxed: this thread is the writer of `to`, and the writer of `self` is gone.
        let bytes = self.own.0.bytes.load(Relaxed);
        let bytes = bytes.wrapping_sub(self.bytes_finished.load(Relaxed));
        let own = &to.own.0;
        own.bytes.store(own.bytes.load(Relaxed).wrapping_add(bytes), Relaxed);
        let was_closed = inner.segments.awaited().is_some();
        inner.segments = Segments::new(domain.grace_periods.sequence());
        // Not given back: the callbacks stay charged.
        let _: Amount = inner.finish(self, Ran { count, bytes, panicked: 0 }, cursor);
        drop(inner);
        if was_closed {
            to.close(domain, Urgency::Background); // they waited for a grace period already
        }
        Some(count)
    }
}
