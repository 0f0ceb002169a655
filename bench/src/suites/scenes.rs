//! Tables of a benchmark that has several, in groups of which `--case` picks: what
//! [`srcu`](super::srcu), [`percpu`](super::percpu) and [`cells`](super::cells) have in common.
//!
//! Each table has rivals of its own, of which `--only` picks. Its name begins with its group's.

use std::time::Duration;

use super::rounds::{Case, Metric, Sample, Session, alone};
use super::timed::{self, Of, Threads};
use super::{Group, Options, Suite};
use crate::Error;
use crate::cases::domains::Used;
use crate::cases::grace::{IdleThreads, steps_for};
use crate::cases::store::Crowd;
use crate::cases::{blocked, boot, domains, garbage, update};
use crate::rivals::{self, Rival};

/// All tables of a benchmark.
#[derive(Debug)]
pub struct Scenes {
    /// The name of the benchmark.
    pub(crate) bench: &'static str,
    /// What `--case` takes.
    pub groups: &'static [Group],
    pub(crate) all: &'static [Scene],
}

/// One table.
#[derive(Debug)]
pub(crate) struct Scene {
    id: &'static str,
    title: &'static str,
    metrics: &'static [Metric],
    what: What,
}

/// What is measured, and of whom.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// One operation in a loop.
    Loop(Of, Threads),
    /// A burst of grace periods beside so many readers.
    Boot(usize),
    /// A reader that stays in its section.
    Blocked,
    /// Memory of a domain that was used like this.
    Domains(Used),
    /// Grace periods beside so many readers with sections of a microsecond.
    Grace(usize),
    /// Replacing what so many threads have loaded.
    Store(usize),
    /// Replacing an `Arc` by a new one beside so many readers.
    StoreNew(usize),
    /// What waits after the last store.
    Garbage,
}

pub(crate) const fn scene(
    id: &'static str,
    title: &'static str,
    metrics: &'static [Metric],
    what: What,
) -> Scene {
    Scene { id, title, metrics, what }
}

/// How much is measured at a time.
#[derive(Clone, Copy, Debug)]
struct Amounts {
    looped: Duration,
    updates: u64,
    blocked: Duration,
    domains: usize,
    grace: Duration,
    stores_new: u64,
    stores_timed: usize,
}

const AMOUNTS: Amounts = Amounts {
    looped: Duration::ZERO,
    updates: 9000,
    blocked: Duration::from_secs(10),
    domains: 10_000,
    grace: Duration::from_millis(400),
    stores_new: 200_000,
    stores_timed: 50_000,
};

const AMOUNTS_QUICK: Amounts = Amounts {
    updates: 1500,
    blocked: Duration::from_secs(2),
    grace: Duration::from_millis(150),
    stores_new: 50_000,
    stores_timed: 10_000,
    ..AMOUNTS
};

/// How long a reader stays in its section, beside grace periods.
const SECTION: Duration = Duration::from_micros(1);

/// A blocked waiter takes its time, and domains that were measured stay.
const ROUNDS_BLOCKED: u32 = 6;
const ROUNDS_BLOCKED_QUICK: u32 = 3;
const ROUNDS_DOMAINS: u32 = 3;

/// About what an update with its grace period, a store of a new one, and one domain take, for the
/// progress bar.
const ABOUT_UPDATE: Duration = Duration::from_micros(20);
const ABOUT_NEW: Duration = Duration::from_nanos(300);
const ABOUT_DOMAIN: Duration = Duration::from_micros(10);

/// What is to be measured of whom.
struct Choice {
    scenes: Vec<&'static Scene>,
    rivals: Vec<&'static Rival>,
    amounts: Amounts,
    rounds: u32,
    quick: bool,
}

impl Scenes {
    /// A benchmark of the scenes of these groups, or of all if none is named.
    ///
    /// # Errors
    /// If a rival is named that there is not.
    pub fn prepare(&'static self, groups: &[String], options: &Options) -> Result<Suite, Error> {
        let is_wanted = |scene: &&Scene| {
            groups.is_empty() || groups.iter().any(|group| scene.group() == group.as_str())
        };
        let scenes: Vec<_> = self.all.iter().filter(is_wanted).collect();
        let known = rivals_of(|rival| scenes.iter().any(|scene| scene.what.is_served_by(rival)));
        let (rivals, base) = options.choose(&known, &["quiescence"])?;
        let amounts = if options.quick { AMOUNTS_QUICK } else { AMOUNTS };
        let choice = Choice {
            scenes,
            rivals,
            amounts: Amounts { looped: timed::budget(options.quick), ..amounts },
            rounds: options.rounds(),
            quick: options.quick,
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
    pub(crate) fn known(&self, case: &str) -> Option<(&'static [Metric], Vec<&'static str>)> {
        let scene = self.all.iter().find(|scene| scene.id == case)?;
        let rivals = rivals_of(|rival| scene.what.is_served_by(rival));
        Some((scene.metrics, rivals.into_iter().map(|rival| rival.name).collect()))
    }
}

/// All rivals of which this holds.
fn rivals_of(serves: impl Fn(&Rival) -> bool) -> Vec<&'static Rival> {
    rivals::all().filter(|rival| serves(rival)).collect()
}

impl Scene {
    /// The part of the name that `--case` takes.
    fn group(&self) -> &'static str {
        self.id.split('/').next().unwrap_or(self.id)
    }
}

impl What {
    /// Whether the rival takes part.
    fn is_served_by(self, rival: &Rival) -> bool {
        match self {
            Self::Loop(of, _) => of(rival).is_some(),
            Self::Boot(_) => rival.boot.is_some(),
            Self::Blocked => rival.blocked.is_some(),
            Self::Domains(_) => rival.domain.is_some(),
            Self::Grace(_) => rival.wait.is_some(),
            Self::Store(_) => rival.store.is_some(),
            Self::StoreNew(_) | Self::Garbage => rival.stored.is_some(),
        }
    }
}

impl Choice {
    fn measure(
        &self,
        scene: &'static Scene,
        session: &mut Session<'_>,
    ) -> Result<Option<Case>, Error> {
        let Scene { id, title, metrics, what } = *scene;
        let rivals = self.rivals_of(scene);
        if rivals.is_empty() {
            return Ok(None);
        }
        let case = Case::of(id, title, metrics, &rivals);
        let (budget, amounts) = (self.budget(what), self.amounts);
        match what {
            What::Loop(of, threads) => {
                timed::measure((id, title, threads), metrics, &rivals, of, budget, session)
            }
            What::Boot(readers) => session.interleave(case, budget, |number| {
                sample_boot(rivals[number], readers, amounts.updates)
            }),
            What::Blocked => session.interleave_at_most(self.rounds_of(what), case, budget, |n| {
                sample_blocked(rivals[n], amounts.blocked)
            }),
            What::Domains(used) => {
                session.interleave_at_most(self.rounds_of(what), case, budget, |number| {
                    sample_domains(rivals[number], used, amounts.domains)
                })
            }
            What::Grace(readers) => grace_periods(case, &rivals, readers, amounts.grace, session),
            What::StoreNew(readers) => session
                .interleave(case, budget, |number| sample_stores(rivals[number], readers, amounts)),
            What::Garbage => {
                session.interleave(case, budget, |number| sample_garbage(rivals[number], amounts))
            }
            What::Store(threads) => match Crowd::gather(threads) {
                Ok(crowd) => {
                    let rows: Vec<_> = rivals.iter().map(|rival| crowd.row(rival)).collect();
                    session.slices(case, &rows, budget)
                }
                Err(error) => {
                    session.host.note(&format_args!("{title}: left out: {error}"));
                    Ok(None)
                }
            },
        }
    }

    /// About how long one measurement takes, for the progress bar.
    fn budget(&self, what: What) -> Duration {
        match what {
            What::Loop(..) | What::Store(_) => self.amounts.looped,
            What::Boot(_) => ABOUT_UPDATE * self.amounts.updates as u32,
            What::Blocked => self.amounts.blocked,
            What::Domains(_) => ABOUT_DOMAIN * self.amounts.domains as u32,
            // Half of it is for the readers to arrive.
            What::Grace(_) => 2 * self.amounts.grace,
            What::StoreNew(_) | What::Garbage => ABOUT_NEW * self.amounts.stores_new as u32,
        }
    }

    fn rounds_of(&self, what: What) -> u32 {
        self.rounds.min(match what {
            What::Blocked if self.quick => ROUNDS_BLOCKED_QUICK,
            What::Blocked => ROUNDS_BLOCKED,
            What::Domains(_) => ROUNDS_DOMAINS,
            _ => u32::MAX,
        })
    }

    fn duration(&self, scene: &Scene) -> Duration {
        let rivals = self.rivals_of(scene).len();
        self.budget(scene.what) * self.rounds_of(scene.what) * rivals as u32
    }

    /// The chosen rivals that take part.
    fn rivals_of(&self, scene: &Scene) -> Vec<&'static Rival> {
        self.rivals.iter().copied().filter(|rival| scene.what.is_served_by(rival)).collect()
    }
}

fn grace_periods(
    case: Case,
    rivals: &[&Rival],
    readers: usize,
    duration: Duration,
    session: &mut Session<'_>,
) -> Result<Option<Case>, Error> {
    let idle_threads =
        IdleThreads::gather(rivals, 0).map_err(|error| Error::io("cannot start", error))?;
    let steps = steps_for(SECTION);
    session.interleave(case, 2 * duration, |number| {
        let seen = idle_threads.measure_sections(rivals[number], readers, steps, duration);
        // Readers waiting for a CPU are the point here.
        Sample::new([seen.p50_ns, seen.p99_ns], None)
    })
}

fn sample_boot(rival: &Rival, readers: usize, updates: u64) -> Sample {
    let seen = boot::measure(rival, readers, updates);
    Sample::new([seen.ns, seen.cpu_ns, seen.look_ups_per_second], seen.judged)
}

fn sample_stores(rival: &Rival, readers: usize, amounts: Amounts) -> Sample {
    let seen = update::measure_cell(rival, readers, amounts.stores_new, amounts.stores_timed);
    let values = [seen.ns, seen.cpu_ns, seen.p99_9_ns, seen.unreclaimed_peak as f64];
    Sample::new(values, seen.judged)
}

fn sample_garbage(rival: &Rival, amounts: Amounts) -> Sample {
    let seen = garbage::measure(rival, amounts.stores_new);
    let freed_after = seen.freed_after.as_nanos() as f64;
    // Where the allocator does not say, there is nothing to be compared.
    let bytes = seen.bytes.map_or(f64::NAN, |bytes| bytes as f64);
    Sample::new([freed_after, seen.waiting as f64, bytes], None)
}

fn sample_blocked(rival: &Rival, blocked_for: Duration) -> Sample {
    let seen = blocked::measure(rival, blocked_for);
    let values = [seen.cpu_percent, seen.stretch_ns, seen.sleeps_per_second, seen.answer_ns];
    Sample::new(values, None)
}

fn sample_domains(rival: &Rival, used: Used, count: usize) -> Sample {
    // Where the kernel does not say, there is nothing to be compared.
    alone(domains::measure(rival, used, count).unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::super::{ROUNDS_QUICK, cells, percpu, srcu};
    use super::*;
    use crate::host::Quiet;

    fn options() -> Options {
        Options { quick: true, ..Options::default() }
    }

    /// All benchmarks of scenes.
    const ALL: [&Scenes; 3] = [&srcu::SCENES, &percpu::SCENES, &cells::SCENES];

    #[test]
    fn every_rival_of_every_case_gives_a_figure_for_each_metric() {
        let scenes: Vec<&Scene> = ALL.iter().flat_map(|scenes| scenes.all).collect();
        let choice = Choice {
            rivals: rivals::all().collect(),
            scenes,
            amounts: Amounts {
                looped: Duration::ZERO,
                updates: 50,
                blocked: Duration::from_millis(3),
                domains: 20,
                grace: Duration::from_nanos(1),
                stores_new: 200,
                stores_timed: 20,
            },
            rounds: 1,
            quick: true,
        };
        let mut host = Quiet::default();
        let mut session = Session::new(&mut host, 1, 1);
        for scene in &choice.scenes {
            let case = choice.measure(scene, &mut session).unwrap().expect("it is measured");
            assert_eq!(case.rivals.len(), choice.rivals_of(scene).len(), "{}", scene.id);
            for rival in &case.rivals {
                for (metric, values) in case.metrics.iter().zip(&rival.values) {
                    let is_figure = values.iter().all(|value| value.is_finite() && *value >= 0.0)
                        && values.is_empty() == rival.missing.is_some();
                    assert!(is_figure, "{}: {}: {metric:?}: {values:?}", scene.id, rival.name);
                }
            }
        }
    }

    #[test]
    fn all_cases_are_measured_unless_some_are_named() {
        for scenes in ALL {
            let duration = |groups: &[String]| {
                scenes.prepare(groups, &options()).expect("well-formed").duration
            };
            let parts = scenes.groups.iter().map(|(group, _)| duration(&[(*group).to_owned()]));
            let parts: Vec<Duration> = parts.collect();
            assert!(parts.iter().all(|part| !part.is_zero()), "{}: {parts:?}", scenes.bench);
            assert_eq!(parts.iter().sum::<Duration>(), duration(&[]), "{}", scenes.bench);
        }
    }

    #[test]
    fn what_takes_long_is_measured_in_fewer_rounds() {
        let mut choice = Choice {
            scenes: Vec::new(),
            rivals: Vec::new(),
            amounts: AMOUNTS,
            rounds: ROUNDS_QUICK,
            quick: true,
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
