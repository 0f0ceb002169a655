//! Faults of `collections::HashMap` that a cold reading found.

use crate::common::*;

use quiescence::collections::{HashMap, HashSet};

/// A key whose hash is another one from some moment on. Growth copied it into a bucket that others
/// were using: safe code could have a reference to freed memory.
#[test]
fn a_key_whose_hash_changes_was_copied_into_a_bucket_in_use() {
    thread_local!(static SHIFT: Cell<u64> = const { Cell::new(0) });

    #[derive(Clone, Copy, PartialEq, Eq)]
    struct Fickle(u64);
    impl Hash for Fickle {
        fn hash<H: Hasher>(&self, state: &mut H) {
            state.write_u64(self.0.wrapping_add(SHIFT.get()));
        }
    }
    impl Weigh for Fickle {
        const OWNS: bool = false;
    }

    let map = HashMap::<Fickle, u64>::new();
    for n in 0..20_000 {
        map.insert(Fickle(n), n);
        if n % 100 == 0 {
            SHIFT.set(n);
        }
    }
    // Each is somewhere, once; those whose hash is another one are not found by it.
    let view = map.read();
    let mut all: Vec<_> = view.values().copied().collect();
    all.sort_unstable();
    assert_eq!(all, (0..20_000).collect::<Vec<_>>());
}

/// A map that was half made when its table turned out to be exceeds the address space was
/// dropped: null was dereferenced.
#[test]
fn a_map_of_too_many_entries_was_dropped_without_a_table() {
    let maps: [fn(); 5] = [
        || drop(HashMap::<String, String>::with_capacity(usize::MAX)),
        || drop(HashMap::<u64, u64>::with_capacity(usize::MAX)),
        || drop(HashMap::<String, u8>::builder().capacity(1 << 60).build()),
        || drop(HashMap::<u8, Vec<u8>>::builder().capacity(1 << 60).build_with_weight(|_, _| 1)),
        || drop(HashSet::<String>::with_capacity(usize::MAX)),
    ];
    for map in maps {
        let said = panic_of(map);
        assert!(said.contains("exceeds the address space"), "{said}");
    }
}

hasher! {
    /// The lowest bits choose a bucket: sixteen numbers in each of so many.
    Crowded: |number| (number / 16) | (number << 56)
}

type Numbers = HashMap<u64, u64, BuildHasherDefault<Crowded>, Private>;

/// What may wait in the domain of [`numbers`].
const BYTES_MAX: u64 = 4_096;

/// A node with so many slots, a tag for each of them, its head, and what stands for it in the
/// queue.
const fn node(slots: u64) -> u64 {
    slots * 9 + 32 + 24
}

/// What an update leaves at most in [`numbers`]: a box, while a table grows the nodes of four
/// buckets, and two of its own one; of sixteen entries, so of 64 slots at most.
const LEFT_MAX: u64 = 48 + 6 * node(64);

/// A map with sixteen entries in each of some buckets.
fn numbers(buckets: u64) -> (Numbers, Domain<Private>) {
    let domain: Domain<Private> = Domain::builder().build();
    tune(&domain, |tuning| tuning.bytes_max = BYTES_MAX);
    quiet(&domain);
    let builder = HashMap::builder().domain(domain.clone()).hasher(BuildHasherDefault::default());
    let numbers: Numbers = builder.build();
    for number in 0..16 * buckets {
        numbers.insert(number, 0);
    }
    domain.barrier();
    (numbers, domain)
}

/// The overflow nodes that an update of the `try_` forms replaced went over the limit each time,
/// without bound.
#[test]
fn try_forms_left_nodes_beyond_the_limit_without_bound() {
    let (numbers, domain) = numbers(1);
    let section = domain.read();
    let mut refused = 0;
    for value in 0..4_000 {
        let key = value % 16;
        let result = match value % 3 {
            0 => numbers.try_update(&key, |_| value).is_ok(),
            1 => numbers.try_remove(&key).is_ok(),
            _ => numbers.try_insert(key, value).is_ok(),
        };
        refused += u64::from(!result);
    }
    let waiting = domain.statistics().bytes_waiting;
    assert!(waiting <= BYTES_MAX + LEFT_MAX, "{waiting} bytes wait");
    assert!(refused != 0 && waiting > BYTES_MAX / 2, "{refused} refused, {waiting} bytes wait");
    drop(section);
    domain.barrier();
    assert!(numbers.try_insert(1, 1).is_ok(), "there is room again");
}

/// So did those that an insertion of an absent key replaced, which never waited.
#[test]
fn insertions_of_absent_keys_left_nodes_without_bound() {
    let (numbers, domain) = numbers(1);
    let section = domain.read();
    thread::scope(|scope| {
        let updater = scope.spawn(|| {
            for turn in 0..4_000 {
                let key = turn % 16;
                numbers.remove(&key);
                assert!(numbers.insert_if_absent(key, turn));
            }
        });
        until(|| domain.statistics().limit_waits != 0 || updater.is_finished());
        let waiting = domain.statistics().bytes_waiting;
        drop(section); // before anything can fail, since the updater waits for it
        assert!(waiting <= BYTES_MAX, "{waiting} bytes wait");
    });
    assert_ne!(domain.statistics().limit_waits, 0);
}

/// In a section they are refused, as other updates are.
#[test]
fn insertions_of_absent_keys_in_a_section_had_no_bound() {
    let (numbers, domain) = numbers(1);
    let view = numbers.read();
    panic_of(|| {
        for turn in 0..4_000 {
            // Another thread's, which leave what the limit has room for.
            let remove = || numbers.try_remove(&(turn % 16));
            let removed = thread::scope(|scope| scope.spawn(remove).join().unwrap());
            // Then new ones of that bucket.
            view.get_or_insert(if removed.is_ok() { turn % 16 } else { turn << 32 }, turn);
        }
    });
    let waiting = domain.statistics().bytes_waiting;
    assert!(waiting <= BYTES_MAX + LEFT_MAX, "{waiting} bytes wait");
    let present = (0..16).find(|number| view.contains_key(number)).expect("some are there");
    view.get_or_insert_with(present, || unreachable!("it is there"));
    assert!(!numbers.insert_if_absent(present, 1));
}

/// In a section all that it took out of sixteen buckets went over the limit.
#[test]
fn retain_in_a_section_went_over_the_limit_with_all_of_a_batch() {
    let (_, domain) = numbers(0);
    let names = HashMap::<u64, [String; 8]>::builder().domain(domain.clone()).build();
    for number in 0..1_000 {
        names.insert(number, Default::default());
    }
    domain.barrier();
    let section = domain.read();
    panic_of(|| names.retain(|_, _| false));
    let waiting = domain.statistics().bytes_waiting;
    assert!((BYTES_MAX / 2..=BYTES_MAX + LEFT_MAX).contains(&waiting), "{waiting} bytes wait");
    drop(section);
    names.retain(|_, _| false);
    assert!(names.is_empty());
}

/// In a section the nodes of all buckets went over the limit.
#[test]
fn reserve_in_a_section_went_over_the_limit_with_all_nodes() {
    let (numbers, domain) = numbers(64);
    let section = domain.read();
    numbers.reserve(100_000);
    let waiting = domain.statistics().bytes_waiting;
    assert!(waiting <= BYTES_MAX + LEFT_MAX, "{waiting} bytes wait");
    drop(section);
    numbers.reserve(100_000);
    assert!(numbers.capacity() >= 100_000);
}

thread_local! {
    /// The key whose hash panics on this thread, and whose comparison does.
    static PANICS: Cell<Option<u64>> = const { Cell::new(None) };
}

struct Prying {
    number: u64,
    /// [`ALIVE`], until it is dropped.
    alive: u64,
}

const ALIVE: u64 = 0x5eed_a11e_5eed_a11e;

impl Prying {
    fn new(number: u64) -> Self {
        Self { number, alive: ALIVE }
    }

    fn look(&self) {
        assert_eq!(self.alive, ALIVE, "{} has been dropped", self.number);
        assert_ne!(PANICS.get(), Some(self.number), "on purpose");
    }
}

impl Drop for Prying {
    fn drop(&mut self) {
        // SAFETY: one's own. Volatile, so that it is written though it is never read again.
        unsafe { std::ptr::write_volatile(&raw mut self.alive, 0) };
    }
}

impl Weigh for Prying {}

impl PartialEq for Prying {
    fn eq(&self, other: &Self) -> bool {
        self.look();
        other.look();
        self.number == other.number
    }
}

impl Eq for Prying {}

impl Hash for Prying {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.look();
        state.write_u64(self.number);
    }
}

/// And its tables, with their nodes.
#[test]
fn a_map_leaked_the_rest_where_a_drop_panicked() {
    #[derive(PartialEq, Eq)]
    struct Name(u64);
    impl Hash for Name {
        fn hash<H: Hasher>(&self, _: &mut H) {} // so that a bucket has nodes
    }
    impl Weigh for Name {}
    struct Bad(Counted);
    impl Weigh for Bad {}
    impl Drop for Bad {
        fn drop(&mut self) {
            assert!(self.0.number % 4 != 3, "{} on purpose", self.0.number);
        }
    }
    let live = Arc::new(AtomicUsize::new(0));
    let map = HashMap::new();
    for number in 0..10 {
        map.insert(Name(number), Bad(Counted::new(number, &live)));
    }
    let said = panic_of(|| drop(map));
    assert_eq!(live.load(Relaxed), 0, "{said}");
}

/// Of the second panic and later ones: that is nobody's.
#[test]
fn a_map_leaked_the_rest_where_what_a_drop_panicked_with_panics_when_dropped() {
    struct Payload(bool);
    impl Drop for Payload {
        fn drop(&mut self) {
            assert!(!self.0, "a payload, on purpose");
        }
    }
    struct Bad {
        _value: Counted,
        panics: Arc<AtomicUsize>,
    }
    impl Weigh for Bad {}
    impl Drop for Bad {
        fn drop(&mut self) {
            let is_first = self.panics.fetch_add(1, Relaxed) == 0;
            std::panic::panic_any(Payload(!is_first));
        }
    }
    let (live, panics) = (Arc::new(AtomicUsize::new(0)), Arc::default());
    let map = HashMap::new();
    for number in 0..10_u64 {
        let panics = Arc::clone(&panics);
        map.insert(number, Bad { _value: Counted::new(number, &live), panics });
    }
    let payload = catch_unwind(AssertUnwindSafe(|| drop(map))).expect_err("all drops panic");
    assert!(payload.is::<Payload>(), "the first one's");
    assert_eq!((live.load(Relaxed), panics.load(Relaxed)), (0, 10));
}

/// What a `Hash` or an `Eq` that panics has broken off, others go on with.
#[test]
fn a_map_is_whole_after_a_hash_or_an_eq_that_panicked() {
    let map = HashMap::<Prying, u64, BuildHasherDefault<Crowded>>::default();
    let insert = |number, value| map.insert(Prying::new(number), value);
    (0..64).for_each(|number| assert!(insert(number, 0)));
    for round in 1..8 {
        let bad = [3, 17, 40, 63][round as usize % 4];
        PANICS.set(Some(bad));
        let moves = || match round % 2 {
            0 => map.shrink_to_fit(),
            _ => map.reserve(10_000),
        };
        panic_of(moves);
        panic_of(|| insert(bad, 0));
        PANICS.set(None);
        (0..64).for_each(|number| assert!(!insert(number, round)));
        moves();
        let view = map.read();
        assert!(view.iter().count() == 64 && view.values().all(|value| *value == round));
    }
    quiescence::barrier();
}

/// What was not inserted, since its key was there, was dropped in the section of the insertion:
/// where its drop waited for a grace period, that panicked, or in a sleepable domain waited for
/// itself.
#[test]
fn what_was_not_inserted_was_dropped_in_a_section() {
    static DROPPED: AtomicU64 = AtomicU64::new(0);

    struct Waits(bool);
    impl Drop for Waits {
        fn drop(&mut self) {
            if self.0 {
                quiescence::synchronize();
                DROPPED.fetch_add(1, SeqCst);
            }
        }
    }
    impl PartialEq for Waits {
        fn eq(&self, _: &Self) -> bool {
            true
        }
    }
    impl Eq for Waits {}
    impl Hash for Waits {
        fn hash<H: Hasher>(&self, _: &mut H) {}
    }
    impl Weigh for Waits {}

    let set = HashSet::<Waits>::new();
    assert!(set.insert(Waits(false)) && !set.insert(Waits(true)));
    assert_eq!(set.try_insert(Waits(true)).map_err(drop), Ok(false));
    assert_eq!(DROPPED.load(SeqCst), 2);

    let map = HashMap::<u64, Waits>::new();
    assert!(map.insert_if_absent(1, Waits(false)) && !map.insert_if_absent(1, Waits(true)));
    let result = map.try_insert_if_absent(1, Waits(true));
    assert_eq!((result.map_err(drop), DROPPED.load(SeqCst)), (Ok(false), 4));
}

/// A `Hash` that panicked while entries moved to another table left pointers there. Later a tag was
/// stored beside one of them, whose entry had been freed meanwhile: a reader that came at that
/// moment found it.
#[cfg(quiescence_mutants)]
#[test]
fn a_reader_found_a_freed_entry_after_a_hash_that_panicked() {
    use mutants::Point;

    thread_local!(static ARMED: Cell<bool> = const { Cell::new(false) });
    static MAP: OnceLock<HashMap<Prying, u64, BuildHasherDefault<OneTag>>> = OnceLock::new();

    hasher!(OneTag: |number| 0x55 << 56 | (number & 0xf));

    fn hook(point: Point) {
        if point == Point::SlotTagged && ARMED.replace(false) {
            _ = MAP.get().unwrap().read().get(&Prying::new(9 << 4 | 12)).copied();
        }
    }

    mutants::install(hook);
    let new = || HashMap::builder().capacity(60).hasher(BuildHasherDefault::default()).build();
    let map = MAP.get_or_init(new);
    let key = |id: u64| Prying::new(id << 4 | 12);
    for id in 1..=3 {
        map.insert(key(id), id);
    }
    PANICS.set(Some(3 << 4 | 12));
    panic_of(|| map.reserve(200));
    PANICS.set(None);
    assert!(map.remove(&key(1)) && map.remove(&key(2)));
    Domain::global().barrier();
    map.insert(Prying::new(0), 0); // moves the buckets from 8 to 11
    ARMED.set(true);
    map.insert(key(9), 9);
    assert!(!ARMED.get(), "a reader came");
}
