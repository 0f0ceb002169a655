//! The queues of threads that are gone: of a thread that has ended, or is ending, and of those that
//! a child process has not got; and of a domain that ends.
//!
//! Orphaned callbacks: the last callbacks of a thread that has ended move to a queue that all such
//! threads share, with those that it adds while it ends. A queue costs a page and its counts,
//! however few callbacks it has; short-lived threads would leave thousands of queues behind one
//! stalled reader. So the callbacks are moved, in their order, to the end of the shared queue of
//! their [`Contents`], and the thread's queue is removed. They stay charged, and once they are
//! closed they wait for a grace period that begins after the move.
//!
//! **Who has the [`List`] to change is the one that adds to its shared queues.** There are no
//! others: [`List::shared`] makes them.
//!
//! **A callback moves at most once**, together with all others of its queue: so callbacks of one
//! thread stay in order [TQ-2].

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

use grace::limit::Amount;
use grace::{Segments, Urgency};

use super::{Contents, Inner, OwnQueue, Queue, Scanned, bytes_between};
use crate::os::forking::{self, AtFork, Held};
use crate::os::sync::{self, Rank};
use crate::os::thread;
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::stream::Stored;

/// The queues of a domain, the oldest first.
#[derive(Debug)]
pub(crate) struct List(Vec<Arc<Queue>>);

impl Deref for List {
    type Target = [Arc<Queue>];

    fn deref(&self) -> &[Arc<Queue>] {
        &self.0
    }
}

impl List {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a queue of that domain, made by its thread before the list was locked.
    pub(crate) fn add(&mut self, domain: &DomainState, queue: Queue) -> &Arc<Queue> {
        assert!(queue.is_of(domain) && !queue.is_shared(), "the queue of a thread of this domain");
        self.push(domain, queue)
    }

    fn push(&mut self, domain: &DomainState, queue: Queue) -> &Arc<Queue> {
        domain.charge.queues.store(self.0.len() as u64 + 1, Relaxed);
        self.0.push(Arc::new(queue));
        self.0.last().expect("it was added")
    }

    /// Takes out the queue at that place.
    pub(crate) fn remove(&mut self, at: usize) -> Arc<Queue> {
        self.0.remove(at)
    }

    /// The queue in the list that threads without queues of their own share: one for objects, one
    /// for closures, since a closure may take long. Makes it if there is none.
    pub(crate) fn shared(&mut self, domain: &DomainState, contents: Contents) -> OwnQueue<'_> {
        let is_it = |queue: &Arc<Queue>| queue.is_shared() && queue.contents == contents;
        let at = self.0.iter().position(is_it).unwrap_or_else(|| {
            self.push(domain, Queue::new(domain, Queue::SHARED, contents));
            self.0.len() - 1
        });
        // SAFETY: in the list, which is borrowed; who has it to change is the one that adds.
        unsafe { OwnQueue::at(Arc::as_ptr(&self.0[at])) }
    }

    /// The most callbacks that are moved. A longer queue is worth its pages; and the thread that
    /// moves them holds locks.
    const MOVED_MAX: u64 = 1_024;

    /// Moves all callbacks of a queue in the list whose thread is gone to the shared queue. Returns
    /// how many; `None` if none moved, since it is a shared queue itself, its thread is there,
    /// another thread has its lock [W-2] or runs them, some are ready, a barrier waits for them, or
    /// there are more than [`MOVED_MAX`](Self::MOVED_MAX).
    pub(crate) fn move_all(&mut self, domain: &DomainState, queue: &Queue) -> Option<u64> {
        // Before the count: what the thread has added last is counted.
        if queue.is_shared() || !queue.is_orphan() {
            return None;
        }
        let mut inner = sync::try_lock(&queue.inner)?;
        inner.ripen(queue, domain);
        inner.count(queue);
        let count = inner.segments.len();
        let is_awaited = inner.barriers != 0; // [TQ-5] //~ awaited-move
        let stays = inner.runner != 0 || inner.segments.ready() != 0;
        if stays || is_awaited || count > Self::MOVED_MAX {
            return None;
        }
        let to = self.shared(domain, queue.contents);
        let (mut cursor, mut bytes) = (inner.cursor, 0);
        for _ in 0..count {
            // SAFETY: `count` callbacks were counted and not read yet, and no other thread reads:
            // there is no runner, and the lock is held.
            let one = unsafe { cursor.next() };
            bytes += one.bytes();
            // SAFETY: this thread adds to the shared queue; what was read here is not run here.
            unsafe { to.own.0.stream.push_again(&one) };
        }
        let was_closed = inner.segments.awaited().is_some();
        inner.segments = Segments::new(domain.grace_periods.sequence());
        // Not given back: the callbacks stay charged.
        inner.finish(queue, Amount { objects: count, bytes }, cursor);
        drop(inner);
        // They waited for a grace period already. If another thread is in the way, the worker
        // closes them at its next turn.
        if was_closed && !to.close_unless_busy(domain, Urgency::Background) {
            domain.queues.hurried.store(true, Release); // as in `worker::hurry`
        }
        Some(count)
    }
}

// ---- at the end of a domain ---------------------------------------------------------------------

/// A domain that ends: no thread has it, so none reads in it, and what waits may run.
#[derive(Debug)]
pub(crate) struct Ended<'d>(&'d DomainState);

impl<'d> Ended<'d> {
    pub(crate) fn new(domain: &'d mut DomainState) -> Self {
        Self(domain)
    }
}

impl Deref for Ended<'_> {
    type Target = DomainState;

    fn deref(&self) -> &DomainState {
        self.0
    }
}

impl Queue {
    /// Runs what has been added, or about a batch of it. Returns how many.
    pub(crate) fn run_all(&self, domain: &Ended<'_>) -> u64 {
        assert!(self.is_of(domain), "another domain has ended");
        let mut inner = sync::lock(&self.inner);
        inner.count(self);
        inner.segments.advance_all();
        self.run_locked(inner, domain, u64::MAX, true)
    }
}

// ---- across a fork ------------------------------------------------------------------------------

impl AtFork for Inner {}

impl AtFork for List {
    fn hold(&self, held: &mut Held) {
        held.keep(self.0.clone(), |queues, wanted| {
            queues.iter().for_each(|queue| wanted.add(Rank::Queue, &queue.inner));
        });
    }
}

impl Queue {
    /// In the child, which has the calling thread only: no other thread runs callbacks, and the
    /// queues of other threads are orphans. Returns the charge of the callbacks that wait here and
    /// of the local stock.
    ///
    /// # Panics
    /// If no child is being repaired: the runner may be there.
    pub(crate) fn after_fork(&self) -> Amount {
        forking::assert_in_child();
        let owner = thread::token();
        let mut inner = sync::lock(&self.inner);
        // Nothing is lost of this thread's own, unless another one was running them.
        //~ runner-after-fork:
        if inner.runner != owner && (inner.runner != 0 || self.owner != owner) {
            inner.forget_runner(self);
        }
        inner.waiters = 0;
        // Not `barriers`: this thread may be in one, in a callback that it runs. If another thread
        // was, the queue's callbacks are run there, and never move.
        let own = &self.own.0;
        if self.owner != owner && !self.is_shared() {
            own.local_stock.forget();
            self.orphan.store(true, Release);
        }
        let bytes = bytes_between(self.bytes_finished.load(Relaxed), own.stream.bytes());
        let objects = self.written() - self.finished.load(Relaxed);
        Amount { objects, bytes }.plus(own.local_stock.stock().left())
    }
}

impl Inner {
    /// In a child process: the thread that was running callbacks, if there was one, is gone, with
    /// those that it had claimed; and so may be one that had begun to add a callback. What these
    /// were charged is unknown: their objects may have been freed. What is left is counted.
    fn forget_runner(&mut self, queue: &Queue) {
        // The objects that it had found protected are gone with it.
        self.scanned = Scanned::default();
        let mut cursor = self.cursor;
        for _ in 0..self.claimed {
            // SAFETY: `claimed` callbacks were written and not read; there is no other thread.
            let _: Stored = unsafe { cursor.next() };
        }
        self.finish(queue, Amount { objects: self.claimed, bytes: 0 }, cursor);
        let waiting = (queue.finished.load(Relaxed)..queue.written()).fold(0, |bytes: u64, _| {
            // SAFETY: so many were written and not read; as above.
            bytes.wrapping_add(unsafe { cursor.next() }.bytes())
        });
        let all = queue.own.0.stream.bytes();
        queue.bytes_finished.store(all.wrapping_sub(waiting), Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use grace::Start;

    use super::*;
    use crate::gp::engine::Settings;
    use crate::reclaim::free::Pending;

    /// A past error: who looked for queues of ended threads waited for the lock of a shared queue,
    /// under the lock of the list. So a thread that lost its CPU there held up the worker, every
    /// thread that ended, and the end of the process [W-2].
    #[test]
    fn who_looks_for_orphans_waits_for_no_queues_lock() {
        let domain = Arc::new(DomainState::new(Start::ZERO, Settings::DEFAULT));
        let add = |queue: OwnQueue<'_>| Pending::closure(&domain, || ()).add(queue, 0);
        domain.queues.with_shared(&domain, Contents::Closures, add);
        let orphan = domain.queues.add_of_nobody(&domain, Contents::Closures);
        // SAFETY: no other thread adds to it.
        let own = unsafe { OwnQueue::at(Arc::as_ptr(&orphan)) };
        add(own);
        own.close(&domain, Urgency::Background);
        own.mark_orphan(&domain);
        // The orphan first: it moves once its lock is free, while that of the shared one is held.
        for held in domain.queues.all().iter().rev() {
            let inner = sync::lock(&held.inner);
            let (has_looked, looked) = mpsc::channel();
            let looker = Arc::clone(&domain);
            std::thread::spawn(move || {
                looker.queues.forget_orphans(&looker);
                has_looked.send(()).expect("it is waited for");
            });
            // Else it waits for ever.
            let looked = looked.recv_timeout(Duration::from_secs(100));
            drop(inner);
            looked.expect("it waits for the lock");
        }
        domain.queues.forget_orphans(&domain);
        assert_eq!(domain.queues.all().len(), 1, "what the ended thread left has moved");
        // A past error: what had been closed was open after the move, and nobody was told.
        assert!(domain.queues.hurried.load(Relaxed), "the worker closes it again");
        assert_eq!(domain.queues.counts().queued, 2);
    }

    #[test]
    #[should_panic(expected = "slots name addresses")]
    fn a_closure_waits_in_no_hazard_domain() {
        let domain = DomainState::hazard(None, |_| (), |_| true);
        let add = |queue: OwnQueue<'_>| Pending::closure(&domain, || ()).add(queue, 0);
        domain.queues.with_shared(&domain, Contents::Closures, add);
    }
}
