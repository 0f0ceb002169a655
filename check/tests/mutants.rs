//! Each mutant is found where its entry says so, and nowhere else in that scenario.

use check::{Kind, MUTANTS, Model, Models, Verdict, explore, scenarios};

const LIMIT: usize = 5_000_000;

#[test]
fn every_mutant_is_found_where_the_table_says() {
    let mut wrong = Vec::new();
    for fault in MUTANTS {
        let scenario = scenarios::named(fault.scenario).expect("the table names a scenario");
        for model in Model::ALL {
            let verdict = explore(&scenario, model, Some(fault.mutant), LIMIT);
            println!("{} under {model:?}: {verdict}\n", fault.name);
            if !fault.models.agree(fault.kind, model, &verdict) {
                wrong.push(format!("{} under {model:?}: {verdict}", fault.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn harmless_mutants_are_harmless_in_every_scenario() {
    for fault in MUTANTS.iter().filter(|fault| fault.kind == Kind::Harmless) {
        assert_eq!(fault.models, Models::Neither);
        // The biggest are left to `examples/exhaustive`: the rest has every step in it.
        let big =
            ["two-holdouts", "sleeping-updaters", "hand-over", "vanished", "stopped-half-way"];
        for scenario in scenarios::quick().iter().filter(|scenario| !big.contains(&&*scenario.name))
        {
            let verdict = explore(scenario, Model::Weak, Some(fault.mutant), LIMIT);
            assert!(verdict.is_safe(), "{} in {}: {verdict}", fault.name, scenario.name);
        }
    }
}

#[test]
fn a_trace_reads_step_by_step() {
    let scenario = scenarios::named("one-reader").expect("it exists");
    let mutant = check::Mutant::NoHeavyFence;
    let Verdict::Violation { what, trace } = explore(&scenario, Model::Tso, Some(mutant), LIMIT)
    else {
        panic!("the missing fence is found")
    };
    assert_eq!(what, "object 0 is read after it was freed");
    assert_eq!(trace.first().map(String::as_str), Some("reader: load gp.ctr: 0x1"));
    assert_eq!(trace.last().map(String::as_str), Some("reader: reads object 0"));
}
