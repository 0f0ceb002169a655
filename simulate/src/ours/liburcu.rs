//! liburcu's grace periods and its `call_rcu` thread, by its published algorithm (M. Desnoyers et
//! al., User-Level Implementations of Read-Copy Update, IEEE TPDS 23(2), 2012; userspace-rcu 0.14,
//! flavour `memb`): a fence, a pass over the readers, the flip of the phase, a second pass over
//! those that were inside, a fence. A pass that finds readers inside scans a hundred times with a
//! `pause` in between, and then sleeps until a reader leaves. Updaters that arrive while one is
//! queued join it, spin for a while, and sleep. The `call_rcu` thread takes all queued callbacks,
//! waits for a grace period, runs them, and naps for 10 ms.
//!
//! The numbers here are liburcu's, not the library's.

use std::mem;

use super::costs::ns;
use super::driving::GP;
use super::readers::{Kind, ReaderId};
use super::report::Spending;
use super::world::{Me, ThreadId, World};
use crate::events::Time;

/// `RCU_QS_ACTIVE_ATTEMPTS`: looks of a pass before it sleeps.
const ATTEMPTS: u32 = 100;
/// `URCU_WAIT_ATTEMPTS`: pauses of an updater that has joined, before it sleeps.
const WAIT_ATTEMPTS: u32 = 1_000;
/// So many pauses are taken at once here.
const PAUSES: u32 = 25;
/// The nap of the `call_rcu` thread.
const NAP_NS: Time = 10_000_000;

/// What its updaters share.
#[derive(Clone, Debug, Default)]
pub(super) struct Liburcu {
    /// `rcu_gp_lock` is held.
    locked: bool,
    /// Those who sleep for it.
    lockers: Vec<ThreadId>,
    /// Updaters that have joined the next grace period; the first of them leads it.
    queued: Vec<ThreadId>,
    /// Those of the one in progress.
    taken: Vec<ThreadId>,
    began: Time,
    flipped: Time,
    /// Readers that were inside when the first pass looked.
    snapshot: Vec<ReaderId>,
    /// Whether the `call_rcu` thread sleeps for want of callbacks.
    call_thread_waits: bool,
}

impl World<'_> {
    /// Whether the second pass waits for this reader.
    pub(super) fn is_waited_for(&self, id: ReaderId) -> bool {
        let reader = &self.readers[id];
        reader.place.is_some() && reader.is_inside_since_before(self.liburcu.flipped)
    }

    /// Draws what all readers are at. Returns how many have written since.
    pub(super) fn look_at_all(&mut self) -> u64 {
        let now = self.events.now();
        let mut written = 0;
        for &reader in &self.domain.registered {
            self.readers[reader].advance(now);
            written += u64::from(self.readers[reader].take_written());
        }
        written
    }

    /// The readers that were inside when the first pass scanned them.
    fn first_pass(&mut self) {
        self.counted.scans += 1;
        self.look_at_all();
        let now = self.events.now();
        let is_inside = |reader: &ReaderId| self.readers[*reader].is_inside_since_before(now + 1);
        self.liburcu.snapshot = self.domain.registered.iter().copied().filter(is_inside).collect();
    }

    /// Scans those that were inside. Returns how many still are.
    fn second_pass(&mut self) -> usize {
        self.counted.scans += 1;
        let now = self.events.now();
        let mut snapshot = mem::take(&mut self.liburcu.snapshot);
        (self.domain.sleeper, self.domain.marks) = (None, 0);
        snapshot.iter().for_each(|&reader| self.readers[reader].marked = false);
        snapshot.retain(|&reader| {
            self.readers[reader].advance(now);
            self.is_waited_for(reader)
        });
        self.liburcu.snapshot = snapshot;
        self.liburcu.snapshot.len()
    }

    /// The driver is about to sleep until some reader leaves its outermost section, one of those
    /// or another: that takes the -1 away from `gp.futex`. False if none is left.
    fn mark_readers(&mut self, id: ThreadId) -> bool {
        self.counted.driver_sleeps += 1;
        self.look_at_all();
        for reader in self.liburcu.snapshot.clone() {
            if self.is_waited_for(reader) {
                self.readers[reader].marked = true;
                self.domain.marks += 1;
            }
        }
        if self.domain.marks != 0 {
            self.domain.sleeper = Some(id);
        }
        self.domain.marks != 0
    }

    /// In how long the first of the readers does.
    fn first_leaves(&mut self) -> Option<Time> {
        let readers = 0..self.domain.registered.len();
        readers.filter_map(|at| self.leaves_next(self.domain.registered[at])).min()
    }

    /// In how long a reader that runs leaves its section, or its next one.
    fn leaves_next(&mut self, id: ReaderId) -> Option<Time> {
        let (left, kind) = (self.readers[id].leaves_in(), self.readers[id].kind);
        if left.is_some() || !self.readers[id].running {
            return left;
        }
        match kind {
            Kind::Sections { section_ns, gap_ns } => {
                let random = &mut self.threads[self.worker.thread].random;
                Some(random.exponential(gap_ns) + random.exponential(section_ns))
            }
            _ => None,
        }
    }

    fn end_grace_period(&mut self, id: ThreadId) {
        self.counted.grace_periods += 1;
        self.check_end(self.liburcu.began);
        self.liburcu.locked = false;
        for waiter in mem::take(&mut self.liburcu.taken) {
            if waiter != id {
                self.wake_at_cost(waiter);
            }
        }
        for locker in mem::take(&mut self.liburcu.lockers) {
            self.wake_at_cost(locker);
        }
    }

    // ---- callbacks ----------------------------------------------------------------------------

    pub(super) fn wake_call_thread(&mut self) {
        self.pending_ns += ns(self.options.costs.machine.atomic_transfer);
        if mem::take(&mut self.liburcu.call_thread_waits) {
            self.wake_at_cost(self.worker.thread);
        }
    }
}

impl Me<'_, '_> {
    /// `synchronize_rcu`.
    pub(super) async fn synchronize(self) {
        let costs = self.costs();
        self.world().liburcu.queued.push(self.id);
        let is_first = self.world().liburcu.queued.len() == 1;
        self.spend(ns(costs.machine.atomic_transfer), GP).await;
        match is_first {
            true => self.lead().await,
            false => self.join().await,
        }
    }

    /// Another updater leads: spins for a while, and sleeps.
    async fn join(self) {
        let is_served = || {
            let world = self.world();
            let Liburcu { queued, taken, .. } = &world.liburcu;
            !queued.contains(&self.id) && !taken.contains(&self.id)
        };
        let mut pauses = 0;
        while !is_served() {
            if pauses >= WAIT_ATTEMPTS {
                self.sleep().await;
            } else {
                pauses += PAUSES;
                self.spend(ns(u64::from(PAUSES) * self.costs().relax), GP).await;
            }
        }
    }

    async fn lead(self) {
        let costs = self.costs();
        while self.world().liburcu.locked {
            self.world().liburcu.lockers.push(self.id);
            self.sleep().await;
        }
        let readers = {
            let now = self.now();
            let mut world = self.world();
            let liburcu = &mut world.liburcu;
            liburcu.locked = true;
            liburcu.taken = mem::take(&mut liburcu.queued);
            liburcu.began = now;
            world.domain.registered.len()
        };
        let fence_ns = if readers == 0 { 0 } else { self.world().membarrier(self.id) };
        self.spend(ns(2 * costs.machine.lock_transfer) + fence_ns, GP).await;
        if readers != 0 {
            self.pass_over_readers().await;
            let fence_ns = self.world().membarrier(self.id);
            self.spend(fence_ns, GP).await;
        }
        self.world().end_grace_period(self.id);
    }

    async fn pass_over_readers(self) {
        let costs = self.costs();
        let scan_ns = {
            let mut world = self.world();
            let written = world.look_at_all();
            costs.scan_ns(world.domain.registered.len() as u64, written)
        };
        self.spend(scan_ns, GP).await;
        self.world().first_pass();
        self.spend(costs.announce_ns(), GP).await;
        let inside = {
            let now = self.now();
            let mut world = self.world();
            world.liburcu.flipped = now;
            world.liburcu.snapshot.len()
        };
        self.spend(costs.scan_ns(inside as u64, 0), GP).await;
        let mut looks = 0;
        loop {
            let inside = self.world().second_pass();
            if inside == 0 {
                return;
            }
            looks += 1;
            if looks < ATTEMPTS {
                self.spend(costs.rescan_ns(inside as u64), GP).await;
            } else {
                self.sleep_for_readers().await;
            }
        }
    }

    async fn sleep_for_readers(self) {
        // `wait_gp` begins with a fence.
        let fence_ns = self.world().membarrier(self.id);
        self.spend(fence_ns, GP).await;
        if self.world().mark_readers(self.id) {
            let first = self.world().first_leaves();
            match first {
                None => self.sleep().await,
                Some(first) => self.sleep_at_most(first).await,
            }
        }
        let fence_ns = self.world().membarrier(self.id);
        self.spend(fence_ns, GP).await;
    }

    /// What the `call_rcu` thread does.
    pub(super) async fn run_callbacks(self) {
        loop {
            let taken = self.world().take_all();
            if taken == 0 {
                self.world().liburcu.call_thread_waits = true;
                self.sleep().await;
            } else {
                self.world().counted.worker_turns += 1;
                self.synchronize().await;
                let callback_ps = self.costs().callback_ps(false);
                self.spend(ns(taken * callback_ps), Spending::Callbacks).await;
                self.world().finish_all_taken();
            }
            self.sleep_for(NAP_NS).await;
        }
    }
}
