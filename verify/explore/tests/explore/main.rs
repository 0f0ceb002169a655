//! What the explorer finds, and what it must not find.

use std::collections::BTreeSet;

use check::harness::{World, scenarios_of};
use check::srcu::{Mutant, Scenario};
use check::{Fault, Kind, Model, Verdict};
use serde::Deserialize;
use serde::de::value::{Error, StrDeserializer};

mod engines;
#[path = "../../src/fingerprint.rs"]
mod fingerprint;
mod limit;
mod litmus;
mod mutants;
mod protocol;
mod rseq_read;
mod srcu;

/// Far above what any of these needs: reaching it is a failure.
const LIMIT: usize = 5_000_000;

/// What is asked of a world of which all is explored.
macro_rules! whole {
    ($($module:ident: $world:ty;)*) => {
        $(mod $module {
            #[test]
            fn every_scenario_is_safe() {
                super::none(&super::unsafe_scenarios::<$world>(super::LIMIT, |_, _| true));
            }

            #[test]
            fn every_fault_is_found_where_the_table_says() {
                super::none(&super::wrong_faults::<$world>(super::LIMIT, |_, _, _| true));
            }

            #[test]
            #[ignore = "no promise hangs on it: .ci/models"]
            fn harmless_faults_are_harmless_in_every_scenario() {
                super::none(&super::harm_of_harmless_faults::<$world>(super::LIMIT, |_, _| true));
            }
        })*
    };
}

whole! {
    hazard: check::hazard::Hazard;
    limits: check::limit::Limited;
    sequence: check::sequence::Sequence;
}

/// Explores all scenarios, without a mutant or with one. Returns those that are not safe, with what
/// was found.
fn unsafe_with<W: World>(
    mutant: Option<W::Mutant>,
    limit: usize,
    is_asked: impl Fn(&W::Scenario, Model) -> bool,
) -> Vec<String> {
    let mut found = Vec::new();
    for scenario in &W::table().scenario {
        for model in W::MODELS.iter().copied().filter(|model| is_asked(scenario, *model)) {
            let verdict = W::explore(scenario, model, mutant, limit);
            let told = format!("{} under {model:?}: {verdict}", W::scenario_name(scenario));
            println!("{told}");
            if !verdict.is_safe() {
                found.push(told);
            }
        }
    }
    found
}

fn unsafe_scenarios<W: World>(
    limit: usize,
    is_asked: impl Fn(&W::Scenario, Model) -> bool,
) -> Vec<String> {
    unsafe_with::<W>(None, limit, is_asked)
}

/// Explores each harmless fault in all scenarios. Returns those where it does harm.
fn harm_of_harmless_faults<W: World>(
    limit: usize,
    is_asked: impl Fn(&W::Scenario, Model) -> bool,
) -> Vec<String> {
    let harmless = W::table().fault.iter().filter(|fault| fault.kind == Kind::Harmless);
    let harm = harmless.flat_map(|fault| {
        let found = unsafe_with::<W>(Some(fault.mutant), limit, &is_asked);
        found.into_iter().map(|told| format!("{} in {told}", W::mutant_name(fault.mutant)))
    });
    harm.collect()
}

/// Explores each fault in its scenarios. Returns what is not as the table says: faults of which
/// something else comes, and those that do harm and are found under none of the models.
fn wrong_faults<W: World>(
    limit: usize,
    is_asked: impl Fn(&Fault<W::Mutant>, &W::Scenario, Model) -> bool,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (fault, scenario) in
        W::table().fault.iter().flat_map(|fault| scenarios_of::<W>(fault).map(move |s| (fault, s)))
    {
        let mut verdicts = Vec::new();
        let name = W::mutant_name(fault.mutant);
        for model in W::MODELS.iter().copied().filter(|model| is_asked(fault, scenario, *model)) {
            let verdict = W::explore(scenario, model, Some(fault.mutant), limit);
            let place = W::scenario_name(scenario);
            let told = format!("{name} in {place} under {model:?}: {verdict}");
            println!("{told}\n");
            if !fault.agrees(model, &verdict) {
                wrong.push(told);
            }
            verdicts.push(verdict);
        }
        let is_found = verdicts.iter().any(Verdict::is_fault);
        if !verdicts.is_empty() && !is_found && fault.kind != Kind::Harmless {
            wrong.push(format!("{name} is not found"));
        }
    }
    wrong
}

fn none(found: &[String]) {
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A violation is found, and its trace reads step by step.
fn reads(verdict: Verdict, violation: &str, first: &str, last: &str) {
    let Verdict::Violation { what, trace } = verdict else { panic!("{verdict}") };
    assert_eq!(what, violation);
    assert_eq!((&*trace[0], &**trace.last().unwrap()), (first, last));
}

/// The names of the mutants of a world, as its table writes them.
fn mutants_of<W: World<Mutant: Deserialize<'static>>>() -> Vec<String> {
    let unknown = W::Mutant::deserialize(StrDeserializer::<Error>::new("")).unwrap_err();
    unknown.to_string().split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

/// Each mutant is in the table of its world, and each row of it says something.
fn each_is_known<W: World<Mutant: Deserialize<'static>>>() {
    let mutants = mutants_of::<W>();
    assert!(mutants.len() > 10, "{mutants:?}");
    for name in mutants.iter().filter(|name| *name != "omitted") {
        let mutant = W::Mutant::deserialize(StrDeserializer::<Error>::new(name)).unwrap();
        assert!(W::table().fault.iter().any(|fault| fault.mutant == mutant), "{name}");
    }
    for fault in &W::table().fault {
        assert!(!fault.scenarios.is_empty(), "{:?} is explored nowhere", fault.mutant);
        assert!(fault.kind != Kind::Harmless || !fault.weak_only, "{:?}", fault.mutant);
    }
}

#[test]
fn every_mutant_is_in_a_table() {
    each_is_known::<check::GracePeriods>();
    each_is_known::<check::limit::Limited>();
}

/// Else a name that is not spelt right would leave a program as it is: a world's programs ask for
/// names of its own table.
#[test]
fn programs_ask_for_the_mutants_and_conditions_of_their_tables_and_no_others() {
    let worlds = [
        names_of::<check::hazard::Hazard>("hazard-"),
        names_of::<check::rseq_read::Restart>("restart-"),
        names_of::<check::sequence::Sequence>(""),
        names_of::<check::srcu::SrcuProtocol>("srcu-"),
    ];
    let common = asked_in("common");
    let (mut beside, mut listed) = (BTreeSet::new(), BTreeSet::new());
    for [own, known] in worlds {
        let unknown: Vec<_> = own.difference(&known).collect();
        assert!(unknown.is_empty(), "its table does not have {unknown:?}");
        // What the machine leaves out, and what a kernel does not do, is asked for in no text.
        let left = known.iter().filter(|name| !own.contains(*name) && !common.contains(*name));
        beside.extend(left.filter(|name| !name.starts_with("without-")).cloned());
        listed.extend(known);
    }
    assert!(common.is_subset(&listed), "{:?}", common.difference(&listed));
    let of_kernels = ["no-abort-at-preemption", "no-abort-by-signal", "unmapped-at-once"];
    assert_eq!(beside, BTreeSet::from(of_kernels.map(str::to_owned)));
}

/// The names in a text's conditions and orders.
fn asked_in(program: &str) -> BTreeSet<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/worlds/programs");
    let text = std::fs::read_to_string(format!("{folder}/{program}.txt")).unwrap();
    let words =
        text.lines().filter_map(|line| line.split('#').next()).flat_map(str::split_whitespace);
    let conditions = words.filter_map(|word| word.split_once(['?', '!', '/'])).map(|(_, of)| of);
    let names = conditions.flat_map(|of| of.split('|')).filter(|name| !name.contains('='));
    names.map(str::to_owned).collect()
}

/// The names that a world's programs ask for, and those that its table has.
fn names_of<W: World<Mutant = Mutant, Scenario = Scenario>>(prefix: &str) -> [BTreeSet<String>; 2] {
    let table = W::table();
    let asked = table.scenario.iter().flat_map(|scenario| asked_in(scenario.program));
    let mutants = table.fault.iter().map(|fault| fault.mutant.0);
    let mutants = mutants.map(|name| name.strip_prefix(prefix).unwrap_or(name));
    let holds = table.scenario.iter().flat_map(|scenario| scenario.holds.iter().copied());
    [asked.collect(), mutants.chain(holds).map(str::to_owned).collect()]
}
