//! What the torture says: the set-up before it begins, the counts and the verdict at the end.

use std::io;

use quiescence::tuning::Engine;
use serde::ser::{Serialize, Serializer};
use serde_json::json;

use crate::screen::Screen;

use super::fixture::DomainCounts;
use super::kinds::{FaultKind, Named, Operation, ReaderKind, Way};
use super::ledger::{Fault, HISTOGRAM, Ledger};
use super::pool::PIPE_LEN;
use super::themes::{Theme, Themes};
use super::watch::{Ending, PATIENCE};

/// The JSON that this command writes, and its version; see `docs/JSON.md`.
const SCHEMA: &str = "quiescence/torture";
const VERSION: u32 = 2;

/// What a run is.
#[derive(Clone, Debug, serde::Serialize)]
pub(crate) struct Setup {
    pub(crate) seed: u64,
    pub(crate) commit: &'static str,
    /// In the words of `QUIESCENCE_FENCES` and of `QUIESCENCE_PERCPU`.
    pub(crate) fences: &'static str,
    pub(crate) per_cpu: &'static str,
    #[serde(serialize_with = "name")]
    pub(crate) engine: Engine,
    pub(crate) mutant: Option<&'static str>,
    pub(crate) themes: Themes,
    pub(crate) seconds: u64,
    pub(crate) cpus: usize,
    pub(crate) readers: usize,
    pub(crate) updaters: usize,
}

fn name<S: Serializer>(engine: &Engine, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(engine.name())
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// No fault was found.
    Clean,
    /// A fault was found in the library as it is.
    Faulty,
    /// The removed step was noticed.
    Caught,
    /// It was not.
    Missed,
    /// Ctrl-C, and no fault until then.
    Interrupted,
}

/// What a run found: the document of `--json`.
#[derive(serde::Serialize)]
pub(crate) struct Report<'a> {
    schema: &'static str,
    version: u32,
    #[serde(flatten)]
    setup: &'a Setup,
    interrupted: bool,
    pub(crate) verdict: Verdict,
    elapsed_s: f64,
    reads: u64,
    /// Reads by the age of the block at the end of the section; the last place is "more".
    ages: [u64; HISTOGRAM],
    /// Some reads by the grace periods that ended inside the section; the last place is "more".
    batches: [u64; HISTOGRAM],
    reads_by_kind: Vec<Count<ReaderKind>>,
    /// Whether no reader ever overlapped an update: then nothing has been tested.
    weak: bool,
    /// Nothing if the locks that the counts need were stuck.
    domains: Option<Vec<DomainCounts>>,
    callbacks_queued: u64,
    callbacks_run: u64,
    updates: Vec<Count<Way>>,
    /// What the other themes than `readers` did, and what they were to do.
    deferred: Vec<Count<Operation>>,
    faults: Vec<Count<FaultKind>>,
    first_fault: Option<&'a Fault>,
    /// What `rcu torture` says of where and by what the run was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    provenance: Option<serde_json::Value>,
}

/// How often something was.
struct Count<T> {
    of: T,
    count: u64,
}

impl<T: Named> Serialize for Count<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(T::KEY, json!(self.of)), ("count", json!(self.count))])
    }
}

/// How often each was of those that are so.
fn counts<T: Named>(are: impl Fn(T) -> bool, count: impl Fn(T) -> u64) -> Vec<Count<T>> {
    let all = T::ALL.iter().copied().filter(|of| are(*of));
    all.map(|of| Count { of, count: count(of) }).collect()
}

impl Setup {
    /// Whether there are blocks with an age.
    fn has_blocks(&self) -> bool {
        self.themes.has(Theme::Readers) || self.themes.has(Theme::Sleepable)
    }

    /// Writes what is about to happen; the seed and the commit first.
    pub(crate) fn print(&self, output: &Screen) -> io::Result<()> {
        let Self { readers, updaters, cpus, seconds, engine, .. } = self;
        let (patience, themes) = (PATIENCE.as_secs(), self.themes.names().join(", "));
        let threads = format!(
            "{readers} readers and {updaters} updaters on {cpus} CPUs, in five domains; others for \
             the other themes"
        );
        let time =
            format!("{seconds} s; a thread that makes no progress for {patience} s is stuck");
        let removed = self.mutant.map(|name| format!("{name}: the run ends when that is noticed"));
        let entries = [
            ("seed", Some(self.seed.to_string())),
            ("commit", Some(self.commit.to_owned())),
            ("fences", Some(self.fences.to_owned())),
            ("per CPU", Some(self.per_cpu.to_owned())),
            ("engine", Some(format!("{engine} in the private domains"))),
            ("themes", Some(themes)),
            ("threads", self.themes.has(Theme::Readers).then_some(threads)),
            ("time", Some(time)),
            ("removed", removed),
        ];
        let mut told = entries.into_iter().filter_map(|(label, text)| Some((label, text?)));
        told.try_for_each(|(label, text)| output.entry(label, &text))
    }
}

impl Verdict {
    fn new(setup: &Setup, ending: Ending, faults: u64) -> Self {
        match (setup.mutant, faults, ending) {
            (Some(_), 1.., _) => Self::Caught,
            (None, 1.., _) => Self::Faulty,
            (_, 0, Ending::Interrupted) => Self::Interrupted,
            (Some(_), 0, _) => Self::Missed,
            (None, 0, _) => Self::Clean,
        }
    }

    /// The exit code that says so.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Clean | Self::Caught => 0,
            Self::Faulty | Self::Missed => 1,
            Self::Interrupted => 130,
        }
    }
}

impl<'a> Report<'a> {
    pub(crate) fn new(
        setup: &'a Setup,
        ledger: &'a Ledger,
        domains: Option<Vec<DomainCounts>>,
        ending: Ending,
    ) -> Self {
        use std::sync::atomic::Ordering::Relaxed;
        let ages = ledger.histogram(|record| &record.ages);
        let provenance = std::env::var("RCU_PROVENANCE").ok();
        let has = |of_threads, of_sleepable| {
            setup.themes.has(Theme::Readers) && of_threads
                || setup.themes.has(Theme::Sleepable) && of_sleepable
        };
        Self {
            schema: SCHEMA,
            version: VERSION,
            interrupted: ending == Ending::Interrupted,
            setup,
            verdict: Verdict::new(setup, ending, ledger.faults_total()),
            elapsed_s: ledger.elapsed().as_secs_f64(),
            reads: ages.iter().sum(),
            weak: setup.has_blocks() && ages[1..].iter().all(|&reads| reads == 0),
            ages,
            batches: ledger.histogram(|record| &record.batches),
            reads_by_kind: counts(
                |kind: ReaderKind| has(kind.is_of_threads(), kind.is_of_sleepable()),
                |kind| ledger.reads(kind),
            ),
            domains,
            callbacks_run: ledger.calls_run.load(Relaxed),
            callbacks_queued: ledger.calls_queued.load(Relaxed),
            updates: counts(
                |way: Way| has(way.is_of_threads(), way.is_of_sleepable()),
                |way| ledger.ways.get(way),
            ),
            deferred: counts(
                |of| setup.themes.have(of) || ledger.operations.get(of) != 0,
                |of| ledger.operations.get(of),
            ),
            faults: counts(|_| true, |kind| ledger.faults(kind)),
            first_fault: ledger.first.get(),
            provenance: provenance.and_then(|text| serde_json::from_str(&text).ok()),
        }
    }

    /// Writes all of it for people, under the names that JSON has.
    pub(crate) fn print(&self, output: &Screen) -> io::Result<()> {
        if self.setup.has_blocks() {
            output.table("What readers saw", &self.seen())?;
            output.line(
                "Age 0 is a published block, 1 one that was replaced while it was read. Grace \
                 periods are counted for one read in 64.",
            )?;
            output.table("What read", &self.reads_by_kind)?;
            output.table("What updated", &self.updates)?;
            match &self.domains {
                Some(domains) => output.table("Statistics of the domains", domains)?,
                None => output.line("\nThe statistics of the domains need a lock that is stuck")?,
            }
            output.line(&format!(
                "{} closures were queued with call(), {} have run",
                self.callbacks_queued, self.callbacks_run
            ))?;
        }
        let done: Vec<_> = self.deferred.iter().filter(|deferred| deferred.count != 0).collect();
        output.table("Other operations", &done)?;
        output.line("\nVerdict")?;
        if self.weak {
            output.line(
                "weak test: no reader overlapped an update; run longer, or with more threads",
            )?;
        }
        for fault in self.faults.iter().filter(|fault| fault.count > 0) {
            output.line(&format!("{}: {}", fault.of.name(), fault.count))?;
        }
        if let Some(first) = self.first_fault {
            output.entry("first", &first.describe())?;
        }
        output.line(&self.conclusion())
    }

    /// The histograms, without what no reader saw; an age of 1 is told all the same.
    fn seen(&self) -> Vec<serde_json::Value> {
        let counts = self.ages.iter().zip(&self.batches).enumerate();
        let seen = counts.filter(|(n, (ages, batches))| *n <= 1 || **ages > 0 || **batches > 0);
        let row = |(n, (ages, batches)): (usize, (&u64, &u64))| {
            let n = if n <= PIPE_LEN { n.to_string() } else { format!("> {PIPE_LEN}") };
            json!({"n": n, "reads at age n": ages, "reads with n grace periods inside": batches})
        };
        seen.map(row).collect()
    }

    fn conclusion(&self) -> String {
        let reads = self.reads;
        let seconds = format!("{:.1}", self.elapsed_s);
        match (self.verdict, self.setup.mutant) {
            (Verdict::Caught, Some(mutant)) => format!("caught: {mutant}, after {seconds} s"),
            (Verdict::Missed, Some(mutant)) => format!("NOT caught: {mutant}, in {seconds} s"),
            (Verdict::Faulty, _) => format!("FAULTY: {reads} reads in {seconds} s"),
            (Verdict::Interrupted, _) => {
                format!("interrupted, clean until then: {reads} reads in {seconds} s")
            }
            _ => format!("clean: {reads} reads in {seconds} s"),
        }
    }
}

impl Fault {
    fn describe(&self) -> String {
        let known = [
            (!self.domain.is_empty()).then(|| format!(", in the {}", self.domain)),
            self.reader.map(|reader| format!(", seen by {}", reader.name())),
            self.updater.map(|updater| format!(", updated by {}", updater.name())),
        ];
        let known: String = known.into_iter().flatten().collect();
        format!("{} after {:.3} s{known}: {}", self.kind.name(), self.after_s, self.detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::ThreadRecord;

    fn setup(mutant: Option<&'static str>) -> Setup {
        Setup {
            seed: 1,
            engine: Engine::Adaptive,
            commit: "none",
            fences: "portable",
            per_cpu: "portable",
            mutant,
            themes: Themes::new(&[]),
            seconds: 1,
            cpus: 1,
            readers: 1,
            updaters: 1,
        }
    }

    fn verdict(mutant: Option<&'static str>, faults: u64, ending: Ending) -> Verdict {
        let ledger = Ledger::new(vec![]);
        for _ in 0..faults {
            ledger.fault(FaultKind::Age, "global domain", None, None, String::new);
        }
        Report::new(&setup(mutant), &ledger, None, ending).verdict
    }

    #[test]
    fn a_fault_is_good_news_only_where_a_step_is_missing() {
        assert_eq!(verdict(None, 0, Ending::Finished).exit_code(), 0);
        assert_eq!(verdict(None, 2, Ending::Finished).exit_code(), 1);
        assert_eq!(verdict(None, 1, Ending::Interrupted).exit_code(), 1);
        assert_eq!(verdict(None, 0, Ending::Interrupted).exit_code(), 130);
        assert_eq!(verdict(Some("m"), 1, Ending::Caught).exit_code(), 0);
        assert_eq!(verdict(Some("m"), 0, Ending::Finished).exit_code(), 1);
        assert_eq!(verdict(Some("m"), 0, Ending::Interrupted).exit_code(), 130);
    }

    #[test]
    fn a_test_is_weak_until_a_reader_overlaps_an_update() {
        let ledger = Ledger::new(vec![ThreadRecord::new("a reader".to_owned())]);
        let setup = setup(None);
        let weak = || Report::new(&setup, &ledger, None, Ending::Finished).weak;
        ledger.records[0].ages.count(0);
        assert!(weak());
        ledger.records[0].ages.count(1);
        assert!(!weak());
    }

    #[test]
    fn the_first_fault_is_told_whole() {
        let fault = Fault {
            kind: FaultKind::Age,
            after_s: 1.5,
            domain: "global domain".to_owned(),
            reader: Some(ReaderKind::Qsbr),
            updater: Some(Way::Call),
            detail: "block 3 had age 2".to_owned(),
        };
        assert_eq!(
            fault.describe(),
            "age above 1 after 1.500 s, in the global domain, seen by QSBR, updated by call: \
             block 3 had age 2"
        );
    }
}
