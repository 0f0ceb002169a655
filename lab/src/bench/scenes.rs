//! Tables of a benchmark that has several, in groups of which `--case` picks: what [`srcu`](super::srcu) and
//! [`percpu`](super::percpu) have in common.
//!
//! Each table has rivals of its own, of which `--only` picks. Its name begins with its group's.

use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser};
use rivals::bench::blocked::{self, BlockedRival};
use rivals::bench::boot::{self, BootRival};
use rivals::bench::domains::{self, DomainRival, Used};
use rivals::bench::grace::{Company, GraceRival, steps_for};
use rivals::bench::restartable;
use rivals::bench::single::Single;
use rivals::bench::store::{self, Crowd, StoreRival};

use super::loops::{self, Threads};
use super::rounds::{Case, Metric, Sample, Session, Unit};
use super::{Bench, Options};
use crate::exit::Failure;

/// All tables of a benchmark.
#[derive(Debug)]
pub(super) struct Scenes {
    /// The name of the benchmark.
    pub(super) bench: &'static str,
    pub(super) groups: &'static [Group],
    pub(super) all: &'static [Scene],
}

/// A group of tables: what `--case` takes, and what it says of it.
pub(super) type Group = (&'static str, &'static str);

/// One table.
#[derive(Debug)]
pub(super) struct Scene {
    id: &'static str,
    title: &'static str,
    metrics: &'static [Metric],
    what: What,
}

/// What is measured, and of whom.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// One operation in a loop.
    Loop(fn() -> &'static [Single], Threads),
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
}

pub(super) const fn metric(name: &'static str, unit: Unit) -> Metric {
    Metric { name, unit }
}

pub(super) const fn scene(
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
    stores: u32,
}

const AMOUNTS: Amounts = Amounts {
    looped: Duration::ZERO,
    updates: 9000,
    blocked: Duration::from_secs(10),
    domains: 10_000,
    grace: Duration::from_millis(400),
    stores: 5000,
};

const AMOUNTS_QUICK: Amounts = Amounts {
    updates: 1500,
    blocked: Duration::from_secs(2),
    grace: Duration::from_millis(150),
    stores: 500,
    ..AMOUNTS
};

/// How long a reader stays in its section, beside grace periods.
const SECTION: Duration = Duration::from_micros(1);

/// Whoever blocks takes its time, and domains that were measured stay.
const ROUNDS_BLOCKED: u32 = 6;
const ROUNDS_BLOCKED_QUICK: u32 = 3;
const ROUNDS_DOMAINS: u32 = 3;

/// About what an update with its grace period, a store, and one domain take, for the progress bar.
const ABOUT_UPDATE: Duration = Duration::from_micros(20);
const ABOUT_STORE: Duration = Duration::from_micros(5);
const ABOUT_DOMAIN: Duration = Duration::from_micros(10);

/// What is to be measured of whom.
struct Choice {
    scenes: Vec<&'static Scene>,
    names: Vec<&'static str>,
    amounts: Amounts,
    rounds: u32,
    quick: bool,
}

impl Scenes {
    /// Takes the names of the groups.
    pub(super) fn parser(&self) -> PossibleValuesParser {
        let value = |(name, help): &Group| PossibleValue::new(*name).help(*help);
        self.groups.iter().map(value).collect::<Vec<_>>().into()
    }

    /// A benchmark of the scenes of these groups, or of all if none is named.
    pub(super) fn prepare(&self, groups: &[String], options: &Options) -> Result<Bench, Failure> {
        let is_wanted = |scene: &&Scene| {
            groups.is_empty() || groups.iter().any(|group| scene.group() == group.as_str())
        };
        let scenes: Vec<_> = self.all.iter().filter(is_wanted).collect();
        let known = names_of(&scenes);
        let (names, base) = options.choose(&known, |name| *name, &["quiescence"])?;
        let amounts = if options.quick { AMOUNTS_QUICK } else { AMOUNTS };
        let choice = Choice {
            scenes,
            names: names.into_iter().copied().collect(),
            amounts: Amounts { looped: loops::budget(options.quick), ..amounts },
            rounds: options.rounds(),
            quick: options.quick,
        };
        Ok(Bench {
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
    pub(super) fn known(&self, case: &str) -> Option<(&'static [Metric], Vec<&'static str>)> {
        let scene = self.all.iter().find(|scene| scene.id == case)?;
        let names = scene.rivals().into_iter().map(|(name, _)| name);
        Some((scene.metrics, names.collect()))
    }
}

/// The names of all rivals of the scenes, each once, in the order of their first appearance.
fn names_of(scenes: &[&Scene]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for (name, _) in scenes.iter().flat_map(|scene| scene.rivals()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

impl Scene {
    /// The part of the name that `--case` takes.
    fn group(&self) -> &'static str {
        self.id.split('/').next().unwrap_or(self.id)
    }

    /// The names of the rivals, and whether they are ours.
    fn rivals(&self) -> Vec<(&'static str, bool)> {
        match self.what {
            What::Loop(rivals, _) => rivals().iter().map(|r| (r.name, r.ours)).collect(),
            What::Boot(_) => boot::rivals().iter().map(|r| (r.name, r.ours)).collect(),
            What::Blocked => blocked::rivals().iter().map(|r| (r.name, r.ours)).collect(),
            What::Domains(_) => domains::rivals().iter().map(|r| (r.name, r.ours)).collect(),
            What::Grace(_) => restartable::rivals().iter().map(|r| (r.name, r.ours)).collect(),
            What::Store(_) => store::rivals().iter().map(|r| (r.name, r.ours)).collect(),
        }
    }
}

impl Choice {
    fn measure(
        &self,
        scene: &'static Scene,
        session: &mut Session<'_>,
    ) -> Result<Option<Case>, Failure> {
        let Scene { id, title, metrics, what } = *scene;
        let chosen = || scene.rivals().into_iter().filter(|(name, _)| self.names.contains(name));
        let names: Vec<&str> = chosen().map(|(name, _)| name).collect();
        if names.is_empty() {
            return Ok(None);
        }
        let case = Case::new(id, title, metrics, chosen());
        let (budget, amounts) = (self.budget(what), self.amounts);
        match what {
            What::Loop(rivals, threads) => {
                let rivals: Vec<&Single> =
                    names.iter().map(|name| find(rivals(), name, |rival| rival.name)).collect();
                loops::measure((id, title, threads), metrics, &rivals, budget, session)
            }
            What::Boot(readers) => session.interleave(case, budget, |number| {
                sample_boot(boot_rival(names[number]), readers, amounts.updates)
            }),
            What::Blocked => session.interleave_at_most(self.rounds_of(what), case, budget, |n| {
                sample_blocked(blocked_rival(names[n]), amounts.blocked)
            }),
            What::Domains(used) => {
                session.interleave_at_most(self.rounds_of(what), case, budget, |number| {
                    sample_domains(domain_rival(names[number]), used, amounts.domains)
                })
            }
            What::Grace(readers) => {
                let rivals: Vec<_> = restartable::rivals()
                    .into_iter()
                    .filter(|rival| names.contains(&rival.name))
                    .collect();
                grace(case, &rivals, readers, amounts.grace, session)
            }
            What::Store(threads) => match Crowd::gather(threads) {
                Ok(crowd) => session.interleave(case, budget, |number| {
                    alone(crowd.measure(store_rival(names[number]), amounts.stores))
                }),
                Err(error) => {
                    session.output.note(format_args!("{title}: left out: {error}"));
                    Ok(None)
                }
            },
        }
    }

    /// About how long one measurement takes, for the progress bar.
    fn budget(&self, what: What) -> Duration {
        match what {
            What::Loop(..) => self.amounts.looped,
            What::Boot(_) => ABOUT_UPDATE * self.amounts.updates as u32,
            What::Blocked => self.amounts.blocked,
            What::Domains(_) => ABOUT_DOMAIN * self.amounts.domains as u32,
            // Half of it is for the readers to arrive.
            What::Grace(_) => 2 * self.amounts.grace,
            What::Store(_) => ABOUT_STORE * self.amounts.stores,
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
        let rivals = scene.rivals();
        let rivals = rivals.iter().filter(|(name, _)| self.names.contains(name)).count();
        self.budget(scene.what) * self.rounds_of(scene.what) * rivals as u32
    }
}

fn grace(
    case: Case,
    rivals: &[&GraceRival],
    readers: usize,
    duration: Duration,
    session: &mut Session<'_>,
) -> Result<Option<Case>, Failure> {
    let company = Company::gather(rivals, 0).map_err(|error| Failure::io("cannot start", error))?;
    let steps = steps_for(SECTION);
    session.interleave(case, 2 * duration, |number| {
        let seen = company.measure_sections(rivals[number], readers, steps, duration);
        // Readers waiting for a CPU are the point here.
        Sample { values: vec![seen.p50_ns, seen.p99_ns], readers_share: 1.0 }
    })
}

/// A figure that no reader disturbs.
fn alone(value: f64) -> Sample {
    Sample { values: vec![value], readers_share: 1.0 }
}

fn sample_boot(rival: &BootRival, readers: usize, updates: u64) -> Sample {
    let seen = boot::measure(rival, readers, updates);
    Sample {
        values: vec![seen.ns, seen.cpu_ns, seen.look_ups_per_second],
        readers_share: seen.readers_share,
    }
}

fn sample_blocked(rival: &BlockedRival, blocked_for: Duration) -> Sample {
    let seen = blocked::measure(rival, blocked_for);
    Sample {
        values: vec![seen.cpu_percent, seen.stretch_ns, seen.sleeps_per_second, seen.answer_ns],
        readers_share: 1.0,
    }
}

fn sample_domains(rival: &DomainRival, used: Used, count: usize) -> Sample {
    // Where the kernel does not say, there is nothing to be compared.
    alone(domains::measure(rival, used, count).unwrap_or(f64::NAN))
}

fn find<R>(rivals: &'static [R], name: &str, name_of: impl Fn(&R) -> &'static str) -> &'static R {
    rivals.iter().find(|rival| name_of(rival) == name).expect("names come from the list of rivals")
}

fn boot_rival(name: &str) -> &'static BootRival {
    find(boot::rivals(), name, |rival| rival.name)
}

fn blocked_rival(name: &str) -> &'static BlockedRival {
    find(blocked::rivals(), name, |rival| rival.name)
}

fn domain_rival(name: &str) -> &'static DomainRival {
    find(domains::rivals(), name, |rival| rival.name)
}

fn store_rival(name: &str) -> &'static StoreRival {
    find(store::rivals(), name, |rival| rival.name)
}

#[cfg(test)]
mod tests {
    use super::super::{ROUNDS_QUICK, percpu, srcu};
    use super::*;
    use crate::interrupt::Interrupt;
    use crate::output::{Output, OutputArgs};

    fn options() -> Options {
        Options { quick: true, rounds: None, seed: 1, only: Vec::new(), base: None }
    }

    /// All benchmarks of scenes.
    const ALL: [&Scenes; 2] = [&srcu::SCENES, &percpu::SCENES];

    #[test]
    fn every_rival_of_every_case_gives_a_figure_for_each_metric() {
        let scenes: Vec<&Scene> = ALL.iter().flat_map(|scenes| scenes.all).collect();
        let choice = Choice {
            names: names_of(&scenes),
            scenes,
            amounts: Amounts {
                looped: Duration::ZERO,
                updates: 50,
                blocked: Duration::from_millis(3),
                domains: 20,
                grace: Duration::from_nanos(1),
                stores: 20,
            },
            rounds: 1,
            quick: true,
        };
        let interrupt = Interrupt::install().unwrap();
        let mut output = Output::new(&OutputArgs::default(), interrupt).unwrap();
        let progress = output.progress(Duration::ZERO);
        let mut session = Session::new(&mut output, progress, 1, 1);
        for scene in &choice.scenes {
            let case = choice.measure(scene, &mut session).unwrap().expect("it is measured");
            assert_eq!(case.rivals.len(), scene.rivals().len(), "{}", scene.id);
            for rival in &case.rivals {
                for (metric, values) in case.metrics.iter().zip(&rival.values) {
                    let is_figure = values.len() == 1 && values[0].is_finite() && values[0] >= 0.0;
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
            names: Vec::new(),
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
