//! What a prefetch hides: `vajapan2005.wakeup`.
//!
//! A profile of `try_to_wake_up` shows three loads that miss. A prefetch of the first one, early
//! enough, turns its miss into a hit in the first cache, and leaves all else as it is: there are
//! fewer samples, so the others' *shares* grow. That is arithmetic, from the shares without it.
//!
//! **What does not fit** is by how much the others grow: as published by 3.1 and 6.1 points, here
//! by 1.5 and 2.6. As shares they would agree to a ninth, for most of them is given. So the
//! prefetch does something to the other two misses as well, which is not modelled.
//!
//! The time as a whole fell from .7439 to .6619. Its unit is not recorded, so the ratio is
//! compared, and of it what the prefetch saves.

use super::Row;
use super::published::Publication;

/// The time of the wake-ups without the prefetch and with it, in the lecture's own unit.
pub const WAKE_UP: [f64; 2] = [0.7439, 0.6619];

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
fn hit_and_left() -> [f64; 2] {
    let [first, ..] = without();
    let hit = first * HIT_NS / MISS_NS;
    [hit, 100.0 - first + hit]
}

/// The shares when the first miss has become a hit.
fn predicted() -> [f64; 3] {
    let ([_, second, third], [hit, left]) = (without(), hit_and_left());
    [hit, second, third].map(|samples| 100.0 * samples / left)
}

/// The rows of this publication.
pub fn rows() -> Vec<Row> {
    let (without, predicted, mut published) = (without(), predicted(), published());
    // If it did nothing, as much as before would be left.
    published.beyond("whole", hit_and_left()[1], 100.0, 0.0);
    for (place, miss) in MISSES.into_iter().enumerate() {
        let figure = format!("{miss} miss, with prefetch");
        match place {
            0 => published.number(&figure, predicted[place]),
            // The shares without it are given: what they grow by is what is predicted.
            _ => published.beyond(&figure, predicted[place], without[place], 0.0),
        };
    }
    let others_grow = (1..3).all(|place| predicted[place] > without[place]);
    let is_so = predicted[0] < without[0] / 10.0 && others_grow;
    published.statement("shares", &predicted.map(|share| format!("{share:.2}")), is_so);
    published.rows()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Fit;

    #[test]
    fn shares_without_the_first_miss() {
        let [first, second, third] = predicted();
        assert!((first - 0.307).abs() < 0.001, "{first}");
        assert!((second - 14.044).abs() < 0.001, "{second}");
        // The other two keep their proportion.
        assert!((third / second - without()[2] / without()[1]).abs() < 1e-9);
        assert_eq!(published().value("whole"), 100.0 * WAKE_UP[1] / WAKE_UP[0]);
        let rows = rows();
        let misses = rows.iter().filter(|row| row.fit() == Fit::Misses);
        let misses: Vec<&str> = misses.map(|row| row.figure.as_str()).collect();
        let whole = rows.iter().find(|row| row.figure.starts_with("time with")).unwrap();
        assert!(whole.is_difference(), "what is saved is compared: -11.0 with -10.4 %");
        assert!(whole.ratio().is_some_and(|ratio| (ratio - 0.939).abs() < 0.001), "{whole:?}");
        // The others' shares grow by less than half of what was published.
        assert_eq!(misses, ["second miss, with prefetch", "third miss, with prefetch"]);
    }
}
