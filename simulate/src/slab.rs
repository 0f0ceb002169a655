//! A slab allocator: objects in pages, and the lock of the list that CPUs share.
//!
//! After SLUB as of 2014 (C. Lameter, `mm/slub.c`). Each CPU has an *active* page that it allocates
//! from, and a list of *partial* pages, both without a lock. A full page is on no list. The first
//! object freed into it makes it a partial page of the CPU that freed it; when these are too many,
//! all go to the *node's* list at once, under its lock, but for the empty ones, which are given
//! back if the node has enough. A CPU without a partial page takes some from the node's list, under
//! the lock again, or else a fresh page.
//!
//! So what a free costs depends on what was freed just before: a large batch of objects that were
//! allocated together empties page after page, a small one leaves pages that are partly free, which
//! yield few objects at the next visit. Nothing here takes time: the counts of [`Visit`] are the
//! caller's to charge for. Every operation but a move of a list to the node is constant in time.

mod allocating;

pub use allocating::{Allocating, Books};

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
        Self { objects_per_page, partial_objects: 13, refill_objects: 6, node_min: 5 }
    }
}

/// An object, by its number: page times [`Shape::objects_per_page`] plus its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Object(u32);

/// What one operation did besides its own object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visit {
    /// The node's lock was taken so many times.
    pub node_lock: u32,
    /// Pages that went to or from the node's list under it.
    pub node_pages: u32,
    /// Fresh pages taken.
    pub pages_taken: u32,
    /// Pages given back.
    pub pages_given_back: u32,
    /// The object's page was not the CPU's active one: its own lists do not suffice, or an
    /// atomic instruction on the page is needed.
    pub slow: u32,
}

impl Visit {
    /// Adds what another operation did.
    pub const fn add(&mut self, other: Self) {
        self.node_lock += other.node_lock;
        self.node_pages += other.node_pages;
        self.pages_taken += other.pages_taken;
        self.pages_given_back += other.pages_given_back;
        self.slow += other.slow;
    }
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
    /// The first free object, or `NONE`; each free object has the next one's number.
    first_free: u32,
    free: u32,
    /// How many were free when it became somebody's partial page.
    counted: u32,
    /// Neighbours on whatever list the page is on.
    next: u32,
    previous: u32,
}

const NONE: u32 = u32::MAX;
/// What stands in place of the next free object where an object is allocated.
const IN_USE: u32 = u32::MAX - 1;

/// A list of pages, linked by their numbers.
#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
    len: u32,
}

impl List {
    const EMPTY: Self = Self { first: NONE, last: NONE, len: 0 };

    /// In front.
    fn push(&mut self, pages: &mut [Page], page: u32) {
        pages[page as usize].next = self.first;
        pages[page as usize].previous = NONE;
        match self.first {
            NONE => self.last = page,
            first => pages[first as usize].previous = page,
        }
        self.first = page;
        self.len += 1;
    }

    /// Behind all others.
    fn append(&mut self, pages: &mut [Page], page: u32) {
        pages[page as usize].next = NONE;
        pages[page as usize].previous = self.last;
        match self.last {
            NONE => self.first = page,
            last => pages[last as usize].next = page,
        }
        self.last = page;
        self.len += 1;
    }

    fn remove(&mut self, pages: &mut [Page], page: u32) {
        let Page { next, previous, .. } = pages[page as usize];
        match previous {
            NONE => self.first = next,
            _ => pages[previous as usize].next = next,
        }
        match next {
            NONE => self.last = previous,
            _ => pages[next as usize].previous = previous,
        }
        self.len -= 1;
    }

    fn pop(&mut self, pages: &mut [Page]) -> Option<u32> {
        let page = self.first;
        if page == NONE {
            return None;
        }
        self.remove(pages, page);
        Some(page)
    }
}

/// What a CPU has.
#[derive(Clone, Copy, Debug)]
struct Local {
    active: u32,
    partial: List,
    /// The sum of what was counted of the partial pages.
    counted: u32,
}

/// The allocator of one kind of object.
#[derive(Clone, Debug)]
pub struct Slab {
    shape: Shape,
    locals: Vec<Local>,
    pages: Vec<Page>,
    /// For each object the next free one of its page, or that it is in use.
    next_free: Vec<u32>,
    node: List,
    spare: List,
}

impl Slab {
    /// No pages yet, for so many CPUs.
    pub fn new(shape: Shape, cpus: usize) -> Self {
        let shape = Shape { objects_per_page: shape.objects_per_page.max(1), ..shape };
        Self {
            shape,
            locals: vec![Local { active: NONE, partial: List::EMPTY, counted: 0 }; cpus],
            pages: Vec::new(),
            next_free: Vec::new(),
            node: List::EMPTY,
            spare: List::EMPTY,
        }
    }

    /// Pages that have not been given back.
    pub fn pages(&self) -> usize {
        self.pages.len() - self.spare.len as usize
    }

    /// Allocates an object on `cpu`.
    ///
    /// # Panics
    /// If there is no such CPU, or after 2^32 objects.
    pub fn allocate(&mut self, cpu: usize) -> (Object, Visit) {
        let mut visit = Visit::default();
        let active = self.locals[cpu].active;
        let page = match active {
            NONE => self.replenish(cpu, &mut visit),
            _ if self.pages[active as usize].free == 0 => {
                self.pages[active as usize].place = Place::Full;
                self.replenish(cpu, &mut visit)
            }
            _ => active,
        };
        let place = &mut self.pages[page as usize];
        let object = place.first_free;
        place.first_free = self.next_free[object as usize];
        place.free -= 1;
        self.next_free[object as usize] = IN_USE;
        (Object(object), visit)
    }

    /// Finds `cpu` another active page: one of its own, one of the node's, or a fresh one.
    fn replenish(&mut self, cpu: usize, visit: &mut Visit) -> u32 {
        visit.slow = 1;
        let own = self.pop_partial(cpu);
        let page = own.or_else(|| self.refill(cpu, visit)).unwrap_or_else(|| self.fresh(visit));
        self.pages[page as usize].place = Place::Cpu;
        self.locals[cpu].active = page;
        page
    }

    /// Takes pages from the node's list, under its lock. Returns the first. Whether there are any
    /// is seen without the lock.
    fn refill(&mut self, cpu: usize, visit: &mut Visit) -> Option<u32> {
        let first = self.node.pop(&mut self.pages)?;
        visit.node_lock += 1;
        visit.node_pages += 1;
        let mut objects = self.pages[first as usize].free;
        while objects <= self.shape.refill_objects {
            let Some(page) = self.node.pop(&mut self.pages) else { break };
            visit.node_pages += 1;
            objects += self.pages[page as usize].free;
            self.push_partial(cpu, page);
        }
        Some(first)
    }

    fn push_partial(&mut self, cpu: usize, page: u32) {
        let (local, place) = (&mut self.locals[cpu], &mut self.pages[page as usize]);
        place.place = Place::Cpu;
        place.counted = place.free;
        local.counted += place.free;
        local.partial.push(&mut self.pages, page);
    }

    fn pop_partial(&mut self, cpu: usize) -> Option<u32> {
        let local = &mut self.locals[cpu];
        let page = local.partial.pop(&mut self.pages)?;
        local.counted -= self.pages[page as usize].counted;
        Some(page)
    }

    fn fresh(&mut self, visit: &mut Visit) -> u32 {
        visit.pages_taken += 1;
        let size = self.shape.objects_per_page;
        let page = self.spare.pop(&mut self.pages).unwrap_or_else(|| {
            let page = self.pages.len() as u32;
            let objects = page.checked_add(1).and_then(|pages| pages.checked_mul(size));
            let objects = objects.filter(|&objects| objects < IN_USE);
            self.next_free.resize(objects.expect("2^32 objects") as usize, NONE);
            let place = Place::Spare;
            self.pages.push(Page {
                place,
                first_free: NONE,
                free: 0,
                counted: 0,
                next: NONE,
                previous: NONE,
            });
            page
        });
        let first = page * size;
        for object in first..first + size {
            self.next_free[object as usize] = object + 1;
        }
        self.next_free[(first + size - 1) as usize] = NONE;
        let place = &mut self.pages[page as usize];
        (place.first_free, place.free) = (first, size);
        page
    }

    /// Frees an object on `cpu`, into the page it is from, wherever that is.
    ///
    /// # Panics
    /// If there is no such CPU, or the object is not in use.
    pub fn free(&mut self, cpu: usize, object: Object) -> Visit {
        let mut visit = Visit::default();
        let number = object.0 as usize;
        assert_eq!(self.next_free.get(number), Some(&IN_USE), "freed twice: {object:?}");
        let page = object.0 / self.shape.objects_per_page;
        let place = &mut self.pages[page as usize];
        self.next_free[number] = place.first_free;
        place.first_free = object.0;
        place.free += 1;
        visit.slow = u32::from(self.locals[cpu].active != page);
        match place.place {
            Place::Full => {
                if self.locals[cpu].counted > self.shape.partial_objects {
                    self.drain(cpu, &mut visit);
                }
                self.push_partial(cpu, page);
            }
            Place::Node if place.free == self.shape.objects_per_page => {
                // SLUB takes the lock before it knows whether the node has enough.
                visit.node_lock += 1;
                if self.node.len > self.shape.node_min {
                    visit.node_pages += 1;
                    self.node.remove(&mut self.pages, page);
                    self.give_back(page, &mut visit);
                }
            }
            Place::Cpu | Place::Node => {}
            Place::Spare => unreachable!("an object in use is in no spare page"),
        }
        visit
    }

    /// The partial pages of `cpu` go to the node, under its lock.
    fn drain(&mut self, cpu: usize, visit: &mut Visit) {
        visit.node_lock += 1;
        while let Some(page) = self.pop_partial(cpu) {
            let is_empty = self.pages[page as usize].free == self.shape.objects_per_page;
            if is_empty && self.node.len >= self.shape.node_min {
                self.give_back(page, visit);
            } else {
                visit.node_pages += 1;
                self.pages[page as usize].place = Place::Node;
                self.node.append(&mut self.pages, page);
            }
        }
    }

    fn give_back(&mut self, page: u32, visit: &mut Visit) {
        visit.pages_given_back += 1;
        self.pages[page as usize].place = Place::Spare;
        self.spare.push(&mut self.pages, page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::collections::VecDeque;

    /// The pages of a list, whose links must agree.
    fn walk(slab: &Slab, list: List) -> Vec<u32> {
        let (mut at, mut previous, mut seen) = (list.first, NONE, Vec::new());
        while at != NONE {
            assert_eq!(slab.pages[at as usize].previous, previous);
            seen.push(at);
            (previous, at) = (at, slab.pages[at as usize].next);
        }
        assert_eq!(list.last, previous);
        assert_eq!(seen.len(), list.len as usize);
        seen
    }

    /// Every object is either free, and in its page's list once, or in use; every page is where it
    /// says, and nowhere else.
    fn check(slab: &Slab, in_use: usize) {
        let size = slab.shape.objects_per_page;
        for (number, page) in slab.pages.iter().enumerate() {
            let range = number as u32 * size..(number as u32 + 1) * size;
            let (mut at, mut free) = (page.first_free, 0);
            while at != NONE {
                assert!(range.contains(&at) && slab.next_free[at as usize] != IN_USE);
                (at, free) = (slab.next_free[at as usize], free + 1);
                assert!(free <= size, "the list goes round");
            }
            assert_eq!(free, page.free);
        }
        let used = slab.next_free.iter().filter(|&&next| next == IN_USE).count();
        assert_eq!(used, in_use);
        let mut places = vec![Place::Full; slab.pages.len()];
        let mut put = |page: u32, place| {
            assert_eq!(places[page as usize], Place::Full, "on two lists");
            places[page as usize] = place;
        };
        walk(slab, slab.node).into_iter().for_each(|page| put(page, Place::Node));
        walk(slab, slab.spare).into_iter().for_each(|page| put(page, Place::Spare));
        for local in &slab.locals {
            let partial = walk(slab, local.partial);
            let counted = |&page: &u32| slab.pages[page as usize].counted;
            assert_eq!(partial.iter().map(counted).sum::<u32>(), local.counted);
            partial.into_iter().for_each(|page| put(page, Place::Cpu));
            if local.active != NONE {
                put(local.active, Place::Cpu);
            }
        }
        for (page, place) in slab.pages.iter().zip(places) {
            assert_eq!(page.place, place);
            assert!(place != Place::Full || page.free == 0, "free objects that nobody finds");
            assert!(place != Place::Spare || page.free == size);
        }
    }

    const SMALL: Shape =
        Shape { objects_per_page: 4, partial_objects: 1, refill_objects: 1, node_min: 1 };

    #[test]
    fn objects_are_free_or_in_use_and_pages_on_one_list_whatever_happens() {
        let mut random = Random::new(3);
        for shape in [
            SMALL,
            Shape { objects_per_page: 1, partial_objects: 0, refill_objects: 9, node_min: 0 },
            Shape { objects_per_page: 0, refill_objects: 0, ..SMALL },
            Shape::filp(160),
        ] {
            let mut slab = Slab::new(shape, 3);
            let mut objects = Vec::new();
            for step in 0..3_000 {
                // More and more in use, and then fewer and fewer.
                let growth = if step % 1_000 < 500 { 600_000 } else { 400_000 };
                let cpu = random.below(3) as usize;
                if random.chance_ppm(growth) || objects.is_empty() {
                    objects.push(slab.allocate(cpu).0);
                } else {
                    let which = random.below(objects.len() as u64) as usize;
                    slab.free(cpu, objects.swap_remove(which));
                }
                if step % 10 == 0 {
                    check(&slab, objects.len());
                }
            }
            for object in objects.drain(..) {
                slab.free(0, object);
            }
            check(&slab, 0);
        }
    }

    #[test]
    fn pages_are_larger_on_larger_machines() {
        let objects = [1, 7, 8, 40, 160, 4_096].map(|cpus| Shape::filp(cpus).objects_per_page);
        assert_eq!(objects, [16, 16, 32, 32, 64, 64]);
    }

    #[test]
    #[should_panic(expected = "freed twice")]
    fn freeing_twice_is_refused() {
        let mut slab = Slab::new(SMALL, 1);
        let (object, _) = slab.allocate(0);
        slab.free(0, object);
        slab.free(0, object);
    }

    #[test]
    fn the_lock_is_taken_where_pages_change_hands() {
        let mut slab = Slab::new(SMALL, 2);
        let objects: Vec<_> = (0..17).map(|_| slab.allocate(0)).collect();
        let visits: Vec<_> = objects.iter().map(|(_, visit)| *visit).collect();
        let fresh = Visit { pages_taken: 1, slow: 1, ..Visit::default() };
        for (index, visit) in visits.iter().enumerate() {
            let expected = if index % 4 == 0 { fresh } else { Visit::default() };
            assert_eq!(*visit, expected, "object {index}");
        }
        // Two full pages become partial ones of the other CPU; the third displaces them.
        let slow = Visit { slow: 1, ..Visit::default() };
        assert_eq!(slab.free(1, objects[0].0), slow);
        assert_eq!(slab.free(1, objects[4].0), slow);
        let drained = Visit { node_lock: 1, node_pages: 2, slow: 1, ..Visit::default() };
        assert_eq!(slab.free(1, objects[8].0), drained);
        // A page on the node's list: the lock is taken when the last object comes back.
        assert_eq!(slab.free(1, objects[1].0), slow);
        assert_eq!(slab.free(1, objects[2].0), slow);
        let emptied =
            Visit { node_lock: 1, node_pages: 1, pages_given_back: 1, slow: 1, ..Visit::default() };
        assert_eq!(slab.free(1, objects[3].0), emptied);
        assert_eq!(slab.pages(), 4);
        // The active page takes its own back without anything.
        assert_eq!(slab.free(0, objects[16].0), Visit::default());
        check(&slab, 17 - 7);
    }

    /// Node lock visits to a thousand objects, where one CPU allocates without end, and frees
    /// in batches of this many what it allocated a batch before, in order, with a jitter of a
    /// tenth.
    fn visits_per_1000(batch: u64, shape: Shape) -> u64 {
        let mut random = Random::new(11);
        let mut slab = Slab::new(shape, 1);
        let (mut waiting, mut ready, mut visit) =
            (VecDeque::new(), VecDeque::new(), Visit::default());
        let (mut done, mut counted) = (0_u64, 0_u64);
        while done < 400_000 {
            for _ in 0..batch - batch / 20 + random.below(batch / 10 + 1) {
                let (object, cost) = slab.allocate(0);
                waiting.push_back(object);
                if done > 100_000 {
                    visit.add(cost);
                }
                done += 1;
            }
            for object in ready.drain(..) {
                let cost = slab.free(0, object);
                if done > 100_000 {
                    visit.add(cost);
                    counted += 1;
                }
            }
            core::mem::swap(&mut waiting, &mut ready);
        }
        u64::from(visit.node_lock) * 1_000 / counted
    }

    #[test]
    fn large_batches_of_objects_allocated_together_visit_the_node_less() {
        let visits = |batch| visits_per_1000(batch, Shape::filp(160));
        let (small, medium, large) = (visits(1_000), visits(3_000), visits(10_000));
        assert!(small >= 4 * large && medium >= 4 * large, "{small}, {medium}, {large}");
        assert!(large >= visits(30_000));
        // What fits into the CPU's own pages needs no lock at all...
        assert_eq!(visits(100), 0);
        // ... nor does anything with pages enough of its own: it is the lists that cost.
        let own = Shape { partial_objects: 100_000, ..Shape::filp(160) };
        assert_eq!((visits_per_1000(1_000, own), visits_per_1000(10_000, own)), (0, 0));
    }
}
