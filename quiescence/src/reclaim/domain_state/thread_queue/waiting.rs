//! The callbacks of one queue: who adds them, which are ready, and which thread runs them.
//!
//! **Whatever the files around this one do, a callback is run once at most, and only when the
//! cookie is done that was asked for after it had been added, in the domain whose queue it is**
//! ([`Queue::is_of`]). They decide who closes and runs, when, and how many.
//! - Only the holder of an [`OwnQueue`] adds to a thread's queue, and an `OwnQueue` does not leave
//!   its thread. Only a thread with exclusive access to the [`Shared`] of a shared queue adds to
//!   that.
//! - [`Locked`] is the only way to the segments and to the oldest callback.
//! - [`Claimed`] runs what was claimed, and no more: no callback is handed to a caller. While there
//!   is one, the queue has a runner, so there is no other.
//!
//! **Invariant [TQ-1]: the cookie of callbacks is asked for after they were counted**, and so after
//! they were written: the grace period begins after everything in the batch was unlinked [DQ-1].

use std::marker::PhantomData;
use std::mem;
use std::ops::Deref;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use grace::batch;
use grace::limit::Amount;
use grace::{Segments, Urgency};

use super::{BATCH, Contents, Notes, Waits};
use crate::event::trace;
use crate::gp::wake::Line;
use crate::os::fence::{self, Fences};
use crate::os::forking::{self, AtFork, Wanted};
use crate::os::sync::{self, AtomicU64, Condvar, Mutex, MutexGuard, Rank};
use crate::os::thread;
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::domain_state::charge::LocalStock;
use crate::reclaim::running::Running;
use crate::reclaim::stream::{CallbackType, Cursor, Stream};

/// Callbacks that are claimed in one go, at most: the sum of what they were charged fits a word. A
/// sum that saturates would leave the count of finished bytes behind for ever.
const GO_MAX: u64 = u64::MAX / Amount::BYTES_OF_OBJECT_MAX;

/// The callbacks of one thread in one domain.
#[derive(Debug)]
pub(crate) struct Queue {
    own: Line<Own>,
    inner: Mutex<Inner>,
    /// Callbacks that have ever been counted into `Inner::segments`. Written under the lock.
    counted: AtomicU64,
    /// Callbacks that have finished. Written under the lock.
    finished: AtomicU64,
    /// Whether it holds objects or closures.
    pub(crate) contents: Contents,
    pub(crate) fence: fence::Cell,
    pub(super) notes: Notes,
}

/// Only the holder of an [`OwnQueue`] touches this, and the thread that runs what it has added
/// itself; except that others read the counts.
#[derive(Debug)]
struct Own {
    stream: Stream,
    local_stock: LocalStock,
    /// Whether a light fence is not enough in this process, so that `add` needs a full one.
    portable: bool,
    /// The address of the domain; see [`Queue::is_of`].
    domain: usize,
    /// The thread that adds, as [`thread::token`]; or [`Queue::SHARED`].
    owner: usize,
}

// SAFETY: the stream is Sync. The stock's cells are touched by the thread that adds only: by an
// `OwnQueue`, of which there is none on another thread, or by `Queue::own_stock`; and in a child by
// its only thread.
unsafe impl Sync for Own {}

/// A queue on the thread that adds to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnQueue<'q> {
    queue: &'q Queue,
    /// It stays on the thread.
    here: PhantomData<*const ()>,
}

impl Deref for OwnQueue<'_> {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        self.queue
    }
}

#[derive(Debug)]
struct Inner {
    /// The callbacks that have been counted and have not finished.
    segments: Segments,
    /// The position of the oldest callback that has not finished.
    cursor: Cursor,
    /// The thread that is running callbacks of this queue, as [`thread::token`]; else 0.
    runner: usize,
    /// How many callbacks `runner` has claimed, from `cursor` on.
    claimed: u64,
    /// In a hazard domain: which of the ready callbacks' objects are protected.
    scanned: Scanned,
    waits: Waits,
}

impl AtFork for Inner {}

/// In a hazard domain: which of the ready callbacks' objects are protected, as the last scan of the
/// slots found. It is valid for all callbacks that were ready before it, since an object that it
/// does not find is never protected again ([`hazptr`](crate::hazptr), [HZ-A]). Of no use in other
/// domains.
#[derive(Debug, Default)]
struct Scanned {
    /// How many callbacks, from the front, were ready before the scan and have not run.
    covers: u64,
    /// What was protected then, in ascending order; the runner has it while it runs callbacks.
    protected: Vec<usize>,
}

impl Queue {
    /// The owner of a queue that threads share which have ended or are ending.
    const SHARED: usize = 0;

    /// A queue for the calling thread.
    pub(crate) fn of_this_thread(domain: &DomainState, contents: Contents) -> Arc<Self> {
        Self::new(domain, thread::token(), contents)
    }

    /// A queue that no thread runs as its own.
    #[cfg(test)]
    pub(crate) fn of_nobody(domain: &DomainState, contents: Contents) -> Arc<Self> {
        Self::new(domain, 1, contents)
    }

    #[inline(never)]
    fn new(domain: &DomainState, owner: usize, contents: Contents) -> Arc<Self> {
        let (stream, cursor) = Stream::new();
        Arc::new(Self {
            own: Line(Own {
                stream,
                local_stock: LocalStock::new(domain.grace_periods.hazards.is_some()),
                portable: fence::chosen() == Fences::Portable,
                domain: ptr::from_ref(domain).addr(),
                owner,
            }),
            inner: Mutex::new(
                Rank::Queue,
                Inner {
                    segments: Segments::new(domain.grace_periods.sequence()),
                    cursor,
                    runner: 0,
                    claimed: 0,
                    scanned: Scanned::default(),
                    waits: Waits::default(),
                },
            ),
            counted: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            contents,
            fence: fence::Cell::new(),
            notes: Notes::default(),
        })
    }

    /// Whether it is a queue of that domain, which alone knows when its cookies are done.
    #[inline(always)]
    pub(crate) fn is_of(&self, domain: &DomainState) -> bool {
        self.own.0.domain == ptr::from_ref(domain).addr()
    }

    /// Whether threads share it which have ended or are ending.
    pub(crate) fn is_shared(&self) -> bool {
        self.own.0.owner == Self::SHARED
    }

    /// How many callbacks have ever been added, and the sum of their bytes, which wraps.
    pub(crate) fn written(&self) -> u64 {
        self.own.0.stream.written()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.own.0.stream.bytes()
    }

    /// How many of them have been counted; a hint.
    pub(super) fn counted(&self) -> u64 {
        self.counted.load(Relaxed)
    }

    /// How many have finished.
    pub(crate) fn finished(&self) -> u64 {
        // Acquire: pairs with the Release in `Locked::finish`; shows what they did [DQ-2].
        self.finished.load(Acquire)
    }

    /// The local stock, if the calling thread is the owner, or has the token of one that is gone.
    pub(super) fn own_stock(&self) -> Option<&LocalStock> {
        (thread::token() == self.own.0.owner).then_some(&self.own.0.local_stock)
    }

    /// The same in a child, whichever thread is the owner.
    ///
    /// # Panics
    /// If no child is being repaired: another thread may use it.
    pub(super) fn stock_in_child(&self) -> &LocalStock {
        forking::assert_in_child();
        &self.own.0.local_stock
    }

    pub(super) fn lock(&self) -> Locked<'_> {
        Locked { queue: self, inner: sync::lock(&self.inner) }
    }

    /// The same, if no thread holds the lock.
    pub(super) fn try_lock(&self) -> Option<Locked<'_>> {
        Some(Locked { queue: self, inner: sync::try_lock(&self.inner)? })
    }

    /// Before a `fork`: has the lock taken.
    pub(crate) fn hold<'o>(&'o self, wanted: &mut Wanted<'_, 'o>) {
        wanted.add(Rank::Queue, &self.inner);
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

impl<'q> OwnQueue<'q> {
    /// The queue at this address.
    ///
    /// # Safety
    /// It lives as long as `'q`, and is the calling thread's: no other thread adds to it.
    #[inline(always)]
    pub(crate) unsafe fn at(queue: *const Queue) -> Self {
        // SAFETY: by the contract. (Else an `Option` of the result would be tested.)
        unsafe { std::hint::assert_unchecked(!queue.is_null()) };
        // SAFETY: by the contract.
        Self { queue: unsafe { &*queue }, here: PhantomData }
    }

    /// What the thread may still add.
    #[inline(always)]
    pub(crate) fn local_stock(self) -> &'q LocalStock {
        &self.queue.own.0.local_stock
    }

    /// Adds a callback that has been charged `bytes`. Returns how many have been added by then.
    ///
    /// # Safety
    /// `kind` and `payload` fit, as [`Stream::push`] asks. Running the callback once, on any
    /// thread, after a grace period of the domain, is sound.
    #[inline(always)]
    pub(crate) unsafe fn add<P>(self, kind: &'static CallbackType, payload: P, bytes: u64) -> u64 {
        debug_assert!(bytes <= Amount::BYTES_OF_OBJECT_MAX, "more than it was charged");
        let own = &self.queue.own.0;
        // SAFETY: by the contract; only this thread adds.
        let added = unsafe { own.stream.push(kind, payload, bytes) };
        fence::light(&self.queue.fence); // [DQ-3]
        if own.portable {
            fence::full(); // here a light fence is not enough [DQ-3]
        }
        added
    }

    /// The kind of the callback that was added last, if that is known.
    #[inline]
    pub(crate) fn last_kind(self) -> Option<&'static CallbackType> {
        self.queue.own.0.stream.last_kind()
    }
}

/// A queue that threads share which have ended or are ending. The thread that borrows this mutably
/// is the one that adds; there are no such queues but those that are made here.
#[derive(Debug)]
pub(crate) struct Shared(Arc<Queue>);

impl Shared {
    pub(crate) fn new(domain: &DomainState, contents: Contents) -> Self {
        Self(Queue::new(domain, Queue::SHARED, contents))
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.0
    }

    pub(crate) fn own(&mut self) -> OwnQueue<'_> {
        // SAFETY: it lives here, and no other thread has this to change.
        unsafe { OwnQueue::at(Arc::as_ptr(&self.0)) }
    }
}

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

/// A queue that is locked.
#[derive(Debug)]
pub(crate) struct Locked<'q> {
    queue: &'q Queue,
    inner: MutexGuard<'q, Inner>,
}

impl<'q> Locked<'q> {
    pub(super) fn segments(&self) -> &Segments {
        &self.inner.segments
    }

    pub(super) fn waits(&mut self) -> &mut Waits {
        &mut self.inner.waits
    }

    pub(super) fn has_runner(&self) -> bool {
        self.inner.runner != 0
    }

    /// Waits for a notification, without the lock meanwhile.
    pub(super) fn wait(self, condvar: &Condvar) -> Self {
        Self { inner: sync::wait(condvar, self.inner), ..self }
    }

    /// Counts the callbacks that have been written by now.
    pub(super) fn count(&mut self) {
        let written = self.queue.written(); // [DS-1]
        self.inner.segments.push(written - self.queue.counted());
        self.queue.counted.store(written, Relaxed);
        self.queue.notes.bytes_counted.store(self.queue.bytes(), Relaxed);
    }

    /// Asks for a grace period on behalf of all that has been written. If another thread is in the
    /// way, and the caller does not `wait`, that stays open: returns false.
    pub(super) fn close(&mut self, domain: &DomainState, urgency: Urgency, wait: bool) -> bool {
        let request = || match wait {
            true => Some(domain.grace_periods.lock().request(urgency)),
            false => Some(domain.grace_periods.try_lock()?.request(urgency)),
        };
        //~ cookie-before-count
        self.ripen(domain);
        self.count();
        if !self.inner.segments.has_untagged() {
            return true;
        }
        //~ point batch-closed
        // The request comes after the last callback was counted [DQ-1], [GP-9].
        let Some(cookie) = request() else { return false }; //~ cookie-before-count
        // A grace period that has ended meanwhile makes room in `segments` for one more batch.
        self.ripen(domain);
        let callbacks = self.inner.segments.len();
        if self.inner.segments.accelerate(cookie) {
            trace::batch_closed(domain.grace_periods.source(), callbacks, cookie);
        }
        true
    }

    /// Marks as ready what has waited for its grace period.
    pub(super) fn ripen(&mut self, domain: &DomainState) {
        assert!(self.queue.is_of(domain), "its cookies are another domain's");
        self.inner.segments.advance(domain.grace_periods.sequence());
        //~ early-callbacks
    }

    /// Marks all as ready that has been written.
    pub(super) fn end(&mut self, domain: &Ended<'_>) {
        assert!(self.queue.is_of(domain), "another domain has ended");
        self.count();
        self.inner.segments.advance_all();
    }

    /// Has the calling thread run about `least` of the ready callbacks ([`batch::in_one_go`]).
    /// `None` if none is ready, or there is a runner.
    pub(super) fn claim(mut self, domain: &'q DomainState, least: u64) -> Option<Claimed<'q>> {
        self.ripen(domain);
        let ready = self.inner.segments.ready();
        if self.has_runner() || ready == 0 {
            return None;
        }
        self.inner.runner = thread::token();
        let mut scanned = Scanned { covers: ready, protected: Vec::new() };
        if let Some(scan) = domain.grace_periods.hazards {
            scanned = mem::take(&mut self.inner.scanned);
            if scanned.covers == 0 {
                // Without the lock, which other threads need: a scan reads the slots of all
                // threads. The last scan's result is dropped without the lock as well.
                drop(self.inner);
                // After the fence of the grace period that has made them ready [HP-1].
                scanned = Scanned { covers: ready, protected: scan() };
                self.inner = sync::lock(&self.queue.inner);
            }
        }
        let most = scanned.covers.min(GO_MAX);
        let claimed = batch::in_one_go(ready, least, BATCH).clamp(1, most);
        self.inner.claimed = claimed;
        let (queue, cursor) = (self.queue, self.inner.cursor);
        Some(Claimed { queue, domain, cursor, claimed, ran: 0, scanned, here: PhantomData })
    }

    /// Records that `ran` of the claimed callbacks have finished; the next one is at `cursor`.
    fn finish(&mut self, ran: Amount, cursor: Cursor) {
        let (inner, queue) = (&mut *self.inner, self.queue);
        inner.segments.take(ran.objects);
        // Written under the lock: no locked instruction is needed. The bytes first: who finds the
        // queue empty finds them, too. Release: [DQ-2].
        let bytes = queue.notes.bytes_finished.load(Relaxed).wrapping_add(ran.bytes);
        queue.notes.bytes_finished.store(bytes, Relaxed);
        queue.finished.store(queue.finished.load(Relaxed) + ran.objects, Release);
        let read = mem::replace(&mut inner.cursor, cursor);
        // SAFETY: two positions in this stream, `cursor` the later one; no other thread reads, and
        // no thread will read before `cursor`.
        unsafe { queue.own.0.stream.give_back(read, cursor) };
        (inner.runner, inner.claimed) = (0, 0);
    }

    /// Moves all that has been counted, in its order, to the end of another queue of the domain,
    /// where it is open. Returns how many.
    ///
    /// # Panics
    /// If a thread runs some, or some are ready: a scan that covers these would be taken for one of
    /// those that are added later.
    pub(super) fn move_to(mut self, to: OwnQueue<'_>, domain: &DomainState) -> u64 {
        assert!(!self.has_runner() && self.inner.segments.ready() == 0, "some run, or may run");
        assert!(self.queue.is_of(domain) && to.is_of(domain), "its cookies are another domain's");
        let (mut cursor, count, mut bytes) = (self.inner.cursor, self.inner.segments.len(), 0);
        for _ in 0..count {
            // SAFETY: `count` callbacks were counted and not read yet, and no other thread reads:
            // there is no runner, and the lock is held.
            let one = unsafe { cursor.next() };
            bytes = one.bytes().wrapping_add(bytes);
            // SAFETY: this thread adds to that queue; what was read here is not run here.
            unsafe { to.queue.own.0.stream.push_again(&one) };
        }
        self.inner.segments = Segments::new(domain.grace_periods.sequence());
        // Not given back: the callbacks stay charged.
        self.finish(Amount { objects: count, bytes }, cursor);
        count
    }

    /// In a child process: the thread that was running callbacks, if there was one, is gone, with
    /// those that it had claimed; and so may be one that had begun to add a callback. What these
    /// were charged is unknown: their objects may have been freed. What is left is counted. Does
    /// nothing if it is this thread that runs them.
    ///
    /// # Panics
    /// If no child is being repaired: the runner may be there.
    pub(super) fn forget_runner(&mut self) {
        forking::assert_in_child();
        //~ runner-after-fork:
        if self.inner.runner == thread::token() {
            return;
        }
        // The objects that it had found protected are gone with it.
        self.inner.scanned = Scanned::default();
        let (mut cursor, claimed) = (self.inner.cursor, self.inner.claimed);
        for _ in 0..claimed {
            // SAFETY: `claimed` callbacks were written and not read; there is no other thread.
            let _ = unsafe { cursor.next() };
        }
        self.finish(Amount { objects: claimed, bytes: 0 }, cursor);
        let left = self.queue.finished()..self.queue.written();
        let waiting = left.fold(0, |bytes: u64, _| {
            // SAFETY: so many were written and not read; as above.
            bytes.wrapping_add(unsafe { cursor.next() }.bytes())
        });
        self.queue.notes.bytes_finished.store(self.queue.bytes().wrapping_sub(waiting), Relaxed);
    }
}

/// Callbacks that the calling thread is running, without the lock.
#[derive(Debug)]
pub(super) struct Claimed<'q> {
    queue: &'q Queue,
    domain: &'q DomainState,
    /// The position of the next one.
    cursor: Cursor,
    claimed: u64,
    /// How many have been run; [`BROKEN`](Self::BROKEN) while `cursor` moves.
    ran: u64,
    scanned: Scanned,
    /// It stays on the thread, which is the queue's `runner`: a child process that has another
    /// thread only forgets what was claimed ([`Locked::forget_runner`]).
    here: PhantomData<*const ()>,
}

impl<'q> Claimed<'q> {
    const BROKEN: u64 = u64::MAX;

    pub(super) fn len(&self) -> u64 {
        self.claimed
    }

    /// How many have been run.
    pub(super) fn ran(&self) -> u64 {
        self.ran
    }

    /// Runs them, up to the `until`th; those whose objects are protected are kept. `running` is
    /// told of each before it runs.
    ///
    /// If one panics, those behind it can still be run. If the library panics at the cursor, none
    /// can.
    #[inline(always)]
    pub(super) fn run_until(&mut self, until: u64, running: &Running) {
        let (until, protected) = (until.min(self.claimed), self.scanned.protected.as_slice());
        while self.ran < until {
            let ran = mem::replace(&mut self.ran, Self::BROKEN);
            // SAFETY: claimed and not yet read.
            let one = unsafe { self.cursor.next() };
            if let Some(layout) = one.kind.memory.filter(|_| protected.is_empty()) {
                // SAFETY: claimed, ready, and read no further than this one.
                let count = unsafe { self.cursor.free_like(&one, layout, until - ran) };
                running.begin(count, one.bytes());
                self.ran = ran + count;
                continue;
            }
            running.begin(1, one.bytes());
            self.ran = ran + 1;
            //~ skip-one
            if !protected.is_empty()
                && let Some(kept) = self.domain.kept.keep_if_protected(&one, protected)
            {
                running.spend(kept);
                continue;
            }
            // SAFETY: the next one, run once; it was ready: its grace period has ended, and no slot
            // names it.
            unsafe { one.run() };
        }
    }

    /// Records that those that have been run have finished. They were charged so many `bytes`.
    ///
    /// # Panics
    /// If the library's own code has panicked: then this queue runs no more.
    pub(super) fn finish(mut self, bytes: u64) -> Locked<'q> {
        assert!(self.ran <= self.claimed, "the library has panicked, not a callback");
        self.scanned.covers -= self.ran;
        let mut locked = self.queue.lock();
        locked.inner.scanned = self.scanned;
        locked.finish(Amount { objects: self.ran, bytes }, self.cursor);
        locked
    }
}
