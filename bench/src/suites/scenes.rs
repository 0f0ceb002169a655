//! Tables of a benchmark that has several, in groups of which `--case` picks: how `read`, `gp`,
//! `update`, `srcu`, `percpu` and `cells` are measured. `suites.toml` lists them.
//!
//! Each table has rivals of its own, of which `--only` picks. Its name begins with its group's.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use serde::Deserialize;

use super::listed::{SUITES, Scene, Scenes};
#[cfg(test)]
use super::rounds::Metric;
use super::rounds::{Case, Session};
use super::{Options, Planned, Suite};
use crate::Error;
use crate::cases::domains::Used;
use crate::cases::grace::{IdleThreads, steps_for};
use crate::cases::loops::{Loop, Looped};
use crate::cases::store::Loaders;
use crate::cases::{blocked, boot, domains, enqueue, garbage, hash, memory, stall, tail, update};
use crate::rivals::{self, Rival};
use crate::sample::Sample;
use crate::units;

/// What is measured, and of whom.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// One operation in a loop, in so many threads.
    Loop(Looped, usize),
    /// The same in one thread, beside another one that does the opposite: writes, or reads.
    Beside(Looped),
    /// Grace periods with so many idle threads, beside so many busy readers.
    Wait {
        /// Threads that are registered, and do nothing.
        idle: usize,
        /// Threads that read.
        readers: usize,
    },
    /// Grace periods beside so many readers with sections of a microsecond.
    Grace(usize),
    /// The same: what the readers get done.
    Contended(usize),
    /// A burst of grace periods beside so many readers.
    Boot(usize),
    /// A reader that stays in its section.
    Blocked,
    /// Memory of a domain that was used like this.
    Domains(Used),
    /// Replacing what so many threads have loaded.
    Store(usize),
    /// Replacing an `Arc` by a new one beside so many readers.
    StoreNew(usize),
    /// What waits after the last store.
    Garbage,
    /// Replacing an object and retiring the old one, beside so many readers.
    Update(usize),
    /// What that does to a reader.
    Tail,
    /// A hash table, with so many searches in a hundred operations.
    Hash(u32),
    /// Queueing a callback.
    Call,
    /// Memory for an object that waits.
    Memory,
    /// A reader that stays in its section while another thread retires.
    Stall,
    /// Waiting for one callback.
    Barrier,
}

/// How much is measured at a time: the same for all rivals, since peaks depend on it.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Amounts {
    looped: Duration,
    waits: Duration,
    grace: Duration,
    boots: u64,
    blocked: Duration,
    domains: usize,
    stores: u64,
    stores_timed: usize,
    updates: u64,
    updates_timed: usize,
    reads_timed: usize,
    table_operations: usize,
    bursts: u32,
    objects: u64,
    stall: Duration,
    barriers: u32,
    rounds_blocked: u32,
    rounds_domains: u32,
    rounds_stall: u32,
}

/// How long a reader's section is beside grace periods.
const SECTION: Duration = Duration::from_micros(1);
/// Threads of the hash table.
const TABLE_THREADS: usize = 2;

impl Scenes<What> {
    /// The suite, ready to run: the tables of these groups, or all if none is named.
    ///
    /// # Errors
    /// If a group or a rival is named that there is not.
    pub fn prepare(&'static self, groups: &[String], options: &Options) -> Result<Suite, Error> {
        let scenes = self.chosen(groups)?;
        let known = rivals_of(|rival| scenes.iter().any(|scene| scene.what.is_served_by(rival)));
        let (rivals, base) = options.choose(&known, &self.bases)?;
        let amounts = &SUITES.amounts[usize::from(options.quick)];
        let planned = scenes.into_iter().map(|scene| self.plan(scene, &rivals, amounts, options));
        Ok(Suite::new(self.bench, base, planned.collect()))
    }

    /// A table of those of the rivals that take part in it.
    fn plan(
        &'static self,
        scene: &'static Scene<What>,
        rivals: &[&'static Rival],
        amounts: &Amounts,
        options: &Options,
    ) -> Planned {
        let what = scene.what;
        let rivals: Vec<&Rival> =
            rivals.iter().copied().filter(|rival| what.is_served_by(rival)).collect();
        let case = Case::of(scene.id, scene.title, self.metrics(scene), &rivals);
        let (amounts, seed) = (*amounts, options.seed);
        let rounds = options.rounds().min(what.rounds_max(&amounts));
        let budget = what.budget(&amounts);
        match what {
            What::Loop(of, _) | What::Beside(of) => {
                Planned::new(case, (rounds, budget), move |session, case| {
                    let percent = session.planted_percent;
                    let row = |looped: Loop| match what {
                        What::Loop(_, threads) => looped.row(threads, percent),
                        _ => looped.row_beside(percent),
                    };
                    let loops = rivals.iter().filter_map(|rival| Some(rival.looped(of)?()));
                    session.slices(case, &loops.map(row).collect::<Vec<_>>(), budget)
                })
            }
            What::Store(threads) => Planned::new(case, (rounds, budget), move |session, case| {
                let Some(loaders) = gathered(session, &case, Loaders::gather(threads)) else {
                    return Ok(None);
                };
                let rows: Vec<_> = rivals.iter().map(|rival| loaders.row(rival)).collect();
                session.slices(case, &rows, budget)
            }),
            What::Wait { .. } | What::Grace(_) | What::Contended(_) => {
                let idle = if let What::Wait { idle, .. } = what { idle } else { 0 };
                Planned::new(case, (rounds, budget), move |session, case| {
                    let idle = IdleThreads::gather(&rivals, idle);
                    let Some(idle) = gathered(session, &case, idle) else { return Ok(None) };
                    let steps = steps_for(SECTION);
                    session.interleave(rounds, case, budget, |number| {
                        let rival = rivals[number];
                        match what {
                            What::Wait { readers, .. } => idle.measure(rival, readers, 0, budget),
                            What::Grace(readers) => idle.measure(rival, readers, steps, budget / 2),
                            What::Contended(readers) => idle.contend(rival, readers, steps, budget),
                            _ => unreachable!("these are the three that wait"),
                        }
                    })
                })
            }
            What::Stall => Planned::new(case, (rounds, budget), move |session, case| {
                stalls(session, case, (rounds, budget), |number| {
                    what.sample(rivals[number], &amounts, seed)
                })
            }),
            _ => Planned::sampled(case, (rounds, budget), move |number| {
                what.sample(rivals[number], &amounts, seed)
            }),
        }
    }

    /// What a case measures, and of whom.
    #[cfg(test)]
    pub(crate) fn known(&self, case: &str) -> Option<(&[Metric], Vec<&'static str>)> {
        let scene = self.cases.iter().find(|scene| scene.id == case)?;
        let rivals = rivals_of(|rival| scene.what.is_served_by(rival));
        Some((self.metrics(scene), rivals.into_iter().map(|rival| rival.name).collect()))
    }
}

/// The rivals of which this holds, in the order of the registry.
fn rivals_of(serves: impl Fn(&Rival) -> bool) -> Vec<&'static Rival> {
    rivals::all().filter(|rival| serves(rival)).collect()
}

/// The threads of a case, which is left out if there are not so many.
fn gathered<T>(session: &mut Session<'_>, case: &Case, threads: io::Result<T>) -> Option<T> {
    threads
        .inspect_err(|error| {
            session.host.note(&format_args!("{}: left out: {error}", case.title));
        })
        .ok()
}

/// A case of stalls, with a note of who has filled the memory up to the bound, also in a try that
/// does not count.
fn stalls(
    session: &mut Session<'_>,
    case: Case,
    (rounds, budget): (u32, Duration),
    mut sample: impl FnMut(usize) -> Sample,
) -> Result<Option<Case>, Error> {
    let mut full = BTreeSet::new();
    let case = session.interleave(rounds, case, budget, |number| {
        let seen = sample(number);
        full.extend((seen.values[1] >= stall::BYTES_MAX as f64).then_some(number));
        seen
    })?;
    Ok(case.map(|mut case| {
        let full: Vec<&str> = full.iter().map(|&number| case.rivals[number].name).collect();
        if !full.is_empty() {
            let bytes = units::bytes(stall::BYTES_MAX);
            case.notes.push(format!("stopped at {bytes}: {}", full.join(", ")));
        }
        case
    }))
}

impl What {
    fn is_served_by(self, rival: &Rival) -> bool {
        match self {
            Self::Loop(of, _) | Self::Beside(of) => rival.looped(of).is_some(),
            Self::Wait { .. } | Self::Contended(_) => rival.wait.is_some() && !rival.is_restartable,
            Self::Grace(_) => rival.wait.is_some(),
            Self::Boot(_) => rival.boot.is_some(),
            Self::Blocked => rival.blocked.is_some(),
            Self::Domains(_) => rival.domain.is_some(),
            Self::Store(_) => rival.store.is_some(),
            Self::StoreNew(_) | Self::Garbage => rival.stored.is_some(),
            Self::Update(_) | Self::Tail | Self::Stall => rival.replace.is_some(),
            Self::Memory => rival.hoards,
            Self::Hash(_) => rival.hash.is_some(),
            Self::Call => rival.enqueue.is_some(),
            Self::Barrier => rival.has_barrier,
        }
    }

    /// One measurement of what needs nothing beside its rival.
    fn sample(self, rival: &Rival, amounts: &Amounts, seed: u64) -> Sample {
        match self {
            Self::Boot(readers) => boot::measure(rival, readers, amounts.boots),
            Self::Blocked => blocked::measure(rival, amounts.blocked),
            Self::Domains(used) => domains::measure(rival, used, amounts.domains),
            Self::StoreNew(readers) => {
                update::measure_cell(rival, readers, amounts.stores, amounts.stores_timed)
            }
            Self::Garbage => garbage::measure(rival, amounts.stores),
            Self::Update(readers) => {
                update::measure(rival, readers, amounts.updates, amounts.updates_timed)
            }
            Self::Tail => tail::measure(rival, amounts.reads_timed),
            Self::Hash(percent) => {
                hash::measure(rival, TABLE_THREADS, percent, amounts.table_operations, seed)
            }
            Self::Call => enqueue::measure_call(rival, amounts.bursts),
            Self::Memory => memory::measure(rival, amounts.objects),
            Self::Stall => stall::measure(rival, amounts.stall),
            Self::Barrier => enqueue::measure_barrier(rival, amounts.barriers),
            _ => unreachable!("it needs more than its rival"),
        }
    }

    /// About how long one measurement of a rival takes.
    fn budget(self, amounts: &Amounts) -> Duration {
        let about = |ns: u64, count: u64| Duration::from_nanos(ns * count);
        match self {
            Self::Loop(..) | Self::Beside(_) | Self::Store(_) => amounts.looped,
            // Shorter than a time slice, so that the readers can be there from its beginning to its
            // end also where others want their CPUs.
            Self::Wait { readers, .. } => amounts.waits / if readers > 0 { 8 } else { 1 },
            // Half of it is for the readers to arrive.
            Self::Grace(_) => 2 * amounts.grace,
            // Here a grace period may take many time slices.
            Self::Contended(_) => amounts.grace,
            Self::Boot(_) => about(20_000, amounts.boots),
            Self::Blocked => amounts.blocked,
            Self::Domains(_) => about(10_000, amounts.domains as u64),
            Self::StoreNew(_) | Self::Garbage => about(300, amounts.stores),
            Self::Update(_) => about(150, amounts.updates + amounts.updates_timed as u64),
            Self::Tail => about(300, amounts.reads_timed as u64),
            Self::Hash(_) => about(150, amounts.table_operations as u64),
            Self::Call => about(10_000_000, amounts.bursts.into()),
            Self::Memory => about(300, amounts.objects),
            Self::Stall => amounts.stall * 3 / 2,
            Self::Barrier => about(10_000_000, amounts.barriers.into()),
        }
    }

    /// What takes long is measured in fewer rounds: a reader that stays, domains, and stalls, of
    /// which what they fill takes as long again to be freed.
    fn rounds_max(self, amounts: &Amounts) -> u32 {
        match self {
            Self::Blocked => amounts.rounds_blocked,
            Self::Domains(_) => amounts.rounds_domains,
            Self::Stall => amounts.rounds_stall,
            _ => u32::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ROUNDS_QUICK;
    use super::super::tests::all_scenes;
    use super::*;
    use crate::host::Quiet;
    use crate::slices::Flaw;
    use crate::suites::rounds::Unit;

    const METRICS: &[Metric] = &[
        Metric { name: "peak", unit: Unit::Objects },
        Metric { name: "memory", unit: Unit::Bytes },
    ];

    fn options() -> Options {
        Options { quick: true, ..Options::default() }
    }

    #[test]
    fn who_has_filled_the_memory_is_noted_also_of_a_try_that_does_not_count() {
        let mut host = Quiet::default();
        let case = Case::new("case", "case", METRICS, ["a", "b", "c"].map(|name| (name, false)));
        let mut tries = [0; 3];
        let sample = |number: usize| {
            tries[number] += 1;
            let (bytes, judged) = match (number, tries[number]) {
                (0, 1) => (stall::BYTES_MAX, Err(Flaw::Taken)),
                (1, 2) => (stall::BYTES_MAX, Ok(())),
                _ => (stall::BYTES_MAX - 1, Ok(())),
            };
            Sample::new([1.0, bytes as f64], Some(judged))
        };
        let mut session = Session::new(&mut host, 4, 1);
        let case = stalls(&mut session, case, (4, Duration::ZERO), sample).unwrap().unwrap();
        assert_eq!(case.notes, ["stopped at 1 GiB: a, b"]);
    }

    #[test]
    fn every_rival_of_every_case_gives_a_figure_for_each_metric() {
        // A stall looks at all memory of the process, and 10,000 threads take their time.
        let is_small = |scene: &&Scene<What>| {
            !matches!(scene.what, What::Stall | What::Wait { idle: 1000.., .. })
        };
        let amounts = Amounts {
            looped: Duration::ZERO,
            waits: Duration::ZERO,
            grace: Duration::from_nanos(1),
            boots: 50,
            blocked: Duration::from_millis(3),
            domains: 20,
            stores: 200,
            stores_timed: 20,
            updates: 128,
            updates_timed: 64,
            reads_timed: 64,
            table_operations: 1,
            bursts: 1,
            objects: 2000,
            barriers: 1,
            ..SUITES.amounts[1]
        };
        let mut host = Quiet::default();
        let options = Options { rounds: Some(1), seed: 1, ..options() };
        let mut session = Session::new(&mut host, 1, 1);
        for suite in all_scenes() {
            for scene in suite.cases.iter().filter(is_small) {
                let known = rivals_of(|rival| scene.what.is_served_by(rival));
                let planned = suite.plan(scene, &known, &amounts, &options);
                let case = planned.measure(&mut session).unwrap().expect("it is measured");
                assert_eq!(case.rivals.len(), known.len(), "{}", scene.id);
                is_measured(&case, matches!(scene.what, What::Memory));
            }
        }
    }

    /// Each rival has a figure for each metric, or a reason why not.
    fn is_measured(case: &Case, may_be_unknown: bool) {
        for rival in &case.rivals {
            for (metric, values) in case.metrics.iter().zip(&rival.values) {
                let is_one = |value: &f64| value.is_finite() && *value >= 0.0 || may_be_unknown;
                let is_figure =
                    values.iter().all(is_one) && values.is_empty() == rival.missing.is_some();
                assert!(is_figure, "{}: {}: {metric:?}: {values:?}", case.id, rival.name);
            }
        }
    }

    #[test]
    fn all_cases_are_measured_unless_some_are_named() {
        for scenes in all_scenes() {
            let duration = |groups: &[String]| {
                scenes.prepare(groups, &options()).expect("well-formed").duration
            };
            let parts = scenes.groups.iter().map(|(group, _)| duration(&[(*group).to_owned()]));
            let parts: Vec<Duration> = parts.collect();
            let message =
                scenes.prepare(&["speed".to_owned()], &options()).unwrap_err().to_string();
            assert!(message.contains("speed"), "{message}");
            assert!(parts.iter().all(|part| !part.is_zero()), "{}: {parts:?}", scenes.bench);
            assert_eq!(parts.iter().sum::<Duration>(), duration(&[]), "{}", scenes.bench);
        }
    }

    #[test]
    fn a_rival_is_chosen_where_it_takes_part() {
        let base_of = |cases: &[&str], only: &[&str]| {
            let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
            let options = Options { only: names(only), ..options() };
            let cases: Vec<String> = names(cases);
            let suite = SUITES.update.prepare(&cases, &options);
            suite.map(|suite| suite.base).map_err(|error| error.to_string())
        };
        assert_eq!(base_of(&[], &["papaya", "quiescence"]), Ok("quiescence"));
        assert_eq!(base_of(&["hash"], &["papaya"]), Ok("papaya"));
        let message = base_of(&["tail"], &["papaya"]).unwrap_err();
        assert!(message.contains("papaya") && message.contains("seize"), "{message}");
    }

    #[test]
    fn what_takes_long_is_measured_in_fewer_rounds() {
        let most = |quick: usize| {
            let all = [What::Boot(1), What::Blocked, What::Domains(Used::Never), What::Stall];
            all.map(|what| what.rounds_max(&SUITES.amounts[quick]))
        };
        assert_eq!([most(0), most(1)], [[u32::MAX, 6, 3, 5], [u32::MAX, 3, 3, 3]]);
        let duration = |rounds| {
            let options = Options { rounds: Some(rounds), ..options() };
            SUITES.srcu.prepare(&["blocked".to_owned()], &options).expect("well-formed").duration
        };
        assert_eq!([duration(1) * 2, duration(1) * 3], [duration(2), duration(ROUNDS_QUICK)]);
    }
}
