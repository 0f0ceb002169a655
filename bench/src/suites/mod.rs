//! The suites of `rcu bench`: which cases, of which rivals, in which rounds, and what the project
//! has promised of them.
//!
//! - [`rounds`]: who is measured when; rounds are interleaved, the order drawn anew for each.
//! - [`SUITES`]: what `suites.toml` lists; [`scenes`]: how nine of the suites are measured.
//! - [`engines`], [`map`], [`tools`], [`cache`], [`compat`]: the other suites; [`readme`],
//!   [`pictures`]: some figures of all of them, for README.
//! - [`promises`]: what the project has promised, and whether it holds here.

pub mod cache;
pub mod compat;
pub mod engines;
mod listed;
pub mod map;
pub mod pictures;
pub mod promises;
pub mod readme;
pub mod rounds;
pub mod scenes;
pub mod tools;

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;

use crate::data::read_toml;
use crate::rivals::{self, SOURCES, Source};
use crate::statistics::Ratio;
use crate::{Error, Host, units};
pub use listed::Scenes;
use promises::Verdict;
use rounds::{Case, Session};

/// What `suites.toml` lists: suites with their cases, and the tables of README.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Suites {
    /// A section: to enter it, load the pointer, read its word, leave; also inside another one.
    pub read: Scenes<scenes::What>,
    /// How long a grace period takes.
    pub gp: Scenes<scenes::What>,
    /// The same with more readers than CPUs: what waiting for it costs them.
    pub oversubscribed: Scenes<scenes::What>,
    /// An object of 64 bytes is replaced and the old one retired, and all that comes with it.
    pub update: Scenes<scenes::What>,
    /// The module with the interface of crossbeam-epoch, beside that.
    pub epoch: Scenes<scenes::What>,
    /// Tables that give out ids.
    pub ids: Scenes<scenes::What>,
    /// Sleepable domains.
    pub srcu: Scenes<scenes::What>,
    /// What is done on the slot of the CPU.
    pub percpu: Scenes<scenes::What>,
    /// An `Arc` in a place where it can be replaced, and hazard pointers.
    pub cells: Scenes<scenes::What>,
    /// The liburcu-compatible libraries beside Debian's.
    pub compat: Scenes<compat::Asked>,
    /// What the place of data in the caches costs.
    pub cache: Scenes<cache::Lesson>,
    /// What each of the transformations of the guide is worth.
    pub tools: Scenes<tools::Tool>,
    /// The engines of a domain.
    pub engines: Scenes<engines::Own>,
    /// Concurrent maps.
    pub map: Scenes<map::Pattern>,
    /// The tables of README.
    pub readme: Vec<readme::Table>,
    /// The pictures of README and docs/MEASURED.md.
    pub pictures: Vec<pictures::Picture>,
}

/// What the file lists.
pub static SUITES: LazyLock<Suites> =
    LazyLock::new(|| read_toml(include_str!("../../suites.toml")));

/// Rounds from which an interval of 95 % misses one outlier on either side.
const ROUNDS: u32 = 15;
/// The fewest rounds that give an interval of 95 % at all are six.
const ROUNDS_QUICK: u32 = 7;

/// What all suites are told.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Measure for a shorter time, in fewer rounds.
    pub quick: bool,
    /// Measure every rival so often; 15 times without, or 7 if `quick`.
    pub rounds: Option<u32>,
    /// The order within the rounds is drawn from this.
    pub seed: u64,
    /// Measure only these rivals, or all if there are none.
    pub only: Vec<String>,
    /// Compare with this rival, or with the suite's own choice.
    pub base: Option<String>,
    /// Do so many per cent more work than is counted, in the suites that time loops: a regression
    /// of a known size, for trials of what looks for regressions.
    pub planted_percent: f64,
    /// Keep each thread on a CPU of its own, in what is measured by slices.
    pub pin: bool,
}

impl Options {
    fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.quick { ROUNDS_QUICK } else { ROUNDS })
    }

    /// The rivals that were asked for, in their own order, and the name of the base among them.
    ///
    /// The base is the first of `bases` that is among them, unless the user names one.
    fn choose<R: Copy>(
        &self,
        known: &[R],
        name: impl Fn(&R) -> &'static str,
        bases: &[&str],
    ) -> Result<(Vec<R>, &'static str), Error> {
        let names: Vec<&str> = known.iter().map(&name).collect();
        for wanted in self.only.iter().chain(&self.base) {
            if !names.contains(&wanted.as_str()) {
                return Err(unknown(wanted, &names));
            }
        }
        let is_wanted =
            |rival: &R| self.only.is_empty() || self.only.iter().any(|n| n == name(rival));
        let chosen: Vec<R> = known.iter().copied().filter(is_wanted).collect();
        let among = |wanted: &str| chosen.iter().map(&name).find(|n| *n == wanted);
        let base = match &self.base {
            Some(base) => among(base).ok_or_else(|| {
                Error::Usage(format!("--base {base} is not among the rivals of --only"))
            })?,
            None => bases.iter().find_map(|base| among(base)).unwrap_or_else(|| name(&chosen[0])),
        };
        Ok((chosen, base))
    }
}

/// One thread, and as many as each of these, or one for each CPU, at least two.
fn one_and_several(threads: &[u32]) -> Vec<usize> {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let default = threads.is_empty().then_some(cpus.max(2));
    let asked = threads.iter().map(|&threads| threads as usize);
    BTreeSet::from_iter(asked.chain(default).chain([1])).into_iter().collect()
}

/// So many threads, in the id of a case.
fn in_threads(threads: usize) -> String {
    format!("{threads}-thread{}", if threads == 1 { "" } else { "s" })
}

/// So many threads, in the title of a case.
fn by(threads: usize) -> String {
    if threads == 1 { "one thread".to_owned() } else { format!("{threads} threads") }
}

/// What was published, with our ratio in its place: in brackets, at its end, which are left out
/// where there is none.
fn beside(published: &str, here: Option<Ratio>) -> String {
    match here {
        Some(here) => published.replace("{}", &units::ratio(here.median)).replace(['[', ']'], ""),
        None => published.split('[').next().unwrap_or_default().to_owned(),
    }
}

fn unknown(wanted: &str, known: &[&str]) -> Error {
    if let Some(source) = rivals::left_out(wanted) {
        return Error::Unsupported(built_without(&[source.module], source));
    }
    let known = known.join(", ");
    Error::Usage(format!(
        "no rival is called {wanted:?} in what is to be measured; there are: {known}"
    ))
}

/// A group of cases: what `--case` takes, and what it says of it.
pub type Group = (&'static str, &'static str);

/// Which rivals are left out of this program: a sentence for each feature that has them.
pub fn left_out() -> Vec<String> {
    let mut sentences: Vec<(&Source, Vec<&str>)> = Vec::new();
    for source in SOURCES.iter().filter(|source| !source.is_compiled_in) {
        match sentences.iter_mut().find(|(known, _)| known.feature == source.feature) {
            Some((_, modules)) => modules.push(source.module),
            None => sentences.push((source, vec![source.module])),
        }
    }
    sentences.iter().map(|(source, modules)| built_without(modules, source)).collect()
}

fn built_without(modules: &[&str], source: &Source) -> String {
    let modules = modules.join(", ").replace('_', "-");
    let feature = source.feature.unwrap_or_default();
    let them = if modules.contains(',') { "them" } else { "it" };
    format!("{modules}: built without {them} (cargo run --release --features {feature})")
}

/// A benchmark that is ready to run.
pub struct Suite {
    /// `read`, `gp`, `gp --oversubscribed`, `update`, `epoch`, `ids`, `engines`, `srcu`, `percpu`,
    /// `cells`, `map`, `tools`, `cache`, `compat`, `readme` or `pictures`.
    pub name: &'static str,
    /// With whom the others are compared.
    pub base: &'static str,
    /// About how long it takes.
    pub duration: Duration,
    planned: Vec<Planned>,
    /// What is said before.
    note: Option<String>,
}

impl std::fmt::Debug for Suite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Suite").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Suite {
    fn new(name: &'static str, base: &'static str, planned: Vec<Planned>) -> Self {
        let duration = planned.iter().map(|planned| planned.duration).sum();
        Self { name, base, duration, planned, note: None }
    }

    /// Measures, and judges what was promised of what was measured.
    ///
    /// # Errors
    /// If a case cannot be measured here.
    pub fn run(
        self,
        host: &mut dyn Host,
        options: &Options,
    ) -> Result<(Vec<Case>, Vec<Verdict>), Error> {
        let mut session = Session::new(host, options);
        if let Some(note) = self.note {
            session.host.note(&note);
        }
        let mut cases = Vec::new();
        for planned in self.planned {
            cases.extend(planned.measure(&mut session));
            if let Some(failed) = session.failed.take() {
                return Err(failed);
            }
        }
        let verdicts = promises::judge(&cases);
        Ok((cases, verdicts))
    }
}

/// A case that is ready to be measured.
struct Planned {
    case: Case,
    /// In how many rounds, and about how long a rival takes in each.
    amount: (u32, Duration),
    /// About how long it takes.
    duration: Duration,
    measure: Measure,
}

/// Gives the case its figures. After a stop there may be none.
type Measure = Box<dyn FnOnce(&mut Session<'_>, Case) -> Option<Case>>;

impl Planned {
    /// A case of which each rival is measured in so many rounds, for about so long.
    fn new(
        case: Case,
        amount: (u32, Duration),
        measure: impl FnOnce(&mut Session<'_>, Case) -> Option<Case> + 'static,
    ) -> Self {
        let duration = amount.1 * amount.0 * case.rivals.len() as u32;
        Self { case, amount, duration, measure: Box::new(measure) }
    }

    fn measure(self, session: &mut Session<'_>) -> Option<Case> {
        if session.host.must_stop() || self.case.rivals.is_empty() {
            return None;
        }
        session.host.announce(&self.case.title);
        session.amount = self.amount;
        let mut case = (self.measure)(session, self.case)?;
        case.cut = session.host.must_stop();
        Some(case)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These names, as a user gives them.
    pub(super) fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    /// In a hurry, in so many rounds, of these rivals or of all.
    pub(super) fn quick(rounds: u32, only: &[&str]) -> Options {
        let (rounds, only) = (Some(rounds), names(only));
        Options { quick: true, rounds, seed: 1, only, ..Options::default() }
    }

    /// Each of these groups has a part of what is measured, and all have the whole.
    pub(super) fn are_whole(groups: &[&str], prepare: impl Fn(&[String]) -> Suite) {
        let parts = groups.iter().map(|group| prepare(&names(&[group])).duration);
        let (parts, all): (Vec<Duration>, _) = (parts.collect(), prepare(&[]));
        assert!(parts.iter().all(|part| !part.is_zero()), "{}: {parts:?}", all.name);
        assert_eq!(parts.iter().sum::<Duration>(), all.duration, "{}", all.name);
    }

    /// Asserts that a case has this metric, and these rivals as far as they are compiled in.
    pub(super) fn has(case: &Case, metric: &str, rivals: impl IntoIterator<Item = &'static str>) {
        let id = &case.id;
        assert!(case.metrics.iter().any(|known| known.name == metric), "{id}: {metric}");
        for name in rivals {
            let is_left_out = rivals::left_out(name).is_some();
            assert!(is_left_out || case.rival(name).is_some(), "{id}: {name}");
        }
    }

    /// All benchmarks of scenes.
    pub(super) fn all_scenes() -> [&'static Scenes<scenes::What>; 9] {
        let Suites { read, gp, oversubscribed, update, epoch, ids, srcu, percpu, cells, .. } =
            &*SUITES;
        [read, gp, oversubscribed, update, epoch, ids, srcu, percpu, cells]
    }

    const KNOWN: &[&str] = &["a", "b", "c"];

    fn choose(
        only: &[&str],
        base: Option<&str>,
    ) -> Result<(Vec<&'static str>, &'static str), String> {
        let options = Options { base: base.map(str::to_owned), ..quick(1, only) };
        let chosen = options.choose(KNOWN, |name| name, &["x", "b"]);
        chosen.map_err(|failure| failure.to_string())
    }

    #[test]
    fn all_are_chosen_unless_some_are_named() {
        assert_eq!(choose(&[], None), Ok((vec!["a", "b", "c"], "b")));
        assert_eq!(choose(&["c", "a"], None), Ok((vec!["a", "c"], "a")));
        assert_eq!(choose(&["c", "a"], Some("c")), Ok((vec!["a", "c"], "c")));
    }

    #[test]
    fn a_rival_that_is_left_out_is_answered_with_its_feature() {
        for source in SOURCES.iter().filter(|source| !source.is_compiled_in) {
            let name = source.module.replace('_', "-");
            let prepared = SUITES.read.prepare(&[], &quick(1, &[&name]));
            let Err(Error::Unsupported(message)) = prepared else {
                panic!("{name} is compiled in, or another error");
            };
            let feature = source.feature.unwrap();
            assert!(message.contains(&name) && message.contains(feature), "{message}");
            assert!(left_out().iter().any(|sentence| sentence.contains(&name)), "{name}");
        }
    }

    #[test]
    fn fewer_rounds_when_in_a_hurry_and_as_many_as_are_asked_for() {
        let rounds = |quick, rounds| Options { quick, rounds, ..Options::default() }.rounds();
        assert_eq!((rounds(false, None), rounds(true, None)), (ROUNDS, ROUNDS_QUICK));
        assert_eq!(rounds(true, Some(3)), 3);
    }
}
