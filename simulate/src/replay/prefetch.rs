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

use super::{Role, Row};

const SOURCE: &str = "vajapan2005.wakeup";

/// Shares of the samples at the three misses, in per cent, without the prefetch and with it.
const WITHOUT: [f64; 3] = [10.63, 12.59, 22.61];
const WITH: [f64; 3] = [0.24, 15.72, 28.68];

/// The time of the wake-ups without the prefetch and with it, in the lecture's own unit.
pub const WAKE_UP: [f64; 2] = [0.7439, 0.6619];

/// A load that misses, and one that finds its line in the first cache: three clock cycles on a
/// Pentium III. Both in nanoseconds, from `lca2005.costs_ns`.
const MISS_NS: f64 = 162.4;
const HIT_NS: f64 = 3.0 * 1.4;

/// The samples at the first place when its miss has become a hit, and all that are left then, of a
/// hundred before.
fn hit_and_left() -> [f64; 2] {
    let hit = WITHOUT[0] * HIT_NS / MISS_NS;
    [hit, 100.0 - WITHOUT[0] + hit]
}

/// The shares when the first miss has become a hit.
fn predicted() -> [f64; 3] {
    let [hit, left] = hit_and_left();
    [hit, WITHOUT[1], WITHOUT[2]].map(|samples| 100.0 * samples / left)
}

/// The time as a whole with the prefetch, of that without: .6619 of .7439.
fn whole() -> Row {
    let [without, with] = WAKE_UP;
    let published = 100.0 * with / without;
    Row::number(
        SOURCE,
        "time with prefetch, of that without (.7439 to .6619)",
        (published, hit_and_left()[1], "%"),
        Role::Predicted,
        "the time of the first miss is saved, but for a hit",
    )
    // If it did nothing, as much as before would be left.
    .beyond(100.0, 0.0)
}

/// The rows of this publication.
pub fn rows() -> Vec<Row> {
    const NAMES: [&str; 3] = ["first", "second", "third"];
    let given = NAMES.iter().zip(WITHOUT).map(|(name, share)| {
        Row::input(
            SOURCE,
            format!("{name} miss, without prefetch"),
            (share, "%"),
            "what the prediction begins with",
        )
    });
    let mechanism = |place: usize| match place {
        0 => "a hit in the first cache where a miss was",
        _ => "as many samples as before, of fewer; more published: the prefetch is in their way",
    };
    let predicted = predicted();
    let found = NAMES.iter().enumerate().map(|(place, name)| {
        let row = Row::number(
            SOURCE,
            format!("{name} miss, with prefetch"),
            (WITH[place], predicted[place], "%"),
            Role::Predicted,
            mechanism(place),
        );
        // The shares without the prefetch are given: what they grow by is what is predicted.
        if place == 0 { row } else { row.beyond(WITHOUT[place], 0.0) }
    });
    let others_grow = (1..3).all(|place| predicted[place] > WITHOUT[place]);
    let statement = Row::statement(
        SOURCE,
        "the first miss all but disappears, the others' shares grow",
        "10.63 to 0.24 %; 12.59 to 15.72 %; 22.61 to 28.68 %",
        (
            format!(
                "10.63 to {:.2} %; 12.59 to {:.2} %; 22.61 to {:.2} %",
                predicted[0], predicted[1], predicted[2]
            ),
            predicted[0] < WITHOUT[0] / 10.0 && others_grow,
        ),
        "samples that are gone from one place are gone from the whole",
    );
    given.chain(found).chain([whole(), statement]).collect()
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
        assert!((third / second - WITHOUT[2] / WITHOUT[1]).abs() < 1e-9);
        let rows = rows();
        let misses = rows.iter().filter(|row| row.fit() == Fit::Misses);
        let misses: Vec<&str> = misses.map(|row| row.figure.as_str()).collect();
        let whole = whole();
        assert!(whole.is_difference(), "what is saved is compared: -11.0 with -10.4 %");
        assert!(whole.ratio().is_some_and(|ratio| (ratio - 0.939).abs() < 0.001), "{whole:?}");
        // The others' shares grow by less than half of what was published.
        assert_eq!(misses, ["second miss, with prefetch", "third miss, with prefetch"]);
    }
}
