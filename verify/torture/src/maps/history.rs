//! Whether a history of operations on one key of a map is linearizable: whether each can have
//! happened at one moment between its begin and its end.
//!
//! Keys of a map are independent, so a map's history is linearizable if that of each key is
//! (Herlihy, Wing, TOPLAS 1990). What a key has is a number or nothing. The search is just in time:
//! an operation is put into the order where it ends, together with those in progress that have to
//! come before it (Lowe, "Testing for linearizability", 2017; after Wing and Gong, 1993). What is
//! kept between two events is the set of all values that the key may have now, each with the
//! operations in progress that have happened by then; so histories may be long.
//!
//! An operation that leaves the key as it was happens as soon as it can: later, it would fit less.
//! So what is possible doubles with each operation in progress that may change the key, and not
//! with each one that is in progress.

use std::collections::HashSet;

/// What an operation found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// Something.
    Present,
    /// This, or nothing.
    Was(Option<u64>),
}

/// What it made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// It left it as it was.
    Same,
    /// This, or nothing.
    Is(Option<u64>),
}

/// An operation on a key, with moments of a clock that never shows the same time twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    /// Before its begin.
    pub(crate) begin: u64,
    /// After its end.
    pub(crate) end: u64,
    /// What it found.
    pub(crate) before: Before,
    /// What it made of it.
    pub(crate) after: After,
    /// Whether the caller knows that it found that. Else it may have found something else, and left
    /// it as it was.
    pub(crate) is_sure: bool,
}

impl Operation {
    /// What the key has after the operation, if it had `value` before; `None` if it cannot have.
    fn apply(&self, value: Option<u64>) -> Option<Option<u64>> {
        let fits = match self.before {
            Before::Present => value.is_some(),
            Before::Was(was) => value == was,
        };
        match self.after {
            _ if !fits => (!self.is_sure).then_some(value),
            After::Same => Some(value),
            After::Is(new) => Some(new),
        }
    }

    /// Whether the key stays as it is, whatever the operation finds.
    fn is_a_look(&self) -> bool {
        self.after == After::Same
    }
}

/// What a key may have, and the operations in progress that have happened then, by their places.
type Possible = (Option<u64>, u64);

/// Operations in progress at a time, at most.
const IN_PROGRESS_MAX: usize = 64;

/// What a thread records of one key that it has seen many times in one operation: so that four
/// threads are well below that.
pub(crate) const LOOKS_MAX: usize = 12;

/// What may be possible at a time, at most: some ten updates of one key in progress have it.
const POSSIBLE_MAX: usize = 1 << 20;

/// Checks the history of a key that had `first` when it began. All its operations have ended.
///
/// # Errors
/// The first operation to end for which no moment is left, what the key may have had when it ended,
/// and the operations that were in progress then.
///
/// # Panics
/// If more than 64 operations are in progress at a time, or so many of them may change the key that
/// there are too many orders to try; or if one ends before it begins.
pub(crate) fn check(first: Option<u64>, operations: &[Operation]) -> Result<(), String> {
    let mut events: Vec<(u64, usize)> = Vec::with_capacity(2 * operations.len());
    for (index, operation) in operations.iter().enumerate() {
        assert!(operation.begin < operation.end, "it ends after it begins: {operation:?}");
        events.extend([(operation.begin, index), (operation.end, index)]);
    }
    events.sort_unstable();
    // Operations in progress have places, which the bits of a set stand for.
    let mut places = [None; IN_PROGRESS_MAX];
    let mut possible: HashSet<Possible> = HashSet::from([(first, 0)]);
    for (moment, index) in events {
        let operation = &operations[index];
        if moment == operation.begin {
            let free = places.iter().position(Option::is_none);
            places[free.expect("few operations are in progress")] = Some(index);
            continue;
        }
        let place = places.iter().position(|place| *place == Some(index));
        let place = place.expect("it is in progress");
        let now = until_over(&possible, place, &places, operations);
        if now.is_empty() {
            let mut values: Vec<_> = possible.iter().map(|(value, _)| *value).collect();
            values.sort_unstable();
            values.dedup();
            let beside = places.iter().flatten().filter(|other| **other != index);
            let beside = beside.map(|other| format!("; beside {:x?}", operations[*other]));
            let beside: String = beside.collect();
            return Err(format!(
                "{operation:x?} has no moment; at its end the key had one of {values:x?}{beside}"
            ));
        }
        possible = now;
        places[place] = None;
    }
    Ok(())
}

/// What is possible once the operation at a place has happened, if need be after others.
fn until_over(
    possible: &HashSet<Possible>,
    place: usize,
    places: &[Option<usize>; IN_PROGRESS_MAX],
    operations: &[Operation],
) -> HashSet<Possible> {
    let mut over = HashSet::new();
    let mut open: Vec<Possible> = possible.iter().copied().collect();
    let mut seen = possible.clone();
    while let Some((value, mut happened)) = open.pop() {
        assert!(seen.len() <= POSSIBLE_MAX, "too many updates are in progress at {:x?}", places);
        let in_progress = || {
            let taken = places.iter().enumerate();
            taken.filter_map(|(other, index)| Some((other, operations[(*index)?])))
        };
        for (other, operation) in in_progress() {
            if operation.is_a_look() && operation.apply(value).is_some() {
                happened |= 1 << other;
            }
        }
        if happened & (1 << place) != 0 {
            over.insert((value, happened & !(1 << place)));
            continue;
        }
        for (other, operation) in in_progress() {
            if happened & (1 << other) == 0
                && let Some(after) = operation.apply(value)
                && seen.insert((after, happened | 1 << other))
            {
                open.push((after, happened | 1 << other));
            }
        }
    }
    over
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saw(begin: u64, end: u64, value: Option<u64>) -> Operation {
        let (before, after) = (Before::Was(value), After::Same);
        Operation { begin, end, before, after, is_sure: true }
    }

    fn set(begin: u64, end: u64, value: u64) -> Operation {
        let (before, after) = (Before::Was(None), After::Is(Some(value)));
        Operation { begin, end, before, after, is_sure: true }
    }

    fn replaced(begin: u64, end: u64, old: Option<u64>, new: Option<u64>) -> Operation {
        let (before, after) = (Before::Was(old), After::Is(new));
        Operation { begin, end, before, after, is_sure: true }
    }

    #[test]
    fn what_happens_at_one_moment_each_is_a_history() {
        let history = [
            set(0, 3, 1),
            saw(1, 2, None), // before the insertion has happened
            saw(4, 9, Some(1)),
            replaced(5, 8, Some(1), None),
            saw(6, 7, None),
            saw(10, 11, None),
        ];
        assert_eq!(check(None, &history), Ok(()));
    }

    #[test]
    fn an_old_value_after_a_new_one_was_seen_is_refused() {
        let late = saw(4, 5, None);
        let refused = check(None, &[set(0, 9, 1), saw(1, 3, Some(1)), late]).unwrap_err();
        let told = format!("{late:x?} has no moment; at its end the key had one of [Some(1)]");
        assert!(refused.starts_with(&told), "{refused}");
    }

    #[test]
    fn a_key_that_is_there_all_the_time_is_not_missed() {
        let replacement = replaced(0, 9, Some(1), Some(2));
        assert!(check(Some(1), &[replacement, saw(1, 2, Some(1)), saw(3, 4, Some(2))]).is_ok());
        assert!(check(Some(1), &[replacement, saw(1, 2, None)]).is_err());
    }

    #[test]
    fn a_lost_update_is_refused() {
        let both = [replaced(0, 2, Some(5), Some(6)), replaced(1, 3, Some(5), Some(6))];
        assert!(check(Some(5), &both).is_err());
    }

    #[test]
    fn an_operation_that_is_not_sure_may_have_found_something_else() {
        let unsure = Operation { is_sure: false, ..replaced(0, 3, Some(1), None) };
        assert!(check(Some(1), &[unsure, saw(4, 5, None)]).is_ok());
        assert!(check(Some(2), &[unsure, saw(4, 5, Some(2))]).is_ok());
        assert!(check(Some(1), &[unsure, saw(4, 5, Some(1))]).is_err());
    }

    /// A thread that goes over the map, and gets no CPU for long, finds many values of a key that
    /// others update meanwhile. Each doubled what was possible, and memory was exhausted.
    #[test]
    fn a_walk_that_found_many_values_took_all_memory() {
        let looks = 40;
        let end = 2 * looks + 2;
        let mut history: Vec<_> = (1..=looks).map(|value| saw(0, end, Some(value))).collect();
        for value in 1..=looks {
            let old = (value > 1).then(|| value - 1);
            history.push(replaced(2 * value - 1, 2 * value, old, Some(value)));
        }
        assert_eq!(check(None, &history), Ok(()));
        history.push(saw(0, end, Some(looks + 1)));
        assert!(check(None, &history).is_err());
    }

    /// Whether some order of all operations explains them: tried one by one.
    fn has_an_order(value: Option<u64>, left: &[Operation]) -> bool {
        left.is_empty()
            || (0..left.len()).any(|next| {
                let ends_before = |other: &Operation| other.end < left[next].begin;
                let mut others = left.to_vec();
                others.remove(next);
                !left.iter().any(ends_before)
                    && left[next].apply(value).is_some_and(|after| has_an_order(after, &others))
            })
    }

    #[test]
    fn it_says_what_trying_all_orders_says() {
        let mut state = 3_u64;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 33) % limit
        };
        let mut verdicts = [0; 2];
        for _ in 0..20_000 {
            let count = 2 + below(4) as usize;
            // Moments are places in a shuffled list.
            let mut moments: Vec<u64> = (0..2 * count as u64).collect();
            for at in (1..moments.len()).rev() {
                moments.swap(at, below(at as u64 + 1) as usize);
            }
            let mut value = || below(3).checked_sub(1);
            let history: Vec<Operation> = moments
                .chunks(2)
                .map(|pair| {
                    let (begin, end) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
                    let before = [Before::Was(value()), Before::Present, Before::Was(value())];
                    let after = [After::Same, After::Is(value())];
                    let choice = (begin * 7 + end * 3) as usize;
                    let (before, after) = (before[choice % 3], after[choice % 2]);
                    Operation { begin, end, before, after, is_sure: !choice.is_multiple_of(5) }
                })
                .collect();
            let expected = has_an_order(None, &history);
            assert_eq!(check(None, &history).is_ok(), expected, "{history:?}");
            verdicts[usize::from(expected)] += 1;
        }
        assert!(verdicts.iter().all(|count| *count > 1_000), "{verdicts:?}");
    }
}
