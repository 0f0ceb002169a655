//! Curves over threads: every design from few threads to many, in three workloads. What scales and
//! what does not shows in their shape, where a ranking has one number of threads.

use std::sync::Arc;

use bench::units;

use super::race::Track;
use super::run::{Keys, Run};
use super::sweep::{Over, Sweep};
use crate::workload::{Kind, Workload};

/// Up to so many numbers of threads each is run; of more, each is twice the one before.
const EACH_MAX: u32 = 8;

/// Reads in the mixed workload, in per cent.
const MIXED_PERCENT: f64 = 90.0;

/// The curves of a workload.
#[derive(Clone, Debug, serde::Serialize)]
pub(super) struct Curves {
    /// `read only`, `mixed`, or `large`.
    pub(super) load: &'static str,
    pub(super) reads_percent: f64,
    pub(super) keys: u64,
    #[serde(flatten)]
    pub(super) sweep: Sweep,
}

impl Curves {
    pub(super) fn title(&self) -> String {
        let Curves { load, reads_percent, keys, .. } = self;
        let (reads, keys) = (units::percent(*reads_percent), units::count(*keys));
        format!("Curves, {load}: {reads} % reads, {keys} keys; millions of operations per second")
    }
}

/// The numbers of threads of a range, the first and the last among them.
fn counts(from: u32, to: u32) -> Vec<u32> {
    if to - from < EACH_MAX {
        return (from..=to).collect();
    }
    let doubled = std::iter::successors(Some(from), |count| count.checked_mul(2));
    doubled.take_while(|count| *count < to).chain([to]).collect()
}

impl Run<'_> {
    /// Races all designs at each number of threads of the range, if one is given; after Ctrl-C, and
    /// where `--quick` has no time left, with the points that are whole. Without it all points are
    /// run, however long they take.
    pub(super) fn curves(&self, track: &mut Track<'_, '_>) {
        let Some(from) = self.workload.threads_from() else { return };
        track.deadline = track.deadline.filter(|_| self.args.quick);
        for (load, workload, keys) in loads(&self.workload, &self.tables()) {
            let plan = self.plan(&keys, &workload);
            let mut contenders = track.prepare(workload.measured(), &[], &plan);
            let counts = counts(from, workload.threads).into_iter().map(f64::from);
            let (over, load_of) = ((Over::Threads, counts), (&workload, &keys));
            let points = self.points(over, load_of, &mut contenders, track);
            let sweep = Sweep { over: Over::Threads, own: workload.threads.into(), points };
            let (reads_percent, keys) = (workload.reads_percent, keys.len() as u64);
            track.report.curves.push(Curves { load, reads_percent, keys, sweep });
        }
    }

    /// How many points all curves have.
    pub(super) fn curve_points(&self) -> u32 {
        let loads = loads(&self.workload, &self.tables()).len();
        let points = |from| counts(from, self.workload.threads).len() * loads;
        self.workload.threads_from().map_or(0, points) as u32
    }
}

/// The workloads: read only and mixed with the first table; as given with a second one, which is
/// there unless keys are given. A queue is always mixed.
fn loads(own: &Workload, tables: &[Keys]) -> Vec<(&'static str, Workload, Keys)> {
    let reading = |reads_percent| Workload { reads_percent, ..own.clone() };
    if own.kind == Kind::Queue {
        return vec![("mixed", own.clone(), Arc::clone(&tables[0]))];
    }
    let loads = [("read only", reading(100.0)), ("mixed", reading(MIXED_PERCENT))];
    let mut loads: Vec<_> =
        loads.into_iter().map(|(name, load)| (name, load, Arc::clone(&tables[0]))).collect();
    if let [_, large] = tables {
        loads.push(("large", own.clone(), Arc::clone(large)));
    }
    loads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_range_has_each_number_and_a_long_one_each_doubled() {
        assert_eq!(counts(1, 4), [1, 2, 3, 4]);
        assert_eq!(counts(2, 9), [2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(counts(1, 24), [1, 2, 4, 8, 16, 24]);
        assert_eq!(counts(1, 1024).len(), 11);
    }

    #[test]
    fn a_second_table_is_raced_as_given_and_a_queue_is_always_mixed() {
        let tables = [1, 5].map(|keys| -> Keys { vec![Box::from(*b"key"); keys].into() });
        let own = Workload::built_in();
        let of = |own: &Workload, tables: &[Keys]| -> Vec<_> {
            let loads = loads(own, tables).into_iter();
            loads.map(|(name, load, keys)| (name, load.reads_percent, keys.len())).collect()
        };
        let expected = [("read only", 100.0, 1), ("mixed", 90.0, 1), ("large", 99.0, 5)];
        assert_eq!(of(&own, &tables), expected);
        assert_eq!(of(&own, &tables[..1]), expected[..2]);
        let queue = Workload { kind: Kind::Queue, reads_percent: 50.0, ..own };
        assert_eq!(of(&queue, &tables[..1]), [("mixed", 50.0, 1)]);
    }
}
