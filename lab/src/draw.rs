//! Draws what each thread does, before anything is timed, from one seed.
//!
//! Every design then runs the very same operations, and no design pays for the random numbers of
//! another. The generator is ChaCha with a fixed number of rounds: the same seed gives the same
//! operations on every machine and in every version.

use std::sync::Arc;

use bench::advise::Operation;
use rand::rngs::ChaCha8Rng;
use rand::seq::{SliceRandom, index};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};

use crate::workload::{Popularity, Workload};

/// Operations drawn for each thread, run again from the start when they are used up: enough that
/// the order is not learnt by the branch predictor, few enough to stay in the second-level cache.
const OPERATIONS_PER_THREAD: usize = 1 << 16;

/// Keys of each thread that are away at a time, at most: a key comes back when so many others
/// have gone.
const KEYS_AWAY: usize = 64;

/// The operations of each thread of this workload, for `keys` keys.
pub(crate) fn operations(keys: u32, of: &Workload, seed: u64) -> Arc<[Box<[Operation]>]> {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    // The keys by popularity. Shuffled, so that popular keys are not neighbours in memory only
    // because their names sort together.
    let mut order: Vec<u32> = (0..keys).collect();
    order.shuffle(&mut generator);
    let updates = counts_of_updates(of.threads, of.reads_percent, &mut generator);
    updates.into_iter().map(|updates| one_thread(&order, updates, of, &mut generator)).collect()
}

/// How many updates each thread gets: together as many as the share says, and at least one when
/// it says any, so that 99.9999 % is not silently 100 %.
fn counts_of_updates(threads: u32, reads_percent: f64, generator: &mut ChaCha8Rng) -> Vec<usize> {
    let each = OPERATIONS_PER_THREAD as f64 * (1.0 - reads_percent / 100.0);
    let total =
        (each * f64::from(threads)).round().max(if each > 0.0 { 1.0 } else { 0.0 }) as usize;
    let threads = threads as usize;
    let mut counts: Vec<usize> = (0..threads)
        .map(|thread| total / threads + usize::from(thread < total % threads))
        .collect();
    counts.shuffle(generator);
    counts
}

fn one_thread(
    order: &[u32],
    updates: usize,
    of: &Workload,
    generator: &mut ChaCha8Rng,
) -> Box<[Operation]> {
    let zipf = match of.popularity {
        Popularity::Uniform => None,
        Popularity::Zipf(exponent) => Zipf::new(order.len() as f64, exponent).ok(),
    };
    let mut operations: Box<[Operation]> = (0..OPERATIONS_PER_THREAD)
        .map(|_| {
            let rank = match &zipf {
                None => generator.random_range(0..order.len()),
                Some(zipf) => zipf.sample(generator) as usize - 1,
            };
            Operation::read(order[rank.min(order.len() - 1)])
        })
        .collect();
    let mut places = index::sample(generator, OPERATIONS_PER_THREAD, updates).into_vec();
    for &place in &places {
        operations[place] = Operation::update(operations[place].key());
    }
    places.truncate(2 * pairs(updates, of.churn_percent));
    places.sort_unstable();
    come_and_go(&mut operations, &places, order.len() as u32, generator);
    operations
}

/// How many removals, and as many inserts, there are among so many updates: at least one, where
/// there are any, so that a small share is not silently none.
fn pairs(updates: usize, churn_percent: f64) -> usize {
    let least = if churn_percent > 0.0 { 1 } else { 0 };
    let wanted = (updates as f64 * churn_percent / 200.0).round() as usize;
    wanted.max(least).min(updates / 2)
}

/// Makes removals and inserts of the operations at these places, by turns. Each insert brings back
/// what was removed some removals before, so that the table keeps its size, also when the
/// operations are run again from the start.
fn come_and_go(
    operations: &mut [Operation],
    places: &[usize],
    keys: u32,
    generator: &mut ChaCha8Rng,
) {
    let count = places.len() / 2;
    let removed: Vec<u32> = (0..count).map(|_| generator.random_range(0..keys)).collect();
    let lag = KEYS_AWAY.min(count / 2);
    for (number, &[removal, insert]) in places.as_chunks().0.iter().enumerate() {
        operations[removal] = Operation::remove(removed[number]);
        operations[insert] = Operation::update(removed[(number + count - lag) % count]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(threads: u32, reads_percent: f64, popularity: Popularity) -> Workload {
        Workload { threads, reads_percent, popularity, ..Workload::built_in() }
    }

    fn updates(operations: &[Box<[Operation]>]) -> usize {
        operations.iter().flatten().filter(|operation| operation.is_update()).count()
    }

    #[test]
    fn the_same_seed_draws_the_same_and_another_does_not() {
        let draw = |seed| operations(1000, &workload(2, 90.0, Popularity::Zipf(0.99)), seed);
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn the_share_is_exact_and_never_rounded_to_none() {
        let total = |reads| updates(&operations(10, &workload(3, reads, Popularity::Uniform), 1));
        assert_eq!(total(100.0), 0);
        assert_eq!(total(0.0), 3 * OPERATIONS_PER_THREAD);
        assert_eq!(total(50.0), 3 * OPERATIONS_PER_THREAD / 2);
        assert_eq!(total(99.999_999), 1);
    }

    #[test]
    fn keys_that_go_come_back_and_the_table_keeps_its_size() {
        let churned = Workload { churn_percent: 40.0, ..workload(2, 80.0, Popularity::Uniform) };
        let operations = operations(5000, &churned, 1);
        let changes = updates(&operations);
        let removals =
            operations.iter().flatten().filter(|operation| operation.is_remove()).count();
        assert_eq!(changes, 2 * OPERATIONS_PER_THREAD / 5);
        assert!((changes / 5 - 2..=changes / 5 + 2).contains(&removals), "{removals}");
        for one in &*operations {
            let mut away: Vec<u32> = Vec::new();
            for operation in one.iter().cycle().take(3 * OPERATIONS_PER_THREAD) {
                if operation.is_remove() {
                    away.push(operation.key());
                } else if operation.is_update() {
                    away.retain(|&key| key != operation.key());
                }
                assert!(away.len() <= KEYS_AWAY + 2, "{} keys are away", away.len());
            }
        }
        assert_eq!(
            (pairs(100, 0.0), pairs(100, 0.001), pairs(1, 50.0), pairs(7, 100.0)),
            (0, 1, 0, 3)
        );
    }

    #[test]
    fn zipf_makes_few_keys_popular_and_uniform_none() {
        let share_of_top = |popularity| {
            let operations = operations(1000, &workload(1, 100.0, popularity), 7);
            let mut counts = vec![0_usize; 1000];
            operations[0].iter().for_each(|operation| counts[operation.key() as usize] += 1);
            counts.sort_unstable_by(|a, b| b.cmp(a));
            counts[..10].iter().sum::<usize>() as f64 / OPERATIONS_PER_THREAD as f64
        };
        // Zipf with exponent 1 over 1000 keys: H(10)/H(1000) = 2.93/7.49 = 39 %.
        let zipf = share_of_top(Popularity::Zipf(1.0));
        assert!((0.37..0.41).contains(&zipf), "{zipf}");
        let uniform = share_of_top(Popularity::Uniform);
        assert!((0.01..0.02).contains(&uniform), "{uniform}");
    }
}
