//! The table's list and buckets under loom: every interleaving of two or three threads.
//!
//! Each object has a number, which is written before the object is added, and removed by the thread
//! that deletes it once no thread can see it any more. So the model fails if a reader comes too
//! early or too late.

use std::ptr::{self, NonNull};

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::list::{self, BUCKET, LINKED};
use super::node::Node;
use super::split;
use crate::loom_tests::{beside, beside_two, model_of, spawn};

#[repr(C)]
struct Object {
    node: Node,
    number: UnsafeCell<usize>,
}

/// A table of two buckets, and objects to be added; a section is as long as a model.
struct World {
    buckets: [Node; 2],
    objects: [Object; 4],
}

/// Two hashes of bucket 0, one of bucket 1 in between, and one of bucket 1 twice.
const HASHES: [usize; 4] = [0b10, 0b01, 0b11, 0b11];

impl World {
    /// Bucket 0 is in the list, bucket 1 is not.
    fn new() -> Arc<Self> {
        let object = |_| Object { node: Node::new(), number: UnsafeCell::new(0) };
        let world = Arc::new(Self {
            buckets: [Node::new(), Node::new()],
            objects: std::array::from_fn(object),
        });
        world.buckets[0].next.store(BUCKET | LINKED, Relaxed);
        world
    }

    fn at<'a>(&'a self) -> impl Fn(usize) -> &'a Node {
        |index| &self.buckets[index]
    }

    fn start(&self, hash: usize) -> &Node {
        // SAFETY: the buckets live as long as the model.
        unsafe { split::start(self.at(), hash & 1) }
    }

    /// Writes an object's number, and gives its node, made ready.
    fn filled(&self, number: usize) -> &Node {
        let Object { node, number: place } = &self.objects[number];
        // SAFETY: a write; that no thread is near is what is tested.
        place.with_mut(|place| unsafe { *place = number + 1 });
        node.set_reverse_hash(HASHES[number].reverse_bits());
        list::address(node);
        node
    }

    fn add(&self, number: usize) {
        let node = self.filled(number);
        // SAFETY: everything lives as long as the model.
        unsafe { list::add(|| self.start(HASHES[number]), node) };
    }

    /// Adds unless there is one of the same hash.
    fn add_unique(&self, number: usize) -> bool {
        let node = self.filled(number);
        let start = || self.start(HASHES[number]);
        // SAFETY: as above.
        unsafe { list::add_or(start, node, |_| true, |_| Some(())) }.is_ok()
    }

    fn delete(&self, number: usize) -> bool {
        let node = &self.objects[number].node;
        if !list::mark(node) {
            return false;
        }
        // SAFETY: as above.
        unsafe { list::unlink(self.start(HASHES[number]), node) };
        assert!(!self.stands(number), "it stands in the list after it was deleted");
        true
    }

    /// Object 2 by object 3.
    fn replace(&self) -> bool {
        let (old, new) = (&self.objects[2].node, self.filled(3));
        // SAFETY: as above.
        let replaced = unsafe { list::replace(old, new) };
        if replaced {
            // SAFETY: as above.
            unsafe { list::unlink(self.start(HASHES[2]), old) };
        }
        replaced
    }

    /// Whether a node can be reached from the first bucket.
    fn stands(&self, number: usize) -> bool {
        let mut link = self.buckets[0].next.load(Acquire);
        // SAFETY: as above.
        while let Some(node) = unsafe { list::follow(link) } {
            if ptr::eq(node, &self.objects[number].node) {
                return true;
            }
            link = node.next.load(Acquire);
        }
        false
    }

    /// Looks an object up, and at its number.
    fn finds(&self, number: usize) -> bool {
        let hash = HASHES[number];
        // SAFETY: as above.
        let link = unsafe { split::start_link(self.at(), hash & 1) };
        let is_it = |node: &Node| ptr::eq(node, &self.objects[number].node);
        // SAFETY: as above.
        let found = unsafe { list::find(link, hash.reverse_bits(), is_it) };
        if found.is_some() {
            let place = &self.objects[number].number;
            // SAFETY: a read; that no writer is near is what is tested.
            place.with(|place| assert_eq!(unsafe { *place }, number + 1));
        }
        found.is_some()
    }

    /// What stands in the list, in its order, without buckets.
    fn all(&self) -> Vec<usize> {
        let mut link = self.buckets[0].next.load(Acquire);
        let mut all = Vec::new();
        // SAFETY: as above.
        while let Some((node, next)) = unsafe { list::next(link) } {
            let number = self.objects.iter().position(|object| ptr::eq(&object.node, node));
            all.push(number.unwrap());
            assert!(all.len() <= self.objects.len(), "it goes round: {all:?}");
            link = next;
        }
        all
    }
}

#[test]
fn what_is_added_is_found_whole() {
    model_of(3, World::new, |world| {
        beside(world, |world| world.add(0), |world| world.finds(0));
        assert!(world.finds(0));
    });
}

#[test]
fn two_add_and_one_deletes_beside_each_other() {
    model_of(2, World::new, |world| {
        world.add(0);
        let deletes = |world: &World| assert!(world.delete(0));
        beside_two(world, |world| world.add(1), deletes, |world| world.add(2));
        assert_eq!(world.all(), [1, 2]);
    });
}

#[test]
fn one_of_two_deletes() {
    model_of(3, World::new, |world| {
        world.add(0);
        world.add(1);
        let (there, here) = beside(world, |world| world.delete(1), |world| world.delete(1));
        assert!(here ^ there);
        assert_eq!(world.all(), [0]);
    });
}

#[test]
fn neighbours_are_deleted_at_once() {
    model_of(3, World::new, |world| {
        (0..3).for_each(|number| world.add(number));
        let deleted = beside(world, |world| world.delete(0), |world| world.delete(1));
        assert_eq!(deleted, (true, true));
        assert_eq!(world.all(), [2]);
    });
}

#[test]
fn one_of_two_adds_a_key() {
    model_of(3, World::new, |world| {
        let (there, here) = beside(world, |world| world.add_unique(2), |world| world.add_unique(3));
        assert!(here ^ there);
        assert_eq!(world.all().len(), 1);
    });
}

/// A reader meets the old node or the new one, never none, and not both by going on.
#[test]
fn a_key_is_there_while_it_is_replaced() {
    model_of(3, World::new, |world| {
        world.add(2);
        let replaces = |world: &World| {
            assert!(world.replace());
            assert!(!world.stands(2));
        };
        beside(world, replaces, |world| assert_eq!(world.all().len(), 1));
        assert_eq!(world.all(), [3]);
    });
}

#[test]
fn a_node_is_replaced_or_deleted() {
    model_of(3, World::new, |world| {
        world.add(2);
        let (deleted, replaced) = beside(world, |world| world.delete(2), World::replace);
        assert!(replaced ^ deleted);
        assert_eq!(world.all(), if replaced { vec![3] } else { vec![] });
    });
}

/// Two need the bucket for the first time, and one looks for what is behind it.
#[test]
fn a_bucket_comes_into_the_list_once() {
    model_of(3, World::new, |world| {
        world.buckets[1].next.store(0, Relaxed);
        let link_0 = world.buckets[0].next.load(Relaxed);
        // Behind bucket 1's place, added while the table had one bucket.
        let node = world.filled(1);
        // SAFETY: everything lives as long as the model.
        unsafe { list::add(|| &world.buckets[0], node) };
        assert_ne!(world.buckets[0].next.load(Relaxed), link_0);
        let adder = spawn(world, |world| world.add(2));
        world.add(3);
        assert!(world.finds(1));
        assert!(world.finds(3));
        adder.join().unwrap();
        let all = world.all();
        assert!(all == [1, 2, 3] || all == [1, 3, 2], "{all:?}");
    });
}

/// A bucket comes while what stands behind its place is deleted, and goes again.
#[test]
fn a_bucket_comes_and_goes() {
    model_of(3, World::new, |world| {
        let node = world.filled(1);
        // SAFETY: everything lives as long as the model.
        unsafe { list::add(|| &world.buckets[0], node) };
        let deleter = spawn(world, |world| {
            // From bucket 0: it knows the smaller size.
            let node = &world.objects[1].node;
            assert!(list::mark(node));
            // SAFETY: as above.
            unsafe { list::unlink(&world.buckets[0], node) };
            assert!(!world.stands(1));
        });
        world.add(2);
        deleter.join().unwrap();
        // As after a grace period.
        let reader = spawn(world, |world| {
            let is_it = |node: &Node| ptr::eq(node, &world.objects[2].node);
            let link = world.buckets[0].next.load(Acquire);
            // SAFETY: as above.
            assert!(unsafe { list::find(link, HASHES[2].reverse_bits(), is_it) }.is_some());
        });
        // SAFETY: as above; no thread begins at it.
        unsafe { split::unlink(world.at(), 1) };
        reader.join().unwrap();
        assert_eq!(world.all(), [2]);
        let mut link = world.buckets[0].next.load(Relaxed);
        // SAFETY: as above.
        while let Some(node) = unsafe { list::follow(link) } {
            assert!(!ptr::eq(node, &world.buckets[1]));
            link = node.next.load(Relaxed);
        }
    });
}

/// What a cursor keeps of a node's object is the whole of it.
#[test]
fn a_pointer_is_the_owners() {
    model_of(1, World::new, |world| {
        world.add(0);
        // SAFETY: as above.
        let (node, _) = unsafe { list::next(world.buckets[0].next.load(Acquire)) }.unwrap();
        assert_eq!(list::pointer(node), NonNull::from(&world.objects[0].node));
    });
}
