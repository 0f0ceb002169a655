//! What the explorer finds, and what it must not find.

use check::harness::{World, harm_of_harmless_faults, unsafe_scenarios, wrong_faults};
use check::{Kind, Verdict};
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
    each_is_known::<check::hazard::Hazard>();
    each_is_known::<check::limit::Limited>();
    each_is_known::<check::rseq_read::Restart>();
    each_is_known::<check::sequence::Sequence>();
    each_is_known::<check::srcu::SrcuProtocol>();
}
