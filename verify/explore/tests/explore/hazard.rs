//! Hazard pointers as they stand are safe, and free all that is retired; each fault is found where
//! the table says. The same of those of `compat`.

use check::compat_hazard;
use check::harness::{World, harm_of_harmless_faults, unsafe_scenarios, wrong_faults};
use check::hazard::Hazard;

const LIMIT: usize = 4_000_000;

fn every_scenario_is_safe<W: World>() {
    let found = unsafe_scenarios::<W>(LIMIT, |_, _| true);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn every_fault_is_found_where_the_table_says<W: World>() {
    let wrong = wrong_faults::<W>(LIMIT, |_, _| true);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn harmless_faults_are_harmless_in_every_scenario<W: World>() {
    let harm = harm_of_harmless_faults::<W>(LIMIT, |_, _| true);
    assert!(harm.is_empty(), "{}", harm.join("\n"));
}

macro_rules! tests {
    ($($module:ident: $world:ty;)*) => {
        $(mod $module {
            #[test]
            fn every_scenario_is_safe() {
                super::every_scenario_is_safe::<$world>();
            }

            #[test]
            fn every_fault_is_found_where_the_table_says() {
                super::every_fault_is_found_where_the_table_says::<$world>();
            }

            #[test]
            fn harmless_faults_are_harmless_in_every_scenario() {
                super::harmless_faults_are_harmless_in_every_scenario::<$world>();
            }
        })*
    };
}

tests! {
    library: super::Hazard;
    compat: super::compat_hazard::Hazard;
}
