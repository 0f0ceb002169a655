//! The pure steps under the two token engines: the ring's invariant, and the relay's.

use grace::Number;
use kernel::engine::token::{Passed, Station, relay};
use proptest::prelude::*;

/// Distances behind the successor, which sum to the number of stations.
fn distances(ring: &[Station]) -> Vec<u32> {
    let next = ring.iter().cycle().skip(1);
    ring.iter()
        .zip(next)
        .map(|(own, next)| next.ring.wrapping_add(1).wrapping_sub(own.ring))
        .collect()
}

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![any::<u32>(), u32::MAX - 40..=u32::MAX, (1 << 31) - 40..(1u32 << 31) + 40]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_distances_of_a_ring_sum_to_its_length(
        stations in 1..12usize,
        start in number(),
        hops in prop::collection::vec(any::<prop::sample::Index>(), 0..300),
    ) {
        let mut ring = vec![Station { ring: start, finished: start }; stations];
        // CPUs with a quiescent state since the batch of each station began to wait.
        let mut seen = vec![vec![true; stations]; stations];
        for hop in hops {
            let cpu = hop.index(stations);
            seen.iter_mut().for_each(|seen| seen[cpu] = true);
            let before = distances(&ring);
            let next = ring[(cpu + 1) % stations].ring;
            let passed = ring[cpu].pass(next, stations as u32);
            let after = distances(&ring);
            let sum: u64 = after.iter().copied().map(u64::from).sum();
            prop_assert_eq!(sum, stations as u64, "distances {:?}", after);
            prop_assert_eq!(passed == Passed::Stayed, before[cpu] == 0);
            if stations > 1 {
                prop_assert_eq!(after[cpu], 0);
            }
            if passed == Passed::CameRound {
                prop_assert!(!seen[cpu].contains(&false), "{cpu} runs callbacks: {:?}", seen[cpu]);
                seen[cpu].fill(false);
            }
        }
    }

    #[test]
    fn a_token_that_has_merged_takes_a_circuit_for_each_batch(
        stations in 2..12usize,
        start in number(),
    ) {
        let mut ring = vec![Station { ring: start, finished: start }; stations];
        let mut rounds_of = vec![Vec::new(); stations];
        // Each passes after its successor, so that the unit tokens merge in the first round.
        for round in 0..10 {
            for cpu in (0..stations).rev() {
                let next = ring[(cpu + 1) % stations].ring;
                if ring[cpu].pass(next, stations as u32) == Passed::CameRound {
                    rounds_of[cpu].push(round);
                }
            }
        }
        for rounds in rounds_of {
            prop_assert!(rounds.windows(2).all(|pair| pair[1] - pair[0] <= 2), "{rounds:?}");
            prop_assert!(rounds.len() >= 5, "{rounds:?}");
        }
    }

    #[test]
    fn a_relay_shows_a_number_only_if_all_before_have_passed_since_it_began(
        stations in 1..8usize,
        start in number(),
        steps in prop::collection::vec(any::<(bool, prop::sample::Index)>(), 0..300),
    ) {
        let (mut head, mut began_at) = (start, 0);
        let mut shown = vec![Number(start); stations];
        let mut quiescent_at = vec![0; stations];
        let mut passed = 0;
        for (now, (starts, station)) in (1..).zip(steps) {
            if starts && shown.iter().all(|shown| shown.0 == head) {
                (head, began_at) = (head.wrapping_add(1), now);
                passed += 1;
            }
            let station = station.index(stations);
            quiescent_at[station] = now;
            let upstream = if station == 0 { Number(head) } else { shown[station - 1] };
            if let Some(number) = relay(shown[station], upstream) {
                shown[station] = number;
            }
            for end in (0..stations).filter(|&end| shown[end].0 == head && head != start) {
                prop_assert!(quiescent_at[..=end].iter().all(|&at| at >= began_at));
            }
        }
        prop_assert_eq!(head, start.wrapping_add(passed));
    }
}

#[test]
fn a_relay_never_goes_back() {
    for own in [0, 1, u32::MAX, 1 << 31] {
        let own = Number(own);
        assert_eq!(relay(own, own), None);
        assert_eq!(relay(own, Number(own.0.wrapping_sub(1))), None);
        let next = Number(own.0.wrapping_add(1));
        assert_eq!(relay(own, next), Some(next));
    }
}
