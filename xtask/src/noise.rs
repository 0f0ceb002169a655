//! Whether the command tells the truth on a machine that does something else besides: no figure
//! that is wrong, no recommendation that another run does not give, no regression that is none.
//!
//! Threads here spin, or sleep and wake, while the command runs. What it says then is held against
//! what it says when they do not; and two runs with other seeds have to agree (`seeds`). It takes
//! hours and measures, and so is no part of `.ci/run`.

mod seeds;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::say;
use crate::tools::built_program;

/// A figure of one thread, and one of several, may be so many times that of the idle machine.
const WITHIN: [f64; 2] = [1.05, 1.10];
/// A design that is recommended is at most so much slower, on the idle machine, than another one.
const DESIGNS_WITHIN: f64 = 1.10;
/// How long a thread that sleeps and wakes does either.
const TURN: Duration = Duration::from_millis(1);
/// Figures of several threads are compared where the CPUs of both runs were so many times as far
/// apart at most: a hypervisor moves them, and another distance is another machine.
const DISTANCES_WITHIN: f64 = 1.25;
/// A run from which a hypervisor took so many CPUs, on average, is not one of an idle machine.
const STOLEN_CPUS: f64 = 0.1;
/// What `rcu compare` measures here, the regression that is planted, and the seconds of a try.
const COMPARED: &str = "bench read --case read --only quiescence";
const PLANTED_PERCENT: &str = "3";
const SECONDS: &str = "60";

/// What the command is asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum Part {
    /// Figures of `rcu costs`.
    Costs,
    /// Recommendations of `rcu advise --quick`.
    Advise,
    /// Regressions of `rcu compare`, planted ones and none.
    Compare,
    /// Recommendations of `rcu advise` with two seeds, for all workloads.
    Seeds,
}

/// What is tried.
#[derive(Clone, Debug, clap::Args)]
pub struct Noise {
    /// Runs of `rcu costs` at each load; half as many of `rcu advise`, and of regressions.
    #[arg(long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Which parts; all, if none is named.
    #[arg(value_name = "PART")]
    parts: Vec<Part>,
}

/// Tries a part. Returns which goals are missed.
type Try = fn(&Noise, &Path) -> Result<Vec<String>>;

/// What else the machine does: so many threads spin, or sleep and wake.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Load {
    threads: u32,
    sleeps: bool,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { threads: 0, .. } => f.write_str("idle"),
            Self { threads, sleeps: false } => write!(f, "{threads} spinning"),
            Self { threads, sleeps: true } => write!(f, "{threads} that sleep and wake"),
        }
    }
}

const fn spinning(threads: u32) -> Load {
    Load { threads, sleeps: false }
}

const IDLE: Load = spinning(0);
const SLEEPING: Load = Load { threads: 4, sleeps: true };
const LOADS: [Load; 6] = [IDLE, spinning(1), spinning(2), spinning(4), spinning(8), SLEEPING];

impl Load {
    /// Does the work while the machine does that.
    fn beside<R>(self, work: impl FnOnce() -> R) -> R {
        let over = AtomicBool::new(false);
        // Relaxed: it ends loops and publishes nothing.
        let is_over = || over.load(Ordering::Relaxed);
        let turns = || {
            while !is_over() {
                if self.sleeps {
                    thread::sleep(TURN);
                }
                let (woken, mut number) = (Instant::now(), 1_u64);
                while woken.elapsed() < TURN {
                    number = std::hint::black_box(number.wrapping_mul(3));
                }
            }
        };
        thread::scope(|scope| {
            (0..self.threads).for_each(|_| _ = scope.spawn(turns));
            let result = work();
            over.store(true, Ordering::Relaxed);
            result
        })
    }
}

/// The lowest figure of some runs, and the highest.
type Range = [f64; 2];

/// The range of some figures, if there are any.
fn range(figures: impl Iterator<Item = f64>) -> Option<Range> {
    figures.fold(None, |range: Option<Range>, figure| {
        let [low, high] = range.unwrap_or([figure; 2]);
        Some([low.min(figure), high.max(figure)])
    })
}

/// How many times `figure` is more than the highest one, or less than the lowest; at least 1.
fn off([low, high]: Range, figure: f64) -> f64 {
    (figure / high).max(low / figure).max(1.0)
}

/// What `rcu costs` said.
#[derive(Clone, Debug)]
struct Costs {
    /// How far the CPUs were from each other.
    distance_ns: f64,
    /// For each figure how many threads it takes, and how much, if anything.
    rows: BTreeMap<String, (u64, Option<f64>)>,
}

impl Costs {
    /// What these runs say of a figure that this one has, too: those that can be compared.
    fn range<'r>(&self, name: &str, others: impl Iterator<Item = &'r Self>) -> Option<Range> {
        let (threads, _) = self.rows[name];
        let is_like = |other: &&Self| {
            let [near, far] = [self.distance_ns, other.distance_ns];
            threads == 1 || near.max(far) <= near.min(far) * DISTANCES_WITHIN
        };
        range(others.filter(is_like).filter_map(|other| other.rows.get(name)?.1))
    }
}

/// What `rcu advise` said.
#[derive(Clone, Debug)]
struct Advice {
    recommended: Option<String>,
    /// Operations in a second, of each design.
    designs: BTreeMap<String, f64>,
    /// Those that are as good as the best.
    equal: BTreeSet<String>,
    stolen_cpus: f64,
}

impl Noise {
    /// Builds the command, and tries.
    ///
    /// # Errors
    /// If the command cannot be built or run, or a goal is missed.
    pub fn run(&self) -> Result<()> {
        let program = built_program("rcu", "rcu")?;
        let mut missed = Vec::new();
        let parts: [(Part, Try); 4] = [
            (Part::Costs, Self::costs),
            (Part::Advise, Self::advise),
            (Part::Compare, Self::compare),
            (Part::Seeds, |_, program| seeds::disagreements(program)),
        ];
        for (part, tries) in parts {
            if self.parts.is_empty() || self.parts.contains(&part) {
                missed.extend(tries(self, &program)?);
            }
        }
        ensure!(missed.is_empty(), "goals that are missed: {}", missed.join("; "));
        Ok(())
    }

    /// What is wrong of the figures. One of the idle machine is held against its other runs. Loads
    /// take turns, so that a machine whose speed drifts is another one for all of them.
    fn costs(&self, program: &Path) -> Result<Vec<String>> {
        let mut seen = LOADS.map(|load| (load, Vec::new()));
        for _ in 0..self.runs {
            for (load, seen) in &mut seen {
                seen.push(load.beside(|| costs(program))?);
            }
        }
        let idle = seen[0].1.clone();
        let mut missed = Vec::new();
        for (load, seen) in seen {
            let (mut right, mut without, mut alone, mut wrong) = (0, 0, 0, Vec::new());
            let mut most = 1.0_f64;
            for (run, costs) in seen.iter().enumerate() {
                let is_other = |(number, _): &(usize, _)| load != IDLE || *number != run;
                for (name, &(threads, figure)) in &costs.rows {
                    let Some(figure) = figure else {
                        without += 1;
                        continue;
                    };
                    let others = idle.iter().enumerate().filter(is_other).map(|(_, other)| other);
                    let Some(range) = costs.range(name, others) else {
                        alone += 1;
                        continue;
                    };
                    let off = off(range, figure);
                    if off <= WITHIN[usize::from(threads > 1)] {
                        right += 1;
                        most = most.max(off);
                    } else {
                        wrong.push(format!("{name} {figure:.3} ns, {off:.2}x"));
                    }
                }
            }
            say::line(format_args!(
                "costs, {load}, {} runs: {right} figures are those of the idle machine, {most:.2}x \
                 at most; {} wrong, {without} missing, {alone} of a distance of CPUs that the idle \
                 machine did not have",
                self.runs,
                wrong.len()
            ))?;
            if !wrong.is_empty() {
                missed.push(format!("costs, {load}: {}", wrong.join(", ")));
            }
        }
        Ok(missed)
    }

    /// What is wrong of the recommendations.
    fn advise(&self, program: &Path) -> Result<Vec<String>> {
        let runs = self.runs.div_ceil(2);
        let mut missed = Vec::new();
        let mut first: Option<Advice> = None;
        for load in LOADS {
            let mut named: BTreeMap<String, u32> = BTreeMap::new();
            let (mut equal, mut stolen) = (Vec::new(), 0);
            for _ in 0..runs {
                let advice = load.beside(|| advise(program, &[]))?;
                if let Some(name) = &advice.recommended {
                    *named.entry(name.clone()).or_default() += 1;
                    equal.push(advice.equal.len());
                }
                stolen += u32::from(advice.stolen_cpus >= STOLEN_CPUS);
                first.get_or_insert(advice);
            }
            let recommended: u32 = named.values().sum();
            say::line(format_args!(
                "advise, {load}, {runs} runs, {stolen} on CPUs that a hypervisor took: {named:?}; \
                 equal to the best: {equal:?}"
            ))?;
            let wanted = match load {
                IDLE if stolen == 0 => runs,
                Load { threads: ..=4, sleeps: false } => runs * 8 / 10,
                _ => 0,
            };
            if recommended < wanted {
                missed.push(format!("advise, {load}: {recommended} of {runs} recommend"));
            }
            let most = first.as_ref().map_or(0, |first| (first.designs.len() - 1) / 2);
            if load == IDLE && equal.iter().any(|equal| *equal > most) {
                missed.push(format!("advise, {load}: sets of more than {most} designs"));
            }
            let figure = |name: &String| first.as_ref()?.designs.get(name).copied();
            let figures: Vec<f64> = named.keys().filter_map(figure).collect();
            let best = figures.iter().copied().fold(0.0, f64::max);
            if figures.iter().any(|figure| figure * DESIGNS_WITHIN < best) {
                missed.push(format!("advise, {load}: {named:?} differ on the idle machine"));
            }
        }
        Ok(missed)
    }

    /// What is wrong of the comparisons of the command with itself, which in some does more work
    /// than it counts.
    fn compare(&self, program: &Path) -> Result<Vec<String>> {
        let mut missed = Vec::new();
        for load in [IDLE, spinning(2)] {
            for (tries, planted) in [(self.runs, "0"), (self.runs.div_ceil(2), PLANTED_PERCENT)] {
                let mut outcomes = [0, 0, 0];
                for seed in 1..=tries {
                    outcomes[load.beside(|| compare(program, planted, seed))? as usize] += 1;
                }
                let [not_worse, worse, undecided] = outcomes;
                say::line(format_args!(
                    "compare, {load}, {planted} % planted, {tries} tries: {worse} worse, \
                     {not_worse} not worse, {undecided} undecided"
                ))?;
                let is_good = match planted {
                    "0" => worse == 0,
                    _ => 10 * (tries - worse) <= tries,
                };
                if !is_good {
                    missed.push(format!("compare, {load}, {planted} %: {worse} of {tries} worse"));
                }
            }
        }
        Ok(missed)
    }
}

/// The document of the command with these words; that the machine is too noisy for an answer is no
/// mistake of it.
fn document(program: &Path, words: &[&str]) -> Result<Value> {
    let output = Command::new(program).args(words).args(["--json", "-"]).output()?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    ensure!(matches!(output.status.code(), Some(0 | 3)), "rcu {words:?}: {complaints}");
    serde_json::from_slice(&output.stdout).with_context(|| format!("rcu {words:?}: no JSON"))
}

fn costs(program: &Path) -> Result<Costs> {
    let document = document(program, &["costs"])?;
    let rows = document["costs"]["rows"].as_array().context("no rows")?;
    let distance_ns = document["costs"]["run"]["distance_ns"].as_f64().unwrap_or_default();
    let row = |row: &Value| {
        let (id, threads) = (row["id"].as_str()?, row["threads"].as_u64()?);
        Some((id.to_owned(), (threads, row["ns"]["median"].as_f64())))
    };
    let rows = rows.iter().map(|each| row(each).context("a row without a name or threads"));
    Ok(Costs { distance_ns, rows: rows.collect::<Result<_>>()? })
}

/// Of the workload that these words say.
fn advise(program: &Path, words: &[&str]) -> Result<Advice> {
    let quickly = ["advise", "--quick", "--skip", "costs", "--skip", "sweep"];
    let document = document(program, &[&quickly, words].concat())?;
    let designs = document["designs"].as_array().context("no designs")?;
    let figure = |design: &Value| {
        let median = design["operations_per_second"]["median"].as_f64()?;
        Some((design["name"].as_str()?.to_owned(), median))
    };
    let name = |name: &Value| name.as_str().map(str::to_owned);
    Ok(Advice {
        recommended: name(&document["recommended"]),
        designs: designs.iter().filter_map(figure).collect(),
        equal: document["equal"].as_array().into_iter().flatten().filter_map(name).collect(),
        stolen_cpus: document["run"]["stolen_cpus"].as_f64().unwrap_or_default(),
    })
}

/// The exit code of a comparison: 0 not worse, 1 worse; 2 for undecided.
fn compare(program: &Path, planted: &str, seed: u32) -> Result<u8> {
    let mut command = Command::new(program);
    command.args(["compare", COMPARED, "--with"]).arg(program);
    command.args(["--time", SECONDS, "--plant", planted, "--seed", &seed.to_string()]);
    let output = command.output().context("cannot run rcu")?;
    match output.status.code() {
        Some(code @ (0 | 1)) => Ok(code as u8),
        Some(125) => Ok(2),
        _ => anyhow::bail!("rcu compare: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_held_against_the_range_of_the_idle_machine() {
        let idle = range([2.0, 2.2, 2.1].into_iter()).unwrap();
        assert_eq!(off(idle, 2.1), 1.0);
        assert!((off(idle, 2.42) - 1.1).abs() < 1e-9);
        assert!((off(idle, 1.0) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn figures_of_several_threads_are_compared_where_their_cpus_are_as_far_apart() {
        let costs = |distance_ns, figure| {
            let row = |name: &str, threads| (name.to_owned(), (threads, Some(figure)));
            Costs { distance_ns, rows: BTreeMap::from([row("alone", 1), row("shared", 2)]) }
        };
        let (run, idle) = (costs(30.0, 1.0), [costs(31.0, 2.0), costs(120.0, 9.0)]);
        let range = |name| run.range(name, idle.iter()).unwrap();
        assert_eq!((range("alone"), range("shared")), ([2.0, 9.0], [2.0, 2.0]));
        assert!(costs(300.0, 1.0).range("shared", idle.iter()).is_none());
    }

    #[test]
    fn a_load_ends_with_the_work() {
        for load in LOADS {
            assert_eq!(load.beside(|| 7), 7, "{load}");
        }
    }
}
