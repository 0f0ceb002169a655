//! What things cost on the simulated machine: a preset, what is measured here, or a file that
//! `rcu costs --json` wrote.

use std::path::Path;

use bench::costs::duration;
use bench::slices::Missing;
use serde_json::Value;
use simulate::cost::{Costs, Measured, MeasuredKernel, Picos};

use crate::costs::measure;
use crate::exit::{Exit, Failure, Result};
use crate::machine::Machine;
use crate::output::{Output, SchemaId};

/// Costs, and what they are called in tables.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) costs: Costs,
}

/// The short name of a preset, and its own.
const ALIAS: (&str, &str) = ("p3", "p3-xeon-700mhz");

/// The name that has the costs of this machine measured.
pub(super) const MEASURED: &str = "measured";

/// The costs of this name.
///
/// # Errors
/// If it is no preset, nor a file with the costs of a machine; or measuring was interrupted.
pub(super) fn by_name(name: &str, output: &mut Output) -> Result<Named> {
    let known = if name == ALIAS.0 { ALIAS.1 } else { name };
    if let Some(costs) = Costs::named(known) {
        return Ok(Named { name: known.to_owned(), costs });
    }
    let costs = match name {
        MEASURED => measure_here(true, Needs::Memory, output)?,
        _ => from_file(Path::new(name))?,
    };
    Ok(Named { name: name.to_owned(), costs: Costs::measured(&costs) })
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
    let row = |id: &str| costs.rows.iter().find(|row| row.id == id);
    let ns = |id: &str| row(id)?.ns.map(|ns| ns.median);
    of_rows(ns, needs).map_err(|id| without(id, row(id).and_then(|row| row.missing.as_ref())))
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
    Failure::Because(exit, format!("the model needs {id}, {what}"))
}

fn from_file(path: &Path) -> Result<Measured> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        if error.kind() == std::io::ErrorKind::InvalidData {
            return Failure::usage(format!(
                "{shown} is not text; --costs takes a file that `rcu costs --json FILE` wrote"
            ));
        }
        if error.kind() != std::io::ErrorKind::NotFound {
            return Failure::file("read", path, error);
        }
        Failure::usage(format!(
            "no costs are called {shown}, and there is no such file ({error}); there are {}, {}, \
             {MEASURED}",
            Costs::NAMES.join(", "),
            ALIAS.0
        ))
    })?;
    let wrong = |reason: String| Failure::usage(format!("{shown}: {reason}"));
    let no_costs = |reason: &str| wrong(format!("not the JSON of `rcu costs`: {reason}"));
    let document: Value =
        serde_json::from_str(&text).map_err(|error| no_costs(&error.to_string()))?;
    let Some(rows) = document["costs"]["rows"].as_array() else {
        return Err(no_costs("it has no rows of costs"));
    };
    let SchemaId(schema, version) = crate::costs::SCHEMA;
    if document["schema"] != schema || document["version"] != version {
        return Err(wrong(format!(
            "{} version {}, where {schema:?} version {version} is wanted",
            document["schema"], document["version"]
        )));
    }
    let ns = |id: &str| rows.iter().find(|row| row["id"] == id)?["ns"]["median"].as_f64();
    of_rows(ns, Needs::Memory).map_err(|id| {
        wrong(format!("{id} has no figure, or none of a cost of memory; a simulation needs it"))
    })
}

/// Puts the costs together from rows in nanoseconds.
///
/// # Errors
/// The row that is needed and is missing, or cannot be.
fn of_rows(ns: impl Fn(&str) -> Option<f64>, needs: Needs) -> Result<Measured, &'static str> {
    let kernel = match (kernel_of(&ns), needs) {
        (Err(id), Needs::Kernel) => return Err(id),
        (kernel, _) => kernel.ok(),
    };
    let picos = |id| picos(id, &ns);
    Ok(Measured {
        instruction: picos("instruction")?,
        hit: picos("l1_hit")?,
        atomic: picos("atomic_increment")?,
        atomic_transfer: picos("atomic_increment_cache_transfer")?,
        blind_swap_transfer: picos("cmpxchg_blind_cache_transfer")?,
        swap_transfer: picos("cmpxchg_cache_transfer_and_invalidate")?,
        lock: picos("cpu_local_lock")?,
        kernel,
    })
}

/// The same of the kernel.
///
/// # Errors
/// The first row that is missing, or cannot be.
fn kernel_of(ns: impl Fn(&str) -> Option<f64>) -> Result<MeasuredKernel, &'static str> {
    let picos = |id| picos(id, &ns);
    Ok(MeasuredKernel {
        membarrier: picos("membarrier")?,
        membarrier_beside_reader: picos("membarrier_beside_reader")?,
        interrupt: picos("interrupt")?,
        system_call: picos("system_call")?,
        pause: picos("pause")?,
        allocate: picos("allocate")?,
        switch: picos("switch")?,
        wake_up: picos("wake_up")?,
        wake_up_latency: picos("wake_up_latency")?,
        sleep_overrun: picos("sleep_overrun")?,
        thread_start: picos("thread_start")?,
    })
}

/// The figure of a row; its name where it has none that can be.
fn picos(id: &'static str, ns: impl Fn(&str) -> Option<f64>) -> Result<Picos, &'static str> {
    let ns = ns(id).filter(|ns| ns.is_finite() && (0.0..=1e8).contains(ns)).ok_or(id)?;
    Ok((ns * 1e3).round() as Picos)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: [(&str, f64); 18] = [
        ("instruction", 0.25),
        ("l1_hit", 1.5),
        ("atomic_increment", 6.0),
        ("atomic_increment_cache_transfer", 50.0),
        ("cmpxchg_blind_cache_transfer", 55.0),
        ("cmpxchg_cache_transfer_and_invalidate", 105.5),
        ("cpu_local_lock", 16.0),
        ("membarrier", 600.0),
        ("membarrier_beside_reader", 4_000.0),
        ("interrupt", 1_500.0),
        ("system_call", 120.0),
        ("pause", 40.0),
        ("allocate", 30.0),
        ("switch", 1_900.0),
        ("wake_up", 1_300.0),
        ("wake_up_latency", 5_000.0),
        ("sleep_overrun", 60_000.0),
        ("thread_start", 30_000.0),
    ];

    fn all(id: &str) -> Option<f64> {
        ROWS.iter().find(|(row, _)| *row == id).map(|(_, ns)| *ns)
    }

    #[test]
    fn nanoseconds_become_picoseconds() {
        let measured = of_rows(all, Needs::Memory).unwrap();
        assert_eq!((measured.instruction, measured.hit, measured.atomic), (250, 1_500, 6_000));
        let costs = Costs::measured(&measured);
        assert_eq!((costs.atomic_transfer, costs.lock), (50_000, 16_000));
        assert_eq!(costs.read_transfer, 50_500);
    }

    #[test]
    fn what_is_missing_of_memory_is_named_and_of_the_kernel_is_as_ever() {
        for (place, (missing, _)) in ROWS.into_iter().enumerate() {
            let without = of_rows(|id| all(id).filter(|_| id != missing), Needs::Memory);
            match place {
                0..7 => assert_eq!(without, Err(missing)),
                _ => {
                    assert!(without.is_ok_and(|measured| measured.kernel.is_none()), "{missing}");
                    let needed = of_rows(|id| all(id).filter(|_| id != missing), Needs::Kernel);
                    assert_eq!(needed, Err(missing));
                }
            }
        }
        assert_eq!(of_rows(|id| all(id).map(|_| f64::NAN), Needs::Memory), Err("instruction"));
    }

    #[test]
    fn a_file_is_read_and_other_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("costs.json");
        let row = |(id, ns): &(&str, f64)| {
            let ns = serde_json::json!({"median": ns, "low": 0, "high": 1});
            serde_json::json!({"id": id, "name": id, "ns": ns})
        };
        let rows: Vec<_> = ROWS.iter().map(row).collect();
        let mut document = serde_json::json!({
            "schema": "quiescence/costs",
            "version": 1,
            "interrupted": false,
            "costs": {"rows": rows},
        });
        std::fs::write(&path, document.to_string()).unwrap();
        assert_eq!(from_file(&path).unwrap(), of_rows(all, Needs::Memory).unwrap());
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
        let lacks_kernel = |id: &str| all(id).filter(|_| id != "wake_up" && id != "thread_start");
        assert_eq!(kernel_of(lacks_kernel).unwrap_err(), "wake_up");
        let exit = |why: Missing| without("wake_up", Some(&why)).exit();
        assert_eq!(exit(Missing::NoTime), Exit::Noisy);
        assert_eq!(exit(Missing::Unsteady { between: [1.0, 2.0] }), Exit::Noisy);
        assert_eq!(exit(Missing::NeedsCpus(2)), Exit::Unsupported);
        assert_eq!(exit(Missing::NoMembarrier), Exit::Unsupported);
        let told = without("wake_up", Some(&Missing::NoTime)).to_string();
        assert!(told.contains("wake_up, which has no figure: time ran out before"), "{told}");
    }
}
