//! The memory that callbacks give back: which objects wait, and what the slab allocator costs.
//!
//! [`slab`](crate::slab) says what an allocation or a free does. This file charges for it: for the
//! atomic instruction on a page that is not the active one, for the locks of nodes and zones with
//! all CPUs that want them, and for the cache lines accessed under the locks. A line costs more if
//! the CPU that held the lock before is on another socket; each socket is a memory node.
//!
//! The locks are ticket locks, as in Linux until 2015. A release writes one line, which all waiting
//! CPUs read again; on average half of them read it before the next owner does (Boyd-Wickizer and
//! others: Non-scalable locks are dangerous, Ottawa Linux Symposium 2012).

use std::collections::VecDeque;
use std::mem;

use serde::Serialize;

use crate::calendar::Calendar;
use crate::cost::{Costs, PICOS, Picos};
use crate::events::Time;
use crate::random::Random;
use crate::setup::Setup;
use crate::slab::{Distance, Object, Shape, Slab, Step};
use crate::workload::{Kind, Workload};

/// What the slab allocator did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SlabUse {
    /// Objects allocated.
    pub allocations: u64,
    /// Objects freed.
    pub frees: u64,
    /// Visits to nodes' locks.
    pub node_lock_visits: u64,
    /// Those that had to wait.
    pub node_lock_contended: u64,
    /// For how long, in nanoseconds, over all CPUs.
    pub node_lock_wait_ns: u64,
    /// Visits to the locks of nodes of other sockets than the CPU's.
    pub far_lock_visits: u64,
    /// Pages that went to or from nodes' lists.
    pub node_pages: u64,
    /// Visits to zones' locks: a fresh page is taken, or one given back.
    pub zone_lock_visits: u64,
    /// Those that had to wait.
    pub zone_lock_contended: u64,
    /// For how long, in nanoseconds, over all CPUs.
    pub zone_lock_wait_ns: u64,
    /// For how long zones' locks were held, in nanoseconds.
    pub zone_lock_held_ns: u64,
    /// CPU time in the lock function that disables interrupts, in nanoseconds: fetching the lock's
    /// line, and waiting.
    pub irqsave_ns: u64,
    /// The same in the lock function for those who have them disabled.
    pub plain_lock_ns: u64,
    /// Fresh pages taken.
    pub pages_taken: u64,
    /// Pages given back.
    pub pages_given_back: u64,
    /// Operations on a page that was not the CPU's active one.
    pub slow: u64,
}

/// A lock that CPUs of all sockets take.
#[derive(Clone, Debug, Default)]
struct Lock {
    held: Calendar,
    /// The CPU that took it last in the order of simulation, and the last other one; with the
    /// times at which they did.
    seen: [Option<(usize, Time)>; 2],
}

/// For how long a visit by another CPU means that the line has been away in between: CPUs are
/// simulated one after the other, so that the order of visits is not exactly that of times.
const AWAY: Time = 1_000_000;

impl Lock {
    /// `cpu` takes it at `now`: where its line is.
    fn visit(&mut self, cpu: usize, now: Time, cpus_per_node: usize) -> Distance {
        let [last, other] = self.seen;
        if last.is_some_and(|(before, _)| before != cpu) {
            self.seen[1] = last;
        }
        self.seen[0] = Some((cpu, now));
        let is_away = |&(before, at): &(usize, Time)| before != cpu && at + AWAY > now;
        match last.filter(|&(before, _)| before != cpu).or(other.filter(is_away)) {
            None if last.is_some() => Distance::Own,
            Some((before, _)) if before / cpus_per_node != cpu / cpus_per_node => Distance::Far,
            _ => Distance::Near,
        }
    }
}

/// The slab allocator of a run.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    slab: Slab,
    /// For each CPU the objects of the callbacks that it queued, in their order.
    objects: Vec<VecDeque<Option<Object>>>,
    /// For each CPU an object that is in use: a file that is open.
    open: Vec<Option<Object>>,
    cpus_per_node: usize,
    /// A CPU opens the file, and closes the one before, of one of so many CPUs from its own on,
    /// which is drawn.
    drawn: u64,
    /// Whether objects that are allocated before the first is freed have no place yet.
    scatters: bool,
    random: Random,
    /// Of each memory node, the lock of its list and that of its zone.
    lists: Vec<Lock>,
    zones: Vec<Lock>,
    /// Work under a node's lock for each page that changes hands.
    page: Picos,
    /// A cache line that is touched under a zone's lock; 0 if that is not taken.
    zone_line: Picos,
    /// Taking a fresh page, or giving one back, besides that.
    fresh: Picos,
    /// What an operation did.
    steps: Vec<Step>,
    /// The clock: nothing happens before it any more.
    pub(crate) clock: Time,
    /// What was counted.
    pub(crate) seen: SlabUse,
}

/// Lines for each list operation of the page allocator: the block's own, its neighbour's, and the
/// list's head.
const LINES_PER_OPERATION: u64 = 3;

impl Memory {
    /// As the workload's numbers have it; `None` if it has no pages.
    pub(crate) fn new(workload: &Workload, setup: &Setup) -> Option<Self> {
        let (number, cpus) = (|name| workload.get(name), setup.cpus);
        if workload.kind != Kind::OpenClose || number("slab_objects_per_page") == 0 {
            return None;
        }
        let shape = Shape {
            objects_per_page: number("slab_objects_per_page") as u32,
            partial_objects: number("slab_partial_objects") as u32,
            refill_objects: number("slab_refill_objects") as u32,
            node_min: number("slab_node_pages") as u32,
            search_of_1024: number("slab_search_of_1024") as u32,
        };
        let cpus_per_node = match number("slab_cpus_per_node") as usize {
            0 => cpus,
            some => some,
        };
        let nodes = cpus.div_ceil(cpus_per_node);
        Some(Self {
            slab: Slab::new(shape, cpus, cpus_per_node),
            objects: vec![VecDeque::new(); cpus],
            open: vec![None; cpus],
            cpus_per_node,
            scatters: number("slab_scattered") != 0,
            drawn: number("slab_drawn_cpus"),
            random: Random::new(setup.seed.wrapping_mul(cpus as u64)),
            lists: vec![Lock::default(); nodes],
            zones: vec![Lock::default(); nodes],
            page: number("slab_page_ns") * PICOS,
            zone_line: number("slab_zone_line_ns") * PICOS,
            fresh: number("slab_fresh_page_ns") * PICOS,
            steps: Vec::new(),
            clock: 0,
            seen: SlabUse::default(),
        })
    }

    /// `cpu` allocates an object, and queues a callback for another one next: what that costs it.
    pub(crate) fn allocate(&mut self, cpu: usize, now: Time, costs: &Costs) -> Picos {
        let object = (!self.scatters).then(|| self.slab.allocate(cpu, &mut self.steps));
        let closed = match self.drawn {
            1 => object,
            cpus => {
                let place = (cpu + self.random.below(cpus) as usize) % self.open.len();
                mem::replace(&mut self.open[place], object)
            }
        };
        self.objects[cpu].push_back(closed);
        self.seen.allocations += 1;
        self.charge(cpu, now, costs)
    }

    /// `cpu` frees the oldest object that `owner` is to free: what that costs it.
    pub(crate) fn free(&mut self, cpu: usize, owner: usize, now: Time, costs: &Costs) -> Picos {
        if self.scatters {
            self.scatter();
        }
        // The first of a place closes nothing.
        if let Some(object) = self.objects[owner].pop_front().flatten() {
            self.slab.free(cpu, object, &mut self.steps);
            self.seen.frees += 1;
        }
        self.charge(cpu, now, costs)
    }

    /// All objects get their places: those of a node any of its pages, as after a long time in
    /// which CPUs have allocated from pages that others had freed into.
    fn scatter(&mut self) {
        self.scatters = false;
        let cpus = self.cpus_per_node;
        let nodes = self.objects.chunks_mut(cpus).zip(self.open.chunks_mut(cpus));
        for (node, (queues, open)) in nodes.enumerate() {
            let count = open.len() + queues.iter().map(VecDeque::len).sum::<usize>();
            let objects = (0..count).map(|_| self.slab.allocate(node * cpus, &mut self.steps));
            let mut objects: Vec<Object> = objects.collect();
            for place in queues.iter_mut().flatten().chain(open) {
                let drawn = self.random.below(objects.len() as u64) as usize;
                *place = Some(objects.swap_remove(drawn));
            }
        }
        self.steps.clear();
    }

    /// What the steps of an operation that begins at `now` cost.
    fn charge(&mut self, cpu: usize, now: Time, costs: &Costs) -> Picos {
        let mut cost = 0;
        for place in 0..self.steps.len() {
            let at = now + cost / PICOS;
            cost += match self.steps[place] {
                Step::Slow(line) => {
                    self.seen.slow += 1;
                    match line {
                        Distance::Own => costs.atomic,
                        Distance::Near => costs.atomic_transfer,
                        Distance::Far => costs.far_atomic_transfer(),
                    }
                }
                Step::List { node, pages, lines: [near, far], irqsave } => {
                    // Pages' lines come over while the lock is held.
                    let lines = Picos::from(near) * costs.atomic_transfer
                        + Picos::from(far) * costs.far_atomic_transfer();
                    let work = Picos::from(pages) * self.page + lines;
                    self.seen.node_pages += u64::from(pages);
                    // The neighbours of a page on the list are where the lock was.
                    let work = (work, 2 * u64::from(pages));
                    self.visit(false, (cpu, at), (node, irqsave), work, costs)
                }
                Step::Zone { node, operations, takes } => {
                    self.seen.pages_taken += u64::from(takes);
                    self.seen.pages_given_back += u64::from(!takes);
                    let lines = LINES_PER_OPERATION * u64::from(operations);
                    let work = (lines * self.zone_line, lines);
                    self.fresh + self.visit(true, (cpu, at), (node, takes), work, costs)
                }
            };
        }
        self.steps.clear();
        cost
    }

    /// A visit to the lock of a node's list, or of its zone if that is taken. What is done under it
    /// costs so much, and more for so many lines if these come from another socket. Returns what it
    /// costs: it waits, fetches the lock's line, and works.
    fn visit(
        &mut self,
        is_zone: bool,
        (cpu, now): (usize, Time),
        (node, irqsave): (u32, bool),
        (work, lines): (Picos, u64),
        costs: &Costs,
    ) -> Picos {
        if is_zone && self.zone_line == 0 {
            return 0;
        }
        self.seen.far_lock_visits += u64::from(self.slab.node_of(cpu) != node);
        let (past, cpus) = (self.clock, self.cpus_per_node);
        let locks = if is_zone { &mut self.zones } else { &mut self.lists };
        let lock = &mut locks[node as usize];
        let (fetch, read, farther) = match lock.visit(cpu, now, cpus) {
            Distance::Own => (costs.lock, costs.read_transfer, 0),
            Distance::Near => (costs.lock_transfer, costs.read_transfer, 0),
            Distance::Far => {
                let farther = costs.far_read_transfer.saturating_sub(costs.read_transfer);
                (costs.far_lock_transfer, costs.far_read_transfer, farther)
            }
        };
        let alone = fetch + work + lines * farther;
        let alone_ns = alone.div_ceil(PICOS).max(1);
        let ahead = lock.held.ahead(now, alone_ns) / alone_ns;
        let waiters = ahead.min(cpus.saturating_sub(1) as u64);
        let held = alone + waiters * read / 2;
        let wait_ns = lock.held.take(now, held.div_ceil(PICOS), past);
        let spent_ns = wait_ns + fetch / PICOS;
        match irqsave {
            true => self.seen.irqsave_ns += spent_ns,
            false => self.seen.plain_lock_ns += spent_ns,
        }
        if is_zone {
            self.seen.zone_lock_visits += 1;
            self.seen.zone_lock_contended += u64::from(wait_ns != 0);
            self.seen.zone_lock_wait_ns += wait_ns;
            self.seen.zone_lock_held_ns += held / PICOS;
        } else {
            self.seen.node_lock_visits += 1;
            self.seen.node_lock_contended += u64::from(wait_ns != 0);
            self.seen.node_lock_wait_ns += wait_ns;
        }
        wait_ns * PICOS + held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(cpus: usize, numbers: &[(&str, u64)]) -> Memory {
        seeded(Setup::default().seed, cpus, numbers)
    }

    fn seeded(seed: u64, cpus: usize, numbers: &[(&str, u64)]) -> Memory {
        let mut workload = Workload::named("open-close").unwrap();
        for (name, value) in numbers {
            workload.set(name, *value).unwrap();
        }
        Memory::new(&workload, &Setup { seed, cpus, ..Setup::default() }).unwrap()
    }

    const COSTS: Costs = Costs::modern();
    const OBJECTS: usize = 64 * 40;

    /// CPUs that allocate apart, and then free: what they wait for locks, in nanoseconds. Each
    /// frees all of its own at once, in an order of simulation that is not that of times.
    fn wait_ns(cpus: usize, starts: impl Fn(usize) -> Time) -> u64 {
        let mut memory = memory(cpus, &[]);
        for cpu in 0..cpus {
            for _ in 0..OBJECTS {
                memory.allocate(cpu, cpu as Time * 100_000_000, &COSTS);
            }
        }
        memory.seen = SlabUse::default();
        let begin = 1_000_000_000_000;
        memory.clock = begin;
        for cpu in 0..cpus {
            let mut now = (begin + starts(cpu)) * PICOS;
            for _ in 0..OBJECTS {
                now += memory.free(cpu, cpu, now / PICOS, &COSTS) + COSTS.callback;
            }
        }
        let SlabUse { zone_lock_wait_ns, node_lock_wait_ns, frees, .. } = memory.seen;
        assert_eq!(frees, (cpus * OBJECTS) as u64);
        zone_lock_wait_ns + node_lock_wait_ns
    }

    /// What was wrong: how long a lock is waited for was told from how often it is taken, as if
    /// that were at any time. All CPUs free when a grace period has ended.
    #[test]
    fn cpus_that_free_in_the_same_burst_wait_and_cpus_that_free_apart_do_not() {
        let apart = wait_ns(8, |cpu| cpu as Time * 50_000_000);
        let together = wait_ns(8, |_| 0);
        assert!(together > 100_000 && together > 100 * apart, "{together} and {apart} ns");
        // It does not depend on which of them the simulator does first.
        let backwards = wait_ns(8, |cpu| 700 - 100 * cpu as Time);
        assert!(backwards > together / 2, "{backwards} and {together} ns");
    }

    /// What was not there: objects of a page that are freed on several CPUs.
    #[test]
    fn frees_spread_over_cpus_visit_the_lists_and_frees_where_they_were_allocated_do_not() {
        let visits = |drawn| {
            let mut memory = memory(8, &[("slab_drawn_cpus", drawn)]);
            for cpu in (0..OBJECTS).flat_map(|_| 0..8) {
                memory.allocate(cpu, 0, &COSTS);
            }
            memory.seen = SlabUse::default();
            // A burst begins earlier on one CPU than on the next.
            for cpu in (0..8).flat_map(|cpu| [cpu; OBJECTS]) {
                memory.free(cpu, cpu, 1_000_000, &COSTS);
            }
            memory.seen.node_lock_visits
        };
        let (own, spread) = (visits(1), visits(8));
        assert!(own > 0 && spread > 4 * own, "{own} {spread}");
    }

    /// What CPU 0 closes, of the files of eight CPUs.
    fn closed(seed: u64) -> Memory {
        let mut memory = seeded(seed, 8, &[("slab_drawn_cpus", 8)]);
        (0..64).for_each(|_| _ = memory.allocate(0, 0, &COSTS));
        memory
    }

    /// What was wrong: objects came to CPUs as they were drawn, not one for each callback, so that
    /// more and more waited at some, while others found none: a run came to no rest.
    #[test]
    fn each_callback_has_its_object_but_for_the_first_of_each_place() {
        let mut memory = closed(1);
        assert!(
            memory.objects[0].len() == 64 && memory.objects[1..].iter().all(VecDeque::is_empty)
        );
        let open = memory.open.iter().flatten().count() as u64;
        assert!(open > 4, "{open}");
        (0..64).for_each(|_| _ = memory.free(0, 0, 1_000_000, &COSTS));
        assert_eq!(memory.seen.frees, 64 - open);
        assert!(memory.objects[0].is_empty());
    }

    /// What was wrong: the draws were those of the number of CPUs, whatever the seed.
    #[test]
    fn another_seed_draws_other_cpus() {
        assert_eq!(closed(1).objects, closed(1).objects);
        assert_ne!(closed(1).objects, closed(2).objects);
    }

    /// What was not there: pages as they are after a long time. From empty ones it takes 20 grace
    /// periods until CPUs no longer have pages of their own.
    #[test]
    fn scattered_objects_of_a_cpu_lie_on_all_pages_of_its_node() {
        let pages = |scattered| {
            let mut memory = memory(
                8,
                &[
                    ("slab_scattered", scattered),
                    ("slab_cpus_per_node", 4),
                    ("slab_partial_objects", 0),
                    ("slab_node_pages", 0),
                ],
            );
            for cpu in (0..8).flat_map(|cpu| [cpu; 640]) {
                memory.allocate(cpu, 0, &COSTS);
            }
            memory.free(7, 7, 1_000_000, &COSTS);
            let mut own = memory.slab.clone();
            let before = own.pages();
            // A page that comes back whole was this CPU's alone.
            for object in memory.objects[0].iter().flatten() {
                own.free(0, *object, &mut memory.steps);
            }
            before - own.pages()
        };
        assert_eq!([pages(0) > 0, pages(1) > 0], [true, false]);
    }

    #[test]
    fn a_lock_of_another_socket_costs_more() {
        let cost = |cpus_per_node| {
            let mut memory = memory(2, &[("slab_cpus_per_node", cpus_per_node)]);
            let objects = (0..OBJECTS).map(|_| memory.allocate(0, 0, &COSTS)).count();
            // Freed by the other CPU: its node is the same or another one.
            let mut now = 1_000_000;
            (0..objects).for_each(|_| now += memory.free(1, 0, now, &COSTS) / PICOS + 50_000);
            (now, memory.seen.far_lock_visits)
        };
        let ((near, none), (far, some)) = (cost(2), cost(1));
        assert!(none == 0 && some > 20, "{none} {some}");
        // The zone's lock was the other CPU's: its line, and those of one list operation.
        let lock = COSTS.far_lock_transfer - COSTS.lock_transfer;
        let lines = LINES_PER_OPERATION * (COSTS.far_read_transfer - COSTS.read_transfer);
        // The lines of the pages were the other CPU's as well; each sum is rounded.
        let pages = (OBJECTS / 64) as u64;
        let pages_lines = pages * (COSTS.far_atomic_transfer() - COSTS.atomic_transfer);
        let expected = (lock + lines + pages_lines) / PICOS;
        assert!((far - near).abs_diff(expected) <= pages, "{near} {far} {expected}");
    }

    /// What was wrong: the zone's lock was held for 142 ns, as long as one page's lines take.
    #[test]
    fn the_zones_lock_is_held_for_all_list_operations() {
        let mut memory = memory(1, &[("slab_partial_objects", 0), ("slab_node_pages", 0)]);
        (0..OBJECTS).for_each(|_| _ = memory.allocate(0, 0, &COSTS));
        memory.seen = SlabUse::default();
        (0..OBJECTS).for_each(|_| _ = memory.free(0, 0, 1_000_000, &COSTS));
        let SlabUse { zone_lock_visits: visits, zone_lock_held_ns: held, .. } = memory.seen;
        assert!(visits > 30 && held / visits > 2 * 142, "{held} ns in {visits} visits");
    }
}
