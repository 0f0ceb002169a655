//! `rcu bench engines`: the library's grace-period engines on a path-lookup cache, beside each
//! other. Table 3 and figure 7 of the paper of 2003, with engines for threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quiescence::tuning::Engine;
use serde::Deserialize;

use super::SUITES;
use super::rounds::{Case, Series};
use super::{Options, Planned, Suite};
use crate::Error;
use crate::cases::engines::{self, Load as Loaded};
use crate::cases::tree::Tree;
use crate::units;

/// Of the metrics of work, those whose ratios to the base are shown.
const WORK_COMPARED: usize = 2;

/// Work is measured in so many rounds in place of each one.
const WORK_PARTS: u32 = 4;

/// Readers a CPU that wait for it in turn: so they are far from their next quiescent state, as the
/// CPUs of figure 7 were.
const CROWD: usize = 8;

/// Trees that are there on most machines.
const TREES: [&str; 3] = ["/usr/share", "/usr", "."];

/// What is looked up, and by how many.
#[derive(Clone, Debug)]
pub struct Load {
    /// The directory tree whose paths are looked up; without, the first of /usr/share, /usr and the
    /// current directory that is there.
    pub tree: Option<PathBuf>,
    /// Entries of the tree that are taken, level by level.
    pub entries: u32,
    /// Threads that look up; one for each CPU without.
    pub threads: Option<u32>,
    /// Look-ups of a thread from one quiescent state to the next, at least 1.
    pub quiescent_every: u32,
}

/// What a case has of its own.
#[derive(Debug, Deserialize)]
pub struct Own {
    readers: Readers,
    /// What the figures are to be held against, and why they differ.
    #[serde(default)]
    paper: Option<String>,
}

/// How many threads look up.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Readers {
    /// As many as are asked for.
    Asked,
    /// So many that one CPU is left for the worker, which is a thread: where readers keep all CPUs
    /// busy, it waits for one.
    Spare,
    /// Several times as many as CPUs.
    Crowded,
}

impl Readers {
    /// Nothing if one CPU is left anyway, or there is none to leave.
    fn count(self, asked: usize, cpus: usize) -> Option<usize> {
        match self {
            Self::Asked => Some(asked),
            Self::Spare => Some(cpus - 1).filter(|fewer| (1..asked).contains(fewer)),
            Self::Crowded => Some(asked.max(CROWD * cpus)),
        }
    }
}

/// The suite, ready to run.
///
/// # Errors
/// If an engine is named that there is not, or the tree cannot be read; or if all that is asked for
/// needs a CPU to spare, and there is none.
pub fn prepare(cases: &[String], load: &Load, options: &Options) -> Result<Suite, Error> {
    let scenes = SUITES.engines.chosen(cases)?;
    let bases = &SUITES.engines.bases;
    let (chosen, base) = options.choose(&Engine::ALL, |engine| engine.name(), bases)?;
    let tree = Arc::new(tree(load)?);
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let threads = load.threads.map_or(cpus, |threads| threads as usize).max(1);
    let quiescent_every = load.quiescent_every.max(1) as usize;
    let planned = scenes.into_iter().filter_map(|scene| {
        let (tree, threads) = (Arc::clone(&tree), scene.what.readers.count(threads, cpus)?);
        let load = Loaded { tree, threads, quiescent_every };
        let (chosen, metrics) = (chosen.clone(), SUITES.engines.metrics(scene));
        let rivals = chosen.iter().map(|engine| (engine.name(), true));
        let case = Case::new(format!("engines/{}", scene.id), scene.title, metrics, rivals);
        let (rounds, duration) = SUITES.engines.amount(scene).of(options);
        let is_work = scene.id == "work";
        let (compared, parts) =
            if is_work { (WORK_COMPARED, WORK_PARTS) } else { (metrics.len(), 1) };
        let (case, rounds) = (case.comparing(compared), rounds.saturating_mul(parts));
        Some(Planned::new(case, (rounds, duration), move |session, case| {
            let measure = if is_work { engines::work } else { engines::latencies };
            let mut case = session
                .interleave(case, &mut |number, _| measure(chosen[number], &load, duration))?;
            case.notes.extend(apart(&case).filter(|_| !is_work));
            case.notes.extend(scene.what.paper.clone());
            Some(case)
        }))
    });
    let planned: Vec<Planned> = planned.collect();
    if planned.is_empty() {
        let what =
            format!("with {threads} threads on {cpus} CPUs there is none to leave, or one is");
        return Err(Error::Unsupported(format!("{what} left anyway: take --case latency")));
    }
    let suite = Suite::new("engines", base, planned);
    Ok(Suite { note: Some(note(&tree, threads, quiescent_every)), ..suite })
}

fn tree(load: &Load) -> Result<Tree, Error> {
    let read = |path: &Path| Tree::read(path, load.entries as usize);
    match &load.tree {
        Some(path) => read(path).map_err(|error| {
            Error::Usage(format!("cannot read the tree {}: {error}", path.display()))
        }),
        None => TREES.iter().find_map(|path| read(Path::new(path)).ok()).ok_or_else(|| {
            let tried = TREES.join(", ");
            Error::Usage(format!("none of {tried} holds files: name a directory with --tree"))
        }),
    }
}

fn note(tree: &Tree, threads: usize, quiescent_every: usize) -> String {
    format!(
        "a tree of {} entries, {} of them files; {} threads, each with a quiescent state every {} \
         look-ups. An iteration is {} look-ups of a thread; CPU each is the whole process's time \
         for one, CPU of all CPUs; a callback takes from call() to being run, a waiter as long as \
         synchronize(). Nothing is lazy",
        tree.entries.len(),
        tree.files.len(),
        threads,
        units::count(quiescent_every as u64),
        units::count(engines::LOOK_UPS as u64)
    )
}

/// How far apart the engines are; nothing of a single one.
fn apart(case: &Case) -> Option<String> {
    let median = |series: &Series| series.spread(0).map_or(f64::NAN, |ns| ns.median);
    let by_median = |a: &&Series, b: &&Series| median(a).total_cmp(&median(b));
    let fastest = case.rivals.iter().min_by(by_median)?;
    let slowest = case.rivals.iter().max_by(by_median)?;
    (fastest.name != slowest.name).then(|| {
        let times = units::figures(median(slowest) / median(fastest));
        let (slowest, fastest) = (slowest.name, fastest.name);
        format!(
            "the median callback takes {times} times as long under {slowest} as under {fastest}"
        )
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tests::{names, quick};
    use super::*;

    fn load(tree: Option<&str>) -> Load {
        Load { tree: tree.map(PathBuf::from), entries: 20_000, threads: None, quiescent_every: 16 }
    }

    #[test]
    fn bad_input_is_refused_with_what_to_do() {
        let refused = prepare(&[], &load(None), &quick(1, &["fast"])).unwrap_err().to_string();
        assert!(refused.contains("adaptive, poll, tick, token"), "{refused}");
        let refused = prepare(&[], &load(Some("/no/such/tree")), &Options::default()).unwrap_err();
        assert!(refused.to_string().contains("/no/such/tree"), "{refused}");
    }

    #[test]
    fn all_engines_are_compared_with_the_tick() {
        const QUICK: Duration = Duration::from_millis(80);
        let suite = |cases: &[&str], rounds| {
            prepare(&names(cases), &load(Some(".")), &quick(rounds, &[])).expect("our own sources")
        };
        let all = suite(&[], 7);
        assert_eq!((all.name, all.base), ("engines", "tick"));
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        let cases = if cpus == 1 { 3 } else { 4 };
        assert_eq!(all.duration, cases * QUICK * 7 * 4);
        assert_eq!(suite(&["latency-crowded"], 10).duration, QUICK * 7 * 4, "not in ten rounds");
    }

    #[test]
    fn cases_are_those_that_are_named_as_far_as_there_are_cpus() {
        let of = |cases: &[&str], threads, cpus| -> Vec<_> {
            let scenes = SUITES.engines.chosen(&names(cases)).expect("they are listed").into_iter();
            scenes.filter_map(|of| Some((of.id, of.what.readers.count(threads, cpus)?))).collect()
        };
        let [work, busy, spare, crowded] = ["work", "latency", "latency-spare", "latency-crowded"];
        assert_eq!(of(&[], 4, 4), [(work, 4), (busy, 4), (spare, 3), (crowded, 32)]);
        assert_eq!(of(&[], 1, 1), [(work, 1), (busy, 1), (crowded, 8)]);
        assert_eq!(of(&[spare, work], 16, 2), [(work, 16), (spare, 1)]);
        assert_eq!(of(&[crowded], 100, 2), [(crowded, 100)]);
        assert_eq!(of(&[spare], 3, 4), []);
    }

    #[test]
    fn a_cpu_is_left_where_readers_would_have_all() {
        let left = [(1, 1), (2, 2), (1, 2), (16, 2), (4, 8), (8, 8)];
        let left = left.map(|(threads, cpus)| Readers::Spare.count(threads, cpus));
        assert_eq!(left, [None, Some(1), None, Some(1), None, Some(7)]);
    }

    #[test]
    fn the_note_says_how_far_apart_the_engines_are() {
        let names = [("poll", true), ("token", true), ("tick", true)];
        let metrics = SUITES.engines.metrics(&SUITES.engines.cases[1]);
        let mut case = Case::new("engines/latency", "", metrics, names);
        for (series, ns) in case.rivals.iter_mut().zip([2e3, 8e6, 4e6]) {
            series.values = vec![vec![ns]; 3];
        }
        let note = apart(&case).expect("three engines");
        assert!(note.contains("4000 times as long under token as under poll"), "{note}");
        case.rivals.truncate(1);
        assert_eq!(apart(&case), None);
    }
}
