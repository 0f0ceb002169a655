//! A slab allocator: objects in pages, and the locks of the lists that CPUs share.
//!
//! After SLUB as of 2014 (C. Lameter, `mm/slub.c`). Each CPU has an *active* page, from which it
//! allocates, and a list of *partial* pages, both without a lock. A full page is on no list. The
//! first object freed into it makes it a partial page of the CPU that freed it. When a CPU has too
//! many partial pages, all of them go to the lists of their memory *nodes*, under the nodes' locks,
//! except empty ones, which are given back if the node has enough. A CPU without a partial page
//! takes some from its node's list, again under the lock; or, nearly always, from the list of
//! another node that has more than it keeps; or else it takes a fresh page of its own node.
//!
//! So the cost of a free depends on what was freed just before: a large batch of objects that were
//! allocated together empties page after page; a small one leaves pages partly free, which yield
//! few objects at the next visit. Fresh pages come from the page allocator (`buddy`), under the
//! lock of the node's zone. Nothing here takes virtual time: the caller charges for the [`Step`]s.
//! Every operation takes constant time, except to move a list, or to search all nodes.

mod buddy;
mod list;

use crate::random::Random;
use buddy::Buddy;
use list::List;

/// What there is to choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Objects in a page, at least 1.
    pub objects_per_page: u32,
    /// Free objects in the partial pages of a CPU, as they were when each page came there
    /// (one, if it had been full). If there are more, the next page sends all to the node
    /// (`cpu_partial`).
    pub partial_objects: u32,
    /// A CPU that takes pages from the node's list takes more of them until it has more free
    /// objects.
    pub refill_objects: u32,
    /// Pages that the node keeps even if they are empty (`min_partial`).
    pub node_min: u32,
    /// In how many cases of 1,024 a CPU whose node has no partial page searches the others
    /// (`remote_node_defrag_ratio`).
    pub search_of_1024: u32,
}

impl Shape {
    /// `struct file` of 2014, 256 bytes, on a machine with so many CPUs: SLUB wants `4 *
    /// (fls(CPUs) + 1)` objects and more to a page, of at most 32 KiB. The others are as it
    /// computes them from the size.
    pub const fn filp(cpus: u32) -> Self {
        let wanted = 4 * (32 - cpus.leading_zeros() + 1);
        let mut objects_per_page = 16;
        while objects_per_page < wanted && objects_per_page < 128 {
            objects_per_page *= 2;
        }
        Self {
            objects_per_page,
            partial_objects: 13,
            refill_objects: 6,
            node_min: 5,
            search_of_1024: 1_000,
        }
    }
}

/// An object, by its number: page times [`Shape::objects_per_page`] plus its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Object(u32);

/// Where a cache line is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    /// In this CPU's cache.
    Own,
    /// In that of another CPU of its node.
    Near,
    /// On another node.
    Far,
}

/// What one operation did besides its own object, in the order in which it did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The object's page was not the CPU's active one: its own lists do not suffice, or an atomic
    /// instruction on the page is needed, whose line is there.
    Slow(Distance),
    /// The lock of a node's list was taken.
    List {
        /// Which node's.
        node: u32,
        /// Pages that went to or from the list under it.
        pages: u32,
        /// Those of them whose line another CPU of this node wrote last, or one of another node.
        lines: [u32; 2],
        /// Whether by the function that disables interrupts: they were enabled.
        irqsave: bool,
    },
    /// A fresh page was taken, or a page was given back, under the lock of the node's zone.
    Zone {
        /// Which node's.
        node: u32,
        /// List operations under it.
        operations: u32,
        /// It was taken: with interrupts enabled before. They are disabled where one is given back.
        takes: bool,
    },
}

/// The holder of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// None: it has been given back.
    Spare,
    /// A CPU allocates from it, or has it among its partial pages: frees need no lock.
    Cpu,
    /// The node, on its list.
    Node,
    /// All its objects are in use.
    Full,
}

#[derive(Clone, Copy, Debug)]
struct Page {
    place: Place,
    /// The memory node that it is of, and its frame there.
    node: u32,
    frame: u32,
    /// The first free object, or `NONE`; each free object has the next one's number.
    first_free: u32,
    free: u32,
    /// How many were free when it became somebody's partial page.
    counted: u32,
    /// Its place on its node's list, if it is there.
    listed: i64,
    /// The CPU that wrote its line last.
    writer: u32,
}

const NONE: u32 = u32::MAX;
/// What stands in place of the next free object where an object is allocated.
const IN_USE: u32 = u32::MAX - 1;

/// What a CPU has.
#[derive(Clone, Debug)]
struct Local {
    active: u32,
    /// The one that came last is the next.
    partial: Vec<u32>,
    /// The sum of what was counted of the partial pages.
    counted: u32,
}

/// The allocator of one kind of object.
#[derive(Clone, Debug)]
pub struct Slab {
    shape: Shape,
    cpus_per_node: usize,
    random: Random,
    locals: Vec<Local>,
    pages: Vec<Page>,
    /// For each object the next free one of its page, or that it is in use.
    next_free: Vec<u32>,
    /// Of each node its list, and its page allocator.
    nodes: Vec<List>,
    zones: Vec<Buddy>,
    spare: Vec<u32>,
}

impl Slab {
    /// No pages yet, for so many CPUs, of which `cpus_per_node` (at least 1) share a memory node.
    pub fn new(shape: Shape, cpus: usize, cpus_per_node: usize) -> Self {
        let cpus_per_node = cpus_per_node.max(1);
        let nodes = cpus.div_ceil(cpus_per_node).max(1);
        let shape = Shape { objects_per_page: shape.objects_per_page.max(1), ..shape };
        Self {
            shape,
            cpus_per_node,
            random: Random::new(nodes as u64),
            locals: vec![Local { active: NONE, partial: Vec::new(), counted: 0 }; cpus],
            pages: Vec::new(),
            next_free: Vec::new(),
            nodes: vec![List::default(); nodes],
            zones: vec![Buddy::default(); nodes],
            spare: Vec::new(),
        }
    }

    /// Pages that have not been given back.
    pub fn pages(&self) -> usize {
        self.pages.len() - self.spare.len()
    }

    /// The memory node of a CPU.
    pub const fn node_of(&self, cpu: usize) -> u32 {
        (cpu / self.cpus_per_node) as u32
    }

    /// Allocates an object on `cpu`. What that took is added to `steps`.
    ///
    /// # Panics
    /// If there is no such CPU, or after 2^32 objects.
    pub fn allocate(&mut self, cpu: usize, steps: &mut Vec<Step>) -> Object {
        let active = self.locals[cpu].active;
        let page = match active {
            NONE => self.replenish(cpu, steps),
            _ if self.pages[active as usize].free == 0 => {
                self.pages[active as usize].place = Place::Full;
                self.replenish(cpu, steps)
            }
            _ => active,
        };
        let place = &mut self.pages[page as usize];
        let object = place.first_free;
        place.first_free = self.next_free[object as usize];
        place.free -= 1;
        self.next_free[object as usize] = IN_USE;
        Object(object)
    }

    /// Finds `cpu` another active page: one of its own, one of its node's, one of another node's,
    /// or a fresh one.
    fn replenish(&mut self, cpu: usize, steps: &mut Vec<Step>) -> u32 {
        let node = self.node_of(cpu);
        let own = self.pop_partial(cpu);
        let page = own
            .or_else(|| self.refill(cpu, node, steps))
            .or_else(|| self.search(cpu, node, steps))
            .unwrap_or_else(|| self.fresh(cpu, steps));
        steps.push(Step::Slow(self.write(cpu, page)));
        self.pages[page as usize].place = Place::Cpu;
        self.locals[cpu].active = page;
        page
    }

    /// `cpu` writes the line of a page, which was where the answer says.
    fn write(&mut self, cpu: usize, page: u32) -> Distance {
        let writer = std::mem::replace(&mut self.pages[page as usize].writer, cpu as u32) as usize;
        match () {
            () if writer == cpu => Distance::Own,
            () if self.node_of(writer) == self.node_of(cpu) => Distance::Near,
            () => Distance::Far,
        }
    }

    /// Takes pages from a node's list, under its lock. Returns the first. Whether there are any
    /// is seen without the lock.
    fn refill(&mut self, cpu: usize, node: u32, steps: &mut Vec<Step>) -> Option<u32> {
        let first = self.nodes[node as usize].pop()?;
        let mut visit = Visit::default().with(true, self.write(cpu, first));
        let mut objects = self.pages[first as usize].free;
        while objects <= self.shape.refill_objects {
            let Some(page) = self.nodes[node as usize].pop() else { break };
            visit = visit.with(true, self.write(cpu, page));
            objects += self.pages[page as usize].free;
            self.push_partial(cpu, page);
        }
        steps.push(visit.to(node));
        Some(first)
    }

    /// The nearest other node that has more pages than it keeps is asked, but for a few cases: a
    /// fresh page is nearer then.
    fn search(&mut self, cpu: usize, own: u32, steps: &mut Vec<Step>) -> Option<u32> {
        let nodes = self.nodes.len() as u32;
        if nodes == 1 || self.random.below(1_024) > u64::from(self.shape.search_of_1024) {
            return None;
        }
        let others = (1..nodes).map(|distance| (own + distance) % nodes);
        let mut rich =
            others.filter(|&node| self.nodes[node as usize].len() > self.shape.node_min as usize);
        let node = rich.next()?;
        self.refill(cpu, node, steps)
    }

    fn push_partial(&mut self, cpu: usize, page: u32) {
        let (local, place) = (&mut self.locals[cpu], &mut self.pages[page as usize]);
        place.place = Place::Cpu;
        place.counted = place.free;
        local.counted += place.free;
        local.partial.push(page);
    }

    fn pop_partial(&mut self, cpu: usize) -> Option<u32> {
        let local = &mut self.locals[cpu];
        let page = local.partial.pop()?;
        local.counted -= self.pages[page as usize].counted;
        Some(page)
    }

    fn fresh(&mut self, cpu: usize, steps: &mut Vec<Step>) -> u32 {
        let node = self.node_of(cpu);
        let (frame, operations) = self.zones[node as usize].take();
        steps.push(Step::Zone { node, operations, takes: true });
        let size = self.shape.objects_per_page;
        let page = self.spare.pop().unwrap_or_else(|| {
            let page = self.pages.len() as u32;
            let objects = page.checked_add(1).and_then(|pages| pages.checked_mul(size));
            let objects = objects.filter(|&objects| objects < IN_USE);
            self.next_free.resize(objects.expect("2^32 objects") as usize, NONE);
            let (place, first_free) = (Place::Spare, NONE);
            let (free, counted, listed, writer) = (0, 0, 0, 0);
            self.pages.push(Page { place, node, frame, first_free, free, counted, listed, writer });
            page
        });
        self.pages[page as usize].writer = cpu as u32;
        (self.pages[page as usize].node, self.pages[page as usize].frame) = (node, frame);
        let first = page * size;
        for object in first..first + size {
            self.next_free[object as usize] = object + 1;
        }
        self.next_free[(first + size - 1) as usize] = NONE;
        let place = &mut self.pages[page as usize];
        (place.first_free, place.free) = (first, size);
        page
    }

    /// Frees an object on `cpu`, into the page it is from, wherever that is. What that took is
    /// added to `steps`.
    ///
    /// # Panics
    /// If there is no such CPU, or the object is not in use.
    pub fn free(&mut self, cpu: usize, object: Object, steps: &mut Vec<Step>) {
        let number = object.0 as usize;
        assert_eq!(self.next_free.get(number), Some(&IN_USE), "freed twice: {object:?}");
        let page = object.0 / self.shape.objects_per_page;
        let place = &mut self.pages[page as usize];
        self.next_free[number] = place.first_free;
        place.first_free = object.0;
        place.free += 1;
        let Page { place, node, free, listed, .. } = *place;
        if self.locals[cpu].active != page {
            steps.push(Step::Slow(self.write(cpu, page)));
        }
        match place {
            Place::Full => {
                if self.locals[cpu].counted > self.shape.partial_objects {
                    self.drain(cpu, steps);
                }
                self.push_partial(cpu, page);
            }
            Place::Node if free == self.shape.objects_per_page => {
                // SLUB takes the lock before it knows whether the node has enough.
                let list = &mut self.nodes[node as usize];
                let is_rich = list.len() > self.shape.node_min as usize;
                let pages = u32::from(is_rich);
                steps.push(Step::List { node, pages, lines: [0; 2], irqsave: true });
                if is_rich {
                    list.remove(listed);
                    self.give_back(page, steps);
                }
            }
            Place::Cpu | Place::Node => {}
            Place::Spare => unreachable!("an object in use is in no spare page"),
        }
    }

    /// The partial pages of `cpu` go to their nodes, under the nodes' locks: one visit for as many
    /// as are of the same node one after the other. Empty ones are given back afterwards.
    fn drain(&mut self, cpu: usize, steps: &mut Vec<Step>) {
        let mut visit: Option<(u32, Visit)> = None;
        let mut empty = Vec::new();
        while let Some(page) = self.pop_partial(cpu) {
            let Page { node, free, .. } = self.pages[page as usize];
            let line = self.write(cpu, page);
            let list = &mut self.nodes[node as usize];
            let is_kept =
                free != self.shape.objects_per_page || list.len() < self.shape.node_min as usize;
            if is_kept {
                self.pages[page as usize].place = Place::Node;
                self.pages[page as usize].listed = list.append(page);
            } else {
                empty.push(page);
            }
            let before = match visit.take_if(|(other, _)| *other == node) {
                Some((_, before)) => before,
                None => {
                    steps.extend(visit.take().map(|(other, before)| before.to(other)));
                    Visit::default()
                }
            };
            visit = Some((node, before.with(is_kept, line)));
        }
        steps.extend(visit.map(|(node, visit)| visit.to(node)));
        while let Some(page) = empty.pop() {
            self.give_back(page, steps);
        }
    }

    fn give_back(&mut self, page: u32, steps: &mut Vec<Step>) {
        let Page { node, frame, .. } = self.pages[page as usize];
        let operations = self.zones[node as usize].give_back(frame);
        steps.push(Step::Zone { node, operations, takes: false });
        self.pages[page as usize].place = Place::Spare;
        self.spare.push(page);
    }
}

/// What is done under the lock of a node's list.
#[derive(Clone, Copy, Debug, Default)]
struct Visit {
    pages: u32,
    lines: [u32; 2],
}

impl Visit {
    /// One more page, which changes hands or not, and whose line is written.
    fn with(mut self, changes_hands: bool, line: Distance) -> Self {
        self.pages += u32::from(changes_hands);
        self.lines[0] += u32::from(line == Distance::Near);
        self.lines[1] += u32::from(line == Distance::Far);
        self
    }

    const fn to(self, node: u32) -> Step {
        Step::List { node, pages: self.pages, lines: self.lines, irqsave: false }
    }
}

#[cfg(test)]
mod tests;
