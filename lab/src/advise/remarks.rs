//! What has to be said beside a ranking: what a design was given for nothing, what was left out,
//! what large values cost, and the code of the recommended design.

use bench::advise::KeyIndex;
use bench::units;

use super::rank::Place;
use super::verdict::listed;
use crate::workload::{Kind, Workload};

/// What the ranking does not show by itself.
pub(super) fn disclosures(workload: &Workload, places: &[Place]) -> Vec<String> {
    let mut remarks = Vec::new();
    let of = |index| {
        let has = |place: &&Place| place.design.index == Some(index);
        places.iter().filter(has).map(|place| place.design.name).collect::<Vec<_>>()
    };
    let fixed = of(KeyIndex::Fixed);
    if !fixed.is_empty() {
        remarks.push(format!(
            "A fixed index, for nothing: {} protect each value in its place, behind an index that \
             is filled before the first round and never changes, so that finding a key costs them \
             no synchronisation. A program whose keys come and go has no such index: --churn makes \
             them pay for one.",
            listed(&fixed)
        ));
    }
    let buckets = of(KeyIndex::Buckets);
    if !buckets.is_empty() {
        remarks.push(format!(
            "Buckets: {} have no index of their own in which keys can come and go. Here each is \
             given a hash table of buckets: an updater locks the bucket, copies its list of keys \
             with the change and replaces it, and readers take no lock. The number of buckets \
             stays.",
            listed(&buckets)
        ));
    }
    if workload.churn_percent > 0.0 {
        remarks.push(format!(
            "Left out: {}. Its locks protect values, and none protects the index, so that keys \
             cannot come and go.",
            listed(&bench::advise::left_out_by_churn())
        ));
    }
    let too_small = |design: &&bench::advise::Design| {
        design.value_bytes_max.is_some_and(|most| most < workload.value_bytes as usize)
    };
    let designs = bench::advise::designs(workload.measured());
    let copying: Vec<_> = designs.iter().filter(too_small).map(|design| design.name).collect();
    if !copying.is_empty() {
        remarks.push(format!(
            "Left out: {}. They copy the value for each reader, and are for values of a cache line \
             or so.",
            listed(&copying)
        ));
    }
    if workload.kind == Kind::Queue {
        remarks.push(
            "A stack gives values back in another order than a queue; it is here since a pool does \
             not care."
                .to_owned(),
        );
    }
    remarks
}

/// The program of the recommended design, and what has to be said before it.
pub(super) fn code(choice: &Place) -> (String, &'static str) {
    let name = choice.design.name;
    let head = match choice.design.index {
        Some(KeyIndex::Buckets) => format!(
            "{name} as one place; a table has one for each bucket, with the list of its keys, and \
             a Mutex that its updaters take:"
        ),
        _ => format!("{name} in a program of its own:"),
    };
    (head, choice.design.program)
}

/// Values above this are large: they take more than two cache lines, which CPUs fetch in pairs.
const LARGE_BYTES: u32 = 128;

/// What the size of the values means, where they are large.
pub(super) fn large_values(workload: &Workload) -> Option<String> {
    const LINE_BYTES: u32 = 64;
    let has_values = matches!(workload.kind, Kind::Table | Kind::Config | Kind::Ids);
    if !has_values || workload.value_bytes <= LARGE_BYTES {
        return None;
    }
    let bytes = units::bytes(u64::from(workload.value_bytes));
    let lines = workload.value_bytes.div_ceil(LINE_BYTES);
    Some(format!(
        "Large values: one of {bytes} takes {lines} cache lines. The designs ranked here hand \
         readers a pointer, so that a read costs the words it reads and not the size; an update \
         allocates and fills all of it. Tools that copy the value for each reader (Snapshot, \
         SeqLock, a Mutex around a Copy type) move all {lines} lines each time: they are for \
         values of a line or two. Where updates change one field of a large value, put the field \
         behind a pointer of its own, so that an update copies that field only."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_values_are_explained_and_small_ones_are_not() {
        let of = |value_bytes, kind| {
            large_values(&Workload { value_bytes, kind, ..Workload::built_in() })
        };
        assert_eq!(of(64, Kind::Table), None);
        assert_eq!(of(4096, Kind::Counter), None);
        let text = of(4096, Kind::Config).unwrap();
        assert!(text.contains("4 KiB takes 64 cache lines"), "{text}");
    }
}
