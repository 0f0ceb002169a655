//! `rcu bench cache`: what the place of data in the caches costs here, lesson by lesson, as it was
//! taught in 2005; beside the published figure where there is one, and with what it means for a
//! Rust struct.

use std::time::Duration;

use super::rounds::{Case, Metric, Session, Unit};
use super::{Group, Options, Suite};
use crate::Error;
pub use crate::cases::cache::{Cache, Geometry};
use crate::cases::cache::{Form, Load, alone, queue, shared};
use crate::costs;
use crate::units;

const METRICS: &[Metric] = &[Metric::new("operation", Unit::Nanoseconds)];

/// What `--case` takes.
pub const GROUPS: [Group; 6] = [
    ("conflicts", "Objects a page apart, whose first lines share a set; and coloured"),
    ("two-lines", "Objects that begin in the middle of a line; and at its beginning"),
    ("false-sharing", "Two threads' own counters on one line; and apart"),
    ("locks", "Two threads' own locks on one line; and apart"),
    ("prefetch", "Wake-ups with two misses in a row; the first one fetched early; and both"),
    ("sweep", "A table beside a sequential read: plain; past the caches; and in a small buffer"),
];

/// How long one form runs in one round.
const BUDGET: Duration = Duration::from_millis(20);
const BUDGET_QUICK: Duration = Duration::from_millis(4);

/// The time of wake-ups without a prefetch of the first hop and with it, in VA Linux Japan's
/// lecture of 2005. The unit is not recorded; the ratio has none.
pub const WAKE_UP_2005: [f64; 2] = [0.7439, 0.6619];

/// What was published of a lesson.
enum Published {
    /// These rows of the table of 2005, by name, and what they are.
    Costs(&'static [(&'static str, &'static str)]),
    /// [`WAKE_UP_2005`].
    WakeUp,
}

/// One lesson: a load in its forms.
struct Lesson {
    group: &'static str,
    title: &'static str,
    forms: &'static [Form],
    make: fn(&Geometry) -> Box<dyn Load>,
    published: Published,
    /// What it means for a Rust struct, in a sentence.
    means: &'static str,
}

const TWO: &[Form] = &[Form::Before, Form::After];

const LESSONS: [Lesson; 6] = [
    Lesson {
        group: "conflicts",
        title: "objects a way apart: all in one set (before), coloured (after)",
        forms: TWO,
        make: alone::Conflicts::boxed,
        published: Published::Costs(&[("l2_hit", "an L2 hit, which each conflict costs")]),
        means: "headers at the beginning of page-sized blocks compete for one set: keep them in a \
                Vec of their own, or begin each block's data at another line",
    },
    Lesson {
        group: "two-lines",
        title: "objects as long as a line: on two lines (before), on one (after)",
        forms: TWO,
        make: alone::Lines::boxed,
        published: Published::Costs(&[("l2_hit", "an L2 hit"), ("main_memory", "main memory")]),
        means: "a struct of up to a line that is found by index or pointer gets \
                #[repr(align(64))]; with the alignment of its fields it takes two lines, and half \
                as many fit",
    },
    Lesson {
        group: "false-sharing",
        title: "two threads' own counters: on one line (before), apart (after)",
        forms: TWO,
        make: shared::Counters::boxed,
        published: Published::Costs(&[
            ("atomic_increment_cache_transfer", "an increment whose line comes from another CPU"),
            ("atomic_increment", "an increment of one's own line"),
        ]),
        means: "fields that different threads write do not belong into one struct: give each a \
                struct with #[repr(align(128))], as crossbeam_utils::CachePadded is",
    },
    Lesson {
        group: "locks",
        title: "two threads' own locks: on one line (before), apart (after)",
        forms: TWO,
        make: shared::Locks::boxed,
        published: Published::Costs(&[
            ("cmpxchg_cache_transfer_and_invalidate", "a compare-and-swap with a transfer"),
            ("cpu_local_lock", "a lock of one CPU"),
        ]),
        means: "[Mutex<u64>; N] has several locks on a line: put each lock with the data it \
                protects into an aligned struct, so that one line brings both, and only them",
    },
    Lesson {
        group: "prefetch",
        title: "wake-ups, two misses each: no prefetch (before), the first hop (halfway), both \
                (after)",
        forms: &Form::ALL,
        make: queue::WakeUps::boxed,
        published: Published::WakeUp,
        means: "Vec<Box<T>> and Vec<Arc<T>> know the next miss early, and a Box inside T is a \
                second one that they do not: keep what the loop needs in T itself, or fetch twice",
    },
    Lesson {
        group: "sweep",
        title: "look-ups after a sequential read: plain (before), with a non-temporal prefetch \
                (halfway), as many bytes through 4 KiB (after)",
        forms: &Form::ALL,
        make: alone::Sweep::boxed,
        published: Published::Costs(&[("l2_hit", "an L2 hit"), ("main_memory", "main memory")]),
        means: "a Vec that is filled and read once displaces the tables that are looked up: read \
                through a small buffer that is used again, as BufReader does",
    },
];

/// The suite, ready to run: the lessons of these names, or all if none is named.
///
/// # Errors
/// If a form is named that there is not, or this process may use one CPU only and all that is
/// asked for needs two.
pub fn prepare(groups: &[String], geometry: &Geometry, options: &Options) -> Result<Suite, Error> {
    let is_wanted =
        |lesson: &Lesson| groups.is_empty() || groups.iter().any(|group| group == lesson.group);
    let lessons: Vec<Lesson> = LESSONS.into_iter().filter(is_wanted).collect();
    let (forms, base) = options.choose_by(&Form::ALL, |form| form.name(), &["before"])?;
    let forms: Vec<Form> = forms.into_iter().copied().collect();
    let budget = if options.quick { BUDGET_QUICK } else { BUDGET };
    let measured = |lesson: &Lesson| lesson.chosen(&forms).len() as u32;
    let measurements: u32 = lessons.iter().map(measured).sum();
    let geometry = *geometry;
    Ok(Suite {
        name: "cache",
        base,
        duration: budget * (options.rounds() * measurements),
        measure: Box::new(move |session| {
            let cases = lessons.iter().map(|each| each.measure(&forms, &geometry, budget, session));
            let mut cases: Vec<Case> =
                cases.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
            if let Some(first) = cases.first_mut() {
                first.notes.insert(0, geometry.describe());
            }
            Ok(cases)
        }),
    })
}

impl Lesson {
    /// Those of these forms that it has.
    fn chosen(&self, forms: &[Form]) -> Vec<Form> {
        forms.iter().copied().filter(|form| self.forms.contains(form)).collect()
    }

    fn measure(
        &self,
        forms: &[Form],
        geometry: &Geometry,
        budget: Duration,
        session: &mut Session<'_>,
    ) -> Result<Option<Case>, Error> {
        let forms = self.chosen(forms);
        if forms.is_empty() || session.host.is_stopped() {
            return Ok(None);
        }
        session.host.announce(&self.title);
        let load = (self.make)(geometry);
        let rows: Vec<_> = forms.iter().map(|form| load.row(*form)).collect();
        let names = forms.iter().map(|form| (form.name(), *form == Form::After));
        let case = Case::new(self.group, self.title, METRICS, names);
        let case = session.slices(case, &rows, budget)?;
        Ok(case.map(|mut case| {
            case.notes.extend(self.published.sentence(&case));
            case.notes.push(format!("for a Rust struct: {}", self.means));
            case
        }))
    }
}

impl Published {
    /// What was published, and for a ratio ours beside it.
    fn sentence(&self, case: &Case) -> Option<String> {
        match self {
            Self::Costs(rows) => {
                let table = costs::published();
                let figure = |(id, what): &(&str, &str)| {
                    Some(format!("{} for {what}", units::nanoseconds(table.ns(id)?)))
                };
                let figures: Vec<String> = rows.iter().filter_map(figure).collect();
                let (year, machine) = (table.year, table.machine);
                Some(format!("published in {year} for a {machine}: {}", figures.join(", ")))
            }
            Self::WakeUp => {
                let [without, with] = WAKE_UP_2005;
                let there = units::ratio(with / without);
                let here = case.ratio(Form::Halfway.name(), Form::Before.name(), 0);
                let here = here.map_or_else(String::new, |ratio| {
                    format!("; here {} of it", units::ratio(ratio.median))
                });
                Some(format!(
                    "published in 2005 (VA Linux Japan) for try_to_wake_up with a prefetch of the \
                     first hop: {without} before, {with} after, {there} of it{here}"
                ))
            }
        }
    }
}

/// What a case measures, and of whom.
#[cfg(test)]
pub(crate) fn known(case: &str) -> Option<(&'static [Metric], Vec<&'static str>)> {
    let lesson = LESSONS.into_iter().find(|lesson| lesson.group == case)?;
    Some((METRICS, lesson.forms.iter().map(|form| form.name()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cache::tests::TINY;
    use crate::host::Quiet;

    #[test]
    fn each_lesson_is_measured_and_says_what_it_means() {
        let options = Options { quick: true, rounds: Some(1), ..Options::default() };
        let suite = prepare(&[], &TINY, &options).unwrap();
        let (cases, verdicts) = suite.run(&mut Quiet::default(), &options).unwrap();
        assert!(verdicts.is_empty(), "nothing is promised of a machine");
        let ids: Vec<&str> = cases.iter().map(|case| &*case.id).collect();
        assert_eq!(ids, GROUPS.map(|(name, _)| name));
        assert!(cases[0].notes[0].contains("4 ways of 16 sets"), "{:?}", cases[0].notes);
        for case in &cases {
            let (_, forms) = known(&case.id).unwrap();
            let measured: Vec<&str> = case.rivals.iter().map(|form| form.name).collect();
            assert_eq!(measured, forms);
            let has = |part: &str| case.notes.iter().any(|note| note.contains(part));
            assert!(has("for a Rust struct") && has("published in 2005"), "{:?}", case.notes);
        }
        assert!(cases[4].notes[0].contains("0.7439 before, 0.6619 after, 0.89 of it"));
    }

    #[test]
    fn a_form_can_be_left_out_and_one_that_there_is_not_is_refused() {
        let options = Options {
            quick: true,
            rounds: Some(1),
            only: vec!["halfway".to_owned()],
            ..Options::default()
        };
        let groups = ["sweep".to_owned(), "locks".to_owned()];
        let (cases, _) = prepare(&groups, &TINY, &options)
            .unwrap()
            .run(&mut Quiet::default(), &options)
            .unwrap();
        assert_eq!(cases.len(), 1, "locks have no such form");
        let options = Options { only: vec!["never".to_owned()], ..Options::default() };
        assert!(matches!(prepare(&[], &TINY, &options), Err(Error::Usage(_))));
    }

    #[test]
    fn what_is_said_to_be_published_is_in_the_table() {
        for lesson in LESSONS {
            if let Published::Costs(rows) = lesson.published {
                assert!(rows.iter().all(|(id, _)| costs::published().ns(id).is_some()));
            }
        }
    }
}
