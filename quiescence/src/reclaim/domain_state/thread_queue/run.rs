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

use super::{BATCH, Inner, Queue};
use crate::event::trace;
use crate::os::sync::{self, MutexGuard};
use crate::os::user_code::{self, Site};
use crate::os::{clock, thread};
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::running::{RoomMade, running_callbacks};
use crate::reclaim::stream::{Cursor, Run};

/// In a hazard domain: which of the ready callbacks' objects are protected, as the last scan of the
/// slots found. It is valid for all callbacks that were ready before it, since an object that it
/// does not find is never protected again ([`hazptr`](crate::hazptr), [HZ-A]). Empty in other
/// domains.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    /// How many callbacks, from the front, were ready before the scan and have not run.
    covers: u64,
    /// What was protected then, in ascending order; the runner has it while it runs callbacks.
    protected: Vec<usize>,
}

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
    fn claimable(&self, domain: &DomainState, queue: &Queue, ready: u64) -> u64 {
        let is_scanned = domain.grace_periods.hazards.is_some();
        let ready = if is_scanned { ready.min(self.scanned.covers) } else { ready };
        // Relaxed: written under the lock.
        self.lost.map_or(ready, |lost| ready.min(lost.finished - queue.finished.load(Relaxed)))
    }
}

impl Queue {
    /// Runs about `least` of the ready callbacks ([`batch::in_one_go`]), unless the queue has a
    /// runner. Returns how many.
    pub(crate) fn run_some(&self, domain: &DomainState, runner: usize, least: u64) -> u64 {
        self.run_locked(sync::lock(&self.inner), domain, runner, least, self.is_orphan())
    }

    /// The same for the worker: none if another thread holds the lock [W-2].
    pub(crate) fn run_some_unless_busy(
        &self,
        domain: &DomainState,
        runner: usize,
        least: u64,
    ) -> u64 {
        let inner = sync::try_lock(&self.inner);
        // One go only (`all` is false): the worker comes back, in this turn or in the next one.
        inner.map_or(0, |inner| self.run_locked(inner, domain, runner, least, false))
    }

    fn run_locked<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
        domain: &DomainState,
        runner: usize,
        least: u64,
        all: bool,
    ) -> u64 {
        if inner.runner != 0 {
            return 0;
        }
        let mut count = 0;
        loop {
            inner.ripen(domain);
            let ready = inner.segments.ready();
            // The queue of an ended thread: while this thread is its runner, no other thread can
            // run it to settle what the ended one owed. So run all that is ready, about a batch.
            if ready == 0 || count > BATCH || count != 0 && !all {
                break;
            }
            inner.runner = runner;
            if let Some(scan) = domain.grace_periods.hazards
                && inner.scanned.covers == 0
            {
                // Without the lock, which other threads need: a scan reads the slots of all
                // threads. The last scan's result is dropped without the lock as well.
                let last = std::mem::take(&mut inner.scanned);
                drop(inner);
                drop(last);
                // After the fence of the grace period that has made them ready [HP-1].
                let protected = scan();
                inner = sync::lock(&self.inner);
                inner.scanned = Scanned { covers: ready, protected };
            }
            let claimable = inner.claimable(domain, self, ready);
            inner.claimed = batch::in_one_go(ready, least, BATCH).min(claimable);
            let protected = std::mem::take(&mut inner.scanned.protected);
            let (mut cursor, claimed) = (inner.cursor, inner.claimed);
            drop(inner);
            //~ point before-callbacks
            let ran = self.run(domain, &mut cursor, claimed, runner, &protected);
            count += ran.count;
            inner = sync::lock(&self.inner);
            // Nothing is covered where no hazard pointers are, and in a child of a fork.
            let covers = inner.scanned.covers.saturating_sub(ran.count);
            inner.scanned = Scanned { covers, protected };
            domain.charge.give_back(inner.finish(self, ran, cursor));
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
        runner: usize,
        protected: &[usize],
    ) -> Ran {
        let mut ran = Ran::default();
        let room_made = RoomMade::default();
        // Without a clock if there are few.
        let ends_ns = batch::is_timed(claimed)
            .then(|| clock::monotonic_ns().saturating_add(domain.grace_periods.tuning.run_ns()));
        let is_over = |ran: u64| {
            ran.is_multiple_of(RUN_CHUNK)
                && ran != 0
                && ends_ns.is_some_and(|ends_ns| clock::monotonic_ns() >= ends_ns)
        };
        running_callbacks(&domain.grace_periods, &room_made, || {
            while ran.count < claimed && !is_over(ran.count) {
                // So that `ran.count` takes each multiple of RUN_CHUNK, at which the clock is read.
                let chunk = RUN_CHUNK - ran.count % RUN_CHUNK;
                let max = chunk.min(claimed - ran.count);
                // SAFETY: claimed and not yet read.
                let run = unsafe { cursor.next(max) };
                // SAFETY: the next ones, each run once; they were ready: their grace period ended.
                unsafe { self.run_next(domain, &run, protected, &room_made, &mut ran) };
            }
        });
        domain.grace_periods.counters().callbacks_panicked.fetch_add(ran.panicked, Relaxed);
        let left = room_made.amount();
        if runner == self.owner && !self.is_orphan() {
            self.tended.store(true, Relaxed); // see `take_tended`
            self.local_stock().give_back(domain, left);
        } else {
            domain.charge.give_back(left); //~ lost-room
        }
        //~ uncharged-twice
        trace::callbacks_run(domain.grace_periods.source(), ran.count);
        ran
    }

    /// Runs the callbacks of `run`; objects that are `protected` are kept.
    ///
    /// # Safety
    /// They were read from the stream, and each is run once; their grace period has ended.
    unsafe fn run_next(
        &self,
        domain: &DomainState,
        run: &Run,
        protected: &[usize],
        room_made: &RoomMade,
        ran: &mut Ran,
    ) {
        let bytes = run.bytes_each();
        ran.count += run.count;
        ran.bytes = ran.bytes.wrapping_add(bytes.wrapping_mul(run.count)); // as `Own::bytes` does

        //~ skip-one
        if protected.is_empty() {
            // SAFETY: by the contract.
            return unsafe { run_unprotected(run, bytes, room_made, ran) };
        }
        for (part, is_protected) in run.parts(protected) {
            if is_protected {
                domain.kept.keep(&part);
            } else {
                // SAFETY: by the contract.
                unsafe { run_unprotected(&part, bytes, room_made, ran) };
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

    /// At the end of a domain, which has no reader left: runs what has been added, or about a batch
    /// of it. Returns how many.
    pub(super) fn run_all(&self, domain: &DomainState) -> u64 {
        let mut inner = sync::lock(&self.inner);
        inner.count(self);
        inner.segments.advance_all();
        self.run_locked(inner, domain, thread::token(), u64::MAX, true)
    }
}

/// Runs these callbacks.
///
/// # Safety
/// As [`Queue::run_next`].
unsafe fn run_unprotected(run: &Run, bytes: u64, room_made: &RoomMade, ran: &mut Ran) {
    room_made.begin_run(bytes);
    while room_made.progress.begun() < run.count {
        // SAFETY: by the contract.
        let call =
            || unsafe { (run.kind.run)(run.kind, run.payload, run.count, &room_made.progress) };
        ran.panicked += u64::from(!user_code::caught(Site::Callback, call));
    }
}
