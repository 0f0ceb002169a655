//! SRCU as it stands is safe and cannot get stuck; each fault is found where the table says.

use std::collections::BTreeSet;

use check::srcu::{Asked, SRCU, explore_alone};
use check::{Explored, Model, Verdict};
use grace::srcu::{AdaptiveDelay, AnyDelay, Published, STEPS, Sequence};

use super::{LIMIT, harm_of_harmless_faults, unsafe_scenarios, wrong_faults};

/// Takes half a minute under the weak model.
const BIG: &str = "crossing";

fn is_quick(scenario: &dyn Explored, model: Model) -> bool {
    scenario.name() != BIG || model == Model::Tso
}

#[test]
fn every_scenario_is_safe() {
    super::none(&unsafe_scenarios(&SRCU, LIMIT, is_quick));
}

#[test]
#[ignore = "half a minute"]
fn the_big_scenario_is_safe_under_weaker_memory() {
    let scenario = SRCU.named(BIG).expect("it exists");
    let verdict = scenario.explore(Model::Weak, None, LIMIT);
    assert!(verdict.is_safe(), "{verdict}");
}

#[test]
fn every_fault_is_found_where_the_table_says() {
    super::none(&wrong_faults(&SRCU, LIMIT, |_, _, _| true));
}

#[test]
#[ignore = "no promise hangs on it: .ci/models"]
fn harmless_faults_are_harmless_in_every_scenario() {
    super::none(&harm_of_harmless_faults(&SRCU, LIMIT, |scenario, _| scenario.name() != BIG));
}

#[test]
fn the_table_has_every_step_of_the_machine() {
    let faults = SRCU.faults.iter();
    let listed = faults.filter_map(|fault| fault.mutant.strip_prefix("srcu-without-"));
    assert_eq!(listed.collect::<BTreeSet<_>>(), STEPS.iter().copied().collect());
}

#[test]
fn a_trace_reads_step_by_step() {
    let scenario = SRCU.named("one-reader").expect("it exists");
    let verdict = scenario.explore(Model::Tso, Some("srcu-without-second-scan"), LIMIT);
    super::reads(
        verdict,
        "object 0 is touched by a reader after it was freed",
        "reader 0 on cpu 0: loads srcu-idx: 0",
        "reader 0 on cpu 0: touches object 0",
    );
}

#[test]
fn too_many_states_are_said_to_be_so() {
    let scenario = SRCU.named("one-reader").expect("it exists");
    assert_eq!(scenario.explore(Model::Tso, None, 10), Verdict::LimitReached);
}

/// Three requests and three ticks, right before the sequence wraps.
fn asked(delay: AnyDelay) -> Asked {
    let start = Sequence::after(u64::MAX >> 2);
    Asked { delay, omitted: None, start, requests: 3, ticks: 3 }
}

#[test]
fn the_machine_by_itself_serves_every_request_under_each_delay_function() {
    let few_looks = Published { no_delay_per_phase_max: Some(6), ..Published::final_at(250) };
    let few_runs = Published { runs_per_jiffy_max: Some(3), ..Published::BLOCK_REMOVED };
    let published =
        [Published::V5_18, Published::V5_19_RC1, Published::FIRST_DIFF, few_runs, few_looks];
    let adaptive = AdaptiveDelay { nap_us: 1_000, wait_jiffies_max: 2, ..AdaptiveDelay::at(250) };
    let delays =
        published.map(AnyDelay::Published).into_iter().chain([AnyDelay::Adaptive(adaptive)]);
    for delay in delays {
        let verdict = explore_alone(&asked(delay), LIMIT);
        println!("{delay:?}: {verdict}");
        assert!(verdict.is_safe(), "{delay:?}: {verdict}");
    }
}

#[test]
fn the_machine_by_itself_misses_what_it_is_about() {
    for step in STEPS {
        let delay = AnyDelay::Published(Published::V5_19_RC1);
        let verdict = explore_alone(&Asked { omitted: Some(step), ..asked(delay) }, LIMIT);
        println!("{step}: {verdict}\n");
        let matters = matches!(*step, "serve-later" | "requeue" | "begin-next");
        assert_eq!(verdict.is_fault(), matters, "{step}: {verdict}");
    }
}
