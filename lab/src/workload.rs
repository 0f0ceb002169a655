//! What the threads do: options, each of which can also stand in a TOML file.
//!
//! A file is read as if its lines had been typed as options, those that were typed left out: what
//! one of them refuses is refused in both places, for the same reason.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bench::units;
use serde::Serialize;
use serde_json::Value;
use toml::Spanned;

use crate::arguments::{alone, in_plain_words};
use crate::exit::{Failure, Result, text_of};
use crate::number::{self, ABOVE_0, real_within, within};

/// The shape of the shared state.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, clap::ValueEnum)]
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
    /// As it is typed.
    pub(crate) fn name(self) -> String {
        clap::ValueEnum::to_possible_value(&self).expect("none is hidden").get_name().to_owned()
    }

    /// Those whose values have keys.
    pub(crate) const KEYED: &'static [Kind] = &[Kind::Table, Kind::Ids];
}

/// A number of threads, or all from one number to another.
fn threads(text: &str) -> Result<[u32; 2], String> {
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let range: [i64; 2] = [number::whole(from)?, number::whole(to)?];
    let fits = range.iter().all(|number| (1..=1024).contains(number));
    if fits && (range[0] < range[1] || !text.contains("..")) {
        return Ok(range.map(|number| number as u32));
    }
    let limits = "at least 1, at most 1024; a range goes from fewer threads to more";
    Err(format!("{text} is out of range: {limits}"))
}

/// An exponent of Zipf's law.
fn zipf(text: &str) -> Result<Popularity, String> {
    real_within(ABOVE_0, 5.0)(text).map(Popularity::Zipf)
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

/// The workload. As typed it has the options; what follows from them is filled in by
/// [`Workload::resolve`].
#[derive(clap::Args, Clone, Debug, PartialEq, Serialize)]
#[command(next_help_heading = "Workload")]
pub(crate) struct Workload {
    /// What the user calls it, in a file
    #[arg(long, hide = true, default_value = "built-in")]
    pub(crate) name: String,
    /// The shape of the shared state
    ///
    /// For a counter and for references, every leaf of a decision tree is measured, too: one or two
    /// seconds more, and less with --quick.
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) kind: Kind,
    /// Threads, each reading and updating. N..M measures every design from N threads to M, instead
    /// of the sweeps: read only, mixed, and, unless keys are given, with a large table [default:
    /// the CPUs this process may use]
    #[arg(long = "threads", id = "threads", value_name = "N[..M]", value_parser = threads)]
    #[serde(skip)]
    pub(crate) range: Option<[u32; 2]>,
    /// How many threads run it: of a range the most.
    #[arg(skip)]
    pub(crate) threads: u32,
    /// Reads among the operations, in per cent; the rest are updates [default: 99; for a counter,
    /// whose sum is seldom read, 1]
    #[arg(long = "reads", id = "reads", value_name = "PERCENT")]
    #[arg(default_value = "99", hide_default_value = true, value_parser = real_within(0.0, 100.0))]
    #[arg(default_value_ifs = [("kind", "counter", "1"), ("kind", "queue", "50")])]
    pub(crate) reads_percent: f64,
    /// Keys come and go: inserts and removals among the updates of a table, in per cent
    #[arg(long = "churn", id = "churn", value_name = "PERCENT")]
    #[arg(default_value = "0", value_parser = real_within(0.0, 100.0))]
    pub(crate) churn_percent: f64,
    /// Each sum of the counter must be the value that it had at one moment; the object must be
    /// freed when its last reference is dropped
    #[arg(long)]
    pub(crate) exact: bool,
    /// What one CPU takes from a limited counter, or as a reference, is given back on another CPU
    #[arg(long)]
    pub(crate) migrates: bool,
    /// References are held while their readers block
    #[arg(long)]
    pub(crate) blocks: bool,
    /// The only question asked of the counter is whether it has reached zero
    #[arg(long)]
    pub(crate) zero: bool,
    /// Several counters are read together, as of one moment
    #[arg(long)]
    pub(crate) together: bool,
    /// A thread that counts stays on its CPU
    #[arg(long)]
    pub(crate) pinned: bool,
    /// The references are to one long-lived object, and come from all CPUs
    #[arg(long)]
    pub(crate) big: bool,
    /// The counter counts what is in use, and must never exceed N
    #[arg(long, value_name = "N", value_parser = within(1..=1_000_000_000))]
    pub(crate) limit: Option<u32>,
    /// Draw keys by Zipf's law with this exponent: few keys are popular
    #[arg(long = "zipf", id = "zipf", value_name = "EXPONENT", value_parser = zipf)]
    #[arg(default_value = "0.99", conflicts_with = "uniform")]
    pub(crate) popularity: Popularity,
    /// Draw all keys equally often
    #[arg(long)]
    #[serde(skip)]
    pub(crate) uniform: bool,
    /// Bytes of each value
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = within(1..=1_048_576))]
    pub(crate) value_bytes: u32,
    /// Words of the value that a reader reads inside its section
    #[arg(long, value_name = "WORDS", default_value = "8", value_parser = within(0..=1_000_000))]
    pub(crate) work: u32,
    /// Read keys from FILE, one per line; `-` is standard input [default: path names under /usr]
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub(crate) keys: Option<PathBuf>,
    /// Use at most N keys [default: 100000, or 20000 with --quick]
    #[arg(long, value_name = "N", value_parser = within(1..=10_000_000))]
    #[serde(skip)]
    pub(crate) max_keys: Option<u32>,
    /// How many keys at most.
    #[arg(skip)]
    pub(crate) keys_max: u32,
    /// Time measured per design and round, in milliseconds, in slices of 1 ms [default: 20, or 10
    /// with --quick]
    #[arg(long, value_name = "MS", value_parser = within(1..=600_000))]
    #[arg(default_value = "20", hide_default_value = true)]
    #[arg(default_value_if("quick", "true", "10"))]
    pub(crate) run_ms: u32,
    /// Maximum number of rounds, each with refilled designs, until it is clear which are equal
    #[arg(long, value_name = "N", default_value = "24", value_parser = within(1..=1000))]
    pub(crate) rounds: u32,
}

impl Workload {
    /// Fills in what follows from the options, for so many CPUs that this process may use; `quick`
    /// where all has to be over soon.
    pub(crate) fn resolve(mut self, cpus: usize, quick: bool) -> Result<Workload> {
        self.threads = self.range.map_or((cpus as u32).max(1), |[_, most]| most);
        self.keys_max = self.max_keys.unwrap_or(if quick { 20_000 } else { 100_000 });
        if self.uniform {
            self.popularity = Popularity::Uniform;
        }
        self.check().map_err(Failure::usage)?;
        Ok(self)
    }

    /// The fewest threads of the curves, if any are asked for; `threads` are the most.
    pub(crate) fn threads_from(&self) -> Option<u32> {
        self.range.and_then(|[from, to]| (from < to).then_some(from))
    }

    /// Whether a table that fits the caches is measured, too: nothing was said of keys.
    pub(crate) fn has_small_table(&self) -> bool {
        self.kind == Kind::Table && self.keys.is_none() && self.max_keys.is_none()
    }

    /// The one of those who say nothing, on two CPUs.
    #[cfg(test)]
    pub(crate) fn built_in() -> Workload {
        let defaults: Workload = crate::arguments::options([""; 0]).expect("each has a default");
        defaults.resolve(2, false).expect("the defaults go together")
    }

    /// What says something that its kind has no use for would be measured as if it were not said.
    fn check(&self) -> Result<(), String> {
        const COUNTED: &[Kind] = &[Kind::Counter, Kind::Reference];
        let only = [
            (self.keys.is_some(), "--keys", Kind::KEYED),
            (self.max_keys.is_some(), "--max-keys", Kind::KEYED),
            (self.uniform, "--uniform", Kind::KEYED),
            (self.popularity != Popularity::Zipf(0.99), "--zipf", Kind::KEYED),
            (self.churn_percent > 0.0, "--churn", &[Kind::Table]),
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
        if self.kind == Kind::Queue && self.reads_percent != 50.0 {
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
                (None, false) => "a counter whose sums need not be exact".to_owned(),
            },
            Kind::Queue => "a queue that all threads put in and take out of".to_owned(),
            Kind::Ids => format!("values by ids, {}", self.popularity),
        }
    }
}

/// What a workload file says, as options; `is_typed` are those that the command line has, which
/// come before the file's.
pub(crate) fn options_of(path: &Path, is_typed: impl Fn(&str) -> bool) -> Result<Vec<OsString>> {
    let text = text_of(path)?;
    let wrong = |place: Option<usize>, why: &str| {
        let path = path.display();
        let Some(place) = place else { return Failure::usage(format!("{path}: {why}")) };
        let number = text[..place.min(text.len())].matches('\n').count() + 1;
        let line = text.lines().nth(number - 1).unwrap_or_default().trim();
        Failure::usage(format!("{path}, line {number}: {why}\n  {number} | {line}"))
    };
    let lines: BTreeMap<Spanned<String>, Value> = toml::from_str(&text).map_err(|error| {
        let why = error.message().trim_end().trim_start_matches("JSON ");
        wrong(error.span().map(|span| span.start), why)
    })?;
    let mut options = Vec::new();
    for (name, value) in lines {
        let id = name.as_ref().replace('-', "_");
        let refuse = |why: &str| wrong(Some(name.span().start), why);
        // Another name could end the option that it is made into, or be a value of it.
        if alone::<Workload>().get_arguments().all(|known| known.get_id() != id.as_str()) {
            return Err(refuse(&format!("unexpected argument '--{}' found", name.as_ref())));
        }
        let mut option = OsString::from(format!("--{}", id.replace('_', "-")));
        match &value {
            Value::Bool(_) => {}
            // A key file that is named in a workload file is looked for beside that file.
            Value::String(keys) if id == "keys" && keys != "-" => {
                option.push("=");
                option.push(path.with_file_name(keys));
            }
            Value::String(text) => option.push(format!("={text}")),
            // What is no number, or without end, has become null.
            Value::Array(_) | Value::Object(_) | Value::Null => {
                return Err(refuse("give one text or number"));
            }
            other => option.push(format!("={other}")),
        }
        refused([&option]).map_or(Ok(()), |why| Err(refuse(&why)))?;
        if value != false && !is_typed(&id) {
            options.push(option);
        }
    }
    refused(&options).map_or(Ok(options), |why| Err(wrong(None, &why)))
}

/// Why these options are refused, if they are.
fn refused<'a>(options: impl IntoIterator<Item = &'a OsString>) -> Option<String> {
    let error = alone::<Workload>().try_get_matches_from(options).err()?;
    let error = in_plain_words(error, &alone::<Workload>()).to_string();
    let why = error.split("\n\n").next().unwrap_or_default();
    Some(why.trim_start_matches("error: ").to_owned())
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

    /// The workload of these words, with this text as its file.
    fn with_file(words: &str, text: &str) -> Workload {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("w.toml");
        std::fs::write(&path, text).unwrap();
        let typed = format!("rcu --workload {} {words}", path.display());
        let cli = crate::arguments::parsed(typed.split_whitespace()).unwrap();
        let workload = cli.advise.workload.resolve(2, false).unwrap();
        if let Some(keys) = &workload.keys {
            assert_eq!(keys.parent(), Some(directory.path()), "beside the file");
        }
        workload
    }

    #[test]
    fn defaults_answer_everything() {
        let full = Workload::built_in();
        assert_eq!((full.threads, full.reads_percent), (2, 99.0));
        assert_eq!(full.popularity, Popularity::Zipf(0.99));
        assert_eq!(with_file("", "kind = \"counter\"").reads_percent, 1.0);
    }

    /// A flag that is not typed counts as present: it has a default.
    #[test]
    fn runs_that_were_not_to_be_quick_measured_as_shortly_as_those_that_were() {
        let run_ms = |words: &str| {
            let cli = crate::arguments::parsed(words.split(' ')).unwrap();
            match cli.command {
                Some(crate::Command::Advise(args)) => args.workload.run_ms,
                _ => cli.advise.workload.run_ms,
            }
        };
        for (words, expected) in [("", 20), (" --quick", 10), (" --quick --run-ms 7", 7)] {
            for command in ["rcu", "rcu advise"] {
                assert_eq!(run_ms(&format!("{command}{words}")), expected, "{command}{words}");
            }
        }
    }

    #[test]
    fn flags_override_the_file() {
        let file = "reads = 50\nuniform = true\nkeys = \"k.txt\"\nname = \"w\"\nexact = false\n";
        let workload = with_file("--reads 90", file);
        assert_eq!((&*workload.name, workload.reads_percent), ("w", 90.0));
        assert_eq!(workload.popularity, Popularity::Uniform);
        assert!(workload.keys.is_some() && !workload.exact);
        let bytes = |words: &str| with_file(words, "value-bytes = 5").value_bytes;
        assert_eq!((bytes(""), bytes("--value-bytes 7")), (5, 7));
        assert_eq!(with_file("--zipf 2", file).popularity, Popularity::Zipf(2.0));
    }

    /// The options of a file were put behind the first word that was the command's name.
    #[test]
    fn a_program_that_was_called_advise_took_the_options_of_a_file_for_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("w.toml");
        std::fs::write(&path, "threads = 7").unwrap();
        for words in ["advise advise --workload FILE", "rcu advise --workload FILE --"] {
            let words = words.replace("FILE", path.to_str().unwrap());
            let cli = crate::arguments::parsed(words.split_whitespace()).unwrap();
            let Some(crate::Command::Advise(args)) = cli.command else { panic!("{words}") };
            assert_eq!(args.workload.range, Some([7, 7]));
        }
    }
}
