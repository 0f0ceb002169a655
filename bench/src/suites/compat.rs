//! `rcu bench compat`: the liburcu-compatible libraries beside Debian's, under the very same C
//! program.
//!
//! The program (`program.c`) is compiled here, against Debian's headers. Each measurement is a
//! process of its own, with one library or the other, in turn: so it has the allocator, the threads
//! and the caches that a user's program begins with, and what drifts meets both.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::Deserialize;

use super::SUITES;
use super::rounds::{Case, Session};
use super::{Options, Planned, Suite};
use crate::Error;
use crate::sample::Sample;

mod process;

use process::Programs;

/// The two sides.
const RIVALS: [&str; 2] = ["liburcu", "quiescence"];

/// What the program is asked for.
#[derive(Debug, Deserialize)]
pub struct Asked {
    flavor: &'static str,
    measurement: &'static str,
}

/// The suite, ready to run: the cases of these groups, or all if none is named, with our libraries
/// from this directory.
///
/// # Errors
/// If the libraries are not there, or the program that measures cannot be compiled.
pub fn prepare(groups: &[String], libraries: &Path, options: &Options) -> Result<Suite, Error> {
    let scenes = SUITES.compat.chosen(groups)?;
    let (names, base) = options.choose(&RIVALS, |name| *name, &SUITES.compat.bases)?;
    let programs = Rc::new(Programs::compile(ours(libraries)?)?);
    let planned = scenes.into_iter().map(|scene| {
        let rivals: Vec<_> = names.iter().map(|&name| (name, name == "quiescence")).collect();
        let (asked, metrics) = (&scene.what, SUITES.compat.metrics(scene));
        let case = Case::new(scene.id, scene.title, metrics, rivals.iter().copied());
        let case = case.comparing(metrics.len());
        let amount = SUITES.compat.amount(scene);
        let question = (asked.measurement, amount.times[usize::from(options.quick)]);
        let programs = Rc::clone(&programs);
        Planned::new(case, amount.of(options), move |session, case| {
            measured(session, case, |number| {
                let (_, is_ours) = rivals[number];
                programs.measure(asked.flavor, is_ours, question, metrics.len())
            })
        })
    });
    Ok(Suite::new("compat", base, planned.collect()))
}

/// A case of what may fail. What has failed is reported when the rounds are over: not if the run
/// was stopped meanwhile, since Ctrl-C ends the measured program, too.
fn measured(
    session: &mut Session<'_>,
    case: Case,
    mut measure: impl FnMut(usize) -> Result<Vec<f64>, Error>,
) -> Option<Case> {
    let (mut failed, mut went_on, figures) = (None, false, case.metrics.len());
    let case = session.interleave(case, &mut |number, _| {
        went_on |= failed.is_some();
        let values = measure(number).unwrap_or_else(|failure| {
            failed.get_or_insert(failure);
            vec![f64::NAN; figures]
        });
        Sample::new(values, None)
    });
    session.failed = failed.filter(|_| went_on || !session.host.must_stop());
    case
}

/// The directory of our libraries, if they are there.
fn ours(libraries: &Path) -> Result<PathBuf, Error> {
    let library = libraries.join("liburcu-memb.so.8");
    match libraries.canonicalize() {
        Ok(directory) if library.exists() => Ok(directory),
        _ => Err(Error::Unsupported(format!(
            "there is no {}: build the libraries with `cargo xtask compat`, or name their \
             directory with --libraries DIR",
            library.display()
        ))),
    }
}

/// All cases, of which nothing is measured.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = Case> {
    let names = || RIVALS.map(|name| (name, false));
    let (suite, cases) = (&SUITES.compat, SUITES.compat.cases.iter());
    cases.map(move |scene| Case::new(scene.id, scene.title, suite.metrics(scene), names()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::super::rounds::tests::case;
    use super::super::tests::quick;
    use super::*;
    use crate::host::Quiet;

    #[test]
    fn every_table_is_quicker_in_a_hurry() {
        for scene in &SUITES.compat.cases {
            let [usual, quick] = SUITES.compat.amount(scene).times;
            assert!(process::FLAVORS.contains(&scene.what.flavor), "{}", scene.id);
            assert!(quick <= usual && quick != 0, "{}", scene.id);
        }
    }

    /// Ctrl-C was a failure of the program that it ended, and what had been measured was lost.
    #[test]
    fn a_program_that_was_interrupted_had_failed() {
        let stopped = |stops: bool| {
            let (mut host, mut left) = (Quiet::default(), 7);
            let flag = host.stops.clone();
            let mut session = Session::new(&mut host, &quick(4, &[]));
            let case = measured(&mut session, case(), |_| {
                left -= 1;
                flag.store(stops && left == 0, Relaxed);
                let ended = || Error::Unsupported("signal: 2 (SIGINT)".to_owned());
                (left > 0).then(|| vec![1.0; 2]).ok_or_else(ended)
            });
            (case.map(|case| case.rivals[0].measured(0).len()), session.failed.is_some())
        };
        assert_eq!(stopped(true), (Some(2), false));
        assert!(stopped(false).1);
    }

    /// A stop that came long after a failure hid it.
    #[test]
    fn what_had_failed_before_a_stop_is_reported() {
        let (mut host, mut done) = (Quiet::default(), 0);
        let flag = host.stops.clone();
        let mut session = Session::new(&mut host, &quick(4, &[]));
        let case = measured(&mut session, case(), |_| {
            done += 1;
            flag.store(done == 7, Relaxed);
            let fails = || Error::Unsupported("exit status: 1".to_owned());
            (done != 2).then(|| vec![1.0; 2]).ok_or_else(fails)
        });
        assert!(case.is_some() && session.failed.is_some());
    }

    #[test]
    fn where_there_are_no_libraries_the_message_says_how_to_come_by_them() {
        let Err(Error::Unsupported(message)) = ours(Path::new("/nowhere")) else {
            panic!("found libraries in /nowhere");
        };
        assert!(message.contains("cargo xtask compat"), "{message}");
    }
}
