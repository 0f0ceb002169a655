//! What has to be said beside a ranking: what a design was given for nothing, what was left out,
//! what large values cost, and the code of the recommended design.

use bench::advise::{Design, KeyIndex};
use bench::units;
use quiescence::tuning::{Fences, fences};

use super::TEXTS;
use super::rank::Place;
use super::verdict::listed;
use crate::workload::{Kind, Workload};

/// What the ranking does not show by itself.
pub(super) fn disclosures(workload: &Workload, places: &[Place]) -> Vec<String> {
    let of = |has: &dyn Fn(&Design) -> bool| {
        let those = places.iter().filter(|place| has(place.design));
        those.map(|place| place.design.name).collect::<Vec<_>>()
    };
    let too_small = |design: &&Design| {
        design.value_bytes_max.is_some_and(|most| most < workload.value_bytes as usize)
    };
    let designs = bench::advise::designs(workload.measured());
    let copying: Vec<_> = designs.iter().filter(too_small).map(|design| design.name).collect();
    let is_churned = workload.churn_percent > 0.0;
    let churned = if is_churned { bench::advise::left_out_by_churn() } else { Vec::new() };
    let of_designs = [
        ("fixed-index", of(&|one| one.index == Some(KeyIndex::Fixed))),
        ("buckets", of(&|one| one.index == Some(KeyIndex::Buckets))),
        ("left-out-by-churn", churned),
        ("copying", copying),
        ("portable", of(&|one| one.ours && fences() == Fences::Portable)),
    ];
    let of_designs = of_designs.into_iter().filter(|(_, names)| !names.is_empty());
    let of_designs =
        of_designs.map(|(text, names)| TEXTS[text].replace("{names}", &listed(&names)));
    let of_queues = (workload.kind == Kind::Queue).then(|| TEXTS["stack"].clone());
    of_designs.chain(of_queues).collect()
}

/// The program of the recommended design, and what has to be said before it.
pub(super) fn code(choice: &Place) -> (String, &'static str) {
    let (name, program) = (choice.design.name, choice.design.program);
    let path = if program.contains("PATH/") { " (PATH: a clone of this repository)" } else { "" };
    let index = match choice.design.index {
        Some(KeyIndex::Buckets) => "bucket, with the list of its keys, and a Mutex for updaters",
        Some(KeyIndex::Fixed) => "key, in a map that does not change",
        _ => return (format!("{name} in a program of its own{path}:"), program),
    };
    (format!("{name} as a single cell; a table has one for each {index}{path}:"), program)
}

/// Values above this are large: they take more than two cache lines, which CPUs fetch in pairs.
const LARGE_BYTES: u32 = 128;

/// What the size of the values means, where they are large.
pub(super) fn large_values(workload: &Workload) -> Option<String> {
    const LINE_BYTES: u32 = 64;
    let has_values = !matches!(workload.kind, Kind::Counter | Kind::Queue);
    if !has_values || workload.value_bytes <= LARGE_BYTES {
        return None;
    }
    let bytes = units::bytes(u64::from(workload.value_bytes));
    let lines = workload.value_bytes.div_ceil(LINE_BYTES).to_string();
    Some(TEXTS["large-values"].replace("{bytes}", &bytes).replace("{lines}", &lines))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::rank::tests::place;

    #[test]
    fn a_remark_names_whom_it_is_of() {
        let of = |workload: Workload| {
            let designs = bench::advise::designs(workload.measured());
            let of_design = |design| Place { design, ..place("std-mutex", 1, 1.0) };
            let places: Vec<Place> = designs.iter().map(of_design).collect();
            disclosures(&workload, &places).join(" ")
        };
        let workload = |kind, value_bytes, churn_percent| {
            of(Workload { kind, value_bytes, churn_percent, ..Workload::built_in() })
        };
        let all = [
            (workload(Kind::Table, 64, 0.0), "A fixed index, free of charge: "),
            (workload(Kind::Table, 64, 5.0), "Left out: mutex-per-value. Its locks"),
            (workload(Kind::Table, 64, 5.0), "Buckets: "),
            (workload(Kind::Config, 4096, 0.0), ". They copy the value for each reader"),
            (workload(Kind::Queue, 64, 0.0), "A stack returns values in a different order"),
        ];
        for (text, expected) in all {
            assert!(text.contains(expected) && !text.contains('{'), "{expected}: {text}");
        }
    }

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
