//! `collections::IdMap`: against a plain map, by threads, at the limit, and its drops.

use crate::common::*;
use std::collections::BTreeMap;

use quiescence::collections::id_map::ReplaceError;
use quiescence::collections::{Id, IdMap, Mark};

/// What an id map does, in a plain one.
#[derive(Default)]
struct Model {
    entries: BTreeMap<u32, (Id, u64, [bool; 3])>,
    /// Ids of entries that were removed.
    old: Vec<Id>,
}

impl Model {
    fn some_id(&self, random: &mut Random) -> Option<Id> {
        if random.index(8) == 0 {
            let old = random.index(self.old.len().max(1));
            return self.old.get(old).copied();
        }
        let index = random.index(self.entries.len().max(1));
        self.entries.values().nth(index).map(|(id, ..)| *id)
    }

    fn of(&mut self, id: Id) -> Option<&mut (Id, u64, [bool; 3])> {
        self.entries.get_mut(&id.index()).filter(|(there, ..)| *there == id)
    }

    fn marked(&self, mark: Mark) -> Vec<Id> {
        self.entries
            .values()
            .filter(|(.., marks)| marks[mark as usize])
            .map(|(id, ..)| *id)
            .collect()
    }
}

/// The table of chunks has a word for each 512 indexes up to the largest, which Miri goes over one
/// by one where the map ends.
const INDEX_MAX: u32 = rounds(u32::MAX, (1 << 15) - 1);

/// Indexes from all over the range, many of them the same.
fn some_index(random: &mut Random) -> u32 {
    match random.index(4) {
        0 => random.index(20) as u32,
        1 => random.index(3_000) as u32,
        2 => INDEX_MAX & ((1 << random.index(32)) - (random.index(2) as u32)),
        _ => INDEX_MAX - random.index(5) as u32,
    }
}

fn inserted(model: &mut Model, id: Id, number: u64) {
    assert!(!model.old.contains(&id), "an id is given a second time: {id}");
    let before = model.entries.insert(id.index(), (id, number, [false; 3]));
    assert!(before.is_none(), "{id} takes the place of another one");
}

/// One change of both.
fn change(map: &IdMap<u64>, model: &mut Model, random: &mut Random, number: u64) {
    let mark = Mark::ALL[random.index(3)];
    let other = Mark::ALL[random.index(3)];
    match random.index(14) {
        0..3 => {
            let id = map.insert(number);
            inserted(model, id, number);
        }
        3 => {
            let index = some_index(random);
            let result = map.insert_at(index, number);
            assert_eq!(result.is_err(), model.entries.contains_key(&index));
            if let Ok(id) = result {
                assert_eq!(id.index(), index);
                inserted(model, id, number);
            }
        }
        4 => {
            let (from, length) = (some_index(random), random.index(2_000) as u32);
            let to = from.saturating_add(length);
            let free = (from..to).find(|index| !model.entries.contains_key(index));
            let result = map.insert_in(from..to, number);
            assert_eq!(result.ok().map(Id::index), free, "the lowest of {from}..{to}");
            if let Ok(id) = result {
                inserted(model, id, number);
            }
        }
        kind => {
            let Some(id) = model.some_id(random) else { return };
            let there = model.of(id).is_some();
            match kind {
                5..8 => {
                    let removed = match random.index(3) {
                        0 => map.remove(id),
                        1 => map.try_remove(id).expect("far from the limit"),
                        _ => map.read().remove(id).is_some(),
                    };
                    assert_eq!(removed, there);
                    if there {
                        model.entries.remove(&id.index());
                        model.old.push(id);
                    }
                }
                8 => {
                    let result = match random.index(3) {
                        0 => map.replace(id, number),
                        1 => map.try_replace(id, number).map_err(ReplaceError::into_inner),
                        _ => map.read().replace(id, number).map(drop),
                    };
                    assert_eq!(result.is_ok(), there);
                    model.of(id).into_iter().for_each(|entry| entry.1 = number);
                }
                9 => {
                    assert_eq!(map.update(id, |value| value + number), there);
                    model.of(id).into_iter().for_each(|entry| entry.1 += number);
                }
                10 | 11 => {
                    let changed = map.set_mark(id, mark);
                    let new = model.of(id).map(|(.., marks)| &mut marks[mark as usize]);
                    assert_eq!(changed, new.is_some_and(|is_set| !std::mem::replace(is_set, true)));
                }
                12 => {
                    let changed = map.clear_mark(id, mark);
                    let new = model.of(id).map(|(.., marks)| &mut marks[mark as usize]);
                    assert_eq!(changed, new.is_some_and(std::mem::take));
                }
                _ => {
                    let swapped = map.swap_mark(id, mark, other);
                    let marks = model.of(id).map(|(.., marks)| marks);
                    let changes = |marks: &mut [bool; 3]| {
                        let changes = marks[mark as usize] && !marks[other as usize];
                        if changes {
                            marks.swap(mark as usize, other as usize);
                        }
                        changes
                    };
                    assert_eq!(swapped, marks.is_some_and(changes));
                }
            }
        }
    }
}

/// Whether both say the same.
fn compare(map: &IdMap<u64>, model: &Model, random: &mut Random) {
    assert_eq!(map.len(), model.entries.len());
    assert_eq!(map.is_empty(), model.entries.is_empty());
    let reader = map.read();
    let all: Vec<_> = reader.iter().map(|(id, value)| (id, *value)).collect();
    let expected: Vec<_> = model.entries.values().map(|(id, value, _)| (*id, *value)).collect();
    assert_eq!(all, expected);
    assert!(reader.iter().eq(&reader));
    for mark in Mark::ALL {
        assert!(reader.marked(mark, ..).map(|(id, _)| id).eq(model.marked(mark)), "{mark:?}");
    }
    let (from, to) = (some_index(random), some_index(random));
    let (from, to) = (from.min(to), from.max(to));
    let in_range = model.entries.range(from..=to).map(|(_, (id, ..))| *id);
    assert!(reader.range(from..=to).map(|(id, _)| id).eq(in_range), "{from}..={to}");
    let half_open = model.entries.range(from..to).map(|(_, (id, ..))| *id);
    assert!(reader.range(from..to).map(|(id, _)| id).eq(half_open), "{from}..{to}");
    let marked = model.marked(Mark::M1).into_iter();
    let marked = marked.filter(|id| (from..=to).contains(&id.index()));
    assert!(reader.marked(Mark::M1, from..=to).map(|(id, _)| id).eq(marked), "{from}..={to}");
    for (id, value, marks) in model.entries.values() {
        assert_eq!(reader.get(*id), Some(value));
        assert_eq!(reader.get_at(id.index()), Some((*id, value)));
        assert_eq!(Mark::ALL.map(|mark| reader.is_marked(*id, mark)), *marks);
    }
    assert!(model.old.iter().all(|id| !reader.contains(*id)));
}

#[test]
fn it_does_what_a_plain_map_does() {
    for seed in 1..=rounds(5, 2) {
        let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let (map, mut model) = (IdMap::new(), Model::default());
        for number in 0..rounds(3_000, 100) {
            change(&map, &mut model, &mut random, number);
            if random.index(100) == 0 {
                compare(&map, &model, &mut random);
            }
        }
        compare(&map, &model, &mut random);
        map.retain(|_, value| value % 3 != 0);
        for (id, value, _) in std::mem::take(&mut model.entries).into_values() {
            if map.contains(id) {
                let marks = Mark::ALL.map(|mark| map.is_marked(id, mark));
                model.entries.insert(id.index(), (id, value, marks));
            } else {
                model.old.push(id);
            }
            assert_eq!(map.contains(id), value % 3 != 0);
        }
        compare(&map, &model, &mut random);
        map.clear();
        assert!(map.is_empty());
        assert_eq!(format!("{map:?}"), "{}");
    }
}

#[test]
fn growing_moves_nothing() {
    let map = IdMap::new();
    let first = map.insert(0_u64);
    let reader = map.read();
    let seen = std::ptr::from_ref(reader.get(first).unwrap());
    let ids: Vec<Id> = (1..rounds(200_000, 600)).map(|number| map.insert(number)).collect();
    assert!(std::ptr::eq(reader.get(first).unwrap(), seen));
    assert!(ids.iter().enumerate().all(|(n, id)| reader.get(*id) == Some(&(n as u64 + 1))));
    // Low ones: at most the chunk of each of eight CPUs is not full.
    let last = ids.iter().map(|id| id.index()).max().unwrap();
    assert!((last as usize) < ids.len() + 8 * 512, "{last}");
}

#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore = "thousands of entries")]
fn indexes_that_are_free_are_used_before_new_ones() {
    // By a thread that stays on its CPU: where it has been before, a chunk would not be filled.
    shuffle::shuffled(1, 1, |_, _| {
        let map = IdMap::new();
        let ids: Vec<Id> = (0..2_000).map(|number| map.insert(number)).collect();
        ids[100..700].iter().for_each(|id| assert!(map.remove(*id)));
        // The CPU has one chunk that it fills first.
        for number in 0..600 + 512 {
            map.insert(number);
        }
        let free = (0..2_000).filter(|index| map.read().get_at(*index).is_none());
        assert_eq!(free.count(), 0);
    });
}

#[test]
#[cfg_attr(miri, ignore = "the table of chunks for the largest index has eight million words")]
fn an_id_is_a_number() {
    let map = IdMap::new();
    let id = map.insert_at(u32::MAX, 'a').unwrap();
    assert_eq!((id.to_bits(), Id::from_bits(id.to_bits())), (1 << 32 | 0xffff_ffff, Some(id)));
    assert_eq!(format!("{id} {id:?}"), "4294967295#1 Id(4294967295#1)");
    assert_eq!(size_of::<Option<Id>>(), 8);
    let made_up = Id::from_bits(77 << 32 | 3).unwrap();
    assert!(!map.contains(made_up) && !map.remove(made_up) && !map.set_mark(made_up, Mark::M0));
    assert_eq!(map.replace(made_up, 'b'), Err('b'));
    assert_eq!(format!("{map:?}"), "{Id(4294967295#1): 'a'}");
}

#[test]
fn a_reference_outlives_removal_and_replacement_until_its_section_ends() {
    let map = IdMap::new();
    let live = Arc::default();
    let new = |number| Counted::new(number, &live);
    let (one, two) = (map.insert(new(1)), map.insert(new(2)));
    let reader = map.read();
    let (first, second) = (reader.get(one).unwrap(), reader.get(two).unwrap());
    elsewhere(|| {
        assert!(map.remove(one));
        assert!(map.replace(two, new(3)).is_ok());
    });
    assert_eq!((first.whole(), second.whole(), live.load(Relaxed)), (1, 2, 3));
    assert!(reader.get(one).is_none());
    assert_eq!(reader.get(two).unwrap().number, 3);
    drop(reader);
    quiescence::barrier();
    assert_eq!(live.load(Relaxed), 1);
    drop(map);
    assert_eq!(live.load(Relaxed), 0, "at once");
}

#[test]
fn one_of_many_removes_takes_or_marks() {
    const THREADS: usize = 4;
    let map = IdMap::new();
    for round in 0..rounds(300, 10) {
        let id = map.insert_at(round * 40_000, round).unwrap();
        let start = Barrier::new(THREADS);
        let wins = [const { AtomicUsize::new(0) }; 4];
        threads(THREADS, |_| {
            start.wait();
            let count = |won: bool, which: usize| wins[which].fetch_add(won.into(), Relaxed);
            count(map.set_mark(id, Mark::M0), 0);
            count(map.swap_mark(id, Mark::M0, Mark::M1), 1);
            count(map.insert_at(id.index() + 1, round).is_ok(), 2);
            start.wait();
            count(map.remove(id), 3);
        });
        let [marked, swapped, taken, removed] = wins.map(AtomicUsize::into_inner);
        // One marks, and one swaps; others may mark it again, and the second mark is not swapped.
        assert!((1..=THREADS).contains(&marked), "{marked}");
        assert_eq!(swapped, 1);
        assert_eq!((taken, removed), (1, 1));
        assert!(map.read().marked(Mark::M1, ..).next().is_none());
    }
}

/// What is there all through a search is found by it.
#[test]
fn searches_find_what_stays() {
    let map = IdMap::new();
    let stay: Vec<Id> = (0..40).map(|n| map.insert_at(n * 100, n).unwrap()).collect();
    let marked: Vec<Id> = stay.iter().copied().step_by(2).collect();
    marked.iter().for_each(|id| assert!(map.set_mark(*id, Mark::M2)));
    let search = |_| {
        || {
            let reader = map.read();
            let found: Vec<Id> = reader.iter().map(|(id, _)| id).collect();
            assert!(stay.iter().all(|id| found.contains(id)), "{found:?}");
            let found: Vec<Id> = reader.marked(Mark::M2, ..).map(|(id, _)| id).collect();
            assert!(marked.iter().all(|id| found.contains(id)), "{found:?}");
        }
    };
    beside(1, search, || {
        for round in 0..rounds(20_000, 50) {
            let near = map.insert_at(stay[round % 40].index() + 1, 7).expect("free");
            assert!(map.set_mark(near, Mark::M2) && map.clear_mark(near, Mark::M2));
            assert!(map.set_mark(near, Mark::M2));
            assert!(map.replace(stay[round % 40], 9).is_ok());
            assert!(map.remove(near));
        }
    });
}

#[test]
fn the_limit_is_kept_under_churn() {
    const OBJECTS: u64 = 500;
    let domain = domain_with_limit(OBJECTS, 1 << 20);
    let map = IdMap::new_in(domain.clone());
    let most = AtomicUsize::new(0);
    threads(3, |thread| {
        for round in 0..rounds(20_000, 200) {
            let id = map.insert(vec![0_u8; 1_000]);
            assert!(map.replace(id, vec![1; 100]).is_ok());
            assert!(map.remove(id));
            if round % 16 == thread {
                let waiting = domain.statistics().callbacks_waiting();
                most.fetch_max(waiting as usize, Relaxed);
            }
        }
    });
    let statistics = domain.statistics();
    assert_eq!(statistics.limit_overruns, 0);
    // What is being run has given back its room, and counts until it has been run.
    assert!(most.load(Relaxed) as u64 <= 2 * OBJECTS, "{most:?} waited");
    assert!(map.is_empty());
}

#[test]
fn at_the_limit_nothing_waits_that_says_so() {
    let domain = domain_with_limit(4, 1 << 20);
    let map = IdMap::new_in(domain.clone());
    let ids: Vec<Id> = (0..20).map(|number| map.insert(number)).collect();
    beside_a_section(&domain, |leave| {
        let removed = ids.iter().take_while(|id| map.try_remove(**id) == Ok(true)).count();
        assert!((1..=4).contains(&removed), "{removed} fit");
        let next = ids[removed];
        assert_eq!(map.try_remove(next).map_err(AtLimit::into_inner), Err(()));
        assert_eq!(map.try_replace(next, 7), Err(ReplaceError::AtLimit(7)));
        assert_eq!(map.read().try_remove(next).map(drop).map_err(AtLimit::into_inner), Err(()));
        assert_eq!(map.try_remove(ids[0]), Ok(false), "it is gone");
        assert_eq!(map.try_replace(ids[0], 7), Err(ReplaceError::NotFound(7)));
        assert_eq!(map.read().get(next), Some(&(removed as i32)), "nothing has changed");
        leave();
    });
    assert!(ids.iter().all(|id| map.remove(*id) || !map.contains(*id)));
    assert!(map.is_empty());
}

#[test]
fn what_was_removed_in_a_section_counts_when_it_ends() {
    let domain = domain_with_limit(2, 1 << 20);
    let map = IdMap::new_in(domain.clone());
    let ids: Vec<Id> = (0..20).map(|number| map.insert(number)).collect();
    let reader = map.read();
    let take = || ids.iter().for_each(|id| assert!(reader.remove(*id).is_some()));
    let message = panic_of(take);
    assert!(message.contains("try_remove()"), "{message}");
    let left = map.len();
    assert!((16..20).contains(&left), "one over the limit at most: {left} are left");
    assert_eq!(reader.iter().count(), left);
    panic_of(|| map.clear());
    assert_eq!(map.len(), left);
    drop(reader);
    assert!(domain.statistics().callbacks_waiting() <= 2);
    map.clear();
    assert!(map.is_empty());
}

#[test]
fn it_works_in_a_sleepable_domain() {
    let srcu = Srcu::new();
    let map = IdMap::new_in(srcu.domain());
    let id = map.insert(String::from("a"));
    let guard = srcu.read();
    let seen = map.get(id, &guard).unwrap();
    assert!(map.replace(id, String::from("b")).is_ok());
    assert!(map.set_mark(id, Mark::M0) && map.is_marked(id, Mark::M0));
    assert_eq!(seen, "a");
    elsewhere(|| assert_eq!(map.get(id, &guard).unwrap(), "b"));
    assert!(map.remove(id));
    assert_eq!(map.try_remove(id), Ok(false));
    drop(guard);
    srcu.barrier();
}

#[test]
fn a_drop_may_use_the_map() {
    static MAP: IdMap<Nested> = IdMap::new();
    struct Nested(u32);
    impl Weigh for Nested {}
    impl Drop for Nested {
        fn drop(&mut self) {
            if self.0 > 0 {
                let id = MAP.insert(Nested(self.0 - 1));
                assert!(MAP.set_mark(id, Mark::M0) && MAP.remove(id));
            }
        }
    }
    let id = MAP.insert(Nested(5));
    assert!(MAP.remove(id));
    for _ in 0..6 {
        quiescence::barrier();
    }
    assert!(MAP.is_empty());
}

#[test]
fn a_value_that_came_too_late_is_dropped_before_the_next_one_is_made() {
    let live = Arc::new(AtomicUsize::new(0));
    let domain = Domain::new();
    let map = IdMap::new_in(domain.clone());
    let id = map.insert(Counted::new(0, &live));
    // Keeps what is replaced.
    let (mut seen, guard) = (Vec::new(), domain.read());
    map.update(id, |_| {
        seen.push(live.load(Relaxed));
        if seen.len() <= 2 {
            assert!(map.try_replace(id, Counted::new(0, &live)).is_ok());
        }
        Counted::new(0, &live)
    });
    drop(guard);
    assert_eq!(seen, [1, 2, 3], "the one that is there, and those that were");
}
