//! What a prefetch hides: `vajapan2005.wakeup`.
//!
//! A profile of `try_to_wake_up` shows three loads that miss. A prefetch of the first one, early
//! enough, turns its miss into a hit in the first-level cache, and changes nothing else. There are
//! then fewer samples, so the *shares* of the others grow. That follows from the shares without it.
//!
//! **What does not fit** is the growth of the other two: by 3.1 and 6.1 points in the publication,
//! and by 1.5 and 2.6 here. As shares they would agree to within a ninth, since most of each share
//! is given. So the prefetch also affects the other two misses, which is not modelled. In absolute
//! terms, by the function's share of all samples, they grew by 10 and 12 %, and the rest of the
//! function shrank by 10 %.
//!
//! That share fell from .5957 to .5271 %. The ratio is compared, by the part that the prefetch
//! saves. The lecture has another function, [`eth_type_trans`](ETH_TYPE_TRANS), but says nothing
//! about its misses, so nothing can be derived.

use super::published::Publication;
use super::{Row, Variation};

/// What `try_to_wake_up` has of all samples without the prefetch and with it, in per cent.
pub const WAKE_UP: [f64; 2] = [0.5957, 0.5271];

/// What `eth_type_trans` has: 780 samples, and 694.
pub const ETH_TYPE_TRANS: [f64; 2] = [0.7439, 0.6619];

/// A load that misses, and one that finds its line in the first cache: three clock cycles on a
/// Pentium III. Both in nanoseconds, from `lca2005.costs_ns`.
const MISS_NS: f64 = 162.4;
const HIT_NS: f64 = 3.0 * 1.4;

const MISSES: [&str; 3] = ["first", "second", "third"];

fn published() -> Publication {
    Publication::read(include_str!("prefetch.toml"))
}

/// Shares of the samples at the three misses, in per cent, without the prefetch.
fn without() -> [f64; 3] {
    let mut published = published();
    MISSES.map(|miss| published.value(&format!("{miss} miss, without prefetch")))
}

/// The samples at the first place when its miss has become a hit, and all that are left then, of a
/// hundred before.
fn hit_and_left(hit_ns: f64) -> [f64; 2] {
    let [first, ..] = without();
    let hit = first * hit_ns / MISS_NS;
    [hit, 100.0 - first + hit]
}

/// The shares when the first miss has become a hit.
fn predicted(hit_ns: f64) -> [f64; 3] {
    let ([_, second, third], [hit, left]) = (without(), hit_and_left(hit_ns));
    [hit, second, third].map(|samples| 100.0 * samples / left)
}

/// By how much of itself a part of the function grew that had so many per cent of its samples, and
/// has now.
fn growth(before: f64, after: f64) -> String {
    format!("{:+.0} %", 100.0 * (after * WAKE_UP[1] / (before * WAKE_UP[0]) - 1.0))
}

/// The rows of this publication.
pub fn rows() -> Vec<Row> {
    rows_of(HIT_NS)
}

/// What is estimated, and the prefetch. What that saves is all that its row compares: without it
/// the row misses by arithmetic.
pub fn variations() -> Vec<Variation> {
    let hit = |cycles: u8| move || rows_of(f64::from(cycles) * 1.4);
    vec![
        Variation::of("a hit takes one cycle, not three", hit(1)),
        Variation::of("a hit takes nine cycles, as in the second-level cache", hit(9)),
        Variation::of("without: the prefetch", || rows_of(MISS_NS))
            .missing("first miss, with prefetch"),
    ]
}

fn rows_of(hit_ns: f64) -> Vec<Row> {
    let (without, predicted, mut published) = (without(), predicted(hit_ns), published());
    // If it did nothing, as much as before would be left.
    published.beyond("whole", hit_and_left(hit_ns)[1], 100.0, 0.0);
    for (place, miss) in MISSES.into_iter().enumerate() {
        let figure = format!("{miss} miss, with prefetch");
        if place == 0 {
            published.number(&figure, predicted[place]);
            continue;
        }
        // The shares without it are given: what they grow by is what is predicted.
        published.beyond(&figure, predicted[place], without[place], 0.0);
        let with = published.value(&figure);
        published.why(&figure, &[growth(without[place], with)]);
    }
    let with: f64 =
        MISSES.iter().map(|miss| published.value(&format!("{miss} miss, with prefetch"))).sum();
    let rest = growth(100.0 - without.iter().sum::<f64>(), 100.0 - with);
    published.why("whole", &[rest]);
    published.rows()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Fit;

    #[test]
    fn shares_without_the_first_miss() {
        let [first, second, third] = predicted(HIT_NS);
        assert!((first - 0.307).abs() < 0.001, "{first}");
        assert!((second - 14.044).abs() < 0.001, "{second}");
        // The other two keep their proportion.
        assert!((third / second - without()[2] / without()[1]).abs() < 1e-9);
        let share = |[without, with]: [f64; 2]| 100.0 * with / without;
        assert!((published().value("whole") - share(WAKE_UP)).abs() < 1e-9);
        assert!((published().value("eth") - share(ETH_TYPE_TRANS)).abs() < 1e-9);
        let rows = rows();
        let misses = rows.iter().filter(|row| row.fit() == Fit::Misses);
        let misses: Vec<&str> = misses.map(|row| row.figure.as_str()).collect();
        let whole = rows.iter().find(|row| row.figure.starts_with("share of all")).unwrap();
        assert!(whole.is_difference(), "what is saved is compared: -11.5 with -10.4 %");
        assert!(whole.ratio().is_some_and(|ratio| (ratio - 0.899).abs() < 0.001), "{whole:?}");
        // In absolute terms, as the whole says, the others grow, and the rest shrinks.
        for (figure, growth) in [("second", "+10 %"), ("third", "+12 %"), ("share", "-10 %")] {
            let row = rows.iter().find(|row| {
                row.figure.starts_with(figure) && row.role == crate::replay::Role::Predicted
            });
            assert!(row.is_some_and(|row| row.mechanism.contains(growth)), "{row:?}");
        }
        // The others' shares grow by less than half of what was published.
        assert_eq!(misses, ["second miss, with prefetch", "third miss, with prefetch"]);
    }
}
