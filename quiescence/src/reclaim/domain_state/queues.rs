//! The queues of a domain: what they need from the worker, and the sums of their counts; barriers;
//! and the queues of threads that are gone, which are taken out.
//!
//! # Orphaned callbacks
//! The last callbacks of a thread that has ended move to a queue that all such threads share, with
//! those that it adds while it ends. A queue costs a page and its counts, however few callbacks it
//! has; short-lived threads would leave thousands of queues behind one stalled reader. So the
//! callbacks are moved, in their order, to the end of the shared queue of their [`Contents`], and
//! the thread's queue is removed. They stay charged, and once they are closed they wait for a grace
//! period that begins after the move.
//!
//! **A callback moves at most once**, together with all others of its queue: so callbacks of one
//! thread stay in order [TQ-2].
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
//! **Invariant [TQ-4]: whenever the list's lock is free, a callback that moves is in exactly one
//! queue of the list; and it moves into a shared queue.** A thread that asks or closes all queues
//! at one moment, as the worker does, holds that lock. Nothing moves out of a queue that a barrier
//! waits for [TQ-5].

#![deny(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use grace::Urgency;
use grace::limit::Amount;

use super::DomainState;
use super::thread_queue::{Contents, Ended, OwnQueue, Queue, Shared, Wants};
use crate::event::statistics::Callbacks;
use crate::gp::grace_periods::Me;
use crate::os::fence;
use crate::os::forking::{AtFork, Held, Wanted};
use crate::os::sync::{self, AtomicBool, AtomicU64, Mutex, Rank, const_unless_loom};
use crate::reclaim::running::{self, running_callbacks};

/// The list of a domain's queues, the oldest first.
#[derive(Debug)]
struct List {
    all: Vec<Arc<Queue>>,
    /// Those that threads without queues of their own share: one for objects, one for closures,
    /// since a closure may take long.
    shared: [Option<Shared>; 2],
}

impl List {
    /// The shared queue for `contents`, which it makes if there is none.
    fn shared(&mut self, domain: &DomainState, contents: Contents) -> OwnQueue<'_> {
        let make = || {
            let shared = Shared::new(domain, contents);
            self.all.push(Arc::clone(shared.queue()));
            domain.charge.queues.fetch_add(1, Relaxed);
            shared
        };
        self.shared[contents as usize].get_or_insert_with(make).own()
    }
}

impl AtFork for List {
    fn hold(&self, held: &mut Held) {
        held.keep(self.all.clone(), |queues, wanted| {
            queues.iter().for_each(|queue| queue.hold(wanted));
        });
    }
}

/// The queues of a domain.
#[derive(Debug)]
pub(crate) struct Queues {
    list: Mutex<List>,
    /// Callbacks that have run in queues no longer in the list. Written under the list's lock.
    gone: AtomicU64,
    /// Whether the worker knows that there is something to do here.
    pub(crate) announced: AtomicBool,
    /// Whether the worker should close open callbacks now.
    pub(crate) hurried: AtomicBool,
}

impl Queues {
    const_unless_loom! {
        pub(crate) fn new() -> Self {
            Self {
                list: Mutex::new(Rank::Queues, List { all: Vec::new(), shared: [None, None] }),
                gone: AtomicU64::new(0),
                announced: AtomicBool::new(false),
                hurried: AtomicBool::new(false),
            }
        }
    }

    /// A new queue in the list, for the calling thread.
    pub(crate) fn add(&self, domain: &DomainState, contents: Contents) -> Arc<Queue> {
        self.enter(domain, Queue::of_this_thread(domain, contents))
    }

    fn enter(&self, domain: &DomainState, queue: Arc<Queue>) -> Arc<Queue> {
        let mut list = sync::lock(&self.list);
        list.all.push(Arc::clone(&queue));
        // Under the lock, as below: a fork finds it listed and counted, or neither.
        domain.charge.queues.fetch_add(1, Relaxed);
        queue
    }

    /// The same, which no thread runs as its own.
    #[cfg(test)]
    pub(crate) fn add_of_nobody(&self, domain: &DomainState, contents: Contents) -> Arc<Queue> {
        self.enter(domain, Queue::of_nobody(domain, contents))
    }

    /// Calls `f` with the queue for `contents` that threads share which are ending; `f` runs no
    /// user code.
    pub(crate) fn with_shared<R>(
        &self,
        domain: &DomainState,
        contents: Contents,
        f: impl FnOnce(OwnQueue<'_>) -> R,
    ) -> R {
        f(sync::lock(&self.list).shared(domain, contents))
    }

    /// All queues, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Queue>> {
        sync::lock(&self.list).all.clone()
    }

    /// At the end of a domain: runs everything. The thread, which may be the worker, counts as in a
    /// callback meanwhile, so it does not wait for callbacks.
    pub(crate) fn run_all(&self, domain: &Ended<'_>) {
        running_callbacks(&domain.grace_periods, |_| {
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
        // Their cells are loom's alone.
        let queues = if cfg!(loom) { self.all() } else { Vec::new() };
        fence::heavy(queues.iter().map(|queue| &queue.fence)); // [DQ-3] //~ no-idle-fence
        let wants = self.wants();
        if wants != Wants::Nothing {
            self.announced.store(true, Relaxed);
        }
        wants
    }

    /// Whether all that was added to any queue, or to the calling thread's own, has run.
    pub(crate) fn is_empty(&self, own_only: bool) -> bool {
        // Under the lock: as in `counts`.
        let list = sync::lock(&self.list);
        list.all.iter().all(|queue| own_only && !queue.is_own() || queue.is_empty())
    }

    /// The most that a queue needs from the worker now; [`Wants::Looks`] if another thread holds a
    /// queue's lock [W-2].
    pub(crate) fn wants(&self) -> Wants {
        //~ one-by-one
        // Under the lock: as in `counts`.
        let list = sync::lock(&self.list);
        list.all.iter().map(|queue| queue.wants()).max().unwrap_or(Wants::Nothing)
    }

    /// Asks for grace periods on behalf of all that is open, and waits for no queue's lock. Returns
    /// how many queues are left as they were, since another thread holds theirs [W-2].
    pub(crate) fn close_unless_busy(&self, domain: &DomainState, urgency: Urgency) -> usize {
        //~ closes-one-by-one
        // Under the lock: else what is open might move into a queue that was closed already.
        let list = sync::lock(&self.list);
        list.all.iter().filter(|queue| !queue.close_unless_busy(domain, urgency)).count()
    }

    /// Callbacks ever added and ever finished, and the bytes that wait.
    pub(crate) fn counts(&self) -> Callbacks {
        // Under the lock to the end: meanwhile no callback moves from one queue to another.
        let list = sync::lock(&self.list);
        // Relaxed: under the list's lock. Those in `gone` were added and have finished.
        Callbacks::steadiest(self.gone.load(Relaxed), &mut || {
            list.all.iter().fold(Callbacks::default(), |all, queue| all.plus(queue.counts()))
        })
    }

    /// Takes the queues of threads that are gone, which have marked them as orphans, out of the
    /// list, and moves their callbacks to a shared one, unless [`Queue::move_all`] refuses.
    pub(crate) fn forget_orphans(&self, domain: &DomainState) {
        // Freed after the lock, which every thread needs that comes, ends or counts.
        let mut forgotten = Vec::new();
        let mut list = sync::lock(&self.list);
        let mut at = 0;
        while let Some(queue) = list.all.get(at).cloned() {
            at += 1;
            if !queue.is_shared() && !queue.is_orphan() {
                continue;
            }
            let (all, contents) = (&mut *list, queue.contents);
            //~ lost-tail:
            let moved = if queue.is_empty() {
                Some(0)
            } else {
                queue.move_all(domain, || all.shared(domain, contents))
            };
            if let Some(moved) = moved {
                // Relaxed: under the list's lock. Moved callbacks are counted in the shared queue.
                self.gone.fetch_add(queue.written() - moved, Relaxed);
                // In a child, its thread may have been about to add one, which was charged.
                let bytes = queue.counts().bytes_waiting;
                domain.charge.give_back(Amount { objects: 0, bytes });
                at -= 1;
                forgotten.push(list.all.remove(at));
                if queue.is_shared() {
                    list.shared[contents as usize] = None;
                }
            }
        }
        domain.charge.queues.fetch_sub(forgotten.len() as u64, Relaxed);
    }

    // ---- across a fork --------------------------------------------------------------------------

    /// Before a `fork`: has the locks taken, so that no thread writes to the shared queues, and no
    /// queue is added or removed.
    pub(crate) fn hold<'o>(&'o self, wanted: &mut Wanted<'_, 'o>) {
        wanted.add(Rank::Queues, &self.list);
    }

    /// In the child: no other thread runs callbacks, and the other threads' queues are orphans.
    /// Their callbacks are run by the next `barrier`, or by the worker once it has started again.
    /// `callback_queues` is the charge of the callback queues.
    pub(crate) fn after_fork(&self, domain: &DomainState, callback_queues: Amount) {
        let list = sync::lock(&self.list);
        // Threads were stopped wherever they were, so the charge is counted anew.
        domain.kept.after_fork();
        let others = callback_queues.plus(domain.kept.amount());
        let charged = list.all.iter().fold(others, |all, queue| all.plus(queue.after_fork()));
        // This thread's callbacks may have queued others in the room of those that ran before them,
        // and objects of this go may be kept. That room is in `charged` twice, since the callbacks
        // of the go are not counted as finished yet; so all of it is given back when they are. A go
        // in a domain that is ending, which no child counts anew, forgets its part as well: that
        // domain charges nothing more, and a charge does not fall below 0.
        running::forget_spent();
        domain.charge.set(charged);
    }
}

// ---- barriers -----------------------------------------------------------------------------------

/// What a barrier waits for in one queue. Nothing moves out of the queue while this exists.
#[derive(Debug)]
struct Awaited {
    queue: Arc<Queue>,
    /// How many callbacks had ever been added.
    mark: u64,
}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.queue.end_barrier();
    }
}

impl Queues {
    /// Waits until all that has been added so far to any queue, or to the calling thread's own, has
    /// run; runs it if no other thread does.
    pub(crate) fn drain(&self, domain: &DomainState, own_only: bool, me: impl Fn() -> Me) {
        let list = sync::lock(&self.list);
        let awaited = list.all.iter().filter(|queue| !own_only || queue.is_own());
        let awaited: Vec<_> = awaited
            .map(|queue| Awaited { queue: Arc::clone(queue), mark: queue.begin_barrier() })
            .collect();
        drop(list);
        // All batches first, so that one grace period serves them all.
        awaited.iter().for_each(|one| one.queue.close(domain, Urgency::Expedited));
        for Awaited { queue, mark } in &awaited {
            run_until(queue, domain, *mark, &me); //~ late-mark
        }
        drop(awaited);
        self.forget_orphans(domain);
    }
}

/// Waits until all that has been added to a queue has run; runs it if no other thread does.
#[cfg(loom)]
pub(crate) fn drain_one(domain: &DomainState, queue: &Queue, me: &impl Fn() -> Me) {
    run_until(queue, domain, queue.written(), me);
}

/// Waits until `mark` of the callbacks ever added to a queue have run; runs them if no other thread
/// does.
fn run_until(queue: &Queue, domain: &DomainState, mark: u64, me: &impl Fn() -> Me) {
    while queue.finished() < mark {
        if queue.run_some(domain, domain.grace_periods.tuning.run_min()) == 0 {
            // If it has not ended then, this tries again. `me` is called here, not earlier: a
            // callback that has run on this thread may have changed what it has registered.
            let wait = |cookie| domain.grace_periods.wait(cookie, Urgency::Expedited, me());
            let _: Option<bool> = queue.request_oldest(domain, Urgency::Expedited).map(wait);
        }
    }
}
