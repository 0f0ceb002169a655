//! Queues of callbacks that wait for grace periods.
//!
//! A thread writes callbacks into the [stream](crate::reclaim::stream) of a queue of its own: no
//! lock, no atomic read-modify-write. From time to time the thread itself or the worker *closes*
//! what has been written: counts it and asks for a grace period on its behalf. [`grace::Segments`]
//! says how many callbacks, from the front, wait for which cookie; when the cookie is done they are
//! ready and are run, a few at a time.
//!
//! **Who closes and runs, when, and how many, is decided elsewhere** ([`crate::reclaim::defer`],
//! `at_limit`, `queues`, the worker), **and cannot be unsound:** what is here hands a callback to
//! no caller. It runs those whose cookie is done, in the domain whose queue it is
//! ([`Queue::is_of`]), and each once. Only the holder of an [`OwnQueue`] adds, which does not leave
//! its thread.
//!
//! **Invariant [TQ-1]: the cookie of callbacks is asked for after they were counted**, and so after
//! they were written: the grace period begins after everything in the batch was unlinked [DQ-1].
//!
//! **Invariant [TQ-2]: one thread at a time runs the callbacks of a queue**, first in, first out;
//! so they run in order, and a queue whose count of finished callbacks has reached a mark has run
//! all that came before the mark [DQ-2]. The runner claims some under the lock, runs them without
//! it, and records under the lock how many have finished. A callback may add to this very queue,
//! which takes no lock; if it tries to run the queue, it finds a runner and does nothing.
//!
//! **Invariant [TQ-3]: what waits is charged.** A callback is admitted by
//! [`charge`](crate::reclaim::domain_state::charge) before it is written; its room is free again
//! right before it runs: a callback that queues itself again finds the room that it had.
//!
//! The callbacks of a thread that has ended move to a queue that all such threads share: see
//! `gone`, and [`queues`](super::queues).

mod gone;
#[cfg(test)]
mod tests;

pub(crate) use gone::{Ended, List};
pub(crate) use grace::batch::Wants;
#[cfg(test)]
pub(crate) use tests::add;

use std::cell::Cell;
use std::marker::PhantomData;
use std::mem;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use grace::batch::{self, RUN_CHUNK, TEND_EVERY, TEND_EVERY_HAZARD};
use grace::limit::Amount;
use grace::{Cookie, Segments, Urgency};

use crate::event::statistics::Callbacks;
use crate::event::trace;
use crate::gp::wake::Line;
use crate::os::fence::{self, Fences};
use crate::os::sync::{self, AtomicBool, AtomicU64, Condvar, Mutex, MutexGuard, Rank};
use crate::os::user_code::{self, Site};
use crate::os::{clock, thread};
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::domain_state::charge::LocalStock;
use crate::reclaim::running::running_callbacks;
use crate::reclaim::stream::{CallbackType, Cursor, Stream};

/// Callbacks in a full batch, at most; fewer in models.
pub(crate) const BATCH: u64 = if cfg!(loom) { 2 } else { batch::BATCH };

/// The same for objects while grace periods find no other reader.
pub(crate) const BATCH_ALONE: u64 = if cfg!(loom) { 2 } else { batch::BATCH_ALONE };

/// Callbacks that are claimed in one go, at most: the sum of what they were charged fits a word. A
/// sum that saturates would leave the count of finished bytes behind for ever.
const GO_MAX: u64 = u64::MAX / Amount::BYTES_OF_OBJECT_MAX;

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
    /// The thread that adds, as [`thread::token`]; or [`Self::SHARED`].
    owner: usize,
    /// Whether it holds objects or closures.
    pub(crate) contents: Contents,
    /// The owner is gone; no thread adds any more.
    orphan: AtomicBool,
    /// The owner has run callbacks itself since the worker last asked.
    tended: AtomicBool,
    pub(crate) fence: fence::Cell,
}

/// Only the holder of an [`OwnQueue`] touches this, and the thread that runs what it has added
/// itself; except that others read the counts.
#[derive(Debug)]
struct Own {
    stream: Stream,
    local_stock: LocalStock,
    /// Callbacks that had been added when [`OwnQueue::take_added`] was last called.
    taken: Cell<u64>,
    /// See [`OwnQueue::flushes`].
    flushes: Cell<u32>,
    /// Each so many additions it is time to tend the queue.
    round: u64,
    /// Whether a light fence is not enough in this process, so that `add` needs a full one.
    portable: bool,
    /// The address of the domain; see [`Queue::is_of`].
    domain: usize,
}

// SAFETY: the cells in `own` are touched by the thread that adds only: by an `OwnQueue`, of which
// there is none on another thread, or in `run` where that is the owner. The rest is atomic or
// locked.
unsafe impl Sync for Queue {}

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
    /// Threads that wait for the runner to stop.
    waiters: u32,
    /// Barriers that wait for this queue: nothing moves out of it meanwhile [TQ-5].
    barriers: u32,
    /// In a hazard domain: which of the ready callbacks' objects are protected.
    scanned: Scanned,
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
        let written = queue.written(); // [DS-1]
        self.segments.push(written - queue.counted.load(Relaxed));
        queue.counted.store(written, Relaxed);
        queue.bytes_counted.store(queue.own.0.stream.bytes(), Relaxed);
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
        self.ripen(queue, domain);
        self.count(queue);
        if !self.segments.has_untagged() {
            return true;
        }
        //~ point batch-closed
        // The request comes after the last callback was counted [DQ-1], [GP-9].
        let Some(cookie) = request() else { return false }; //~ cookie-before-count
        // A grace period that has ended meanwhile makes room in `segments` for one more batch.
        self.ripen(queue, domain);
        let callbacks = self.segments.len();
        if self.segments.accelerate(cookie) {
            trace::batch_closed(domain.grace_periods.source(), callbacks, cookie);
        }
        true
    }

    /// Marks as ready what has waited for its grace period.
    fn ripen(&mut self, queue: &Queue, domain: &DomainState) {
        assert!(queue.is_of(domain), "its cookies are another domain's");
        self.segments.advance(domain.grace_periods.sequence());
        //~ early-callbacks
    }
}

impl Queue {
    /// The owner of a queue that threads share which have ended or are ending: see `gone`.
    const SHARED: usize = 0;

    /// A queue for the calling thread.
    pub(crate) fn of_this_thread(domain: &DomainState, contents: Contents) -> Self {
        Self::new(domain, thread::token(), contents)
    }

    /// A queue that no thread runs as its own.
    #[cfg(test)]
    pub(crate) fn of_nobody(domain: &DomainState, contents: Contents) -> Self {
        Self::new(domain, 1, contents)
    }

    fn new(domain: &DomainState, owner: usize, contents: Contents) -> Self {
        let (stream, cursor) = Stream::new();
        let portable = fence::chosen() == Fences::Portable;
        let is_hazard = domain.grace_periods.hazards.is_some();
        let round = u64::from(if is_hazard { TEND_EVERY_HAZARD } else { TEND_EVERY }) + 1;
        let local_stock = LocalStock::default();
        local_stock.round_ends.set(round);
        Self {
            own: Line(Own {
                stream,
                local_stock,
                taken: Cell::new(0),
                flushes: Cell::new(0),
                round,
                portable,
                domain: ptr::from_ref(domain).addr(),
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

    /// Whether it is a queue of that domain, which alone knows when its cookies are done.
    #[inline(always)]
    pub(crate) fn is_of(&self, domain: &DomainState) -> bool {
        self.own.0.domain == ptr::from_ref(domain).addr()
    }

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
        self.finished() == self.written() // [DQ-2]
    }

    /// How many callbacks have ever been added.
    pub(crate) fn written(&self) -> u64 {
        self.own.0.stream.written()
    }

    /// How many have finished.
    pub(crate) fn finished(&self) -> u64 {
        // Acquire: pairs with the Release in `Inner::finish`; shows what they did [DQ-2].
        self.finished.load(Acquire)
    }

    /// How many were ever added and have finished, and the bytes that wait.
    pub(crate) fn counts(&self) -> Callbacks {
        // `finished` is loaded before `written`, so `run <= queued`: what happens between the two
        // loads is counted in `queued` only.
        let run = self.finished();
        let bytes_run = self.bytes_finished.load(Relaxed);
        let bytes_waiting = bytes_between(bytes_run, self.own.0.stream.bytes());
        Callbacks { queued: self.written(), run, bytes_waiting }
    }

    /// The cookie that its oldest callbacks wait for; asks for one if they are open. `None` if some
    /// are ready, or there are none; and if there is a runner, which it waits for as
    /// [`wait_for_runner`](Self::wait_for_runner) does.
    pub(crate) fn request_oldest(&self, domain: &DomainState, urgency: Urgency) -> Option<Cookie> {
        let mut inner = sync::lock(&self.inner);
        if inner.runner != 0 {
            self.wait_to_stop(inner);
            return None;
        }
        inner.ripen(self, domain);
        if inner.segments.ready() == 0 && inner.segments.awaited().is_none() {
            inner.close(self, domain, || Some(domain.grace_periods.request(urgency)));
        }
        inner.segments.awaited().filter(|_| inner.segments.ready() == 0)
    }

    /// A barrier waits for what has been added so far: until [`end_barrier`](Self::end_barrier)
    /// nothing moves out of the queue [TQ-5]. Returns how many that are.
    pub(crate) fn begin_barrier(&self) -> u64 {
        let mut inner = sync::lock(&self.inner);
        inner.barriers += 1;
        self.written()
    }

    pub(crate) fn end_barrier(&self) {
        sync::lock(&self.inner).barriers -= 1;
    }

    /// Whether the owner has run callbacks itself since the last call; clears the note. The worker
    /// then leaves the queue to the owner, which can reuse the memory that it frees.
    pub(crate) fn take_tended(&self) -> bool {
        // Relaxed: a hint; at worst the worker comes a tick later or in vain.
        self.tended.load(Relaxed) && self.tended.swap(false, Relaxed)
    }

    /// Whether threads share it which have ended or are ending.
    pub(crate) fn is_shared(&self) -> bool {
        self.owner == Self::SHARED
    }

    /// Whether its owner is gone.
    pub(crate) fn is_orphan(&self) -> bool {
        self.orphan.load(Acquire) // pairs with the Release in `mark_orphan`
    }
}

impl<'q> OwnQueue<'q> {
    /// The queue at this address.
    ///
    /// # Safety
    /// It lives as long as `'q`, and is the calling thread's: no other thread adds to it.
    #[inline(always)]
    pub(crate) unsafe fn at(queue: *const Queue) -> Self {
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

    /// Whether it is time to tend the queue, to which so many have been added: at the end of each
    /// round.
    #[inline(always)]
    pub(crate) fn ends_round(self, added: u64) -> bool {
        let own = &self.queue.own.0;
        let round_ends = &own.local_stock.round_ends;
        let ends = added >= round_ends.get();
        if ends {
            round_ends.set(added + own.round);
        }
        ends
    }

    /// The kind of the callback that was added last, if that is known.
    #[inline]
    pub(crate) fn last_kind(self) -> Option<&'static CallbackType> {
        self.own.0.stream.last_kind()
    }

    /// Whether none of its callbacks is ready or waits for a grace period: all are open.
    pub(crate) fn is_all_open(self) -> bool {
        // Relaxed, both: a hint. It is mostly the worker that counts some and asks for a grace
        // period for them; the owner, which may see an old count, looks here again at its next
        // additions.
        self.counted.load(Relaxed) == self.finished.load(Relaxed)
    }

    /// How many have been added since [`take_added`](Self::take_added).
    pub(crate) fn added(self) -> u64 {
        self.written() - self.own.0.taken.get()
    }

    /// The same, and restarts the count.
    pub(crate) fn take_added(self) -> u64 {
        let added = self.added();
        self.own.0.taken.set(self.written());
        added
    }

    /// How often the thread has flushed since that last asked for a grace period.
    pub(crate) fn flushes(&self) -> &Cell<u32> {
        &self.own.0.flushes
    }

    /// Whether its open callbacks are a [full batch](batch::is_full) of `batch`.
    pub(crate) fn is_full(self, domain: &DomainState, batch: u64) -> bool {
        let open = self.open();
        batch::is_full(open.objects, open.bytes, batch, domain.limit())
    }

    fn open(self) -> Amount {
        Amount {
            objects: self.written() - self.counted.load(Relaxed),
            bytes: bytes_between(self.bytes_counted.load(Relaxed), self.own.0.stream.bytes()),
        }
    }

    /// The thread adds no more; what is left of its local stock goes back to the domain.
    pub(crate) fn mark_orphan(self, domain: &DomainState) {
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

// ---- run ----------------------------------------------------------------------------------------

/// In a hazard domain: which of the ready callbacks' objects are protected, as the last scan of the
/// slots found. It is valid for all callbacks that were ready before it, since an object that it
/// does not find is never protected again ([`hazptr`](crate::hazptr), [HZ-A]). Empty in other
/// domains.
#[derive(Debug, Default)]
struct Scanned {
    /// How many callbacks, from the front, were ready before the scan and have not run.
    covers: u64,
    /// What was protected then, in ascending order; the runner has it while it runs callbacks.
    protected: Vec<usize>,
}

impl Inner {
    /// Records that `ran` of the claimed callbacks have finished; the next one is at `cursor`.
    fn finish(&mut self, queue: &Queue, ran: Amount, cursor: Cursor) {
        self.segments.take(ran.objects);
        // Written under the lock: no locked instruction is needed. The bytes first: who finds the
        // queue empty finds them, too. Release: [DQ-2].
        let bytes = queue.bytes_finished.load(Relaxed).wrapping_add(ran.bytes);
        queue.bytes_finished.store(bytes, Relaxed);
        queue.finished.store(queue.finished.load(Relaxed) + ran.objects, Release);
        let read = mem::replace(&mut self.cursor, cursor);
        // SAFETY: two positions in this stream, `cursor` the later one; no other thread reads, and
        // no thread will read before `cursor`.
        unsafe { queue.own.0.stream.give_back(read, cursor) };
        self.runner = 0;
        self.claimed = 0;
    }
}

impl Queue {
    /// Runs about `least` of the ready callbacks ([`batch::in_one_go`]), unless the queue has a
    /// runner. Returns how many.
    pub(crate) fn run_some(&self, domain: &DomainState, least: u64) -> u64 {
        self.run_locked(sync::lock(&self.inner), domain, least, self.is_orphan())
    }

    /// The same for the worker: none if another thread holds the lock [W-2].
    pub(crate) fn run_some_unless_busy(&self, domain: &DomainState, least: u64) -> u64 {
        let inner = sync::try_lock(&self.inner);
        // One go only (`all` is false): the worker comes back, in this turn or in the next one.
        inner.map_or(0, |inner| self.run_locked(inner, domain, least, false))
    }

    fn run_locked<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
        domain: &DomainState,
        least: u64,
        all: bool,
    ) -> u64 {
        if inner.runner != 0 {
            return 0;
        }
        let mut count = 0;
        loop {
            inner.ripen(self, domain);
            let ready = inner.segments.ready();
            if ready == 0 {
                break;
            }
            inner.runner = thread::token();
            let mut scanned = Scanned { covers: ready, protected: Vec::new() };
            if let Some(scan) = domain.grace_periods.hazards {
                scanned = mem::take(&mut inner.scanned);
                if scanned.covers == 0 {
                    // Without the lock, which other threads need: a scan reads the slots of all
                    // threads. The last scan's result is dropped without the lock as well.
                    drop(inner);
                    // After the fence of the grace period that has made them ready [HP-1].
                    scanned = Scanned { covers: ready, protected: scan() };
                    inner = sync::lock(&self.inner);
                }
            }
            let most = scanned.covers.min(GO_MAX);
            inner.claimed = batch::in_one_go(ready, least, BATCH).min(most);
            let (mut cursor, claimed) = (inner.cursor, inner.claimed);
            drop(inner);
            //~ point before-callbacks
            let ran = self.run(domain, &mut cursor, claimed, &scanned.protected);
            count += ran.objects;
            inner = sync::lock(&self.inner);
            if domain.grace_periods.hazards.is_some() {
                scanned.covers -= ran.objects;
                inner.scanned = scanned;
            }
            inner.finish(self, ran, cursor);
            // The queue of an ended thread: while this thread is its runner, no other thread can
            // run it to settle what the ended one owed. So run all that is ready, about a batch.
            if !all || count > BATCH {
                break;
            }
        }
        if inner.waiters != 0 {
            self.stopped.notify_all();
        }
        drop(inner);
        if count != 0 {
            domain.grace_periods.tell_of_room();
        }
        count
    }

    /// Runs `claimed` callbacks, from `cursor` on, without the lock; fewer if that takes too long.
    /// Objects that are `protected` are kept.
    fn run(
        &self,
        domain: &DomainState,
        cursor: &mut Cursor,
        claimed: u64,
        protected: &[usize],
    ) -> Amount {
        // `in_user` is true while a callback itself runs. The catch below is for users' panics
        // alone: if the library's own code panicked in it, the next round would go on from a cursor
        // that stands anywhere.
        let (mut panicked, in_user) = (0, &Cell::new(false));
        // Without a clock if there are few.
        let ends_ns = batch::is_timed(claimed)
            .then(|| clock::monotonic_ns().saturating_add(domain.grace_periods.tuning.run_ns()));
        let (left, made) = running_callbacks(&domain.grace_periods, |running| {
            while running.begun() < claimed {
                let until = claimed.min((running.begun() / RUN_CHUNK + 1) * RUN_CHUNK);
                let cursor = &mut *cursor;
                // Many under one catch: where one panics, the next round goes on behind it.
                let some = move || {
                    while running.begun() < until {
                        // SAFETY: claimed and not yet read.
                        let one = unsafe { cursor.next() };
                        if let Some(layout) = one.kind.memory.filter(|_| protected.is_empty()) {
                            let most = until - running.begun();
                            // SAFETY: claimed, ready, and read no further than this one.
                            let count = unsafe { cursor.free_like(&one, layout, most) };
                            running.begin(count, one.bytes());
                            continue;
                        }
                        running.begin(1, one.bytes());
                        //~ skip-one
                        if !protected.is_empty()
                            && let Some(kept) = domain.kept.keep_if_protected(&one, protected)
                        {
                            running.spend(kept);
                            continue;
                        }
                        in_user.set(true);
                        // SAFETY: the next one, run once; it was ready: its grace period has ended,
                        // and no slot names it.
                        unsafe { one.run() };
                        in_user.set(false);
                    }
                };
                if !user_code::caught(Site::Callback, some) {
                    assert!(in_user.take(), "the library has panicked, not a callback");
                    panicked += 1;
                }
                if running.begun().is_multiple_of(RUN_CHUNK)
                    && ends_ns.is_some_and(|ends_ns| clock::monotonic_ns() >= ends_ns)
                {
                    break;
                }
            }
            (running.room(), running.made.get())
        });
        if panicked != 0 {
            domain.grace_periods.counters().callbacks_panicked.fetch_add(panicked, Relaxed);
        }
        if thread::token() == self.owner && !self.is_orphan() {
            self.tended.store(true, Relaxed); // see `take_tended`
            self.own.0.local_stock.give_back(domain, left);
        } else {
            domain.charge.give_back(left); //~ lost-room
        }
        //~ uncharged-twice
        trace::callbacks_run(domain.grace_periods.source(), made.objects);
        made
    }

    /// Waits for the queue's runner, if there is one; may return before it stops. Returns whether
    /// there was one.
    pub(crate) fn wait_for_runner(&self) -> bool {
        let inner = sync::lock(&self.inner);
        let is_running = inner.runner != 0;
        if is_running {
            self.wait_to_stop(inner);
        }
        is_running
    }

    fn wait_to_stop(&self, mut inner: MutexGuard<'_, Inner>) {
        inner.waiters += 1;
        inner = sync::wait(&self.stopped, inner);
        inner.waiters -= 1;
    }

    /// How many threads wait for the runner.
    #[cfg(test)]
    pub(crate) fn waiters(&self) -> u32 {
        sync::lock(&self.inner).waiters
    }
}
