//! `rcu bench`: single operations of the library beside those of its rivals, in one run.
//!
//! What is measured, of whom and in which rounds is the crate [`bench`](::bench)'s to say; here are
//! the options, in [`report`] tables and JSON, in [`readme`] the tables of README, and in
//! [`pictures`] what README and docs/MEASURED.md show.

mod pictures;
mod readme;
pub(crate) mod report;

use std::path::{Path, PathBuf};

use ::bench::suites::promises::{Held, Verdict};
use ::bench::suites::rounds::{self, Case};
use ::bench::suites::{self, Group, SUITES, Suite, cache, compat, engines, map, tools};
use clap::builder::{PossibleValue, PossibleValuesParser};

use crate::exit::{Exit, Failure, Result};
use crate::machine::{self, Machine};
use crate::number::within;
use crate::output::{self, Output, ResultFile};
use crate::record::Block;

/// The arguments of `rcu bench`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    options: Options,
}

/// What is measured.
#[derive(clap::Subcommand, Clone, Debug)]
enum What {
    /// A read: enter a section, load the pointer, read its word, leave
    ///
    /// With one thread and two, inside another section, and by 1 to 8 threads while one updates.
    #[command(mut_arg("cases", |arg| arg.value_parser(parser(&SUITES.read.groups))))]
    Read(Cases),
    /// A grace period: alone, with a busy reader, with idle threads
    ///
    /// With 200 idle threads, and then with 10,000.
    Gp {
        /// Six readers with sections of 1 µs and one updater, whatever the number of CPUs: how much
        /// work do the readers get done?
        #[arg(long)]
        oversubscribed: bool,
    },
    /// An update: replace an object of 64 bytes and retire the old one
    ///
    /// Also readers' tail latency, a hash table, callbacks, memory, and a reader that stalls.
    #[command(mut_arg("cases", |arg| arg.value_parser(parser(&SUITES.update.groups))))]
    Update(Cases),
    /// The module `epoch` beside crossbeam-epoch: pin, retire
    ///
    /// By the thread and by a handle, and how long reads take at worst.
    #[command(mut_arg("cases", |arg| arg.value_parser(parser(&SUITES.epoch.groups))))]
    Epoch(Cases),
    /// Tables that give out ids: look-ups, removals with insertions
    ///
    /// With 1,000 ids and with 100,000, one thread and two.
    #[command(mut_arg("cases", |arg| arg.value_parser(parser(&SUITES.ids.groups))))]
    Ids(Cases),
    /// The engines of a domain on a path-lookup cache
    ///
    /// Reports the time, the CPU share and the latencies of each.
    #[command(mut_arg("cases", |arg| arg.value_parser(parser(&SUITES.engines.groups))))]
    Engines {
        #[command(flatten)]
        of: Cases,
        /// The directory tree whose paths are looked up; its names are read and nothing is changed
        /// [default: /usr/share, or the first of /usr and . that exists]
        #[arg(long, value_name = "DIR")]
        tree: Option<PathBuf>,
        /// Entries of the tree to use, level by level; if they exceed the CPU's caches, the times
        /// of iterations depend on where memory is placed
        #[arg(long, value_name = "N", default_value_t = 4_000)]
        #[arg(value_parser = within(2..=1_000_000))]
        entries: u32,
        /// Threads that look up paths [default: one per CPU]
        #[arg(long, value_name = "N", value_parser = within(1..=1024))]
        threads: Option<u32>,
        /// Look-ups of a thread between two quiescent states; 4000: one in each iteration
        #[arg(long, value_name = "N", default_value_t = 16, value_parser = within(1..=4_000))]
        quiescent_every: u32,
    },
    /// Sleepable domains (SRCU): sections, grace periods, memory
    ///
    /// Grace periods in a burst, and while a reader stays in its section.
    #[command(mut_arg("cases", |arg| arg.value_parser(parser(&SUITES.srcu.groups))))]
    Srcu(Cases),
    /// Operations on per-CPU words: counters, locks, references
    ///
    /// And reads that no grace period waits for.
    #[command(mut_arg("cases", |arg| arg.value_parser(parser(&SUITES.percpu.groups))))]
    Percpu(Cases),
    /// An Arc that can be replaced, and hazard pointers: loads, stores
    ///
    /// And the memory waiting to be freed.
    #[command(mut_arg("cases", |arg| arg.value_parser(parser(&SUITES.cells.groups))))]
    Cells(Cases),
    /// Concurrent maps: look-ups, updates, memory, growth
    ///
    /// With a thousand keys and with a million, all as hot or some; each with its latencies.
    #[command(mut_arg("cases", |arg| arg.value_parser(parser(&SUITES.map.groups))))]
    Map {
        #[command(flatten)]
        of: Cases,
        /// Entries of the maps [default: 1000,1000000; memory: 1000000; growth: 10000000; bustle:
        /// 1048576]. More than 4,000,000 take minutes and some gigabytes, since each map is rebuilt
        /// for each measurement
        #[arg(
            long,
            value_name = "N,M",
            value_delimiter = ',',
            value_parser = clap::value_parser!(u64).range(256..=1_000_000_000)
        )]
        keys: Vec<u64>,
        /// Look-ups per hundred operations of replace and churn [default: 99,90,50]
        #[arg(long, value_name = "P,Q", value_delimiter = ',', value_parser = within(0..=99))]
        reads: Vec<u32>,
        /// Use strings of 20 bytes as keys, instead of words
        #[arg(long)]
        strings: bool,
        /// Numbers of threads; every case also runs with one thread [default: one per CPU, at least
        /// 2]
        #[arg(long, value_name = "N,M", value_delimiter = ',', value_parser = within(1..=1024))]
        threads: Vec<u32>,
    },
    /// From a lock to the right tool: programs before and after
    #[command(mut_arg("cases", |arg| arg.value_parser(parser(&SUITES.tools.groups))))]
    Tools {
        #[command(flatten)]
        of: Cases,
        /// Threads of the cases with several threads; every case also runs with one thread
        /// [default: one per CPU, at least 2]
        #[arg(long, value_name = "N", value_parser = within(1..=1024))]
        threads: Option<u32>,
    },
    /// What the placement of data in caches costs: conflicts, false sharing
    ///
    /// Also prefetching and more, each with its consequence for a Rust struct.
    #[command(mut_arg("cases", |arg| arg.value_parser(parser(&SUITES.cache.groups))))]
    Cache(Cases),
    /// The tables of README in nanoseconds, as Markdown
    ///
    /// Reads, replacements and look-ups of the crates named there.
    Readme {
        /// Also write the tables into this file, between the lines that name this CPU: `<!-- rcu
        /// bench readme: CPU -->`
        #[arg(long, value_name = "FILE")]
        into: Option<PathBuf>,
    },
    /// The pictures of README and docs/MEASURED.md, as SVG files
    #[command(mut_arg("cases", |arg| arg.value_parser(picture_files())))]
    Pictures {
        /// Also write the pictures into the folder DIR, each with its figures as text; a picture
        /// that lacks a figure stays as it was, even after Ctrl-C
        #[arg(long, value_name = "DIR")]
        into: Option<PathBuf>,
        #[command(flatten)]
        of: Cases,
    },
    /// The liburcu-compatible libraries and Debian's, under one C program
    #[command(mut_arg("cases", |arg| arg.value_parser(parser(&SUITES.compat.groups))))]
    Compat {
        #[command(flatten)]
        of: Cases,
        /// The directory with our liburcu*.so.8, which `cargo xtask compat` builds
        #[arg(long, value_name = "DIR", default_value = "target/compat/lib")]
        libraries: PathBuf,
    },
}

/// What all of them take. The ids of those that `rcu` itself has, too, are other: clap hands the
/// values of global options up.
#[derive(clap::Args, Clone, Debug)]
struct Options {
    /// Measure for a shorter time, in fewer rounds
    #[arg(long, id = "bench_quick", global = true)]
    quick: bool,
    /// Measure every rival in N rounds [default: 15, with --quick 7]
    #[arg(long, id = "bench_rounds", global = true)]
    #[arg(value_name = "N", value_parser = within(1..=10_000))]
    rounds: Option<u32>,
    /// Use this seed to shuffle the order within the rounds
    #[arg(long, id = "bench_seed", global = true, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Measure only these rivals
    #[arg(long, global = true, value_name = "A,B", value_delimiter = ',')]
    only: Vec<String>,
    /// Compare with this rival [default: see --help]
    ///
    /// The default is liburcu-memb if it is compiled in; update, srcu, percpu, cells: quiescence;
    /// epoch: quiescence-epoch; ids: quiescence-idmap; map: quiescence-hashmap; tools, cache:
    /// before; engines: tick; compat: liburcu; readme, pictures: none.
    #[arg(long, global = true, value_name = "RIVAL")]
    base: Option<String>,
    /// Exit with 1 if an aim is missed, and with 3 if the run was too noisy to tell; without this
    /// option both are only reported, and the exit code is 0
    #[arg(long, global = true)]
    gate: bool,
    /// Pin each thread to a CPU of its own while loops are timed
    #[arg(long, global = true)]
    pin: bool,
    /// Execute this many per cent more operations than are counted while loops are timed: for
    /// trials of `rcu compare`
    #[arg(long, global = true, value_name = "PERCENT", default_value_t = 0.0, hide = true)]
    plant: f64,
}

/// The arguments of a benchmark that has nothing of its own but cases.
#[derive(clap::Args, Clone, Debug)]
struct Cases {
    /// Measure only these cases [default: all]
    #[arg(long = "case", value_name = "A,B", value_delimiter = ',')]
    cases: Vec<String>,
}

fn parser(groups: &[Group]) -> PossibleValuesParser {
    let value = |(name, help): &Group| PossibleValue::new(*name).help(*help);
    groups.iter().map(value).collect::<Vec<_>>().into()
}

fn picture_files() -> PossibleValuesParser {
    SUITES.pictures.iter().map(|picture| picture.file).collect::<Vec<_>>().into()
}

impl From<&Options> for suites::Options {
    fn from(options: &Options) -> Self {
        let Options { quick, rounds, seed, only, base, plant, pin, gate: _ } = options.clone();
        Self { quick, rounds, seed, only, base, planted_percent: plant, pin }
    }
}

impl What {
    fn prepare(&self, options: &suites::Options) -> Result<Suite, ::bench::Error> {
        match self {
            Self::Read(args) => SUITES.read.prepare(&args.cases, options),
            Self::Gp { oversubscribed: true } => SUITES.oversubscribed.prepare(&[], options),
            Self::Gp { .. } => SUITES.gp.prepare(&[], options),
            Self::Update(args) => SUITES.update.prepare(&args.cases, options),
            Self::Epoch(args) => SUITES.epoch.prepare(&args.cases, options),
            Self::Ids(args) => SUITES.ids.prepare(&args.cases, options),
            &Self::Engines { ref of, ref tree, entries, threads, quiescent_every } => {
                let tree = tree.clone();
                let load = engines::Load { tree, entries, threads, quiescent_every };
                engines::prepare(&of.cases, &load, options)
            }
            Self::Srcu(args) => SUITES.srcu.prepare(&args.cases, options),
            Self::Percpu(args) => SUITES.percpu.prepare(&args.cases, options),
            Self::Cells(args) => SUITES.cells.prepare(&args.cases, options),
            Self::Map { of, keys, reads, strings, threads } => {
                let load = map::Load {
                    entries: keys.clone(),
                    reads_percent: reads.clone(),
                    strings: *strings,
                    threads: threads.clone(),
                    memory_available_bytes: Machine::detect().memory_available_bytes,
                };
                map::prepare(&of.cases, &load, options)
            }
            Self::Tools { of, threads } => tools::prepare(&of.cases, *threads, options),
            Self::Cache(args) => {
                cache::prepare(&args.cases, &machine::geometry(&Machine::detect().caches), options)
            }
            Self::Readme { .. } => suites::readme::prepare(options),
            Self::Pictures { of, .. } => suites::pictures::prepare(&of.cases, options),
            Self::Compat { of, libraries } => compat::prepare(&of.cases, libraries, options),
        }
    }
}

/// Runs `rcu bench`. It prints which aims are missed; only with `--gate` is that the exit code.
pub(crate) fn run(args: &BenchArgs, output: &mut Output) -> Result<Exit> {
    // Bad names are told before anything is measured.
    let options = suites::Options::from(&args.options);
    if let What::Readme { into: Some(_) } | What::Pictures { into: Some(_), .. } = &args.what
        && !options.only.is_empty()
    {
        return Err(Failure::usage("--into takes all figures, and --only leaves some out"));
    }
    let mut tables = None;
    if let What::Readme { into: Some(path) } = &args.what {
        readme::with_block(path, "", &Machine::detect())?;
        tables = output.open("--into", Some(path))?.map(|file| (&**path, file));
    }
    if let What::Pictures { into: Some(folder), .. } = &args.what {
        output::prepare(folder)?;
    }
    let load = ::bench::slices::load_field(0).unwrap_or_else(|| "unknown".to_owned());
    // README and pictures have figures and no targets: none is missed there.
    let is_gate = args.options.gate;
    if is_gate && matches!(args.what, What::Readme { .. } | What::Pictures { .. }) {
        return Err(Failure::usage("--gate: figures without targets pass none"));
    }
    let suite = args.what.prepare(&options)?;
    // Engines, tools and loads of the cache are ours, and the programs under `compat` are other
    // processes.
    use What::{Cache, Compat, Engines, Tools};
    if !matches!(args.what, Engines { .. } | Tools { .. } | Cache(_) | Compat { .. }) {
        suites::left_out().into_iter().for_each(|sentence| output.note(sentence));
    }
    if matches!(args.what, What::Srcu(_) | What::Percpu(_) | What::Cells(_)) {
        output.note(format_args!("the library's path for per-CPU words: {}", per_cpu_path()));
    }
    let (name, base) = (suite.name, suite.base);
    output.progress.begin(suite.duration);
    let (cases, verdicts) = suite.run(output, &options)?;
    output.progress.end();
    let run = rounds::verdict(&cases).filter(|_| !matches!(args.what, What::Readme { .. }));
    if let Some(run) = run {
        output.paragraph(run.to_string());
    }
    if let What::Readme { .. } = &args.what {
        print_readme(tables, &cases, output)?;
    } else if let What::Pictures { into, of } = &args.what {
        let quick = if options.quick { ", --quick" } else { "" };
        let conditions = format!("load {load}{quick}");
        let chosen = suites::pictures::chosen(&of.cases);
        let drawn = pictures::draw(&chosen, &cases, &output.provenance, &conditions);
        for each in drawn.iter().filter(|each| !each.figures.is_empty()) {
            output.heading(each.of.title);
            output.say(Block::Code(each.figures.trim_end().to_owned()));
            output.picture(|| each.picture.clone());
        }
        if let Some(folder) = into {
            pictures::put_into(folder, &drawn, output)?;
        }
    } else {
        cases.iter().for_each(|case| report::print(case, base, output));
        report::print_verdicts(&verdicts, output);
    }
    let document = report::document(name, base, &options, &cases, &verdicts);
    output.findings(report::SCHEMA, document);
    Ok(output.exit(exit(if is_gate { &verdicts } else { &[] })))
}

/// Prints the tables of README, and writes them into it if they are complete.
fn print_readme(
    into: Option<(&Path, ResultFile)>,
    cases: &[Case],
    output: &mut Output,
) -> Result<()> {
    let machine = Machine::detect();
    let block = readme::block(cases, &machine);
    output.line(&block);
    match into {
        Some((path, _)) if output.interrupt.requested() => {
            output.note(format_args!("{} stays as it was", path.display()));
            Ok(())
        }
        Some((path, mut file)) => file.write(&readme::with_block(path, &block, &machine)?),
        None => Ok(()),
    }
}

/// How the library counts per CPU here.
pub(crate) fn per_cpu_path() -> String {
    format!("{:?}", quiescence::tuning::per_cpu_path()).to_lowercase()
}

/// How a gate ends that these verdicts pass through.
fn exit(verdicts: &[Verdict]) -> Exit {
    let has = |held| verdicts.iter().any(|verdict| verdict.held == held);
    if has(Held::Missed) {
        Exit::Violation
    } else if has(Held::TooClose) || has(Held::NoFigure) {
        Exit::Noisy
    } else {
        Exit::Ok
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefetches_of_2005_are_the_same_in_the_replay_and_beside_ours() {
        assert_eq!(cache::shares("prefetch"), Some(simulate::replay::prefetch::WAKE_UP));
        let packets = simulate::replay::prefetch::ETH_TYPE_TRANS;
        assert_eq!(cache::shares("eth-type-trans"), Some(packets));
    }
}
