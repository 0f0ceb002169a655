//! Faults of what is printed.

use crate::common::*;
use quiescence::collections::{HashMap, IdMap, List, Queue, Stack};
use quiescence::sync::BigRef;
use std::fmt::Debug;
use std::panic;
use std::sync::Mutex;

/// How an iterator over three values is printed: fresh, half taken, and with nothing left.
fn printed(mut values: impl Iterator<Item = u32> + Debug) -> [String; 3] {
    [0, 1, 2].map(|taken| {
        values.by_ref().take(taken).for_each(drop);
        format!("{values:?}")
    })
}

/// It looked into the queue, which has no node once the last value has been taken.
#[test]
fn printing_an_exhausted_iterator_of_a_queue_dereferenced_null() {
    let queue = printed(Queue::from_iter(0..3).into_iter());
    let is_empty = |text: &String| text.contains("is_empty: true");
    assert_eq!(queue.each_ref().map(is_empty), [false, false, true], "{queue:?}");
    let stack = printed(Stack::from_iter(0..3).into_iter());
    let is_null = |text: &String| text.contains("next: 0x0");
    assert_eq!(stack.each_ref().map(is_null), [false, false, true], "{stack:?}");
    let list = printed(List::<u32>::from_iter(0..3).into_iter());
    assert_eq!(list, ["[0, 1, 2]", "[1, 2]", "[]"]);
}

/// The message of a load of what is retired had a line of the library as the place of the load.
#[cfg(debug_assertions)]
#[test]
#[cfg_attr(miri, ignore = "undefined on purpose")]
fn a_load_of_what_is_retired_was_at_no_place_of_the_program() {
    unsafe fn never(_: *mut ()) {}
    let domain = Domain::new();
    let value = Rcu::new_in(7_u64, domain.clone());
    let option = RcuOption::new_in(Some(7_u64), domain.clone());
    let guard = domain.read();
    for object in [value.load(&guard), option.load(&guard).unwrap()] {
        let object = std::ptr::from_ref(object).cast_mut();
        // SAFETY: from a box, and not freed; that readers still find it is the mistake.
        unsafe { quiescence::raw::retire_with(&domain, object, 8, never) };
    }
    let loads: [&dyn Fn(); 4] =
        [&|| _ = value.load(&guard), &|| _ = value.read(), &|| _ = option.load(&guard), &|| {
            _ = option.read()
        }];
    for load in loads {
        let said = panic_of(load);
        let place = said.split_once("it is loaded at ").expect("where it is loaded").1;
        assert!(place.contains("printing.rs"), "{said}");
    }
    drop(guard);
    domain.barrier();
}

/// Each call panics with `said`, at a line of this file. In a process of its own.
fn refused_here(calls: &[&dyn Fn()], said: &str) {
    static PLACE: Mutex<String> = Mutex::new(String::new());
    panic::set_hook(Box::new(|info| {
        info.location().expect("known").file().clone_into(&mut PLACE.lock().unwrap());
    }));
    for (number, call) in calls.iter().enumerate() {
        assert!(panic_of(call).contains(said));
        assert!(PLACE.lock().unwrap().ends_with("printing.rs"), "call {number}: {PLACE:?}");
    }
}

/// The panic was at a line of the library: in a program with many calls it did not say which.
#[test]
#[cfg_attr(miri, ignore = "needs a process of its own")]
fn a_guard_of_another_domain_was_refused_at_no_place_of_the_program() {
    in_its_own_process!();
    let (mine, other) = (Domain::new(), Domain::new());
    let value = Rcu::new_in(7, mine.clone());
    let option = RcuOption::new_in(Some(7), mine.clone());
    let map: HashMap<u32, u32, _, _> = HashMap::new_in(mine.clone());
    let ids: IdMap<u32, _> = IdMap::new_in(mine.clone());
    let list: List<u32, _> = List::new_in(mine);
    let id = ids.insert(7);
    let guard = other.read();
    let calls: [&dyn Fn(); 10] = [
        &|| _ = value.load(&guard),
        &|| _ = value.update_in(&guard, |_| 8),
        &|| _ = value.compare_exchange(&guard, &7, Box::new(8)),
        &|| _ = option.load(&guard),
        &|| _ = option.compare_exchange(&guard, None, None),
        &|| _ = map.get(&7, &guard),
        &|| _ = map.read_in(&guard),
        &|| _ = ids.get(id, &guard),
        &|| _ = ids.read_in(&guard),
        &|| _ = list.iter(&guard),
    ];
    refused_here(&calls, "of another domain");
}

/// So was that of a cookie of another domain, and of a reference to what was killed.
#[test]
#[cfg_attr(miri, ignore = "needs a process of its own")]
fn a_cookie_of_another_domain_was_refused_at_no_place_of_the_program() {
    in_its_own_process!();
    let (mine, cookie) = (Domain::new(), Domain::new().start_poll());
    let calls: [&dyn Fn(); 3] =
        [&|| _ = mine.poll(cookie), &|| mine.wait(cookie), &|| drop(mine.wait_async(cookie))];
    refused_here(&calls, "another domain's");
    let killed = BigRef::new(7);
    killed.kill();
    refused_here(&[&|| drop(killed.get())], "has been killed");
}

/// A thread that waited in the `Hash` of a key, while a map moved its entries, was told that its
/// section had begun at a line of the library.
#[test]
fn the_section_in_which_a_map_moves_its_entries_began_at_no_place_of_the_program() {
    #[derive(PartialEq, Eq)]
    struct Waits;
    thread_local!(static IS_MOVED: Cell<bool> = const { Cell::new(false) });
    impl Hash for Waits {
        fn hash<H: Hasher>(&self, _: &mut H) {
            if IS_MOVED.get() {
                quiescence::synchronize();
            }
        }
    }
    impl Weigh for Waits {}
    let map = HashMap::with_capacity(1_000);
    map.insert(Waits, ());
    IS_MOVED.set(true);
    let moves: [&dyn Fn(); 3] =
        [&|| map.reserve(10_000), &|| map.shrink_to(100), &|| map.shrink_to_fit()];
    for moves in moves {
        let said = panic_of(moves);
        let place = said.split_once("begun at ").expect("where it has begun").1;
        assert!(place.contains("printing.rs"), "{said}");
    }
    IS_MOVED.set(false);
}

/// What `unwrap` and `expect` print of a refusal said nothing of what to do.
#[test]
fn a_refusal_was_printed_without_what_to_do() {
    let domain = Domain::new();
    tune(&domain, |tuning| tuning.objects_max = 1);
    let section = domain.read();
    let retire = || domain.retire(Box::new(7)).unwrap();
    let said = panic_of(|| (0..9).for_each(|_| retire()));
    assert!(said.contains("retire outside of sections, or raise"), "{said}");
    drop(section);
}

/// The panic named a function that the program does not call, and not whose it is.
#[test]
fn a_list_that_removes_nothing_at_the_limit_did_not_say_whose_function_is_refused() {
    let domain = Domain::new();
    tune(&domain, |tuning| tuning.objects_max = 1);
    let list = List::new_in(domain.clone());
    (0..9).for_each(|number| list.push_back(number));
    let section = domain.read();
    let said = panic_of(|| list.clear());
    assert!(said.contains("ListUpdater::remove_current()"), "{said}");
    drop(section);
}
