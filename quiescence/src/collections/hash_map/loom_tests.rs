//! Buckets, nodes and tables under loom: every interleaving of an updater and a reader.
//!
//! Tables have one bucket of two slots, or two; so two entries fill one, and a third needs a node.
//! No grace period ends before the model does. Loom sees the write and the reads of a value
//! ([`Tracked`]), and refuses those that nothing orders.

use std::ptr::NonNull;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use loom::sync::Arc;

use super::bucket::{Found, Locked, Moved, Sight};
use super::growth;
use super::map::Entry;
use super::node::Left;
use super::search::{Seen, search};
use super::table::{Table, TableRef};
use super::walk::Walk;
use crate::collections::tags;
use crate::loom_tests::{self, bounded};
use crate::os::sync::{AtomicPtr, Tracked};

/// A value whose write and reads loom sees.
struct Watched {
    value: u32,
    tracked: Tracked<1>,
    /// Whether an update has taken it out. (Not loom's: it orders nothing.)
    is_out: AtomicBool,
}

type Pair = Entry<u32, Watched>;

impl Pair {
    fn new(key: u32, value: u32) -> Box<Self> {
        let tracked = Tracked::new();
        tracked.write(0);
        Box::new(Self { key, value: Watched { value, tracked, is_out: AtomicBool::new(false) } })
    }
}

struct World {
    root: AtomicPtr<Table<Pair>>,
}

/// The hash of a key: keys of one bucket, with one tag for all.
fn hash_of(key: u32) -> u64 {
    0x55 << 56 | u64::from(key % 2)
}

impl World {
    fn new(buckets: usize) -> Arc<Self> {
        Arc::new(Self { root: AtomicPtr::new(TableRef::new(buckets, None).as_ptr()) })
    }

    fn table(&self) -> TableRef<Pair> {
        // SAFETY: nothing is freed before the end of the model.
        unsafe { growth::root(&self.root) }
    }

    fn find(&self, key: u32) -> Option<*const Pair> {
        // SAFETY: nothing is freed before the end of the model.
        unsafe { search(self.table(), hash_of(key), |entry| entry.key == key) }
    }

    /// The value of a key.
    fn get(&self, key: u32) -> Option<u32> {
        // SAFETY: as above.
        let found = unsafe { self.find(key)?.as_ref() }.expect("an entry");
        found.value.tracked.read(0);
        Some(found.value.value)
    }

    /// Locks the bucket of a key as an update does, and calls `f` with it.
    fn change<R>(
        &self,
        left: &Left<Pair>,
        key: u32,
        f: impl FnOnce(&mut Locked<'_, Pair>, Option<Found<Pair>>) -> R,
    ) -> R {
        let (table, hash) = (self.table(), hash_of(key));
        let (bucket, tag) = (table.bucket(hash as usize), tags::of_hash(hash));
        if table.next().is_none()
            // SAFETY: nothing is freed before the end of the model.
            && let Some(seen) = unsafe { Sight::of(bucket, tag, |other| other.key == key) }
            && let Some((mut bucket, found)) = Locked::lock_as_seen(seen, tag, left)
        {
            return f(&mut bucket, found);
        }
        let mut seen = Seen::new(None);
        loop {
            let mut table = self.table();
            // SAFETY: nothing is freed before the end of the model.
            unsafe { seen.look(table, hash, &|other| other.key == key) };
            let mut bucket = loop {
                match Locked::lock(table.bucket(hash as usize), left) {
                    Ok(bucket) => break bucket,
                    Err(Moved) => table = table.next().expect("entries have moved there"),
                }
            };
            bucket.tend();
            if let Ok(found) = bucket.locate(tag, &seen) {
                return f(&mut bucket, found);
            }
        }
    }

    /// Helps what is in the table, which has a next one, to move on; returns whether all of it has.
    fn help(&self, table: TableRef<Pair>, left: &Left<Pair>) -> bool {
        let hash_of = |entry: &Pair| hash_of(entry.key);
        // SAFETY: nothing is freed before the end of the model.
        unsafe { growth::help(&self.root, table, 2, &hash_of, left) }.is_some()
    }

    fn insert(&self, left: &Left<Pair>, key: u32, value: u32) {
        self.change(left, key, |bucket, found| {
            let entry = Box::into_raw(Pair::new(key, value));
            match found {
                Some(found) => take(&found).slot.set(entry),
                None => bucket.add(tags::of_hash(hash_of(key)), entry),
            }
        });
    }

    fn remove(&self, left: &Left<Pair>, key: u32) {
        self.change(left, key, |bucket, found| {
            bucket.remove(take(&found.expect("the key is there")));
        });
    }

    /// How many entries of a key are in the first bucket's slots.
    fn times(&self, key: u32) -> usize {
        let bucket = self.table().bucket(0);
        // Acquire: as readers load it.
        let word = bucket.word.load(Acquire);
        // SAFETY: nothing is freed before the end of the model.
        let entries = bucket.live(word, None).filter_map(|entry| unsafe { entry.as_ref() });
        entries.filter(|entry| entry.key == key).count()
    }

    /// Frees what the updater left behind, and the tables.
    fn end(this: Arc<Self>, left: &Left<Pair>) {
        while let Some(node) = left.pop() {
            // SAFETY: no thread is left.
            unsafe { node.free() };
        }
        let table = NonNull::new(this.root.load(Relaxed)).expect("never null");
        // SAFETY: of the map, once.
        let end = |entry: *const Pair| drop(unsafe { Box::from_raw(entry.cast_mut()) });
        // SAFETY: no thread is left.
        unsafe { TableRef::of(table).end(end) };
    }
}

/// An update takes out what it has found. The box is leaked: readers may have it, and loom does not
/// mind.
fn take<'f, 'b>(found: &'f Found<'b, Pair>) -> &'f Found<'b, Pair> {
    // SAFETY: nothing is freed before the end of the model.
    let is_out = unsafe { &(*found.entry).value.is_out };
    // Relaxed: loom runs one thread at a time.
    assert!(!is_out.swap(true, Relaxed), "each entry is taken out once");
    found
}

/// Runs an updater beside a reader, in a table that `first` has filled.
fn beside(
    buckets: usize,
    first: impl Fn(&World, &Left<Pair>) + Send + Sync + Copy + 'static,
    update: impl Fn(&World, &Left<Pair>) + Send + Sync + Copy + 'static,
    read: impl Fn(&World) + Send + Sync + Copy + 'static,
) {
    bounded(3, move || {
        let (world, left) = (World::new(buckets), Left::nothing());
        first(&world, &left);
        loom_tests::beside(&world, read, |world| update(world, &left));
        World::end(world, &left);
    });
}

/// A key that is replaced in its slot is found all the time, and never older than before.
#[test]
fn a_key_that_is_replaced_is_found() {
    beside(
        1,
        |world, left| [0, 2].iter().for_each(|&key| world.insert(left, key, 10)),
        |world, left| (11..13).for_each(|value| world.insert(left, 0, value)),
        |world| {
            let get = || world.get(0).expect("it is never removed");
            let first = get();
            assert!(get() >= first);
        },
    );
}

/// It is in the node of its bucket, and stays there.
#[test]
fn a_key_in_a_node_that_is_replaced_is_found() {
    beside(
        1,
        |world, left| [0, 2, 4].iter().for_each(|&key| world.insert(left, key, 10)),
        |world, left| (11..13).for_each(|value| world.insert(left, 4, value)),
        |world| assert!(world.get(4).is_some(), "it is never removed"),
    );
}

/// A key comes into the node that is there.
#[test]
fn a_key_that_comes_into_a_node_is_whole() {
    beside(
        1,
        |world, left| [0, 2, 4].iter().for_each(|&key| world.insert(left, key, key)),
        |world, left| world.insert(left, 6, 60),
        |world| {
            assert!(world.get(6).is_none_or(|value| value == 60));
            assert!(world.get(4).is_some(), "it is never removed");
        },
    );
}

/// The node of its bucket is full, so another key comes into a copy of it.
#[test]
fn a_key_in_a_node_that_is_copied_is_found() {
    beside(
        1,
        |world, left| [0, 2, 4, 6].iter().for_each(|&key| world.insert(left, key, key)),
        |world, left| world.insert(left, 8, 80),
        |world| assert!(world.get(4).is_some(), "it is never removed"),
    );
}

/// A reader looks twice for `key` while 0 is removed and 2 comes into its slot.
fn looked_for_twice(key: u32, is_right: fn(Option<u32>, Option<u32>) -> bool) {
    beside(
        1,
        |world, left| world.insert(left, 0, 10),
        |world, left| {
            world.remove(left, 0);
            world.insert(left, 2, 20);
        },
        move |world| {
            let (first, second) = (world.get(key), world.get(key));
            assert!(is_right(first, second), "{first:?}, and then {second:?}");
        },
    );
}

/// An entry is found by all from one moment on, also by a reader with an older word.
#[test]
fn a_key_is_found_by_all_or_by_none() {
    looked_for_twice(2, |first, second| first.is_none() || second.is_some());
}

/// Its slot has the tag of another entry after it, and then that entry.
#[test]
fn a_key_that_is_removed_stays_so() {
    looked_for_twice(0, |first, second| first.is_some() || second.is_none());
}

/// Key 2 is in a node, and comes into the slots; then the bucket has another node.
#[test]
fn a_key_that_comes_out_of_a_node_is_found() {
    beside(
        1,
        |world, left| {
            [0, 4, 2].iter().for_each(|&key| world.insert(left, key, key));
            world.remove(left, 4);
        },
        |world, left| world.insert(left, 6, 60),
        |world| assert!(world.get(2).is_some(), "it is never removed"),
    );
}

/// A key is found while its bucket moves to a larger table, and to a smaller one.
fn moved(from: usize, to: usize) {
    beside(
        from,
        |world, left| (0..3).for_each(|key| world.insert(left, key, key)),
        move |world, left| {
            let table = world.table();
            table.set_next(to);
            assert!(world.help(table, left), "all of it has moved");
            world.insert(left, 0, 10);
        },
        |world| {
            assert!(matches!(world.get(0), Some(0 | 10)));
            assert_eq!(world.get(1), Some(1));
        },
    );
}

#[test]
fn a_key_is_found_while_its_bucket_moves() {
    moved(1, 2);
}

#[test]
fn a_key_is_found_while_its_table_shrinks() {
    moved(2, 1);
}

/// An updater that finds its bucket moved has the next table's.
#[test]
fn an_updater_follows_a_bucket_that_moves() {
    beside(
        1,
        |world, left| (0..3).for_each(|key| world.insert(left, key, key)),
        |world, left| {
            let table = world.table();
            table.set_next(2);
            assert!(world.help(table, left), "all of it has moved");
        },
        |world| {
            world.insert(&Left::nothing(), 0, 10);
            assert_eq!(world.get(0), Some(10));
        },
    );
}

/// A bucket that its mover is not done with is moved by another one that waits for it, and once.
#[test]
fn a_bucket_that_two_move_moves_once() {
    let moves = |world: &World, left: &Left<Pair>| {
        let table = world.table();
        if table.next().is_some() {
            world.help(table, left);
        }
        (0..3).for_each(|key| assert_eq!(world.get(key), Some(key)));
    };
    beside(
        1,
        |world, left| {
            (0..3).for_each(|key| world.insert(left, key, key));
            world.table().set_next(2);
        },
        moves,
        move |world| moves(world, &Left::nothing()),
    );
}

/// Of two updaters that find no entry of a key one adds it, and the other one sees that under the
/// lock [HM-I3].
#[test]
fn two_updaters_of_a_key_leave_one_entry() {
    beside(
        1,
        |_, _| {},
        |world, left| {
            world.insert(left, 0, 10);
            assert_eq!(world.times(0), 1);
        },
        |world| world.insert(&Left::nothing(), 0, 20),
    );
}

/// The second of two updaters that have seen the same entry takes out the other one's.
#[test]
fn two_updaters_of_a_key_take_out_an_entry_each() {
    beside(
        1,
        |world, left| world.insert(left, 0, 0),
        |world, left| world.insert(left, 0, 10),
        |world| world.insert(&Left::nothing(), 0, 20),
    );
}

/// An updater that finds no entry of a key sees one that comes into the slot of a third one, so
/// that the bucket's word is the same as before.
#[test]
fn an_updater_sees_what_has_come_under_the_same_word() {
    beside(
        1,
        |world, left| world.insert(left, 2, 0),
        |world, left| {
            world.insert(left, 0, 10);
            assert_eq!(world.times(0), 1);
        },
        |world| {
            let left = Left::nothing();
            world.remove(&left, 2);
            world.insert(&left, 0, 20);
        },
    );
}

/// A walk beside an updater sees 2 and 4 once, of which 2 is in a node at first.
fn walks(
    first: impl Fn(&World, &Left<Pair>) + Send + Sync + Copy + 'static,
    update: impl Fn(&World, &Left<Pair>) + Send + Sync + Copy + 'static,
) {
    beside(
        1,
        move |world, left| {
            [0, 4, 2].iter().for_each(|&key| world.insert(left, key, key));
            first(world, left);
        },
        update,
        |world| {
            let mut seen = Vec::new();
            let mut walk = Walk::new(world.table(), 0, 1);
            // SAFETY: nothing is freed before the end of the model.
            while let Some(entry) = unsafe { walk.next(|entry| hash_of(entry.key)) } {
                // SAFETY: as above.
                seen.push(unsafe { (*entry).key });
            }
            let times = [2, 4].map(|key| seen.iter().filter(|other| **other == key).count());
            assert_eq!(times, [1, 1], "{seen:?}");
        },
    );
}

/// Key 2 comes out of the node into the slots, and is replaced there beside another node.
#[test]
fn a_walk_sees_a_key_once() {
    walks(
        |world, left| world.remove(left, 0),
        |world, left| [6, 2].iter().for_each(|&key| world.insert(left, key, 10 * key)),
    );
}

/// It comes into the slot of a key that the word of the walk still speaks of.
#[test]
fn a_walk_with_an_old_word_sees_a_key_once() {
    walks(
        |_, _| {},
        |world, left| {
            world.remove(left, 0);
            world.insert(left, 6, 60);
        },
    );
}
