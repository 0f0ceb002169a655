//! `rcu simulate --list`: engines, workloads, costs, and the numbers that can be set.

use bench::units;
use indexmap::IndexMap;
use simulate::cost::Costs;
use simulate::parameter::{Choice, Kind};
use simulate::srcu::VARIANTS;
use simulate::{EngineKind, Workload};

use super::product::{self, NUMBERS, Number};
use super::{costs, srcu};
use crate::output::Output;

/// Prints all of it.
pub(super) fn print(output: &mut Output) {
    output.heading("Engines (--engine)");
    let engines = EngineKind::all();
    let lines = engines.iter().map(|engine| (engine.name(), engine.what()));
    output.entries(lines.chain([(srcu::NAME, srcu::WHAT)]));
    output.heading("Workloads (--workload)");
    let workloads = Workload::all();
    output.entries(workloads.iter().map(|workload| (workload.name(), workload.what())));
    output.heading("Costs (--costs)");
    let presets = Costs::NAMES.iter().map(|name| (*name, "a preset"));
    output.entries(presets.chain([
        ("p3", "the same as p3-xeon-700mhz"),
        (costs::MEASURED, "measured on this machine, now"),
        ("FILE", "what `rcu costs --json FILE` wrote"),
    ]));
    output.heading("Delay functions of SRCU (--variant)");
    output.line(VARIANTS.join(", "));
    output.heading("Numbers (--set NAME=VALUE)");
    output.entries(NUMBERS.machine.iter().map(|number| {
        let value = units::count(product::usual(&number.name));
        (&number.name, format!("{} [machine {value}]", number.what))
    }));
    output.entries(owned(&engines));
    output.entries(owned(&workloads));
    let numbers = NUMBERS.srcu.iter();
    let line = |number: &'static Number| (&number.name, format!("{}: {}", srcu::NAME, number.what));
    output.entries(numbers.map(line));
}

/// Each number once, with all to whom it means the same, and what it is there by default.
fn owned<K: Kind>(owners: &[Choice<K>]) -> Vec<(&'static str, String)> {
    let mut numbers: IndexMap<_, Vec<String>> = IndexMap::new();
    for owner in owners {
        for each in owner.parameters() {
            let own = format!("{} {}", owner.name(), units::count(each.value));
            numbers.entry((each.name, each.what)).or_default().push(own);
        }
    }
    let line = |((name, what), owners): ((_, _), Vec<String>)| {
        (name, format!("{what} [{}]", owners.join(", ")))
    };
    numbers.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_listed_once_with_all_who_have_it() {
        let lines = owned(&Workload::all());
        let bytes: Vec<_> = lines.iter().filter(|(name, _)| *name == "bytes").collect();
        assert_eq!(bytes.len(), 1);
        assert!(bytes[0].1.contains("idle 256") && bytes[0].1.contains("dbench 256"));
    }

    /// Those who read for long had "mean user time before each exit", and who opens and closes
    /// files the "length of a path lookup".
    #[test]
    fn a_number_that_means_something_else_to_some_was_listed_as_that_of_the_first() {
        let lines = owned(&Workload::all());
        let of = |name: &str, owner: &str| {
            let mut lines = lines.iter().filter(|(own, _)| *own == name);
            lines.find(|(_, text)| text.contains(owner)).expect("it has it").1.clone()
        };
        assert!(of("pause_us", "exit-files").contains("before each exit"));
        assert!(!of("pause_us", "long-readers").contains("exit"));
        assert!(of("operation_ns", "dcachebench").contains("lookup"));
        assert!(!of("operation_ns", "open-close").contains("lookup"));
    }
}
