//! Buckets, nodes and tables under loom: every interleaving of an updater and a reader.
//!
//! Tables have one bucket of two slots, or two; so two entries fill one, and a third needs a node.
//! A grace period is over when the one reader is in no section, or in a later one. Loom sees each
//! write and read of a slot ([`Tracked`](crate::os::sync::Tracked)), and refuses those that nothing
//! orders.

use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use loom::sync::Arc;

use super::bucket::{GracePeriods, Location, Locked, Moved};
use super::entry::{Boxed, Entry, Form, Inline};
use super::growth;
use super::known::{Known, Seen};
use super::node::Left;
use super::search::search;
use super::table::{Table, TableRef};
use super::walk::Walk;
use crate::collections::tags;
use crate::loom_tests::{bounded, spawn};
use crate::os::sync::{AtomicPtr, AtomicU64, Tracked, fence};

/// Grace periods of one reader.
struct Periods {
    /// Odd while it is in a section.
    sections: AtomicU64,
}

impl GracePeriods for Periods {
    fn snapshot(&self) -> u64 {
        fence(SeqCst);
        // Acquire: pairs with the Release that ended a section.
        self.sections.load(Acquire) << 1
    }

    fn is_over(&self, cookie: u64) -> bool {
        let then = cookie >> 1;
        // Acquire: as above.
        then % 2 == 0 || self.sections.load(Acquire) != then
    }
}

struct World<F: Form> {
    root: AtomicPtr<Table>,
    periods: Periods,
    form: std::marker::PhantomData<fn() -> F>,
}

/// The hash of a key: keys of one bucket, with one tag for all.
fn hash_of(key: &u32) -> u64 {
    0x55 << 56 | u64::from(key % 2)
}

impl<F: Form<Key = u32, Value: From<u32>>> World<F> {
    fn new(buckets: usize) -> Arc<Self> {
        Arc::new(Self {
            root: AtomicPtr::new(TableRef::<F>::new(buckets).as_ptr()),
            periods: Periods { sections: AtomicU64::new(0) },
            form: std::marker::PhantomData,
        })
    }

    fn table(&self) -> TableRef<F> {
        // SAFETY: nothing is freed before the end of the model.
        unsafe { growth::root(&self.root) }
    }

    /// Has the reader's section last as long as `f`.
    fn section<R>(&self, f: impl FnOnce() -> R) -> R {
        // Relaxed: the reader's own.
        let before = self.sections().load(Relaxed);
        // Release: an updater that finds this section has seen the ones before end.
        self.sections().store(before + 1, Release);
        fence(SeqCst);
        let result = f();
        self.sections().store(before + 2, Release);
        result
    }

    fn sections(&self) -> &AtomicU64 {
        &self.periods.sections
    }

    fn find(&self, key: u32) -> Option<*const Entry<u32, F::Value>> {
        // SAFETY: in a section.
        unsafe { search(self.table(), hash_of(&key), |entry| entry.key == key) }
    }

    /// Locks the bucket of a key as an update does, and calls `f` with it. In a section, if there
    /// are other updaters.
    fn change<R>(
        &self,
        left: &Left,
        key: u32,
        f: impl FnOnce(&mut Locked<'_, F, Periods>, Option<Location>) -> R,
    ) -> R {
        let tag = tags::of_hash(hash_of(&key));
        let mut seen = Seen { found: None, others: Known::nothing() };
        loop {
            let mut table = self.table();
            // SAFETY: in a section, or the only updater.
            unsafe { seen.look(table, hash_of(&key), &|other| *other == key) };
            let (found, word) = loop {
                let bucket = table.bucket(hash_of(&key) as usize);
                match Locked::<F, Periods>::lock(bucket) {
                    Ok(word) => break (bucket, word),
                    Err(Moved) => table = table.next().expect("entries have moved there"),
                }
            };
            let mut bucket = Locked::new(found, word, &self.periods, left);
            bucket.tend(true);
            if let Ok(found) = bucket.locate(tag, &seen) {
                return f(&mut bucket, found.map(|found| found.location));
            }
        }
    }

    /// Helps what is in the table, which has a next one, to move on; returns whether all of it has.
    fn help(&self, table: TableRef<F>, left: &Left) -> bool {
        // SAFETY: nothing is freed before the end of the model.
        unsafe { growth::help(&self.root, table, 2, &hash_of, &self.periods, left) }.is_some()
    }

    fn insert(&self, left: &Left, key: u32, value: u32) {
        self.change(left, key, |bucket, found| {
            let entry = Entry { key, value: value.into() };
            let (tag, stored) = (tags::of_hash(hash_of(&key)), F::store(entry));
            match found {
                // The old box is leaked: readers may have it, and loom does not mind.
                Some(at) => _ = bucket.replace(at, tag, stored),
                None => _ = bucket.add(tag, stored),
            }
        });
    }

    fn remove(&self, left: &Left, key: u32) {
        self.change(left, key, |bucket, found| {
            bucket.remove(found.expect("the key is there"));
        });
    }

    /// Frees what the updater left behind, and the tables.
    fn end(this: Arc<Self>, left: &Left) {
        // SAFETY: of this form; no thread is left.
        while let Some(node) = unsafe { left.pop::<F>() } {
            // SAFETY: as above.
            unsafe { node.free() };
        }
        let table = NonNull::new(this.root.load(Relaxed)).expect("never null");
        let end = |entry: *mut Entry<u32, F::Value>| {
            if !entry.is_null() {
                // SAFETY: of the map, once.
                drop(unsafe { Box::from_raw(entry) });
            }
        };
        // SAFETY: no thread is left.
        unsafe { TableRef::<F>::of(table).end(end) };
    }
}

impl<F: Form<Key = u32, Value = u32>> World<F> {
    /// The value of a key. In a section.
    fn get(&self, key: u32) -> Option<u32> {
        // SAFETY: found in the section.
        self.find(key).map(|entry| unsafe { (*entry).value })
    }
}

/// Runs an updater beside a reader, in a table that `first` has filled.
fn beside<F: Form<Key = u32, Value: From<u32>> + 'static>(
    buckets: usize,
    first: impl Fn(&World<F>, &Left) + Send + Sync + Copy + 'static,
    update: impl Fn(&World<F>, &Left) + Send + Sync + Copy + 'static,
    read: impl Fn(&World<F>) + Send + Sync + Copy + 'static,
) {
    bounded(3, move || {
        let (world, left) = (World::<F>::new(buckets), Left::default());
        first(&world, &left);
        let reader = spawn(&world, move |world| read(&world));
        update(&world, &left);
        reader.join().unwrap();
        World::end(world, &left);
    });
}

type InlineForm = Inline<u32, u32>;
type BoxedForm = Boxed<u32, u32>;

/// A key that is replaced until it is in a node is found all the time, and never older than before.
fn replaced<F: Form<Key = u32, Value = u32> + 'static>() {
    beside::<F>(
        1,
        |world, left| {
            world.insert(left, 0, 10);
            world.insert(left, 2, 20);
        },
        |world, left| (11..13).for_each(|value| world.insert(left, 0, value)),
        |world| {
            let get = || world.section(|| world.get(0)).expect("it is never removed");
            let first = get();
            assert!(get() >= first);
        },
    );
}

#[test]
fn a_key_that_is_replaced_is_found() {
    replaced::<InlineForm>();
}

#[test]
fn a_boxed_key_that_is_replaced_is_found() {
    replaced::<BoxedForm>();
}

/// The last of so many keys is replaced by these values.
fn found_while_replaced(keys: u32, values: &'static [u32]) {
    let key = 2 * (keys - 1);
    beside::<InlineForm>(
        1,
        move |world, left| (0..keys).for_each(|key| world.insert(left, 2 * key, 2 * key)),
        move |world, left| values.iter().for_each(|&value| world.insert(left, key, value)),
        move |world| assert!(world.section(|| world.get(key)).is_some(), "it is never removed"),
    );
}

#[test]
fn a_key_that_is_replaced_in_the_slots_is_found() {
    found_while_replaced(1, &[11]);
}

/// It stays in the node of its bucket, and goes to another one where that is full.
#[test]
fn a_key_in_a_node_that_is_replaced_is_found() {
    found_while_replaced(3, &[11, 12]);
}

#[test]
fn a_slot_is_filled_again_after_its_readers() {
    beside::<InlineForm>(
        1,
        |world, left| world.insert(left, 0, 10),
        |world, left| {
            world.remove(left, 0);
            world.insert(left, 2, 20);
            world.insert(left, 4, 40);
        },
        |world| {
            world.section(|| {
                let Some(entry) = world.find(0) else { return };
                // SAFETY: found in the section. Loom sees the read.
                let slot = unsafe {
                    entry.cast::<u8>().sub(InlineForm::SLOT - size_of::<Entry<u32, u32>>())
                };
                // SAFETY: as above.
                let entry = unsafe { InlineForm::entry(slot) };
                // SAFETY: as above.
                assert_eq!(unsafe { (*entry).value }, 10);
            });
        },
    );
}

/// What dies while a cookie waits for the section before does not share that cookie.
#[test]
fn a_slot_that_dies_later_waits_for_its_own_readers() {
    beside::<InlineForm>(
        1,
        |world, left| [0, 2].iter().for_each(|&key| world.insert(left, key, key)),
        |world, left| {
            world.remove(left, 0);
            world.remove(left, 2);
            [4, 6].iter().for_each(|&key| world.insert(left, key, key));
        },
        |world| {
            world.section(|| ());
            world.section(|| world.find(2));
        },
    );
}

/// A reader looks twice for `key` while 0 is removed and 2 comes into its slot.
fn looked_for_twice(key: u32, is_right: fn(Option<u32>, Option<u32>) -> bool) {
    beside::<BoxedForm>(
        1,
        |world, left| world.insert(left, 0, 10),
        |world, left| {
            world.remove(left, 0);
            world.insert(left, 2, 20);
        },
        move |world| {
            let look = || world.section(|| world.get(key));
            let (first, second) = (look(), look());
            assert!(is_right(first, second), "{first:?}, and then {second:?}");
        },
    );
}

/// A boxed entry is found by all from one moment on, also by a reader with an older word.
#[test]
fn a_boxed_key_is_found_by_all_or_by_none() {
    looked_for_twice(2, |first, second| first.is_none() || second.is_some());
}

/// Its slot has the tag of another entry after it, and then that entry.
#[test]
fn a_boxed_key_that_is_removed_stays_so() {
    looked_for_twice(0, |first, second| first.is_some() || second.is_none());
}

/// A value whose writes and reads loom sees.
struct Watched(Tracked<1>);

impl From<u32> for Watched {
    fn from(_: u32) -> Self {
        let tracked = Tracked::new();
        tracked.write(0);
        Self(tracked)
    }
}

#[test]
fn what_is_in_a_box_is_seen() {
    beside::<Boxed<u32, Watched>>(
        1,
        |world, left| world.insert(left, 0, 10),
        |world, left| world.insert(left, 0, 11),
        |world| {
            world.section(|| {
                let entry = world.find(0).expect("it is never removed");
                // SAFETY: found in the section.
                unsafe { &*entry }.value.0.read(0);
            });
        },
    );
}

/// Key 2 is in a node, comes into the slots, and goes to another node.
#[test]
fn a_key_that_comes_and_goes_from_nodes_is_found() {
    beside::<InlineForm>(
        1,
        |world, left| {
            world.insert(left, 0, 10);
            world.insert(left, 4, 40);
            world.insert(left, 2, 20);
            world.remove(left, 4);
        },
        |world, left| {
            world.insert(left, 6, 60);
            world.insert(left, 2, 21);
        },
        |world| {
            world.section(|| assert!(world.get(2).is_some(), "it is never removed"));
        },
    );
}

/// A key is found while its bucket moves to a larger table, and to a smaller one.
fn moved<F: Form<Key = u32, Value = u32> + 'static>(from: usize, to: usize) {
    beside::<F>(
        from,
        |world, left| (0..3).for_each(|key| world.insert(left, key, key)),
        move |world, left| {
            let table = world.table();
            table.set_next(to);
            assert!(world.help(table, left), "all of it has moved");
            world.insert(left, 0, 10);
        },
        |world| {
            world.section(|| assert!(matches!(world.get(0), Some(0 | 10))));
            world.section(|| assert_eq!(world.get(1), Some(1)));
        },
    );
}

#[test]
fn a_key_is_found_while_its_bucket_moves() {
    moved::<InlineForm>(1, 2);
}

#[test]
fn a_key_is_found_while_its_table_shrinks() {
    moved::<InlineForm>(2, 1);
}

#[test]
fn a_boxed_key_is_found_while_its_bucket_moves() {
    moved::<BoxedForm>(1, 2);
}

/// An updater that finds its bucket moved has the next table's.
#[test]
fn an_updater_follows_a_bucket_that_moves() {
    beside::<InlineForm>(
        1,
        |world, left| (0..3).for_each(|key| world.insert(left, key, key)),
        |world, left| {
            let table = world.table();
            table.set_next(2);
            assert!(world.help(table, left), "all of it has moved");
        },
        |world| {
            let left = Left::default();
            world.section(|| world.insert(&left, 0, 10));
            world.section(|| assert_eq!(world.get(0), Some(10)));
        },
    );
}

/// A bucket that its mover is not done with is moved by another one that waits for it, and once.
#[test]
fn a_bucket_that_two_move_moves_once() {
    let moves = |world: &World<InlineForm>, left: &Left| {
        let table = world.table();
        if table.next().is_some() {
            world.help(table, left);
        }
        (0..3).for_each(|key| assert_eq!(world.get(key), Some(key)));
    };
    beside::<InlineForm>(
        1,
        |world, left| {
            (0..3).for_each(|key| world.insert(left, key, key));
            world.table().set_next(2);
        },
        moves,
        move |world| moves(world, &Left::default()),
    );
}

/// Of two updaters that find no entry of a key one adds it, and the other one sees that under the
/// lock [HM-I3].
fn one_entry<F: Form<Key = u32, Value = u32> + 'static>() {
    beside::<F>(
        1,
        |_, _| {},
        |world, left| {
            world.insert(left, 0, 10);
            let bucket = world.table().bucket(0);
            // Acquire: as readers load it.
            let word = bucket.head().word.load(Acquire);
            let live = tags::live(word) & tags::head_bytes(F::SLOTS);
            assert_eq!(live.count_ones(), 1, "the key is there once");
        },
        |world| {
            let left = Left::default();
            world.section(|| world.insert(&left, 0, 20));
        },
    );
}

#[test]
fn two_updaters_of_a_key_leave_one_entry() {
    one_entry::<InlineForm>();
}

#[test]
fn two_updaters_of_a_boxed_key_leave_one_entry() {
    one_entry::<BoxedForm>();
}

/// A walk sees a key once that comes out of a node into the slots.
fn walked<F: Form<Key = u32, Value = u32> + 'static>() {
    beside::<F>(
        1,
        |world, left| [0, 4, 2].iter().for_each(|&key| world.insert(left, key, key)),
        |world, left| {
            world.remove(left, 0);
            world.insert(left, 4, 40);
        },
        |world| {
            let mut seen = Vec::new();
            world.section(|| {
                let mut walk = Walk::<F>::new(world.table(), 0, 1);
                // SAFETY: in a section.
                while let Some(entry) = unsafe { walk.next(|key| hash_of(key)) } {
                    // SAFETY: found in the section.
                    seen.push(unsafe { (*entry).key });
                }
            });
            let times = [2, 4].map(|key| seen.iter().filter(|other| **other == key).count());
            assert_eq!(times, [1, 1], "{seen:?}");
        },
    );
}

#[test]
fn a_walk_sees_a_key_once() {
    walked::<InlineForm>();
}

#[test]
fn a_walk_sees_a_boxed_key_once() {
    walked::<BoxedForm>();
}
