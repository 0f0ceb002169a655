//! Hazard pointers as they stand are safe, and look at all that is retired; each fault is found
//! where the table says.

use check::hazard::{FAULTS, Scenario, explore};
use check::{Kind, Model};

const LIMIT: usize = 4_000_000;

fn scenarios(portable: bool) -> [Scenario; 3] {
    [
        Scenario { reads: [1, 1], updates: 1, portable },
        Scenario { reads: [2, 0], updates: 2, portable },
        Scenario { reads: [0, 1], updates: 3, portable },
    ]
}

#[test]
fn every_scenario_is_safe() {
    for scenario in [false, true].into_iter().flat_map(scenarios) {
        for model in Model::ALL {
            let verdict = explore(scenario, model, None, LIMIT);
            println!("{scenario:?} under {model:?}: {verdict}");
            assert!(verdict.is_safe(), "{scenario:?} under {model:?}: {verdict}");
        }
    }
}

#[test]
fn every_fault_is_found_where_the_table_says() {
    let mut wrong = Vec::new();
    for fault in FAULTS {
        for model in Model::ALL {
            let explored = scenarios(fault.portable)
                .map(|scenario| explore(scenario, model, Some(fault.mutant), LIMIT));
            let unsafe_in = explored.iter().find(|verdict| !verdict.is_safe());
            let verdict = unsafe_in.unwrap_or(&explored[0]);
            println!("{:?} under {model:?}: {verdict}\n", fault.mutant);
            if !fault.models.agree(Kind::Unsafe, model, verdict) {
                wrong.push(format!("{:?} under {model:?}: {verdict}", fault.mutant));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
