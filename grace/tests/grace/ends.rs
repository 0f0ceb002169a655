//! Decisions with numbers at the ends of their ranges: none panics, and each holds there as well.

use grace::batch::in_one_go;
use grace::policy::Budget;
use grace::srcu::{Delay, Published, Situation};
use proptest::prelude::*;

/// Twice the length of a batch did not fit into a number.
#[test]
fn a_go_panicked_where_no_batch_is_ever_full() {
    assert_eq!(in_one_go(u64::MAX, 32, u64::MAX), 32);
    assert_eq!(in_one_go(u64::MAX, 32, 0), u64::MAX >> 7);
    assert_eq!(in_one_go(0, u64::MAX, u64::MAX), 0);
}

/// The count of runs without a wait went beyond the greatest number.
#[test]
fn a_delay_panicked_that_may_be_left_out_as_often_as_can_be_counted() {
    let delay = Published { no_delay_per_phase_max: Some(u32::MAX), ..Published::V5_19_RC1 };
    let now = Situation { is_expedited: true, age_jiffies: 0 };
    let mut count = u32::MAX;
    assert!(delay.extra_check(&mut count, now), "it is not above the limit");
}

proptest! {
    #![proptest_config(crate::written_nowhere())]

    /// It was rounded down, so that a turn was more than its share.
    #[test]
    fn a_turn_was_more_than_its_share(spent_ns in 0..1_000u64, ppm in 0..2_000_000u32) {
        let rest_ns = Budget::from_ppm(ppm).rest_ns(spent_ns, 0);
        let share = u128::from(ppm.clamp(1, 1_000_000));
        let (spent, whole) = (u128::from(spent_ns), u128::from(spent_ns) + u128::from(rest_ns));
        prop_assert!(spent * 1_000_000 <= share * whole);
    }
}
