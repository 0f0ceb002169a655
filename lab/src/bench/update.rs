//! `rcu bench update`: replace an object of 64 bytes and retire the old one, and all that comes with it.
//!
//! Cases are groups of tables; each has rivals of its own, of which `--only` picks.

use std::time::Duration;

use rivals::bench::enqueue::{self, CallRival};
use rivals::bench::replace::{self, ReplaceRival};
use rivals::bench::table::{self, TableRival};
use rivals::bench::{memory, stall, tail, update};

use super::rounds::{Case, Metric, Sample, Session, Unit};
use super::{Bench, Options};
use crate::exit::Failure;
use crate::units;

/// The arguments of `rcu bench update`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct UpdateArgs {
    /// Measure only these [default: all]
    #[arg(long = "case", value_name = "A,B", value_enum, value_delimiter = ',')]
    cases: Vec<Group>,
    #[command(flatten)]
    pub(super) options: Options,
}

/// What can be asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Group {
    /// The loop itself, without a reader and beside one
    Update,
    /// What the loop does to a reader: 64 reads at a time
    Tail,
    /// A hash table with 1,000 keys; 99, 90 and 50 % searches
    Hash,
    /// Queueing a callback
    Call,
    /// Memory for an object that waits
    Memory,
    /// A reader that stays in its section
    Stall,
    /// Waiting for one callback
    Barrier,
}

const ALL: [Group; 7] = [
    Group::Update,
    Group::Tail,
    Group::Hash,
    Group::Call,
    Group::Memory,
    Group::Stall,
    Group::Barrier,
];

/// One table.
struct Scene {
    group: Group,
    id: &'static str,
    title: &'static str,
    metrics: &'static [Metric],
    /// Readers that read meanwhile, or searches in a hundred; 0 where neither matters.
    number: u32,
}

const fn metric(name: &'static str, unit: Unit) -> Metric {
    Metric { name, unit }
}

const UPDATE: &[Metric] = &[
    metric("updates", Unit::PerSecond),
    metric("CPU", Unit::Nanoseconds),
    metric("p99.9", Unit::Nanoseconds),
    metric("unreclaimed peak", Unit::Objects),
];
const TAIL: &[Metric] = &[
    metric("p99.9", Unit::Nanoseconds),
    metric("p50", Unit::Nanoseconds),
    metric("updates", Unit::PerSecond),
];
const HASH: &[Metric] = &[metric("operations", Unit::PerSecond), metric("CPU", Unit::Nanoseconds)];
const CALL: &[Metric] = &[metric("call", Unit::Nanoseconds)];
const MEMORY: &[Metric] = &[metric("memory", Unit::Bytes)];
const STALL: &[Metric] = &[
    metric("unreclaimed peak", Unit::Objects),
    metric("memory", Unit::Bytes),
    metric("reads kept", Unit::Percent),
    metric("updates", Unit::PerSecond),
];
const BARRIER: &[Metric] = &[metric("barrier", Unit::Nanoseconds)];

const fn scene(
    group: Group,
    id: &'static str,
    title: &'static str,
    metrics: &'static [Metric],
    number: u32,
) -> Scene {
    Scene { group, id, title, metrics, number }
}

static SCENES: [Scene; 10] = [
    scene(Group::Update, "update/no-reader", "updates, no reader", UPDATE, 0),
    scene(Group::Update, "update/1-reader", "updates, one busy reader", UPDATE, 1),
    scene(Group::Tail, "tail/1-updater", "64 reads beside one updater", TAIL, 0),
    scene(Group::Hash, "hash/99", "hash table, 99 % searches", HASH, 99),
    scene(Group::Hash, "hash/90", "hash table, 90 % searches", HASH, 90),
    scene(Group::Hash, "hash/50", "hash table, 50 % searches", HASH, 50),
    scene(Group::Call, "call/enqueue", "queueing a callback of two words", CALL, 0),
    scene(Group::Memory, "memory/waiting", "memory over the object that waits", MEMORY, 0),
    scene(Group::Stall, "stall/1-reader", "a reader stalls, an updater does not", STALL, 0),
    scene(Group::Barrier, "barrier/1-callback", "barrier after one callback", BARRIER, 0),
];

/// How much is measured at a time: the same for all rivals, since peaks depend on it.
#[derive(Clone, Copy, Debug)]
struct Amounts {
    updates: u64,
    timed_updates: usize,
    timed_reads: usize,
    table_operations: usize,
    bursts: u32,
    objects: u64,
    stall: Duration,
    barriers: u32,
    seed: u64,
}

const AMOUNTS: Amounts = Amounts {
    updates: 400_000,
    timed_updates: 200_000,
    timed_reads: 200_000,
    table_operations: 400_000,
    bursts: 10,
    objects: 100_000,
    stall: Duration::from_secs(1),
    barriers: 9,
    seed: 1,
};

const AMOUNTS_QUICK: Amounts = Amounts {
    updates: 100_000,
    timed_updates: 50_000,
    timed_reads: 50_000,
    table_operations: 100_000,
    bursts: 3,
    stall: Duration::from_millis(100),
    barriers: 3,
    ..AMOUNTS
};

/// Threads of the hash table.
const TABLE_THREADS: usize = 2;

/// A stall takes its time, and what it fills takes as long to be freed.
const STALLS: u32 = 5;
const STALLS_QUICK: u32 = 3;

/// About what one of anything takes, for the progress bar.
const ABOUT: Duration = Duration::from_nanos(150);

/// What is to be measured of whom.
struct Choice {
    scenes: Vec<&'static Scene>,
    names: Vec<&'static str>,
    amounts: Amounts,
    stalls: u32,
}

pub(super) fn prepare(args: &UpdateArgs) -> Result<Bench, Failure> {
    let options = &args.options;
    let groups = if args.cases.is_empty() { &ALL[..] } else { &args.cases };
    let scenes: Vec<_> = SCENES.iter().filter(|scene| groups.contains(&scene.group)).collect();
    let known = names_of(&scenes);
    let (names, base) = options.choose(&known, |name| *name, &["quiescence"])?;
    let (amounts, stalls) =
        if options.quick { (AMOUNTS_QUICK, STALLS_QUICK) } else { (AMOUNTS, STALLS) };
    let choice = Choice {
        scenes,
        names: names.into_iter().copied().collect(),
        amounts: Amounts { seed: options.seed, ..amounts },
        stalls,
    };
    Ok(Bench {
        name: "update",
        base,
        duration: choice.duration(options.rounds()),
        measure: Box::new(move |session| {
            let cases = choice.scenes.iter().map(|scene| choice.measure(scene, session));
            Ok(cases.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        }),
    })
}

/// The names of all rivals of the scenes, each once, in the order of their first appearance.
fn names_of(scenes: &[&Scene]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for scene in scenes {
        for (name, _) in rivals_of(scene.group) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// The names of a group's rivals, and whether they are ours.
fn rivals_of(group: Group) -> Vec<(&'static str, bool)> {
    let replacers = replace::rivals().iter().filter(|r| group != Group::Memory || r.hoards);
    let callers = enqueue::rivals().iter().filter(|r| group != Group::Barrier || r.has_barrier);
    match group {
        Group::Update | Group::Tail | Group::Stall | Group::Memory => {
            replacers.map(|rival| (rival.name, rival.ours)).collect()
        }
        Group::Hash => table::rivals().iter().map(|rival| (rival.name, rival.ours)).collect(),
        Group::Call | Group::Barrier => callers.map(|rival| (rival.name, rival.ours)).collect(),
    }
}

impl Choice {
    fn measure(
        &self,
        scene: &'static Scene,
        session: &mut Session<'_>,
    ) -> Result<Option<Case>, Failure> {
        let all = rivals_of(scene.group);
        let chosen: Vec<_> =
            all.into_iter().filter(|(name, _)| self.names.contains(name)).collect();
        let names: Vec<&str> = chosen.iter().map(|(name, _)| *name).collect();
        let case = Case::new(scene.id, scene.title, scene.metrics, chosen.into_iter());
        let budget = self.budget(scene.group);
        if scene.group == Group::Stall {
            return self.stall(case, &names, budget, session);
        }
        session.interleave(case, budget, |number| self.sample(scene, names[number]))
    }

    /// One measurement of anything but a stall.
    fn sample(&self, scene: &Scene, name: &str) -> Sample {
        let amounts = &self.amounts;
        let alone = |value| Sample { values: vec![value], readers_share: 1.0 };
        match scene.group {
            Group::Update => updates(replacer(name), scene.number as usize, amounts),
            Group::Tail => {
                let seen = tail::measure(replacer(name), amounts.timed_reads);
                Sample {
                    values: vec![seen.p99_9_ns, seen.p50_ns, seen.updates_per_second],
                    readers_share: seen.updater_share,
                }
            }
            Group::Hash => {
                let (rival, operations) = (table_rival(name), amounts.table_operations);
                let seen =
                    table::measure(rival, TABLE_THREADS, scene.number, operations, amounts.seed);
                Sample { values: vec![seen.operations_per_second, seen.cpu_ns], readers_share: 1.0 }
            }
            Group::Call => alone(enqueue::measure_call(caller(name), amounts.bursts)),
            Group::Memory => {
                let bytes = memory::measure(replacer(name), amounts.objects);
                // Where the allocator does not say, there is nothing to be compared.
                alone(bytes.unwrap_or(f64::NAN))
            }
            Group::Barrier => {
                let ns = enqueue::measure_barrier(caller(name), amounts.barriers);
                alone(ns.expect("only rivals that have one are asked"))
            }
            Group::Stall => unreachable!("measured in fewer rounds"),
        }
    }

    fn stall(
        &self,
        case: Case,
        names: &[&'static str],
        budget: Duration,
        session: &mut Session<'_>,
    ) -> Result<Option<Case>, Failure> {
        let mut stopped = vec![false; names.len()];
        let measure = |number: usize| {
            let seen = stall::measure(replacer(names[number]), self.amounts.stall);
            stopped[number] |= seen.stopped;
            Sample {
                values: vec![
                    seen.unreclaimed_peak as f64,
                    seen.bytes_peak as f64,
                    100.0 * seen.reads_kept,
                    seen.updates_per_second,
                ],
                readers_share: 1.0,
            }
        };
        let case = session.interleave_at_most(self.stalls, case, budget, measure)?;
        Ok(case.map(|mut case| {
            let full = names.iter().zip(&stopped).filter(|(_, stopped)| **stopped);
            let full: Vec<&str> = full.map(|(name, _)| *name).collect();
            if !full.is_empty() {
                let bytes = units::bytes(stall::BYTES_MAX);
                case.notes.push(format!("stopped at {bytes}: {}", full.join(", ")));
            }
            case
        }))
    }

    fn duration(&self, rounds: u32) -> Duration {
        let of = |scene: &&Scene| {
            let rivals = rivals_of(scene.group);
            let rivals = rivals.iter().filter(|(name, _)| self.names.contains(name)).count();
            let rounds = if scene.group == Group::Stall { rounds.min(self.stalls) } else { rounds };
            self.budget(scene.group) * rounds * rivals as u32
        };
        self.scenes.iter().map(of).sum()
    }

    /// About how long one measurement takes, for the progress bar.
    fn budget(&self, group: Group) -> Duration {
        let Amounts { updates, timed_updates, timed_reads, table_operations, .. } = self.amounts;
        match group {
            Group::Update => ABOUT * (updates as u32 + timed_updates as u32),
            Group::Tail => ABOUT * (timed_reads as u32 * 2),
            Group::Hash => ABOUT * (table_operations as u32),
            Group::Call => Duration::from_millis(10) * self.amounts.bursts,
            Group::Memory => ABOUT * (self.amounts.objects as u32 * 2),
            Group::Stall => self.amounts.stall * 3 / 2,
            Group::Barrier => Duration::from_millis(10) * self.amounts.barriers,
        }
    }
}

fn updates(rival: &ReplaceRival, readers: usize, amounts: &Amounts) -> Sample {
    let seen = update::measure(rival, readers, amounts.updates, amounts.timed_updates);
    Sample {
        values: vec![1e9 / seen.ns, seen.cpu_ns, seen.p99_9_ns, seen.unreclaimed_peak as f64],
        readers_share: seen.readers_share,
    }
}

const KNOWN: &str = "names come from the list of rivals";

fn replacer(name: &str) -> &'static ReplaceRival {
    replace::rivals().iter().find(|rival| rival.name == name).expect(KNOWN)
}

fn table_rival(name: &str) -> &'static TableRival {
    table::rivals().iter().find(|rival| rival.name == name).expect(KNOWN)
}

fn caller(name: &str) -> &'static CallRival {
    enqueue::rivals().iter().find(|rival| rival.name == name).expect(KNOWN)
}

/// What a case measures, and of whom.
#[cfg(test)]
pub(super) fn known(case: &str) -> Option<(&'static [Metric], Vec<&'static str>)> {
    let scene = SCENES.iter().find(|scene| scene.id == case)?;
    Some((scene.metrics, rivals_of(scene.group).into_iter().map(|(name, _)| name).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: UpdateArgs,
    }

    fn bench(line: &[&str]) -> Result<Bench, String> {
        let line = Line::try_parse_from([&["update"], line].concat()).expect("well-formed");
        prepare(&line.args).map_err(|failure| failure.to_string())
    }

    #[test]
    fn all_cases_are_measured_unless_some_are_named() {
        let all = bench(&["--quick"]).expect("well-formed").duration;
        let parts = ALL.map(|group| {
            use clap::ValueEnum;
            let value = group.to_possible_value().expect("none is hidden");
            bench(&["--quick", "--case", value.get_name()]).expect("well-formed").duration
        });
        assert_eq!(parts.iter().sum::<Duration>(), all);
        assert!(parts.iter().all(|part| !part.is_zero()));
        assert!(Line::try_parse_from(["update", "--case", "speed"]).is_err());
    }

    #[test]
    fn a_rival_is_chosen_where_it_takes_part() {
        let bench_of = |line: &[&str]| bench(line).map(|bench| bench.base);
        assert_eq!(bench_of(&["--only", "papaya,quiescence"]), Ok("quiescence"));
        assert_eq!(bench_of(&["--case", "hash", "--only", "papaya"]), Ok("papaya"));
        let message = bench_of(&["--case", "tail", "--only", "papaya"]).unwrap_err();
        assert!(message.contains("papaya") && message.contains("haphazard"), "{message}");
    }

    #[test]
    fn every_rival_of_every_case_gives_a_figure_for_each_metric() {
        let amounts = Amounts {
            updates: 128,
            timed_updates: 64,
            timed_reads: 64,
            table_operations: 1,
            bursts: 1,
            objects: 2000,
            stall: Duration::from_millis(1),
            barriers: 1,
            seed: 1,
        };
        let choice = Choice { scenes: Vec::new(), names: Vec::new(), amounts, stalls: 1 };
        for scene in SCENES.iter().filter(|scene| scene.group != Group::Stall) {
            for (name, _) in rivals_of(scene.group) {
                let sample = choice.sample(scene, name);
                assert_eq!(sample.values.len(), scene.metrics.len(), "{}: {name}", scene.id);
                let all = scene.metrics.iter().zip(&sample.values);
                for (metric, value) in all.filter(|(metric, _)| metric.name != "memory") {
                    assert!(value.is_finite() && *value >= 0.0, "{}: {name}: {metric:?}", scene.id);
                }
            }
        }
    }
}
