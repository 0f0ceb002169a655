//! What single insertions take while a map grows from nothing, each timed by itself.

use std::ops::Range;

use hdrhistogram::Histogram;

use super::{Key, Keys, Kinds, Map, recorded};
use crate::cases::object::in_turn;
use crate::clock::{TICKS_MAX, histogram, ns_of, ticks};
use crate::sample::Sample;
use crate::slices::{Cue, Scene};

/// Inserts so many entries into an empty map that was made with no room for them, a part of them
/// in each thread. Nanoseconds that one insertion in a thousand exceeds, those of the longest, and
/// insertions by the second.
///
/// One measurement at a time in a process; others wait.
pub(crate) fn measure(kinds: Kinds, keys: Keys, entries: u64, threads: usize) -> Sample {
    in_turn(|| {
        // What has to begin with the first entries of all begins with those of another map.
        let warm_up = kinds.make(keys, 0);
        warm_up.fill(0..1000);
        drop(warm_up);
        let table = kinds.make(keys, 0);
        let each = entries.div_ceil(threads as u64);
        let part = |number: usize| {
            let first = each * number as u64;
            first.min(entries)..(first + each).min(entries)
        };
        let scene = Scene::of(threads, |number: usize, cue: &Cue<'_>| {
            let mut ticks = histogram(TICKS_MAX);
            cue.work(|_| {
                table.fill_timed(part(number), &mut ticks);
                ticks
            })
        });
        let all = recorded(&scene);
        assert_eq!(all.len(), entries, "each insertion is recorded");
        // The last threads may have a smaller part.
        let [per_second, _] = scene.speed(entries as f64 / threads as f64);
        let [p99_9_ns, worst_ns] = [all.value_at_quantile(0.999), all.max()].map(ns_of);
        Sample::new([p99_9_ns, worst_ns, per_second], scene.judged())
    })
}

/// The loop, compiled once for each map.
pub(super) fn fill<K: Key, M: Map<K>>(map: &M, numbers: Range<u64>, took: &mut Histogram<u64>) {
    let mut thread = map.thread();
    let mut key = K::default();
    for number in numbers {
        key.set(number);
        let begin = ticks();
        let is_new = map.insert(&mut thread, &key, number);
        took.saturating_record(ticks().saturating_sub(begin));
        assert!(is_new, "numbers have different keys");
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::with;
    use super::*;

    #[test]
    fn every_map_grows_and_the_worst_insertion_is_not_the_best() {
        for (name, kinds, keys, threads) in with([(Keys::Words, 1), (Keys::Strings, 2)]) {
            let seen = measure(kinds, keys, 3001, threads);
            let [p99_9_ns, worst_ns, per_second] = seen.values[..] else { unreachable!() };
            assert!(worst_ns >= p99_9_ns, "{name}: {seen:?}");
            assert!(p99_9_ns > 0.0 && worst_ns.is_finite(), "{name}");
            assert!(per_second > 0.0, "{name}: {seen:?}");
        }
    }
}
