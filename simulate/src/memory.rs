//! The memory that callbacks give back: which objects wait, and what the slab allocator costs.
//!
//! [`slab`](crate::slab) says what an allocation or a free does; here it is charged for: the atomic
//! instruction on a page that is not the active one, the node's lock with all CPUs that want it,
//! and under the lock the pages that change hands.

use std::collections::VecDeque;

use crate::kernel::{Access, Line};
use serde::Serialize;

use crate::cost::{Costs, Picos};
use crate::events::Time;
use crate::line::{Directory, Traffic};
use crate::parameter::{Parameter, find};
use crate::slab::{Object, Shape, Slab, Visit};

/// What the slab allocator did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SlabUse {
    /// Objects allocated.
    pub allocations: u64,
    /// Objects freed.
    pub frees: u64,
    /// Visits to the node's lock.
    pub node_lock_visits: u64,
    /// Those that had to wait.
    pub node_lock_contended: u64,
    /// For how long, in nanoseconds, over all CPUs.
    pub node_lock_wait_ns: u64,
    /// Pages that went to or from the node's list.
    pub node_pages: u64,
    /// Fresh pages taken.
    pub pages_taken: u64,
    /// Pages given back.
    pub pages_given_back: u64,
    /// Operations on a page that was not the CPU's active one.
    pub slow: u64,
}

impl SlabUse {
    /// Visits to the node's lock to a million allocations and frees.
    pub const fn lock_visits_per_million(&self) -> u64 {
        let operations = self.allocations + self.frees;
        if operations == 0 {
            return 0;
        }
        (self.node_lock_visits as u128 * 1_000_000 / operations as u128) as u64
    }
}

/// The node's lock, in a directory of its own.
const NODE_LOCK: Line = Line::Global(0);

/// The slab allocator of a run.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    slab: Slab,
    /// For each CPU the objects of the callbacks that it queued, in their order.
    objects: Vec<VecDeque<Object>>,
    directory: Directory,
    /// Work under the lock for each page that changes hands.
    page: Picos,
    /// Taking a fresh page, or giving one back.
    fresh: Picos,
    seen: SlabUse,
}

impl Memory {
    /// As the workload's parameters have it; `None` if they have no pages.
    pub(crate) fn new(parameters: &[Parameter], cpus: usize) -> Option<Self> {
        let number = |name| find(parameters, name);
        let objects_per_page = number("slab_objects_per_page")? as u32;
        if objects_per_page == 0 {
            return None;
        }
        let shape = Shape {
            objects_per_page,
            partial_objects: number("slab_partial_objects")? as u32,
            refill_objects: number("slab_refill_objects")? as u32,
            node_min: number("slab_node_pages")? as u32,
        };
        Some(Self {
            slab: Slab::new(shape, cpus),
            objects: vec![VecDeque::new(); cpus],
            directory: Directory::new(cpus),
            page: number("slab_page_ns")? * 1_000,
            fresh: number("slab_fresh_page_ns")? * 1_000,
            seen: SlabUse::default(),
        })
    }

    /// `cpu` allocates an object, for a callback that it queues next: what that costs it.
    pub(crate) fn allocate(&mut self, cpu: usize, now: Time, costs: &Costs) -> Picos {
        let (object, visit) = self.slab.allocate(cpu);
        self.objects[cpu].push_back(object);
        self.seen.allocations += 1;
        self.charge(cpu, now, visit, costs)
    }

    /// `cpu` frees the oldest object of a callback that `owner` queued: what that costs it.
    pub(crate) fn free(&mut self, cpu: usize, owner: usize, now: Time, costs: &Costs) -> Picos {
        let Some(object) = self.objects[owner].pop_front() else { return 0 };
        let visit = self.slab.free(cpu, object);
        self.seen.frees += 1;
        self.charge(cpu, now, visit, costs)
    }

    fn charge(&mut self, cpu: usize, now: Time, visit: Visit, costs: &Costs) -> Picos {
        let seen = &mut self.seen;
        seen.node_lock_visits += u64::from(visit.node_lock);
        seen.node_pages += u64::from(visit.node_pages);
        seen.pages_taken += u64::from(visit.pages_taken);
        seen.pages_given_back += u64::from(visit.pages_given_back);
        seen.slow += u64::from(visit.slow);
        let pages = Picos::from(visit.pages_taken + visit.pages_given_back);
        let mut cost = Picos::from(visit.slow) * costs.atomic + pages * self.fresh;
        let under_lock = Picos::from(visit.node_pages) * self.page;
        for place in 0..visit.node_lock {
            // What there is to do under the lock is done in the first visit.
            let work = if place == 0 { under_lock } else { 0 };
            let at = now + cost / 1_000;
            cost += self.directory.lock(cpu, at, NODE_LOCK, work, costs);
        }
        cost
    }

    /// What is counted from now on.
    pub(crate) fn clear(&mut self) {
        self.seen = SlabUse::default();
        self.directory.clear_traffic();
    }

    /// What was counted.
    pub(crate) fn seen(&self) -> SlabUse {
        let Traffic { lock_contended, lock_wait_ns, .. } = self.directory.traffic();
        SlabUse {
            node_lock_contended: lock_contended,
            node_lock_wait_ns: lock_wait_ns,
            ..self.seen
        }
    }
}

impl Directory {
    /// `cpu` takes a lock at `now`, and works under it for so long: what that costs it.
    pub(crate) fn lock(
        &mut self,
        cpu: usize,
        now: Time,
        line: Line,
        work: Picos,
        costs: &Costs,
    ) -> Picos {
        let longer =
            Costs { lock: costs.lock + work, lock_transfer: costs.lock_transfer + work, ..*costs };
        self.touch(cpu, now, line, Access::Lock, &longer)
    }
}
