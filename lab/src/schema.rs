//! `rcu schema`: what the JSON documents of all commands look like, as JSON Schema.
//!
//! The schemas are files, which tests hold to what the commands write.

use clap::builder::{PossibleValue, PossibleValuesParser};

use crate::output::{self, Output};

/// The name of each schema, the command that writes such documents, and its text.
macro_rules! schemas {
    ($($name:literal of $command:literal,)*) => {
        [$(($name, $command, include_str!(concat!("../schema/", $name, ".schema.json")))),*]
    };
}

const ALL: [(&str, &str, &str); 13] = schemas![
    "advise" of "rcu advise",
    "baseline" of "rcu compare --save",
    "bench" of "rcu bench",
    "compare" of "rcu compare",
    "costs" of "rcu costs",
    "diff" of "rcu diff",
    "simulate" of "rcu simulate",
    "simulate-published" of "rcu simulate --published",
    "simulate-srcu" of "rcu simulate --engine srcu",
    "simulate-suite" of "rcu simulate --suite",
    "simulate-validate" of "rcu simulate --validate",
    "top" of "rcu top",
    "torture" of "rcu torture",
];

/// The names of the schemas, for the option.
pub(crate) fn names() -> PossibleValuesParser {
    ALL.map(|(name, command, _)| PossibleValue::new(name).help(command)).into()
}

/// Prints the schema of this name, or which there are.
pub(crate) fn run(name: Option<&str>, output: &mut Output) {
    let asked_for = |(own, ..): &&(&str, _, _)| name == Some(own);
    if let Some((_, _, text)) = ALL.iter().find(asked_for) {
        output.line(text.trim_end());
    } else {
        let rows = ALL.map(|(name, command, _)| [name, command]);
        output.table(output::table(&["schema", "written as JSON by"], [], rows));
        output.line("rcu schema NAME prints one of them.");
    }
}

#[cfg(test)]
#[path = "../tests/common/schema.rs"]
#[allow(dead_code, reason = "each user takes the part that it needs")]
pub(crate) mod tests;
