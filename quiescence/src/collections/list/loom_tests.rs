//! The links of a list under loom: readers with one or two updaters. An element's number is one of
//! loom's cells, written before the element is inserted. So the model fails if a reader sees an
//! element before its content. A section lasts as long as the model.

use std::ptr;

use loom::cell::UnsafeCell;
use loom::sync::Arc;

use super::chain::{Chain, Ends, Node, follow};
use crate::loom_tests::{beside, bounded, spawn};
use crate::os::sync::{Mutex, Rank, lock};

struct Number(UnsafeCell<usize>);

impl Number {
    fn get(&self) -> usize {
        // SAFETY: a read; that no thread writes is what is tested.
        self.0.with(|number| unsafe { *number })
    }
}

/// A list, and all elements that were ever in it.
struct World {
    chain: Chain<Number>,
    ends: Mutex<Ends<Number>>,
    elements: std::sync::Mutex<Vec<*mut Node<Number>>>,
}

impl World {
    /// A list of these numbers.
    fn new(numbers: &[usize]) -> Arc<Self> {
        let world = Arc::new(Self {
            chain: Chain::new(),
            ends: Mutex::new(Rank::Consumers, Ends::new()),
            elements: std::sync::Mutex::new(Vec::new()),
        });
        numbers.iter().for_each(|number| world.push_back(*number));
        world
    }

    /// An element, which lives as long as the model.
    fn element(&self, number: usize) -> *mut Node<Number> {
        let cell = Number(UnsafeCell::new(0));
        // SAFETY: a write; no other thread has it.
        cell.0.with_mut(|place| unsafe { *place = number });
        let element = Box::into_raw(Box::new(Node::new(cell)));
        self.elements.lock().unwrap().push(element);
        element
    }

    /// What an updater does, under the lock.
    fn update<R>(&self, f: impl FnOnce(&mut Ends<Number>) -> R) -> R {
        f(&mut lock(&self.ends))
    }

    fn push_back(&self, number: usize) {
        let element = self.element(number);
        self.update(|ends| {
            let last = ends.last();
            // SAFETY: under the lock; the element lives as long as the model.
            unsafe { self.chain.insert(ends, last, element) };
        });
    }

    fn push_front(&self, number: usize) {
        let element = self.element(number);
        // SAFETY: as above.
        self.update(|ends| unsafe { self.chain.insert(ends, ptr::null_mut(), element) });
    }

    /// The element that was made after so many others.
    fn made(&self, place: usize) -> *mut Node<Number> {
        self.elements.lock().unwrap()[place]
    }

    fn remove(&self, place: usize) {
        let element = self.made(place);
        // SAFETY: under the lock, and in the list.
        self.update(|ends| unsafe { self.chain.remove(ends, element) });
    }

    fn replace(&self, place: usize, number: usize) {
        let (old, new) = (self.made(place), self.element(number));
        // SAFETY: under the lock, and in the list; the new one lives as long as the model.
        self.update(|ends| unsafe { self.chain.replace(ends, old, new) });
    }

    /// What a reader sees.
    fn read(&self) -> Vec<usize> {
        let mut numbers = Vec::new();
        let mut link = &self.chain.first;
        // SAFETY: elements live as long as the model.
        while let Some(node) = unsafe { follow(link).as_ref() } {
            numbers.push(node.value.get());
            link = &node.next;
        }
        numbers
    }

    /// What an updater sees from the last to the first, and how many there are.
    fn backwards(&self) -> (Vec<usize>, usize) {
        self.update(|ends| {
            let mut numbers = Vec::new();
            let mut at = ends.last();
            // SAFETY: as above.
            while let Some(node) = unsafe { at.as_ref() } {
                numbers.push(node.value.get());
                at = node.previous();
            }
            (numbers, self.chain.len())
        })
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return; // what loom looks at may be in there
        }
        for element in self.elements.get_mut().unwrap() {
            // SAFETY: a box of `element`, which no thread has any more.
            drop(unsafe { Box::from_raw(*element) });
        }
    }
}

/// What a reader on a thread of its own sees beside what this thread does. (The reader is the
/// thread that is spawned: where an updater loads a link before it stores to it, loom does not come
/// back to what another thread has loaded there before.)
fn read_beside(world: &Arc<World>, f: impl FnOnce(&World)) -> Vec<usize> {
    beside(world, World::read, f).0
}

#[test]
fn an_insertion_is_seen_whole() {
    bounded(3, || {
        let world = World::new(&[1, 3]);
        let seen = read_beside(&world, |world| {
            world.push_front(0);
            world.push_back(4);
        });
        assert!(matches!(seen[..], [1, 3] | [0, 1, 3] | [1, 3, 4] | [0, 1, 3, 4]), "{seen:?}");
        assert_eq!(world.read(), [0, 1, 3, 4]);
        assert_eq!(world.backwards(), (vec![4, 3, 1, 0], 4));
    });
}

/// The elements that stay are seen, each once; those that go are seen at most once.
#[test]
fn a_reader_on_removed_elements_comes_back_into_the_list() {
    bounded(3, || {
        let world = World::new(&[0, 1, 2, 3]);
        let seen = read_beside(&world, |world| {
            world.remove(1);
            world.remove(2);
        });
        assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
        assert!(seen.contains(&0) && seen.contains(&3), "{seen:?}");
        assert_eq!(world.read(), [0, 3]);
        assert_eq!(world.backwards(), (vec![3, 0], 2));
    });
}

#[test]
fn a_reader_sees_an_element_or_its_replacement() {
    bounded(3, || {
        let world = World::new(&[0, 1, 2]);
        let seen = read_beside(&world, |world| {
            world.replace(1, 10);
            world.replace(2, 20);
        });
        assert!(matches!(seen[..], [0, 1, 2] | [0, 10, 2] | [0, 1, 20] | [0, 10, 20]), "{seen:?}");
        assert_eq!(world.read(), [0, 10, 20]);
        assert_eq!(world.backwards(), (vec![20, 10, 0], 3));
    });
}

/// A reader may come by an element by the link that a removal has written, and never see the store
/// that another updater has inserted it with.
#[test]
fn a_removal_links_what_another_updater_has_inserted() {
    bounded(3, || {
        let world = World::new(&[0]);
        let inserts = spawn(&world, move |world| world.push_back(1));
        let seen = read_beside(&world, |world| world.remove(0));
        assert!([&[][..], &[0], &[1], &[0, 1]].contains(&&seen[..]), "{seen:?}");
        inserts.join().unwrap();
        assert_eq!(world.read(), [1]);
        assert_eq!(world.backwards(), (vec![1], 1));
    });
}
