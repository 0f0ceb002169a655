//! The tables of a `HashMap`: what waits for a grace period beside the limit, and what growth waits
//! for.

use crate::common::*;
use std::hash::DefaultHasher;

use quiescence::collections::HashMap;

/// Bytes of the newest table of a map, and its buckets.
fn newest<S, D: quiescence::tag::DomainTag>(map: &HashMap<u64, u64, S, D>) -> (usize, usize) {
    let buckets = (map.capacity() * 16).div_ceil(6 * 11);
    (64 + 64 * buckets, buckets)
}

/// A map that grew and shrank beside a section left any number of tables, and so any number of
/// bytes over the limit.
#[test]
fn old_tables_had_no_bound() {
    let domain: Domain<Private> = Domain::builder().build();
    let map: HashMap<u64, u64, _, _> = HashMap::new_in(domain.clone());
    map.extend((0..10).map(|key| (key, key)));
    let guard = domain.read();
    for round in 1..200 {
        map.reserve(100 * round);
        map.shrink_to(0);
        let (bytes, buckets) = newest(&map);
        let waiting = domain.statistics().callbacks_waiting();
        assert!(waiting < u64::from(usize::BITS - buckets.leading_zeros()), "{waiting}");
        let old = map.owned() - bytes - 16 * map.len();
        assert!(old < 2 * bytes, "{old} and {bytes}");
    }
    assert!(map.capacity() > 10_000, "it grows all the same");
    drop(guard);
    map.shrink_to(0);
    assert!(map.capacity() < 100, "outside of sections it waits");
    assert_eq!(map.read().iter().count(), 10);
}

/// A map that never had an entry was given a table where it was told to shrink, or to make room for
/// nothing.
#[test]
fn an_empty_map_that_shrank_took_memory() {
    let map: HashMap<u64, u64> = std::iter::empty().collect();
    assert_eq!(map.owned(), 0, "collected from nothing");
    map.reserve(0);
    assert_eq!(map.owned(), 0, "room for nothing");
    map.shrink_to(0);
    map.shrink_to_fit();
    assert_eq!(map.owned(), 0, "shrunk");
    map.clear();
    assert!(!map.remove(&1) && !map.update(&1, |value| *value));
    assert_eq!((map.owned(), map.capacity()), (0, 0), "nothing removed, nothing updated");
}

/// What is left where a thread is delayed that has taken buckets on was left to that thread, and
/// the next table filled and could not grow.
#[test]
fn a_growth_waited_for_a_thread_that_was_delayed() {
    thread_local! {
        /// Before how many hashes it is delayed.
        static DELAY: Cell<Option<u32>> = const { Cell::new(None) };
        static DELAYED: Cell<Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>> =
            const { Cell::new(None) };
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    struct Key(u64);
    impl Hash for Key {
        fn hash<H: Hasher>(&self, state: &mut H) {
            DELAY.set(DELAY.get().map(|hashes| hashes.wrapping_sub(1)));
            if DELAY.get() == Some(0) {
                let (tell, go_on) = DELAYED.take().expect("once");
                tell.send(()).unwrap();
                go_on.recv().unwrap_err();
            }
            self.0.hash(state);
        }
    }
    impl Weigh for Key {
        const OWNS: bool = false;
    }

    let domain: Domain<Private> = Domain::builder().build();
    let map = HashMap::<Key, u64>::builder().domain(domain.clone());
    let map = map.hasher(BuildHasherDefault::<DefaultHasher>::default()).build();
    let mut keys = 0..;
    let mut insert = || map.insert(Key(keys.next().unwrap()), 0);
    while map.capacity() < 1_000 {
        insert();
    }
    let (capacity, tables) = (map.capacity(), domain.statistics().callbacks_queued);
    thread::scope(|scope| {
        let (go_on, waits) = mpsc::channel();
        let (tell, is_delayed) = mpsc::channel();
        let map = &map;
        scope.spawn(move || {
            DELAYED.set(Some((tell, waits)));
            DELAY.set(Some(2)); // its own key's is the first one
            map.insert(Key(u64::MAX), 0);
        });
        is_delayed.recv().unwrap();
        for _ in 0..3 * capacity {
            insert();
        }
        assert!(domain.statistics().callbacks_queued > tables + 1, "no table is old");
        assert!(map.capacity() > 2 * capacity);
        drop(go_on);
    });
}

/// Entries were put into the next table by pointers that came from references, as their keys were
/// hashed, and freed by these: Miri says that they may not.
#[test]
fn entries_that_had_moved_were_freed_by_pointers_from_references() {
    let domain: Domain<Private> = Domain::builder().build();
    let map: HashMap<u64, String, _, _> = HashMap::new_in(domain.clone());
    map.extend((0..20).map(|key| (key, key.to_string())));
    map.reserve(100);
    assert!(map.remove(&7) && !map.insert(8, String::from("other")));
    domain.barrier();
    map.shrink_to_fit();
    assert_eq!(map.read().iter().count(), 19);
}

/// Each page of the next table was loaded from before it was stored to, so that the system provided
/// it twice; and an update that came to a new page came to one in either half.
#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore = "it has no pages")]
fn an_update_of_a_growing_map_waited_for_four_pages() {
    let faults = || {
        // SAFETY: zeroes are a valid one.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: writes to what it is given.
        assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) }, 0);
        usage.ru_minflt
    };
    let (map, mut many) = (HashMap::new(), 0);
    // Tables of up to a megabyte, which is not in huge pages, and half of which is 128 pages.
    for key in 0..50_000_u64 {
        let before = faults();
        map.insert(key, key);
        // One, and another one of the allocator's.
        many += u32::from(faults() - before > 2);
    }
    assert!(many < 20, "{many} updates");
}
