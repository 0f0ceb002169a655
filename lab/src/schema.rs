//! `rcu schema`: what the JSON documents of all commands look like, as JSON Schema.
//!
//! The schemas are files, which tests hold to what the commands write.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::exit::{Exit, Result};
use crate::output::{self, Output};

/// A schema, and the command that writes such documents.
#[derive(Clone, Copy, Debug)]
struct Schema {
    name: &'static str,
    command: &'static str,
    text: &'static str,
}

macro_rules! schemas {
    ($($name:literal of $command:literal,)*) => {
        [$(Schema {
            name: $name,
            command: $command,
            text: include_str!(concat!("../schema/", $name, ".schema.json")),
        }),*]
    };
}

const ALL: [Schema; 13] = schemas![
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

/// The arguments of `rcu schema`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct SchemaArgs {
    /// The document, as its member `schema` names it, behind `quiescence/`; without it, all are
    /// listed
    #[arg(value_name = "NAME", value_parser = parser())]
    name: Option<Schema>,
}

fn parser() -> impl TypedValueParser<Value = Schema> {
    let value = |schema: &Schema| PossibleValue::new(schema.name).help(schema.command);
    PossibleValuesParser::from(ALL.iter().map(value).collect::<Vec<_>>()).map(|name| {
        let of_name = |schema: &&Schema| schema.name == name;
        *ALL.iter().find(of_name).expect("only names of schemas are accepted")
    })
}

/// Prints a schema, or which there are.
pub(crate) fn run(args: &SchemaArgs, output: &mut Output) -> Result<Exit> {
    match args.name {
        Some(schema) => output.line(schema.text.trim_end())?,
        None => {
            let rows = ALL.map(|Schema { name, command, .. }| [name, command]);
            output.table(output::table(&["schema", "written as JSON by"], [], rows))?;
            output.line("rcu schema NAME prints one of them.")?;
        }
    }
    Ok(Exit::Ok)
}

#[cfg(test)]
#[path = "../tests/common/schema.rs"]
#[allow(dead_code, reason = "each user takes the part that it needs")]
pub(crate) mod tests;
