//! `ArcCell` and its kin: exact counts, exact drops, under updaters, signals and `fork`, with light
//! fences and with portable ones.

use crate::common::*;

use quiescence::cell::{ArcCellOption, ArcGuard};
use quiescence::{ArcCell, hazard};

/// The count once what was given up has been dropped.
fn counted<T>(arc: &Arc<T>) -> usize {
    hazard::barrier();
    Arc::strong_count(arc)
}

#[test]
fn the_cell_holds_one_reference_and_lets_go_of_it() {
    let first = Arc::new(1);
    let cell = ArcCell::new(first.clone());
    assert_eq!(Arc::strong_count(&first), 2);
    let loaded = cell.load();
    assert!(Arc::ptr_eq(&first, ArcGuard::as_inner(&loaded)));
    assert_eq!(Arc::strong_count(&first), 2, "a guard counts nothing");
    drop(loaded);
    assert_eq!(*cell.load_full(), 1);
    let second = Arc::new(2);
    let old = cell.swap(second.clone());
    assert!(Arc::ptr_eq(&first, &old));
    assert_eq!((counted(&first), counted(&second)), (2, 2));
    cell.store(first.clone());
    assert_eq!((counted(&first), counted(&second)), (3, 1));
    drop(old);
    assert!(Arc::ptr_eq(&first, &cell.into_inner()));
    assert_eq!(counted(&first), 1);
    drop(ArcCell::new(first.clone()));
    assert_eq!(counted(&first), 1);
}

#[test]
fn a_guard_outlives_what_becomes_of_its_cell() {
    let first = Arc::new(String::from("first"));
    let cell = ArcCell::new(first.clone());
    let (stays, goes) = (cell.load(), cell.load());
    cell.store(Arc::new(String::from("second")));
    hazard::barrier();
    assert_eq!((&**stays, Arc::strong_count(&first)), ("first", 2), "the cell's reference is kept");
    // A guard is another thread's to drop, and a reference of its own can be made of it.
    thread::spawn(move || assert_eq!(*goes, "first")).join().unwrap();
    assert_eq!(counted(&first), 2, "one protects it still");
    let full = ArcGuard::into_inner(stays);
    assert_eq!(counted(&first), 2, "its own, and not the cell's any more");
    drop(cell);
    drop(full);
    assert_eq!(counted(&first), 1);
    let made = ArcGuard::from_inner(first.clone());
    assert_eq!((counted(&first), made.len()), (2, 5));
    drop(made);
    assert_eq!(counted(&first), 1);
}

/// Eight are protected by slots, and the others count.
#[test]
fn a_thread_may_have_any_number_of_guards() {
    let value = Arc::new(7);
    let cell = ArcCell::new(value.clone());
    let mut guards: Vec<_> = (0..20).map(|_| cell.load()).collect();
    // Or more, where guards of a thread that has ended stand in its slots.
    let count = Arc::strong_count(&value);
    assert!((2 + 12..=2 + 16).contains(&count), "{count}");
    cell.store(Arc::new(8));
    hazard::barrier();
    assert!(guards.iter().all(|guard| **guard == 7));
    guards.drain(..8);
    let again: Vec<_> = (0..8).map(|_| cell.load()).collect();
    assert!(again.iter().all(|guard| **guard == 8), "the slots are free again");
    drop(guards);
    assert_eq!(counted(&value), 1);
}

#[test]
fn compare_and_swap_goes_by_the_address() {
    let (first, second) = (Arc::new(7), Arc::new(7));
    let cell = ArcCell::new(first.clone());
    let seen = cell.compare_and_swap(&second, Arc::new(8));
    assert!(Arc::ptr_eq(&seen, &first), "an equal value elsewhere is not what is there");
    assert!(Arc::ptr_eq(&cell.load_full(), &first));
    drop(seen);
    assert_eq!(counted(&first), 2);
    drop(cell.compare_and_swap(&second, second.clone()));
    assert_eq!(counted(&second), 1, "the new one is dropped");
    let seen = cell.compare_and_swap(&first, second.clone());
    assert!(Arc::ptr_eq(&seen, &first));
    assert!(Arc::ptr_eq(&cell.load_full(), &second));
    drop(seen);
    assert_eq!((counted(&first), counted(&second)), (1, 2));
    // What comes back is the same: the thread that holds it cannot tell, and need not.
    cell.store(first.clone());
    cell.store(second.clone());
    assert!(Arc::ptr_eq(&cell.compare_and_swap(&second, first.clone()), &second));
    assert_eq!((counted(&first), counted(&second)), (2, 1));
    // By a guard, and by an address.
    let guard = cell.load();
    assert!(Arc::ptr_eq(&cell.compare_and_swap(&guard, second.clone()), &first));
    assert!(Arc::ptr_eq(&cell.compare_and_swap(guard, first.clone()), &second), "not there now");
    let address = Arc::as_ptr(&second);
    assert!(Arc::ptr_eq(&cell.compare_and_swap(address, first.clone()), &second));
    assert!(Arc::ptr_eq(&cell.compare_and_swap(address.cast_mut(), second.clone()), &first));
    assert_eq!((counted(&first), counted(&second)), (2, 1));
}

#[test]
fn an_option_may_be_empty_at_any_time() {
    static PLACE: ArcCellOption<String> = ArcCellOption::empty();
    assert!(PLACE.load().is_none());
    assert!(PLACE.compare_and_swap(&None, Some(Arc::new(String::from("a")))).is_none());
    let a = PLACE.load_full().unwrap();
    assert_eq!((*a).as_str(), "a");
    let kept = PLACE.compare_and_swap(&None, Some(Arc::new(String::from("b"))));
    assert!(Arc::ptr_eq(&kept.unwrap(), &a), "it was not empty");
    assert!(Arc::ptr_eq(&PLACE.compare_and_swap(&Some(a.clone()), None).unwrap(), &a));
    assert!(PLACE.load_full().is_none());
    assert_eq!(counted(&a), 1);
    PLACE.store(Some(a.clone()));
    assert!(PLACE.compare_and_swap(ptr::null::<String>(), None).is_some(), "not by null either");
    assert!(Arc::ptr_eq(&PLACE.take().unwrap(), &a));
    assert!(PLACE.take().is_none());
    assert!(PLACE.compare_and_swap(ptr::null::<String>(), Some(a.clone())).is_none());
    assert!(Arc::ptr_eq(&PLACE.take().unwrap(), &a));
    assert!(PLACE.rcu(|old| old.is_none().then(|| a.clone())).is_none());
    assert!(PLACE.rcu(|_| Arc::new(String::from("c"))).is_some_and(|old| *old == "a"));
    PLACE.store(None);
}

#[test]
fn rcu_takes_a_value_or_an_arc_and_begins_anew() {
    let cell = ArcCell::from_pointee(1_u64);
    assert_eq!(*cell.rcu(|old| **old + 1), 1);
    assert_eq!(*cell.rcu(|old| Arc::new(**old + 1)), 2);
    let seen = RefCell::new(Vec::new());
    let was = cell.rcu(|old| {
        seen.borrow_mut().push(**old);
        if seen.borrow().len() < 4 {
            cell.store(Arc::new(**old * 10));
        }
        **old + 1
    });
    assert_eq!((*was, *cell.load(), seen.into_inner()), (3000, 3001, vec![3, 30, 300, 3000]));
    panic_of(|| cell.rcu::<u64>(|_| panic!("no new value")));
    assert_eq!(counted(&cell.load_full()), 2);
}

#[test]
fn values_of_every_alignment_are_counted_right() {
    macro_rules! aligned {
        ($($align:literal)*) => { $({
            #[repr(align($align))]
            struct Value(u16);
            impl Weigh for Value {}
            let cell = ArcCell::from_pointee(Value($align));
            let loaded: Vec<_> = (0..3).map(|_| cell.load_full()).collect();
            assert_eq!(Arc::strong_count(&loaded[0]), 4, "{}", $align);
            assert!(loaded.iter().all(|value| value.0 == $align));
        })* };
    }
    // The last is bigger than any whose count has been looked for.
    aligned!(1 2 4 8 16 32 64 128 256 512 1024 2048 4096 8192);
    let big = ArcCell::from_pointee([7_u8; 1 << 17]); // loaded in sections
    assert_eq!((Arc::strong_count(&big.load_full()), big.load()[1 << 16]), (2, 7));
    big.store(Arc::new([8; 1 << 17]));
    assert_eq!(big.load()[0], 8);
    let nothing = ArcCell::from_pointee(());
    assert_eq!(Arc::strong_count(&nothing.load_full()), 2);
    assert!(!Arc::ptr_eq(&nothing.swap(Arc::new(())), &nothing.load_full()));
}

/// Loads that are kept for a while beside updates of all kinds: all that was made is dropped once,
/// and nothing is loaded that has been.
fn readers_beside_updaters(readers: usize, updaters: usize, updates: u64) {
    let live = Arc::default();
    let make = |number| Arc::new(Counted::new(number, &live));
    let cell = ArcCell::new(make(0));
    let loads = AtomicUsize::new(0);
    let read = |_| {
        let mut kept = Vec::new();
        let (cell, loads) = (&cell, &loads);
        move || {
            let loaded = cell.load();
            loaded.whole();
            kept.push(loaded);
            if kept.len() == 12 {
                kept.drain(..).for_each(|kept| _ = kept.whole());
            }
            loads.fetch_add(1, Relaxed);
        }
    };
    let update = |_| {
        for update in 0..updates {
            // Each adds one, and only one of two ways takes it from a value that somebody else
            // put there.
            match update % 3 {
                0 => drop(cell.rcu(|old| make(old.number + 1))),
                1 => loop {
                    let old = cell.load();
                    let was = cell.compare_and_swap(&old, make(old.number + 1));
                    if Arc::ptr_eq(&was, ArcGuard::as_inner(&old)) {
                        break;
                    }
                },
                _ => drop(cell.rcu(|old| old.clone())), // the same again
            }
        }
    };
    beside(readers, read, || {
        threads(updaters, update);
        until(|| readers == 0 || loads.load(Relaxed) != 0);
    });
    let last = cell.into_inner();
    let changes = updates - updates / 3;
    assert_eq!(last.number, changes * updaters as u64, "an update was lost");
    assert_eq!(counted(&last), 1, "a reference is left over");
    assert_eq!(live.load(Relaxed), 1);
}

#[test]
fn counts_are_exact_and_everything_is_dropped_once() {
    for (readers, updaters, updates) in [(4, 3, 999), (0, 4, 1_500), (6, 1, 3_000)] {
        readers_beside_updaters(readers, updaters, rounds(updates, 9));
    }
}

#[test]
fn swaps_hand_each_reference_to_one_thread() {
    const EACH: u64 = rounds(1_000, 20);
    let (live, place) = (Arc::default(), ArcCellOption::<Counted>::empty());
    let read = |_| || _ = place.load().as_ref().map(|loaded| loaded.whole());
    let swap = |updater| {
        let swap = |n| {
            let number = updater as u64 * EACH + n;
            let new = (n % 4 != 3).then(|| Arc::new(Counted::new(number, &live)));
            place.swap(new).map(|old| old.number)
        };
        (0..EACH).filter_map(swap).collect::<Vec<_>>()
    };
    let mut seen = beside(1, read, || threads(3, swap)).concat();
    seen.extend(place.into_inner().map(|last| last.number));
    hazard::barrier();
    seen.sort_unstable();
    let all: Vec<u64> = (0..3 * EACH).filter(|n| n % 4 != 3).collect();
    assert_eq!(seen, all, "each came out once");
    assert_eq!(live.load(Relaxed), 0);
}

#[test]
fn a_drop_may_use_the_place_and_may_panic() {
    static PLACE: ArcCellOption<Busy> = ArcCellOption::empty();
    static DROPS: AtomicU64 = AtomicU64::new(0);
    struct Busy(u64);
    impl Weigh for Busy {}
    impl Drop for Busy {
        fn drop(&mut self) {
            DROPS.fetch_add(1, Relaxed);
            assert!(PLACE.load().as_ref().is_none_or(|there| there.0 != self.0), "it is there");
            if self.0 > 0 {
                PLACE.store(Some(Arc::new(Self(self.0 - 1))));
            }
        }
    }
    PLACE.store(Some(Arc::new(Busy(3))));
    // Drops 3, which puts 2 there.
    PLACE.store(None);
    hazard::barrier();
    assert_eq!(DROPS.load(Relaxed), 1);
    assert_eq!(PLACE.load().as_ref().map(|there| there.0), Some(2));
    // Drops 2, which puts 1 in place of 9, which puts 8 in place of 1, which puts 0 in place of 8,
    // which puts 7 in place of 0, which ends it. What a drop has given up waits in its turn.
    PLACE.store(Some(Arc::new(Busy(9))));
    (0..5).for_each(|_| hazard::barrier());
    assert_eq!(DROPS.load(Relaxed), 6);
    assert_eq!(PLACE.load().as_ref().map(|there| there.0), Some(7));

    static PANICS: AtomicBool = AtomicBool::new(true);
    struct Panics;
    impl Weigh for Panics {}
    impl Drop for Panics {
        fn drop(&mut self) {
            assert!(!PANICS.load(Relaxed), "a drop panics");
        }
    }
    let panicked = || hazard::global().statistics().callbacks_panicked;
    let before = panicked();
    let place = ArcCellOption::from_pointee(Panics);
    place.store(None);
    hazard::barrier();
    assert!(panicked() > before, "it is counted, and ends nothing");
    assert!(place.load().is_none(), "the place is whole");
    place.store(Some(Arc::new(Panics)));
    // What was not put there is dropped.
    panic_of(|| drop(place.compare_and_swap(&None, Some(Arc::new(Panics)))));
    PANICS.store(false, Relaxed);
    assert!(place.into_inner().is_some());
}

#[test]
#[cfg(unix)]
#[cfg_attr(miri, ignore = "signals")]
fn signal_handlers_load_whatever_they_interrupt() {
    static CONFIG: ArcCellOption<[u64; 2]> = ArcCellOption::empty();
    static BAD: AtomicU64 = AtomicU64::new(0);
    static HANDLED: AtomicU64 = AtomicU64::new(0);

    /// Loads, on a thread that has loaded before.
    extern "C" fn load_in_handler(_signal: libc::c_int) {
        if let Some(loaded) = &*CONFIG.load() {
            BAD.fetch_add(u64::from(loaded[1] != !loaded[0]), Relaxed);
        }
        HANDLED.fetch_add(1, Relaxed);
    }

    storm::handle(libc::SIGUSR1, load_in_handler);
    let all: Vec<Arc<_>> = (0..64_u64).map(|n| Arc::new([n, !n])).collect();
    let read = || drop(CONFIG.load());
    let update = || {
        for (n, arc) in all.iter().enumerate() {
            CONFIG.store((n % 5 != 0).then(|| arc.clone()));
        }
    };
    storm::beside(libc::SIGUSR1, read, [&read, &update], || HANDLED.load(Relaxed) >= 2_000);
    CONFIG.store(None);
    assert_eq!(BAD.load(Relaxed), 0);
    hazard::barrier();
    assert!(all.iter().all(|arc| Arc::strong_count(arc) == 1), "a count is wrong");
}

#[test]
#[cfg(unix)]
#[cfg_attr(miri, ignore = "child processes")]
fn children_made_by_fork_beside_loads_and_stores_load_and_store() {
    let cell = ArcCell::from_pointee(0);
    let work = |thread| {
        let (mut next, cell) = (0, &cell);
        move || match thread {
            0 => {
                cell.store(Arc::new(next));
                next += 1;
            }
            _ => drop(cell.load()),
        }
    };
    beside(3, work, || {
        for _ in 0..20 {
            in_child(|| {
                let seen = cell.load();
                let old = cell.swap(Arc::new(-1));
                assert!(*old >= *seen && Arc::strong_count(&cell.load_full()) == 2);
            });
        }
    });
}

#[test]
fn all_of_this_holds_with_portable_fences() {
    let modules = ["arc_cell", "arc_cell_semantics"];
    again_in_a_process_with(&modules, "QUIESCENCE_FENCES", "portable");
}
