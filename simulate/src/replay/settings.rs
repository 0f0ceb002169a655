//! What else was published: how experiments were set up, and how much their runs differ.
//!
//! Set-ups are inputs of the models. How much runs on a real machine differ is not modelled: a
//! model has one course of events for each seed, and what differs on a machine (where pages lie,
//! what runs besides) is not in it.

use super::Row;

/// The rows of settings and spreads, of all publications.
pub fn rows() -> Vec<Row> {
    const NO_SPREAD: &str = "how runs differ on a real machine is not in the model";
    let spreads = [
        ("rcu-ltimer cpu_sd", 0.05, "%"),
        ("rcu-ltimer ms_sd", 0.01, "ms"),
        ("rcu-poll-per-cpu cpu_sd", 0.13, "%"),
        ("rcu-poll-per-cpu ms_sd", 0.03, "ms"),
        ("rcu-sched cpu_sd", 0.20, "%"),
        ("rcu-sched ms_sd", 0.02, "ms"),
    ];
    let settings = [
        ("lwn2014", "cond_resched_period", 256.0, "calls", "the default of the engine tree-v0"),
        ("lkml2022.srcu", "loop_from", 1_000.0, "calls", "the loop is of 9,000 - 1,000 calls"),
        ("lkml2022.srcu", "loop_to", 9_000.0, "calls", "the loop is of 9,000 - 1,000 calls"),
    ];
    let spread =
        |(figure, sd, unit)| Row::not_modelled("usenix2003.table3", figure, (sd, unit), NO_SPREAD);
    let setting =
        |(source, figure, value, unit, purpose)| Row::input(source, figure, (value, unit), purpose);
    spreads.into_iter().map(spread).chain(settings.into_iter().map(setting)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::EngineKind;
    use crate::parameter::get;
    use crate::replay::Finding;
    use crate::srcu::{Options, variant};

    fn value(name: &str) -> u64 {
        let row = rows().into_iter().find(|row| row.figure == name).unwrap();
        match row.finding {
            Finding::Number { published, .. } => published as u64,
            Finding::Statement { .. } => panic!("{name} is no number"),
        }
    }

    #[test]
    fn the_models_are_set_up_as_is_said() {
        let engine = EngineKind::named("tree-v0").unwrap();
        assert_eq!(get(engine.parameters(), "period"), value("cond_resched_period"));
        let options = Options::reports_of_2022(variant("5.18", 250).unwrap());
        assert_eq!(u64::from(options.calls), value("loop_to") - value("loop_from"));
    }
}
