//! The command line as a whole: its grammar, what refuses a bad value, and what is made from it:
//! completions for shells and manual pages.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::num::ParseIntError;
use std::path::{Path, PathBuf};

use clap::builder::Styles;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Args, Command, CommandFactory, FromArgMatches};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::exit::{Exit, Failure, Result};
use crate::output::Output;
use crate::{Cli, number, workload};

/// Options that `-h` leaves to `--help`, so that it fits a screen.
const RARE: &str = "bench_rounds bench_seed big blocks csv entries exact folder host_name hz limit \
                    markdown max_keys metrics migrates minutes on_cpus paths pictures pinned plant \
                    preemptible quiescent_every rounds run_ms seed skip sampler svg tickless \
                    timeline together tree uniform variant vary warm_up within work work_a work_b \
                    zero zipf";
/// Those of the command itself that `rcu -h` has.
const ALWAYS: &str = "quick json html";
/// Commands that refuse `--json`, so their help does not have it.
const TEXT_ONLY: [&str; 4] = ["completions", "demo", "man", "schema"];

/// Reads a command line, in which a workload file stands for the options that it has. If it is
/// wrong, or asks for help, that is written here.
pub(crate) fn parsed(words: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Cli> {
    let mut command = grammar();
    let mut words: Vec<OsString> = words.into_iter().map(Into::into).collect();
    let mut matches = command.try_get_matches_from_mut(&words).map_err(|e| told(e, &command))?;
    let own = matches.subcommand().map_or(&matches, |(_, own)| own);
    if let Ok(Some(file)) = own.try_get_one::<PathBuf>("workload_file") {
        let is_typed = |id: &str| own.value_source(id) == Some(ValueSource::CommandLine);
        let options = workload::options_of(file, |id| match id {
            "zipf" | "uniform" => is_typed("zipf") || is_typed("uniform"),
            _ => is_typed(id),
        })?;
        // What has a workload file has options alone: no word stands behind `--`.
        words.pop_if(|word| word == "--");
        words.extend(options);
        matches = command.try_get_matches_from_mut(words).map_err(|e| told(e, &command))?;
    }
    Cli::from_arg_matches(&matches).map_err(|error| told(error, &command))
}

/// The grammar of options alone, without a command before them.
pub(crate) fn alone<A: Args>() -> Command {
    A::augment_args(Command::new(env!("CARGO_PKG_NAME")).no_binary_name(true))
}

/// The options that these words are.
pub(crate) fn options<A: Args>(
    words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<A, clap::Error> {
    A::from_arg_matches(&alone::<A>().try_get_matches_from(words)?)
}

/// Writes what clap has to say.
fn told(error: clap::Error, command: &Command) -> Failure {
    let error = in_plain_words(error, command);
    let written = error.print().and_then(|()| io::stdout().flush());
    match (error.use_stderr(), written) {
        (true, _) => Failure::told(Exit::Usage),
        (false, Ok(())) => Failure::told(Exit::Ok),
        (false, Err(error)) => Failure::io("cannot write to standard output", error),
    }
}

/// The grammar, in which a negative number is a value, which its option can refuse with its
/// limits, rather than an unknown option; and the help of each command begins with an example.
fn grammar() -> Command {
    prepared(Cli::command(), "rcu")
}

fn prepared(command: Command, words: &str) -> Command {
    let json = command.get_arguments().find(|argument| argument.get_id() == "json").cloned();
    let is_of_it = |line: &&str| {
        line.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let example = include_str!("help/examples.txt").lines().find(is_of_it).unwrap_or(words);
    command
        .before_help(format!("Example: {example}"))
        .mut_args(|argument| {
            let takes_value = argument.get_action().takes_values();
            let is_in = |ids: &str| ids.split_whitespace().any(|id| argument.get_id() == id);
            let is_rare = if words == "rcu" { !is_in(ALWAYS) } else { is_in(RARE) };
            let argument = argument.allow_negative_numbers(takes_value).hide_short_help(is_rare);
            // Manual pages have the long help where the short one is hidden.
            match argument.get_long_help().or(argument.get_help()).cloned() {
                Some(help) => argument.long_help(help),
                None => argument,
            }
        })
        .mut_subcommands(|command| {
            let words = format!("{words} {}", command.get_name());
            let refused = json.clone().filter(|_| TEXT_ONLY.contains(&command.get_name()));
            prepared(command.args(refused.map(|json| json.hide(true))), &words)
        })
}

/// The same error; one about digits says so without the words of the standard library.
pub(crate) fn in_plain_words(error: clap::Error, command: &Command) -> clap::Error {
    let of = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let digits = error.source().and_then(|source| source.downcast_ref::<ParseIntError>());
    match (digits, of(ContextKind::InvalidArg), of(ContextKind::InvalidValue)) {
        (Some(digits), Some(argument), Some(value)) => {
            let why = number::no_whole(value, digits.kind());
            let told = format!("invalid value '{value}' for '{argument}': {why}");
            let message = format!("{told}\n\nFor more information, try '--help'.\n");
            // Without the usage, which would be that of `rcu` whatever command was given.
            clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        }
        _ => error,
    }
}

/// Writes what makes this shell complete the command's arguments.
pub(crate) fn completions(shell: Shell, output: &mut Output) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut grammar(), "rcu", &mut script);
    output.line(String::from_utf8_lossy(&script).trim_end());
}

/// Writes the manual page, or all pages into this directory.
pub(crate) fn manual(directory: Option<&Path>, output: &mut Output) -> Result {
    let mut command = grammar().styles(Styles::plain()).disable_help_subcommand(true);
    command.build();
    let Some(directory) = directory else {
        let page = page(&Man::new(command));
        output.line(page.map_err(|error| Failure::io("cannot write the page", error))?.trim_end());
        return Ok(());
    };
    fs::create_dir_all(directory)
        .and_then(|()| pages(&command, directory))
        .map_err(|error| Failure::file("write pages to", directory, error))?;
    output.line(format_args!("The pages are in {}.", directory.display()));
    Ok(())
}

/// Writes the pages of a command and of those below it.
fn pages(command: &Command, directory: &Path) -> io::Result<()> {
    let man = Man::new(command.clone());
    fs::write(directory.join(man.get_filename()), page(&man)?)?;
    let mut below = command.get_subcommands().filter(|below| !below.is_hide_set());
    below.try_for_each(|below| pages(below, directory))
}

/// A page whose last section, of tables and examples, keeps its lines as they are, from the first
/// column on.
fn page(man: &Man) -> io::Result<String> {
    let mut page = Vec::new();
    man.render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).replace(".SH EXTRA\n", ".SH EXTRA\n.nf\n.in 0\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_help_hides_or_keeps_is_an_option() {
        fn ids(command: &Command) -> Vec<String> {
            let own = command.get_arguments().map(|argument| argument.get_id().to_string());
            own.chain(command.get_subcommands().flat_map(ids)).collect()
        }
        let known = ids(&Cli::command());
        for id in RARE.split_whitespace().chain(ALWAYS.split_whitespace()) {
            assert!(known.iter().any(|known| known == id), "no option has the id {id}");
        }
    }
}
