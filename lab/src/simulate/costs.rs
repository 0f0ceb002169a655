//! What things cost on the simulated machine: a preset, what is measured here, or a file that
//! `rcu costs --json` wrote.

use std::path::Path;

use bench::costs::duration;
use bench::slices::Missing;
use serde::Deserialize;
use serde_json::Value;
use simulate::cost::{Costs, Measured, MeasuredKernel, Picos};

use crate::costs::{SCHEMA, measure};
use crate::exit::{Exit, Failure, Result};
use crate::machine::Machine;
use crate::output::Output;

/// The short name of a preset, and its own.
const ALIAS: (&str, &str) = ("p3", "p3-xeon-700mhz");

/// The name that has the costs of this machine measured.
pub(super) const MEASURED: &str = "measured";

/// The costs of this name, and what they are called in tables.
///
/// # Errors
/// If it is no preset, nor a file with the costs of a machine; or measuring was interrupted.
pub(super) fn by_name(name: &str, output: &mut Output) -> Result<(String, Costs)> {
    let known = if name == ALIAS.0 { ALIAS.1 } else { name };
    if let Some(costs) = Costs::named(known) {
        return Ok((known.to_owned(), costs));
    }
    let costs = match name {
        MEASURED => measure_here(true, Needs::Memory, output)?,
        _ => from_file(Path::new(name))?,
    };
    Ok((name.to_owned(), Costs::measured(&costs)))
}

/// What of a machine a model cannot do without.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Needs {
    /// What its memory costs.
    Memory,
    /// What its kernel costs as well.
    Kernel,
}

/// Measures this machine.
///
/// # Errors
/// If it lacks what a figure that is needed is measured with, or was too busy to measure it; or the
/// run was interrupted.
pub(super) fn measure_here(quick: bool, needs: Needs, output: &mut Output) -> Result<Measured> {
    let machine = Machine::detect();
    output.progress.begin(duration(quick));
    let costs = measure(&machine, (quick, false), output);
    output.progress.end();
    if output.must_stop() {
        return Err(output.stopped());
    }
    let rows = costs.rows.iter().map(|row| (row.id, row.ns.map(|ns| ns.median)));
    of_rows(rows, needs).map_err(|id| {
        let row = costs.rows.iter().find(|row| row.id == id);
        without(&id, row.and_then(|row| row.missing.as_ref()))
    })
}

/// That this figure is needed and was not measured, and why not.
fn without(id: &str, why: Option<&Missing>) -> Failure {
    let (exit, what) = match why {
        Some(why) if why.is_of_the_run() => (
            Exit::Noisy,
            format!("which has no figure: {why}; run it again when the machine is calm"),
        ),
        Some(why) => (Exit::Unsupported, format!("which has no figure: {why}")),
        None => (Exit::Unsupported, "and its figure is not plausible".to_owned()),
    };
    Failure::because(exit, format!("the model needs {id}, {what}"))
}

fn from_file(path: &Path) -> Result<Measured> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let names = Costs::NAMES.join(", ");
        Failure::usage(format!(
            "no costs are called {shown}, and it is no file of text ({error}): there are {names}, \
             {}, {MEASURED}, and what `rcu costs --json FILE` wrote",
            ALIAS.0
        ))
    })?;
    let wrong = |reason: String| Failure::usage(format!("{shown}: {reason}"));
    let document: Value = SCHEMA
        .read(&text)
        .map_err(|reason| wrong(format!("not the JSON of `rcu costs`: {reason}")))?;
    let rows = document["costs"]["rows"].as_array().into_iter().flatten();
    let rows = rows.filter_map(|row| Some((row["id"].as_str()?, row["ns"]["median"].as_f64())));
    of_rows(rows, Needs::Memory).map_err(|id| {
        wrong(format!("{id} has no figure, or none of a cost of memory; a simulation needs it"))
    })
}

/// Puts the costs together from rows in nanoseconds.
///
/// # Errors
/// The first row that is needed and is missing, or cannot be.
fn of_rows<'r>(
    rows: impl Iterator<Item = (&'r str, Option<f64>)>,
    needs: Needs,
) -> Result<Measured, String> {
    let known = rows.filter_map(|(id, ns)| {
        let ns = ns.filter(|ns| ns.is_finite() && (0.0..=1e8).contains(ns))?;
        Some((id.to_owned(), Value::from((ns * 1e3).round() as Picos)))
    });
    let known: Value = known.collect();
    // The error is that of serde: "missing field `l1_hit`".
    let missing = |error: serde_json::Error| {
        error.to_string().split('`').nth(1).unwrap_or_default().to_owned()
    };
    let kernel = match (MeasuredKernel::deserialize(&known).map_err(missing), needs) {
        (Err(id), Needs::Kernel) => return Err(id),
        (kernel, _) => kernel.ok(),
    };
    Ok(Measured { kernel, ..Measured::deserialize(&known).map_err(missing)? })
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    /// What `rcu costs --json` writes, of a machine that is made up.
    static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
        serde_json::from_str(include_str!("../../tests/costs.json")).expect("a document")
    });

    /// Its rows, without one.
    fn rows_without(absent: &str) -> impl Iterator<Item = (&'static str, Option<f64>)> {
        let rows = DOCUMENT["costs"]["rows"].as_array().expect("a list").iter();
        let rows =
            rows.map(|row| (row["id"].as_str().expect("a name"), row["ns"]["median"].as_f64()));
        rows.filter(move |(id, _)| *id != absent)
    }

    #[test]
    fn what_is_missing_of_memory_is_named_and_of_the_kernel_is_as_ever() {
        for (place, (missing, _)) in rows_without("").enumerate() {
            let without = of_rows(rows_without(missing), Needs::Memory);
            match place {
                0..7 => assert_eq!(without, Err(missing.to_owned())),
                _ => {
                    assert!(without.is_ok_and(|measured| measured.kernel.is_none()), "{missing}");
                    let needed = of_rows(rows_without(missing), Needs::Kernel);
                    assert_eq!(needed, Err(missing.to_owned()));
                }
            }
        }
        let no_number = rows_without("").map(|(id, _)| (id, Some(f64::NAN)));
        assert_eq!(of_rows(no_number, Needs::Memory), Err("instruction".to_owned()));
    }

    #[test]
    fn a_file_is_read_and_other_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("costs.json");
        let mut document = DOCUMENT.clone();
        std::fs::write(&path, document.to_string()).unwrap();
        assert_eq!(from_file(&path).unwrap(), of_rows(rows_without(""), Needs::Memory).unwrap());
        document["costs"]["rows"][0]["ns"]["median"] = "0.25".into();
        let words = document.to_string();
        for (text, expected) in [
            (&*words, "instruction has no figure"),
            ("{}", "not the JSON of `rcu costs`"),
            (r#"{"schema": "quiescence/bench", "version": 1, "costs": {"rows": []}}"#, "is wanted"),
            (
                r#"{"schema": "quiescence/costs", "version": 1, "costs": {"rows": []}}"#,
                "instruction has no figure",
            ),
        ] {
            std::fs::write(&path, text).unwrap();
            let refused = from_file(&path).unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
        }
        let refused = from_file(Path::new("abacus")).unwrap_err().to_string();
        assert!(refused.contains("abacus") && refused.contains("modern"), "{refused}");
    }

    #[test]
    fn a_figure_that_noise_took_is_no_lack_of_the_machine() {
        let lacks_kernel = rows_without("wake_up").filter(|(id, _)| *id != "thread_start");
        assert_eq!(of_rows(lacks_kernel, Needs::Kernel), Err("wake_up".to_owned()));
        let exit = |why: Missing| without("wake_up", Some(&why)).exit;
        assert_eq!(exit(Missing::NoTime), Exit::Noisy);
        assert_eq!(exit(Missing::Unsteady { between: [1.0, 2.0] }), Exit::Noisy);
        assert_eq!(exit(Missing::NeedsCpus(2)), Exit::Unsupported);
        assert_eq!(exit(Missing::NoMembarrier), Exit::Unsupported);
        let told = without("wake_up", Some(&Missing::NoTime)).to_string();
        assert!(told.contains("wake_up, which has no figure: time ran out before"), "{told}");
    }
}
