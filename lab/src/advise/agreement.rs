//! Whether two runs agree, as [`super::decide`] defines it: on rounds that were recorded and are
//! drawn again by seed, and on noise that is made, with a machine that drifts.
//!
//! A run here is that of [`super::race`] without its clock: first rounds of all designs, then more
//! of those that are near a decision, until none is or as many again have been run. A round is
//! drawn whole, so that what disturbed one design of it disturbs the others too.

use bench::advise::{Design, Workload, designs};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::race::{Series, undecided};
use super::rank::{Place, rank};
use super::verdict::recommended;

/// Rounds of three shipped workloads: a design a line, a value for each round, in thousand
/// operations a second. Two virtual CPUs with a load of ten, rounds of 40 ms with 2,000 keys, and a
/// process for each round: about as bad as a machine gets.
const RECORDED: &str = include_str!("recorded_rounds.txt");

/// Nearly all. Most designs are in the set there, since so few rounds on so bad a machine show
/// little; that a set is no larger than it has to be is held by the rounds that are made, below. An
/// interval of 99.9 % for each of a dozen designs lets a pair in a hundred disagree, and with so
/// few rounds those of a bootstrap alone let one in four.
const FLOOR_PERCENT: usize = 95;

const FIRST_ROUNDS: usize = 11;
const SEEDS: u64 = 12;

fn design(name: &str) -> &'static Design {
    let table = designs(Workload::Table).iter().chain(designs(Workload::Config));
    table.into_iter().find(|design| design.name == name).expect(name)
}

/// A run whose rounds come from `round`: the throughput of each design in one of them.
fn run(names: &[&str], mut round: impl FnMut() -> Vec<f64>) -> Vec<Place> {
    let mut series: Vec<Series> = names.iter().map(|name| Series::new(design(name))).collect();
    let mut left = FIRST_ROUNDS * names.len();
    for number in 0.. {
        let open = undecided(series.iter());
        let is_first = number < FIRST_ROUNDS;
        if !is_first {
            if open.is_empty() || open.len() > left {
                break;
            }
            left -= open.len();
        }
        for (one, throughput) in series.iter_mut().zip(round()) {
            if is_first || open.contains(one.design.name) {
                one.throughput.push(throughput);
                one.cpu_ns.push(1.0);
                one.cpus_busy.push(1.0);
            }
        }
    }
    rank(&series)
}

/// Whether the design that each recommends is in the set of the other.
fn agree(a: &[Place], b: &[Place]) -> bool {
    let allows = |of: &[Place], by: &[Place]| {
        let name = recommended(by).expect("a set is never empty").design.name;
        of.iter().any(|place| place.design.name == name && place.standing.is_in_set())
    };
    allows(a, b) && allows(b, a)
}

fn pairs_that_agree(runs: &[Vec<Place>]) -> (usize, usize) {
    let pairs: Vec<_> = (0..runs.len()).flat_map(|b| (0..b).map(move |a| (a, b))).collect();
    (pairs.iter().filter(|&&(a, b)| agree(&runs[a], &runs[b])).count(), pairs.len())
}

#[test]
fn runs_drawn_from_recorded_rounds_agree() {
    let mut workloads = 0;
    for block in RECORDED.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let lines = block.lines().filter(|line| !line.starts_with('#'));
        let (names, rounds): (Vec<&str>, Vec<Vec<f64>>) = lines
            .map(|line| {
                let (name, values) = line.split_once(' ').expect("a name and values");
                (name, values.split(' ').map(|value| value.parse().expect(value)).collect())
            })
            .unzip();
        let recorded = rounds[0].len();
        assert!(recorded >= 15 && rounds.iter().all(|one| one.len() == recorded));
        let runs: Vec<Vec<Place>> = (0..SEEDS)
            .map(|seed| {
                let mut generator = ChaCha8Rng::seed_from_u64(seed);
                run(&names, || {
                    let at = generator.random_range(0..recorded);
                    rounds.iter().map(|one| one[at]).collect()
                })
            })
            .collect();
        let (agreed, pairs) = pairs_that_agree(&runs);
        println!("{agreed} of {pairs} pairs agree: {}", block.lines().next().unwrap_or_default());
        assert!(agreed * 100 >= pairs * FLOOR_PERCENT, "{agreed} of {pairs} agree:\n{block}");
        workloads += 1;
    }
    assert!(workloads >= 2, "{workloads} recorded");
}

/// The speeds of the designs below beside the first: one is nearly equal, one too slow.
const MADE: [(&str, f64); 4] =
    [("quiescence", 1.0), ("sharded-rwlock", 0.97), ("arc-swap", 0.75), ("std-mutex", 0.3)];

/// Rounds of a machine that slows down to a third and back, with noise of so many per cent that is
/// common to a round, and half as much of each design's own.
fn made(seed: u64, noise: f64) -> Vec<Place> {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let mut number = 0_u32;
    run(&MADE.map(|(name, _)| name), || {
        number += 1;
        let drift = 2.0 + (f64::from(number) / 3.0).sin();
        let mut wobble = |share: f64| 1.0 + share * generator.random_range(-1.0..1.0);
        let common = drift * wobble(noise);
        MADE.map(|(_, speed)| 1e6 * speed * common * wobble(noise / 2.0)).to_vec()
    })
}

#[test]
fn a_drifting_machine_names_the_same_set_by_every_seed() {
    for noise in [0.05, 0.2] {
        for seed in 0..SEEDS {
            let places = made(seed, noise);
            let out = |name: &str| {
                let place = places.iter().find(|place| place.design.name == name);
                !place.expect(name).standing.is_in_set()
            };
            assert!(out("std-mutex") && out("arc-swap"), "seed {seed}: {places:?}");
            assert_eq!(recommended(&places).unwrap().design.name, "sharded-rwlock", "{seed}");
        }
    }
}

#[test]
fn more_rounds_are_run_of_what_is_near_only() {
    let places = made(1, 0.2);
    let rounds = |name: &str| {
        places.iter().find(|place| place.design.name == name).expect(name).rounds.len()
    };
    assert!(rounds("sharded-rwlock") > FIRST_ROUNDS && rounds("quiescence") > FIRST_ROUNDS);
    assert_eq!(rounds("std-mutex"), FIRST_ROUNDS);
}
