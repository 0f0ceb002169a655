//! Tables of a benchmark that has several, in groups of which `--case` picks: how `read`, `gp`,
//! `update`, `srcu`, `percpu` and `cells` are measured. `suites.toml` lists them.
//!
//! Each table has rivals of its own, of which `--only` picks. Its name begins with its group's.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Deserialize;

use super::listed::{Amount, Scene, Scenes};
use super::rounds::{Case, Session};
use super::{Options, Planned, Suite};
use crate::Error;
use crate::cases::crowd::{self, Rest};
use crate::cases::domains::Used;
use crate::cases::grace::{Beside, idle, steps_for};
use crate::cases::loops::{Loop, Looped};
use crate::cases::{enqueue, garbage, hash, memory, stall, store, update};
use crate::rivals::{self, Rival};
use crate::sample::Sample;
use crate::slices::Row;
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
        /// How long their sections are; 0: as short as can be.
        #[serde(default)]
        section_us: u64,
        /// What is measured is what the readers get done.
        #[serde(default)]
        contends: bool,
    },
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
    /// Reads of so many threads beside one that replaces now and then.
    Readers(usize),
    /// A hash table, with so many searches in a hundred operations.
    Hash(u32),
    /// A table that gives out ids: so many, searches in a hundred operations, threads.
    Ids(u64, u32, usize),
    /// Queueing a callback.
    Call,
    /// Memory for an object that waits.
    Memory,
    /// A reader that stays in its section while another thread retires.
    Stall,
    /// Waiting for one callback.
    Barrier,
}

/// Threads of the hash table.
const TABLE_THREADS: usize = 2;

/// One measurement of a rival, of what needs nothing beside it.
type Measure = Box<dyn Fn() -> Sample>;

impl Scenes<What> {
    /// The suite, ready to run: the tables of these groups or ids, or all if none is named.
    ///
    /// # Errors
    /// If a table or a rival is named that there is not.
    pub fn prepare(&'static self, groups: &[String], options: &Options) -> Result<Suite, Error> {
        let scenes = self.chosen(groups)?;
        let known = self.rivals(|rival| scenes.iter().any(|scene| scene.what.is_served_by(rival)));
        let (rivals, base) = options.choose(&known, |rival| rival.name, &self.bases)?;
        let planned = scenes.into_iter().map(|scene| {
            let rivals = rivals.iter().copied().filter(|rival| scene.what.is_served_by(rival));
            self.plan(scene, rivals.collect(), self.amount(scene), options)
        });
        Ok(Suite::new(self.bench, base, planned.collect()))
    }

    /// A table of these rivals, all of which take part in it.
    fn plan(
        &'static self,
        scene: &'static Scene<What>,
        rivals: Vec<&'static Rival>,
        amount: Amount,
        options: &Options,
    ) -> Planned {
        let (what, quick, seed) = (scene.what, usize::from(options.quick), options.seed);
        let names = rivals.iter().map(|rival| (rival.name, rival.ours));
        let case = Case::new(scene.id, scene.title, self.metrics(scene), names);
        let (times, timed) = (amount.times[quick], amount.timed[quick]);
        let planted_percent = options.planted_percent;
        Planned::new(case, amount.of(options), move |session, case| match what {
            What::Loop(of, _) | What::Beside(of) => {
                let loops = rivals.iter().filter_map(|rival| Some(rival.looped(of)?()));
                let rows: Vec<_> = loops.map(|looped| what.row(looped, planted_percent)).collect();
                session.slices(case, &rows)
            }
            What::Store(threads) => {
                let places = rivals.iter().filter_map(|rival| Some((rival.name, rival.store?())));
                let places: Vec<store::Place> = places.collect();
                let rows: Vec<_> = places.iter().map(store::row).collect();
                beside(session, threads, store::loaded(&places), case, |session, case| {
                    session.slices(case, &rows)
                })
            }
            What::Wait { idle: threads, readers, section_us, contends } => {
                let flavours = rivals.iter().filter_map(|rival| Some(rival.wait?()));
                let flavours: Vec<_> = flavours.collect();
                let (steps, time) = (steps_for(section_us), Duration::from_nanos(times));
                let mut measure = |number: usize, _| {
                    let beside = Beside { flavour: &*flavours[number], readers, steps };
                    if contends { beside.contend(time) } else { beside.measure(time) }
                };
                beside(session, threads, idle(&flavours), case, |session, case| {
                    session.interleave(case, &mut measure)
                })
            }
            _ => {
                let measures = rivals.iter().filter_map(|rival| what.of(rival, times, timed, seed));
                let measures: Vec<Measure> = measures.collect();
                let measure = |number: usize| measures[number]();
                match what {
                    What::Stall => stalls(session, case, measure),
                    _ => session.interleave(case, &mut |number, _| measure(number)),
                }
            }
        })
    }

    /// The rivals of which this holds, in the order of the registry.
    fn rivals(&self, serves: impl Fn(&Rival) -> bool) -> Vec<&'static Rival> {
        let takes = |rival: &Rival| self.only.is_empty() || self.only.contains(&rival.name);
        rivals::all().filter(|rival| takes(rival) && serves(rival)).collect()
    }
}

/// Measures beside so many threads of a crowd; the case is left out if there are not so many.
fn beside(
    session: &mut Session<'_>,
    threads: usize,
    come: impl Fn(usize, Rest<'_>) + Sync,
    case: Case,
    measure: impl FnOnce(&mut Session<'_>, Case) -> Option<Case>,
) -> Option<Case> {
    let title = case.title.clone();
    let measured = crowd::beside(threads, come, |_closed| measure(session, case));
    let (case, _) = measured
        .inspect_err(|error| session.host.note(&format_args!("{title}: left out: {error}")))
        .ok()?;
    case
}

/// A case of stalls, with a note of who has filled the memory up to the bound, also in a try that
/// does not count.
fn stalls(
    session: &mut Session<'_>,
    case: Case,
    mut sample: impl FnMut(usize) -> Sample,
) -> Option<Case> {
    let mut full = BTreeSet::new();
    let mut case = session.interleave(case, &mut |number, _| {
        let seen = sample(number);
        full.extend((seen.values[1] >= stall::BYTES_MAX as f64).then_some(number));
        seen
    })?;
    let full: Vec<&str> = full.iter().map(|&number| case.rivals[number].name).collect();
    if !full.is_empty() {
        let bytes = units::bytes(stall::BYTES_MAX);
        case.notes.push(format!("stopped at {bytes}: {}", full.join(", ")));
    }
    Some(case)
}

impl What {
    fn is_served_by(self, rival: &Rival) -> bool {
        match self {
            Self::Loop(of, _) | Self::Beside(of) => rival.looped(of).is_some(),
            Self::Wait { section_us, contends, .. } => {
                // Beside those that wait for sections to end.
                let may_not_wait = section_us > 0 && !contends;
                rival.wait.is_some() && (may_not_wait || !rival.is_restartable)
            }
            Self::Store(_) => rival.store.is_some(),
            _ => self.of(rival, 0, 0, 0).is_some(),
        }
    }

    /// What is timed of a rival's loop. So many per cent are done besides, and not counted.
    fn row(self, looped: Loop, planted_percent: f64) -> Row<'static> {
        match self {
            Self::Loop(_, threads) => looped.row(threads, planted_percent),
            _ => looped.row_beside(planted_percent),
        }
    }

    /// One measurement of a rival of so much, and so much more that is timed one by one, of what
    /// needs nothing beside its rival. Nothing if the rival does not serve it.
    fn of(self, rival: &Rival, times: u64, timed: usize, seed: u64) -> Option<Measure> {
        let (count, time) = (times as usize, Duration::from_nanos(times));
        let hoards = rival.replace.filter(|_| rival.hoards);
        let queue = rival.enqueue.zip(rival.replace);
        match self {
            Self::Boot(readers) => served(rival.boot, move |measure| measure(readers, times)),
            Self::Blocked => served(rival.blocked, move |measure| measure(time)),
            Self::Domains(used) => served(rival.domain, move |measure| measure(used, count)),
            Self::StoreNew(readers) => served(rival.stored, move |make| {
                update::measure(make, readers, times, timed, |ns| ns)
            }),
            Self::Garbage => served(rival.stored, move |make| garbage::measure(make, times)),
            Self::Update(readers) => served(rival.replace, move |make| {
                update::measure(make, readers, times, timed, |ns| 1e9 / ns)
            }),
            Self::Tail => served(rival.replace, move |make| update::tail(make, count)),
            Self::Readers(readers) => {
                served(rival.replace, move |make| update::beside(make, readers, time))
            }
            Self::Hash(percent) => served(rival.hash, move |make| {
                hash::measure(make, &hash::keys(), TABLE_THREADS, percent, count, seed)
            }),
            Self::Ids(ids, percent, threads) => served(rival.ids, move |make| {
                let keys: Vec<u64> = (0..ids).collect();
                hash::measure(make, &keys, threads, percent, count, seed)
            }),
            Self::Call => served(queue, move |queue| enqueue::measure_call(queue, count)),
            Self::Memory => served(hoards, move |make| memory::measure(make, times)),
            Self::Stall => served(rival.replace, move |make| stall::measure(make, time)),
            Self::Barrier => served(queue.filter(|_| rival.has_barrier), move |queue| {
                enqueue::measure_barrier(queue, count)
            }),
            _ => unreachable!("it needs more than its rival"),
        }
    }
}

/// A measurement of what a rival has, if it has it.
fn served<T: Copy + 'static>(
    has: Option<T>,
    measure: impl Fn(T) -> Sample + 'static,
) -> Option<Measure> {
    has.map(|it| -> Measure { Box::new(move || measure(it)) })
}

#[cfg(test)]
mod tests {
    use scopeguard::defer_on_unwind;

    use super::super::rounds::{Series, tests::case};
    use super::super::tests::{all_scenes, are_whole, names, quick};
    use super::super::{ROUNDS_QUICK, SUITES};
    use super::*;
    use crate::clock::cpu_time;
    use crate::host::Quiet;
    use crate::slices::{self, Flaw};

    #[test]
    fn who_has_filled_the_memory_is_noted_also_of_a_try_that_does_not_count() {
        let (mut host, options) = (Quiet::default(), quick(4, &[]));
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
        let case = stalls(&mut Session::new(&mut host, &options), case(), sample).unwrap();
        assert_eq!(case.notes, ["stopped at 1 GiB: a, b"]);
    }

    /// That a rival does what it is asked to is asserted within.
    #[test]
    fn every_rival_of_every_case_gives_a_figure_for_each_metric() {
        // A stall looks at all memory of the process, and 10,000 threads take their time.
        let is_small = |scene: &&Scene<What>| {
            !matches!(scene.what, What::Stall | What::Wait { idle: 1000.., .. })
        };
        for suite in all_scenes() {
            for scene in suite.cases.iter().filter(is_small) {
                let rivals = suite.rivals(|rival| scene.what.is_served_by(rival));
                assert!(!rivals.is_empty(), "{}", scene.id);
                let names: Vec<&str> = rivals.iter().map(|rival| rival.name).collect();
                let metrics = suite.metrics(scene).len();
                for (name, values) in names.into_iter().zip(figures(suite, scene, rivals)) {
                    let Some(values) = values else { continue };
                    assert_eq!(values.len(), metrics, "{}: {name}", scene.id);
                    let is_figure = |value: &f64| value.is_finite() && *value >= 0.0;
                    // Beside other tests, which free, memory may seem to be none.
                    let may_be_unknown = matches!(scene.what, What::Memory);
                    let are_figures = may_be_unknown || values.iter().all(is_figure);
                    let times = little(suite.amount(scene)).times[0];
                    let is_plausible =
                        are_figures && is_plausible(scene.what, name, times, &values);
                    assert!(is_plausible, "{}: {name}: {values:?}", scene.id);
                }
            }
        }
    }

    /// The figures of each rival of a case; nothing where none counts on a busy machine.
    fn figures(
        suite: &'static Scenes<What>,
        scene: &'static Scene<What>,
        rivals: Vec<&'static Rival>,
    ) -> Vec<Option<Vec<f64>>> {
        let (what, amount) = (scene.what, little(suite.amount(scene)));
        let one = |rival: &&'static Rival| {
            defer_on_unwind!(eprintln!("{}: {}", scene.id, rival.name));
            let looped = match what {
                What::Loop(of, _) | What::Beside(of) => rival.looped(of),
                _ => None,
            };
            let row = looped.map(|make| what.row(make(), 0.0));
            let cpu_before = cpu_time();
            let values = match row {
                Some(row) => vec![slices::once(&row, 4)],
                None => what.of(rival, amount.times[0], amount.timed[0], 1).unwrap()().values,
            };
            let cpu_ns = (cpu_time() - cpu_before).as_nanos() as f64;
            let is_boot = matches!(what, What::Boot(_));
            assert!(!is_boot || values[1] * amount.times[0] as f64 <= cpu_ns, "{values:?}");
            Some(values)
        };
        match what {
            What::Store(_) | What::Wait { .. } => {
                let (mut host, options) = (Quiet::default(), quick(1, &[]));
                let planned = suite.plan(scene, rivals, amount, &options);
                let case = planned.measure(&mut Session::new(&mut host, &options));
                let rivals = case.expect("it is measured").rivals.into_iter();
                let first = |values: Vec<f64>| values.first().copied();
                let of = |rival: Series| rival.values.into_iter().map(first).collect();
                rivals.map(|rival| if rival.missing.is_none() { of(rival) } else { None }).collect()
            }
            _ => rivals.iter().map(one).collect(),
        }
    }

    /// What is to be seen in figures of a rival, beside that they are some.
    fn is_plausible(what: What, name: &str, times: u64, values: &[f64]) -> bool {
        // Updates are whole batches.
        let most = if name.ends_with("rwlock") { 0 } else { times.next_multiple_of(64) };
        match (what, values) {
            (What::Loop(..) | What::Beside(_) | What::Store(_), &[ns])
            | (What::Call | What::Barrier, &[ns]) => ns > 0.0,
            (What::Wait { contends: false, .. }, &[p50, p99]) => p50 <= p99,
            (What::Wait { .. }, &[.., grace_periods]) => grace_periods > 0.0,
            (What::Boot(_), &[ns, _, look_ups]) => ns > 0.0 && look_ups > 0.0,
            (What::Garbage, &[_, waiting, _]) => waiting <= most as f64,
            (What::Update(_) | What::StoreNew(_), &[speed, cpu_ns, p99_9, peak]) => {
                speed > 0.0 && cpu_ns > 0.0 && p99_9 > 0.0 && peak <= most as f64
            }
            (What::Tail, &[p99_9, p50, _, p99, p90]) => {
                p50 > 1.0 && [p50, p90, p99, p99_9].is_sorted()
            }
            (What::Hash(_) | What::Ids(..), &[operations, cpu_ns]) => {
                operations > 0.0 && cpu_ns > 0.0
            }
            (What::Readers(_), &[reads, updates]) => reads > 0.0 && updates > 0.0,
            (What::Blocked, &[_, _, _, _]) | (What::Domains(_) | What::Memory, &[_]) => true,
            _ => false,
        }
    }

    /// A small part of what is measured quickly.
    fn little(quick: Amount) -> Amount {
        let (times, timed) = (quick.times[1] / 20, quick.timed[1] / 20);
        Amount { times: [times.max(2); 2], timed: [timed; 2], ..quick }
    }

    #[test]
    fn all_cases_are_measured_unless_some_are_named() {
        for scenes in all_scenes() {
            let groups = scenes.groups.iter().map(|(group, _)| *group);
            let prepare = |groups: &[String]| scenes.prepare(groups, &quick(1, &[]));
            are_whole(&Vec::from_iter(groups), |groups| prepare(groups).expect("well-formed"));
            let message = prepare(&names(&["speed"])).unwrap_err().to_string();
            assert!(message.contains("speed"), "{message}");
        }
    }

    #[test]
    fn a_rival_is_chosen_where_it_takes_part() {
        let base_of = |cases: &[&str], only: &[&str]| {
            let suite = SUITES.update.prepare(&names(cases), &quick(1, only));
            suite.map(|suite| suite.base).map_err(|error| error.to_string())
        };
        assert_eq!(base_of(&[], &["papaya", "quiescence"]), Ok("quiescence"));
        assert_eq!(base_of(&["hash"], &["papaya"]), Ok("papaya"));
        let message = base_of(&["tail"], &["papaya"]).unwrap_err();
        assert!(message.contains("papaya") && message.contains("seize"), "{message}");
    }

    #[test]
    fn what_takes_long_is_measured_in_fewer_rounds() {
        let srcu = &SUITES.srcu;
        let most = |group: &str, scenes: &Scenes<What>| {
            let scene = scenes.cases.iter().find(|scene| scene.group() == group);
            scenes.amount(scene.expect("it is listed")).rounds_max
        };
        assert_eq!(
            ["boot", "blocked", "domains"].map(|group| most(group, srcu)),
            [None, Some([6, 3]), Some([3, 3])]
        );
        assert_eq!(most("stall", &SUITES.update), Some([5, 3]));
        let duration = |rounds| {
            let suite = SUITES.srcu.prepare(&names(&["blocked"]), &quick(rounds, &[]));
            suite.expect("well-formed").duration
        };
        assert_eq!([duration(1) * 2, duration(1) * 3], [duration(2), duration(ROUNDS_QUICK)]);
    }
}
