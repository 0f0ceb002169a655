//! `rcu bench cache`: what the place of data in the caches costs here, lesson by lesson, as it was
//! taught in 2005; beside the published figure where there is one, and with what it means for a
//! Rust struct.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use serde::Deserialize;

use super::SUITES;
use super::listed::Scene;
use super::rounds::Case;
use super::{Options, Planned, Suite};
use crate::Error;
pub use crate::cases::cache::{Cache, Geometry};
use crate::cases::cache::{Load, alone, queue, shared};
use crate::cases::form::Form;
use crate::costs;
use crate::locks::Locked;
use crate::units;

/// What was published of a lesson.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Published {
    /// These rows of the table of 2005, by name, and what they are.
    Costs(Vec<(String, String)>),
    /// A function, and its share of all samples without a prefetch of its first miss and with it,
    /// in per cent, in VA Linux Japan's lecture of 2005.
    Shares(String, [f64; 2]),
}

/// The published shares of samples that stand beside this lesson.
pub fn shares(id: &str) -> Option<[f64; 2]> {
    let lesson = SUITES.cache.cases.iter().find(|lesson| lesson.id == id)?;
    match lesson.what.published {
        Published::Shares(_, shares) => Some(shares),
        Published::Costs(_) => None,
    }
}

/// One lesson: a load in its forms.
#[derive(Debug, Deserialize)]
pub struct Lesson {
    forms: Vec<Form>,
    published: Published,
    /// What it means for a Rust struct, in a sentence.
    means: String,
}

/// The load of a lesson.
fn load(lesson: &str, geometry: &Geometry) -> Box<dyn Load> {
    match lesson {
        "conflicts" => alone::Rings::conflicts(geometry),
        "two-lines" => alone::Rings::lines(geometry),
        "false-sharing" => shared::Own::<AtomicU64>::boxed(geometry),
        "locks" => shared::Own::<Locked<Mutex<u64>>>::boxed(geometry),
        "prefetch" => queue::WakeUps::boxed(geometry),
        "eth-type-trans" => queue::Packets::boxed(geometry),
        "sweep" => alone::Sweep::boxed(geometry),
        "list-array" => alone::Walk::boxed(geometry),
        "hot-cold" => alone::Replaced::boxed(geometry),
        _ => unreachable!("{lesson} is no lesson"),
    }
}

/// The suite, ready to run: the lessons of these names, or all if none is named.
///
/// # Errors
/// If a form is named that there is not, or this process may use one CPU only and all that is
/// asked for needs two.
pub fn prepare(groups: &[String], geometry: &Geometry, options: &Options) -> Result<Suite, Error> {
    let lessons = SUITES.cache.chosen(groups)?;
    let (chosen, base) = options.choose(&Form::ALL, |form| form.name(), &SUITES.cache.bases)?;
    let planned = lessons.into_iter().filter_map(|lesson| {
        let forms = lesson.what.chosen(&chosen);
        (!forms.is_empty()).then(|| plan(lesson, forms, *geometry, options))
    });
    let mut planned: Vec<Planned> = planned.collect();
    if let Some(first) = planned.first_mut() {
        first.case.notes.push(geometry.describe());
    }
    Ok(Suite::new("cache", base, planned))
}

impl Lesson {
    /// Those of these forms that it has.
    fn chosen(&self, forms: &[Form]) -> Vec<Form> {
        forms.iter().copied().filter(|form| self.forms.contains(form)).collect()
    }
}

fn plan(
    scene: &'static Scene<Lesson>,
    forms: Vec<Form>,
    geometry: Geometry,
    options: &Options,
) -> Planned {
    let Scene { id, title, what: lesson, .. } = scene;
    let names = forms.iter().map(|form| (form.name(), *form == Form::After));
    let case = Case::new(*id, *title, SUITES.cache.metrics(scene), names);
    let (rounds, budget) = SUITES.cache.amount(scene).of(options);
    Planned::new(case, (rounds, budget), move |session, case| {
        let load = load(id, &geometry);
        let rows: Vec<_> = forms.iter().map(|form| load.row(*form)).collect();
        let mut case = session.slices(case, &rows, budget)?;
        case.notes.extend(lesson.published.sentence(&case, &lesson.forms));
        case.notes.push(format!("for a Rust struct: {}", lesson.means));
        Some(case)
    })
}

impl Published {
    /// What was published of a lesson that has these forms, and for a ratio ours beside it.
    fn sentence(&self, case: &Case, forms: &[Form]) -> Option<String> {
        match self {
            Self::Costs(rows) => {
                let table = costs::published();
                let figure = |(id, what): &(String, String)| {
                    Some(format!("{} for {what}", units::nanoseconds(table.ns(id)?)))
                };
                let figures: Vec<String> = rows.iter().filter_map(figure).collect();
                let (year, machine) = (table.year, table.machine);
                Some(format!("published in {year} for a {machine}: {}", figures.join(", ")))
            }
            Self::Shares(function, [without, with]) => {
                let there = units::ratio(with / without);
                // The prefetch of the first miss is half the way where the lesson has two.
                let has_two = forms.contains(&Form::Halfway);
                let first = if has_two { Form::Halfway } else { Form::After };
                let here = case.ratio(first.name(), Form::Before.name(), 0);
                let here = here.map_or_else(String::new, |ratio| {
                    format!("; here {} of it", units::ratio(ratio.median))
                });
                Some(format!(
                    "published in 2005 (VA Linux Japan) for {function} with a prefetch of its \
                     first miss: {without} % of samples before, {with} % after, {there} of \
                     it{here}"
                ))
            }
        }
    }
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
        let groups: Vec<&str> = SUITES.cache.groups.iter().map(|(name, _)| *name).collect();
        assert_eq!(ids, groups);
        assert!(cases[0].notes[0].contains("4 ways of 16 sets"), "{:?}", cases[0].notes);
        for (case, lesson) in cases.iter().zip(&SUITES.cache.cases) {
            let measured: Vec<&str> = case.rivals.iter().map(|form| form.name).collect();
            let forms: Vec<&str> = lesson.what.forms.iter().map(|form| form.name()).collect();
            assert_eq!(measured, forms);
            let has = |part: &str| case.notes.iter().any(|note| note.contains(part));
            assert!(has("for a Rust struct") && has("published in 2005"), "{:?}", case.notes);
        }
        // Whose shares they are: 780 samples, and 694 with the prefetch, are of another function.
        let says = |case: usize, text| assert!(cases[case].notes[0].contains(text), "{text}");
        says(4, "try_to_wake_up");
        says(4, "0.5957 % of samples before, 0.5271 % after, 0.88 of it");
        says(5, "eth_type_trans");
        says(5, "0.7439 % of samples before, 0.6619 % after, 0.89 of it");
    }

    #[test]
    fn both_prefetches_do_not_stand_beside_what_was_published_of_the_first() {
        let notes = |group: &str, measured: [&str; 2]| {
            let scene = SUITES.cache.cases.iter().find(|scene| scene.id == group).unwrap();
            let forms = scene.what.forms.iter().map(|form| (form.name(), false));
            let mut case = Case::new(scene.id, scene.title, SUITES.cache.metrics(scene), forms);
            for form in case.rivals.iter_mut().filter(|form| measured.contains(&form.name)) {
                form.values[0].push(1.0);
            }
            scene.what.published.sentence(&case, &scene.what.forms).unwrap()
        };
        assert!(notes("prefetch", ["before", "halfway"]).contains("; here "));
        assert!(!notes("prefetch", ["before", "after"]).contains("; here "));
        assert!(notes("eth-type-trans", ["before", "after"]).contains("; here "));
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
        for lesson in &SUITES.cache.cases {
            if let Published::Costs(rows) = &lesson.what.published {
                assert!(rows.iter().all(|(id, _)| costs::published().ns(id).is_some()));
            }
        }
    }
}
