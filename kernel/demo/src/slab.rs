//! A slab allocator: after SLUB as of 2014 (C. Lameter, `mm/slub.c`), as the simulator's `slab` has
//! it, whose head says why a free's cost depends on what was freed just before. On one memory node;
//! pages come from a stack, not from an allocator that splits and merges blocks. A page that leaves
//! the node's list since it is empty leaves its place there behind, which is passed over later.
//!
//! Locks are taken in this order: of a hart, of the node, of the zone.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering::*};

use kernel::{Head, Link, Linked};

use crate::hart::{HARTS, this};
use crate::lock::Lock;

/// The simulator's `Shape::filp` of 8 CPUs: objects of a page; free objects in the partial pages of
/// a hart; those that it takes from the node; pages that the node keeps.
const OBJECTS: usize = 32;
const PARTIAL: u32 = 13;
const REFILL: u32 = 6;
const NODE_MIN: usize = 5;
const PAGES: usize = 16_384;
/// Places in the node's list.
const LISTED: usize = 4 * PAGES;

/// An object: an open file, or a name in a directory.
#[repr(C, align(64))]
pub(crate) struct Object {
    pub(crate) head: Head,
    pub(crate) link: Link,
    /// The directory, and the name there.
    pub(crate) key: AtomicU64,
}

// SAFETY: the field is there, and its list's alone.
unsafe impl Linked for Object {
    const OFFSET: usize = core::mem::offset_of!(Object, link);
}

/// The key of an object that has been freed.
pub(crate) const FREED: u64 = u64::MAX;

pub(crate) static TABLE: [Object; PAGES * OBJECTS] =
    [const { Object { head: Head::new(), link: Link::new(), key: AtomicU64::new(FREED) } };
        PAGES * OBJECTS];

/// Who has a page: a hart that allocates from it or has it among its partial pages; the node; or
/// nobody, since no object is free, or all are.
const HART: u32 = 0;
const NODE: u32 = 1;
const FULL: u32 = 2;
const SPARE: u32 = 3;

/// Who has it, and below that a bit for each free object, but for those that the hart has taken
/// that allocates from it.
#[repr(align(64))]
struct Page(AtomicU64);

static ALL: [Page; PAGES] = [const { Page(AtomicU64::new((SPARE as u64) << 32)) }; PAGES];

/// Changes a page in one step. Returns what it was.
fn change(page: usize, new: impl Fn(u32, u32) -> (u32, u32)) -> (u32, u32) {
    let parts = |word: u64| ((word >> 32) as u32, word as u32);
    let word = |(place, free): (u32, u32)| u64::from(place) << 32 | u64::from(free);
    let change = |old| word(new(parts(old).0, parts(old).1));
    // AcqRel: an object that one hart frees another one allocates.
    parts(ALL[page].0.update(AcqRel, Acquire, change))
}

/// The node's list of partial pages, a ring, and how many are there.
struct List {
    ring: [usize; LISTED],
    from: usize,
    to: usize,
    pages: usize,
}

static PARTIALS: Lock<List> = Lock::new(List { ring: [0; LISTED], from: 0, to: 0, pages: 0 });
/// The zone's spare pages, how many those are, and the first page that was never used.
static ZONE: Lock<([usize; PAGES], usize, usize)> = Lock::new(([0; PAGES], 0, 0));

impl List {
    fn append(&mut self, page: usize) {
        assert!(self.to - self.from < LISTED, "more places are needed");
        self.ring[self.to % LISTED] = page;
        (self.to, self.pages) = (self.to + 1, self.pages + 1);
    }

    /// The first page, for a hart, and how many of its objects are free.
    fn pop(&mut self) -> Option<(usize, u32)> {
        while self.from != self.to {
            let page = self.ring[self.from % LISTED];
            self.from += 1;
            let taken = |place, free| (if place == NODE { HART } else { place }, free);
            if let (NODE, free) = change(page, taken) {
                self.pages -= 1;
                return Some((page, free.count_ones()));
            }
        }
        None
    }
}

/// What a hart has.
struct Local {
    /// The page that it allocates from, and those of its free objects that it has taken.
    active: Option<usize>,
    free: u32,
    /// Partial pages, with what was free in each when it came; and the sum of that.
    partial: [(usize, u32); 2 * OBJECTS],
    pages: usize,
    counted: u32,
    counts: [u64; 3],
}

static LOCALS: [Lock<Local>; HARTS] = [const {
    let partial = [(0, 0); 2 * OBJECTS];
    Lock::new(Local { active: None, free: 0, partial, pages: 0, counted: 0, counts: [0; 3] })
}; HARTS];

/// An object, by its place in [`TABLE`].
pub(crate) fn allocate() -> usize {
    LOCALS[this().id].with(Local::allocate)
}

/// The callback of an object: frees it into the page that it is of, whoever has that.
pub(crate) unsafe fn free(head: NonNull<Head>) {
    // The head is at the beginning of the object.
    let object = (head.addr().get() - TABLE.as_ptr().addr()) / size_of::<Object>();
    TABLE[object].key.store(FREED, Relaxed);
    LOCALS[this().id].with(|local| local.free(object));
}

/// How often objects were allocated, and how often the locks of node and zone were taken.
pub(crate) fn counts() -> [u64; 3] {
    let all = LOCALS.iter().map(|local| local.with(|local| local.counts));
    all.fold([0; 3], |sum, one| core::array::from_fn(|at| sum[at] + one[at]))
}

impl Local {
    fn allocate(&mut self) -> usize {
        self.counts[0] += 1;
        let mut page = self.active.unwrap_or_else(|| self.next_page());
        while self.free == 0 {
            // What others have freed there; if that is nothing, the page is full.
            let taken = |_, free| (if free == 0 { FULL } else { HART }, 0);
            self.free = change(page, taken).1;
            if self.free == 0 {
                page = self.next_page();
            }
        }
        self.active = Some(page);
        let first = self.free.trailing_zeros();
        self.free &= !(1 << first);
        page * OBJECTS + first as usize
    }

    fn next_page(&mut self) -> usize {
        self.pop().or_else(|| self.refill()).unwrap_or_else(|| self.new_page())
    }

    fn push(&mut self, page: usize, free: u32) {
        self.partial[self.pages] = (page, free);
        self.pages += 1;
        self.counted += free;
    }

    fn pop(&mut self) -> Option<usize> {
        self.pages = self.pages.checked_sub(1)?;
        let (page, free) = self.partial[self.pages];
        self.counted -= free;
        Some(page)
    }

    /// Takes pages from the node: the first is returned, others become partial ones here.
    fn refill(&mut self) -> Option<usize> {
        PARTIALS.with(|node| {
            let (first, mut free) = node.pop()?;
            self.counts[1] += 1;
            while free <= REFILL {
                let Some((page, more)) = node.pop() else { break };
                self.push(page, more);
                free += more;
            }
            Some(first)
        })
    }

    fn new_page(&mut self) -> usize {
        self.counts[2] += 1;
        let page = ZONE.with(|(spare, count, unused)| {
            if *count == 0 {
                *unused += 1;
                return *unused - 1;
            }
            *count -= 1;
            spare[*count]
        });
        change(page, |_, _| (HART, u32::MAX));
        page
    }

    fn free(&mut self, object: usize) {
        let (page, bit) = (object / OBJECTS, 1 << (object % OBJECTS));
        if self.active == Some(page) {
            assert!(self.free & bit == 0, "freed twice");
            self.free |= bit;
            return;
        }
        let freed = |place, free| (if place == FULL { HART } else { place }, free | bit);
        let (place, before) = change(page, freed);
        assert!(before & bit == 0 && place != SPARE, "freed twice");
        if place == FULL {
            if self.counted > PARTIAL {
                self.drain();
            }
            self.push(page, 1);
        } else if place == NODE && before | bit == u32::MAX {
            self.counts[1] += 1;
            PARTIALS.with(|node| self.pass_on(node, page));
        }
    }

    /// The partial pages go to the node.
    fn drain(&mut self) {
        self.counts[1] += 1;
        PARTIALS.with(|node| {
            while let Some(page) = self.pop() {
                change(page, |_, free| (NODE, free));
                node.append(page);
                self.pass_on(node, page);
            }
        });
    }

    /// A page of the node's goes to the zone, if it is empty, nobody has taken it, and the node has
    /// enough.
    fn pass_on(&mut self, node: &mut List, page: usize) {
        let goes = |of| of == (NODE, u32::MAX) && node.pages > NODE_MIN;
        if !goes(change(page, |place, free| {
            (if goes((place, free)) { SPARE } else { place }, free)
        })) {
            return;
        }
        node.pages -= 1;
        self.counts[2] += 1;
        ZONE.with(|(spare, count, _)| {
            spare[*count] = page;
            *count += 1;
        });
    }
}
