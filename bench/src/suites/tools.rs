//! `rcu bench tools`: what each of the transformations of the guide is worth here, as programs in
//! two forms.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::SUITES;
use super::rounds::Case;
use super::{Options, Planned, Suite, beside, by, in_threads, one_and_several};
use crate::Error;
use crate::cases::form::Form;
#[cfg(test)]
use crate::cases::tools::PROGRAMS;
use crate::cases::tools::Program;

/// A transformation.
#[derive(Debug, Deserialize)]
pub struct Tool {
    /// What was measured of such a pair elsewhere, beside ours.
    #[serde(default)]
    published: &'static str,
}

/// The suite, ready to run: the programs of these names, or all if none is named; with one thread,
/// and with so many, or one for each CPU.
///
/// # Errors
/// If a form is named that there is not.
///
/// # Panics
/// When it runs: if the two forms of a program do not do the same.
pub fn prepare(groups: &[String], threads: Option<u32>, options: &Options) -> Result<Suite, Error> {
    let scenes = SUITES.tools.chosen(groups)?;
    let (forms, base) = options.choose(&Form::BOTH, |form| form.name(), &SUITES.tools.bases)?;
    let threads = one_and_several(threads.as_slice());
    let cases =
        scenes.into_iter().flat_map(|scene| threads.iter().map(move |count| (scene, *count)));
    let planned = cases.map(|(scene, count)| {
        let rivals = forms.iter().map(|form| (form.name(), *form == Form::After));
        let id = format!("{}/{}", scene.id, in_threads(count));
        let title = format!("{}; {}", scene.title, by(count));
        let case = Case::new(id, title, SUITES.tools.metrics(scene), rivals);
        let (amount, seed) = (SUITES.tools.amount(scene).of(options), options.seed);
        // Said once: what was published has many CPUs.
        let (forms, is_said) = (forms.clone(), threads.last() == Some(&count));
        Planned::new(case, amount, move |session, case| {
            let program = Program::of(scene.id);
            let operations = program.operations_in(count, amount.1);
            // What each round's threads have added up in their first form.
            let mut sums: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
            let mut case = session.interleave(case, &mut |number, round| {
                let seed = seed.wrapping_add(round.into());
                let (sample, seen) = program.measure(forms[number], count, operations, seed);
                let first = sums.entry(seed).or_insert_with(|| seen.clone());
                assert_eq!(*first, seen, "both forms of {} do the same", scene.id);
                sample
            })?;
            let here = case.ratio(Form::After.name(), Form::Before.name(), 0);
            let published = is_said.then(|| beside(scene.what.published, here));
            case.notes.extend(published.filter(|published| !published.is_empty()));
            Some(case)
        })
    });
    Ok(Suite::new("tools", base, planned.collect()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{names, quick};
    use super::*;
    use crate::host::Quiet;

    #[test]
    fn every_program_is_a_case_and_every_case_a_program() {
        let programs: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
        let cases: Vec<_> = SUITES.tools.cases.iter().map(|scene| scene.id).collect();
        assert_eq!(programs, cases);
    }

    #[test]
    fn every_case_gives_a_figure_for_each_metric_of_both_forms() {
        let options = quick(2, &[]);
        let suite = prepare(&[], Some(2), &options).expect("well-formed");
        assert_eq!((suite.name, suite.base), ("tools", "before"));
        let (cases, _) = suite.run(&mut Quiet::default(), &options).expect("it is measured");
        assert_eq!(cases.len(), 2 * PROGRAMS.len());
        for case in &cases {
            // Not if no round counted for both: what was wrong is that each had one, of two.
            let is_compared = case.ratio("after", "before", 0).is_some();
            // It was said with one thread and with two.
            let has_note = is_compared && case.id == "semaphores/2-threads";
            assert_eq!(case.notes.len(), usize::from(has_note), "{:?}", case.notes);
            for form in &case.rivals {
                // Of two rounds one may have been disturbed, or both.
                let counted = form.values.iter().map(Vec::len).max().unwrap_or_default();
                let is_whole = form.values.iter().all(|values| values.len() == counted);
                let has_figure = counted > 0 || form.missing.is_some();
                assert!(is_whole && has_figure && counted <= 2, "{}: {form:?}", case.id);
                let mut figures = form.values.iter().flatten();
                assert!(figures.all(|figure| *figure > 0.0), "{}: {form:?}", case.id);
            }
        }
    }

    #[test]
    fn what_was_published_is_what_the_reference_says() {
        let published = SUITES.tools.cases.iter().map(|scene| scene.what.published);
        let published: Vec<_> = published.filter(|published| !published.is_empty()).collect();
        assert_eq!(published.len(), 1);
        let seconds = "515.2 s before, 46.7 s after, 11.0 times";
        assert!(published[0].contains(seconds), "eleven times as fast");
    }

    #[test]
    fn a_form_can_be_measured_alone() {
        let suite = prepare(&names(&["rcu"]), None, &quick(1, &["after"])).expect("well-formed");
        assert_eq!(suite.base, "after");
        let message = prepare(&[], None, &quick(1, &["later"])).unwrap_err().to_string();
        assert!(message.contains("before, after"), "{message}");
    }
}
