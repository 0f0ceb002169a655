//! An engine whose callbacks are objects of a slab: each is allocated as it is queued, and freed as
//! it is run.
//!
//! Stands between the machine and an engine and changes nothing of what either does. What the
//! allocator did is in [`Books`], which others can look into; it is charged to no task here.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::kernel::{Access, Callback, Engine, Host, Line, Mode};

use super::{Object, Shape, Slab, Visit};

/// What the allocator did, and for how many objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// Objects freed.
    pub freed: u64,
    /// The node's locks taken for them, and for the allocations since.
    pub node_lock: u64,
    /// Pages that went to or from a node's list.
    pub node_pages: u64,
    /// Fresh pages taken.
    pub pages_taken: u64,
    /// Operations that needed more than the active page.
    pub slow: u64,
}

impl Books {
    fn add(&mut self, visit: Visit) {
        self.node_lock += u64::from(visit.node_lock);
        self.node_pages += u64::from(visit.node_pages);
        self.pages_taken += u64::from(visit.pages_taken);
        self.slow += u64::from(visit.slow);
    }
}

/// Objects of all CPUs.
#[derive(Debug)]
struct Heap {
    /// One for each memory node.
    slabs: Vec<Slab>,
    cpus_per_node: usize,
    /// Of each CPU, those that wait for their callbacks, with the slab they are from.
    queues: Vec<VecDeque<(usize, Object)>>,
    /// Freed so far; counted from `warm_up` on.
    freed: u64,
    warm_up: u64,
    books: Rc<RefCell<Books>>,
}

impl Heap {
    /// A CPU's slab, and its number there.
    const fn home(&self, cpu: usize) -> (usize, usize) {
        (cpu / self.cpus_per_node, cpu % self.cpus_per_node)
    }

    fn note(&self, visit: Visit, freed: u64) {
        if self.freed >= self.warm_up {
            let mut books = self.books.borrow_mut();
            books.freed += freed;
            books.add(visit);
        }
    }

    fn allocate(&mut self, cpu: usize) {
        let (node, own) = self.home(cpu);
        let (object, visit) = self.slabs[node].allocate(own);
        self.queues[cpu].push_back((node, object));
        self.note(visit, 0);
    }

    fn free(&mut self, cpu: usize, owner: usize) {
        let Some((node, object)) = self.queues[owner].pop_front() else { return };
        // On another node it is that one's lists that are used: as if by its first CPU.
        let (home, own) = self.home(cpu);
        let visit = self.slabs[node].free(if home == node { own } else { 0 }, object);
        self.freed += 1;
        self.note(visit, 1);
    }
}

/// An engine whose callbacks are objects of a slab.
#[derive(Debug)]
pub struct Allocating<E> {
    engine: E,
    heap: Heap,
}

impl<E: Engine> Allocating<E> {
    /// Around `engine`, of `cpus` CPUs on memory nodes of `cpus_per_node` (at least 1) each.
    /// Books are kept after `warm_up` objects have been freed.
    pub fn new(
        engine: E,
        shape: Shape,
        (cpus, cpus_per_node): (usize, usize),
        warm_up: u64,
    ) -> (Self, Rc<RefCell<Books>>) {
        let cpus_per_node = cpus_per_node.max(1);
        let books = Rc::new(RefCell::new(Books::default()));
        let heap = Heap {
            slabs: vec![Slab::new(shape, cpus_per_node); cpus.div_ceil(cpus_per_node)],
            cpus_per_node,
            queues: vec![VecDeque::new(); cpus],
            freed: 0,
            warm_up,
            books: Rc::clone(&books),
        };
        (Self { engine, heap }, books)
    }
}

/// The host, as the engine sees it: callbacks that it runs free their objects on `cpu`.
struct Freeing<'a> {
    host: &'a mut dyn Host,
    heap: &'a mut Heap,
    cpu: usize,
}

impl Host for Freeing<'_> {
    fn raise(&mut self, cpu: usize) {
        self.host.raise(cpu);
    }

    fn resched(&mut self, cpu: usize) {
        self.host.resched(cpu);
    }

    fn invoke(&mut self, owner: usize, count: u64) {
        self.host.invoke(owner, count);
        for _ in 0..count {
            self.heap.free(self.cpu, owner);
        }
    }

    fn timer(&mut self, jiffies: u32) {
        self.host.timer(jiffies);
    }

    fn timer_off(&mut self) {
        self.host.timer_off();
    }

    fn touch(&mut self, line: Line, access: Access) {
        self.host.touch(line, access);
    }

    fn is_over_budget(&self) -> bool {
        self.host.is_over_budget()
    }

    fn began(&mut self, of: usize) {
        self.host.began(of);
    }

    fn ended(&mut self, of: usize) {
        self.host.ended(of);
    }
}

impl<E: Engine> Engine for Allocating<E> {
    fn queue(&mut self, cpu: usize, callback: Callback, host: &mut dyn Host) {
        self.heap.allocate(cpu);
        self.engine.queue(cpu, callback, &mut Freeing { host, heap: &mut self.heap, cpu });
    }

    fn context_switch(&mut self, cpu: usize, host: &mut dyn Host) {
        self.engine.context_switch(cpu, &mut Freeing { host, heap: &mut self.heap, cpu });
    }

    fn tick(&mut self, cpu: usize, mode: Mode, host: &mut dyn Host) {
        self.engine.tick(cpu, mode, &mut Freeing { host, heap: &mut self.heap, cpu });
    }

    fn softirq(&mut self, cpu: usize, host: &mut dyn Host) {
        self.engine.softirq(cpu, &mut Freeing { host, heap: &mut self.heap, cpu });
    }

    fn timer(&mut self, cpu: usize, host: &mut dyn Host) {
        self.engine.timer(cpu, &mut Freeing { host, heap: &mut self.heap, cpu });
    }

    fn cond_resched(&mut self, cpu: usize, host: &mut dyn Host) {
        self.engine.cond_resched(cpu, &mut Freeing { host, heap: &mut self.heap, cpu });
    }

    fn enter_eqs(&mut self, cpu: usize, host: &mut dyn Host) {
        self.engine.enter_eqs(cpu, &mut Freeing { host, heap: &mut self.heap, cpu });
    }

    fn exit_eqs(&mut self, cpu: usize, host: &mut dyn Host) {
        self.engine.exit_eqs(cpu, &mut Freeing { host, heap: &mut self.heap, cpu });
    }

    fn is_holdout(&self, of: usize, cpu: usize) -> bool {
        self.engine.is_holdout(of, cpu)
    }

    fn waiting(&self, cpu: usize) -> u64 {
        self.engine.waiting(cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tick::Tick;
    use crate::setup::{MILLISECOND, Setup};
    use crate::{EngineKind, Workload, run, run_engine};

    #[test]
    fn nothing_changes_for_the_engine_and_each_callback_frees_an_object() {
        let setup = Setup { cpus: 3, warm_up: 0, duration: 100 * MILLISECOND, ..Setup::default() };
        let workload = Workload::named("open-close").unwrap();
        let (engine, books) = Allocating::new(Tick::new(3), Shape::filp(3), (3, 2), 0);
        let report = run_engine(&setup, Box::new(engine), "tick", &workload).unwrap();
        let plain = run(&setup, &EngineKind::named("tick").unwrap(), &workload).unwrap();
        assert_eq!(report, plain);
        assert!(report.callbacks.invoked > 10_000);
        let books = *books.borrow();
        assert_eq!(books.freed, report.callbacks.invoked);
        assert!(books.pages_taken >= 2 && books.slow >= books.pages_taken);
        // If none were run, pages would be needed for all that are queued here, and for no others.
        let (engine, leaking) = Allocating::new(Leak(Tick::new(3)), Shape::filp(3), (3, 2), 0);
        run_engine(&setup, Box::new(engine), "leak", &workload).unwrap();
        let leaking = *leaking.borrow();
        let pages = report.callbacks.queued / 16;
        assert!(leaking.pages_taken >= pages && books.pages_taken < pages);
        assert_eq!((leaking.freed, leaking.node_lock), (0, 0));
    }

    /// An engine that forgets its callbacks.
    #[derive(Debug)]
    struct Leak(Tick);

    impl Engine for Leak {
        fn queue(&mut self, _: usize, _: Callback, _: &mut dyn Host) {}
        fn context_switch(&mut self, cpu: usize, host: &mut dyn Host) {
            self.0.context_switch(cpu, host);
        }
        fn tick(&mut self, cpu: usize, mode: Mode, host: &mut dyn Host) {
            self.0.tick(cpu, mode, host);
        }
        fn softirq(&mut self, cpu: usize, host: &mut dyn Host) {
            self.0.softirq(cpu, host);
        }
        fn enter_eqs(&mut self, cpu: usize, host: &mut dyn Host) {
            self.0.enter_eqs(cpu, host);
        }
        fn exit_eqs(&mut self, cpu: usize, host: &mut dyn Host) {
            self.0.exit_eqs(cpu, host);
        }
        fn is_holdout(&self, of: usize, cpu: usize) -> bool {
            self.0.is_holdout(of, cpu)
        }
        fn waiting(&self, cpu: usize) -> u64 {
            self.0.waiting(cpu)
        }
    }
}
