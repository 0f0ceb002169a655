//! Sequence arithmetic across the wrap, as laws over arbitrary counters.

use grace::{Cookie, Sequence};
use proptest::prelude::*;

use crate::ended;

/// A sequence, idle or in progress.
fn sequence() -> impl Strategy<Value = Sequence> {
    (ended(), any::<bool>()).prop_map(|(ended, busy)| {
        let idle = Sequence::after(ended);
        if busy { idle.begin() } else { idle }
    })
}

fn next(sequence: Sequence) -> Sequence {
    sequence.begin().end()
}

proptest! {
    #![proptest_config(crate::written_nowhere())]

    #[test]
    fn a_cookie_is_done_exactly_after_a_full_grace_period(start in sequence()) {
        let cookie = start.snapshot();
        prop_assert!(!start.is_done(cookie));
        prop_assert!(!start.begin().is_done(cookie));
        let mut now = start;
        if start.in_progress() {
            now = now.end();
            prop_assert!(!now.is_done(cookie), "the one in progress does not count");
            prop_assert!(!now.begin().is_done(cookie));
        }
        prop_assert!(next(now).is_done(cookie));
    }

    #[test]
    fn a_cookie_is_the_sequence_s_that_gave_it_now_and_later(
        start in sequence(),
        later in 0..1u64 << 61,
        ahead in 1..1u64 << 61,
    ) {
        let cookie = start.snapshot();
        prop_assert!(start.has_given(cookie));
        let later = Sequence::after(start.ended().wrapping_add(later));
        let later = if later.ended() == start.ended() { start } else { later };
        prop_assert!(later.has_given(cookie));
        prop_assert!(later.begin().has_given(cookie));
        let far = Cookie::from_bits(cookie.to_bits().wrapping_add(2 * ahead));
        prop_assert!(!start.has_given(far), "no grace period reaches it soon");
        prop_assert!(!start.is_done(far));
        let odd = Cookie::from_bits(cookie.to_bits().wrapping_sub(1));
        prop_assert!(!start.has_given(odd), "no cookie");
    }

    #[test]
    fn done_stays_done(start in sequence(), later in 1..1000u64) {
        let cookie = start.snapshot();
        let mut now = next(next(start));
        prop_assert!(now.is_done(cookie));
        now = Sequence::after(now.ended().wrapping_add(later));
        prop_assert!(now.is_done(cookie));
        let far = Sequence::after(now.ended().wrapping_add((1 << 62) - 1002));
        prop_assert!(far.is_done(cookie), "for 2^62 grace periods");
    }

    #[test]
    fn later_cookies_are_later(start in sequence(), later in 0..1u64 << 61) {
        let cookie = start.snapshot();
        let done = next(next(start));
        let later = Sequence::after(done.ended().wrapping_add(later));
        prop_assert!(later.is_done(cookie));
        prop_assert!(later.is_done(Cookie::done_at(done)));
        prop_assert!(later.snapshot().is_at_or_after(cookie));
        prop_assert!(!cookie.is_at_or_after(later.snapshot()));
    }

    #[test]
    fn begin_and_end_keep_count(start in sequence()) {
        prop_assert_eq!(start.begin().begin(), start.begin());
        prop_assert_eq!(start.end().end(), start.end());
        prop_assert!(start.begin().in_progress());
        prop_assert!(!start.end().in_progress());
        prop_assert_eq!(start.begin().ended(), start.ended());
        let counted = start.ended().wrapping_add(u64::from(start.in_progress())) & (u64::MAX >> 1);
        prop_assert_eq!(start.end().ended(), counted);
    }

    #[test]
    fn bits_go_there_and_back(start in sequence()) {
        prop_assert_eq!(Sequence::from_bits(start.to_bits()), start);
        let cookie = start.snapshot();
        prop_assert_eq!(Cookie::from_bits(cookie.to_bits()), cookie);
    }

    #[test]
    fn cookies_are_ordered_as_their_grace_periods(start in sequence(), apart in 0..1000u64) {
        let first = start.snapshot();
        let second = Sequence::after(start.ended().wrapping_add(apart)).snapshot();
        let second = if start.in_progress() && apart == 0 { first } else { second };
        prop_assert!(second.is_at_or_after(first));
        prop_assert_eq!(first.is_at_or_after(second), first == second);
    }

    #[test]
    fn the_cookie_of_nothing_is_done_at_once(start in sequence()) {
        prop_assert!(start.is_done(Cookie::done_at(start)));
        prop_assert!(next(start).is_done(Cookie::done_at(start)));
        prop_assert!(start.snapshot().is_at_or_after(Cookie::done_at(start)));
    }
}
