//! Bounded memory: laws of amounts, zones, chunks and stocks. That every object is within the limit
//! or noted as over it, in whatever order threads come, is explored: `verify/explore/src/limit`.

use grace::limit::{Amount, Stock, Zone, admit, chunk, presses, zone};
use proptest::prelude::*;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..10u64, 0..100_000u64, any::<u64>(), Just(u64::MAX)]
}

fn amount() -> impl Strategy<Value = Amount> {
    (number(), number()).prop_map(|(objects, bytes)| Amount { objects, bytes })
}

/// Of each number, something of `what`.
fn each(one: Amount, other: Amount, what: impl Fn(u64, u64) -> bool) -> bool {
    what(one.objects, other.objects) && what(one.bytes, other.bytes)
}

proptest! {
    #![proptest_config(crate::written_nowhere())]

    #[test]
    fn amounts_add_up_or_stop_at_the_ends(one in amount(), other in amount()) {
        let sum = one.plus(other);
        prop_assert_eq!(sum, other.plus(one));
        prop_assert!(one.fits(sum) && other.fits(sum));
        prop_assert!(one.minus(other).fits(one));
        prop_assert_eq!(one.minus(other).plus(one.common(other)), one);
        prop_assert!(one.minus(one).is_none() && one.common(Amount::NONE).is_none());
        prop_assert_eq!(one.fits(other), one.minus(other).is_none());
        let saturates = |sum| sum == u64::MAX;
        let is_sum = |one: u64, other: u64, sum| {
            one.checked_add(other).map_or(saturates(sum), |exact| exact == sum)
        };
        prop_assert!(is_sum(one.objects, other.objects, sum.objects));
        prop_assert!(is_sum(one.bytes, other.bytes, sum.bytes));
    }

    #[test]
    fn an_object_is_one_and_its_bytes_are_within_reason(bytes in number()) {
        let object = Amount::object(bytes);
        prop_assert_eq!(object.objects, 1);
        prop_assert_eq!(object.bytes, bytes.min(1 << 48));
    }

    #[test]
    fn zones_begin_at_three_quarters_and_at_the_limit(charged in amount(), limit in amount()) {
        let share = |charged: u64, limit: u64| match u128::from(charged) {
            charged if charged >= u128::from(limit) => Zone::Full,
            // A quarter is rounded down, so that there is one zone only where there is no quarter.
            charged if charged >= u128::from(limit) - u128::from(limit / 4) => Zone::Expedite,
            _ => Zone::Free,
        };
        let worse = share(charged.objects, limit.objects).max(share(charged.bytes, limit.bytes));
        prop_assert_eq!(zone(charged, limit), worse);
        let presses = presses(charged.objects, limit.objects);
        prop_assert_eq!(presses, share(charged.objects, limit.objects) >= Zone::Expedite);
    }

    #[test]
    fn a_chunk_is_a_small_share(limit in amount(), threads in number()) {
        let threads = threads % (1 << 32);
        let chunk = chunk(limit, threads);
        let share = |chunk: u64, limit: u64| {
            u128::from(chunk) * 4 * u128::from(threads.max(1)) <= u128::from(limit)
        };
        prop_assert!(each(chunk, limit, share));
    }

    #[test]
    fn what_idle_threads_keep_is_half_the_limit_at_most(limit in amount(), many in 0..3_000u64) {
        let keeps = |sum: (u128, u128), threads| {
            let chunk = chunk(limit, threads);
            (sum.0 + 2 * u128::from(chunk.objects), sum.1 + 2 * u128::from(chunk.bytes))
        };
        let (objects, bytes) = (1..=many).fold((0, 0), keeps);
        prop_assert!(2 * objects <= u128::from(limit.objects));
        prop_assert!(2 * bytes <= u128::from(limit.bytes));
    }

    #[test]
    fn a_stock_loses_nothing(left in amount(), object in amount(), chunk in amount()) {
        let mut stock = Stock::EMPTY;
        stock.grant(left);
        let wanted = stock.shortfall(object, chunk);
        prop_assert_eq!(stock.take(object), wanted.is_none());
        if !wanted.is_none() {
            prop_assert_eq!(stock.left(), left, "a refusal takes nothing");
            stock.grant(wanted);
            prop_assert!(stock.take(object), "what was missing is enough");
        }
        // Twice a chunk is kept, and one if it is more; what is given back is the rest.
        let before = stock.left();
        let surplus = stock.give_back(object, chunk);
        prop_assert_eq!(stock.left(), before.plus(object).minus(surplus));
        let keeps = |left: u64, chunk: u64| left <= chunk.saturating_mul(2);
        prop_assert!(each(stock.left(), chunk, keeps));
        let all = stock.left();
        prop_assert_eq!(stock.empty(), all);
        prop_assert_eq!(stock, Stock::EMPTY);
    }

    #[test]
    fn what_is_owed_is_paid_first(over_limit in amount(), first in amount(), chunk in amount()) {
        let mut stock = Stock::EMPTY;
        stock.borrow(over_limit);
        prop_assert_eq!(stock.is_over_limit(), !over_limit.is_none());
        prop_assert!(stock.take(over_limit), "for what it was borrowed");
        let paid = stock.give_back(first, chunk);
        prop_assert!(first.common(over_limit).fits(paid));
        prop_assert_eq!(stock.over_limit(), over_limit.minus(first));
        prop_assert!(over_limit.minus(first).fits(stock.give_back(over_limit.minus(first), chunk)));
        prop_assert!(!stock.is_over_limit());
    }

    #[test]
    fn no_number_panics(
        charged in amount(), limit in amount(), wanted in amount(), threads in number()
    ) {
        let mut stock = Stock::EMPTY;
        stock.grant(charged);
        stock.borrow(wanted);
        stock.grant(limit);
        let chunk = chunk(limit, threads);
        let _ = stock.shortfall(wanted, chunk);
        let _ = stock.give_back(wanted, chunk);
        prop_assert_eq!(admit(charged, limit, wanted).is_some(),
            charged.plus(wanted).fits(limit) || charged.is_none() || wanted.is_none());
        prop_assert!(!stock.refresh_over_limit(limit, limit));
        let _ = stock.empty();
        prop_assert!(stock.left().is_none());
    }
}
