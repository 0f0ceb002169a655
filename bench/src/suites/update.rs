//! `rcu bench update`: replace an object of 64 bytes and retire the old one, and all that comes
//! with it.
//!
//! Cases are groups of tables; each has rivals of its own, of which `--only` picks.

use std::time::Duration;

use super::rounds::{Case, Metric, Sample, Session, Unit, alone};
use super::{Options, Suite};
use crate::Error;
use crate::cases::{enqueue, hash, memory, stall, tail, update};
use crate::rivals::{self, Rival};
use crate::units;

/// What `--case` takes, in the order of [`GROUPS`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Group {
    Update,
    Tail,
    Hash,
    Call,
    Memory,
    Stall,
    Barrier,
}

/// What `--case` takes.
pub const GROUPS: [super::Group; 7] = [
    ("update", "The loop itself, without a reader and beside one"),
    ("tail", "What the loop does to a reader: 64 reads at a time"),
    ("hash", "A hash table with 1,000 keys; 99, 90 and 50 % searches"),
    ("call", "Queueing a callback"),
    ("memory", "Memory for an object that waits"),
    ("stall", "A reader that stays in its section"),
    ("barrier", "Waiting for one callback"),
];

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

const UPDATE: &[Metric] = &[
    Metric::new("updates", Unit::PerSecond),
    Metric::new("CPU", Unit::Nanoseconds),
    Metric::new("p99.9", Unit::Nanoseconds),
    Metric::new("unreclaimed peak", Unit::Objects),
];
const TAIL: &[Metric] = &[
    Metric::new("p99.9", Unit::Nanoseconds),
    Metric::new("p50", Unit::Nanoseconds),
    Metric::new("updates", Unit::PerSecond),
];
const HASH: &[Metric] =
    &[Metric::new("operations", Unit::PerSecond), Metric::new("CPU", Unit::Nanoseconds)];
const CALL: &[Metric] = &[Metric::new("call", Unit::Nanoseconds)];
const MEMORY: &[Metric] = &[Metric::new("memory", Unit::Bytes)];
const STALL: &[Metric] = &[
    Metric::new("unreclaimed peak", Unit::Objects),
    Metric::new("memory", Unit::Bytes),
    Metric::new("reads kept", Unit::Percent),
    Metric::new("updates", Unit::PerSecond),
];
const BARRIER: &[Metric] = &[Metric::new("barrier", Unit::Nanoseconds)];

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
    rivals: Vec<&'static Rival>,
    amounts: Amounts,
    stalls: u32,
}

/// The suite, ready to run: the cases of these groups, or all if none is named.
///
/// # Errors
/// If a group or a rival is named that there is not.
pub fn prepare(groups: &[String], options: &Options) -> Result<Suite, Error> {
    let groups = groups.iter().map(|group| Group::of(group)).collect::<Result<Vec<_>, _>>()?;
    let groups = if groups.is_empty() { ALL.to_vec() } else { groups };
    let scenes: Vec<_> = SCENES.iter().filter(|scene| groups.contains(&scene.group)).collect();
    let known: Vec<_> = rivals::all()
        .filter(|rival| scenes.iter().any(|scene| scene.group.is_served_by(rival)))
        .collect();
    let (rivals, base) = options.choose(&known, &["quiescence"])?;
    let (amounts, stalls) =
        if options.quick { (AMOUNTS_QUICK, STALLS_QUICK) } else { (AMOUNTS, STALLS) };
    let choice =
        Choice { scenes, rivals, amounts: Amounts { seed: options.seed, ..amounts }, stalls };
    Ok(Suite {
        name: "update",
        base,
        duration: choice.duration(options.rounds()),
        measure: Box::new(move |session| {
            let cases = choice.scenes.iter().map(|scene| choice.measure(scene, session));
            Ok(cases.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        }),
    })
}

impl Group {
    fn of(name: &str) -> Result<Self, Error> {
        let known = GROUPS.iter().position(|(known, _)| *known == name);
        known.map(|number| ALL[number]).ok_or_else(|| {
            Error::Usage(format!("there is no case {name:?}: {}", GROUPS.map(|g| g.0).join(", ")))
        })
    }

    /// Whether the rival takes part.
    fn is_served_by(self, rival: &Rival) -> bool {
        match self {
            Self::Update | Self::Tail | Self::Stall => rival.replace.is_some(),
            Self::Memory => rival.hoards,
            Self::Hash => rival.hash.is_some(),
            Self::Call => rival.enqueue.is_some(),
            Self::Barrier => rival.has_barrier,
        }
    }
}

impl Choice {
    fn measure(
        &self,
        scene: &'static Scene,
        session: &mut Session<'_>,
    ) -> Result<Option<Case>, Error> {
        let rivals = self.rivals_of(scene.group);
        let case = Case::of(scene.id, scene.title, scene.metrics, &rivals);
        let budget = self.budget(scene.group);
        if scene.group == Group::Stall {
            return self.stall(case, &rivals, budget, session);
        }
        session.interleave(case, budget, |number| self.sample(scene, rivals[number]))
    }

    /// One measurement of anything but a stall.
    fn sample(&self, scene: &Scene, rival: &Rival) -> Sample {
        let amounts = &self.amounts;
        match scene.group {
            Group::Update => updates(rival, scene.number as usize, amounts),
            Group::Tail => {
                let seen = tail::measure(rival, amounts.timed_reads);
                Sample::new([seen.p99_9_ns, seen.p50_ns, seen.updates_per_second], seen.judged)
            }
            Group::Hash => {
                let operations = amounts.table_operations;
                let seen =
                    hash::measure(rival, TABLE_THREADS, scene.number, operations, amounts.seed);
                Sample::new([seen.operations_per_second, seen.cpu_ns], seen.judged)
            }
            Group::Call => alone(enqueue::measure_call(rival, amounts.bursts)),
            Group::Memory => {
                let bytes = memory::measure(rival, amounts.objects);
                // Where the allocator does not say, there is nothing to be compared.
                alone(bytes.unwrap_or(f64::NAN))
            }
            Group::Barrier => {
                let ns = enqueue::measure_barrier(rival, amounts.barriers);
                alone(ns.expect("only rivals that have one are asked"))
            }
            Group::Stall => unreachable!("measured in fewer rounds"),
        }
    }

    fn stall(
        &self,
        case: Case,
        rivals: &[&Rival],
        budget: Duration,
        session: &mut Session<'_>,
    ) -> Result<Option<Case>, Error> {
        let mut stopped = vec![false; rivals.len()];
        let measure = |number: usize| {
            let seen = stall::measure(rivals[number], self.amounts.stall);
            stopped[number] |= seen.stopped;
            let values = [
                seen.unreclaimed_peak as f64,
                seen.bytes_peak as f64,
                100.0 * seen.reads_kept,
                seen.updates_per_second,
            ];
            Sample::new(values, seen.judged)
        };
        let case = session.interleave_at_most(self.stalls, case, budget, measure)?;
        Ok(case.map(|mut case| {
            let full = rivals.iter().zip(&stopped).filter(|(_, stopped)| **stopped);
            let full: Vec<&str> = full.map(|(rival, _)| rival.name).collect();
            if !full.is_empty() {
                let bytes = units::bytes(stall::BYTES_MAX);
                case.notes.push(format!("stopped at {bytes}: {}", full.join(", ")));
            }
            case
        }))
    }

    fn duration(&self, rounds: u32) -> Duration {
        let of = |scene: &&Scene| {
            let rivals = self.rivals_of(scene.group).len();
            let rounds = if scene.group == Group::Stall { rounds.min(self.stalls) } else { rounds };
            self.budget(scene.group) * rounds * rivals as u32
        };
        self.scenes.iter().map(of).sum()
    }

    /// The chosen rivals that take part.
    fn rivals_of(&self, group: Group) -> Vec<&'static Rival> {
        self.rivals.iter().copied().filter(|rival| group.is_served_by(rival)).collect()
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

fn updates(rival: &Rival, readers: usize, amounts: &Amounts) -> Sample {
    let seen = update::measure(rival, readers, amounts.updates, amounts.timed_updates);
    let values = [1e9 / seen.ns, seen.cpu_ns, seen.p99_9_ns, seen.unreclaimed_peak as f64];
    Sample::new(values, seen.judged)
}

/// What a case measures, and of whom.
#[cfg(test)]
pub(crate) fn known(case: &str) -> Option<(&'static [Metric], Vec<&'static str>)> {
    let scene = SCENES.iter().find(|scene| scene.id == case)?;
    let rivals = rivals::all().filter(|rival| scene.group.is_served_by(rival));
    Some((scene.metrics, rivals.map(|rival| rival.name).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite(cases: &[&str], only: &[&str]) -> Result<Suite, String> {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let options = Options { quick: true, only: names(only), ..Options::default() };
        prepare(&names(cases), &options).map_err(|error| error.to_string())
    }

    #[test]
    fn all_cases_are_measured_unless_some_are_named() {
        let all = suite(&[], &[]).expect("well-formed").duration;
        let parts = GROUPS.map(|(group, _)| suite(&[group], &[]).expect("well-formed").duration);
        assert_eq!(parts.iter().sum::<Duration>(), all);
        assert!(parts.iter().all(|part| !part.is_zero()));
        let message = suite(&["speed"], &[]).unwrap_err();
        assert!(message.contains("speed") && message.contains("barrier"), "{message}");
    }

    #[test]
    fn a_rival_is_chosen_where_it_takes_part() {
        let base_of = |cases: &[&str], only: &[&str]| suite(cases, only).map(|suite| suite.base);
        assert_eq!(base_of(&[], &["papaya", "quiescence"]), Ok("quiescence"));
        assert_eq!(base_of(&["hash"], &["papaya"]), Ok("papaya"));
        let message = base_of(&["tail"], &["papaya"]).unwrap_err();
        assert!(message.contains("papaya") && message.contains("seize"), "{message}");
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
        let rivals = rivals::all().collect();
        let choice = Choice { scenes: Vec::new(), rivals, amounts, stalls: 1 };
        for scene in SCENES.iter().filter(|scene| scene.group != Group::Stall) {
            for rival in choice.rivals_of(scene.group) {
                let name = rival.name;
                let sample = choice.sample(scene, rival);
                assert_eq!(sample.values.len(), scene.metrics.len(), "{}: {name}", scene.id);
                let all = scene.metrics.iter().zip(&sample.values);
                for (metric, value) in all.filter(|(metric, _)| metric.name != "memory") {
                    assert!(value.is_finite() && *value >= 0.0, "{}: {name}: {metric:?}", scene.id);
                }
            }
        }
    }
}
