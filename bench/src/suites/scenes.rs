//! Tables of a benchmark that has several, in groups of which `--case` picks: how `read`, `gp`,
//! `update`, `srcu`, `percpu` and `cells` are measured. `suites.toml` lists them.
//!
//! Each table has rivals of its own, of which `--only` picks. Its name begins with its group's.

use std::time::Duration;

use serde::Deserialize;

use super::listed::{SUITES, Scene, Scenes};
#[cfg(test)]
use super::rounds::Metric;
use super::rounds::{Case, Sample, Session, alone};
use super::{Options, Suite};
use crate::Error;
use crate::cases::domains::Used;
use crate::cases::grace::{IdleThreads, steps_for};
use crate::cases::loops::{Loop, Looped};
use crate::cases::store::Loaders;
use crate::cases::update::Updates;
use crate::cases::{blocked, boot, domains, enqueue, garbage, hash, memory, stall, tail, update};
use crate::rivals::{self, Rival};
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
}

/// How long a reader's section is beside grace periods.
const SECTION: Duration = Duration::from_micros(1);
/// Threads of the hash table.
const TABLE_THREADS: usize = 2;

/// What takes long is measured in fewer rounds: a reader that stays, domains, and stalls, of which
/// what they fill takes as long again to be freed.
const ROUNDS_BLOCKED: u32 = 6;
const ROUNDS_BLOCKED_QUICK: u32 = 3;
const ROUNDS_DOMAINS: u32 = 3;
const ROUNDS_STALL: u32 = 5;
const ROUNDS_STALL_QUICK: u32 = 3;

/// What is to be measured of whom.
struct Choice {
    suite: &'static Scenes<What>,
    scenes: Vec<&'static Scene<What>>,
    rivals: Vec<&'static Rival>,
    amounts: Amounts,
    rounds: u32,
    quick: bool,
    seed: u64,
}

impl Scenes<What> {
    /// The suite, ready to run: the tables of these groups, or all if none is named.
    ///
    /// # Errors
    /// If a group or a rival is named that there is not.
    pub fn prepare(&'static self, groups: &[String], options: &Options) -> Result<Suite, Error> {
        let scenes = self.chosen(groups)?;
        let known = rivals_of(|rival| scenes.iter().any(|scene| scene.what.is_served_by(rival)));
        let (rivals, base) = options.choose(&known, &self.bases)?;
        let choice = Choice {
            suite: self,
            scenes,
            rivals,
            amounts: SUITES.amounts[usize::from(options.quick)],
            rounds: options.rounds(),
            quick: options.quick,
            seed: options.seed,
        };
        Ok(Suite {
            name: self.bench,
            base,
            duration: choice.scenes.iter().map(|scene| choice.duration(scene)).sum(),
            measure: Box::new(move |session| {
                let cases = choice.scenes.iter().map(|scene| choice.measure(scene, session));
                Ok(cases.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
            }),
        })
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

    /// Threads that are registered besides.
    fn idle(self) -> usize {
        if let Self::Wait { idle, .. } = self { idle } else { 0 }
    }
}

impl Choice {
    fn measure(
        &self,
        scene: &'static Scene<What>,
        session: &mut Session<'_>,
    ) -> Result<Option<Case>, Error> {
        let Scene { id, title, what, .. } = *scene;
        let rivals = self.rivals_of(scene);
        if rivals.is_empty() || session.host.is_stopped() {
            return Ok(None);
        }
        let case = Case::of(id, title, self.suite.metrics(scene), &rivals);
        let budget = self.budget(what);
        match what {
            What::Loop(of, _) | What::Beside(of) => {
                let percent = session.planted_percent;
                let row = |looped: Loop| match what {
                    What::Loop(_, threads) => looped.row(threads, percent),
                    _ => looped.row_beside(percent),
                };
                let loops = rivals.iter().filter_map(|rival| rival.looped(of));
                session.slices(case, &loops.map(row).collect::<Vec<_>>(), budget)
            }
            What::Store(threads) => match Loaders::gather(threads) {
                Ok(loaders) => {
                    let rows: Vec<_> = rivals.iter().map(|rival| loaders.row(rival)).collect();
                    session.slices(case, &rows, budget)
                }
                Err(error) => {
                    session.host.note(&format_args!("{title}: left out: {error}"));
                    Ok(None)
                }
            },
            What::Wait { .. } | What::Grace(_) | What::Contended(_) => {
                let idle_threads = match IdleThreads::gather(&rivals, what.idle()) {
                    Ok(idle_threads) => idle_threads,
                    Err(error) => {
                        session.host.note(&format_args!("{title}: left out: {error}"));
                        return Ok(None);
                    }
                };
                let steps = steps_for(SECTION);
                session.interleave(self.rounds_of(what), case, budget, |number| {
                    self.sample_waits(what, rivals[number], &idle_threads, steps)
                })
            }
            What::Stall => self.stall(case, &rivals, budget, session),
            _ => session.interleave(self.rounds_of(what), case, budget, |number| {
                self.sample(what, rivals[number])
            }),
        }
    }

    /// One measurement of what needs nothing beside its rival.
    fn sample(&self, what: What, rival: &Rival) -> Sample {
        let amounts = &self.amounts;
        match what {
            What::Boot(readers) => {
                let seen = boot::measure(rival, readers, amounts.boots);
                Sample::new([seen.ns, seen.cpu_ns, seen.look_ups_per_second], seen.judged)
            }
            What::Blocked => {
                let seen = blocked::measure(rival, amounts.blocked);
                let [cpu, stretch] = [seen.cpu_percent, seen.stretch_ns];
                Sample::new([cpu, stretch, seen.sleeps_per_second, seen.answer_ns], None)
            }
            What::Domains(used) => {
                // Here and below: where the allocator or the kernel does not say, there is nothing
                // to be compared.
                alone(domains::measure(rival, used, amounts.domains).unwrap_or(f64::NAN))
            }
            What::StoreNew(readers) => {
                let (stores, timed) = (amounts.stores, amounts.stores_timed);
                let seen = update::measure_cell(rival, readers, stores, timed);
                sample_updates(&seen, seen.ns)
            }
            What::Garbage => {
                let seen = garbage::measure(rival, amounts.stores);
                let bytes = seen.bytes.map_or(f64::NAN, |bytes| bytes as f64);
                let freed_after = seen.freed_after.as_nanos() as f64;
                Sample::new([freed_after, seen.waiting as f64, bytes], None)
            }
            What::Update(readers) => {
                let (updates, timed) = (amounts.updates, amounts.updates_timed);
                let seen = update::measure(rival, readers, updates, timed);
                sample_updates(&seen, 1e9 / seen.ns)
            }
            What::Tail => {
                let seen = tail::measure(rival, amounts.reads_timed);
                Sample::new([seen.p99_9_ns, seen.p50_ns, seen.updates_per_second], seen.judged)
            }
            What::Hash(percent) => {
                let operations = amounts.table_operations;
                let seen = hash::measure(rival, TABLE_THREADS, percent, operations, self.seed);
                Sample::new([seen.operations_per_second, seen.cpu_ns], seen.judged)
            }
            What::Call => alone(enqueue::measure_call(rival, amounts.bursts)),
            What::Memory => alone(memory::measure(rival, amounts.objects).unwrap_or(f64::NAN)),
            What::Barrier => {
                let ns = enqueue::measure_barrier(rival, amounts.barriers);
                alone(ns.expect("only rivals that have one are asked"))
            }
            What::Loop(..)
            | What::Beside(_)
            | What::Store(_)
            | What::Wait { .. }
            | What::Grace(_)
            | What::Contended(_)
            | What::Stall => unreachable!("it needs more than its rival"),
        }
    }

    fn sample_waits(&self, what: What, rival: &Rival, idle: &IdleThreads, steps: u32) -> Sample {
        let budget = self.budget(what);
        let seen = match what {
            What::Contended(readers) => {
                let seen = idle.contend(rival, readers, steps, budget);
                let reads = [seen.reads_per_cpu_second, seen.reads_per_second];
                let values = [reads[0], reads[1], seen.grace_periods_per_second];
                // Readers waiting for a CPU are the point here.
                return Sample::new(values, None);
            }
            What::Wait { readers, .. } => idle.measure(rival, readers, budget),
            What::Grace(readers) => idle.measure_sections(rival, readers, steps, budget / 2),
            _ => unreachable!("these are the three that wait"),
        };
        Sample::new([seen.p50_ns, seen.p99_ns], seen.judged)
    }

    /// A rival that fills the memory up to the bound is named in a note.
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
            let [objects, bytes] = [seen.unreclaimed_peak, seen.bytes_peak].map(|peak| peak as f64);
            let values = [objects, bytes, 100.0 * seen.reads_kept, seen.updates_per_second];
            Sample::new(values, seen.judged)
        };
        let rounds = self.rounds_of(What::Stall);
        let case = session.interleave(rounds, case, budget, measure)?;
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

    /// About how long one measurement of a rival takes.
    fn budget(&self, what: What) -> Duration {
        let amounts = &self.amounts;
        let about = |ns: u64, count: u64| Duration::from_nanos(ns * count);
        match what {
            What::Loop(..) | What::Beside(_) | What::Store(_) => amounts.looped,
            // Shorter than a time slice, so that the readers can be there from its beginning to its
            // end also where others want their CPUs.
            What::Wait { readers, .. } => amounts.waits / if readers > 0 { 8 } else { 1 },
            // Half of it is for the readers to arrive.
            What::Grace(_) => 2 * amounts.grace,
            // Here a grace period may take many time slices.
            What::Contended(_) => amounts.grace,
            What::Boot(_) => about(20_000, amounts.boots),
            What::Blocked => amounts.blocked,
            What::Domains(_) => about(10_000, amounts.domains as u64),
            What::StoreNew(_) | What::Garbage => about(300, amounts.stores),
            What::Update(_) => about(150, amounts.updates + amounts.updates_timed as u64),
            What::Tail => about(300, amounts.reads_timed as u64),
            What::Hash(_) => about(150, amounts.table_operations as u64),
            What::Call => about(10_000_000, amounts.bursts.into()),
            What::Memory => about(300, amounts.objects),
            What::Stall => amounts.stall * 3 / 2,
            What::Barrier => about(10_000_000, amounts.barriers.into()),
        }
    }

    fn rounds_of(&self, what: What) -> u32 {
        self.rounds.min(match what {
            What::Blocked if self.quick => ROUNDS_BLOCKED_QUICK,
            What::Blocked => ROUNDS_BLOCKED,
            What::Domains(_) => ROUNDS_DOMAINS,
            What::Stall if self.quick => ROUNDS_STALL_QUICK,
            What::Stall => ROUNDS_STALL,
            _ => u32::MAX,
        })
    }

    fn duration(&self, scene: &Scene<What>) -> Duration {
        let rivals = self.rivals_of(scene).len();
        self.budget(scene.what) * self.rounds_of(scene.what) * rivals as u32
    }

    fn rivals_of(&self, scene: &Scene<What>) -> Vec<&'static Rival> {
        self.rivals.iter().copied().filter(|rival| scene.what.is_served_by(rival)).collect()
    }
}

fn sample_updates(seen: &Updates, first: f64) -> Sample {
    Sample::new([first, seen.cpu_ns, seen.p99_9_ns, seen.unreclaimed_peak as f64], seen.judged)
}

#[cfg(test)]
mod tests {
    use super::super::ROUNDS_QUICK;
    use super::super::tests::all_scenes;
    use super::*;
    use crate::host::Quiet;

    fn options() -> Options {
        Options { quick: true, ..Options::default() }
    }

    #[test]
    fn every_rival_of_every_case_gives_a_figure_for_each_metric() {
        // A stall looks at all memory of the process, and 10,000 threads take their time.
        let is_small =
            |scene: &&Scene<What>| !matches!(scene.what, What::Stall) && scene.what.idle() < 1000;
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
        let mut session = Session::new(&mut host, 1, 1);
        for suite in all_scenes() {
            let choice = Choice {
                suite,
                rivals: rivals::all().collect(),
                scenes: suite.cases.iter().filter(is_small).collect(),
                amounts,
                rounds: 1,
                quick: true,
                seed: 1,
            };
            for scene in &choice.scenes {
                let case = choice.measure(scene, &mut session).unwrap().expect("it is measured");
                assert_eq!(case.rivals.len(), choice.rivals_of(scene).len(), "{}", scene.id);
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
        let mut choice = Choice {
            suite: &SUITES.srcu,
            scenes: Vec::new(),
            rivals: Vec::new(),
            amounts: SUITES.amounts[0],
            rounds: ROUNDS_QUICK,
            quick: true,
            seed: 1,
        };
        let rounds = |choice: &Choice| {
            [What::Boot(1), What::Blocked, What::Domains(Used::Never)].map(|w| choice.rounds_of(w))
        };
        assert_eq!(rounds(&choice), [ROUNDS_QUICK, ROUNDS_BLOCKED_QUICK, ROUNDS_DOMAINS]);
        choice.quick = false;
        choice.rounds = 2;
        assert_eq!(rounds(&choice), [2, 2, 2]);
    }
}
