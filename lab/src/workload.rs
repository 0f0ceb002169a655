//! What the threads do: described by flags, by a TOML file, or by neither.
//!
//! A workload as typed ([`Description`]) and as resolved ([`Workload`]) are different types: the
//! first says only what the user said, the other one has an answer to everything. Flags override
//! the file, the file overrides the defaults. Every value carries its limits in its
//! type, so that a flag and a line of a file are refused for the same reason in the same words.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use bench::units;
use serde::{Deserialize, Serialize};

use crate::exit::{Failure, Result, text_of};
use crate::keys::{KEYS_MAX_DEFAULT, Source};
use crate::number;

/// The shape of the shared state.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// A keyed table whose values are replaced one by one; with --churn, keys come and go
    Table,
    /// One structure that all threads read and that is replaced as a whole
    Config,
    /// A counter whose sum is read now and then; see --exact and --limit
    Counter,
    /// A queue or pool, from any thread to any other: as many values go in as come out
    Queue,
    /// Values under ids that the table chooses: sessions, handles
    Ids,
    /// References to one object that is replaced as a whole; see --exact, --blocks, --migrates
    Reference,
}

impl Kind {
    /// Reads, in per cent, where nothing is said of them. A counter is mostly added to.
    const fn reads_percent(self) -> f64 {
        match self {
            Kind::Table | Kind::Config | Kind::Ids | Kind::Reference => 99.0,
            Kind::Counter => 1.0,
            Kind::Queue => 50.0,
        }
    }

    /// As it is typed.
    pub(crate) fn name(self) -> String {
        clap::ValueEnum::to_possible_value(&self).expect("none is hidden").get_name().to_owned()
    }

    /// Whether the values have keys.
    pub(crate) const fn is_keyed(self) -> bool {
        matches!(self, Kind::Table | Kind::Ids)
    }
}

/// A whole number between `MIN` and `MAX`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Deserialize)]
#[serde(try_from = "i64")]
pub(crate) struct Whole<const MIN: u32, const MAX: u32>(u32);

impl<const MIN: u32, const MAX: u32> TryFrom<i64> for Whole<MIN, MAX> {
    type Error = String;

    fn try_from(value: i64) -> Result<Self, String> {
        u32::try_from(value)
            .ok()
            .filter(|value| (MIN..=MAX).contains(value))
            .map(Whole)
            .ok_or_else(|| format!("{value} is out of range: at least {MIN}, at most {MAX}"))
    }
}

impl<const MIN: u32, const MAX: u32> FromStr for Whole<MIN, MAX> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Whole::try_from(number::whole::<i64>(text)?)
    }
}

/// A number of threads, or all from one number to another.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Deserialize)]
#[serde(try_from = "i64")]
pub(crate) struct Threads {
    from: Whole<1, 1024>,
    to: Whole<1, 1024>,
}

impl TryFrom<i64> for Threads {
    type Error = String;

    fn try_from(value: i64) -> Result<Self, String> {
        let to = Whole::try_from(value)?;
        Ok(Threads { from: to, to })
    }
}

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        let (from, to): (Whole<1, 1024>, _) = (from.parse()?, Whole::from_str(to)?);
        if from.0 > to.0 || (from == to && text.contains("..")) {
            return Err(format!("{text} is no range: it goes from fewer threads to more"));
        }
        Ok(Threads { from, to })
    }
}

/// A number from 0 to `MAX`: per cent, or what has to be more than nothing.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub(crate) struct Real<const IS_PERCENT: bool, const MAX: u32>(f64);

impl<const IS_PERCENT: bool, const MAX: u32> TryFrom<f64> for Real<IS_PERCENT, MAX> {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        if (0.0..=f64::from(MAX)).contains(&value) && (IS_PERCENT || value > 0.0) {
            return Ok(Real(value));
        }
        let (least, unit) =
            if IS_PERCENT { ("at least", " (per cent)") } else { ("more than", "") };
        Err(format!("{value} is out of range: {least} 0, at most {MAX}{unit}"))
    }
}

impl<const IS_PERCENT: bool, const MAX: u32> FromStr for Real<IS_PERCENT, MAX> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Real::try_from(number::real(text)?)
    }
}

/// A share in per cent.
type Percent = Real<true, 100>;

/// The workload as typed, on the command line or in a TOML file: the names there are those of the
/// flags.
#[derive(clap::Args, Clone, Debug, Default, Deserialize)]
#[command(next_help_heading = "Workload")]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Description {
    /// What the user calls it, in a file
    #[arg(skip)]
    name: Option<String>,
    /// Read the workload from a TOML file; the flags below override it
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    workload: Option<PathBuf>,
    /// The shape of the shared state [default: table]
    ///
    /// For a counter and for references, every leaf of a decision tree is measured, too: one or two
    /// seconds more, and less with --quick.
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Threads, each reading and updating. N..M measures every design from N threads to M, instead
    /// of the sweeps: read only, mixed, and, unless keys are given, with a large table [default:
    /// the CPUs this process may use]
    #[arg(long, value_name = "N")]
    threads: Option<Threads>,
    /// Reads among the operations, in per cent; the rest are updates [default: 99; for a counter,
    /// whose sum is seldom read, 1]
    #[arg(long, value_name = "PERCENT")]
    reads: Option<Percent>,
    /// Keys come and go: inserts and removals among the updates of a table, in per cent [default:
    /// 0]
    #[arg(long, value_name = "PERCENT")]
    churn: Option<Percent>,
    /// Each sum of the counter must be the value that it had at one moment; the object must be
    /// freed when its last reference is dropped
    #[arg(long)]
    exact: bool,
    /// What one CPU takes from a limited counter, or as a reference, is given back on another CPU
    #[arg(long)]
    migrates: bool,
    /// References are held while their readers block
    #[arg(long)]
    blocks: bool,
    /// The only question asked of the counter is whether it has reached zero
    #[arg(long)]
    zero: bool,
    /// Several counters are read together, as of one moment
    #[arg(long)]
    together: bool,
    /// A thread that counts stays on its CPU
    #[arg(long)]
    pinned: bool,
    /// The references are to one long-lived object, and come from all CPUs
    #[arg(long)]
    big: bool,
    /// The counter counts what is in use, and must never exceed N
    #[arg(long, value_name = "N")]
    limit: Option<Whole<1, 1_000_000_000>>,
    /// Draw keys by Zipf's law with this exponent: few keys are popular [default: 0.99]
    #[arg(long, value_name = "EXPONENT", conflicts_with = "uniform")]
    zipf: Option<Real<false, 5>>,
    /// Draw all keys equally often
    #[arg(long)]
    uniform: bool,
    /// Bytes of each value [default: 64]
    #[arg(long, value_name = "BYTES")]
    value_bytes: Option<Whole<1, 1_048_576>>,
    /// Words of the value that a reader reads inside its section [default: 8]
    #[arg(long, value_name = "WORDS")]
    work: Option<Whole<0, 1_000_000>>,
    /// Read keys from FILE, one per line; `-` is standard input [default: path names under /usr]
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// Use at most N keys [default: 100000, or 20000 with --quick]
    #[arg(long, value_name = "N")]
    max_keys: Option<Whole<1, 10_000_000>>,
    /// Time measured per design and round, in milliseconds, in slices of 1 ms [default: 40, or 20
    /// with --quick]
    #[arg(long, value_name = "MS")]
    run_ms: Option<Whole<1, 600_000>>,
    /// Maximum number of rounds, each with refilled designs, until it is clear which are equal
    /// [default: 12]
    #[arg(long, value_name = "N")]
    rounds: Option<Whole<1, 1000>>,
}

/// Which keys are used how often.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Popularity {
    /// All alike.
    Uniform,
    /// The key of rank `k` in proportion to `k^-exponent`.
    Zipf(f64),
}

/// A workload with an answer to everything.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Workload {
    /// What the user calls it.
    pub(crate) name: String,
    /// The shape of the shared state.
    pub(crate) kind: Kind,
    /// How many threads run it.
    pub(crate) threads: u32,
    /// The fewest threads of the curves, if any are asked for; `threads` are the most.
    #[serde(skip)]
    pub(crate) threads_from: Option<u32>,
    /// The share of reads.
    pub(crate) reads_percent: f64,
    /// The share of the updates that insert or remove a key.
    pub(crate) churn_percent: f64,
    /// Whether a sum has to be exact.
    pub(crate) exact: bool,
    /// Whether what one CPU takes is given back on another.
    pub(crate) migrates: bool,
    /// Whether references are held while their readers block.
    pub(crate) blocks: bool,
    /// Whether a counter is only asked whether it is zero.
    pub(crate) zero: bool,
    /// Whether several counters are read as of one moment.
    pub(crate) together: bool,
    /// Whether threads that count stay on their CPUs.
    pub(crate) pinned: bool,
    /// Whether all references are to one object that lives long.
    pub(crate) big: bool,
    /// What a counter may count up to.
    pub(crate) limit: Option<u32>,
    /// Which keys are used how often.
    pub(crate) popularity: Popularity,
    /// The size of a value.
    pub(crate) value_bytes: u32,
    /// Words read inside a section.
    pub(crate) work: u32,
    /// Where the keys come from.
    #[serde(skip)]
    pub(crate) keys: Source,
    /// How many keys at most.
    pub(crate) keys_max: u32,
    /// Whether a table that fits the caches is measured, too: nothing was said of keys.
    #[serde(skip)]
    pub(crate) has_small_table: bool,
    /// What is measured of a design in a round.
    pub(crate) run_ms: u32,
    /// Rounds at most.
    pub(crate) rounds: u32,
}

impl Workload {
    /// Resolves what was typed: flags before the file before the defaults, for so many CPUs that
    /// this process may use; `quick` where all has to be over soon.
    pub(crate) fn resolve(flags: &Description, cpus: usize, quick: bool) -> Result<Workload> {
        let file = match &flags.workload {
            None => Description::default(),
            Some(path) => Description::read(path)?,
        };
        let keys_of_file = file.keys.as_deref().map(|keys| beside(keys, flags.workload.as_deref()));
        let by_speed = |full: u32, short: u32| if quick { short } else { full };
        let kind = flags.kind.or(file.kind).unwrap_or(Kind::Table);
        let threads = flags.threads.or(file.threads);
        let workload = Workload {
            kind,
            threads: threads.map_or((cpus as u32).max(1), |threads| threads.to.0),
            threads_from: threads.filter(|n| n.from != n.to).map(|threads| threads.from.0),
            reads_percent: flags.reads.or(file.reads).map_or(kind.reads_percent(), |share| share.0),
            churn_percent: flags.churn.or(file.churn).map_or(0.0, |share| share.0),
            exact: flags.exact || file.exact,
            migrates: flags.migrates || file.migrates,
            blocks: flags.blocks || file.blocks,
            zero: flags.zero || file.zero,
            together: flags.together || file.together,
            pinned: flags.pinned || file.pinned,
            big: flags.big || file.big,
            limit: flags.limit.or(file.limit).map(|limit| limit.0),
            popularity: flags.popularity().or(file.popularity()).unwrap_or(Popularity::Zipf(0.99)),
            value_bytes: flags.value_bytes.or(file.value_bytes).map_or(64, |n| n.0),
            work: flags.work.or(file.work).map_or(8, |n| n.0),
            keys: Source::from_argument(flags.keys.as_deref().or(keys_of_file.as_deref())),
            keys_max: flags
                .max_keys
                .or(file.max_keys)
                .map_or(by_speed(KEYS_MAX_DEFAULT, 20_000), |n| n.0),
            run_ms: flags.run_ms.or(file.run_ms).map_or(by_speed(40, 20), |ms| ms.0),
            rounds: flags.rounds.or(file.rounds).map_or(12, |n| n.0),
            has_small_table: kind == Kind::Table
                && flags.keys.as_ref().or(file.keys.as_ref()).is_none()
                && flags.max_keys.or(file.max_keys).is_none(),
            name: file.name.unwrap_or_else(|| "built-in".to_owned()),
        };
        workload.check().map_err(Failure::usage)?;
        Ok(workload)
    }

    /// The one of those who say nothing, on two CPUs.
    #[cfg(test)]
    pub(crate) fn built_in() -> Workload {
        Workload::resolve(&Description::default(), 2, false).expect("the defaults go together")
    }

    /// What says something that its kind has no use for would be measured as if it were not said.
    fn check(&self) -> Result<(), String> {
        const COUNTED: &[Kind] = &[Kind::Counter, Kind::Reference];
        let only = [
            (self.churn_percent > 0.0, "--churn", &[Kind::Table][..]),
            (self.exact, "--exact", COUNTED),
            (self.migrates, "--migrates", COUNTED),
            (self.blocks, "--blocks", &[Kind::Reference]),
            (self.zero, "--zero", &[Kind::Counter]),
            (self.together, "--together", &[Kind::Counter]),
            (self.pinned, "--pinned", &[Kind::Counter]),
            (self.big, "--big", &[Kind::Reference]),
            (self.limit.is_some(), "--limit", &[Kind::Counter]),
        ];
        let wrong = only.iter().find(|(is_said, _, kinds)| *is_said && !kinds.contains(&self.kind));
        if let Some((_, what, kinds)) = wrong {
            let kinds: Vec<String> = kinds.iter().map(|kind| kind.name()).collect();
            return Err(format!("{what} is for --kind {} only", kinds.join(" and ")));
        }
        if self.kind == Kind::Queue && self.reads_percent != Kind::Queue.reads_percent() {
            return Err("a queue has as many values put in as taken out: leave --reads out, or \
                        give 50"
                .to_owned());
        }
        Ok(())
    }

    /// Whether it asks for what not each design of its ranking does.
    pub(crate) const fn asks_more_than_speed(&self) -> bool {
        let of_references = self.exact || self.blocks || self.migrates;
        matches!(self.kind, Kind::Reference) && of_references || self.zero || self.together
    }

    /// What is measured of a design in a round.
    pub(crate) fn run_for(&self) -> Duration {
        Duration::from_millis(self.run_ms.into())
    }

    /// What `bench` has to run.
    pub(crate) fn measured(&self) -> bench::advise::Workload {
        use bench::advise::Workload as Measured;
        match self.kind {
            Kind::Table if self.churn_percent > 0.0 => Measured::Churn,
            Kind::Table => Measured::Table,
            Kind::Config | Kind::Reference => Measured::Config,
            Kind::Counter if self.limit.is_some() => Measured::LimitCounter,
            Kind::Counter if self.exact => Measured::ExactCounter,
            Kind::Counter => Measured::Counter,
            Kind::Queue => Measured::Queue,
            Kind::Ids => Measured::Ids,
        }
    }

    /// The kind in words, with what was said of it.
    fn describe_kind(&self) -> String {
        match self.kind {
            Kind::Table if self.churn_percent > 0.0 => format!(
                "a keyed table, {}; {} % of the updates insert or remove a key",
                self.popularity,
                units::percent(self.churn_percent)
            ),
            Kind::Table => format!("a keyed table whose keys stay, {}", self.popularity),
            Kind::Config => "one structure, replaced as a whole".to_owned(),
            Kind::Reference => "references to one object, replaced as a whole".to_owned(),
            Kind::Counter => match (self.limit, self.exact) {
                (Some(limit), _) => format!("a counter of what is in use, at most {limit}"),
                (None, true) => "a counter with exact sums".to_owned(),
                (None, false) => "a counter whose sums may be of no single moment".to_owned(),
            },
            Kind::Queue => "a queue that all threads put in and take out of".to_owned(),
            Kind::Ids => format!("values by ids, {}", self.popularity),
        }
    }
}

impl Description {
    fn read(path: &Path) -> Result<Description> {
        Description::parse(&text_of(path)?)
            .map_err(|message| Failure::usage(format!("{}{message}", path.display())))
    }

    /// The error begins with the place, as in `, line 3: ...`.
    fn parse(text: &str) -> Result<Description, String> {
        let description: Description = toml::from_str(text).map_err(|error| {
            let message = number::without_type_names(error.message().trim_end());
            match error.span() {
                None => format!(": {message}"),
                Some(span) => {
                    let before = &text[..span.start.min(text.len())];
                    let number = before.matches('\n').count() + 1;
                    let line = text.lines().nth(number - 1).unwrap_or_default().trim();
                    format!(", line {number}: {message}\n  {number} | {line}")
                }
            }
        })?;
        if description.uniform && description.zipf.is_some() {
            return Err(": `zipf` and `uniform = true` exclude each other".to_owned());
        }
        Ok(description)
    }

    fn popularity(&self) -> Option<Popularity> {
        match (self.uniform, self.zipf) {
            (true, _) => Some(Popularity::Uniform),
            (false, zipf) => zipf.map(|exponent| Popularity::Zipf(exponent.0)),
        }
    }
}

/// A key file named in a workload file is looked for beside that file.
fn beside(keys: &Path, workload: Option<&Path>) -> PathBuf {
    match workload.and_then(Path::parent) {
        Some(directory) if keys != Path::new("-") => directory.join(keys),
        _ => keys.to_owned(),
    }
}

impl Display for Popularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Popularity::Uniform => f.write_str("all keys equally popular"),
            Popularity::Zipf(exponent) => write!(f, "keys by Zipf's law, exponent {exponent}"),
        }
    }
}

impl Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = if self.threads == 1 { "thread" } else { "threads" };
        write!(f, "{}; {} {threads}", self.describe_kind(), self.threads)?;
        match self.kind {
            Kind::Queue => f.write_str(", half of the operations take")?,
            _ => write!(f, ", {} % reads", units::percent(self.reads_percent))?,
        }
        if self.kind != Kind::Counter {
            let bytes = units::bytes(u64::from(self.value_bytes));
            write!(f, "; values of {bytes}, {} words read in a section", self.work)?;
        }
        write!(f, "; {} rounds of {} ms for each design", self.rounds, self.run_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_answer_everything_and_quick_is_shorter() {
        let full = Workload::resolve(&Description::default(), 2, false).unwrap();
        assert_eq!((full.threads, full.reads_percent), (2, 99.0));
        assert_eq!(full.popularity, Popularity::Zipf(0.99));
        let quick = Workload::resolve(&Description::default(), 2, true).unwrap();
        assert!(quick.run_ms * quick.rounds < full.run_ms * full.rounds);
    }

    #[test]
    fn flags_override_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("w.toml");
        std::fs::write(&path, "reads = 50\nuniform = true\nkeys = \"k.txt\"\n").unwrap();
        let flags =
            Description { workload: Some(path), reads: Some(Real(90.0)), ..Description::default() };
        let workload = Workload::resolve(&flags, 2, false).unwrap();
        assert_eq!(workload.reads_percent, 90.0);
        assert_eq!(workload.popularity, Popularity::Uniform);
        assert_eq!(workload.keys, Source::File(directory.path().join("k.txt")));
    }

    #[test]
    fn what_is_said_of_a_kind_chooses_what_is_measured() {
        let resolve = |text: &str| {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("w.toml");
            std::fs::write(&path, text).unwrap();
            let flags = Description { workload: Some(path), ..Description::default() };
            Workload::resolve(&flags, 2, false).unwrap()
        };
        let counter = resolve("kind = \"counter\"\nexact = true");
        assert_eq!(counter.measured(), bench::advise::Workload::ExactCounter);
        assert_eq!(counter.reads_percent, 1.0);
        let limited = resolve("kind = \"counter\"\nexact = true\nlimit = 9");
        assert_eq!(limited.measured(), bench::advise::Workload::LimitCounter);
        assert_eq!(resolve("churn = 1").measured(), bench::advise::Workload::Churn);
    }
}
