//! User code in the middle of a map's operations that uses the map itself, or panics.
//!
//! `Eq` and `Hash` of keys were called while a bucket was locked: one that updated the map waited
//! for itself. So did a `Hash` that was called while entries moved, and had the map grow or shrink.

use crate::common::*;
use std::collections::BTreeSet;

use quiescence::collections::hash_map::Operation;
use quiescence::collections::{CopyMap, HashMap};
use quiescence::sync::NoUninit;

use crate::common::user_types::Constant;

/// Where a map calls what its user has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Hash,
    Eq,
    Clone,
    Weigh,
    Drop,
    Closure,
}

use Place::{Closure, Drop as Dropped, Eq as Equal, Hash as Hashed, Weigh as Weighed};

const PLACES: [Place; 6] = [Hashed, Equal, Place::Clone, Weighed, Dropped, Closure];

type Act = Box<dyn FnOnce()>;

thread_local! {
    /// What this thread does the next time it comes to a place.
    static ACT: RefCell<Option<(Place, Act)>> = const { RefCell::new(None) };
}

fn come_to(place: Place) {
    let is_here = |act: &mut (Place, Act)| act.0 == place;
    let act = ACT.try_with(|act| act.borrow_mut().take_if(is_here));
    if let Ok(Some((_, act))) = act {
        act();
    }
}

/// How many there are.
static OWNED: AtomicI64 = AtomicI64::new(0);

/// What is in one that has been dropped.
const DROPPED: u64 = 1_000;

/// A key, or a value.
struct Owned(Box<u64>);

impl Owned {
    fn new(number: u64) -> Self {
        OWNED.fetch_add(1, SeqCst);
        Self(Box::new(number))
    }

    fn number(&self) -> u64 {
        assert!(*self.0 < DROPPED, "it has been dropped");
        *self.0
    }
}

impl PartialEq for Owned {
    fn eq(&self, other: &Self) -> bool {
        come_to(Equal);
        self.number() == other.number()
    }
}

impl Eq for Owned {}

impl Hash for Owned {
    fn hash<H: Hasher>(&self, state: &mut H) {
        come_to(Hashed);
        self.number().hash(state);
    }
}

impl Clone for Owned {
    fn clone(&self) -> Self {
        come_to(Place::Clone);
        Self::new(*self.0)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        assert!(*self.0 < DROPPED, "it is dropped once");
        *self.0 = DROPPED;
        OWNED.fetch_sub(1, SeqCst);
        come_to(Dropped);
    }
}

impl Weigh for Owned {
    fn owned(&self) -> usize {
        come_to(Weighed);
        size_of::<u64>()
    }
}

type Map = HashMap<Owned, Owned, BuildHasherDefault<Constant>, Private>;

/// Keys from the beginning: in the slots of their bucket, and in its node.
const KEYS: u64 = 12;

/// Keys that are operated on: in a slot, in the node, and not there.
const SUBJECTS: [u64; 3] = [3, KEYS - 2, 50];

type Operate = fn(&Map, u64);

/// Whatever calls user code. None touches another key than the subject.
fn operations() -> [(&'static str, Operate); 16] {
    fn new(key: u64) -> Owned {
        come_to(Closure);
        Owned::new(key)
    }
    [
        ("get", |map, key| _ = map.read().get(&Owned::new(key)).map(Owned::number)),
        ("iter", |map, _| assert!(map.read().iter().all(|(key, value)| key == value))),
        ("insert", |map, key| _ = map.insert(Owned::new(key), Owned::new(key))),
        ("try_insert", |map, key| _ = map.try_insert(Owned::new(key), Owned::new(key)).is_ok()),
        ("insert_if_absent", |map, key| _ = map.insert_if_absent(Owned::new(key), Owned::new(key))),
        ("remove", |map, key| _ = map.remove(&Owned::new(key))),
        ("try_remove", |map, key| _ = map.try_remove(&Owned::new(key)).is_ok()),
        ("update", |map, key| _ = map.update(&Owned::new(key), |_| new(key))),
        ("try_update", |map, key| _ = map.try_update(&Owned::new(key), |_| new(key)).is_ok()),
        ("get_or_insert_with", |map, key| {
            assert_eq!(map.read().get_or_insert_with(Owned::new(key), || new(key)).number(), key);
        }),
        ("compute: insert", |map, key| {
            let insert = |_: Option<(&Owned, &Owned)>| Operation::<_, ()>::Insert(new(key));
            map.read().compute(Owned::new(key), insert);
        }),
        ("compute: remove", |map, key| {
            map.read().compute(Owned::new(key), |_| {
                come_to(Closure);
                Operation::<_, ()>::Remove
            });
        }),
        ("retain", |map, key| {
            map.retain(|other, _| {
                come_to(Closure);
                other.number() != key
            });
        }),
        ("extend", |map, key| map.extend([(Owned::new(key), Owned::new(key))])),
        ("reserve", |map, _| map.reserve(4 * map.capacity())),
        ("shrink", |map, _| map.shrink_to_fit()),
    ]
}

/// What user code does in their midst; and whether other keys stay.
fn acts() -> [(&'static str, Operate, bool); 8] {
    [
        ("panics", |_, _| panic_any("on purpose"), true),
        ("inserts the key", |map, key| _ = map.insert(Owned::new(key), Owned::new(key)), true),
        ("removes the key", |map, key| _ = map.remove(&Owned::new(key)), true),
        (
            "replaces all",
            |map, _| map.extend((0..KEYS).map(|key| (Owned::new(key), Owned::new(key)))),
            true,
        ),
        (
            "inserts others",
            |map, _| map.extend((60..70).map(|key| (Owned::new(key), Owned::new(key)))),
            true,
        ),
        ("has it grow", |map, _| map.reserve(4 * map.capacity()), true),
        ("has it shrink", |map, _| map.shrink_to_fit(), true),
        ("clears it", |map, _| map.clear(), false),
    ]
}

/// Nothing is there twice, is counted wrongly, or is not found.
fn is_whole(map: &Map) -> BTreeSet<u64> {
    let view = map.read();
    let mut keys = BTreeSet::new();
    for (key, value) in &view {
        assert_eq!(key.number(), value.number());
        assert!(keys.insert(key.number()), "{} is there twice", key.number());
        assert!(view.get(key).is_some_and(|found| std::ptr::eq(found, value)));
    }
    assert_eq!(keys.len(), view.len());
    keys
}

/// Has an operation do something at a place, and looks at what that leaves. Returns whether it came
/// there.
fn has_acted(
    domain: &Domain<Private>,
    (operate, subject): (Operate, u64),
    place: Place,
    (act, what, others_stay): (&str, Operate, bool),
) -> bool {
    let builder = HashMap::builder().domain(domain.clone());
    let map: Arc<Map> = Arc::new(builder.hasher(Default::default()).build());
    map.extend((0..KEYS).map(|key| (Owned::new(key), Owned::new(key))));
    let there = Arc::clone(&map);
    ACT.set(Some((place, Box::new(move || what(&there, subject)))));
    let end = catch_unwind(AssertUnwindSafe(|| operate(&map, subject)));
    domain.barrier(); // what it has removed is dropped, here or elsewhere
    let has_acted = ACT.take().is_none();
    assert!(end.is_ok() || has_acted && act == "panics", "it panics");
    let keys = is_whole(&map);
    let is_there = |key: &u64| *key == subject || keys.contains(key);
    assert!(!(has_acted && others_stay) || (0..KEYS).all(|key| is_there(&key)), "{keys:?}");
    // It can be used on.
    map.extend((0..2 * KEYS).map(|key| (Owned::new(key), Owned::new(key))));
    assert!(is_whole(&map).len() as u64 >= 2 * KEYS);
    map.retain(|key, _| key.number() % 2 == 0);
    map.reserve(100);
    is_whole(&map);
    has_acted
}

/// Has each place of each operation do each act, or under Miri of some operations one act. Returns
/// the places that were reached.
fn all_of(domain: &Domain<Private>) -> BTreeSet<Place> {
    let mut reached = BTreeSet::new();
    for (name, operate) in operations().into_iter().step_by(rounds(1, 3)) {
        for act in acts().into_iter().skip(rounds(0, 1)).take(rounds(8, 1)) {
            for place in PLACES.into_iter().take(rounds(6, 2)) {
                for subject in SUBJECTS.into_iter().take(rounds(3, 1)) {
                    let case = || has_acted(domain, (operate, subject), place, act);
                    let has_acted = catch_unwind(AssertUnwindSafe(case));
                    let case = || format!("{name} of {subject}: {place:?} {}", act.0);
                    if has_acted.unwrap_or_else(|_| panic!("{}", case())) {
                        reached.insert(place);
                    }
                    domain.barrier();
                    assert_eq!(OWNED.load(SeqCst), 0, "{}: some are left", case());
                }
            }
        }
    }
    reached
}

#[test]
fn user_code_that_used_the_map_waited_for_itself() {
    if cfg!(not(miri)) {
        in_its_own_process!();
    }
    std::panic::set_hook(Box::new(|info| {
        if info.payload().downcast_ref::<&str>() != Some(&"on purpose") {
            eprintln!("{info}");
        }
    }));
    let domain: Domain<Private> = Domain::builder().build();
    quiet(&domain);
    let reached = all_of(&domain);
    assert!(cfg!(miri) || reached == PLACES.into(), "{reached:?}");
}

/// A key. The `Hash` of one with an odd number updates the maps.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
struct Counted(u64);

// SAFETY: a number.
unsafe impl NoUninit for Counted {}

impl Weigh for Counted {
    const OWNS: bool = false;
}

static COUNTS: LazyLock<HashMap<Counted, u64>> = LazyLock::new(HashMap::new);
static COPIED_COUNTS: LazyLock<CopyMap<Counted, u64>> = LazyLock::new(CopyMap::new);

impl Hash for Counted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if self.0 % 2 == 1 {
            COUNTS.insert(Self(self.0 % 8 + 1), self.0);
            COPIED_COUNTS.insert(Self(self.0 % 8 + 1), self.0);
        }
        self.0.hash(state);
    }
}

/// An update that moved entries hashed their keys. If these updated the map, each of those updates
/// moved entries as well, until the stack overflowed.
#[test]
fn a_hash_that_updated_its_map_had_it_move_entries_without_end() {
    const KEYS: u64 = if cfg!(miri) { 40 } else { 300 };
    for key in 0..KEYS {
        COUNTS.insert(Counted(2 * key + 1), key);
        COPIED_COUNTS.insert(Counted(2 * key + 1), key);
    }
    let read = COUNTS.read();
    for key in 0..KEYS {
        assert_eq!(read.get(&Counted(2 * key + 1)), Some(&key));
        assert_eq!(COPIED_COUNTS.get(&Counted(2 * key + 1)), Some(key));
    }
    assert_eq!((COUNTS.len() as u64, COPIED_COUNTS.len() as u64), (KEYS + 4, KEYS + 4));
}

thread_local! {
    /// How often the key 2 was compared, and whether that replaces the key 1 now.
    static COMPARED: Cell<(u32, bool)> = const { Cell::new((0, false)) };
    static REPLACED: HashMap<Unstable, u64, BuildHasherDefault<Constant>> = HashMap::default();
}

/// A key. Who compares another one with the key 2 has the key 1 replaced.
#[derive(Clone, Copy)]
struct Unstable(u64);

impl Hash for Unstable {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Weigh for Unstable {
    const OWNS: bool = false;
}

impl PartialEq for Unstable {
    fn eq(&self, other: &Self) -> bool {
        let (times, replaces) = COMPARED.get();
        if self.0 > 2 && other.0 == 2 && replaces {
            assert!(times < 100, "it is compared at each try");
            COMPARED.set((times + 1, false));
            REPLACED.with(|map| map.insert(Self(1), times.into()));
            COMPARED.set((times + 1, true));
        }
        self.0 == other.0
    }
}

impl Eq for Unstable {}

/// An update that another one came before compared all keys again, without end if that was made by
/// the comparison.
#[test]
fn an_update_compared_keys_anew_at_each_try() {
    REPLACED.with(|map| {
        map.extend((1..=2).map(|key| (Unstable(key), 0)));
        COMPARED.set((0, true));
        assert!(map.insert(Unstable(3), 0));
        COMPARED.set((COMPARED.get().0, false));
        assert_eq!(map.len(), 3);
    });
    let (times, _) = COMPARED.get();
    assert!((1..=2).contains(&times), "before its bucket is busy, and then: {times}");
}
