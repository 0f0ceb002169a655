//! `rcu bench map`: concurrent maps, of words and of strings, small and large, on mixes of look-ups
//! and updates; what they take of memory, and what growing costs.

use std::time::Duration;

use serde::Deserialize;

use super::rounds::Case;
use super::{Options, Planned, Suite, by, in_threads, one_and_several};
use super::{SUITES, listed};
use crate::Error;
use crate::cases::maps::{self, Keys, Kinds, Shape, Table, growth, memory};
use crate::rivals::{self, Rival};
use crate::sample::{Sample, alone};
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
    /// Threads besides one, where there are several; one for each CPU without.
    pub threads: Vec<u32>,
    /// Memory that the maps may take; without, as much as they take.
    pub memory_available_bytes: Option<u64>,
}

/// What is done to a map.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Does {
    /// Look-ups.
    Get,
    /// Look-ups, and updates that replace.
    Replace,
    /// Look-ups, and updates that remove and insert.
    Churn,
    /// Look-ups by the map's own hash function.
    OwnHash,
    /// Its memory is measured.
    Memory,
    /// It grows.
    Growth,
    /// What the crate `bustle` does: shares of look-ups, insertions, removals and updates, and the
    /// share of the room that is filled before.
    Bustle(u8, u8, u8, u8, f64),
}

/// What makes cases of a kind.
#[derive(Debug, Deserialize)]
pub struct Pattern {
    does: Does,
    /// How many entries there are, usually and quickly, unless the user says so.
    entries: [Vec<u64>; 2],
    /// The names of the cases.
    id: &'static str,
    /// Some keys are drawn far more often than others.
    #[serde(default)]
    is_skewed: bool,
}

/// Look-ups in a hundred operations, by default.
const READS_PERCENT: [u32; 3] = [99, 90, 50];

/// So many entries do not fit into caches.
const LARGE: u64 = 100_000;

/// Beyond so many entries there is no room for the maps of all rivals at once: each is built for
/// each measurement.
const KEPT_MAX: u64 = 4_000_000;

/// So many entries tell what each takes of memory, before there are more.
const WEIGHED: u64 = 100_000;

/// What is built anew each time is measured in fewer rounds.
const ROUNDS_BUILT: [u32; 2] = [7, 2];

/// About what an insertion takes, for the progress bar.
const ABOUT: Duration = Duration::from_nanos(250);

/// One table of figures.
#[derive(Clone, Copy, Debug)]
struct Scene {
    of: &'static listed::Scene<Pattern>,
    /// The map, and the mix if it is one.
    shape: Shape,
    quick: bool,
}

/// The suite, ready to run: the cases of these groups, or all if none is named.
///
/// # Errors
/// If a rival is named that there is not, or a case that was left out of this program; or the maps
/// that are there at once would take more memory than is available.
pub fn prepare(groups: &[String], load: &Load, options: &Options) -> Result<Suite, Error> {
    if cfg!(not(feature = "all-rivals")) && groups.iter().any(|group| group == "bustle") {
        let build = "cargo run --release --features all-rivals";
        return Err(Error::Unsupported(format!("bustle: built without it ({build})")));
    }
    let patterns = SUITES.map.chosen(groups)?;
    let bases = &SUITES.map.bases;
    let (rivals, base) = options.choose(&rivals(), |rival| rival.name, bases)?;
    let scenes = patterns.into_iter().flat_map(|of| scenes(of, load, options.quick));
    let scenes: Vec<Scene> = scenes.collect();
    let large: Vec<_> = scenes.iter().filter(|scene| scene.shape.entries > WEIGHED).collect();
    if let (Some(scene), Some(available)) = (large.first(), load.memory_available_bytes) {
        let of_entry = weighed(scene.shape.keys, &rivals);
        let needed = large.iter().map(|scene| scene.memory_bytes(&of_entry)).max();
        if let Some(needed) = needed.filter(|needed| *needed > available) {
            let [needed, available] = [needed, available].map(units::bytes);
            return Err(Error::Usage(format!(
                "the largest of these maps would take about {needed} of memory, and {available} \
                 are available; take fewer --keys"
            )));
        }
    }
    let planned = scenes.into_iter().map(|scene| plan(scene, &rivals, options)).collect();
    Ok(Suite::new("map", base, planned))
}

/// The rivals that are maps for any key.
fn rivals() -> Vec<&'static Rival> {
    rivals::all().filter(|rival| rival.maps.is_some()).collect()
}

/// What an entry takes of memory, in the map of each rival that can have such keys.
fn weighed(keys: Keys, rivals: &[&Rival]) -> Vec<f64> {
    let kinds = rivals.iter().filter_map(|rival| rival.maps).filter(|kinds| kinds.has(keys));
    kinds.map(|kinds| memory::measure(kinds, keys, WEIGHED).values[0]).collect()
}

/// All that there is to measure by this pattern with this load.
fn scenes(of: &'static listed::Scene<Pattern>, load: &Load, quick: bool) -> Vec<Scene> {
    let Pattern { does, entries, is_skewed, .. } = &of.what;
    if matches!(does, Does::Bustle(..)) && cfg!(not(feature = "all-rivals")) {
        return Vec::new();
    }
    let keys = match (does, load.strings) {
        (Does::OwnHash | Does::Bustle(..), true) => return Vec::new(),
        (Does::OwnHash, _) => Keys::OwnHash,
        (_, true) => Keys::Strings,
        (_, false) => Keys::Words,
    };
    let shares = match does {
        Does::Replace | Does::Churn if load.reads_percent.is_empty() => &READS_PERCENT[..],
        Does::Replace | Does::Churn => &load.reads_percent,
        _ => &[100],
    };
    let mut threads = one_and_several(&load.threads);
    threads.truncate(if matches!(does, Does::OwnHash | Does::Memory) { 1 } else { usize::MAX });
    let default = &entries[usize::from(quick)];
    let (churns, is_skewed) = (*does == Does::Churn, *is_skewed);
    let mut all = Vec::new();
    for &reads_percent in shares {
        for &entries in if load.entries.is_empty() { default } else { &load.entries } {
            all.extend(threads.iter().map(|&threads| {
                let shape = Shape { entries, keys, threads, reads_percent, is_skewed, churns };
                Scene { of, shape, quick }
            }));
        }
    }
    all
}

impl Scene {
    /// A name of the pattern with what is special in this case.
    fn named(&self, pattern: &str) -> String {
        let Shape { entries, keys, threads, reads_percent, .. } = self.shape;
        let is_of_strings = keys == Keys::Strings;
        let (kind, suffix) = if is_of_strings { ("strings", "-strings") } else { ("keys", "") };
        pattern
            .replace("{reads}", &reads_percent.to_string())
            .replace("{keys}", suffix)
            .replace("{entries}", &entries.to_string())
            .replace("{of}", &format!("{} {kind}", units::count(entries)))
            .replace("{room}", &self.room_log2().to_string())
            .replace("{threads}", &in_threads(threads))
            .replace("{by}", &by(threads))
    }

    /// Where entries are room.
    fn room_log2(&self) -> u8 {
        self.shape.entries.next_power_of_two().ilog2() as u8
    }

    /// Whether maps are there all the time, of all rivals at once, and not built each time.
    fn is_kept(&self) -> bool {
        let is_mix = !matches!(self.of.what.does, Does::Memory | Does::Growth | Does::Bustle(..));
        is_mix && self.shape.entries <= KEPT_MAX
    }

    /// About how much memory those of its maps take that are there at once: all, or the largest
    /// alone; an entry of each takes so much.
    fn memory_bytes(&self, of_entry: &[f64]) -> u64 {
        let all = of_entry.iter().copied();
        let bytes = if self.is_kept() { all.sum() } else { all.fold(0.0, f64::max) };
        (bytes * self.shape.entries as f64) as u64
    }

    /// How long a thread works in one measurement; longer where a map does not fit into caches.
    fn work(&self) -> Duration {
        Duration::from_millis(match (self.shape.entries >= LARGE, self.quick) {
            (false, false) => 30,
            (false, true) => 6,
            (true, false) => 100,
            (true, true) => 25,
        })
    }

    /// About how long one measurement takes, with what comes before and after, for the progress
    /// bar.
    fn budget(&self) -> Duration {
        let built = ABOUT * self.shape.entries.min(u64::from(u32::MAX)) as u32;
        match self.of.what.does {
            Does::Memory | Does::Bustle(..) => 2 * built,
            Does::Growth => built,
            _ => self.work() * 3 / 2 + if self.is_kept() { Duration::ZERO } else { built },
        }
    }

    /// One measurement of what is built for it, and dropped.
    fn sample(&self, kinds: Kinds, seed: u64) -> Sample {
        let Shape { entries, keys, threads, .. } = self.shape;
        match self.of.what.does {
            Does::Memory => memory::measure(kinds, keys, entries),
            Does::Growth => growth::measure(kinds, keys, entries, threads),
            Does::Bustle(read, insert, remove, update, prefilled) => {
                let shares = [read, insert, remove, update];
                alone((kinds.bustle)(shares, prefilled, self.room_log2(), threads, seed))
            }
            Does::Get | Does::Replace | Does::Churn | Does::OwnHash => {
                let (map, operations) = self.build(kinds);
                maps::measure(&*map, &self.shape, operations, seed)
            }
        }
    }

    /// A map, and how many operations are measured at a time.
    fn build(&self, kinds: Kinds) -> (Box<dyn Table>, u64) {
        let map = self.shape.build(kinds);
        let operations = maps::operations_in(&*map, &self.shape, self.work());
        (map, operations)
    }
}

fn plan(scene: Scene, rivals: &[&'static Rival], options: &Options) -> Planned {
    let seed = options.seed;
    let [id, title] = [scene.of.what.id, scene.of.title].map(|pattern| scene.named(pattern));
    let kinds = |rival: &Rival| rival.maps.filter(|kinds| kinds.has(scene.shape.keys));
    let rivals: Vec<_> = rivals.iter().copied().filter(|rival| kinds(rival).is_some()).collect();
    let names = rivals.iter().map(|rival| (rival.name, rival.ours));
    let compared = if scene.of.what.does == Does::Growth { 2 } else { 1 };
    let case = Case::new(id, title, SUITES.map.metrics(scene.of), names).comparing(compared);
    let kinds: Vec<Kinds> = rivals.into_iter().filter_map(kinds).collect();
    let (most, filled) = if scene.is_kept() {
        (u32::MAX, scene.shape.entries * kinds.len() as u64)
    } else {
        (ROUNDS_BUILT[usize::from(scene.quick)], 0)
    };
    let amount = (options.rounds().min(most), scene.budget());
    let planned = Planned::new(case, amount, move |session, case| {
        // Of maps that stay: all rivals' at once.
        let mut maps = Vec::new();
        for (series, kinds) in case.rivals.iter().zip(&kinds).filter(|_| scene.is_kept()) {
            if session.host.must_stop() {
                return None;
            }
            session.host.announce(&format_args!("{}: {} is filled", case.title, series.name));
            maps.push(scene.build(*kinds));
        }
        session.interleave(case, &mut |number, round| {
            let seed = seed.wrapping_add(round.into());
            match maps.get(number) {
                Some((map, operations)) => maps::measure(&**map, &scene.shape, *operations, seed),
                None => scene.sample(kinds[number], seed),
            }
        })
    });
    Planned { duration: planned.duration + ABOUT * filled as u32, ..planned }
}

#[cfg(test)]
mod tests {
    use super::super::rounds::Session;
    use super::super::tests::{are_whole, names, quick};
    use super::*;
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    use crate::common::again::*;
    use crate::host::Quiet;

    /// All that there is to measure with this load, in the order of their groups.
    fn all(load: &Load, quick: bool) -> impl Iterator<Item = Scene> {
        SUITES.map.cases.iter().flat_map(move |of| scenes(of, load, quick))
    }

    #[test]
    fn all_cases_are_measured_unless_some_are_named() {
        let is_there = |group: &&str| *group != "bustle" || cfg!(feature = "all-rivals");
        let groups = SUITES.map.groups.iter().map(|(group, _)| *group).filter(is_there);
        are_whole(&Vec::from_iter(groups), |groups| {
            prepare(groups, &Load::default(), &quick(1, &[])).expect("well-formed")
        });
    }

    #[test]
    fn cases_are_named_after_what_is_done_to_what_by_how_many() {
        let load = Load {
            entries: vec![5000],
            reads_percent: vec![99, 75],
            strings: true,
            threads: vec![3, 5],
            ..Load::default()
        };
        let ids: Vec<_> = all(&load, true).map(|scene| scene.named(scene.of.what.id)).collect();
        let has = |id: &str| assert!(ids.iter().any(|known| known == id), "{id}: {ids:?}");
        has("get-strings/5000/1-thread");
        has("replace-99-strings/5000/3-threads");
        has("replace-99-strings/5000/5-threads");
        has("churn-75-strings/5000/1-thread");
        has("zipf-replace-99-strings/5000/1-thread");
        has("memory-strings/5000");
        assert!(!ids.iter().any(|id| id.starts_with("hash") || id.starts_with("bustle")));
        let unique: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(unique.len(), ids.len(), "{ids:?}");
    }

    /// It was killed after minutes.
    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn maps_that_do_not_fit_into_memory_are_refused_before_one_is_built() {
        // Other tests allocate and free meanwhile.
        in_its_own_process!();
        let prepared = |entries, memory_available_bytes| {
            let (entries, memory_available_bytes) = (vec![entries], Some(memory_available_bytes));
            let load = Load { entries, memory_available_bytes, ..Load::default() };
            prepare(&names(&["get"]), &load, &quick(1, &["dashmap"]))
        };
        assert!(prepared(WEIGHED, 0).is_ok() && prepared(KEPT_MAX + 1, 1 << 40).is_ok());
        assert!(prepared(KEPT_MAX, 1 << 20).is_err(), "nobody looked what these take");
        let refused = prepared(1_000_000_000, 1 << 30);
        let said = refused.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(said.contains("GiB of memory, and 1 GiB are available"), "{said}");
    }

    #[test]
    fn maps_that_are_kept_take_memory_for_all_rivals_at_once() {
        let bytes = |entries| {
            let load = Load { entries: vec![entries], ..Load::default() };
            scenes(&SUITES.map.cases[0], &load, true)[0].memory_bytes(&[40.0, 60.0])
        };
        assert_eq!(bytes(KEPT_MAX), 100 * KEPT_MAX);
        assert_eq!(bytes(KEPT_MAX + 1), 60 * (KEPT_MAX + 1));
    }

    #[test]
    fn a_large_map_is_built_when_it_is_measured_and_no_other_is_there_then() {
        let planned = |entries| {
            let load = Load { entries: vec![entries], ..Load::default() };
            let scene = scenes(&SUITES.map.cases[0], &load, true)[0];
            (scene, plan(scene, &rivals()[..1], &quick(15, &[])).duration)
        };
        let (scene, duration) = planned(1_000_000);
        assert_eq!(duration, 15 * scene.budget() + 1_000_000 * ABOUT);
        assert_eq!(scene.budget(), scene.work() * 3 / 2);
        let (scene, duration) = planned(20_000_000);
        assert_eq!(duration, ROUNDS_BUILT[1] * scene.budget());
    }

    #[test]
    fn every_case_gives_a_figure_for_each_metric_of_each_rival() {
        let load = Load { entries: vec![1000], threads: vec![2], ..Load::default() };
        let (mut host, options) = (Quiet::default(), quick(1, &[]));
        // The mixes are one case, as far as that goes.
        let is_other = |scene: &Scene| {
            !matches!(scene.of.what.does, Does::Replace | Does::Churn)
                || scene.shape.reads_percent == 90
        };
        for scene in all(&load, true).filter(is_other) {
            let mut session = Session::new(&mut host, &options);
            let planned = plan(scene, &rivals(), &options);
            let case = planned.measure(&mut session).expect("it is measured");
            assert_eq!(case.id, scene.named(scene.of.what.id));
            for rival in &case.rivals {
                for (metric, values) in case.metrics.iter().zip(&rival.values) {
                    // That a map finds what is there, and nothing else, is asserted within. Beside
                    // other tests, which free, memory may seem to be none.
                    let is_one = |value: &f64| value.is_finite() && *value > 0.0;
                    let is_missing = rival.missing.is_some();
                    assert!(
                        values.len() == usize::from(!is_missing)
                            && (scene.of.id == "memory" || values.iter().all(is_one)),
                        "{}: {}: {metric:?}: {values:?}",
                        case.id,
                        rival.name
                    );
                }
            }
        }
    }
}
