//! The arguments of `rcu simulate`, as typed.
//!
//! Lists are sweeps: every combination is run. What the names and numbers mean is decided in
//! [`product`](super::product), which knows the engines and workloads.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, RangedU64ValueParser, TypedValueParser};

use simulate::ours::workloads;
use simulate::replay::PARTS;
use simulate::srcu::VARIANTS;
use simulate::{EngineKind, Setup, Workload};

use super::srcu;
use crate::{arguments, number};

const EXAMPLES: &str = include_str!("../help/simulate.txt").trim_ascii_end();

/// Replays published figures, and simulates hypothetical machines.
#[derive(clap::Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SimulateArgs {
    /// Print published figures (of A, B) beside the model's
    #[arg(
        long,
        value_name = "A,B",
        num_args = 0..=1,
        require_equals = true,
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(PARTS.iter().map(|part| part.source)),
        hide_possible_values = true,
        conflicts_with_all = ["WhatIfArgs", "suite", "validate", "list"]
    )]
    pub(super) published: Option<Vec<String>>,
    /// With --published: also replay with changed estimates, and without mechanisms that the papers
    /// name, and print the rows whose result changes: takes minutes
    #[arg(long, requires = "published")]
    pub(super) vary: bool,
    /// Run the library's engines and liburcu's algorithm on user-space workloads, and compare them
    #[arg(long, group = "workloads", conflicts_with_all = ["WhatIfArgs", "list"])]
    pub(super) suite: bool,
    /// Run six of these workloads here and in the model, with this machine's costs, and compare:
    /// takes a minute
    #[arg(long, group = "workloads", conflicts_with_all = ["WhatIfArgs", "list"])]
    pub(super) validate: bool,
    /// Shorter runs: a tenth of the default time, a quarter with --suite; fewer runs with
    /// --validate
    #[arg(long, conflicts_with_all = ["published", "list"])]
    pub(super) quick: bool,
    /// With --suite: run only these of its workloads
    #[arg(
        long,
        value_name = "A,B",
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(workloads::all().iter().map(|each| each.name)),
        hide_possible_values = true,
        requires = "suite",
        conflicts_with = "validate"
    )]
    pub(super) only: Vec<String>,
    /// With --suite: use a machine of N CPUs, 1 to 4096, and scale the threads of each kind
    #[arg(long, value_name = "N", requires = "suite", conflicts_with = "validate")]
    pub(super) on_cpus: Option<usize>,
    /// Print the engines, workloads and numbers that can be set, one line each
    #[arg(long, conflicts_with = "WhatIfArgs")]
    pub(super) list: bool,
    #[command(flatten)]
    pub(super) what_if: WhatIfArgs,
}

/// The machine and what runs on it. Several values make a sweep.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "What if")]
pub(super) struct WhatIfArgs {
    /// Engines to run; `srcu` is SRCU, which takes --variant
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = engine)]
    #[arg(default_value = "on-demand")]
    pub(super) engine: Vec<Option<EngineKind>>,
    /// Workloads to run [default: dbench]
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = Workload::named)]
    pub(super) workload: Vec<Workload>,
    /// CPUs, 1 to 4096 [default: 4; SRCU: 128]
    #[arg(long, value_name = "N,M", value_delimiter = ',')]
    pub(super) cpus: Vec<usize>,
    /// Ticks per second, 100 to 1000 (SRCU: 10 to 10000) [default: 250]
    #[arg(
        long,
        value_name = "N,M",
        value_delimiter = ',',
        // Read without a sign, as the numbers beside it: those below 0 are refused alike.
        value_parser = RangedU64ValueParser::<u32>::new()
    )]
    pub(super) hz: Vec<u32>,
    /// Whether idle CPUs, and those that run a single program, have no tick [default: on]
    #[arg(long, value_name = "on,off", value_delimiter = ',', value_parser = switch())]
    pub(super) tickless: Vec<bool>,
    /// Whether kernel code outside of sections can be preempted, so that cond_resched() does
    /// nothing [default: off; SRCU: on]
    #[arg(long, value_name = "on,off", value_delimiter = ',', value_parser = switch())]
    pub(super) preemptible: Vec<bool>,
    /// Costs: `modern`, `p3`, `measured` (here, now) or the FILE of `rcu costs --json` [default:
    /// modern]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(super) costs: Vec<String>,
    /// The time over which events are counted, in virtual time: 500us, 20ms, 10s [default: 1s;
    /// SRCU: until all calls are made]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = time)]
    pub(super) duration: Option<u64>,
    /// How long the machine runs before the counting starts [default: 100ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = time)]
    pub(super) warm_up: Option<u64>,
    /// Seeds of the random draws [default: 1]
    #[arg(long, value_name = "N,M", value_delimiter = ',')]
    pub(super) seed: Vec<u64>,
    /// Delay functions of `srcu` [default: all]
    #[arg(long, value_name = "A,B", value_delimiter = ',', hide_possible_values = true)]
    #[arg(value_parser = PossibleValuesParser::new(VARIANTS.iter().copied()))]
    pub(super) variant: Vec<String>,
    /// Another value for a number of an engine, a workload or the machine; `--list` prints their
    /// names
    #[arg(long, value_name = "NAME=N,M", value_parser = set)]
    pub(super) set: Vec<Set>,
    /// Write a picture of who delayed each grace period, and when, to FILE
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
    /// How many grace periods of each run the picture and the JSON show [default: 32]
    #[arg(long, value_name = "N")]
    pub(super) timeline: Option<usize>,
}

impl WhatIfArgs {
    /// The same with a tenth of the virtual time that a run has unless that is given.
    pub(super) fn shortened(mut self) -> Self {
        let usual = Setup::default();
        self.duration.get_or_insert(usual.duration / 10);
        self.warm_up.get_or_insert(usual.warm_up / 10);
        self
    }
}

/// The arguments that a line after `rcu simulate` stands for.
pub(super) fn typed(line: &str) -> Result<SimulateArgs, clap::Error> {
    arguments::options(line.split_whitespace())
}

/// An engine; none for SRCU, which has a machine of its own.
fn engine(name: &str) -> Result<Option<EngineKind>, String> {
    let other = |error| format!("{error}, {}", srcu::NAME);
    (name != srcu::NAME).then(|| EngineKind::named(name).map_err(other)).transpose()
}

/// On or off.
fn switch() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["on", "off"]).map(|text| text == "on")
}

/// A time with its unit, in nanoseconds.
fn time(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 4] =
        [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let Some((_, factor)) = UNITS.iter().find(|(unit, _)| *unit == &text[digits.len()..]) else {
        return Err("a time is a whole number followed by ns, us, ms or s".to_owned());
    };
    number::whole::<u64>(digits)?.checked_mul(*factor).ok_or_else(|| "it is too long".to_owned())
}

/// The name of a number, and the values it is to have.
pub(super) type Set = (String, Vec<u64>);

/// `name=value`, or several values.
fn set(text: &str) -> Result<Set, String> {
    let (name, values) = text.split_once('=').ok_or("it is NAME=VALUE")?;
    let values = values.split(',').map(number::whole).collect::<Result<_, _>>()?;
    Ok((name.trim().to_owned(), values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sweeps() {
        let args = typed("--engine poll,tick --cpus 4,64 --tickless on,off --set a=1 --set b=2,3");
        let what_if = args.unwrap().what_if;
        let engines = what_if.engine.iter().flatten().map(|engine| engine.name());
        assert_eq!(engines.collect::<Vec<_>>(), ["poll", "tick"]);
        assert_eq!(what_if.cpus, [4, 64]);
        assert_eq!(what_if.tickless, [true, false]);
        assert_eq!(what_if.set.len(), 2);
    }

    #[test]
    fn times_have_units() {
        assert_eq!(time("500us"), Ok(500_000));
        assert_eq!(time("10s"), Ok(10_000_000_000));
        assert_eq!(time("7ns"), Ok(7));
    }

    #[test]
    fn a_quick_run_is_a_tenth_unless_its_length_is_given() {
        let shortened = |args: &str| typed(args).unwrap().what_if.shortened();
        let short = shortened("--quick");
        assert_eq!((short.duration, short.warm_up), (Some(100_000_000), Some(10_000_000)));
        assert_eq!(shortened("--quick --duration 7ns").duration, Some(7));
    }
}
