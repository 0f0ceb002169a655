//! The table under loom: every interleaving of two or three threads. A chunk has two slots here. A
//! value is one of loom's cells, written before it is inserted. So the model fails if a reader sees
//! an entry before its content. A section lasts as long as the model; entries that were taken out
//! are freed at its end.

use std::ptr::NonNull;
use std::sync::Mutex;

use loom::cell::UnsafeCell;
use loom::sync::Arc;

use super::chunk::{Entry, SLOTS};
use super::entries::Entries;
use super::id::{Id, Mark};
use super::table::{INDEXES, Table};
use crate::loom_tests::{beside, beside_two, model_of, spawn};

type Value = UnsafeCell<usize>;

struct World {
    table: Table<Value>,
    /// Entries that were taken out.
    taken: Mutex<Vec<usize>>,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self { table: Table::new(), taken: Mutex::new(Vec::new()) })
    }

    fn value(number: usize) -> Value {
        let value = UnsafeCell::new(0);
        // SAFETY: a write; that no thread is near is what is tested.
        value.with_mut(|value| unsafe { *value = number });
        value
    }

    fn insert(&self, number: usize) -> Id {
        let claim = self.table.claim(|| 0).expect("there is room");
        claim.publish(Self::value(number))
    }

    /// The number of an entry.
    fn get(&self, id: Id) -> Option<usize> {
        let entry = self.table.load(id.index()).entry();
        // SAFETY: entries live as long as the model.
        let entry = unsafe { entry.as_ref() }.filter(|entry| entry.generation == id.generation());
        // SAFETY: a read; that no writer is near is what is tested.
        entry.map(|entry| entry.value.with(|value| unsafe { *value }))
    }

    fn took(&self, entry: NonNull<Entry<Value>>) {
        self.taken.lock().unwrap().push(entry.as_ptr().expose_provenance());
    }

    fn remove(&self, id: Id) -> bool {
        // Entries live as long as the model.
        let taken = self.table.unlink(id.index(), |generation, _| generation == id.generation());
        taken.inspect(|entry| self.took(*entry)).is_some()
    }

    /// Removes the entry, and inserts another one.
    fn again(&self, old: Id) -> Id {
        assert!(self.remove(old));
        self.insert(2)
    }

    fn replace(&self, id: Id, number: usize) -> bool {
        let new = Entry::boxed(id, Self::value(number));
        // SAFETY: as above.
        let old = unsafe { self.table.replace(id, None, new) };
        let is_replaced = old.is_ok();
        self.took(old.unwrap_or_else(|new| NonNull::from(Box::leak(new))));
        is_replaced
    }

    fn mark(&self, id: Id, mark: Mark) -> bool {
        // SAFETY: as above.
        unsafe { self.table.change_marks(id, None, Some(mark)) }
    }

    fn unmark(&self, id: Id, mark: Mark) -> bool {
        // SAFETY: as above.
        unsafe { self.table.change_marks(id, Some(mark), None) }
    }

    fn is_marked(&self, index: u32, mark: Mark) -> bool {
        self.table.load(index).has(mark)
    }

    /// What a search by mark finds.
    fn marked(&self, mark: Mark) -> Vec<u32> {
        self.hints(mark).filter(|index| self.is_marked(*index, mark)).collect()
    }

    /// Where the search looks for it.
    fn hints(&self, mark: Mark) -> impl Iterator<Item = u32> {
        // SAFETY: entries that are taken out are freed with the table.
        let mut entries = unsafe { Entries::new(&self.table, Some(mark), 0..INDEXES) };
        std::iter::from_fn(move || entries.next_index())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return; // what loom looks at may be in there
        }
        let mut all = self.taken.get_mut().unwrap().drain(..).collect::<Vec<_>>();
        all.extend(self.table.drain().map(|entry| entry.expose_provenance()));
        for entry in all {
            let entry = std::ptr::with_exposed_provenance_mut::<Entry<Value>>(entry);
            // SAFETY: a box of `entry`, which has been taken out, once.
            drop(unsafe { Box::from_raw(entry) });
        }
    }
}

#[test]
fn a_reader_sees_what_was_inserted_whole() {
    model_of(3, World::new, |world| {
        world.insert(6);
        let second = Id::from_bits(1 << 32 | 1).unwrap();
        let (id, seen) = beside(world, |world| world.insert(7), |world| world.get(second));
        assert!(seen.is_none_or(|number| number == 7));
        assert_eq!(id, second);
        assert_eq!(world.get(second), Some(7));
    });
}

/// A reader with an id finds its entry or nothing, while the index is used again.
#[test]
fn an_index_that_is_used_again_has_another_id() {
    model_of(3, World::new, |world| {
        let other = spawn(world, |world| {
            let id = world.insert(1);
            assert!(world.remove(id));
            id
        });
        let here = world.insert(2);
        assert_eq!(world.get(here), Some(2));
        let there = other.join().unwrap();
        assert_ne!(here, there);
        assert_eq!((world.get(here), world.get(there)), (Some(2), None));
    });
}

#[test]
fn an_old_id_finds_nothing() {
    model_of(3, World::new, |world| {
        let old = world.insert(1);
        let (new, seen) = beside(world, move |world| world.again(old), |world| world.get(old));
        assert!(seen.is_none_or(|number| number == 1));
        assert_eq!((world.get(old), world.get(new)), (None, Some(2)));
        assert_eq!(world.table.count(), 1);
    });
}

/// A thread that finds an entry can take it out, even while it is being inserted; and not another
/// one that has its index.
#[test]
fn an_entry_that_is_found_is_taken_out_by_its_own_id() {
    model_of(3, World::new, |world| {
        let old = world.insert(1);
        let next = Id::from_bits(2 << 32).unwrap();
        let updater = spawn(world, move |world| world.again(old));
        let is_there = world.get(next).is_some();
        let removed = world.remove(next);
        assert!(removed || !is_there);
        let new = updater.join().unwrap();
        assert_eq!(new, next, "of the only index that is given back");
        assert_eq!(world.get(new).is_none(), removed);
    });
}

#[test]
fn an_old_id_takes_no_later_entry_out() {
    model_of(3, World::new, |world| {
        let old = world.insert(1);
        let removes = move |world: &World| world.remove(old);
        let ((there, new), here) =
            beside(world, move |world| (removes(world), world.insert(2)), removes);
        assert!(here ^ there);
        assert_eq!(world.get(new), Some(2));
    });
}

#[test]
fn one_of_two_removes_what_is_being_replaced() {
    model_of(2, World::new, |world| {
        let id = world.insert(1);
        let removes = move |world: &World| world.remove(id);
        let (there, _, here) =
            beside_two(world, removes, move |world| world.replace(id, 2), removes);
        assert!(here ^ there);
        assert_eq!(world.get(id), None);
        assert_eq!(world.table.count(), 0);
    });
}

#[test]
fn one_of_two_takes_an_index() {
    model_of(3, World::new, |world| {
        let take = |world: &World| {
            let claim = world.table.claim_at(1);
            claim.map(|claim| claim.publish(World::value(1)))
        };
        let (there, here) = beside(world, take, take);
        assert!(here.is_some() ^ there.is_some());
        assert_eq!(world.table.count(), 1);
    });
}

/// A thread finds a chunk full while another one gives an index of it back.
#[test]
fn a_free_index_is_not_lost() {
    model_of(3, World::new, |world| {
        let ids: Vec<Id> = (0..SLOTS).map(|number| world.insert(number)).collect();
        let last = ids[SLOTS - 1];
        let removes = move |world: &World| assert!(world.remove(last));
        let ((), new) = beside(world, removes, |world| world.insert(9));
        if new.index() as usize >= SLOTS {
            // The free index is the lowest one, wherever this one was put.
            let claim = world.table.claim_in_range(0..INDEXES).expect("there is room");
            assert_eq!(claim.id.index(), last.index());
        }
    });
}

#[test]
fn a_mark_does_not_outlive_its_entry() {
    model_of(3, World::new, |world| {
        let old = world.insert(1);
        let mark = |world: &World| world.mark(old, Mark::M1);
        let (new, _) = beside(world, move |world| world.again(old), mark);
        if new.index() == old.index() {
            assert!(!world.is_marked(new.index(), Mark::M1));
        }
        assert!(world.marked(Mark::M1).is_empty());
        assert_eq!(world.hints(Mark::M1).count(), 0, "a search looks where there is nothing");
    });
}

#[test]
fn a_search_finds_what_was_marked_before_it() {
    model_of(3, World::new, |world| {
        let ids = [world.insert(1), world.insert(2)];
        assert!(world.mark(ids[0], Mark::M0));
        let other = spawn(world, move |world| assert!(world.unmark(ids[0], Mark::M0)));
        assert!(world.mark(ids[1], Mark::M0));
        assert!(world.marked(Mark::M0).contains(&ids[1].index()), "it is not found");
        other.join().unwrap();
        assert_eq!(world.marked(Mark::M0), [ids[1].index()]);
        assert_eq!(world.hints(Mark::M0).count(), 1);
    });
}

#[test]
fn a_mark_is_given_once_and_stays_with_a_new_value() {
    model_of(2, World::new, |world| {
        let id = world.insert(1);
        let marks = move |world: &World| world.mark(id, Mark::M2);
        let replaces = move |world: &World| assert!(world.replace(id, 2));
        let (there, (), here) = beside_two(world, marks, replaces, marks);
        assert!(here ^ there);
        assert_eq!((world.marked(Mark::M2), world.get(id)), (vec![id.index()], Some(2)));
    });
}
