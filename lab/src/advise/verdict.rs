//! The recommendation, in plain words, and when it does not hold.
//!
//! It follows from the ranking by rules that are written down here, and that prefer the simple:
//! among the designs that are not shown to lose more than a tenth ([`super::decide`]), the one that
//! asks least of its users ([`super::simplicity`]) is recommended, with what that loses at most.

use bench::units;

use super::decide::ZONE;
use super::rank::Place;
use super::simplicity::{defers, demands};
use super::sweep::{Sweep, is_plain_lock};

/// Below this advantage a lock's simplicity is worth more than the speed.
const ADVANTAGE_WORTH_IT: f64 = 1.3;

/// The design to take: of those in the set the simplest, then the fastest. Not one that seems to
/// lose more than the zone and is in the set only since that is not shown: noise would recommend a
/// lock.
pub(super) fn recommended(places: &[Place]) -> Option<&Place> {
    let seems_in = |place: &&Place| place.first_is_faster.median <= ZONE;
    let set = places.iter().filter(|place| place.standing.is_in_set()).filter(seems_in);
    set.min_by_key(|place| demands(place.design))
}

/// What is lost at most by taking a design, in words.
fn loss(choice: &Place) -> String {
    match choice.lost_percent_at_most {
        Some(percent) => format!("at most {} % lost", percent.ceil()),
        None => "how much is lost cannot be told from so few rounds".to_owned(),
    }
}

/// What to do, a paragraph for each thing to know.
pub(super) fn paragraphs(places: &[Place], sweeps: &[Sweep], value_bytes: u32) -> Vec<String> {
    let Some(choice) = recommended(places) else {
        return Vec::new();
    };
    let mut paragraphs = vec![what_to_take(choice, places)];
    paragraphs.extend(price(choice, value_bytes));
    paragraphs.extend(sweeps.iter().flat_map(|sweep| sweep.sentences(choice.design.name)));
    paragraphs.push(when_not(choice, places));
    paragraphs
}

fn what_to_take(choice: &Place, places: &[Place]) -> String {
    let name = choice.design.name;
    let mut text = format!("Take {name}: {}.", choice.design.idea);
    let set: Vec<&str> = places
        .iter()
        .filter(|place| place.standing.is_in_set())
        .map(|place| place.design.name)
        .collect();
    if set.len() > 1 {
        text = format!(
            "Any of these: {}. Take the simplest: {name}; {}. Its idea: {}.",
            listed(&set),
            loss(choice),
            choice.design.idea
        );
    }
    if set.len() == places.len() && places.len() > 1 {
        return format!(
            "{text} No design is out here: either synchronisation is \
             not what this workload spends its time on, or it takes more rounds (--rounds) and \
             longer ones (--run-ms) to tell them apart."
        );
    }
    let lock = places.iter().find(|place| is_plain_lock(place));
    if let Some(lock) = lock.filter(|lock| !lock.standing.is_in_set()) {
        text.push_str(&format!(
            " It does {} times the operations of {}, the best single lock.",
            units::figures(choice.throughput.median / lock.throughput.median),
            lock.design.name
        ));
    }
    text
}

fn nanoseconds(ns: u64) -> String {
    units::nanoseconds(ns as f64)
}

/// What it costs besides time.
fn price(choice: &Place, value_bytes: u32) -> Option<String> {
    let latency = choice.update_ns.as_ref()?;
    // Of fewer updates than this, one in a thousand is the slowest one, and no more than that.
    let tail = match latency.count {
        1000.. => format!("one in a thousand more than {}", nanoseconds(latency.p99_9)),
        few => format!("the slowest of {few} took {}", nanoseconds(latency.max)),
    };
    let mut text = format!("An update takes {} (median), {tail}.", nanoseconds(latency.p50));
    if choice.unreclaimed_peak > 0 {
        let bytes = choice.unreclaimed_peak * u64::from(value_bytes);
        text.push_str(&format!(
            " Replaced values wait to be freed: at most {} did at once, {} of values.",
            units::count(choice.unreclaimed_peak),
            units::bytes(bytes)
        ));
    }
    Some(text)
}

fn when_not(choice: &Place, places: &[Place]) -> String {
    let lock = places.iter().filter(|place| !defers(place.design)).min_by_key(|place| place.rank);
    if matches!(
        choice.design.family,
        "atomic word" | "word for each CPU or thread" | "copy for each reader"
    ) {
        return format!("Its limits: {}.", choice.design.limits);
    }
    if !defers(choice.design) {
        return "You do not need RCU for this workload: readers that share a lock are fast enough \
                here, they always see the newest value, and nothing waits to be freed."
            .to_owned();
    }
    let mut text = String::from(
        "Do not use it where a reader must never see a value that has just been replaced, or \
         where a reader blocks or runs for long inside its section: what was replaced meanwhile \
         stays in memory that long.",
    );
    if let Some(lock) = lock {
        let advantage = choice.throughput.median / lock.throughput.median;
        if advantage < ADVANTAGE_WORTH_IT {
            text.push_str(&format!(
                " And think twice: {} reaches {} % of its speed without any of that.",
                lock.design.name,
                units::figures(100.0 / advantage)
            ));
        }
    }
    text.push_str(&format!(" Its limits: {}.", choice.design.limits));
    text
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
    use crate::advise::rank::Latency;
    use crate::advise::sweep::{Over, Point};
    use bench::statistics::{Ratio, Spread};

    fn place(name: &str, rank: usize, throughput: f64) -> Place {
        let designs = bench::advise::designs(bench::advise::Workload::Table);
        let same = |value| Spread { median: value, low: value, high: value };
        Place {
            design: designs.iter().find(|design| design.name == name).expect(name),
            rank,
            throughput: same(throughput),
            standing: if rank == 1 { Standing::In } else { Standing::Out },
            first_is_faster: Ratio { median: 1.0, low: 1.0, high: 1.0 },
            lost_percent_at_most: Some(0.0),
            cpu_ns: same(1.0),
            cpus_busy: 2.0,
            update_ns: None,
            unreclaimed_peak: 0,
            checksum_errors: 0,
            rounds: vec![throughput; 5],
        }
    }

    #[test]
    fn among_equals_the_lock_is_recommended_and_rcu_is_called_needless() {
        let places = [
            place("quiescence", 1, 10.0),
            place("sharded-rwlock", 1, 9.9),
            place("std-mutex", 3, 1.0),
        ];
        assert_eq!(recommended(&places).unwrap().design.name, "sharded-rwlock");
        let text = paragraphs(&places, &[], 64).join("\n");
        assert!(text.contains("You do not need RCU"), "{text}");
        assert!(text.contains("Take the simplest: sharded-rwlock; at most 0 % lost"), "{text}");
    }

    #[test]
    fn a_lock_that_seems_slow_and_is_not_shown_to_be_is_not_recommended() {
        let mut lock = place("std-mutex", 1, 6.0);
        lock.first_is_faster = Ratio { median: 1.6, low: 0.9, high: 2.5 };
        let places = [place("quiescence", 1, 10.0), lock];
        assert_eq!(recommended(&places).unwrap().design.name, "quiescence");
    }

    #[test]
    fn among_equals_readers_that_need_not_announce_anything_are_recommended() {
        let places = [place("quiescence-qsbr", 1, 10.0), place("quiescence", 1, 9.9)];
        assert_eq!(recommended(&places).unwrap().design.name, "quiescence");
        let faster = [place("quiescence-qsbr", 1, 10.0), place("quiescence", 2, 5.0)];
        assert_eq!(recommended(&faster).unwrap().design.name, "quiescence-qsbr");
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
        let text = paragraphs(&own(), &[sweep], 64).join("\n");
        assert!(text.contains("less to ask of its users: std-rwlock at 50 % reads."), "{text}");
    }

    #[test]
    fn a_small_advantage_is_called_small() {
        let close = [place("quiescence", 1, 10.0), place("std-rwlock", 2, 9.0)];
        assert!(paragraphs(&close, &[], 64).join("\n").contains("think twice"));
        let far = [place("quiescence", 1, 10.0), place("std-rwlock", 2, 1.0)];
        let text = paragraphs(&far, &[], 64).join("\n");
        assert!(!text.contains("think twice"), "{text}");
        assert!(text.contains("10.0 times the operations of std-rwlock"), "{text}");
    }

    #[test]
    fn a_tail_is_told_only_of_updates_enough_to_have_one() {
        let with = |count| {
            let mut place = place("quiescence", 1, 10.0);
            place.update_ns = Some(Latency { count, p50: 100, p99: 200, p99_9: 300, max: 4000 });
            paragraphs(&[place], &[], 64).join("\n")
        };
        assert!(with(1000).contains("one in a thousand more than 300 ns"), "{}", with(1000));
        assert!(with(7).contains("the slowest of 7 took 4.00 µs"), "{}", with(7));
    }

    #[test]
    fn nothing_measured_recommends_nothing() {
        assert!(paragraphs(&[], &[], 64).is_empty());
    }
}
