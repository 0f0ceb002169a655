//! What `arc-swap` 1.9 documents of its places, guards, caches and parts, asked of ours: programs
//! that come from there rely on it.

use crate::common::*;

use quiescence::cell::{ArcCellAny, ArcCellOption, ArcCellWeak, ArcGuard, Cache, Constant, Map};
use quiescence::{ArcCell, hazard};

use crate::common::user_types::Shaky;

fn tracked(number: u64, there: &Arc<AtomicUsize>) -> Arc<Counted> {
    Arc::new(Counted::new(number, there))
}

/// Waits until what was given up is dropped, with what that gives up in its turn.
fn quiet() {
    (0..4).for_each(|_| hazard::barrier());
}

// ---- the place ----

#[test]
fn defaults_conversions_and_how_they_are_shown() {
    assert_eq!(*ArcCell::<u64>::default().load(), 0);
    assert!(ArcCellOption::<u64>::default().load().is_none());
    assert!(ArcCellOption::<u64>::default().into_inner().is_none());
    assert!(ArcCellOption::<u8>::from_pointee(None).load().is_none());
    assert_eq!(*ArcCell::from(Arc::new(3)).load(), 3);
    assert_eq!(ArcCellOption::from(Some(Arc::new(3))).load().as_deref(), Some(&3));
    assert_eq!(ArcCellOption::from_pointee(4).load().as_deref(), Some(&4));
    assert_eq!(ArcCellOption::from_pointee(5).into_inner().as_deref(), Some(&5));
    let (five, none) = (ArcCellOption::from(Arc::new(5)), ArcCellOption::from(None::<Arc<u8>>));
    assert_eq!(format!("{five:?} {none:?}"), "ArcCell(Some(5)) ArcCell(None)");
    let cell = ArcCell::from_pointee("text".to_owned());
    assert_eq!(format!("{cell}, {}", cell.load()), "text, text");
    assert!(format!("{cell:?}").contains("\"text\""), "{cell:?}");
    assert_eq!(format!("{:?}", cell.load()), "\"text\"");
    assert_eq!(format!("{0} {0:?}", ArcCell::from(Arc::new(1.5))), "1.5 ArcCell(1.5)");
    // What is not sized goes into a box.
    let cell: ArcCell<Box<[u8]>> = ArcCell::from_pointee(Box::from([1, 2, 3]));
    assert_eq!(cell.load().len(), 3);
    cell.store(Arc::new(Box::from([])));
    assert!(cell.load().is_empty());
}

#[test]
fn cells_guards_and_caches_go_where_their_values_go() {
    fn goes<T: Send + Sync + 'static>() {}
    goes::<ArcCell<u64>>();
    goes::<ArcCellOption<Mutex<Vec<u8>>>>();
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
    let there = Arc::default();
    let cell = ArcCell::new(tracked(0, &there));
    let guards: Vec<_> = (1..=rounds(100, 30))
        .map(|number| {
            let guard = cell.load();
            cell.store(tracked(number, &there));
            guard
        })
        .collect();
    quiet();
    for (number, guard) in guards.iter().enumerate() {
        assert_eq!(guard.whole(), number as u64);
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
    let there = Arc::default();
    let cell = Arc::new(ArcCell::new(tracked(7, &there)));
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
    assert!(guards.iter().flatten().all(|guard| guard.whole() == 7));
    thread::spawn(move || drop(guards)).join().unwrap();
    quiet_until(|| there.load(Acquire) == 0);
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

// ---- rcu ----

#[test]
fn a_panic_in_rcu_changes_nothing() {
    let there = Arc::default();
    let cell = ArcCell::new(tracked(1, &there));
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
        panic_of(|| {
            cell.rcu::<Arc<Counted>>(|old| {
                calls.set(calls.get() + 1);
                assert!(calls.get() != panics_at, "on purpose");
                cell.store(tracked(old.whole() + 1, &there));
                tracked(100, &there)
            })
        });
        assert_eq!(cell.load().whole(), panics_at, "what others have stored stays");
    }
    quiet_until(|| there.load(Acquire) == 1);
    assert!(before >= 4 && uncounted() >= before, "the guard that it had is gone, too");
}

// ---- caches ----

#[test]
fn a_cache_sees_what_was_stored_and_keeps_what_it_has_until_then() {
    let there = Arc::default();
    let cell = Arc::new(ArcCell::new(tracked(1, &there)));
    let mut cache = Cache::new(cell.clone());
    let mut second = cache.clone();
    let mut part = Cache::new(&*cell).map(|value| &value.number);
    assert_eq!((cache.load().whole(), *part.load()), (1, 1));
    cell.store(tracked(2, &there));
    quiet();
    assert_eq!(there.load(Acquire), 2, "the caches have the old one");
    assert_eq!((cache.load().whole(), *part.load()), (2, 2));
    quiet();
    assert_eq!(there.load(Acquire), 2, "the other one has it still");
    assert_eq!(second.load().whole(), 2);
    quiet();
    assert_eq!(there.load(Acquire), 1);
    elsewhere(|| cell.store(tracked(3, &there)));
    assert_eq!((cache.load().whole(), second.load().whole()), (3, 3), "whoever has stored");
    assert!(Arc::ptr_eq(cache.cell(), &cell) && Arc::ptr_eq(&second.into_inner(), &cell));
    part.into_inner();
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
    let name = Map::new(cell, |config: &Config| &config.name);
    let bytes = Map::new(name.clone(), |name: &String| name.as_bytes());
    let any: Box<dyn DynAccess<[u8]>> = Box::new(bytes);
    assert_eq!(*any.load(), b"port 81"[..]);
    let all: [Box<dyn DynAccess<u64>>; 2] =
        [Box::new(Constant(1)), Box::new(Arc::new(ArcCell::from_pointee(2_u64)))];
    assert_eq!(all.map(|each| *each.load()), [1, 2]);
}

// ---- other pointers ----

#[test]
fn a_weak_cell_keeps_no_value_and_loses_no_count() {
    let there = Arc::default();
    let value = tracked(1, &there);
    let cell = ArcCellWeak::new(Arc::downgrade(&value));
    let guards: Vec<_> = (0..12).map(|_| cell.load()).collect();
    assert!(guards.iter().all(|guard| guard.upgrade().is_some_and(|up| up.whole() == 1)));
    drop(value);
    assert_eq!(there.load(Acquire), 0, "guards of a weak cell keep no value either");
    assert!(guards.iter().all(|guard| guard.upgrade().is_none()));
    let next = tracked(2, &there);
    assert!(cell.swap(Arc::downgrade(&next)).upgrade().is_none());
    assert_eq!(cell.load_full().upgrade().map(|up| up.whole()), Some(2));
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
    let own = Shaky::new(Arc::new(1));
    let cell = ArcCellAny::with_weight(own.clone(), |value| 8 + *value as usize);
    let guard = cell.load();
    assert_eq!((*guard, *ArcGuard::as_inner(&guard).0), (1, 1));
    let was = cell.rcu(|own| Shaky::new(Arc::new(*own.0 + 1)));
    assert_eq!((*was.0, *cell.load_full().0, *guard), (1, 2, 1));
    drop((guard, was, cell));
    quiet_until(|| Arc::strong_count(&own.0) == 1);
}

// ---- threads ----

/// A load after a store has returned, in whatever thread and by whatever it loads, gives the new
/// value or a newer one; and what a reader sees never goes back.
#[test]
fn no_reader_sees_an_older_value_after_a_newer_one() {
    let (cell, stored) = (ArcCell::from_pointee(0_u64), AtomicU64::new(0));
    let load = |kind| {
        let (mut cache, mut least) = (Cache::new(&cell), 0);
        let (cell, stored) = (&cell, &stored);
        move || {
            least = least.max(stored.load(Acquire));
            let seen = match kind {
                0 => *cell.load(),
                1 => *cell.load_full(),
                _ => **cache.load(),
            };
            assert!(seen >= least, "{seen} after {least}");
            least = seen;
        }
    };
    beside(3, load, || {
        for number in 1..=rounds(20_000, 100) {
            cell.store(Arc::new(number));
            stored.store(number, Release);
        }
    });
}

/// A thread that ends may load from the destructor of a thread-local, first or not.
#[test]
fn a_thread_that_ends_still_loads() {
    static CELL: LazyLock<ArcCell<u64>> = LazyLock::new(|| ArcCell::from_pointee(4));
    let sum = Arc::new(AtomicU64::new(0));
    for loads_before in [false, true] {
        let (sum, cell) = (sum.clone(), &*CELL);
        elsewhere(move || {
            at_thread_end(move || {
                sum.fetch_add(*cell.load() + *cell.load_full(), AcqRel);
                cell.store(Arc::new(4));
            });
            if loads_before {
                assert_eq!(*cell.load(), 4);
            }
        });
    }
    assert_eq!(sum.load(Acquire), 16);
}
