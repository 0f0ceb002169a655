//! What `arc-swap` 1.9 documents of its places, guards, caches and parts, asked of ours: programs
//! that come from there rely on it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Barrier, LazyLock, Weak};
use std::thread;

use quiescence::cell::{ArcCellAny, ArcCellOption, ArcCellWeak, ArcGuard, Cache, Constant, Map};
use quiescence::{ArcCell, Weigh, hazard};

use crate::common::rounds;
use crate::common::user_types::Own;

/// Counts how many of its kind are there, and is filled when it goes.
#[derive(Debug)]
struct Tracked {
    number: u64,
    mark: AtomicU64,
    there: &'static AtomicUsize,
}

const MARK: u64 = 0x0a11_ce11;

impl Tracked {
    fn new(number: u64, there: &'static AtomicUsize) -> Arc<Self> {
        there.fetch_add(1, Relaxed);
        Arc::new(Self { number, mark: AtomicU64::new(MARK), there })
    }

    fn number(&self) -> u64 {
        assert_eq!(self.mark.load(Relaxed), MARK, "{} is gone", self.number);
        self.number
    }
}

impl Weigh for Tracked {}

impl Drop for Tracked {
    fn drop(&mut self) {
        assert_eq!(self.mark.swap(0, Relaxed), MARK, "dropped twice");
        self.there.fetch_sub(1, Release);
    }
}

/// Waits until what was given up is dropped, with what that gives up in its turn.
fn quiet() {
    (0..4).for_each(|_| hazard::barrier());
}

/// A counter of objects of its own for each test.
fn counter() -> &'static AtomicUsize {
    Box::leak(Box::default())
}

// ---- the place ----

#[test]
fn a_store_is_what_later_loads_give_and_drops_the_old_one() {
    let there = counter();
    let cell = ArcCell::new(Tracked::new(1, there));
    assert_eq!((cell.load().number(), cell.load().number()), (1, 1), "as often as one likes");
    cell.store(Tracked::new(2, there));
    assert_eq!(cell.load().number(), 2);
    quiet();
    assert_eq!(there.load(Acquire), 1);
    assert_eq!(cell.swap(Tracked::new(3, there)).number(), 2);
    assert_eq!((cell.load_full().number(), cell.into_inner().number()), (3, 3));
    quiet();
    assert_eq!(there.load(Acquire), 0);
}

#[test]
fn the_same_arc_may_be_stored_again_and_in_several_places() {
    let value = Arc::new(5);
    let (one, other) = (ArcCell::new(value.clone()), ArcCell::new(value.clone()));
    let guard = one.load();
    one.store(value.clone());
    one.store(other.swap(one.load_full()));
    quiet();
    assert_eq!((*guard, *one.load(), *other.load()), (5, 5, 5));
    drop(one);
    quiet();
    assert!(Arc::ptr_eq(&other.load_full(), &value));
    drop((guard, other));
    quiet();
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn what_is_not_sized_goes_into_a_box() {
    let cell: ArcCell<Box<[u8]>> = ArcCell::from_pointee(Box::from([1, 2, 3]));
    assert_eq!(cell.load().len(), 3);
    cell.store(Arc::new(Box::from([])));
    assert!(cell.load().is_empty());
}

#[test]
fn statics_are_made_lazily_or_are_empty_at_first() {
    static CONFIG: LazyLock<ArcCell<HashMap<usize, usize>>> =
        LazyLock::new(|| ArcCell::with_weight(Arc::default(), |map| map.capacity() * 32));
    static MAYBE: ArcCellOption<String> = ArcCellOption::empty();
    let cached = |x: usize| {
        if let Some(found) = CONFIG.load().get(&x) {
            return *found;
        }
        CONFIG.rcu(|map| {
            let mut map = HashMap::clone(map);
            map.insert(x, x * 2);
            map
        });
        x * 2
    };
    assert_eq!((cached(21), cached(21), CONFIG.load().len()), (42, 42, 1));
    assert!(MAYBE.load().is_none());
    MAYBE.store(Some(Arc::new("there".to_owned())));
    assert_eq!(MAYBE.load().as_deref().map(String::as_str), Some("there"));
}

#[test]
fn defaults_conversions_and_how_they_are_shown() {
    assert_eq!(*ArcCell::<u64>::default().load(), 0);
    assert!(ArcCellOption::<u64>::default().load().is_none());
    assert_eq!(*ArcCell::from(Arc::new(3)).load(), 3);
    assert_eq!(ArcCellOption::from(Some(Arc::new(3))).load().as_deref(), Some(&3));
    assert_eq!(ArcCellOption::from_pointee(4).load().as_deref(), Some(&4));
    let cell = ArcCell::from_pointee("text".to_owned());
    assert_eq!(format!("{cell}, {}", cell.load()), "text, text");
    assert!(format!("{cell:?}").contains("\"text\""), "{cell:?}");
    assert_eq!(format!("{:?}", cell.load()), "\"text\"");
    assert!(format!("{:?}", ArcCellOption::<u64>::empty()).contains("None"));
}

#[test]
fn cells_guards_and_caches_go_where_their_values_go() {
    fn goes<T: Send + Sync + 'static>() {}
    goes::<ArcCell<u64>>();
    goes::<ArcCellOption<u64>>();
    goes::<ArcCellWeak<u64>>();
    goes::<ArcGuard<Arc<u64>>>();
    goes::<ArcGuard<Option<Arc<u64>>>>();
    goes::<Cache<Arc<ArcCell<u64>>, Arc<u64>>>();
    goes::<Constant<u64>>();
    goes::<Map<Arc<ArcCell<u64>>, u64, fn(&u64) -> &u64>>();
    fn unwinds<T: std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    unwinds::<ArcCell<u64>>();
}

// ---- guards ----

/// One load is one version, for as long as the guard lives.
#[test]
fn a_guard_shows_one_version_whatever_is_stored() {
    let there = counter();
    let cell = ArcCell::new(Tracked::new(0, there));
    let guards: Vec<_> = (1..=rounds(100, 30))
        .map(|number| {
            let guard = cell.load();
            cell.store(Tracked::new(number, there));
            guard
        })
        .collect();
    quiet();
    for (number, guard) in guards.iter().enumerate() {
        assert_eq!(guard.number(), number as u64);
    }
    assert_eq!(there.load(Acquire), guards.len() + 1);
    drop(guards);
    quiet_until(|| there.load(Acquire) == 1);
}

/// What a guard has kept goes within a bounded time after it, without any more stores.
fn quiet_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        hazard::barrier();
        thread::yield_now();
    }
}

#[test]
fn a_guard_outlives_the_cell_and_the_thread_that_loaded_it() {
    let there = counter();
    let cell = Arc::new(ArcCell::new(Tracked::new(7, there)));
    let guards: Vec<_> = (0..rounds(30, 4))
        .map(|_| {
            let cell = cell.clone();
            // More than a thread has slots; and the next thread has what this one leaves.
            let load = move || (0..10).map(|_| cell.load()).collect::<Vec<_>>();
            thread::spawn(load).join().unwrap()
        })
        .collect();
    drop(cell);
    quiet();
    assert!(guards.iter().flatten().all(|guard| guard.number() == 7));
    thread::spawn(move || drop(guards)).join().unwrap();
    quiet_until(|| there.load(Acquire) == 0);
}

#[test]
fn guards_end_in_any_order() {
    let there = counter();
    let cell = ArcCell::new(Tracked::new(0, there));
    let mut guards: Vec<_> = (0..12).map(|_| cell.load()).collect();
    for at in [5, 0, 9, 3, 3, 0, 5, 2] {
        assert_eq!(guards.swap_remove(at).number(), 0);
        let fresh = cell.load();
        assert_eq!(fresh.number(), 0);
        guards.push(fresh);
        guards.truncate(11);
        guards.push(cell.load());
    }
    cell.store(Tracked::new(1, there));
    quiet();
    assert!(guards.iter().all(|guard| guard.number() == 0));
    drop(guards);
    quiet_until(|| there.load(Acquire) == 1);
}

#[test]
fn guards_and_pointers_are_made_of_each_other() {
    let value = Arc::new(String::from("x"));
    let cell = ArcCell::new(value.clone());
    let taken = ArcGuard::into_inner(cell.load());
    assert!(Arc::ptr_eq(&taken, &value));
    // Twenty: of those with a slot and of those without.
    let guards: Vec<_> = (0..20).map(|_| cell.load()).collect();
    let arcs: Vec<Arc<String>> = guards.into_iter().map(ArcGuard::into_inner).collect();
    assert_eq!(Arc::strong_count(&value), 3 + 20);
    drop((arcs, taken));
    let made: ArcGuard<Arc<String>> = value.clone().into();
    assert!(Arc::ptr_eq(ArcGuard::as_inner(&made), &value));
    let kept = Arc::clone(ArcGuard::as_inner(&cell.load()));
    drop((made, kept, cell));
    quiet();
    assert_eq!(Arc::strong_count(&value), 1);
    assert_eq!(*ArcGuard::<Arc<u64>>::default(), 0);
    assert!(ArcGuard::<Option<Arc<u64>>>::default().is_none());
}

#[test]
fn a_guard_may_be_held_where_its_value_is_dropped_by_others() {
    let there = counter();
    let cell = ArcCell::new(Tracked::new(1, there));
    let guard = cell.load();
    let old = cell.swap(Tracked::new(2, there));
    drop(old);
    quiet();
    assert_eq!(guard.number(), 1, "the cell's reference waits for the guard");
    drop(guard);
    quiet_until(|| there.load(Acquire) == 1);
}

// ---- compare_and_swap ----

#[test]
fn compare_and_swap_gives_what_was_there_swapped_or_not() {
    let there = counter();
    let (one, two) = (Tracked::new(1, there), Tracked::new(2, there));
    let cell = ArcCell::new(one.clone());
    let was = cell.compare_and_swap(&two, Tracked::new(9, there));
    assert!(Arc::ptr_eq(&was, &one), "not swapped: what is there");
    drop(was);
    quiet();
    assert_eq!((there.load(Acquire), Arc::strong_count(&one)), (2, 2), "the new one is dropped");
    assert!(Arc::ptr_eq(&cell.compare_and_swap(&one, two.clone()), &one));
    let guard = cell.load();
    assert!(Arc::ptr_eq(&cell.compare_and_swap(&guard, one.clone()), &two), "by a guard's address");
    assert!(Arc::ptr_eq(&cell.compare_and_swap(&guard, two.clone()), &one), "not there any more");
    drop(cell.compare_and_swap(cell.load(), two.clone()));
    let address = Arc::as_ptr(&two);
    assert!(Arc::ptr_eq(&cell.compare_and_swap(address, one.clone()), &two));
    assert!(Arc::ptr_eq(&cell.compare_and_swap(address.cast_mut(), two.clone()), &one));
    drop((guard, cell));
    quiet_until(|| (Arc::strong_count(&one), Arc::strong_count(&two)) == (1, 1));
}

#[test]
fn none_is_compared_as_null() {
    let five = Arc::new(5);
    let cell = ArcCellOption::empty();
    let was = cell.compare_and_swap(&Some(five.clone()), Some(Arc::new(6)));
    assert!(was.is_none() && cell.load().is_none(), "not what was there");
    assert!(cell.compare_and_swap(&None, Some(five.clone())).is_none());
    assert!(cell.compare_and_swap(&None, None).is_some(), "not swapped");
    assert!(cell.compare_and_swap(ptr::null::<i32>(), None).is_some(), "nor by address");
    assert!(Arc::ptr_eq(&cell.compare_and_swap(&Some(five.clone()), None).unwrap(), &five));
    assert!(cell.compare_and_swap(ptr::null::<i32>(), Some(five.clone())).is_none());
    assert!(cell.take().is_some() && cell.take().is_none() && cell.load_full().is_none());
    quiet();
    assert_eq!(Arc::strong_count(&five), 1);
}

/// Each number is had by one thread: a swap that says it was done was done by one alone.
#[test]
fn of_those_who_compare_with_the_same_one_wins() {
    let cell = ArcCell::from_pointee(0_u64);
    let (threads, each) = (4, rounds(2_000, 20));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut won = 0;
                while won < each {
                    let seen = cell.load();
                    let was = cell.compare_and_swap(&seen, Arc::new(*seen + 1));
                    won += u64::from(Arc::ptr_eq(&was, ArcGuard::as_inner(&seen)));
                }
            });
        }
    });
    assert_eq!(*cell.load(), threads * each);
}

// ---- rcu ----

#[test]
fn rcu_loses_no_update() {
    let there = counter();
    let cell = ArcCell::new(Tracked::new(0, there));
    let (threads, each) = (4, rounds(2_000, 20));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..each {
                    let was = cell.rcu(|old| Tracked::new(old.number() + 1, there));
                    assert!(was.number() < threads * each);
                }
            });
        }
    });
    assert_eq!(cell.load().number(), threads * each);
    quiet_until(|| there.load(Acquire) == 1);
}

#[test]
fn rcu_is_asked_again_with_what_another_thread_has_stored() {
    let cell = ArcCell::from_pointee(1);
    let seen = RefCell::new(Vec::new());
    let was = cell.rcu(|old| {
        seen.borrow_mut().push(**old);
        if seen.borrow().len() < 4 {
            cell.store(Arc::new(**old * 10));
        }
        **old + 1
    });
    assert_eq!((*was, *cell.load(), seen.into_inner()), (1000, 1001, vec![1, 10, 100, 1000]));
}

#[test]
fn rcu_may_give_back_what_it_got_and_makes_what_it_gives_from_values() {
    let cell = ArcCell::from_pointee(1);
    let first = cell.load_full();
    let was = cell.rcu(Arc::clone);
    assert!(Arc::ptr_eq(&was, &first) && Arc::ptr_eq(&cell.load_full(), &first));
    assert_eq!((*cell.rcu(|_| 2), *cell.rcu(|_| Arc::new(3)), *cell.load()), (1, 2, 3));
    let option = ArcCellOption::<u64>::empty();
    assert!(option.rcu(|old| old.is_none().then(|| Arc::new(1))).is_none());
    assert_eq!(option.rcu(|old| old.as_ref().map(|n| Arc::new(**n + 1))).as_deref(), Some(&1));
    assert_eq!(option.rcu(|_| None::<Arc<u64>>).as_deref(), Some(&2));
    assert!(option.load().is_none());
    drop(was);
    quiet();
    assert_eq!(Arc::strong_count(&first), 1);
}

#[test]
fn a_panic_in_rcu_changes_nothing() {
    let there = counter();
    let cell = ArcCell::new(Tracked::new(1, there));
    // How many guards of eight have no count. (Fewer than eight where the thread has the slots of
    // one that has ended and whose guards are not.)
    let uncounted = || {
        let value = cell.load_full();
        let guards: Vec<_> = (0..8).map(|_| cell.load()).collect();
        guards.len() + 2 - Arc::strong_count(&value)
    };
    let before = uncounted();
    let calls = Cell::new(0);
    for panics_at in [1, 2] {
        calls.set(0);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            cell.rcu::<Arc<Tracked>>(|old| {
                calls.set(calls.get() + 1);
                assert!(calls.get() != panics_at, "on purpose");
                cell.store(Tracked::new(old.number() + 1, there));
                Tracked::new(100, there)
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(cell.load().number(), panics_at, "what others have stored stays");
    }
    quiet_until(|| there.load(Acquire) == 1);
    assert!(before >= 4 && uncounted() >= before, "the guard that it had is gone, too");
}

// ---- caches ----

#[test]
fn a_cache_sees_what_was_stored_and_keeps_what_it_has_until_then() {
    let there = counter();
    let cell = Arc::new(ArcCell::new(Tracked::new(1, there)));
    let mut cache = Cache::new(cell.clone());
    let mut second = cache.clone();
    cell.store(Tracked::new(2, there));
    quiet();
    assert_eq!(there.load(Acquire), 2, "the caches have the old one");
    assert_eq!(cache.load().number(), 2);
    quiet();
    assert_eq!(there.load(Acquire), 2, "the other one has it still");
    assert_eq!(second.load().number(), 2);
    quiet();
    assert_eq!(there.load(Acquire), 1);
    let stored = thread::spawn({
        let cell = cell.clone();
        move || cell.store(Tracked::new(3, there))
    });
    stored.join().unwrap();
    assert_eq!((cache.load().number(), second.load().number()), (3, 3), "whoever has stored");
    assert!(Arc::ptr_eq(cache.cell(), &cell) && Arc::ptr_eq(&second.into_inner(), &cell));
    drop((cache, cell));
    quiet_until(|| there.load(Acquire) == 0);
}

#[test]
fn a_cache_is_of_whatever_leads_to_a_cell() {
    static CELL: LazyLock<ArcCell<u64>> = LazyLock::new(|| ArcCell::from_pointee(1));
    thread_local! {
        static CACHE: RefCell<Cache<&'static ArcCell<u64>, Arc<u64>>> =
            RefCell::new(Cache::from(&*CELL));
    }
    CACHE.with_borrow_mut(|cache| assert_eq!(**cache.load(), 1));
    CELL.store(Arc::new(2));
    CACHE.with_borrow_mut(|cache| assert_eq!(**cache.load(), 2));
    let option = ArcCellOption::from_pointee(1);
    let mut cache = Cache::new(&option);
    assert_eq!(cache.load().as_deref(), Some(&1));
    option.store(None);
    assert!(cache.load().is_none());
    option.store(Some(Arc::new(2)));
    assert_eq!(cache.load().as_deref(), Some(&2));
}

#[test]
fn a_cache_of_a_part_sees_what_was_stored() {
    let cell = ArcCell::from_pointee((1, "one"));
    let mut name = Cache::new(&cell).map(|pair: &Arc<(i32, &'static str)>| &pair.1);
    assert_eq!(*name.load(), "one");
    cell.store(Arc::new((2, "two")));
    assert_eq!(*name.load(), "two");
    assert_eq!(name.into_inner().load().0, 2);
}

// ---- parts ----

struct Inner {
    port: u16,
}

struct Config {
    inner: Inner,
    name: String,
}

impl Weigh for Config {}

fn config(port: u16) -> Config {
    Config { inner: Inner { port }, name: format!("port {port}") }
}

#[test]
fn a_part_is_asked_for_of_a_cell_a_pointer_to_it_a_constant_or_a_part() {
    use quiescence::cell::Access;
    fn port<A: Access<u16>>(access: &A) -> u16 {
        *access.load()
    }
    let cell = Arc::new(ArcCell::from_pointee(config(80)));
    let borrowed = cell.map(|config: &Config| &config.inner.port);
    let inner = Map::new(cell.clone(), |config: &Config| &config.inner);
    let owned = Map::new(inner, |inner: &Inner| &inner.port);
    assert_eq!((port(&borrowed), port(&owned), port(&&owned)), (80, 80, 80));
    assert_eq!((port(&Constant(8080)), port(&Arc::new(ArcCell::from_pointee(1_u16)))), (8080, 1));
    let before = owned.load();
    cell.store(Arc::new(config(443)));
    assert_eq!((*before, port(&borrowed), port(&owned)), (80, 443, 443));
    drop(cell);
    let moved = thread::spawn(move || port(&owned));
    assert_eq!((moved.join().unwrap(), *before), (443, 80), "it has the cell");
}

#[test]
fn a_part_may_be_an_object_of_a_trait() {
    use quiescence::cell::DynAccess;
    let cell = Arc::new(ArcCell::from_pointee(config(80)));
    let name = Map::new(cell.clone(), |config: &Config| &config.name);
    let dynamic: Box<dyn DynAccess<String> + Send> = Box::new(name);
    let guard = dynamic.load();
    cell.store(Arc::new(config(81)));
    assert_eq!((guard.as_str(), dynamic.load().as_str()), ("port 80", "port 81"));
    let all: [Box<dyn DynAccess<u64>>; 2] =
        [Box::new(Constant(1)), Box::new(Arc::new(ArcCell::from_pointee(2_u64)))];
    assert_eq!(all.map(|each| *each.load()), [1, 2]);
}

// ---- other pointers ----

#[test]
fn a_weak_cell_keeps_no_value_and_loses_no_count() {
    let there = counter();
    let value = Tracked::new(1, there);
    let cell = ArcCellWeak::new(Arc::downgrade(&value));
    let guards: Vec<_> = (0..12).map(|_| cell.load()).collect();
    assert!(guards.iter().all(|guard| guard.upgrade().is_some_and(|up| up.number() == 1)));
    drop(value);
    assert_eq!(there.load(Acquire), 0, "guards of a weak cell keep no value either");
    assert!(guards.iter().all(|guard| guard.upgrade().is_none()));
    let next = Tracked::new(2, there);
    assert!(cell.swap(Arc::downgrade(&next)).upgrade().is_none());
    assert_eq!(cell.load_full().upgrade().map(|up| up.number()), Some(2));
    let weak = cell.load_full();
    let was = cell.compare_and_swap(&weak, Weak::new());
    assert!(was.ptr_eq(&weak) && cell.load().upgrade().is_none());
    cell.store(Arc::downgrade(&next));
    drop((guards, weak, was, cell));
    quiet_until(|| Arc::weak_count(&next) == 0);
    assert_eq!((Arc::strong_count(&next), there.load(Acquire)), (1, 1));
    assert!(ArcCellWeak::<u64>::default().load().upgrade().is_none());
}

#[test]
fn a_cell_holds_pointers_of_a_programs_own() {
    let own = Own(Arc::new((1, "own".to_owned())));
    let cell = ArcCellAny::with_weight(own.clone(), |value| 8 + value.1.capacity());
    let guard = cell.load();
    assert_eq!((guard.as_str(), ArcGuard::as_inner(&guard).0.0), ("own", 1));
    let was = cell.rcu(|own| Own(Arc::new((own.0.0 + 1, own.0.1.clone()))));
    assert_eq!((was.0.0, cell.load_full().0.0, guard.as_str()), (1, 2, "own"));
    drop((guard, was, cell));
    quiet_until(|| Arc::strong_count(&own.0) == 1);
}

// ---- threads ----

/// With one that stores, what a reader sees never goes back, by whatever it loads.
#[test]
fn no_reader_sees_an_older_value_after_a_newer_one() {
    let cell = ArcCell::from_pointee(0_u64);
    let (stores, over) = (rounds(20_000, 100), AtomicBool::new(false));
    thread::scope(|scope| {
        for kind in 0..3 {
            let (cell, over) = (&cell, &over);
            scope.spawn(move || {
                let (mut cache, mut last) = (Cache::new(cell), 0);
                loop {
                    let is_last = over.load(Acquire);
                    let seen = match kind {
                        0 => *cell.load(),
                        1 => *cell.load_full(),
                        _ => **cache.load(),
                    };
                    assert!(seen >= last, "{seen} after {last}");
                    last = seen;
                    if is_last {
                        assert_eq!(last, stores, "what was stored before is seen");
                        return;
                    }
                }
            });
        }
        for number in 1..=stores {
            cell.store(Arc::new(number));
        }
        over.store(true, Release);
    });
}

#[test]
fn everything_is_dropped_once_whatever_threads_do() {
    let there = counter();
    let cells: [ArcCellOption<Tracked>; 3] = Default::default();
    let meet = Barrier::new(4);
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (cells, meet) = (&cells, &meet);
            scope.spawn(move || {
                meet.wait();
                let mut kept = Vec::new();
                for round in 0..rounds(3_000, 40) {
                    let number = thread << 32 | round;
                    let cell = &cells[(round % 3) as usize];
                    match (thread + round) % 7 {
                        0 => cell.store(Some(Tracked::new(number, there))),
                        1 => drop(cell.swap(Some(Tracked::new(number, there)))),
                        2 => drop(cell.take()),
                        3 => {
                            let seen = cell.load();
                            drop(cell.compare_and_swap(&seen, Some(Tracked::new(number, there))));
                        }
                        4 => drop(cell.rcu(Option::clone)),
                        _ => kept.push(cell.load()),
                    }
                    kept.iter().flat_map(|guard| guard.as_ref()).for_each(|one| {
                        one.number();
                    });
                    kept.truncate((round % 13) as usize);
                }
            });
        }
    });
    let left = cells.iter().filter(|cell| cell.load().is_some()).count();
    quiet_until(|| there.load(Acquire) == left);
    drop(cells);
    quiet_until(|| there.load(Acquire) == 0);
}

/// A thread that ends may load from the destructor of a thread-local, first or not.
#[test]
fn a_thread_that_ends_still_loads() {
    struct Last(&'static ArcCell<u64>, Arc<AtomicU64>);
    impl Drop for Last {
        fn drop(&mut self) {
            self.1.fetch_add(*self.0.load() + *self.0.load_full(), AcqRel);
            self.0.store(Arc::new(4));
        }
    }
    thread_local! {
        static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    }
    static CELL: LazyLock<ArcCell<u64>> = LazyLock::new(|| ArcCell::from_pointee(4));
    let sum = Arc::new(AtomicU64::new(0));
    for loads_before in [false, true] {
        let (sum, cell) = (sum.clone(), &*CELL);
        let end = move || {
            LAST.set(Some(Last(cell, sum)));
            if loads_before {
                assert_eq!(*cell.load(), 4);
            }
        };
        thread::spawn(end).join().unwrap();
    }
    assert_eq!(sum.load(Acquire), 16);
}

/// What a value's drop does to the cell that it was in.
#[test]
fn a_drop_may_store_and_load() {
    struct Again(u64, &'static ArcCellOption<Self>);
    impl Weigh for Again {}
    impl Drop for Again {
        fn drop(&mut self) {
            let next = self.1.load().as_ref().map_or(0, |there| there.0);
            assert_ne!(next, self.0, "it is out of its place");
            if self.0 > 10 {
                self.1.store(Some(Arc::new(Self(self.0 - 1, self.1))));
            }
        }
    }
    static PLACE: ArcCellOption<Again> = ArcCellOption::empty();
    PLACE.store(Some(Arc::new(Again(13, &PLACE))));
    PLACE.store(None);
    quiet_until(|| PLACE.load().as_ref().is_some_and(|there| there.0 == 12));
    PLACE.store(None);
    quiet_until(|| PLACE.load().as_ref().is_some_and(|there| there.0 == 11));
    PLACE.store(None);
    quiet_until(|| PLACE.load().as_ref().is_some_and(|there| there.0 == 10));
    PLACE.store(None);
    quiet();
    assert!(PLACE.load().is_none());
}
