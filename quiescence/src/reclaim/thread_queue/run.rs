//! The fifth stage: ready callbacks are taken out of the queue and run, and their words and their
//! room are given back.
//!
//! One thread at a time, the runner, does that ([TQ-2]): under the lock it claims some, runs them
//! without the lock, and under the lock records how many have finished. A callback may add to this
//! very queue, which takes no lock; if it tries to run the queue, it finds a runner and does
//! nothing.

use std::sync::atomic::Ordering::{Relaxed, Release};

use grace::batch::{self, RUN_CHUNK};
use grace::limit::Amount;

use super::scanned::Scanned;
use super::{BATCH, Inner, Queue};
use crate::event::trace;
use crate::os::sync::{self, MutexGuard};
use crate::os::user_code::{self, Site};
use crate::reclaim::charge::Charged;
use crate::reclaim::running::Uncharged;
use crate::reclaim::stream::{Cursor, Run};

/// How many callbacks were run, their bytes, and how many of them panicked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ran {
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) panicked: u64,
}

impl Inner {
    /// Records that `ran` of the claimed callbacks have finished; the next one is at `cursor`.
    /// Returns what else to give back to the domain: bytes that were [`lost`](Inner::lost).
    #[must_use]
    pub(super) fn finish(&mut self, queue: &Queue, ran: Ran, cursor: Cursor) -> Amount {
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
        // SAFETY: two positions in this stream, `cursor` the later one; no other thread reads, and
        // no thread will read before `cursor`.
        unsafe { queue.own.0.stream.give_back(read, cursor) };
        self.runner = 0;
        self.claimed = 0;
        found
    }

    /// How many of the ready callbacks may be claimed now.
    fn claimable(&self, core: &Charged, queue: &Queue, ready: u64) -> u64 {
        let ready = if core.hazards { self.scanned.covered(ready) } else { ready };
        // Relaxed: written under the lock.
        self.lost.map_or(ready, |lost| ready.min(lost.finished - queue.finished.load(Relaxed)))
    }
}

impl Queue {
    /// Runs about `least` of the ready callbacks ([`batch::in_one_go`]), unless the queue has a
    /// runner. Returns how many.
    pub(crate) fn run_some(&self, core: &Charged, runner: usize, least: u64) -> u64 {
        self.run_locked(sync::lock(&self.inner), core, runner, least, self.is_orphan())
    }

    /// The same for the worker: none if another thread holds the lock [W-2].
    pub(crate) fn run_some_unless_busy(&self, core: &Charged, runner: usize, least: u64) -> u64 {
        let inner = sync::try_lock(&self.inner);
        // One go only (`all` is false): the worker comes back, in this turn or in the next one.
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
            // The queue of an ended thread: while this thread is its runner, no other thread can
            // run it to settle what the ended one owed. So run all that is ready, about a batch.
            if ready == 0 || count > BATCH || count != 0 && !all {
                break;
            }
            inner.runner = runner;
            if core.hazards && inner.scanned.is_used_up() {
                // Without the lock, which other threads need: a scan reads the slots of all
                // threads. The last scan's result is dropped without the lock as well.
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
            //~ point before-callbacks
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

    /// Runs `claimed` callbacks, from `cursor` on, without the lock; fewer if that takes too long.
    /// Objects that are `protected` are kept.
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
                // So that `ran.count` takes each multiple of RUN_CHUNK, at which the clock is read.
                let chunk = RUN_CHUNK - ran.count % RUN_CHUNK;
                let max = chunk.min(claimed - ran.count);
                // SAFETY: claimed and not yet read.
                let run = unsafe { cursor.next(max) };
                // SAFETY: the next ones, each run once; they were ready: their grace period ended.
                unsafe { self.run_next(core, &run, protected, &uncharged, &mut ran) };
            }
        });
        core.counters().callbacks_panicked.fetch_add(ran.panicked, Relaxed);
        let left = if runner == self.owner && !self.is_orphan() {
            self.tended.store(true, Relaxed); // see `take_tended`
            self.local_stock().give_back(uncharged.room())
        } else {
            uncharged.room() //~ lost-room
        };
        core.charge.0.give_back(left);
        //~ uncharged-twice
        trace::callbacks_run(core.source(), ran.count);
        ran
    }

    /// Runs the callbacks of `run`; objects that are `protected` are kept.
    ///
    /// # Safety
    /// They were read from the stream, and each is run once; their grace period has ended.
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

        //~ skip-one
        if protected.is_empty() {
            // SAFETY: by the contract.
            return unsafe { run_unprotected(run, bytes, uncharged, ran) };
        }
        for (part, is_protected) in run.parts(protected) {
            if is_protected {
                core.kept.keep(&part);
            } else {
                // SAFETY: by the contract.
                unsafe { run_unprotected(&part, bytes, uncharged, ran) };
            }
        }
    }

    /// Waits for the queue's runner, if there is one; may return before it stops. Returns whether
    /// there was one.
    pub(crate) fn wait_for_runner(&self) -> bool {
        let inner = sync::lock(&self.inner);
        let is_running = inner.runner != 0;
        if is_running {
            self.until_stopped(inner);
        }
        is_running
    }

    /// Sleeps until the runner stops; may return early.
    pub(super) fn until_stopped(&self, mut inner: MutexGuard<'_, Inner>) {
        inner.waiters += 1;
        inner = sync::wait(&self.stopped, inner);
        inner.waiters -= 1;
    }

    /// How many threads wait for the runner.
    #[cfg(test)]
    pub(crate) fn waiters(&self) -> u32 {
        sync::lock(&self.inner).waiters
    }

    /// Runs everything at once: no reader is left, except of objects that are `protected`. Returns
    /// how many.
    pub(super) fn run_all(&self, core: &Charged, protected: &[usize]) -> u64 {
        let mut ran = Ran::default();
        let mut inner = sync::lock(&self.inner);
        while self.finished.load(Relaxed) < self.own.0.stream.written() {
            let mut cursor = inner.cursor;
            drop(inner);
            let mut one = Ran::default();
            // SAFETY: one or more are left; no other thread reads: the domain ends on this thread.
            let run = unsafe { cursor.next(1) };
            // SAFETY: as above.
            unsafe { self.run_next(core, &run, protected, &Uncharged::new(), &mut one) };
            ran.count += one.count;
            inner = sync::lock(&self.inner);
            inner.count(self);
            // The domain ends: its charge does not matter any more.
            let _: Amount = inner.finish(self, one, cursor);
        }
        ran.count
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

/// When a go must end; without a clock if it has few callbacks ([`batch::is_timed`]).
struct Deadline {
    at_ns: Option<u64>,
}

impl Deadline {
    fn of(core: &Charged, callbacks: u64) -> Self {
        let run_ns = core.tuning.run_ns();
        let timed = batch::is_timed(callbacks);
        Self { at_ns: timed.then(|| crate::os::clock::monotonic_ns().saturating_add(run_ns)) }
    }

    fn is_over(&self, ran: u64) -> bool {
        ran.is_multiple_of(RUN_CHUNK)
            && ran != 0
            && self.at_ns.is_some_and(|at_ns| crate::os::clock::monotonic_ns() >= at_ns)
    }
}

/// Runs `f`, which runs callbacks of `core`; the room that they make is in `uncharged`, for them to
/// use. What a thread is running is in a thread-local, which all threads of a model share.
pub(super) fn running(core: &Charged, uncharged: &Uncharged, f: impl FnOnce()) {
    if cfg!(loom) {
        return f();
    }
    crate::reclaim::running::running_callbacks(core, uncharged, f);
}
