//! What the explorer finds, and what it must not find.

use std::collections::BTreeSet;

use check::{Explored, Fault, Kind, Model, Verdict, World};

mod any_order;
#[allow(dead_code, reason = "the explorer goes through all answers")]
#[path = "../../src/choice.rs"]
mod choice;
#[allow(unreachable_pub, reason = "it is the library's")]
#[path = "../../src/engines/cpus.rs"]
mod cpus;
mod engines;
#[path = "../../src/fingerprint.rs"]
mod fingerprint;
mod limit;
mod litmus;
mod mutants;
mod protocol;
mod rseq_read;
mod srcu;
#[allow(dead_code, reason = "the explorer asks for more")]
#[path = "../../src/system.rs"]
mod system;

/// Far above what any of these needs: reaching it is a failure.
const LIMIT: usize = 5_000_000;

/// What is asked of a world of which all is explored.
macro_rules! whole {
    ($($module:ident: $world:expr;)*) => {
        $(mod $module {
            #[test]
            fn every_scenario_is_safe() {
                super::none(&super::unsafe_with(&$world, None, super::LIMIT, |_, _| true));
            }

            #[test]
            fn every_fault_is_found_where_the_table_says() {
                super::none(&super::wrong_faults(&$world, super::LIMIT, |_, _, _| true));
            }

            #[test]
            #[ignore = "no promise hangs on it: .ci/models"]
            fn harmless_faults_are_harmless_in_every_scenario() {
                super::none(&super::harm_of_harmless_faults(&$world, super::LIMIT, |_, _| true));
            }
        })*
    };
}

whole! {
    hazard: check::hazard::HAZARD;
    limits: check::limit::LIMITED;
    sequence: check::sequence::SEQUENCE;
}

/// Explores all scenarios, without a mutant or with one. Returns those that are not safe, with what
/// was found.
fn unsafe_with(
    world: &World,
    mutant: Option<&'static str>,
    limit: usize,
    is_asked: impl Fn(&dyn Explored, Model) -> bool,
) -> Vec<String> {
    let mut found = Vec::new();
    for scenario in &world.scenarios {
        for model in world.models.iter().copied().filter(|model| is_asked(&**scenario, *model)) {
            let verdict = scenario.explore(model, mutant, limit);
            let told = format!("{} under {model:?}: {verdict}", scenario.name());
            println!("{told}");
            if !verdict.is_safe() {
                found.push(told);
            }
        }
    }
    found
}

/// Explores each harmless fault in all scenarios. Returns those where it does harm.
fn harm_of_harmless_faults(
    world: &World,
    limit: usize,
    is_asked: impl Fn(&dyn Explored, Model) -> bool,
) -> Vec<String> {
    let harmless = world.faults.iter().filter(|fault| fault.kind == Kind::Harmless);
    let harm = harmless.flat_map(|fault| {
        let found = unsafe_with(world, Some(fault.mutant), limit, &is_asked);
        found.into_iter().map(|told| format!("{} in {told}", fault.mutant))
    });
    harm.collect()
}

/// Explores each fault in its scenarios. Returns what is not as the table says: faults of which
/// something else comes, and those that do harm and are found under none of the models.
fn wrong_faults(
    world: &World,
    limit: usize,
    is_asked: impl Fn(&Fault, &dyn Explored, Model) -> bool,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (fault, scenario) in world
        .faults
        .iter()
        .flat_map(|fault| world.scenarios_of(fault).map(move |scenario| (fault, scenario)))
    {
        let mut verdicts = Vec::new();
        let (name, place) = (fault.mutant, scenario.name());
        for model in world.models.iter().copied().filter(|model| is_asked(fault, scenario, *model))
        {
            let verdict = scenario.explore(model, Some(name), limit);
            let told = format!("{name} in {place} under {model:?}: {verdict}");
            println!("{told}\n");
            if !fault.agrees(model, &verdict) {
                wrong.push(told);
            }
            verdicts.push(verdict);
        }
        let is_found = verdicts.iter().any(|one| !one.is_safe() && *one != Verdict::LimitReached);
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

#[test]
fn each_row_of_a_table_says_something() {
    for world in check::catalogue::worlds() {
        assert!(world.faults.len() > 10, "{world:?}");
        for fault in &world.faults {
            assert!(!fault.scenarios.is_empty(), "{} is explored nowhere", fault.mutant);
            assert!(fault.kind != Kind::Harmless || !fault.weak_only, "{}", fault.mutant);
        }
    }
}

/// Else a name that is not spelt right would leave a step where it is, and be called harmless.
#[test]
fn transcriptions_ask_for_the_mutants_of_their_tables_and_no_others() {
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let asked_by = |files: &[&str]| -> BTreeSet<String> {
        let read = |file: &&str| std::fs::read_to_string(format!("{sources}/{file}")).unwrap();
        let text: String = files.iter().map(read).collect();
        let is_letter = |letter: char| letter.is_ascii_lowercase() || letter == '-';
        let texts = text.lines().filter(|line| !line.trim_start().starts_with(['/', '#']));
        let texts = texts.flat_map(|line| line.split('"').skip(1).step_by(2));
        let names = texts.filter(|text| text.contains('-') && text.chars().all(is_letter));
        names.map(str::to_owned).collect()
    };
    let known = |world: &World, prefix| -> BTreeSet<String> {
        let names = world.faults.iter().map(|fault| fault.mutant.strip_prefix(prefix));
        names.map(|name| name.expect("it begins so").to_owned()).collect()
    };
    let of_grace_periods = [
        "scenario.rs",
        "world/mod.rs",
        "world/driver.rs",
        "world/reader.rs",
        "world/sleeper.rs",
        "world/updater.rs",
    ];
    assert_eq!(asked_by(&of_grace_periods), known(&check::GRACE_PERIODS, ""));
    let of_the_limit = ["limit/retire.rs", "limit/run.rs", "limit/world.rs"];
    assert_eq!(asked_by(&of_the_limit), known(&check::limit::LIMITED, "limit-"));
}

/// The same of texts: a world's programs ask for names of its own table.
#[test]
fn programs_ask_for_the_mutants_and_conditions_of_their_tables_and_no_others() {
    let mut worlds = [
        names_of("hazard", "hazard-"),
        names_of("rseq_read", "restart-"),
        names_of("sequence", ""),
        names_of("srcu", "srcu-"),
    ];
    worlds[0][1].insert("portable".to_owned()); // of each scenario's copy
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
fn names_of(world: &str, prefix: &str) -> [BTreeSet<String>; 2] {
    let path = format!("{}/worlds/{world}.toml", env!("CARGO_MANIFEST_DIR"));
    let table: toml::Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
    let rows = |list: &str| table[list].as_array().unwrap().clone();
    let name = |value: &toml::Value| value.as_str().unwrap().to_owned();
    let asked = rows("scenario").into_iter().flat_map(|row| asked_in(&name(&row["program"])));
    let mutants = rows("fault").into_iter().map(|row| name(&row["mutant"]));
    let mutants = mutants.map(|name| name.strip_prefix(prefix).unwrap_or(&name).to_owned());
    let holds = rows("scenario").into_iter().filter_map(|row| row.get("holds").cloned());
    let holds =
        holds.flat_map(|holds| holds.as_array().unwrap().iter().map(name).collect::<Vec<_>>());
    [asked.collect(), mutants.chain(holds).collect()]
}
