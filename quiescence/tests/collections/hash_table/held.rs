//! What happens between two steps of a hash table, with one thread held there by a hook.

use crate::common::*;
use mutants::Point;
use quiescence::intrusive::{HashTable, TableOptions as Options};

use super::{HASHES, Table, empty, fill, is, nodes};

/// A table of many buckets and no node, which has begun to shrink: its worker waits until
/// `may_shrink`.
fn shrinking(may_shrink: &'static AtomicBool) -> Table {
    let domain: Domain<Private> = Domain::new();
    let table: Table = HashTable::new(domain.clone(), Options::default()).unwrap();
    fill(&domain, &table, HASHES[1], 0..4_096);
    let (enter, entered) = mpsc::channel();
    thread::spawn(move || {
        let section = domain.read();
        enter.send(()).unwrap();
        wait_until(may_shrink);
        drop(section);
    });
    entered.recv().unwrap();
    let section = table.readers().read();
    // SAFETY: in a section. The items are not freed.
    nodes(&table).for_each(|node| _ = unsafe { table.delete(node) });
    drop(section);
    until(|| table.buckets() <= 1_024); // it waits for the other thread's section now
    table
}

fn wait_until(flag: &AtomicBool) {
    until(|| flag.load(SeqCst));
}

/// What the hooks of these tests say to each other.
static LOOKING: AtomicBool = AtomicBool::new(false);
static HELD_OFF: AtomicBool = AtomicBool::new(false);

/// While somebody is about to look whether a table is empty, its worker comes to change its list.
#[test]
fn nothing_is_taken_from_a_table_while_it_is_looked_at() {
    /// Begun, and not ended, until the worker has come to an end one way or the other.
    fn hook(point: Point) {
        match point {
            Point::TableHeld => {
                LOOKING.store(true, SeqCst);
                wait_until(&HELD_OFF);
                LOOKING.store(false, SeqCst);
            }
            Point::TableAwaited => HELD_OFF.store(true, SeqCst),
            Point::TableUsed if LOOKING.load(SeqCst) => {
                eprintln!("the list was changed while it was looked at");
                std::process::exit(1);
            }
            _ => {}
        }
    }
    in_its_own_process!();
    let table = shrinking(&LOOKING);
    mutants::install(hook);
    // SAFETY: no other thread uses it.
    unsafe { table.destroy() }.unwrap();
    assert!(HELD_OFF.load(SeqCst), "the worker came by");
}

/// A table is given up while its worker is at the list: its nodes may be freed afterwards, so the
/// worker has left it.
#[test]
fn no_table_is_looked_at_when_it_is_gone() {
    static LEFT: AtomicBool = AtomicBool::new(false);
    fn hook(point: Point) {
        match point {
            Point::TableUsed => {
                LOOKING.store(true, SeqCst);
                wait_until(&HELD_OFF);
                LEFT.store(true, SeqCst);
            }
            Point::TableAwaited => HELD_OFF.store(true, SeqCst),
            _ => {}
        }
    }
    static MAY_SHRINK: AtomicBool = AtomicBool::new(false);
    in_its_own_process!();
    let table = shrinking(&MAY_SHRINK);
    mutants::install(hook);
    MAY_SHRINK.store(true, SeqCst);
    wait_until(&LOOKING);
    drop(table);
    assert!(LEFT.load(SeqCst), "the worker is still there");
}

/// A thread has claimed a bucket, and not put it into the list: what belongs to it is found from an
/// earlier one.
#[test]
fn what_is_there_is_found_before_its_bucket_is_in_the_list() {
    static CLAIMED: AtomicBool = AtomicBool::new(false);
    static LOOKED: AtomicBool = AtomicBool::new(false);
    fn hook(point: Point) {
        if matches!(point, Point::BucketClaimed) {
            CLAIMED.store(true, SeqCst);
            wait_until(&LOOKED);
        }
    }
    in_its_own_process!();
    let domain: Domain<Private> = Domain::new();
    let options = Options { auto_resize: false, ..Options::default() };
    let table: Table = HashTable::new(domain.clone(), options).unwrap();
    fill(&domain, &table, HASHES[1], 0..64);
    mutants::install(hook);
    thread::scope(|scope| {
        scope.spawn(|| table.resize(2 * table.buckets()));
        wait_until(&CLAIMED);
        let section = domain.read();
        // SAFETY: in a section.
        let is_there = |key| unsafe { table.lookup(HASHES[1](key), is(key)) }.node().is_some();
        let missing: Vec<u64> = (0..64).filter(|&key| !is_there(key)).collect();
        drop(section);
        LOOKED.store(true, SeqCst);
        assert!(missing.is_empty(), "not found: {missing:?}");
    });
    empty(&domain, &table);
    // SAFETY: no other thread uses it.
    unsafe { table.destroy() }.unwrap();
}
