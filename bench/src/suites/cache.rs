//! `rcu bench cache`: what the place of data in the caches costs here, lesson by lesson, as it was
//! taught in 2005; beside the published figure where there is one, and with what it means for a
//! Rust struct.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use serde::Deserialize;

use super::SUITES;
use super::listed::Scene;
use super::rounds::Case;
use super::{Options, Planned, Suite, beside};
use crate::Error;
pub use crate::cases::cache::{Cache, Geometry};
use crate::cases::cache::{Load, alone, queue, shared};
use crate::cases::form::Form;
use crate::locks::Locked;

/// The published shares of samples that stand beside this lesson.
pub fn shares(id: &str) -> Option<[f64; 2]> {
    SUITES.cache.cases.iter().find(|lesson| lesson.id == id)?.what.shares
}

/// One lesson: a load in its forms.
#[derive(Debug, Deserialize)]
pub struct Lesson {
    forms: Vec<Form>,
    /// What was published of it, and of shares ours beside it.
    published: &'static str,
    /// What it means for a Rust struct, in a sentence.
    means: &'static str,
    /// The published shares of all samples without a prefetch of its first miss and with it, in per
    /// cent.
    #[serde(default)]
    shares: Option<[f64; 2]>,
}

/// The load of a lesson.
fn load(lesson: &str, geometry: &Geometry) -> Load {
    match lesson {
        "conflicts" => alone::conflicts(geometry),
        "two-lines" => alone::lines(geometry),
        "false-sharing" => shared::Own::<AtomicU64>::load(),
        "locks" => shared::Own::<Locked<Mutex<u64>>>::load(),
        "prefetch" => queue::WakeUps::load(geometry),
        "eth-type-trans" => queue::Packets::load(geometry),
        "sweep" => alone::sweep(geometry),
        "list-array" => alone::walk(geometry),
        "hot-cold" => Box::new(alone::replaced),
        _ => unreachable!("{lesson} is no lesson"),
    }
}

/// The suite, ready to run: the lessons of these names, or all if none is named.
///
/// # Errors
/// If a lesson or a form is named that there is not.
pub fn prepare(groups: &[String], geometry: &Geometry, options: &Options) -> Result<Suite, Error> {
    let lessons = SUITES.cache.chosen(groups)?;
    let (chosen, base) = options.choose(&Form::ALL, |form| form.name(), &SUITES.cache.bases)?;
    let geometry = *geometry;
    let planned = lessons.into_iter().map(|scene| {
        let Scene { id, title, what: lesson, .. } = scene;
        let forms = chosen.iter().copied().filter(|form| lesson.forms.contains(form));
        let forms: Vec<Form> = forms.collect();
        let names = forms.iter().map(|form| (form.name(), *form == Form::After));
        let case = Case::new(*id, *title, SUITES.cache.metrics(scene), names);
        let amount = SUITES.cache.amount(scene).of(options);
        Planned::new(case, amount, move |session, case| {
            let load = load(id, &geometry);
            let rows: Vec<_> = forms.iter().map(|form| load(*form)).collect();
            let mut case = session.slices(case, &rows)?;
            case.notes.push(lesson.said(&case));
            case.notes.push(format!("for a Rust struct: {}", lesson.means));
            Some(case)
        })
    });
    let planned = planned.filter(|planned| !planned.case.rivals.is_empty());
    let mut planned: Vec<Planned> = planned.collect();
    if let Some(first) = planned.first_mut() {
        first.case.notes.push(geometry.describe());
    }
    Ok(Suite::new("cache", base, planned))
}

impl Lesson {
    /// What was published of it. The prefetch of the first miss is half the way where it has two.
    fn said(&self, case: &Case) -> String {
        let has_two = self.forms.contains(&Form::Halfway);
        let first = if has_two { Form::Halfway } else { Form::After };
        beside(self.published, case.ratio(first.name(), Form::Before.name(), 0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{names, quick};
    use super::*;
    use crate::cases::cache::tests::TINY;
    use crate::host::Quiet;
    use crate::{costs, units};

    #[test]
    fn each_lesson_is_measured_and_says_what_it_means() {
        let options = quick(1, &[]);
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
            let mut values = case.rivals.iter().flat_map(|form| form.values.iter().flatten());
            assert!(values.all(|ns| *ns > 0.0 && ns.is_finite()), "{case:?}");
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
            scene.what.said(&case)
        };
        assert!(notes("prefetch", ["before", "halfway"]).contains("; here "));
        assert!(!notes("prefetch", ["before", "after"]).contains("; here "));
        assert!(notes("eth-type-trans", ["before", "after"]).contains("; here "));
    }

    #[test]
    fn a_form_can_be_left_out_and_one_that_there_is_not_is_refused() {
        let options = quick(1, &["halfway"]);
        let suite = prepare(&names(&["sweep", "locks"]), &TINY, &options).unwrap();
        let (cases, _) = suite.run(&mut Quiet::default(), &options).unwrap();
        assert_eq!(cases.len(), 1, "locks have no such form");
        assert!(matches!(prepare(&[], &TINY, &quick(1, &["never"])), Err(Error::Usage(_))));
    }

    #[test]
    fn what_is_said_to_be_published_is_in_the_table() {
        let table = costs::published();
        let known = costs::tests::published().map(units::nanoseconds);
        let known: Vec<String> = known.map(|ns| format!("{ns} for ")).collect();
        let head = format!("published in {} for a {}: ", table.year, table.machine);
        let said = SUITES.cache.cases.iter().map(|lesson| lesson.what.published);
        let said: Vec<&str> = said.filter_map(|said| said.strip_prefix(&*head)).collect();
        assert_eq!(said.len(), 7, "{head}");
        for cost in said.iter().flat_map(|said| said.split(", ")) {
            let is_other = cost.starts_with("which ");
            assert!(is_other || known.iter().any(|known| cost.starts_with(known)), "{cost}");
        }
    }
}
