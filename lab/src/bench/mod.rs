//! `rcu bench`: single operations of the library beside those of its rivals, in one run.
//!
//! - [`rounds`]: who is measured when; rounds are interleaved, the order drawn anew for each.
//! - [`read`], [`gp`], [`update`], [`engines`], [`srcu`], [`percpu`], [`compat`]: what is measured; [`loops`] and
//!   [`scenes`]: how several of them do it.
//! - [`verdict`]: what the project has promised of it, and whether it holds here.
//! - [`report`]: the tables and the JSON.

mod compat;
mod engines;
mod gp;
mod loops;
mod percpu;
mod read;
mod report;
mod rounds;
mod scenes;
mod srcu;
mod update;
mod verdict;

use crate::exit::{Exit, Failure};
use crate::output::Output;
use quiescence::PerCpuPath;
use rounds::{Case, Session};
use verdict::Verdict;

/// Rounds from which an interval of 95 % misses one outlier on either side.
const ROUNDS: u32 = 15;
/// The fewest rounds that give an interval of 95 % at all are six.
const ROUNDS_QUICK: u32 = 7;

/// The arguments of `rcu bench`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

/// What is measured.
#[derive(clap::Subcommand, Clone, Debug)]
enum What {
    /// A read: enter a section, load the pointer, read its word, leave; one thread and two
    Read(Options),
    /// A grace period: alone, beside a busy reader, with 200 and with 10,000 idle threads
    Gp(gp::GpArgs),
    /// An update: replace an object of 64 bytes and retire the old one; and all that comes with it:
    /// readers' tails, a hash table, callbacks, memory, a reader that stalls
    Update(update::UpdateArgs),
    /// The engines of a domain on a path-lookup cache: time, CPU share and latencies of each
    Engines(engines::EnginesArgs),
    /// Sleepable domains (SRCU): sections, a burst of grace periods, a reader that stays, memory
    Srcu(srcu::SrcuArgs),
    /// What is done on the CPU's own words: reads that no grace period waits for, shared Arcs,
    /// counters, locks, references
    Percpu(percpu::PercpuArgs),
    /// The liburcu-compatible libraries beside Debian's, under the same C program
    Compat(compat::CompatArgs),
}

/// What all of them take.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// Measure for a shorter time, in fewer rounds
    #[arg(long)]
    pub(crate) quick: bool,
    /// Measure every rival so often [default: 15, with --quick 7]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) rounds: Option<u32>,
    /// Draw the order within the rounds from this seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Measure only these rivals
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Compare with this rival [default: liburcu-memb where it is compiled in; update, srcu, percpu:
    /// quiescence; engines: tick; compat: liburcu]
    #[arg(long, value_name = "RIVAL")]
    pub(crate) base: Option<String>,
}

impl Options {
    fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.quick { ROUNDS_QUICK } else { ROUNDS })
    }

    /// The rivals that were asked for, in their own order, and the name of the base among them.
    ///
    /// The base is the first of `bases` that is among them, unless the user names one.
    fn choose<'k, R>(
        &self,
        known: &'k [R],
        name: impl Fn(&R) -> &'static str,
        bases: &[&str],
    ) -> Result<(Vec<&'k R>, &'static str), Failure> {
        let names: Vec<&str> = known.iter().map(&name).collect();
        for wanted in self.only.iter().chain(&self.base) {
            if !names.contains(&wanted.as_str()) {
                return Err(unknown(wanted, &names));
            }
        }
        let is_wanted =
            |rival: &&R| self.only.is_empty() || self.only.iter().any(|n| n == name(rival));
        let chosen: Vec<&'k R> = known.iter().filter(is_wanted).collect();
        let among = |wanted: &str| chosen.iter().map(|rival| name(rival)).find(|n| *n == wanted);
        let base = match &self.base {
            Some(base) => among(base).ok_or_else(|| {
                Failure::Usage(format!("--base {base} is not among the rivals of --only"))
            })?,
            None => bases.iter().find_map(|base| among(base)).unwrap_or_else(|| name(chosen[0])),
        };
        Ok((chosen, base))
    }
}

fn unknown(wanted: &str, known: &[&str]) -> Failure {
    if wanted.starts_with("liburcu-") && !rivals::bench::HAS_LIBURCU {
        return Failure::Unsupported(WITHOUT_LIBURCU.to_owned());
    }
    let known = known.join(", ");
    Failure::Usage(format!(
        "no rival is called {wanted:?} in what is to be measured; there are: {known}"
    ))
}

const WITHOUT_LIBURCU: &str = "liburcu: built without it (cargo run --release --features liburcu)";

/// Runs `rcu bench`. A promise that clearly does not hold here is exit code 1.
pub(crate) fn run(args: &BenchArgs, output: &mut Output) -> Result<Exit, Failure> {
    // Bad names are told before anything is measured.
    let (options, bench) = match &args.what {
        What::Read(options) => (options, read::prepare(options)?),
        What::Gp(gp) => (&gp.options, gp::prepare(gp)?),
        What::Update(update) => (&update.options, update::prepare(update)?),
        What::Engines(engines) => (&engines.options, engines::prepare(engines)?),
        What::Srcu(srcu) => (&srcu.options, srcu::prepare(srcu)?),
        What::Percpu(percpu) => (&percpu.options, percpu::prepare(percpu)?),
        What::Compat(compat) => (&compat.options, compat::prepare(compat)?),
    };
    // Engines are ours, and liburcu has no sleepable domains: it would be none of the rivals. Under `compat` it is
    // another process.
    if !rivals::bench::HAS_LIBURCU
        && !matches!(args.what, What::Engines(_) | What::Srcu(_) | What::Compat(_))
    {
        output.note(WITHOUT_LIBURCU);
    }
    if matches!(args.what, What::Srcu(_) | What::Percpu(_)) {
        output.note(format_args!("the library's path for words of a CPU: {}", per_cpu_path()));
    }
    let progress = output.progress(bench.duration);
    let mut session = Session::new(output, progress, options.rounds(), options.seed);
    let cases = (bench.measure)(&mut session)?;
    drop(session);
    let verdicts = verdict::judge(&cases);
    for case in &cases {
        report::print(case, bench.base, output)?;
    }
    report::print_verdicts(&verdicts, output)?;
    let interrupted = output.interrupt().requested();
    let header = report::Header {
        bench: bench.name,
        seed: options.seed,
        quick: options.quick,
        base: bench.base,
        per_cpu_path: per_cpu_path(),
        interrupted,
    };
    output.json(&report::document(&header, &cases, &verdicts))?;
    Ok(exit(interrupted, &verdicts))
}

/// How the library counts per CPU here.
fn per_cpu_path() -> &'static str {
    match quiescence::per_cpu_path() {
        PerCpuPath::Restartable => "restartable",
        PerCpuPath::Portable => "portable",
    }
}

fn exit(interrupted: bool, verdicts: &[Verdict]) -> Exit {
    if interrupted {
        Exit::Interrupted
    } else if verdicts.iter().any(Verdict::is_missed) {
        Exit::Violation
    } else {
        Exit::Ok
    }
}

/// A benchmark that is ready to run.
struct Bench {
    /// `read`, `gp`, `gp --oversubscribed`, `update`, `engines`, `srcu`, `percpu` or `compat`.
    name: &'static str,
    /// With whom the others are compared.
    base: &'static str,
    /// About how long it takes.
    duration: std::time::Duration,
    measure: Measure,
}

/// Measures all cases that it has time for; after Ctrl-C there may be none.
type Measure = Box<dyn FnOnce(&mut Session<'_>) -> Result<Vec<Case>, Failure>>;

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[&str] = &["a", "b", "c"];

    fn options(only: &[&str], base: Option<&str>) -> Options {
        Options {
            quick: false,
            rounds: None,
            seed: 1,
            only: only.iter().map(|&name| name.to_owned()).collect(),
            base: base.map(str::to_owned),
        }
    }

    fn choose(
        only: &[&str],
        base: Option<&str>,
    ) -> Result<(Vec<&'static str>, &'static str), String> {
        let options = options(only, base);
        let (chosen, base) = options
            .choose(KNOWN, |name| name, &["x", "b"])
            .map_err(|failure| failure.to_string())?;
        Ok((chosen.into_iter().copied().collect(), base))
    }

    #[test]
    fn all_are_chosen_unless_some_are_named() {
        assert_eq!(choose(&[], None), Ok((vec!["a", "b", "c"], "b")));
        assert_eq!(choose(&["c", "a"], None), Ok((vec!["a", "c"], "a")));
        assert_eq!(choose(&["c", "a"], Some("c")), Ok((vec!["a", "c"], "c")));
    }

    #[test]
    fn unknown_names_are_answered_with_the_known_ones() {
        let message = choose(&["a", "z"], None).unwrap_err();
        assert!(message.contains("\"z\"") && message.contains("a, b, c"), "{message}");
        let message = choose(&[], Some("z")).unwrap_err();
        assert!(message.contains("\"z\"") && message.contains("a, b, c"), "{message}");
        let message = choose(&["a"], Some("c")).unwrap_err();
        assert!(message.contains("--base c"), "{message}");
    }

    #[test]
    fn fewer_rounds_when_in_a_hurry_and_as_many_as_are_asked_for() {
        let mut options = options(&[], None);
        assert_eq!(options.rounds(), ROUNDS);
        options.quick = true;
        assert_eq!(options.rounds(), ROUNDS_QUICK);
        options.rounds = Some(3);
        assert_eq!(options.rounds(), 3);
    }
}
