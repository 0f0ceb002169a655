//! `rcu bench engines`: the library's grace-period engines on a path-lookup cache, beside each
//! other.

use std::path::{Path, PathBuf};
use std::time::Duration;

use quiescence::Engine;

use super::rounds::{Case, Metric, Sample, Session, Unit};
use super::{Options, Suite};
use crate::Error;
use crate::cases::engines;
use crate::cases::path_cache::Tree;
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
}

/// The suite, ready to run.
///
/// # Errors
/// If an engine is named that there is not, or the tree cannot be read.
pub fn prepare(load: &Load, options: &Options) -> Result<Suite, Error> {
    let (engines, base) = options.choose_by(&Engine::ALL, |engine| engine.name(), &["tick"])?;
    let tree = tree(load)?;
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let threads = load.threads.map_or(cpus, |threads| threads as usize);
    let duration = if options.quick { DURATION_QUICK } else { DURATION };
    Ok(Suite {
        name: "engines",
        base,
        duration: duration * options.rounds() * engines.len() as u32,
        measure: Box::new(move |session| {
            Ok(measure(&engines, &tree, threads, duration, session)?.into_iter().collect())
        }),
    })
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

fn measure(
    engines: &[&Engine],
    tree: &Tree,
    threads: usize,
    duration: Duration,
    session: &mut Session<'_>,
) -> Result<Option<Case>, Error> {
    let title = "path look-ups beside renames and unlinks, QSBR threads";
    let rivals = engines.iter().map(|engine| (engine.name(), true));
    let case = Case::new("engines/path-cache", title, METRICS, rivals);
    session.host.note(&format_args!(
        "a tree of {} entries, {} of them files; {threads} threads. An iteration is {} look-ups of a \
         thread; CPU is of all CPUs; a callback takes from call() to being run, a waiter as \
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

    fn load(tree: Option<&str>) -> Load {
        Load { tree: tree.map(PathBuf::from), entries: 20_000, threads: None }
    }

    #[test]
    fn bad_input_is_refused_with_what_to_do() {
        let options = Options { only: vec!["fast".to_owned()], ..Options::default() };
        let refused = prepare(&load(None), &options).unwrap_err().to_string();
        assert!(refused.contains("adaptive, poll, tick, token"), "{refused}");
        let refused = prepare(&load(Some("/no/such/tree")), &Options::default()).unwrap_err();
        assert!(refused.to_string().contains("/no/such/tree"), "{refused}");
    }

    #[test]
    fn all_engines_are_compared_with_the_tick() {
        let options = Options { quick: true, ..Options::default() };
        let suite = prepare(&load(Some(".")), &options).expect("our own sources hold files");
        assert_eq!((suite.name, suite.base), ("engines", "tick"));
        assert_eq!(suite.duration, DURATION_QUICK * 7 * 4);
    }
}
