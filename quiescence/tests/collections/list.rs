//! `List`: a model, traversals beside updates, counts of drops, and the limit.

use crate::common::*;
use std::collections::VecDeque;

use quiescence::collections::List;

/// What a cursor stands on in the model: an index, or its length for none.
fn step(updater: &mut quiescence::collections::list::ListUpdater<'_, usize>, by: isize) {
    if by > 0 { updater.move_next() } else { updater.move_prev() }
}

#[test]
fn an_updater_does_what_its_model_does() {
    for seed in 1..=rounds(40, 2) {
        let (list, mut model, mut numbers) = (List::new(), VecDeque::new(), Random(seed));
        let mut updater = list.update();
        let mut at = 0; // the model's length: on none
        for number in 0..rounds(1_000, 50) {
            let length = model.len();
            match numbers.index(11) {
                0 | 1 => {
                    step(&mut updater, 1);
                    at = if at == length { 0 } else { at + 1 };
                }
                2 => {
                    step(&mut updater, -1);
                    at = if at == 0 { length } else { at - 1 };
                }
                3 | 4 => {
                    updater.insert_before(number);
                    model.insert(at, number);
                    at += 1;
                }
                5 => {
                    updater.insert_after(number);
                    let place = if at == length { 0 } else { at + 1 };
                    model.insert(place, number);
                    at += usize::from(at == length);
                }
                6 => {
                    assert_eq!(updater.remove_current(), at < length);
                    model.remove(at);
                }
                7 => {
                    let replaced = updater.replace_current(number);
                    match model.get_mut(at) {
                        Some(place) => *place = number,
                        None => assert_eq!(replaced, Err(number)),
                    }
                }
                8 => {
                    updater.push_front(number);
                    model.push_front(number);
                    at += 1;
                }
                9 => {
                    updater.push_back(number);
                    model.push_back(number);
                    at += usize::from(at == length);
                }
                _ => {
                    let wanted = numbers.index(1_000);
                    let found = updater.find(|number| *number >= wanted);
                    let from = if at == length { 0 } else { at + 1 };
                    at = (from..length).find(|at| model[*at] >= wanted).unwrap_or(length);
                    assert_eq!(found, at < length);
                }
            }
            let length = model.len();
            let (before, next) = (at.checked_sub(1), if at == length { 0 } else { at + 1 });
            assert_eq!(updater.current(), model.get(at));
            assert_eq!(updater.peek_next(), model.get(next));
            assert_eq!(updater.peek_prev(), model.get(before.unwrap_or(length)));
            assert!(updater.iter().eq(&model));
            assert_eq!((list.len(), list.is_empty()), (length, length == 0));
        }
        drop(updater);
        assert!(list.read().iter().eq(&model));
        assert_eq!(list.remove_if(|number| number % 3 == 0), {
            let before = model.len();
            model.retain(|number| number % 3 != 0);
            before - model.len()
        });
        list.retain(|number| number % 3 == 1);
        model.retain(|number| number % 3 == 1);
        assert_eq!(format!("{list:?}"), format!("{model:?}"));
        if seed % 2 == 0 {
            assert!(list.into_iter().eq(model));
        } else {
            list.clear();
            let reader = list.read();
            assert!(reader.is_empty() && reader.front().is_none());
            assert_eq!((list.len(), reader.len()), (0, 0));
        }
    }
}

/// Readers beside two updaters: each traversal passes the elements that stay, in order, and of
/// those that are replaced exactly one version.
#[test]
fn a_traversal_passes_what_stays_once_and_in_order() {
    const FIXED: usize = 20;
    let list: List<(usize, usize)> = (0..FIXED).map(|number| (2 * number, 0)).collect();
    let traverse = |_| {
        || {
            let seen: Vec<_> = list.read().iter().map(|element| element.0).collect();
            assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
            assert_eq!(seen.iter().filter(|number| **number % 2 == 0).count(), FIXED, "{seen:?}");
        }
    };
    let update = |thread| {
        let mut numbers = Random(thread as u64);
        for version in 1..rounds(5_000, 20) {
            let (number, mut updater) = (2 * numbers.index(FIXED), list.update());
            assert!(updater.find(|element| element.0 == number));
            updater.replace_current((number, version)).unwrap();
            updater.move_next();
            match updater.current() {
                Some((next, _)) if *next == number + 1 => assert!(updater.remove_current()),
                _ => updater.insert_before((number + 1, version)),
            }
        }
    };
    beside(2, traverse, || threads(2, update));
    assert_eq!(list.read().iter().count(), list.len());
}

#[test]
fn each_element_is_dropped_once() {
    let domain = Domain::new();
    let live = Arc::new(AtomicUsize::new(0));
    let list = List::new_in(domain.clone());
    (0..10).for_each(|number| list.push_back(Counted::new(number, &live)));
    let section = domain.read();
    let kept: Vec<&Counted> = list.iter(&section).collect();
    {
        let mut updater = list.update();
        updater.move_to_front();
        assert!(updater.replace_current(Counted::new(20, &live)).is_ok());
        updater.move_to_back();
        assert!(updater.remove_current());
        assert!(updater.current().is_none());
    }
    assert_eq!(list.remove_if(|element| element.number == 5), 1);
    assert!(kept.iter().map(|element| element.number).eq(0..10), "as long as the section");
    assert_eq!((live.load(Relaxed), list.len()), (11, 8));
    drop(section);
    assert_eq!(settled(&domain, &live), 8);
    let mut rest = list.into_iter();
    assert_eq!((rest.len(), rest.next().unwrap().number), (8, 20));
    assert_eq!(live.load(Relaxed), 7);
    drop(rest);
    assert_eq!(live.load(Relaxed), 0);
}

/// A predicate that panics: what it has chosen is removed, the lock is free, and nothing is lost.
#[test]
fn a_predicate_that_panics_leaves_a_whole_list() {
    let list: List<_> = (0..6).collect();
    panic_of(|| {
        list.remove_if(|number| {
            assert_ne!(*number, 3, "on purpose");
            true
        })
    });
    list.push_back(6);
    assert!(list.read().iter().eq(&[3, 4, 5, 6]));
}

/// A reader that stands on what is removed, also on what is removed after it.
#[test]
fn a_reader_on_a_removed_element_goes_to_its_successor() {
    let list: List<_> = (0..6).collect();
    let reader = list.read();
    let mut elements = reader.iter();
    assert_eq!(elements.next(), Some(&0));
    let mut behind = elements.clone();
    assert_eq!(behind.next(), Some(&1));
    assert_eq!(list.remove_if(|number| (1..4).contains(number)), 3);
    list.push_front(7);
    list.push_back(8);
    assert!(elements.eq(&[4, 5, 8]));
    assert!(behind.eq(&[2, 3, 4, 5, 8]), "removed ones keep their successors");
    assert!(reader.iter().eq(&[7, 0, 4, 5, 8]));
}

/// While one thread is in a section, another one updates at the limit: it waits with the lock let
/// go, so the thread in the section can update as well.
#[test]
fn nothing_is_waited_for_under_the_lock() {
    let domain = domain_with_limit(4, 1 << 30);
    let list = List::new_in(domain.clone());
    list.update().push_back(0);
    (1..100).for_each(|number| list.push_back(number));
    let section = domain.read();
    thread::scope(|scope| {
        let updater = scope.spawn(|| {
            list.remove_if(|number| *number < 50);
        });
        until_an_updater_sleeps(&domain);
        // The other thread waits for this section.
        assert_eq!(list.len(), 50);
        list.push_back(100);
        assert!(list.iter(&section).eq(&(50..=100).collect::<Vec<_>>()));
        drop(section);
        updater.join().unwrap();
    });
    assert_all_has_run(&domain);
}

#[test]
fn in_a_section_at_the_limit_a_removal_is_refused() {
    let domain = domain_with_limit(4, 1 << 30);
    let list = List::new_in(domain.clone());
    (0..100).for_each(|number| list.push_back(number));
    let section = domain.read();
    let mut updater = list.update();
    updater.move_next();
    let removed = (0..100).take_while(|_| updater.try_remove_current() == Ok(true)).count();
    assert_eq!(removed, 5, "the limit, and one over it");
    assert_eq!(updater.try_remove_current().map_err(AtLimit::into_inner), Err(()));
    assert_eq!(updater.try_replace_current(7), Err(7));
    assert_eq!(updater.current(), Some(&removed));
    let message = panic_of(|| updater.remove_current());
    assert!(message.contains("use try_remove_current()"), "{message}");
    updater.push_back(100); // retires nothing
    drop(updater);
    assert_eq!(list.iter(&section).count(), 101 - removed);
    drop(section);
    assert_eq!(list.remove_if(|number| *number < 50), 50 - removed);
    domain.barrier();
    assert_eq!(domain.statistics().limit_overruns, 1);
    assert_eq!(list.len(), 51);
}

/// In a sleepable domain a reader may go to another thread.
#[test]
fn a_list_of_a_sleepable_domain_is_read_on_any_thread() {
    let srcu = Srcu::new();
    let list = List::new_in(srcu.domain());
    (0..3).for_each(|number| list.push_back(number));
    let reader = list.read();
    list.clear();
    list.push_back(7);
    assert_eq!(elsewhere(move || reader.iter().copied().collect::<Vec<u32>>()), [7]);
    srcu.domain().barrier();
}
