//! `rcu bench tools`: what each of the transformations of the guide is worth here, as programs in
//! two forms.

use std::collections::BTreeMap;
use std::time::Duration;

use super::promises::Bound::AtLeast;
use super::promises::{Against, Promise, promise};
use super::rounds::{Case, Metric, Sample, Session, Unit};
use super::{Group, Options, Suite};
use crate::Error;
use crate::cases::tools::{Form, PROGRAMS, Program, Published};
use crate::units;

const METRICS: &[Metric] =
    &[Metric::new("operations", Unit::PerSecond), Metric::new("CPU", Unit::Nanoseconds)];

/// What `--case` takes.
pub const GROUPS: [Group; 9] = [
    ("data-locking", "One lock of the code, or a lock of each bucket of the data"),
    ("lock-pairs", "One lock, or the locks of both accounts in the order of their addresses"),
    ("shipping", "Locks that all threads take, or one owner to whom functions are shipped"),
    ("rcu", "A reader-writer lock, or RCU"),
    ("deleted-flag", "A lock held as long as something is in use, or a flag that says it is gone"),
    ("publish", "Several fields under a lock, or a copy of them that is published"),
    ("when-to-stop", "Where the lock was no large part, and nothing is gained"),
    ("directory-cache", "Look-ups of paths and renames under one lock, or without a lock"),
    ("semaphores", "System V semaphores under one lock, or in an id table with a lock each"),
];

/// How long one form runs in one round.
const BUDGET: Duration = Duration::from_millis(40);
const BUDGET_QUICK: Duration = Duration::from_millis(8);

/// The suite, ready to run: the programs of these names, or all if none is named; with one thread,
/// and with so many, or one for each CPU.
///
/// # Errors
/// If a form is named that there is not.
pub fn prepare(groups: &[String], threads: Option<u32>, options: &Options) -> Result<Suite, Error> {
    let is_wanted =
        |program: &&Program| groups.is_empty() || groups.iter().any(|group| group == program.name);
    let programs: Vec<&Program> = PROGRAMS.iter().filter(is_wanted).collect();
    let (forms, base) = options.choose_by(&Form::ALL, |form| form.name(), &["before"])?;
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let several = threads.map_or(cpus.max(2), |threads| threads as usize);
    let threads = if several == 1 { vec![1] } else { vec![1, several] };
    let budget = if options.quick { BUDGET_QUICK } else { BUDGET };
    let cases = (programs.len() * threads.len()) as u32;
    let seed = options.seed;
    Ok(Suite {
        name: "tools",
        base,
        duration: budget * (options.rounds() * forms.len() as u32 * cases),
        measure: Box::new(move |session| {
            let mut cases = Vec::new();
            for program in programs {
                for &threads in &threads {
                    let forms: Vec<Form> = forms.iter().map(|form| **form).collect();
                    cases.extend(measure(program, threads, &forms, budget, seed, session)?);
                }
            }
            Ok(cases)
        }),
    })
}

fn id(program: &Program, threads: usize) -> String {
    format!("{}/{threads}-thread{}", program.name, if threads == 1 { "" } else { "s" })
}

fn measure(
    program: &Program,
    threads: usize,
    forms: &[Form],
    budget: Duration,
    seed: u64,
    session: &mut Session<'_>,
) -> Result<Option<Case>, Error> {
    let by = if threads == 1 { "one thread".to_owned() } else { format!("{threads} threads") };
    let rivals = forms.iter().map(|form| (form.name(), *form == Form::After));
    let case = Case::new(id(program, threads), format!("{}; {by}", program.title), METRICS, rivals);
    if session.host.is_stopped() {
        return Ok(None);
    }
    session.host.announce(&case.title);
    let operations = program.operations_in(threads, budget);
    // What each round's operations return is the same in both forms.
    let mut sums: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut measured = 0;
    let case = session.interleave(session.rounds, case, budget, |number| {
        let seed = seed + measured / forms.len() as u64;
        measured += 1;
        let seen = program.measure(forms[number], threads, operations, seed);
        let first = sums.entry(seed).or_insert_with(|| seen.sums.clone());
        assert_eq!(*first, seen.sums, "both forms of {} do the same", program.name);
        let speed = seen.speed;
        Sample::new([speed.operations_per_second, speed.cpu_ns], speed.judged)
    })?;
    Ok(case.map(|mut case| {
        case.notes.extend(program.published.and_then(|published| beside(published, &case)));
        case
    }))
}

/// The published figures, and ours. Nothing if only one form was measured.
fn beside(published: &Published, case: &Case) -> Option<String> {
    let Published { machine, source, seconds: [before, after] } = published;
    let here = case.ratio(Form::After.name(), Form::Before.name(), 0)?.median;
    let [there, here] = [before / after, here].map(units::figures);
    Some(format!(
        "{here} times as many operations after as before; published for a {machine}: {before:.1} s \
         before, {after:.1} s after, {there} times ({source})"
    ))
}

pub(super) static PROMISES: &[Promise] =
    &[semaphores("semaphores/1-thread", 0.94, 0.9), semaphores("semaphores/2-threads", 1.35, 1.0)];

const fn semaphores(case: &'static str, measured: f64, at_least: f64) -> Promise {
    let (before, after) = (Against::Rival(Form::Before.name()), Form::After.name());
    promise(case, "operations", after, before, AtLeast(at_least), measured)
}

/// What a case measures, and of whom.
#[cfg(test)]
pub(crate) fn known(case: &str) -> Option<(&'static [Metric], Vec<&'static str>)> {
    let is_case = |program: &Program| [1, 2].iter().any(|&threads| id(program, threads) == case);
    PROGRAMS.iter().any(is_case).then(|| (METRICS, Form::ALL.map(Form::name).to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Quiet;

    #[test]
    fn every_program_is_a_case_and_every_case_a_program() {
        let programs: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
        assert_eq!(programs, GROUPS.map(|(group, _)| group));
    }

    #[test]
    fn every_case_gives_a_figure_for_each_metric_of_both_forms() {
        let options = Options { quick: true, rounds: Some(2), ..Options::default() };
        let suite = prepare(&[], Some(2), &options).expect("well-formed");
        assert_eq!((suite.name, suite.base), ("tools", "before"));
        let (cases, _) = suite.run(&mut Quiet::default(), &options).expect("it is measured");
        assert_eq!(cases.len(), 2 * PROGRAMS.len());
        for case in &cases {
            assert!(known(&case.id).is_some(), "{}", case.id);
            let is_measured = case.rivals.iter().all(|form| form.missing.is_none());
            let has_note = is_measured && case.id.starts_with("semaphores");
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
    fn a_form_can_be_measured_alone() {
        let options = Options { only: vec!["after".to_owned()], ..Options::default() };
        let suite = prepare(&["rcu".to_owned()], None, &options).expect("well-formed");
        assert_eq!(suite.base, "after");
        let options = Options { only: vec!["later".to_owned()], ..Options::default() };
        let message = prepare(&[], None, &options).unwrap_err().to_string();
        assert!(message.contains("before, after"), "{message}");
    }
}
