//! `rcu bench engines`: the library's grace-period engines on a path-lookup cache, beside each other.

use std::path::{Path, PathBuf};
use std::time::Duration;

use quiescence::Engine;
use rivals::bench::engines;
use rivals::bench::path_cache::Tree;

use super::rounds::{Case, Metric, Sample, Session, Unit};
use super::{Bench, Options};
use crate::exit::Failure;
use crate::units;

/// What table 3 of the paper has, and what the engines trade against it.
const METRICS: &[Metric] = &[
    Metric { name: "iteration", unit: Unit::Nanoseconds },
    Metric { name: "CPU", unit: Unit::Percent },
    Metric { name: "callback", unit: Unit::Nanoseconds },
    Metric { name: "waiter", unit: Unit::Nanoseconds },
    Metric { name: "grace periods", unit: Unit::PerSecond },
];

/// How long one engine runs in one round.
const DURATION: Duration = Duration::from_millis(300);
const DURATION_QUICK: Duration = Duration::from_millis(100);

/// Trees that are there on most machines.
const TREES: [&str; 3] = ["/usr/share", "/usr", "."];

/// What `rcu bench engines` takes besides.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct EnginesArgs {
    #[command(flatten)]
    pub(super) options: Options,
    /// The directory tree whose paths are looked up; its names are read and nothing is changed [default:
    /// /usr/share, or the first of /usr and . that is there]
    #[arg(long, value_name = "DIR")]
    tree: Option<PathBuf>,
    /// Entries of the tree that are taken, level by level
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    entries: u32,
    /// Threads that look up [default: one for each CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
}

pub(super) fn prepare(args: &EnginesArgs) -> Result<Bench, Failure> {
    let (engines, base) = args.options.choose(&Engine::ALL, |engine| engine.name(), &["tick"])?;
    let tree = tree(args)?;
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let threads = args.threads.map_or(cpus, |threads| threads as usize);
    let duration = if args.options.quick { DURATION_QUICK } else { DURATION };
    Ok(Bench {
        name: "engines",
        base,
        duration: duration * args.options.rounds() * engines.len() as u32,
        measure: Box::new(move |session| {
            Ok(measure(&engines, &tree, threads, duration, session)?.into_iter().collect())
        }),
    })
}

fn tree(args: &EnginesArgs) -> Result<Tree, Failure> {
    let read = |path: &Path| Tree::read(path, args.entries as usize);
    match &args.tree {
        Some(path) => read(path).map_err(|error| {
            Failure::Usage(format!("cannot read the tree {}: {error}", path.display()))
        }),
        None => TREES.iter().find_map(|path| read(Path::new(path)).ok()).ok_or_else(|| {
            let tried = TREES.join(", ");
            Failure::Usage(format!("none of {tried} holds files: name a directory with --tree"))
        }),
    }
}

fn measure(
    engines: &[&Engine],
    tree: &Tree,
    threads: usize,
    duration: Duration,
    session: &mut Session<'_>,
) -> Result<Option<Case>, Failure> {
    let title = "path look-ups beside renames and unlinks, QSBR threads";
    let rivals = engines.iter().map(|engine| (engine.name(), true));
    let case = Case::new("engines/path-cache", title, METRICS, rivals);
    session.output.note(format_args!(
        "a tree of {} entries, {} of them files; {threads} threads. An iteration is {} look-ups of a \
         thread; CPU is of all processors; a callback takes from call() to being run, a waiter as \
         long as synchronize()",
        tree.len(),
        tree.files().len(),
        units::count(engines::LOOK_UPS as u64)
    ));
    session.interleave(case, duration, |number| {
        let seen = engines::measure(*engines[number], tree, threads, duration);
        Sample {
            values: vec![
                seen.ns_per_iteration,
                seen.cpu_percent,
                seen.callback_ns,
                seen.waiter_ns,
                seen.grace_periods_per_second,
            ],
            readers_share: 1.0,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: EnginesArgs,
    }

    fn refusal(line: &[&str]) -> String {
        let line = Line::try_parse_from([&["engines"], line].concat()).expect("well-formed");
        match prepare(&line.args) {
            Err(failure) => failure.to_string(),
            Ok(_) => panic!("{line:?} is to be refused"),
        }
    }

    #[test]
    fn bad_input_is_refused_with_what_to_do() {
        assert!(refusal(&["--only", "fast"]).contains("adaptive, poll, tick, token"));
        assert!(refusal(&["--tree", "/no/such/tree"]).contains("/no/such/tree"));
        assert!(Line::try_parse_from(["engines", "--entries", "1"]).is_err());
    }

    #[test]
    fn all_engines_are_compared_with_the_tick() {
        let line =
            Line::try_parse_from(["engines", "--quick", "--tree", "."]).expect("well-formed");
        let bench = prepare(&line.args).expect("our own sources hold files");
        assert_eq!((bench.name, bench.base), ("engines", "tick"));
        assert_eq!(bench.duration, DURATION_QUICK * 7 * 4);
    }
}
