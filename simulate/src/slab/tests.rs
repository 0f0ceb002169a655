//! Tests of the slab allocator, step by step and in numbers.

use super::*;
use crate::random::Random;
use std::collections::VecDeque;

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
    for (number, node) in slab.nodes.iter().enumerate() {
        for page in node.numbers() {
            put(page, Place::Node);
            assert_eq!(slab.pages[page as usize].node, number as u32);
        }
    }
    slab.spare.iter().copied().for_each(|page| put(page, Place::Spare));
    for local in &slab.locals {
        let partial = local.partial.clone();
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

const SMALL: Shape = Shape {
    objects_per_page: 4,
    partial_objects: 1,
    refill_objects: 1,
    node_min: 1,
    search_of_1024: 1_024,
};

/// A page whose line is here.
const OWN: Step = Step::Slow(Distance::Own);

/// Allocates or frees, and says what that took.
fn allocate(slab: &mut Slab, cpu: usize) -> (Object, Vec<Step>) {
    let mut steps = Vec::new();
    (slab.allocate(cpu, &mut steps), steps)
}

fn free(slab: &mut Slab, cpu: usize, object: Object) -> Vec<Step> {
    let mut steps = Vec::new();
    slab.free(cpu, object, &mut steps);
    steps
}

#[test]
fn objects_are_free_or_in_use_and_pages_on_one_list_whatever_happens() {
    let mut random = Random::new(3);
    for shape in [
        SMALL,
        Shape { objects_per_page: 1, partial_objects: 0, refill_objects: 9, ..SMALL },
        Shape { objects_per_page: 0, refill_objects: 0, ..SMALL },
        Shape::filp(160),
    ] {
        // Three CPUs on one node, or on two.
        for cpus_per_node in [3, 2] {
            let mut slab = Slab::new(shape, 3, cpus_per_node);
            let mut objects = Vec::new();
            for step in 0..3_000 {
                // More and more in use, and then fewer and fewer.
                let growth = if step % 1_000 < 500 { 600_000 } else { 400_000 };
                let cpu = random.below(3) as usize;
                if random.chance_ppm(growth) || objects.is_empty() {
                    objects.push(allocate(&mut slab, cpu).0);
                } else {
                    let which = random.below(objects.len() as u64) as usize;
                    free(&mut slab, cpu, objects.swap_remove(which));
                }
                if step % 10 == 0 {
                    check(&slab, objects.len());
                }
            }
            for object in objects.drain(..) {
                free(&mut slab, 0, object);
            }
            check(&slab, 0);
        }
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
    let mut slab = Slab::new(SMALL, 1, 1);
    let (object, _) = allocate(&mut slab, 0);
    free(&mut slab, 0, object);
    free(&mut slab, 0, object);
}

#[test]
fn the_lock_is_taken_where_pages_change_hands() {
    let mut slab = Slab::new(SMALL, 2, 2);
    let objects: Vec<_> = (0..17).map(|_| allocate(&mut slab, 0)).collect();
    for (index, (_, steps)) in objects.iter().enumerate() {
        // Another page at every fourth; the first one splits the largest block.
        let operations = [9, 1, 2, 1, 3];
        let expected = match index % 4 {
            0 => vec![Step::Zone { node: 0, operations: operations[index / 4], takes: true }, OWN],
            _ => Vec::new(),
        };
        assert_eq!(*steps, expected, "object {index}");
    }
    // Two full pages become partial ones of the other CPU; the third displaces them.
    // Their lines were the first CPU's, and are where they are from then on.
    assert_eq!(free(&mut slab, 1, objects[0].0), [Step::Slow(Distance::Near)]);
    assert_eq!(free(&mut slab, 1, objects[4].0), [Step::Slow(Distance::Near)]);
    let drained = Step::List { node: 0, pages: 2, lines: [0; 2], irqsave: false };
    assert_eq!(free(&mut slab, 1, objects[8].0), [Step::Slow(Distance::Near), drained]);
    // A page on the node's list: the lock is taken when the last object comes back.
    assert_eq!(free(&mut slab, 1, objects[1].0), [OWN]);
    assert_eq!(free(&mut slab, 1, objects[2].0), [OWN]);
    let unlisted = Step::List { node: 0, pages: 1, lines: [0; 2], irqsave: true };
    let back = Step::Zone { node: 0, operations: 1, takes: false };
    assert_eq!(free(&mut slab, 1, objects[3].0), [OWN, unlisted, back]);
    assert_eq!(slab.pages(), 4);
    // The active page takes its own back without anything.
    assert_eq!(free(&mut slab, 0, objects[16].0), []);
    check(&slab, 17 - 7);
}

/// What was not there: a page's line stays with the CPU that wrote it last, and comes from there,
/// under the lock if the page is taken from a list.
#[test]
fn pages_lines_come_from_the_cpu_that_freed_into_them() {
    // Each CPU is a node of its own.
    let mut slab = Slab::new(Shape { refill_objects: 9, ..SMALL }, 2, 1);
    let objects: Vec<_> = (0..16).map(|_| allocate(&mut slab, 0).0).collect();
    for page in objects.chunks(4).take(3) {
        assert_eq!(free(&mut slab, 1, page[0])[0], Step::Slow(Distance::Far));
    }
    let (_, steps) = allocate(&mut slab, 0);
    let refilled = Step::List { node: 0, pages: 2, lines: [0, 2], irqsave: false };
    assert_eq!(steps, [refilled, OWN]);
    check(&slab, 14);
}

/// What was not there: a CPU whose node has no partial page takes another node's, under that
/// node's lock.
#[test]
fn other_nodes_are_searched_before_a_fresh_page_is_taken() {
    let lists_of_the_other = |search_of_1024, node_min| {
        // The second CPU's node gets partial pages: each with one object in use, or more.
        let shape = Shape { search_of_1024, node_min, ..SMALL };
        let mut slab = Slab::new(shape, 2, 1);
        let objects: Vec<_> = (0..40).map(|_| allocate(&mut slab, 1).0).collect();
        for page in objects.chunks(4) {
            free(&mut slab, 1, page[0]);
        }
        let mut steps = Vec::new();
        for _ in 0..8 {
            slab.allocate(0, &mut steps);
        }
        check(&slab, 40 - 10 + 8);
        steps.iter().filter(|step| matches!(step, Step::List { node: 1, .. })).count()
    };
    assert!(lists_of_the_other(1_024, 1) > 1);
    assert_eq!(lists_of_the_other(0, 1), 0, "the search is switched off");
    assert_eq!(lists_of_the_other(1_024, 100), 0, "it keeps what it has");
}

/// What the zone's lock is held for was one page's lines, whatever the page allocator did.
#[test]
fn pages_that_come_back_together_merge_under_the_zones_lock() {
    let mut slab = Slab::new(Shape { partial_objects: 0, node_min: 0, ..SMALL }, 1, 1);
    let objects: Vec<_> = (0..4 * 64).map(|_| allocate(&mut slab, 0).0).collect();
    let mut steps = Vec::new();
    for object in objects {
        slab.free(0, object, &mut steps);
    }
    let operations = steps.iter().filter_map(|step| match step {
        Step::Zone { operations, takes: false, .. } => Some(*operations),
        _ => None,
    });
    let operations: Vec<u32> = operations.collect();
    let mean = f64::from(operations.iter().sum::<u32>()) / operations.len() as f64;
    assert!(operations.len() >= 60 && mean > 1.8, "{operations:?}");
}

/// Visits to the node's lock to a thousand objects, where one CPU allocates without end, and frees
/// in batches of this many what it allocated a batch before, in order, with a jitter of a tenth.
fn visits_per_1000(batch: u64, shape: Shape) -> u64 {
    let mut random = Random::new(11);
    let mut slab = Slab::new(shape, 1, 1);
    let (mut waiting, mut ready, mut steps) = (VecDeque::new(), VecDeque::new(), Vec::new());
    let (mut done, mut counted, mut visits) = (0_u64, 0_u64, 0_u64);
    while done < 400_000 {
        for _ in 0..batch - batch / 20 + random.below(batch / 10 + 1) {
            waiting.push_back(slab.allocate(0, &mut steps));
            done += 1;
        }
        for object in ready.drain(..) {
            slab.free(0, object, &mut steps);
            counted += u64::from(done > 100_000);
        }
        if done > 100_000 {
            visits += steps.iter().filter(|step| matches!(step, Step::List { .. })).count() as u64;
        }
        steps.clear();
        core::mem::swap(&mut waiting, &mut ready);
    }
    visits * 1_000 / counted
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
