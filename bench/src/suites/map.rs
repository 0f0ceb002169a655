//! `rcu bench map`: concurrent maps, of words and of strings, small and large, on mixes of look-ups
//! and updates; what they take of memory, and what growing costs.

use std::time::Duration;

use super::listed::SUITES;
use super::rounds::{Case, Metric};
use super::{Options, Planned, Suite, by, in_threads, one_and_several};
use crate::Error;
#[cfg(feature = "all-rivals")]
use crate::cases::maps::published;
use crate::cases::maps::{self, Keys, Mix, Shape, Updates, growth, memory};
use crate::rivals::Rival;
use crate::sample::Sample;
#[cfg(feature = "all-rivals")]
use crate::sample::alone;
use crate::units;

/// What to measure, if the user says so.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// Entries of the maps; each case has its own without. Its capacity in `bustle`, to the next
    /// power of two.
    pub entries: Vec<u64>,
    /// Look-ups in a hundred operations of the mixes; 99, 90 and 50 without.
    pub reads_percent: Vec<u32>,
    /// Keys are strings of 20 bytes, and not words.
    pub strings: bool,
    /// Threads, where there are several; one for each CPU without.
    pub threads: Option<u32>,
}

/// Entries of a map, by default; of one that grows; the capacity in `bustle` as a power of two.
const ENTRIES: [u64; 2] = [1000, 1_000_000];
const ENTRIES_LARGE: u64 = 1_000_000;
const ENTRIES_GROWTH: u64 = 10_000_000;
#[cfg(feature = "all-rivals")]
const ROOM_LOG2: u8 = 20;
#[cfg(feature = "all-rivals")]
const ROOM_LOG2_QUICK: u8 = 16;

/// Look-ups in a hundred operations, by default.
const READS_PERCENT: [u32; 3] = [99, 90, 50];

/// Beyond so many entries there is no room for the maps of all rivals at once: each is built for
/// each measurement.
const KEPT_MAX: u64 = 4_000_000;

/// How long each thread works in one measurement; longer where a map does not fit into caches.
const BUDGET: Duration = Duration::from_millis(30);
const BUDGET_LARGE: Duration = Duration::from_millis(100);
const BUDGET_QUICK: Duration = Duration::from_millis(6);
const BUDGET_LARGE_QUICK: Duration = Duration::from_millis(25);

/// What is built anew each time is measured in fewer rounds.
const ROUNDS_BUILT: u32 = 7;
const ROUNDS_BUILT_QUICK: u32 = 2;

/// About what an insertion takes, for the progress bar.
const ABOUT: Duration = Duration::from_nanos(250);

/// One table of figures.
#[derive(Clone, Debug)]
struct Scene {
    group: &'static str,
    id: String,
    title: String,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Mixed(Shape),
    Memory(Keys, u64),
    Growth(Keys, u64, usize),
    #[cfg(feature = "all-rivals")]
    Published(published::Mix, u8, usize),
}

/// The suite, ready to run: the cases of these groups, or all if none is named.
///
/// # Errors
/// If a rival is named that there is not, or a case that was left out of this program.
pub fn prepare(groups: &[String], load: &Load, options: &Options) -> Result<Suite, Error> {
    if cfg!(not(feature = "all-rivals")) && groups.iter().any(|group| group == "bustle") {
        let build = "cargo run --release --features all-rivals";
        return Err(Error::Unsupported(format!("bustle: built without it ({build})")));
    }
    let is_wanted =
        |scene: &Scene| groups.is_empty() || groups.iter().any(|group| group == scene.group);
    let known = maps::rivals();
    let (rivals, base) = options.choose(&known, &["quiescence-hashmap", "quiescence-intrusive"])?;
    let scenes = scenes(load, options.quick).into_iter().filter(is_wanted);
    let planned = scenes.map(|scene| plan(scene, rivals.clone(), options));
    Ok(Suite::new("map", base, planned.collect()))
}

/// All that there is to measure with this load, in the order of their groups.
fn scenes(load: &Load, quick: bool) -> Vec<Scene> {
    let threads = &one_and_several(load.threads)[..];
    let keys = if load.strings { Keys::Strings } else { Keys::Words };
    let or = |default: &[u64]| {
        if load.entries.is_empty() { default.to_vec() } else { load.entries.clone() }
    };
    let mut all = Vec::new();
    let mixes =
        if load.reads_percent.is_empty() { &READS_PERCENT[..] } else { &load.reads_percent };
    let gets = Mix { reads_percent: 100, updates: Updates::Replace };
    for (updates, shares) in
        [(None, &[100][..]), (Some(Updates::Replace), mixes), (Some(Updates::Churn), mixes)]
    {
        for &reads_percent in shares {
            let mix = updates.map_or(gets, |updates| Mix { reads_percent, updates });
            for entries in or(&ENTRIES) {
                for &threads in threads {
                    all.push(mixed(Shape { entries, keys, threads, mix }, updates));
                }
            }
        }
    }
    if keys == Keys::Words {
        let shape = |entries| Shape { entries, keys: Keys::OwnHash, threads: 1, mix: gets };
        all.extend(or(&ENTRIES).into_iter().map(|entries| mixed(shape(entries), None)));
    }
    let default = if quick { ENTRIES_LARGE / 10 } else { ENTRIES_LARGE };
    all.extend(or(&[default]).into_iter().map(|entries| Scene {
        group: "memory",
        id: format!("memory{}/{entries}", suffix(keys)),
        title: format!("memory of an entry, {}", of(entries, keys)),
        what: What::Memory(keys, entries),
    }));
    let default = if quick { ENTRIES_GROWTH / 10 } else { ENTRIES_GROWTH };
    for entries in or(&[default]) {
        all.extend(threads.iter().map(|&threads| Scene {
            group: "growth",
            id: format!("growth{}/{entries}/{}", suffix(keys), in_threads(threads)),
            title: format!("insertions while it grows to {}, {}", of(entries, keys), by(threads)),
            what: What::Growth(keys, entries, threads),
        }));
    }
    #[cfg(feature = "all-rivals")]
    if keys == Keys::Words {
        let default = if quick { ROOM_LOG2_QUICK } else { ROOM_LOG2 };
        for entries in or(&[1 << default]) {
            let room_log2 = entries.next_power_of_two().ilog2() as u8;
            all.extend(bustle(room_log2, threads));
        }
    }
    all
}

#[cfg(feature = "all-rivals")]
fn bustle(room_log2: u8, threads: &[usize]) -> impl Iterator<Item = Scene> {
    let names = ["read-heavy", "exchange", "rapid-grow"];
    published::Mix::ALL.into_iter().zip(names).flat_map(move |(mix, name)| {
        threads.iter().map(move |&threads| Scene {
            group: "bustle",
            id: format!("bustle/{name}/{}", in_threads(threads)),
            title: format!("bustle, {name}, room for 2^{room_log2}, {}", by(threads)),
            what: What::Published(mix, room_log2, threads),
        })
    })
}

/// How other keys than words are told in a case's name.
fn suffix(keys: Keys) -> &'static str {
    if keys == Keys::Strings { "-strings" } else { "" }
}

fn of(entries: u64, keys: Keys) -> String {
    let kind = if keys == Keys::Strings { "strings" } else { "keys" };
    format!("{} {kind}", units::count(entries))
}

fn mixed(shape: Shape, updates: Option<Updates>) -> Scene {
    let Shape { entries, keys, threads, mix } = shape;
    let (group, title) = match (keys, updates) {
        (Keys::OwnHash, _) => ("hash", "look-ups by the map's own hash function".to_owned()),
        (_, None) => ("get", "look-ups".to_owned()),
        (_, Some(Updates::Replace)) => {
            ("replace", format!("{} % look-ups, else replacements", mix.reads_percent))
        }
        (_, Some(Updates::Churn)) => {
            ("churn", format!("{} % look-ups, else removals and insertions", mix.reads_percent))
        }
    };
    let share = updates.map_or(String::new(), |_| format!("-{}", mix.reads_percent));
    Scene {
        group,
        id: format!("{group}{share}{}/{entries}/{}", suffix(keys), in_threads(threads)),
        title: format!("{title}; {}, {}", of(entries, keys), by(threads)),
        what: What::Mixed(shape),
    }
}

impl What {
    fn metrics(self) -> &'static [Metric] {
        let name = match self {
            Self::Mixed(_) => "mixed",
            Self::Memory(..) => "memory",
            Self::Growth(..) => "growth",
            #[cfg(feature = "all-rivals")]
            Self::Published(..) => "bustle",
        };
        &SUITES.metrics[name]
    }

    /// Whether the map is built anew for each measurement.
    fn is_built_anew(self) -> bool {
        !matches!(self, Self::Mixed(shape) if shape.entries <= KEPT_MAX)
    }

    /// About how long one measurement takes, for the progress bar.
    fn budget(self, quick: bool) -> Duration {
        let built = |entries: u64| ABOUT * entries.min(u64::from(u32::MAX)) as u32;
        match self {
            Self::Mixed(shape) if self.is_built_anew() => {
                built(shape.entries) + work(&shape, quick) * 3 / 2
            }
            Self::Mixed(shape) => work(&shape, quick) * 5 / 4,
            Self::Memory(_, entries) => 2 * built(entries),
            Self::Growth(_, entries, _) => built(entries),
            #[cfg(feature = "all-rivals")]
            Self::Published(_, room_log2, _) => 2 * built(1 << room_log2),
        }
    }

    /// One measurement of what is built for it, and dropped.
    fn sample(self, rival: &Rival, quick: bool, seed: u64) -> Sample {
        match self {
            Self::Mixed(shape) => {
                let map = shape.build(rival);
                let operations = maps::operations_in(&map, &shape, work(&shape, quick));
                Sample::of(maps::measure(&map, &shape, operations, seed))
            }
            Self::Memory(keys, entries) => memory::measure(rival, keys, entries),
            Self::Growth(keys, entries, threads) => growth::measure(rival, keys, entries, threads),
            #[cfg(feature = "all-rivals")]
            Self::Published(mix, room_log2, threads) => {
                alone(published::measure(rival, mix, room_log2, threads, seed))
            }
        }
    }
}

/// How long a thread works in one measurement.
fn work(shape: &Shape, quick: bool) -> Duration {
    match (shape.entries >= ENTRIES_LARGE / 10, quick) {
        (false, false) => BUDGET,
        (false, true) => BUDGET_QUICK,
        (true, false) => BUDGET_LARGE,
        (true, true) => BUDGET_LARGE_QUICK,
    }
}

fn plan(scene: Scene, rivals: Vec<&'static Rival>, options: &Options) -> Planned {
    let Scene { id, title, what, .. } = scene;
    let (quick, mut seed, rounds) = (options.quick, options.seed, options.rounds());
    let case = Case::of(id, title, what.metrics(), &rivals);
    let budget = what.budget(quick);
    match what {
        What::Mixed(shape) if !what.is_built_anew() => {
            let filling = ABOUT * (shape.entries * rivals.len() as u64) as u32;
            let planned = Planned::new(case, (rounds, budget), move |session, case| {
                // Of maps that stay: all rivals' at once.
                let mut maps = Vec::new();
                for rival in rivals {
                    if session.host.is_stopped() {
                        return Ok(None);
                    }
                    session
                        .host
                        .announce(&format_args!("{}: {} is filled", case.title, rival.name));
                    let map = shape.build(rival);
                    let operations = maps::operations_in(&map, &shape, work(&shape, quick));
                    maps.push((map, operations));
                }
                session.interleave(rounds, case, budget, |number| {
                    let (map, operations) = &maps[number];
                    seed += 1;
                    Sample::of(maps::measure(map, &shape, *operations, seed))
                })
            });
            Planned { duration: planned.duration + filling, ..planned }
        }
        _ => {
            let case = if matches!(what, What::Growth(..)) { case.comparing(2) } else { case };
            let rounds = rounds.min(if quick { ROUNDS_BUILT_QUICK } else { ROUNDS_BUILT });
            let mut round = 0;
            Planned::sampled(case, (rounds, budget), move |number| {
                round += 1;
                what.sample(rivals[number], quick, seed + round / rivals.len() as u64)
            })
        }
    }
}

/// What a case measures, and of whom.
#[cfg(test)]
pub(crate) fn known(case: &str) -> Option<(&'static [Metric], Vec<&'static str>)> {
    let load = Load { threads: Some(2), ..Load::default() };
    let scene = scenes(&load, false).into_iter().find(|scene| scene.id == case)?;
    Some((scene.what.metrics(), maps::rivals().into_iter().map(|rival| rival.name).collect()))
}

#[cfg(test)]
mod tests {
    use super::super::rounds::Session;
    use super::*;
    use crate::host::Quiet;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn suite(cases: &[&str], load: &Load) -> Suite {
        let options = Options { quick: true, ..Options::default() };
        prepare(&names(cases), load, &options).expect("well-formed")
    }

    #[test]
    fn all_cases_are_measured_unless_some_are_named() {
        let load = Load::default();
        let all = suite(&[], &load).duration;
        let is_there = |group: &&str| *group != "bustle" || cfg!(feature = "all-rivals");
        let groups = SUITES.groups.map.iter().map(|(group, _)| *group).filter(is_there);
        let parts: Vec<_> = groups.map(|group| suite(&[group], &load).duration).collect();
        assert_eq!(parts.iter().sum::<Duration>(), all);
        assert!(parts.iter().all(|part| !part.is_zero()), "{parts:?}");
    }

    #[test]
    fn cases_are_named_after_what_is_done_to_what_by_how_many() {
        let load = Load {
            entries: vec![5000],
            reads_percent: vec![99, 75],
            strings: true,
            threads: Some(3),
        };
        let ids: Vec<_> = scenes(&load, true).into_iter().map(|scene| scene.id).collect();
        assert!(ids.contains(&"get-strings/5000/1-thread".to_owned()), "{ids:?}");
        assert!(ids.contains(&"replace-99-strings/5000/3-threads".to_owned()), "{ids:?}");
        assert!(ids.contains(&"churn-75-strings/5000/1-thread".to_owned()), "{ids:?}");
        assert!(ids.contains(&"memory-strings/5000".to_owned()), "{ids:?}");
        assert!(!ids.iter().any(|id| id.starts_with("hash") || id.starts_with("bustle")));
        let mut unique = ids.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), ids.len(), "{ids:?}");
    }

    #[test]
    fn a_large_map_is_built_when_it_is_measured_and_no_other_is_there_then() {
        let shape = |entries| Shape {
            entries,
            keys: Keys::Words,
            threads: 2,
            mix: Mix { reads_percent: 100, updates: Updates::Replace },
        };
        assert!(!What::Mixed(shape(1_000_000)).is_built_anew());
        assert!(What::Mixed(shape(20_000_000)).is_built_anew());
        assert!(What::Memory(Keys::Words, 1000).is_built_anew());
    }

    #[test]
    fn every_case_gives_a_figure_for_each_metric_of_each_rival() {
        let load = Load { entries: vec![1000], threads: Some(2), ..Load::default() };
        let mut host = Quiet::default();
        let options = Options { quick: true, rounds: Some(1), seed: 1, ..Options::default() };
        // The mixes are one case, as far as that goes.
        let is_other = |scene: &Scene| {
            !matches!(scene.group, "replace" | "churn") || scene.id.contains("-90/")
        };
        for scene in scenes(&load, true).into_iter().filter(is_other) {
            let mut session = Session::new(&mut host, 1, 1);
            let planned = plan(scene.clone(), maps::rivals(), &options);
            let case = planned.measure(&mut session).unwrap().expect("it is measured");
            assert_eq!(case.id, scene.id);
            for rival in &case.rivals {
                for (metric, values) in case.metrics.iter().zip(&rival.values) {
                    // Beside other tests, which free, memory may seem to be none.
                    let is_one = |value: &f64| value.is_finite() && *value >= 0.0;
                    let is_missing = rival.missing.is_some();
                    assert!(
                        values.len() == usize::from(!is_missing)
                            && (scene.group == "memory" || values.iter().all(is_one)),
                        "{}: {}: {metric:?}: {values:?}",
                        scene.id,
                        rival.name
                    );
                }
            }
        }
    }
}
