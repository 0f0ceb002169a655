//! The recommendation, in plain words, and when it does not hold.
//!
//! It follows from the ranking by rules that are written down here, and that prefer the simple:
//! among the designs that are shown to be equal to the best ([`super::decide`]), the one that asks
//! least of its users ([`super::simplicity`]) is recommended, with what that loses at most. A
//! workload of two tables has one recommendation where a design is equal to the best of both. Of a
//! table without a recommendation it says which designs may be the best.

use std::collections::BTreeSet;

use bench::units;

use super::TEXTS;
use super::decide::ZONE;
use super::rank::{Place, Ranking};
use super::simplicity::defers;
use super::sweep::{Sweep, is_plain_lock};

/// Below this advantage a lock's simplicity is worth more than the speed.
const ADVANTAGE_WORTH_IT: f64 = 1.3;

/// The design to take: the simplest of those that are shown to be equal to the best.
pub(super) fn recommended(places: &[Place]) -> Option<&Place> {
    places.iter().filter(|place| place.is_shown()).min_by_key(|place| place.simplicity())
}

/// What there is to take for one table, or for all.
#[derive(Clone, Debug)]
pub(super) struct Advice<'a> {
    /// The keys of the tables that it holds for.
    pub(super) keys: Vec<u64>,
    /// The simplest of those that are shown to be equal, as the last of these tables has it.
    pub(super) choice: &'a Place,
    /// Those that are equal, as far as is known; the simplest first.
    pub(super) set: Vec<&'a Place>,
    /// Those of the set that are not shown to be, in one of the tables.
    pub(super) unsure: Vec<&'static str>,
    /// All designs of that table.
    pub(super) places: &'a [Place],
    /// What is lost at most with the choice, in per cent.
    pub(super) lost_percent_at_most: f64,
}

/// What to take: one answer for all tables where there is one, or an answer for each.
pub(super) fn advice(tables: &[Ranking]) -> Vec<Advice<'_>> {
    match common(tables) {
        Some(one) => vec![one],
        None => tables.iter().filter_map(|table| common(std::slice::from_ref(table))).collect(),
    }
}

/// What is equal to the best of each of these tables.
fn common(tables: &[Ranking]) -> Option<Advice<'_>> {
    let last = tables.last()?;
    let everywhere = |name: &str, is_so: fn(&Place) -> bool| {
        let is_it = |place: &Place| place.design.name == name && is_so(place);
        tables.iter().all(|table| table.places.iter().any(is_it))
    };
    let is_equal = |place: &&Place| everywhere(place.design.name, |one| one.standing.is_in_set());
    let is_shown = |place: &&&Place| everywhere(place.design.name, Place::is_shown);
    let set: Vec<&Place> = last.places.iter().filter(is_equal).collect();
    let choice = *set.iter().find(is_shown)?;
    let unsure = set.iter().filter(|place| !is_shown(place)).map(|place| place.design.name);
    let places = tables.iter().flat_map(|table| &table.places);
    let of_choice = places.filter(|place| place.design.name == choice.design.name);
    let lost = of_choice.filter_map(|place| place.lost_percent_at_most);
    let lost_percent_at_most = lost.fold(0.0, f64::max);
    let keys = tables.iter().map(|table| table.keys).collect();
    let unsure = unsure.collect();
    Some(Advice { keys, choice, set, unsure, places: &last.places, lost_percent_at_most })
}

/// The tables that no advice holds for.
pub(super) fn open<'a>(tables: &'a [Ranking], advice: &[Advice<'_>]) -> Vec<&'a Ranking> {
    let is_known = |table: &Ranking| advice.iter().any(|one| one.keys.contains(&table.keys));
    tables.iter().filter(|table| !is_known(table)).collect()
}

/// What is known of a table that no advice holds for, if anything is.
pub(super) fn what_is_open(table: &Ranking) -> Option<String> {
    let (open, behind): (Vec<&Place>, Vec<&Place>) =
        table.places.iter().partition(|place| place.may_be_best());
    let simplest = open.into_iter().min_by_key(|place| place.simplicity())?;
    let lost = simplest.lost_percent_at_most.map_or_else(String::new, |lost| {
        format!(" The first, the simplest, loses at most {} % of the best speed.", lost.ceil())
    });
    let behind: Vec<&str> = behind.into_iter().map(|place| place.design.name).collect();
    let text = format!(
        "Each of these may be the best: {}.{lost} Slower than the best by more than {:.0} %: {}.",
        listed(&table.may_be_best()),
        100.0 * (ZONE - 1.0),
        listed(&behind)
    );
    (!behind.is_empty()).then_some(text)
}

/// The text, with what table it is of, if there are several.
pub(super) fn of_table(tables: &[Ranking], keys: u64, text: String) -> String {
    match tables {
        [_, _, ..] => format!("With {} keys: {text}", units::count(keys)),
        _ => text,
    }
}

/// What to do, a paragraph for each thing to know.
pub(super) fn paragraphs(
    advice: &[Advice<'_>],
    tables: &[Ranking],
    sweeps: &[Sweep],
    value_bytes: u32,
) -> Vec<String> {
    let (Some(first), Some(last)) = (advice.first(), advice.last()) else { return Vec::new() };
    let take = |one: &Advice<'_>| match one.keys[..] {
        [keys] => of_table(tables, keys, what_to_take(one)),
        _ => what_to_take(one),
    };
    let mut paragraphs: Vec<String> = advice.iter().map(take).collect();
    // What follows is of one table only.
    let price = price(last.choice, value_bytes);
    let (small, large) = (first.keys[0], last.keys[last.keys.len() - 1]);
    paragraphs.extend(price.map(|text| of_table(tables, large, text)));
    let name = first.choice.design.name;
    let sentences = sweeps.iter().flat_map(|sweep| sweep.sentences(name));
    paragraphs.extend(sentences.map(|text| of_table(tables, small, text)));
    let mut said = BTreeSet::new();
    let is_new = |one: &&Advice<'_>| said.insert(one.choice.design.name);
    paragraphs.extend(advice.iter().filter(is_new).map(|one| when_not(one.choice, one.places)));
    paragraphs
}

fn what_to_take(advice: &Advice<'_>) -> String {
    let Advice { choice, set, unsure, keys, places, .. } = advice;
    let name = choice.design.name;
    let mut text = format!("Take {name}: {}.", choice.design.about.idea);
    if set.len() > 1 {
        let names: Vec<&str> = set.iter().map(|place| place.design.name).collect();
        let lost = advice.lost_percent_at_most.ceil();
        let take = match set.len() - unsure.len() {
            1 => "Take the other",
            _ if unsure.is_empty() => "Take the simplest",
            _ => "Take the simplest of the others",
        };
        let unsure = match &unsure[..] {
            [] => String::new(),
            unsure => format!(" ({}: as far as can be told)", listed(unsure)),
        };
        text = format!(
            "These {} are equal for this workload, within {:.0} %{unsure}: {}. {take}, the first \
             in the order of --help: {name}, at most {lost} % slower than the best. Its idea: {}.",
            set.len(),
            100.0 * (ZONE - 1.0),
            listed(&names),
            choice.design.about.idea
        );
    }
    let mut there = String::new();
    if let [small, large] = keys[..] {
        let (small, large) = (units::count(small), units::count(large));
        text.push_str(&format!(
            " That holds for both tables: {small} keys, which fit the caches, and {large}."
        ));
        there = format!(" with {large} keys");
    }
    let lock = fastest(places, is_plain_lock);
    if let Some(lock) = lock.filter(|lock| !lock.standing.is_in_set()) {
        text.push_str(&format!(
            " It completes {} times as many operations{there} as {}, the best single lock.",
            units::figures(choice.throughput.median / lock.throughput.median),
            lock.design.name
        ));
    }
    text
}

/// The fastest of those that are so: within a rank the simplest stands first.
fn fastest(places: &[Place], is_so: impl Fn(&Place) -> bool) -> Option<&Place> {
    let speed = |place: &Place| place.throughput.median;
    let those = places.iter().filter(|place| is_so(place));
    those.max_by(|a, b| speed(a).total_cmp(&speed(b)))
}

/// What it costs besides time.
fn price(choice: &Place, value_bytes: u32) -> Option<String> {
    let latency = choice.update_ns.as_ref()?;
    let nanoseconds = |ns: u64| units::nanoseconds(ns as f64);
    // Of fewer updates than this, one in a thousand is the slowest one, and no more than that.
    let tail = match latency.count {
        1000.. => format!("one in a thousand more than {}", nanoseconds(latency.p99_9)),
        few => format!("the slowest of {few} took {}", nanoseconds(latency.max)),
    };
    let mut text = format!("An update takes {} (median), {tail}.", nanoseconds(latency.p50));
    if choice.unreclaimed_peak > 0 {
        let bytes = choice.unreclaimed_peak * u64::from(value_bytes);
        text.push_str(&format!(
            " Replaced values wait to be freed: at most {} at once, {} of values.",
            units::count(choice.unreclaimed_peak),
            units::bytes(bytes)
        ));
    }
    Some(text)
}

fn when_not(choice: &Place, places: &[Place]) -> String {
    let lock = fastest(places, |place| !defers(place.design));
    let limits = format!("Its limits: {}.", choice.design.about.limits);
    let not_for = match choice.design.about.family {
        "lock" | "sharded lock" => return TEXTS["needless"].clone(),
        "reference count" => "not-for-counted",
        "epoch" | "lock-free structure" | "rcu" => "not-for",
        _ => return limits,
    };
    let mut text = TEXTS[not_for].clone();
    if let Some(lock) = lock {
        let advantage = choice.throughput.median / lock.throughput.median;
        if advantage < ADVANTAGE_WORTH_IT {
            text.push_str(&format!(
                " Think twice: {} reaches {} % of its speed without any of these drawbacks.",
                lock.design.name,
                units::figures(100.0 / advantage)
            ));
        }
    }
    format!("{text} {limits}")
}

/// "a", "a and b", "a, b and c".
pub(super) fn listed<S: AsRef<str>>(names: &[S]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.as_slice() {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::decide::Standing;
    use crate::advise::rank::tests::{place, series};
    use crate::advise::rank::{Latency, rank};
    use crate::advise::sweep::{Over, Point};

    fn table(places: &[Place]) -> Vec<Ranking> {
        let mut places = places.to_vec();
        places.sort_by_key(|place| (place.rank, place.simplicity()));
        vec![Ranking { places, ..Ranking::default() }]
    }

    fn told(places: &[Place], sweeps: &[Sweep]) -> String {
        all_told(&table(places), sweeps)
    }

    fn all_told(tables: &[Ranking], sweeps: &[Sweep]) -> String {
        paragraphs(&advice(tables), tables, sweeps, 64).join("\n")
    }

    #[test]
    fn among_equals_the_lock_is_recommended_and_rcu_is_called_needless() {
        let places = [
            place("quiescence", 1, 10.0),
            place("sharded-rwlock", 1, 9.9),
            place("std-mutex", 3, 1.0),
        ];
        let text = told(&places, &[]);
        assert!(text.contains("You do not need RCU"), "{text}");
        let expected = "These 2 are equal for this workload, within 15 %: sharded-rwlock and \
                        quiescence. Take the simplest, the first in the order of --help: \
                        sharded-rwlock, at most 0 % slower";
        assert!(text.contains(expected), "{text}");
    }

    /// It named one that was not in its own list.
    #[test]
    fn the_simplest_is_of_the_set_that_is_printed_and_of_both_tables() {
        let tables = |large: &[Place]| {
            let small = [place("std-mutex", 3, 1.0), place("quiescence-qsbr", 1, 10.0)];
            let mut tables = table(&[&small[..], &[place("quiescence", 1, 9.9)]].concat());
            tables.extend(table(large));
            tables[0].keys = 1_000;
            tables
        };
        let all_equal =
            ["std-mutex", "quiescence-qsbr", "quiescence"].map(|one| place(one, 1, 2.0));
        let agree = tables(&all_equal);
        let both = advice(&agree);
        assert_eq!(
            (both.len(), both[0].choice.design.name, both[0].set.len()),
            (1, "quiescence", 2)
        );
        let text = all_told(&agree, &[]);
        assert!(text.contains("quiescence and quiescence-qsbr. Take the simplest"), "{text}");
        assert!(text.contains("holds for both tables: 1,000 keys, which fit the caches"), "{text}");
        let differ = tables(&[place("std-mutex", 1, 2.0), place("quiescence", 2, 1.0)]);
        let each: Vec<&str> = advice(&differ).iter().map(|one| one.choice.design.name).collect();
        assert_eq!(each, ["quiescence", "std-mutex"]);
        let text = all_told(&differ, &[]);
        assert!(text.contains("With 1,000 keys: These 2 are equal"), "{text}");
    }

    /// Two runs with other seeds each recommended what the other had called slower.
    #[test]
    fn the_simplest_is_not_taken_before_it_is_shown_to_be_equal() {
        let near = Place { standing: Standing::Near, ..place("sharded-rwlock", 1, 9.0) };
        let places = [near, place("quiescence", 1, 10.0), place("quiescence-qsbr", 1, 9.9)];
        let tables = table(&places);
        let all = advice(&tables);
        let one = &all[0];
        assert_eq!((one.choice.design.name, one.set.len()), ("quiescence", 3));
        assert_eq!(recommended(&tables[0].places).unwrap().design.name, "quiescence");
        let text = told(&places, &[]);
        let expected = "These 3 are equal for this workload, within 15 % (sharded-rwlock: as far \
                        as can be told): sharded-rwlock, quiescence and quiescence-qsbr. Take the \
                        simplest of the others";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn a_lock_that_keeps_up_elsewhere_is_named() {
        let own = || vec![place("quiescence", 1, 10.0), place("std-rwlock", 2, 5.0)];
        let tie = vec![place("quiescence", 1, 6.0), place("std-rwlock", 1, 5.9)];
        let points = vec![
            Point { value: 99.0, places: own() },
            Point { value: 90.0, places: own() },
            Point { value: 50.0, places: tie },
        ];
        let sweep = Sweep { over: Over::ReadsPercent, own: 99.0, points };
        let text = told(&own(), &[sweep]);
        assert!(text.contains("Simpler and about as fast: std-rwlock at 50 % reads."), "{text}");
    }

    #[test]
    fn a_small_advantage_is_called_small() {
        let close = [place("quiescence", 1, 10.0), place("std-rwlock", 2, 9.0)];
        assert!(told(&close, &[]).contains("Think twice"));
        let far = [place("quiescence", 1, 10.0), place("std-rwlock", 2, 1.0)];
        let text = told(&far, &[]);
        assert!(!text.contains("Think twice"), "{text}");
        assert!(text.contains("10.0 times as many operations as std-rwlock"), "{text}");
    }

    /// A cell's guard keeps one value. The advice for designs with sections was given with it, and
    /// said not to use it where readers block.
    #[test]
    fn only_sections_keep_what_is_replaced_meanwhile() {
        let of = |name| told(&[place(name, 1, 10.0), place("std-rwlock", 2, 1.0)], &[]);
        for name in ["quiescence", "quiescence-srcu", "seize"] {
            assert!(of(name).contains("is in its section"), "{}", of(name));
        }
        for name in ["quiescence-arc-cell", "arc-swap"] {
            let text = of(name);
            assert!(text.contains("Do not use it if") && !text.contains("section"), "{text}");
        }
        // Whoever takes a value out of a queue has it alone.
        for name in ["quiescence-queue", "crossbeam-queue", "std-mpsc"] {
            assert!(!of(name).contains("Do not use it"), "{}", of(name));
        }
    }

    /// The simplest of a rank was called the best, and the faster one was left out.
    #[test]
    fn the_best_lock_is_the_fastest_and_not_the_first_of_its_rank() {
        let ours = place("quiescence", 1, 10.0);
        let far = [ours.clone(), place("std-mutex", 2, 4.0), place("std-rwlock", 2, 5.0)];
        let text = told(&far, &[]);
        assert!(text.contains("2.00 times as many operations as std-rwlock"), "{text}");
        let close = [ours, place("std-mutex", 2, 7.0), place("std-rwlock", 2, 8.0)];
        assert!(told(&close, &[]).contains("std-rwlock reaches 80.0 % of its speed"));
    }

    /// "Faster than it" was of the first table, and followed the price of the second one's design.
    #[test]
    fn what_is_of_one_table_says_of_which() {
        let price = |mut place: Place| {
            place.update_ns = Some(Latency { count: 7, p50: 100, p99: 200, p99_9: 300, max: 400 });
            place
        };
        let mut tables = table(&[place("quiescence", 1, 10.0), place("std-mutex", 2, 5.0)]);
        tables.extend(table(&[price(place("std-mutex", 1, 2.0)), place("quiescence", 2, 1.0)]));
        (tables[0].keys, tables[1].keys) = (1_000, 50_000);
        let points = vec![
            Point { value: 99.0, places: tables[0].places.clone() },
            Point { value: 50.0, places: tables[0].places.clone() },
        ];
        let sweep = Sweep { over: Over::ReadsPercent, own: 99.0, points };
        let text = all_told(&tables, &[sweep]);
        assert!(text.contains("With 50,000 keys: An update takes 100 ns"), "{text}");
        assert!(text.contains("With 1,000 keys: The answer is the same at 50 % reads"), "{text}");
    }

    #[test]
    fn a_tail_is_told_only_of_updates_enough_to_have_one() {
        let with = |count| {
            let mut place = place("quiescence", 1, 10.0);
            place.update_ns = Some(Latency { count, p50: 100, p99: 200, p99_9: 300, max: 4000 });
            told(&[place], &[])
        };
        assert!(with(1000).contains("one in a thousand more than 300 ns"), "{}", with(1000));
        assert!(with(7).contains("the slowest of 7 took 4.00 µs"), "{}", with(7));
    }

    /// So many rounds of designs that take so long, the first of them with more noise.
    fn raced(ns: &[(&str, f64)], rounds: usize) -> Vec<Ranking> {
        let noise = |name: &str| if name == "std-mutex" { 0.4 } else { 0.01 };
        let series = |&(name, ns): &(&str, f64)| series(name, ns, noise(name), rounds);
        vec![rank(&ns.iter().map(series).collect::<Vec<_>>(), 2, 2)]
    }

    /// Nothing was said but that the run was too noisy, where two of all designs were open.
    #[test]
    fn what_may_be_the_best_is_named_where_the_choice_may_lose_too_much() {
        let all = [("quiescence", 10.0), ("std-mutex", 11.0), ("std-rwlock", 90.0)];
        let tables = raced(&all, 6);
        assert!(advice(&tables).is_empty(), "{tables:?}");
        let text = what_is_open(open(&tables, &[])[0]).unwrap();
        let expected = "Each of these may be the best: std-mutex and quiescence. The first, the \
                        simplest, loses at most";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.ends_with("Slower than the best by more than 15 %: std-rwlock."), "{text}");
        let (one_round, none) = (raced(&all, 1), [Ranking::default()]);
        assert_eq!(what_is_open(open(&one_round, &[])[0]), None, "all of them may be");
        assert_eq!(what_is_open(open(&none, &advice(&none))[0]), None);
    }

    /// A table that was open cost the answer for the other one.
    #[test]
    fn one_table_of_two_has_its_answer() {
        let mut tables = raced(&[("quiescence", 10.0), ("std-rwlock", 90.0)], 6);
        tables.extend(raced(&[("quiescence", 10.0), ("std-mutex", 11.0)], 6));
        (tables[0].keys, tables[1].keys) = (1_000, 50_000);
        let text = all_told(&tables, &[]);
        assert!(text.contains("With 1,000 keys: Take quiescence: "), "{text}");
        let open: Vec<u64> = open(&tables, &advice(&tables)).iter().map(|one| one.keys).collect();
        assert_eq!(open, [50_000]);
    }

    #[test]
    fn nothing_measured_recommends_nothing() {
        assert!(all_told(&[], &[]).is_empty());
    }
}
