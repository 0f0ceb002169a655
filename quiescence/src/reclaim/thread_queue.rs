//! Queues of callbacks that wait for grace periods.
//!
//! A thread writes callbacks into the [stream](crate::reclaim::stream) of a queue of its own: no
//! lock, no atomic read-modify-write. Now and then somebody, the thread itself or the worker,
//! *closes* what has been written by then: counts it and asks for a grace period on its behalf.
//! [`grace::Segments`] says how many callbacks, from the front, wait for which cookie; when it is
//! done they are ready and are run, a few at a time. Which thread does that, and when, is said in
//! [`crate::reclaim::defer`].
//!
//! **Invariant: the cookie of callbacks is asked for after they were counted**, and so after
//! they were written: the grace period begins after everything in the batch was unlinked [DQ-1].
//!
//! **Invariant: one thread at a time runs the callbacks of a queue**, first in, first out; so
//! they run in order, and a queue whose count of finished callbacks has reached a mark has run all
//! that came before it [DQ-2].
//!
//! **Invariant: what waits is charged.** A callback is admitted by [`crate::reclaim::charge`]
//! before it is written; what it was charged is free again right before it runs: a callback that
//! queues itself anew finds the room that it had.
//!
//! What a thread that ends leaves behind moves to a queue that all such threads share: see `merge`.

mod barrier;
#[cfg(not(loom))]
mod forked;
mod list;
mod merge;
mod run;
mod scanned;

pub(crate) use grace::batch::Wants;

#[cfg(not(loom))]
pub(crate) use barrier::drain;
#[cfg(not(loom))]
pub(crate) use forked::{Held, HeldQueue, HeldShared};
pub(crate) use list::Queues;
use run::{Deadline, running};
use scanned::Scanned;

use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use grace::batch::{self, RUN_CHUNK, TEND_EVERY};
use grace::limit::Amount;
use grace::{Cookie, Segments, Urgency};

use crate::chaos::{self, Mutant, Point};
use crate::event::trace;
use crate::gp::gp_words::Line;
use crate::os::fence::{self, Fences};
use crate::os::sync::{self, AtomicBool, AtomicU64, Condvar, Mutex, MutexGuard, Rank};
use crate::os::user_code::{self, Site};
use crate::reclaim::charge::{Charged, LocalStock};
use crate::reclaim::running::Uncharged;
use crate::reclaim::stream::{CallbackType, Cursor, Run, Stream};

/// Callbacks in a full batch, at most; fewer in models.
pub(crate) const BATCH: u64 = if cfg!(loom) { 2 } else { batch::BATCH };

/// The same for objects while grace periods find no other reader.
pub(crate) const BATCH_ALONE: u64 = if cfg!(loom) { 2 } else { batch::BATCH_ALONE };

/// The callbacks of one thread in one domain.
#[derive(Debug)]
pub(crate) struct Queue {
    own: Line<Own>,
    inner: Mutex<Inner>,
    /// Tells those who wait that the thread that ran callbacks has stopped.
    stopped: Condvar,
    /// Callbacks that have been counted: `Inner::counted`, for the owner to look at.
    counted: AtomicU64,
    /// Bytes that had been added by then; about, where that was in the midst of an addition.
    bytes_counted: AtomicU64,
    /// Callbacks that have finished, and their bytes. Written under the lock.
    finished: AtomicU64,
    bytes_finished: AtomicU64,
    /// The thread that adds, as [`crate::os::thread::token`]; 0 for the shared ones.
    owner: usize,
    contents: Contents,
    /// That thread is gone; no thread adds any more.
    orphan: AtomicBool,
    /// It has run callbacks itself since the worker last asked.
    tended: AtomicBool,
    pub(crate) fence: fence::Cell,
}

/// What only the thread that adds touches; but others read the counts.
#[derive(Debug)]
struct Own {
    stream: Stream,
    /// Bytes of the callbacks that have been added.
    bytes: AtomicU64,
    local_stock: LocalStock,
    until_tend: Cell<u32>,
    /// Callbacks that had been added when [`Queue::take_added`] was last called.
    taken: Cell<u64>,
    /// Whether this process has light fences only in name.
    portable: bool,
}

// SAFETY: the cells in `own` are touched by the thread that adds only: the owner, or the thread
// that holds the lock of `Queues::shared`. The rest is atomic or locked.
unsafe impl Sync for Queue {}

#[derive(Debug)]
struct Inner {
    /// Those that have been counted and have not finished.
    segments: Segments,
    /// Callbacks that `segments` has been told of, ever.
    counted: u64,
    /// Where the oldest callback that has not been taken out stands.
    cursor: Cursor,
    /// The thread that is running callbacks of this queue, as [`crate::os::thread::token`]; else 0.
    runner: usize,
    /// How many it has taken, from `cursor` on.
    claimed: u64,
    /// Threads that wait for the runner to stop.
    waiters: u32,
    /// Barriers that wait for what is in here: nothing moves away meanwhile; see `barrier`.
    barriers: u32,
    /// In a hazard domain: what is protected of those that are ready.
    scanned: Scanned,
    /// In a child process: what is known of the bytes that were lost.
    lost: Option<Lost>,
}

/// Callbacks of a child process that a fork has taken away while they were run, or in the midst of
/// being added: how many bytes each was charged no thread can say, but all of them together.
#[derive(Clone, Copy, Debug)]
struct Lost {
    /// Once so many have finished...
    finished: u64,
    /// ...it is so many bytes.
    bytes: u64,
}

/// What a queue has: each thread has one of either sort in a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Retired objects, which their thread frees itself.
    Objects,
    /// Closures, which the worker runs.
    Closures,
}

/// Bytes added since others were, by counts that wrap: nothing, if more have finished than were
/// added.
fn bytes_between(finished: u64, added: u64) -> u64 {
    added.wrapping_sub(finished).cast_signed().max(0).cast_unsigned()
}

/// What came of running callbacks.
#[derive(Clone, Copy, Debug, Default)]
struct Ran {
    count: u64,
    bytes: u64,
    panicked: u64,
}

impl Inner {
    /// Counts what has been written by now.
    fn count(&mut self, queue: &Queue) {
        let written = queue.own.0.stream.written(); // [DS-1]
        self.segments.push(written - self.counted);
        self.counted = written;
        queue.counted.store(written, Relaxed);
        queue.bytes_counted.store(queue.own.0.bytes.load(Relaxed), Relaxed);
    }

    /// Asks for a grace period on behalf of all that has been written.
    fn close(&mut self, queue: &Queue, core: &Charged, urgency: Urgency) {
        self.close_with(queue, core, || Some(core.request(urgency)));
    }

    /// The same by `request`, which may give no cookie: then what has been written stays open.
    /// Returns whether nothing is open.
    fn close_with(
        &mut self,
        queue: &Queue,
        core: &Charged,
        request: impl Fn() -> Option<Cookie>,
    ) -> bool {
        let early = if chaos::mutant(Mutant::CookieBeforeCount) { request() } else { None };
        self.ripen(core);
        self.count(queue);
        if !self.segments.has_untagged() {
            return true;
        }
        chaos::point(Point::BatchClosed);
        // The request comes after the last callback was counted [DQ-1], [GP-9].
        let Some(cookie) = early.or_else(request) else { return false };
        // What has ended meanwhile makes room for one more batch.
        self.ripen(core);
        let callbacks = self.segments.len();
        if self.segments.accelerate(cookie) {
            trace::batch_closed(core.source(), callbacks, cookie);
        }
        true
    }

    /// Tells what has waited long enough.
    fn ripen(&mut self, core: &Charged) {
        self.segments.advance(core.sequence());
        if chaos::mutant(Mutant::EarlyCallbacks) {
            self.segments.advance_all();
        }
    }

    /// So many of those that were taken out have finished; the others stand where `cursor` is.
    /// Returns what is to be given back to the domain besides.
    #[must_use]
    fn finish(&mut self, queue: &Queue, ran: Ran, cursor: Cursor) -> Amount {
        self.segments.take(ran.count);
        // Written under the lock: no locked instruction is needed. Release: [DQ-2].
        let finished = queue.finished.load(Relaxed) + ran.count;
        queue.finished.store(finished, Release);
        let mut bytes = queue.bytes_finished.load(Relaxed).wrapping_add(ran.bytes);
        let mut found = Amount::NONE;
        if let Some(lost) = self.lost.take_if(|lost| lost.finished == finished) {
            found.bytes = lost.bytes.wrapping_sub(bytes);
            bytes = lost.bytes;
        }
        queue.bytes_finished.store(bytes, Relaxed);
        let read = std::mem::replace(&mut self.cursor, cursor);
        // SAFETY: the stream's own, older and younger; no other thread reads, and no thread goes
        // back.
        unsafe { queue.own.0.stream.give_back(read, cursor) };
        self.runner = 0;
        self.claimed = 0;
        found
    }

    /// In a child process: the thread that was running callbacks is gone with what it had taken
    /// out. What that was charged is free again as far as it is known without looking at objects
    /// that may be gone; see [`Lost`].
    #[cfg(not(loom))]
    fn forget_runner(&mut self, queue: &Queue) {
        // What it had found protected has gone with it.
        self.scanned = Scanned::default();
        let mut cursor = self.cursor;
        let mut lost = Ran::default();
        while lost.count < self.claimed {
            // SAFETY: so many were written and not read, and there is no other thread.
            let run = unsafe { cursor.next(self.claimed - lost.count) };
            lost.count += run.count;
            lost.bytes += run.kind.bytes.map_or(0, |bytes| bytes * run.count);
        }
        // What is charged is counted anew after this.
        let _: Amount = self.finish(queue, lost, cursor);
    }

    /// In a child process: see [`Lost`].
    #[cfg(not(loom))]
    fn count_lost(&mut self, queue: &Queue) {
        let (own, finished) = (&queue.own.0, queue.finished.load(Relaxed));
        let all = Lost { finished: own.stream.written(), bytes: own.bytes.load(Relaxed) };
        if all.finished == finished {
            queue.bytes_finished.store(all.bytes, Relaxed);
        }
        self.lost = (all.finished != finished).then_some(all);
    }

    /// How many may be run in one go.
    fn claimable(&self, core: &Charged, queue: &Queue, ready: u64) -> u64 {
        let ready = if core.hazards { self.scanned.covered(ready) } else { ready };
        // Relaxed: written under the lock.
        self.lost.map_or(ready, |lost| ready.min(lost.finished - queue.finished.load(Relaxed)))
    }
}

impl Queue {
    pub(crate) fn new(core: &Charged, owner: usize, contents: Contents) -> Self {
        let (stream, cursor) = Stream::new();
        let portable = fence::chosen() == Fences::Portable;
        Self {
            own: Line(Own {
                stream,
                bytes: AtomicU64::new(0),
                local_stock: LocalStock::new(),
                until_tend: Cell::new(TEND_EVERY),
                taken: Cell::new(0),
                portable,
            }),
            inner: Mutex::new(
                Rank::Queue,
                Inner {
                    segments: Segments::new(core.sequence()),
                    counted: 0,
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

    // ---- the thread that
    // adds -----------------------------------------------------------------------

    /// What it is for.
    pub(crate) fn contents(&self) -> Contents {
        self.contents
    }

    /// What its thread may still add. The owner's.
    pub(crate) fn local_stock(&self) -> &LocalStock {
        &self.own.0.local_stock
    }

    /// Adds a callback that has been admitted with so many bytes. Returns whether it is time to
    /// look after the queue.
    ///
    /// # Safety
    /// The caller is the thread that adds; `kind` and `payload` fit, as [`Stream::push`] asks. To
    /// run the callback once, on any thread, once readers have let go, must be sound.
    #[inline]
    pub(crate) unsafe fn add<P>(
        &self,
        kind: &'static CallbackType,
        payload: P,
        bytes: u64,
    ) -> bool {
        let own = &self.own.0;
        // Relaxed: the owner's own.
        own.bytes.store(own.bytes.load(Relaxed).wrapping_add(bytes), Relaxed);
        // SAFETY: by the contract.
        unsafe { own.stream.push(kind, payload) };
        fence::light(&self.fence); // [DQ-3]
        if own.portable {
            fence::full(); // the light fence of this process [DQ-3]
        }
        match own.until_tend.get() {
            0 => {
                own.until_tend.set(TEND_EVERY);
                true
            }
            left => {
                own.until_tend.set(left - 1);
                false
            }
        }
    }

    /// The kind of the callback that was added last, if that is known. The owner's.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn last_kind(&self) -> Option<&'static CallbackType> {
        self.own.0.stream.last_kind()
    }

    /// How many have been added since [`take_added`](Self::take_added). The owner's.
    #[cfg(not(loom))]
    pub(crate) fn added(&self) -> u64 {
        self.own.0.stream.written() - self.own.0.taken.get()
    }

    /// The same, and begins to count anew. The owner's.
    #[cfg(not(loom))]
    pub(crate) fn take_added(&self) -> u64 {
        let added = self.added();
        self.own.0.taken.set(self.own.0.stream.written());
        added
    }

    /// Whether so many are open, or as much as the limit has room for. For the owner.
    pub(crate) fn is_full(&self, core: &Charged, batch: u64) -> bool {
        let (own, limit) = (&self.own.0, core.limit());
        let open = own.stream.written() - self.counted.load(Relaxed);
        let bytes = bytes_between(self.bytes_counted.load(Relaxed), own.bytes.load(Relaxed));
        batch::is_full(open, bytes, batch, limit)
    }

    // ---- everybody ------------------------------------------------------------------------------

    /// Asks for a grace period on behalf of all that is open.
    pub(crate) fn close(&self, core: &Charged, urgency: Urgency) {
        sync::lock(&self.inner).close(self, core, urgency);
    }

    /// The same for the worker, which waits for no lock [W-2]. Returns whether it is done.
    #[cfg(not(loom))]
    pub(crate) fn close_unless_busy(&self, core: &Charged, urgency: Urgency) -> bool {
        let Some(mut inner) = sync::try_lock(&self.inner) else { return false };
        inner.close_with(self, core, || core.request_unless_busy(urgency))
    }

    /// Runs a few of those that are ready, `least` or so, unless somebody is doing so. Returns how
    /// many.
    pub(crate) fn run_some(&self, core: &Charged, runner: usize, least: u64) -> u64 {
        self.run_locked(sync::lock(&self.inner), core, runner, least, self.is_orphan())
    }

    /// The same for the worker: none where another thread holds the lock [W-2].
    #[cfg(not(loom))]
    pub(crate) fn run_some_unless_busy(&self, core: &Charged, runner: usize, least: u64) -> u64 {
        let inner = sync::try_lock(&self.inner);
        // Once: it comes back, in this turn or in the next one.
        inner.map_or(0, |inner| self.run_locked(inner, core, runner, least, false))
    }

    fn run_locked<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
        core: &Charged,
        runner: usize,
        least: u64,
        all: bool,
    ) -> u64 {
        if inner.runner != 0 {
            return 0;
        }
        let mut count = 0;
        loop {
            inner.ripen(core);
            let ready = inner.segments.ready();
            // No thread may come after us to a queue whose thread is gone while we are at it, to
            // pay what it owed: so all that is ready is ours, within a batch.
            if ready == 0 || count > BATCH || count != 0 && !all {
                break;
            }
            inner.runner = runner;
            #[cfg(not(loom))]
            if core.hazards && inner.scanned.is_used_up() {
                // Without the lock, which others want for a moment: it looks at the slots of all
                // threads. What the last one found is given back without it as well.
                let last = std::mem::take(&mut inner.scanned);
                drop(inner);
                drop(last);
                let scanned = Scanned::of_now(ready);
                inner = sync::lock(&self.inner);
                inner.scanned = scanned;
            }
            let claimable = inner.claimable(core, self, ready);
            inner.claimed = batch::in_one_go(ready, least, BATCH).min(claimable);
            let protected = inner.scanned.take_protected();
            let (mut cursor, claimed) = (inner.cursor, inner.claimed);
            drop(inner);
            chaos::point(Point::BeforeCallbacks);
            let ran = self.run(core, &mut cursor, claimed, runner, &protected);
            count += ran.count;
            inner = sync::lock(&self.inner);
            inner.scanned.ran(ran.count, protected);
            core.charge.0.give_back(inner.finish(self, ran, cursor));
        }
        if inner.waiters != 0 {
            self.stopped.notify_all();
        }
        drop(inner);
        if count != 0 {
            core.tell_of_room();
        }
        count
    }

    /// Runs so many callbacks, from `cursor` on, without the lock; fewer if that takes too long.
    /// What is `protected` is kept.
    fn run(
        &self,
        core: &Charged,
        cursor: &mut Cursor,
        claimed: u64,
        runner: usize,
        protected: &[usize],
    ) -> Ran {
        let mut ran = Ran::default();
        let uncharged = Uncharged::new();
        let deadline = Deadline::of(core, claimed);
        running(core, &uncharged, || {
            while ran.count < claimed && !deadline.is_over(ran.count) {
                // So that it comes by each number that the clock is looked at.
                let chunk = RUN_CHUNK - ran.count % RUN_CHUNK;
                let max = chunk.min(claimed - ran.count);
                // SAFETY: claimed and not yet read.
                let run = unsafe { cursor.next(max) };
                // SAFETY: the next ones, and each is run once; readers have let go, since they
                // were ready.
                unsafe { self.run_next(core, &run, protected, &uncharged, &mut ran) };
            }
        });
        core.counters().callbacks_panicked.fetch_add(ran.panicked, Relaxed);
        let left = if runner == self.owner && !self.is_orphan() {
            self.tended.store(true, Relaxed); // see `is_tended`
            self.local_stock().give_back(uncharged.room())
        } else {
            let lost = chaos::mutant(Mutant::LostRoom);
            if lost { Amount::NONE } else { uncharged.room() }
        };
        core.charge.0.give_back(left);
        if chaos::mutant(Mutant::UnchargedTwice) {
            core.charge.0.give_back(left);
        }
        trace::callbacks_run(core.source(), ran.count);
        ran
    }

    /// Runs the next callback, or the next few of a plain kind; what is `protected` is kept.
    ///
    /// # Safety
    /// They were read from the stream, and each is run once; readers have let go.
    unsafe fn run_next(
        &self,
        core: &Charged,
        run: &Run,
        protected: &[usize],
        uncharged: &Uncharged,
        ran: &mut Ran,
    ) {
        let bytes = run.bytes_each();
        ran.count += run.count;
        ran.bytes = ran.bytes.wrapping_add(bytes.wrapping_mul(run.count)); // as `Own::bytes` does
        if chaos::mutant(Mutant::SkipOne) && ran.count == run.count {
            return;
        }
        if protected.is_empty() {
            // SAFETY: by the contract.
            return unsafe { run_unprotected(run, bytes, uncharged, ran) };
        }
        #[cfg(not(loom))]
        for (part, is_protected) in run.parts(protected) {
            if is_protected {
                core.kept.keep(&part);
            } else {
                // SAFETY: by the contract.
                unsafe { run_unprotected(&part, bytes, uncharged, ran) };
            }
        }
        #[cfg(loom)]
        let _ = core;
    }

    /// Waits for the thread that is running callbacks, if there is one; may return before it stops.
    /// Returns whether there was one.
    pub(crate) fn wait_for_runner(&self) -> bool {
        let inner = sync::lock(&self.inner);
        let is_running = inner.runner != 0;
        if is_running {
            self.until_stopped(inner);
        }
        is_running
    }

    /// Sleeps until the thread that is running callbacks stops; may return early.
    fn until_stopped(&self, mut inner: MutexGuard<'_, Inner>) {
        inner.waiters += 1;
        inner = sync::wait(&self.stopped, inner);
        inner.waiters -= 1;
    }

    /// How many threads wait for the one that is running callbacks.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn waiters(&self) -> u32 {
        sync::lock(&self.inner).waiters
    }

    /// Runs everything at once: there is no reader left, but for what is `protected`. Returns how
    /// many.
    fn run_all(&self, core: &Charged, protected: &[usize]) -> u64 {
        let mut ran = Ran::default();
        let mut inner = sync::lock(&self.inner);
        while self.finished.load(Relaxed) < self.own.0.stream.written() {
            let mut cursor = inner.cursor;
            drop(inner);
            let mut one = Ran::default();
            // SAFETY: one is left, and no other thread reads: the domain ends on this thread.
            let run = unsafe { cursor.next(1) };
            // SAFETY: as above.
            unsafe { self.run_next(core, &run, protected, &Uncharged::new(), &mut one) };
            ran.count += one.count;
            inner = sync::lock(&self.inner);
            inner.count(self);
            // No thread is charged any more.
            let _: Amount = inner.finish(self, one, cursor);
        }
        ran.count
    }

    /// What the worker is to do here.
    pub(crate) fn wants(&self) -> Wants {
        let inner = sync::lock(&self.inner);
        Wants::of(&inner.segments, self.is_empty())
    }

    /// The same for the worker: where another thread holds the lock it is to come back [W-2].
    pub(crate) fn wants_unless_busy(&self) -> Wants {
        let Some(inner) = sync::try_lock(&self.inner) else { return Wants::Looks };
        Wants::of(&inner.segments, self.is_empty())
    }

    /// Whether all that was added has run.
    pub(crate) fn is_empty(&self) -> bool {
        // What has finished first: it is never more than what was added.
        self.finished.load(Acquire) == self.own.0.stream.written() // [DQ-2]
    }

    /// What waits here, and what the local stock has: with no other thread about.
    #[cfg(not(loom))]
    fn charged(&self) -> Amount {
        let bytes = self.own.0.bytes.load(Relaxed);
        let waiting = Amount {
            objects: self.own.0.stream.written() - self.finished.load(Relaxed),
            bytes: bytes_between(self.bytes_finished.load(Relaxed), bytes),
        };
        waiting.plus(self.local_stock().stock().left())
    }

    /// Whether its thread has run callbacks itself since this was last asked: what it frees, it can
    /// use again. For the worker.
    #[cfg(not(loom))]
    pub(crate) fn is_tended(&self) -> bool {
        // Relaxed: a hint; at worst the worker comes a tick later or for nothing.
        self.tended.load(Relaxed) && self.tended.swap(false, Relaxed)
    }

    fn is_orphan(&self) -> bool {
        self.orphan.load(Acquire) // pairs with the Release in `mark_orphan`
    }

    /// The owner adds no more, and takes nothing back.
    pub(crate) fn mark_orphan(&self, core: &Charged) {
        let left = self.local_stock().empty();
        if !chaos::mutant(Mutant::LostLocalStock) {
            core.charge.0.give_back(left);
        }
        // Release: pairs with the Acquire in `is_orphan`; what was added comes before.
        self.orphan.store(true, chaos::release_unless(Mutant::RelaxedOrphan));
    }
}

/// Runs these callbacks.
///
/// # Safety
/// As [`Queue::run_next`].
unsafe fn run_unprotected(run: &Run, bytes: u64, uncharged: &Uncharged, ran: &mut Ran) {
    uncharged.begin_run(bytes);
    while uncharged.progress.begun() < run.count {
        // SAFETY: by the contract.
        let call =
            || unsafe { (run.kind.run)(run.kind, run.payload, run.count, &uncharged.progress) };
        ran.panicked += u64::from(!user_code::caught(Site::Callback, call));
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let inner = sync::lock(&self.inner);
        // SAFETY: no thread writes or reads any more. Its callbacks have run: it is empty, or the
        // domain ended.
        unsafe { inner.cursor.free() };
    }
}
