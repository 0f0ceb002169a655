//! Queues of callbacks that wait for grace periods.
//!
//! A thread writes callbacks into the [stream](crate::reclaim::stream) of a queue of its own: no
//! lock, no atomic read-modify-write. From time to time the thread itself or the worker *closes*
//! what has been written: counts it and asks for a grace period on its behalf. [`grace::Segments`]
//! says how many callbacks, from the front, wait for which cookie; when the cookie is done they are
//! ready and are run, a few at a time. [`crate::reclaim::defer`] says which thread does that, and
//! when.
//!
//! **Invariant [TQ-1]: the cookie of callbacks is asked for after they were counted**, and so after
//! they were written: the grace period begins after everything in the batch was unlinked [DQ-1].
//!
//! **Invariant [TQ-2]: one thread at a time runs the callbacks of a queue**, first in, first out;
//! so they run in order, and a queue whose count of finished callbacks has reached a mark has run
//! all that came before the mark [DQ-2].
//!
//! **Invariant [TQ-3]: what waits is charged.** A callback is admitted by
//! [`charge`](crate::reclaim::domain_state::charge) before it is written; its room is free again
//! right before it runs: a callback that queues itself again finds the room that it had.
//!
//! This file is the third and fourth stage of a retired object: it is added, and waits for a
//! cookie. `run` is the fifth. The callbacks of a thread that has ended move to a queue that all
//! such threads share: see `list`.

mod counts;
mod forked;
mod list;
mod run;

pub(crate) use grace::batch::Wants;

pub(crate) use list::{Queues, drain};
use run::Scanned;

use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use grace::batch::{self, TEND_EVERY, TEND_EVERY_HAZARD};
use grace::{Cookie, Segments, Urgency};

use crate::event::trace;
use crate::gp::wake::Line;
use crate::os::fence::{self, Fences};
use crate::os::sync::{self, AtomicBool, AtomicU64, Condvar, Mutex, Rank};
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::domain_state::charge::LocalStock;
use crate::reclaim::stream::{CallbackType, Cursor, Stream};

/// Callbacks in a full batch, at most; fewer in models.
pub(crate) const BATCH: u64 = if cfg!(loom) { 2 } else { batch::BATCH };

/// The same for objects while grace periods find no other reader.
pub(crate) const BATCH_ALONE: u64 = if cfg!(loom) { 2 } else { batch::BATCH_ALONE };

/// The callbacks of one thread in one domain.
#[derive(Debug)]
pub(crate) struct Queue {
    own: Line<Own>,
    inner: Mutex<Inner>,
    /// Signalled when the thread that ran callbacks has stopped.
    stopped: Condvar,
    /// Callbacks that have ever been counted into `Inner::segments`. Written under the lock.
    counted: AtomicU64,
    /// Bytes that had been added by then; approximate if the count ran during an addition.
    bytes_counted: AtomicU64,
    /// Callbacks that have finished, and their bytes. Written under the lock.
    finished: AtomicU64,
    bytes_finished: AtomicU64,
    /// The thread that adds, as [`crate::os::thread::token`]; or [`Self::SHARED`].
    owner: usize,
    contents: Contents,
    /// The owner is gone; no thread adds any more.
    orphan: AtomicBool,
    /// The owner has run callbacks itself since the worker last asked.
    tended: AtomicBool,
    pub(crate) fence: fence::Cell,
}

/// Only the thread that adds touches this, except that others read the counts.
#[derive(Debug)]
struct Own {
    stream: Stream,
    /// Bytes of the callbacks that have been added.
    bytes: AtomicU64,
    local_stock: LocalStock,
    /// Callbacks that had been added when [`Queue::take_added`] was last called.
    taken: Cell<u64>,
    /// Each so many additions it is time to tend the queue.
    round: u32,
    /// How many additions of this round are left.
    left: Cell<u32>,
    /// Whether a light fence is not enough in this process, so that `add` needs a full one.
    portable: bool,
}

// SAFETY: the cells in `own` are touched by the thread that adds only: the owner, or the thread
// that holds the lock of the list of queues. The rest is atomic or locked.
unsafe impl Sync for Queue {}

#[derive(Debug)]
struct Inner {
    /// The callbacks that have been counted and have not finished.
    segments: Segments,
    /// The position of the oldest callback that has not finished.
    cursor: Cursor,
    /// The thread that is running callbacks of this queue, as [`crate::os::thread::token`]; else 0.
    runner: usize,
    /// How many callbacks `runner` has claimed, from `cursor` on.
    claimed: u64,
    /// Threads that wait for the runner to stop.
    waiters: u32,
    /// Barriers that wait for this queue: nothing moves out of it meanwhile; see `list`.
    barriers: u32,
    /// In a hazard domain: which of the ready callbacks' objects are protected.
    scanned: Scanned,
    /// In a child process: what is known of the bytes that were lost.
    lost: Option<Lost>,
}

/// In a child process: callbacks that a thread of the parent was running or adding during the fork.
/// How many bytes each of them was charged is unknown, but the total is known.
#[derive(Clone, Copy, Debug)]
struct Lost {
    /// Once this many callbacks have finished...
    finished: u64,
    /// ...`Queue::bytes_finished` must be this.
    bytes: u64,
}

/// What a queue contains: each thread has one queue of either sort in a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Retired objects, which the thread that retired them frees itself.
    Objects,
    /// Closures, which the worker runs.
    Closures,
}

/// `added - finished`, for counts that wrap; 0 if `finished` is ahead of `added`.
fn bytes_between(finished: u64, added: u64) -> u64 {
    added.wrapping_sub(finished).cast_signed().max(0).cast_unsigned()
}

impl Inner {
    /// Counts the callbacks that have been written by now.
    fn count(&mut self, queue: &Queue) {
        let written = queue.own.0.stream.written(); // [DS-1]
        self.segments.push(written - queue.counted.load(Relaxed));
        queue.counted.store(written, Relaxed);
        queue.bytes_counted.store(queue.own.0.bytes.load(Relaxed), Relaxed);
    }

    /// Asks, by `request`, for a grace period on behalf of all that has been written. If it gives
    /// no cookie, that stays open: returns false.
    fn close(
        &mut self,
        queue: &Queue,
        domain: &DomainState,
        request: impl Fn() -> Option<Cookie>,
    ) -> bool {
        //~ cookie-before-count
        self.ripen(domain);
        self.count(queue);
        if !self.segments.has_untagged() {
            return true;
        }
        //~ point batch-closed
        // The request comes after the last callback was counted [DQ-1], [GP-9].
        let Some(cookie) = request() else { return false }; //~ cookie-before-count
        // A grace period that has ended meanwhile makes room in `segments` for one more batch.
        self.ripen(domain);
        let callbacks = self.segments.len();
        if self.segments.accelerate(cookie) {
            trace::batch_closed(domain.grace_periods.source(), callbacks, cookie);
        }
        true
    }

    /// Marks as ready what has waited for its grace period.
    fn ripen(&mut self, domain: &DomainState) {
        self.segments.advance(domain.grace_periods.sequence());
        //~ early-callbacks
    }
}

impl Queue {
    /// The owner of a queue that threads share which have ended or are ending: see `list`.
    const SHARED: usize = 0;

    pub(crate) fn new(domain: &DomainState, owner: usize, contents: Contents) -> Self {
        let (stream, cursor) = Stream::new();
        let portable = fence::chosen() == Fences::Portable;
        let is_hazard = domain.grace_periods.hazards.is_some();
        let round = if is_hazard { TEND_EVERY_HAZARD } else { TEND_EVERY } + 1;
        Self {
            own: Line(Own {
                stream,
                bytes: AtomicU64::new(0),
                local_stock: LocalStock::default(),
                taken: Cell::new(0),
                round,
                left: Cell::new(round),
                portable,
            }),
            inner: Mutex::new(
                Rank::Queue,
                Inner {
                    segments: Segments::new(domain.grace_periods.sequence()),
                    cursor,
                    runner: 0,
                    claimed: 0,
                    waiters: 0,
                    barriers: 0,
                    scanned: Scanned::default(),
                    lost: None,
                },
            ),
            stopped: Condvar::new(),
            counted: AtomicU64::new(0),
            bytes_counted: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            bytes_finished: AtomicU64::new(0),
            owner,
            contents,
            orphan: AtomicBool::new(false),
            tended: AtomicBool::new(false),
            fence: fence::Cell::new(),
        }
    }

    // ---- the thread that adds -------------------------------------------------------------------

    /// Whether it holds objects or closures.
    pub(crate) fn contents(&self) -> Contents {
        self.contents
    }

    /// What its thread may still add. For the owner.
    pub(crate) fn local_stock(&self) -> &LocalStock {
        &self.own.0.local_stock
    }

    /// Adds a callback that has been charged `bytes`. Returns whether it is time to tend the queue.
    ///
    /// # Safety
    /// The caller is the thread that adds; `kind` and `payload` fit, as [`Stream::push`] asks.
    /// Running the callback once, on any thread, after a grace period, is sound.
    #[inline]
    pub(crate) unsafe fn add<P>(
        &self,
        kind: &'static CallbackType,
        payload: P,
        bytes: u64,
    ) -> bool {
        let own = &self.own.0;
        // Relaxed: only the owner stores it.
        own.bytes.store(own.bytes.load(Relaxed).wrapping_add(bytes), Relaxed);
        // SAFETY: by the contract.
        unsafe { own.stream.push(kind, payload) };
        fence::light(&self.fence); // [DQ-3]
        if own.portable {
            fence::full(); // here a light fence is not enough [DQ-3]
        }
        own.left.set(own.left.get() - 1);
        let ends = own.left.get() == 0;
        if ends {
            own.left.set(own.round);
        }
        ends
    }

    /// The kind of the callback that was added last, if that is known. For the owner.
    #[inline]
    pub(crate) fn last_kind(&self) -> Option<&'static CallbackType> {
        self.own.0.stream.last_kind()
    }

    /// How many have been added since [`take_added`](Self::take_added). For the owner.
    pub(crate) fn added(&self) -> u64 {
        self.own.0.stream.written() - self.own.0.taken.get()
    }

    /// The same, and restarts the count. For the owner.
    pub(crate) fn take_added(&self) -> u64 {
        let added = self.added();
        self.own.0.taken.set(self.own.0.stream.written());
        added
    }

    /// Whether at least `batch` callbacks are open, or a fixed part of the limit
    /// ([`batch::is_full`]). For the owner.
    pub(crate) fn is_full(&self, domain: &DomainState, batch: u64) -> bool {
        let (own, limit) = (&self.own.0, domain.limit());
        let open = own.stream.written() - self.counted.load(Relaxed);
        let bytes = bytes_between(self.bytes_counted.load(Relaxed), own.bytes.load(Relaxed));
        batch::is_full(open, bytes, batch, limit)
    }

    // ---- any thread -----------------------------------------------------------------------------

    /// Asks for a grace period on behalf of all that is open.
    pub(crate) fn close(&self, domain: &DomainState, urgency: Urgency) {
        let request = || Some(domain.grace_periods.request(urgency));
        sync::lock(&self.inner).close(self, domain, request);
    }

    /// The same for the worker, which does not wait for the lock [W-2]. Returns false if another
    /// thread was in the way.
    pub(crate) fn close_unless_busy(&self, domain: &DomainState, urgency: Urgency) -> bool {
        let Some(mut inner) = sync::try_lock(&self.inner) else { return false };
        inner.close(self, domain, || domain.grace_periods.request_unless_busy(urgency))
    }

    /// What the worker should do for this queue: if another thread holds the lock, it is to come
    /// back [W-2].
    pub(crate) fn wants(&self) -> Wants {
        let Some(inner) = sync::try_lock(&self.inner) else { return Wants::Looks };
        Wants::of(&inner.segments, self.is_empty())
    }

    /// Whether all that was added has run.
    pub(crate) fn is_empty(&self) -> bool {
        // `finished` is loaded first, so it is never more than what was added.
        self.finished.load(Acquire) == self.own.0.stream.written() // [DQ-2]
    }

    /// Whether the owner has run callbacks itself since the last call; clears the note. The worker
    /// then leaves the queue to the owner, which can reuse the memory that it frees.
    pub(crate) fn take_tended(&self) -> bool {
        // Relaxed: a hint; at worst the worker comes a tick later or in vain.
        self.tended.load(Relaxed) && self.tended.swap(false, Relaxed)
    }

    fn is_shared(&self) -> bool {
        self.owner == Self::SHARED
    }

    fn is_orphan(&self) -> bool {
        self.orphan.load(Acquire) // pairs with the Release in `mark_orphan`
    }

    /// The owner adds no more; what is left of its local stock goes back to the domain.
    pub(crate) fn mark_orphan(&self, domain: &DomainState) {
        self.local_stock().empty(domain); //~ lost-local-stock
        // Release: pairs with the Acquire in `is_orphan`; what was added comes before.
        self.orphan.store(true, Release); //~ relaxed-orphan
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let inner = sync::lock(&self.inner);
        // SAFETY: no thread writes or reads any more. All callbacks have run or moved elsewhere:
        // the queue was found empty, was merged, or the domain has ended.
        unsafe { inner.cursor.free() };
    }
}
