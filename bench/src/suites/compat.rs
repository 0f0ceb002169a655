//! `rcu bench compat`: the liburcu-compatible libraries beside Debian's, under the very same C
//! program.
//!
//! The program (`program.c`) is compiled here, against Debian's headers. Each measurement is a
//! process of its own, with one library or the other, in turn: so it has the allocator, the threads
//! and the caches that a user's program begins with, and what drifts meets both.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::rounds::{Case, Metric, Sample, Session, Unit};
use super::{Options, Suite};
use crate::Error;

mod process;

use process::{Flavor, Programs};

/// What `--case` takes.
pub const GROUPS: [super::Group; 7] = [
    ("inlined", "A section of a reader that Debian's headers have inlined"),
    ("exported", "A section by the library's functions"),
    (
        "synchronize",
        "A grace period: alone, beside a reader, with 1,000 idle threads; bp's, QSBR's",
    ),
    ("callbacks", "An updater that frees by call_rcu, with what waits at its end; rcu_barrier"),
    ("defer", "An updater that frees by defer_rcu, with what waits at its end"),
    ("flood", "Producers and readers on one call_rcu worker: memory, fairness, readers"),
    ("table", "The hash table: look-ups, and insertions while it grows"),
];

/// The two sides.
pub(crate) const RIVALS: [&str; 2] = ["liburcu", "quiescence"];

/// One table.
#[derive(Debug)]
struct Scene {
    id: &'static str,
    title: &'static str,
    metrics: &'static [Metric],
    flavor: Flavor,
    /// What the program is asked for, so often; and quickly.
    measurement: &'static str,
    amount: u64,
    quick: u64,
    /// About what one of them takes with Debian's library, for the progress bar.
    about: Duration,
}

const PAIR: &[Metric] = &[Metric { name: "pair", unit: Unit::Nanoseconds }];
const GRACE: &[Metric] = &[Metric { name: "p50", unit: Unit::Nanoseconds }];
const CALL: &[Metric] = &[Metric { name: "call", unit: Unit::Nanoseconds }];
const WHOLE: &[Metric] = &[Metric { name: "operations", unit: Unit::PerSecond }];
/// Of a call alone; of a turn of the updater's loop, with its allocation; of CPU time of all threads
/// to the end; and at the end of the loop.
const UPDATE: &[Metric] = &[
    Metric { name: "call", unit: Unit::Nanoseconds },
    Metric { name: "turn", unit: Unit::Nanoseconds },
    Metric { name: "CPU", unit: Unit::Nanoseconds },
    Metric { name: "backlog", unit: Unit::Objects },
    Metric { name: "memory", unit: Unit::Bytes },
    Metric { name: "barrier", unit: Unit::Nanoseconds },
];
const READERS: &[Metric] = &[
    Metric { name: "reads", unit: Unit::PerSecond },
    Metric { name: "p99.9", unit: Unit::Nanoseconds },
];
/// The readers; the producers, their fairness as the share of the most that the least has made, and
/// the longest call; and memory at each quarter of the time.
const FLOOD: &[Metric] = &[
    Metric { name: "reads", unit: Unit::PerSecond },
    Metric { name: "p99.9", unit: Unit::Nanoseconds },
    Metric { name: "calls", unit: Unit::PerSecond },
    Metric { name: "least of most", unit: Unit::Percent },
    Metric { name: "longest call", unit: Unit::Nanoseconds },
    Metric { name: "memory at 1/4", unit: Unit::Bytes },
    Metric { name: "at 1/2", unit: Unit::Bytes },
    Metric { name: "at 3/4", unit: Unit::Bytes },
    Metric { name: "at the end", unit: Unit::Bytes },
];

/// The limit of ours in a flood: what the default is where there are 1 GiB of memory.
const FLOOD_LIMIT: &[(&str, &str)] = &[("QUIESCENCE_LIMIT_OBJECTS", "65536")];

const fn scene(
    id: &'static str,
    title: &'static str,
    metrics: &'static [Metric],
    (flavor, measurement): (Flavor, &'static str),
    (amount, quick): (u64, u64),
    about_ns: u64,
) -> Scene {
    let about = Duration::from_nanos(about_ns);
    Scene { id, title, metrics, flavor, measurement, amount, quick, about }
}

use Flavor::{Bp, Mb, Memb, Qsbr};

const LOOP: (u64, u64) = (20_000_000, 5_000_000);
const OBJECTS: (u64, u64) = (1_000_000, 300_000);
/// Milliseconds.
const FLOOD_MS: (u64, u64) = (2_000, 1_000);

static SCENES: [Scene; 28] = [
    scene("inlined/memb", "memb, inlined", PAIR, (Memb, "pair-inlined"), LOOP, 2),
    scene("inlined/mb", "mb, inlined", PAIR, (Mb, "pair-inlined"), (1_000_000, 300_000), 40),
    scene("inlined/qsbr", "qsbr, inlined", PAIR, (Qsbr, "pair-inlined"), LOOP, 1),
    scene("inlined/bp", "bp, inlined", PAIR, (Bp, "pair-inlined"), LOOP, 2),
    scene("exported/memb", "memb, by functions", PAIR, (Memb, "pair-exported"), LOOP, 12),
    scene("exported/qsbr", "qsbr, by functions", PAIR, (Qsbr, "pair-exported"), LOOP, 3),
    scene("exported/bp", "bp, by functions", PAIR, (Bp, "pair-exported"), LOOP, 12),
    scene("synchronize/alone", "memb, alone", GRACE, (Memb, "grace-alone"), (20_000, 5_000), 300),
    scene(
        "synchronize/busy-reader",
        "memb, beside a busy reader",
        GRACE,
        (Memb, "grace-busy"),
        (5_000, 2_000),
        4_000,
    ),
    scene(
        "synchronize/1000-idle",
        "memb, 1,000 idle threads",
        GRACE,
        (Memb, "grace-idle"),
        (500, 200),
        200_000,
    ),
    scene(
        "synchronize/bp-100us",
        "bp, a reader with sections of 100 µs",
        GRACE,
        (Bp, "grace-sections"),
        (20, 10),
        10_000_000,
    ),
    scene(
        "synchronize/qsbr-alone",
        "qsbr, alone",
        GRACE,
        (Qsbr, "grace-alone"),
        (200_000, 50_000),
        150,
    ),
    scene(
        "synchronize/qsbr-reader",
        "qsbr, beside a busy reader",
        GRACE,
        (Qsbr, "grace-busy"),
        (20_000, 5_000),
        1_000,
    ),
    scene(
        "synchronize/bp-1000-idle",
        "bp, 1,000 idle threads",
        GRACE,
        (Bp, "grace-idle"),
        (500, 200),
        200_000,
    ),
    scene("callbacks/memb", "memb, call_rcu", UPDATE, (Memb, "call-update"), OBJECTS, 150),
    scene("callbacks/qsbr", "qsbr, call_rcu", UPDATE, (Qsbr, "call-update"), OBJECTS, 150),
    scene("callbacks/bp", "bp, call_rcu", UPDATE, (Bp, "call-update"), OBJECTS, 150),
    scene(
        "callbacks/barrier",
        "rcu_barrier behind one callback",
        CALL,
        (Memb, "call-barrier"),
        (20, 10),
        10_000_000,
    ),
    scene(
        "callbacks/shared-grace",
        "qsbr, synchronize_rcu beside call_rcu with rcu_barrier",
        WHOLE,
        (Qsbr, "shared-grace"),
        (500_000, 100_000),
        1_000,
    ),
    scene(
        "callbacks/shared-barrier",
        "qsbr, call_rcu with rcu_barrier beside synchronize_rcu",
        WHOLE,
        (Qsbr, "shared-barrier"),
        (500_000, 100_000),
        1_000,
    ),
    scene("defer/memb", "memb, defer_rcu", UPDATE, (Memb, "defer-update"), OBJECTS, 60),
    scene("defer/qsbr", "qsbr, defer_rcu", UPDATE, (Qsbr, "defer-update"), OBJECTS, 60),
    scene("defer/bp", "bp, defer_rcu", UPDATE, (Bp, "defer-update"), OBJECTS, 60),
    scene(
        "flood/producers",
        "16 producers of 1 KiB, 80 readers (limit of ours: 65,536 callbacks)",
        FLOOD,
        (Memb, "flood"),
        FLOOD_MS,
        1_000_000,
    ),
    scene(
        "flood/few-producers",
        "8 producers of 1 KiB, 2 readers (limit of ours: 65,536 callbacks)",
        FLOOD,
        (Memb, "flood-few"),
        FLOOD_MS,
        1_000_000,
    ),
    scene("flood/none", "80 readers alone", READERS, (Memb, "no-flood"), FLOOD_MS, 1_000_000),
    scene(
        "table/lookup",
        "look-ups, 1,000 keys",
        WHOLE,
        (Memb, "lfht-lookup"),
        (5_000_000, 1_000_000),
        20,
    ),
    scene(
        "table/insert",
        "insertions into a table that grows",
        WHOLE,
        (Memb, "lfht-insert"),
        (50_000, 20_000),
        5_000,
    ),
];

impl Scene {
    fn group(&self) -> &'static str {
        self.id.split('/').next().unwrap_or(self.id)
    }

    fn amount(&self, quick: bool) -> u64 {
        if quick { self.quick } else { self.amount }
    }

    fn budget(&self, quick: bool) -> Duration {
        self.about * self.amount(quick) as u32
    }
}

/// The suite, ready to run: the cases of these groups, or all if none is named, with our libraries
/// from this directory.
///
/// # Errors
/// If the libraries are not there, or the program that measures cannot be compiled.
pub fn prepare(groups: &[String], libraries: &Path, options: &Options) -> Result<Suite, Error> {
    let is_wanted =
        |scene: &&Scene| groups.is_empty() || groups.iter().any(|group| group == scene.group());
    let scenes: Vec<&'static Scene> = SCENES.iter().filter(is_wanted).collect();
    let (names, base) = options.choose_by(&RIVALS, |name| *name, &["liburcu"])?;
    let names: Vec<&'static str> = names.into_iter().copied().collect();
    let (quick, rounds) = (options.quick, options.rounds());
    let ours = ours(libraries)?;
    let programs = Programs::compile()?;
    Ok(Suite {
        name: "compat",
        base,
        duration: scenes.iter().map(|s| s.budget(quick)).sum::<Duration>()
            * rounds
            * names.len() as u32,
        measure: Box::new(move |session| {
            let mut cases = Vec::new();
            for scene in scenes {
                cases.extend(measure(scene, &names, quick, &programs, &ours, session)?);
            }
            Ok(cases)
        }),
    })
}

/// The directory of our libraries, if they are there.
fn ours(libraries: &Path) -> Result<PathBuf, Error> {
    let library = libraries.join("liburcu-memb.so.8");
    match libraries.canonicalize() {
        Ok(directory) if library.exists() => Ok(directory),
        _ => Err(Error::Unsupported(format!(
            "there is no {}: build the libraries with `cargo xtask compat`, or name their directory \
             with --libraries DIR",
            library.display()
        ))),
    }
}

fn measure(
    scene: &'static Scene,
    names: &[&'static str],
    quick: bool,
    programs: &Programs,
    ours: &Path,
    session: &mut Session<'_>,
) -> Result<Option<Case>, Error> {
    let is_ours = |name: &str| name == "quiescence";
    let rivals = names.iter().map(|&name| (name, is_ours(name)));
    let case = Case::new(scene.id, scene.title, scene.metrics, rivals);
    let case = case.comparing(scene.metrics.len());
    let environment = if scene.group() == "flood" { FLOOD_LIMIT } else { &[] };
    let asked = (scene.measurement, scene.amount(quick));
    let mut failed = None;
    let case = session.interleave(session.rounds, case, scene.budget(quick), |number| {
        let ours = is_ours(names[number]).then_some(ours);
        let metrics = scene.metrics.len();
        let answer = programs.measure(scene.flavor, ours, asked, environment, metrics);
        // What has failed is reported when the round is over.
        let values = answer.unwrap_or_else(|failure| {
            failed.get_or_insert(failure);
            vec![f64::NAN; metrics]
        });
        Sample::new(values, None)
    })?;
    match failed {
        Some(failure) => Err(failure),
        None => Ok(case),
    }
}

/// What a case measures, and of whom.
#[cfg(test)]
pub(crate) fn known(case: &str) -> Option<(&'static [Metric], Vec<&'static str>)> {
    let scene = SCENES.iter().find(|scene| scene.id == case)?;
    Some((scene.metrics, RIVALS.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scene_is_in_a_group_and_every_group_has_one() {
        for (group, _) in GROUPS {
            assert!(SCENES.iter().any(|scene| scene.group() == group), "{group}");
        }
        for scene in &SCENES {
            assert!(GROUPS.iter().any(|(group, _)| *group == scene.group()), "{}", scene.id);
            assert!(scene.quick <= scene.amount && scene.quick != 0, "{}", scene.id);
        }
    }

    #[test]
    fn where_there_are_no_libraries_the_message_says_how_to_come_by_them() {
        let Err(Error::Unsupported(message)) = ours(Path::new("/nowhere")) else {
            panic!("found libraries in /nowhere");
        };
        assert!(message.contains("cargo xtask compat"), "{message}");
    }
}
