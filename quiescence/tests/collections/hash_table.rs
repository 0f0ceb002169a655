//! The hash table against `std`'s, alone and with many threads, while it grows and shrinks.

use crate::common::*;
use std::collections::HashMap;

use quiescence::intrusive::{
    Cursor, HashTable, Node, TableError, TableMemory, TableOptions as Options,
};

#[cfg(quiescence_mutants)]
mod held;

/// An object in a table.
#[repr(C)]
struct Item {
    node: Node,
    key: u64,
    value: u64,
    /// Whether it may still be seen.
    alive: AtomicBool,
}

impl Item {
    fn leak(key: u64, value: u64) -> NonNull<Node> {
        let item = Self { node: Node::new(), key, value, alive: AtomicBool::new(true) };
        NonNull::from(Box::leak(Box::new(item))).cast()
    }
}

/// The item that a node is the first part of, while its section lasts.
fn item<'a>(node: NonNull<Node>) -> &'a Item {
    // SAFETY: all nodes here are items', and are freed after grace periods.
    let item: &Item = unsafe { node.cast().as_ref() };
    assert!(item.alive.load(Relaxed), "{} was freed and can be seen", item.key);
    item
}

fn free(node: NonNull<Node>) {
    item(node).alive.store(false, Relaxed);
    // SAFETY: from `leak`, and seen by no thread any more.
    drop(unsafe { Box::from_raw(node.cast::<Item>().as_ptr()) });
}

type Hashed = fn(u64) -> usize;

/// Hashes that meet each other in different ways.
const HASHES: [Hashed; 4] = [
    |key| key as usize,
    |key| Random(key).next() as usize,
    |key| (key % 7) as usize,   // whole runs of one hash
    |key| (key as usize) << 56, // all in bucket 0
];

pub(super) type Table = HashTable<Domain<Private>>;

/// Whose memory is a matter of its own, and the default.
pub(super) const MEMORIES: [Option<TableMemory>; 4] =
    [None, Some(TableMemory::Order), Some(TableMemory::Chunk), Some(TableMemory::Mmap)];

fn is(key: u64) -> impl Fn(NonNull<Node>) -> bool {
    move |node| item(node).key == key
}

/// All kinds of memory, tables that resize and those that do not.
fn all_options() -> Vec<Options> {
    let mut all = Vec::new();
    for memory in MEMORIES {
        for (buckets, buckets_min) in [(1, 1), (4, 1), (1, 16), (256, 64)] {
            for (auto_resize, accounting) in [(true, true), (true, false), (false, false)] {
                let buckets_max = if memory.is_none() { 0 } else { 1 << 12 };
                let sizes = Options { buckets, buckets_min, buckets_max, ..Options::default() };
                all.push(Options { memory, auto_resize, accounting, ..sizes });
            }
        }
    }
    all
}

/// A table, what it should hold, and what has been taken out of it.
struct Pair {
    domain: Domain<Private>,
    table: Table,
    hash: Hashed,
    model: HashMap<u64, Vec<u64>>,
    gone: Vec<NonNull<Node>>,
}

impl Pair {
    fn new(options: Options, hash: Hashed) -> Self {
        let domain = Domain::new();
        let table = HashTable::new(domain.clone(), options).unwrap();
        Self { domain, table, hash, model: HashMap::new(), gone: Vec::new() }
    }

    /// The values under a key, in the order of the table.
    fn values(&self, key: u64) -> Vec<u64> {
        let _section = self.domain.read();
        let mut values = Vec::new();
        // SAFETY: in a section; items are freed after grace periods.
        let mut at = unsafe { self.table.lookup((self.hash)(key), is(key)) };
        while let Some(node) = at.node() {
            values.push(item(node).value);
            // SAFETY: as above.
            at = unsafe { self.table.next_duplicate(at, is(key)) };
        }
        values
    }

    fn step(&mut self, random: &mut Random) {
        let (key, value, what) = (random.below(300), random.next(), random.below(8));
        let hash = (self.hash)(key);
        let section = self.domain.read();
        let values = self.model.entry(key).or_default();
        // SAFETY: here and below: in a section; items are freed after grace periods, and are fresh.
        let first = unsafe { self.table.lookup(hash, is(key)) }.node();
        assert_eq!(first.map(|node| item(node).value), values.first().copied());
        match what {
            0 | 1 => {
                // SAFETY: as above.
                unsafe { self.table.add(hash, Item::leak(key, value)) };
                values.push(value);
            }
            2 => {
                let node = Item::leak(key, value);
                // SAFETY: as above.
                match unsafe { self.table.add_unique(hash, node, is(key)) } {
                    Ok(()) => {
                        assert!(values.is_empty());
                        values.push(value);
                    }
                    Err(there) => {
                        assert_eq!(item(there).value, values[0]);
                        free(node);
                    }
                }
            }
            // SAFETY: as above.
            3 => match unsafe { self.table.add_replace(hash, Item::leak(key, value), is(key)) } {
                Some(old) => {
                    assert_eq!(item(old).value, std::mem::replace(&mut values[0], value));
                    self.gone.push(old);
                }
                None => {
                    assert!(values.is_empty());
                    values.push(value);
                }
            },
            4 => {
                if let Some(old) = first {
                    let new = Item::leak(key, value);
                    // SAFETY: as above.
                    assert!(unsafe { self.table.replace(old, new) });
                    let again = Item::leak(key, value);
                    // SAFETY: as above.
                    assert!(!unsafe { self.table.replace(old, again) });
                    free(again);
                    values[0] = value;
                    self.gone.push(old);
                }
            }
            _ => {
                if let Some(node) = first {
                    assert!(!item(node).node.is_deleted());
                    // SAFETY: as above.
                    assert!(unsafe { self.table.delete(node) });
                    // SAFETY: as above.
                    assert!(!unsafe { self.table.delete(node) });
                    assert!(item(node).node.is_deleted());
                    values.remove(0);
                    self.gone.push(node);
                }
            }
        }
        drop(section);
        if self.gone.len() > 100 {
            self.domain.synchronize();
            self.gone.drain(..).for_each(free);
        }
    }

    fn check(&self, accounting: bool) {
        for (&key, values) in &self.model {
            assert_eq!(&self.values(key), values, "of {key}");
        }
        let expected: usize = self.model.values().map(Vec::len).sum();
        let _section = self.domain.read();
        // SAFETY: in a section.
        let counts = unsafe { self.table.count_nodes() };
        assert_eq!(counts.met, expected as u64);
        let counted = if accounting { expected as i64 } else { 0 };
        assert_eq!((counts.before, counts.after), (counted, counted));
        // SAFETY: in a section.
        assert_eq!(unsafe { self.table.is_empty() }, expected == 0);
    }
}

/// Adds an item of each key.
fn fill(domain: &Domain<Private>, table: &Table, hash: Hashed, keys: std::ops::Range<u64>) {
    for key in keys {
        let _section = domain.read();
        // SAFETY: in a section; freed after a grace period.
        unsafe { table.add(hash(key), Item::leak(key, key)) };
    }
}

/// The nodes of a table, one after the other. For callers in a section.
fn nodes(table: &Table) -> impl Iterator<Item = NonNull<Node>> {
    let mut at = None;
    std::iter::from_fn(move || {
        let next = match at {
            // SAFETY: in a section; items are freed after grace periods.
            None => unsafe { table.first() },
            // SAFETY: as above.
            Some(at) => unsafe { table.next(at) },
        };
        at = Some(next);
        next.node()
    })
}

/// Deletes all nodes, and frees them.
fn empty(domain: &Domain<Private>, table: &Table) {
    let section = domain.read();
    // SAFETY: in a section; freed after a grace period.
    let gone: Vec<_> = nodes(table).filter(|node| unsafe { table.delete(*node) }).collect();
    drop(section);
    domain.synchronize();
    gone.into_iter().for_each(free);
}

impl Drop for Pair {
    fn drop(&mut self) {
        empty(&self.domain, &self.table);
        self.gone.drain(..).for_each(free);
    }
}

#[test]
fn it_does_what_a_map_of_lists_does() {
    // Under Miri every memory, and one hash.
    let some = all_options().into_iter().enumerate().step_by(rounds(1, 9));
    for (seed, options) in some {
        for hash in HASHES.into_iter().take(rounds(HASHES.len(), 1)) {
            let mut random = Random(seed as u64);
            let mut pair = Pair::new(options, hash);
            for step in 0..rounds(2_000, 40) {
                pair.step(&mut random);
                if step % rounds(250, 20) == 0 {
                    pair.check(options.accounting);
                    // Up and down, whatever it wants itself.
                    pair.table.resize(1 << random.below(rounds(11, 5)));
                    pair.check(options.accounting);
                }
            }
            pair.check(options.accounting);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri has that memory, until it ends")]
fn numbers_of_buckets_are_powers_of_two_and_there_is_an_end_to_memory() {
    let make = |options| HashTable::new(Domain::new(), options).map(|table| table.buckets());
    let base = Options::default();
    let refused = Err(TableError::NotPowersOfTwo);
    assert_eq!(make(Options { buckets: 0, ..base }), refused);
    assert_eq!(make(Options { buckets: 3, ..base }), refused);
    assert_eq!(make(Options { buckets_min: 12, ..base }), refused);
    assert_eq!(make(Options { buckets_max: 100, ..base }), refused);
    let memory = Some(TableMemory::Mmap);
    let too_much = Options { buckets_max: 1 << 62, memory, ..base };
    assert_eq!(make(too_much), Err(TableError::NoMemory));
    assert_eq!(make(Options { buckets: 1 << 58, ..base }), Err(TableError::NoMemory));
    // What it begins with is no more than there may be.
    assert_eq!(make(Options { buckets: 64, buckets_max: 16, ..base }), Ok(16));
}

/// liburcu's tables lose requests: of these most stayed at 4 buckets.
#[test]
fn every_table_gets_the_buckets_it_needs() {
    let domain: Domain<Private> = Domain::new();
    let options = Options { accounting: false, ..Options::default() };
    let tables: Vec<Table> =
        (0..rounds(60, 4)).map(|_| HashTable::new(domain.clone(), options).unwrap()).collect();
    let nodes = rounds(20_000, 150);
    threads(2, |half| {
        let tables = tables.iter().skip(half).step_by(2);
        tables.for_each(|table| fill(&domain, table, HASHES[1], 0..nodes));
    });
    for table in &tables {
        assert!(table.buckets() >= nodes as usize / 4, "{} buckets", table.buckets());
        assert!(table.buckets() <= 2 * nodes as usize, "{} buckets", table.buckets());
        empty(&domain, table);
    }
}

#[test]
#[cfg_attr(miri, ignore = "thousands of buckets")]
fn a_table_that_is_emptied_shrinks_and_grows_again() {
    let pair = Pair::new(Options { buckets_min: 4, ..Options::default() }, HASHES[1]);
    for _ in 0..3 {
        fill(&pair.domain, &pair.table, pair.hash, 0..8_192);
        until(|| pair.table.buckets() >= 2_048); // the worker may shrink it still
        empty(&pair.domain, &pair.table);
        until(|| pair.table.buckets() <= 1_024);
        assert!(pair.table.buckets() >= 4);
    }
    // By hand, to the end.
    pair.table.resize(1);
    assert_eq!(pair.table.buckets(), 4);
}

/// What is wanted while buckets are being taken away is seen by the thread that does that.
#[test]
#[cfg_attr(miri, ignore = "thousands of buckets")]
fn what_is_asked_for_while_a_table_shrinks_is_done() {
    let options = Options { buckets: 1 << 12, accounting: false, ..Options::default() };
    let pair = Pair::new(options, HASHES[1]);
    let section = pair.domain.read();
    thread::scope(|scope| {
        let resizing = scope.spawn(|| pair.table.resize(2));
        until(|| pair.table.buckets() == 2); // it waits for our section now
        fill(&pair.domain, &pair.table, pair.hash, 0..4_096);
        assert_eq!(pair.table.buckets(), 2);
        drop(section);
        resizing.join().unwrap();
    });
    assert!(pair.table.buckets() >= 1_024, "{} buckets", pair.table.buckets());
}

/// In a child process no thread is at work on the table any more, whatever was begun.
#[test]
#[cfg(unix)]
#[cfg_attr(miri, ignore = "child processes")]
fn a_child_process_finds_its_tables_whole() {
    let pair = Pair::new(Options::default(), HASHES[1]);
    pair.table.resize(1 << 12);
    thread::scope(|scope| {
        beside_a_section(&pair.domain, |leave| {
            let resizing = scope.spawn(|| pair.table.resize(2));
            until(|| pair.table.buckets() == 2); // it waits for the section now
            in_child(|| {
                let table = &pair.table;
                fill(&pair.domain, table, pair.hash, 0..1_000);
                for buckets in [1 << 10, 1 << 3] {
                    table.resize(buckets);
                    assert_eq!(table.buckets(), buckets);
                }
                (0..1_000).for_each(|key| assert_eq!(pair.values(key), [key]));
            });
            leave();
            resizing.join().unwrap();
        });
    });
    assert_eq!(pair.table.buckets(), 2);
}

#[test]
fn a_resize_waits_and_the_last_one_counts() {
    let domain: Domain<Private> = Domain::new();
    let table: Table = HashTable::new(domain, Options::default()).unwrap();
    for wanted in [1_usize, 64, 3, 1 << rounds(16, 7), 2, 1 << rounds(12, 5), 1] {
        table.resize(wanted);
        assert_eq!(table.buckets(), wanted.next_power_of_two().max(2));
    }
    let barrier = Barrier::new(3);
    threads(3, |seed| {
        let mut random = Random(seed as u64);
        barrier.wait();
        for _ in 0..rounds(50, 3) {
            table.resize(1 << random.below(rounds(12, 6)));
        }
    });
    table.resize(1 << 5);
    assert_eq!(table.buckets(), 1 << 5);
}

#[test]
fn a_table_may_be_dropped_while_it_is_resized() {
    let domain: Domain<Private> = Domain::new();
    for round in 0..rounds(30_u64, 3) {
        let table: Table = HashTable::new(domain.clone(), Options::default()).unwrap();
        fill(&domain, &table, HASHES[1], 0..rounds(1_000, 60) + round * rounds(100, 10));
        empty(&domain, &table); // it wants to shrink now
        let _section = domain.read(); // and cannot
        drop(table);
    }
}

#[test]
#[cfg_attr(miri, ignore = "thousands of buckets")]
fn a_table_that_is_not_empty_is_not_destroyed_and_goes_on() {
    let domain: Domain<Private> = Domain::new();
    let mut table: Table = HashTable::new(domain.clone(), Options::default()).unwrap();
    for key in (0..8_192).step_by(64) {
        fill(&domain, &table, HASHES[1], key..key + 64);
        // SAFETY: no other thread uses it.
        table = unsafe { table.destroy() }.unwrap_err();
    }
    assert!(table.buckets() >= 2_048);
    empty(&domain, &table);
    until(|| table.buckets() <= 1_024);
    // SAFETY: no other thread uses it.
    unsafe { table.destroy() }.unwrap();
}

/// What the threads of a stress share.
struct Stress {
    domain: Domain<Private>,
    table: Table,
    hash: Hashed,
    changes: AtomicU64,
}

impl Stress {
    fn new(hash: Hashed) -> Self {
        let domain = Domain::new();
        let table = HashTable::new(domain.clone(), Options::default()).unwrap();
        Self { domain, table, hash, changes: AtomicU64::new(0) }
    }

    fn retire(&self, node: NonNull<Node>) {
        let address = node.as_ptr().expose_provenance();
        let _ = self.domain.call(move || {
            let node = std::ptr::with_exposed_provenance_mut(address);
            free(NonNull::new(node).unwrap());
        });
    }

    fn find(&self, key: u64) -> Cursor {
        // SAFETY: callers are in sections.
        unsafe { self.table.lookup((self.hash)(key), is(key)) }
    }

    /// Keys below 64 are always there, once; these are replaced and never deleted.
    fn replace(&self, random: &mut Random) {
        let key = random.below(64);
        let _section = self.domain.read();
        let new = Item::leak(key, random.next());
        // SAFETY: in a section; retired below.
        let old = unsafe { self.table.add_replace((self.hash)(key), new, is(key)) };
        self.retire(old.expect("it is always there"));
    }

    fn add(&self, key: u64, value: u64) {
        let _section = self.domain.read();
        let new = Item::leak(key, value);
        // SAFETY: in a section.
        match unsafe { self.table.add_unique((self.hash)(key), new, is(key)) } {
            Ok(()) => _ = self.changes.fetch_add(1, Relaxed),
            Err(_) => free(new),
        }
    }

    fn delete(&self, key: u64) {
        let _section = self.domain.read();
        if let Some(node) = self.find(key).node()
            // SAFETY: in a section.
            && unsafe { self.table.delete(node) }
        {
            self.changes.fetch_sub(1, Relaxed);
            self.retire(node);
        }
    }

    /// Keys from 64 on come and go.
    fn add_or_delete(&self, random: &mut Random) {
        let key = 64 + random.below(448);
        if random.below(2) == 0 { self.add(key, random.next()) } else { self.delete(key) }
    }

    fn read(&self, mut random: Random, rounds: u64) {
        for _ in 0..rounds {
            let key = random.below(64);
            let _section = self.domain.read();
            assert!(self.find(key).node().is_some(), "key {key} is always there");
            if random.below(50) == 0 {
                let mut seen = [0_u8; 512];
                nodes(&self.table).for_each(|node| seen[item(node).key as usize] += 1);
                assert!(seen[..64].iter().all(|&times| times == 1), "{seen:?}");
                assert!(seen[64..].iter().all(|&times| times <= 1), "{seen:?}");
            }
        }
    }
}

/// While keys are added, deleted and replaced, and the table is resized all the time, every key
/// that is there is found, no key is met twice, and nothing that was freed.
#[test]
fn readers_find_what_is_there_while_everything_changes() {
    for (seed, hash) in HASHES.into_iter().enumerate() {
        let stress = Stress::new(hash);
        let random = |thread: usize| Random((seed * 100 + thread) as u64);
        fill(&stress.domain, &stress.table, hash, 0..64);
        let work = |thread| {
            let (stress, mut random) = (&stress, random(thread));
            move || match thread {
                0 => stress.replace(&mut random),
                1 | 2 => stress.add_or_delete(&mut random),
                _ => stress.table.resize(1 << random.below(rounds(10, 6))),
            }
        };
        beside(4, work, || stress.read(random(4), rounds(20_000, 40)));
        let _section = stress.domain.read();
        // SAFETY: in a section.
        let counts = unsafe { stress.table.count_nodes() };
        assert_eq!(counts.met, 64 + stress.changes.load(Relaxed));
        assert_eq!(counts.after, counts.met as i64);
        drop(_section);
        empty(&stress.domain, &stress.table);
        stress.domain.barrier();
    }
}

/// Of many threads that add one key each only one does, and of many that delete it only one.
#[test]
fn one_of_many_adds_and_one_deletes() {
    const KEYS: u64 = rounds(2_000, 10);
    let (stress, barrier) = (Stress::new(HASHES[1]), Barrier::new(4));
    threads(4, |_| {
        for key in 0..KEYS {
            barrier.wait();
            stress.add(key, 0);
            stress.delete(key);
            // Added again after it was deleted: it goes while all is quiet.
            if barrier.wait().is_leader() {
                stress.delete(key);
                let _section = stress.domain.read();
                assert!(stress.find(key).node().is_none(), "added twice");
            }
        }
    });
    assert_eq!(stress.changes.load(Relaxed), 0, "each is deleted as often as it was added");
    stress.domain.barrier();
    assert!(stress.domain.statistics().callbacks_run >= KEYS, "each was added");
}
