//! Processes: this command once more, as a child that is stopped and continued while it defers, and
//! as one that forks. Each must end clean.

use std::env;
use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use quiescence::tuning::Engine;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{Operation, ThreadContext};
use crate::kinds::FaultKind;
use crate::random::Random;

/// What a child is about.
const ROLES: [&str; 4] =
    ["floods,limits", "forks", "sleepable,rseq-read,hazards,tools", "quiet,churn,stalls"];

/// How long a child runs.
const SECONDS: u32 = 2;

/// Between two looks at a child.
const LOOK: Duration = Duration::from_millis(20);

/// Looks after which it should have ended, its own patience with threads that are stuck included.
const LOOKS_MAX: u32 = (SECONDS + 40) * 50;

/// How seldom it is stopped, at a look; and for how long at most.
const STOP_ONE_IN: u64 = 16;
const STOP_MAX_US: u64 = 100_000;

/// Has one child after the other until the run is over, with this engine, and without this step.
pub(crate) fn run(engine: Engine, mutant: Option<&str>, context: &ThreadContext, random: &Random) {
    for role in ROLES.iter().cycle() {
        if context.is_over() {
            return;
        }
        context.begin(Operation::ChildStart);
        let fault = |trouble: String| {
            let detail = || format!("a child process ({role}): {trouble}");
            context.fault(FaultKind::Process, "", detail);
        };
        match start(engine, mutant, role, random.next()) {
            Ok(child) => {
                context.did(Operation::ChildStart);
                watch(context, child, random).into_iter().for_each(fault);
            }
            // Nor would the next one.
            Err(error) => return fault(format!("did not start: {error}")),
        }
    }
}

fn start(engine: Engine, mutant: Option<&str>, role: &str, seed: u64) -> io::Result<Child> {
    let mut command = Command::new(env::current_exe()?);
    command.args(crate::subcommand()).args(["--child", "--only", role, "--json", "-"]);
    command.arg("--seconds").arg(SECONDS.to_string());
    command.arg("--seed").arg(seed.to_string());
    command.arg("--engine").arg(engine.name());
    if let Some(mutant) = mutant {
        command.args(["--mutant", mutant]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()
}

/// Waits for a child, and stops and continues it meanwhile. Returns what is wrong with it.
fn watch(context: &ThreadContext, mut child: Child, random: &Random) -> Option<String> {
    let pid = Pid::from_child(&child);
    for _ in 0..LOOKS_MAX {
        context.begin(Operation::Child);
        match child.try_wait() {
            Ok(Some(status)) => {
                context.did(Operation::Child);
                let mut text = String::new();
                let read = child.stdout.take().map(|mut stdout| stdout.read_to_string(&mut text));
                return match serde_json::from_str(&text) {
                    Ok(report) => trouble_in(&report),
                    Err(_) => Some(format!("{status}, without a report ({read:?})")),
                };
            }
            Ok(None) => {}
            Err(error) => return Some(format!("cannot be waited for: {error}")),
        }
        if random.one_in(STOP_ONE_IN) {
            context.begin(Operation::Stopped);
            // It may have ended by now, which the next look finds.
            let stopped = kill_process(pid, Signal::STOP);
            thread::sleep(Duration::from_micros(random.below(STOP_MAX_US)));
            let continued = kill_process(pid, Signal::CONT);
            context.ledger.did(Operation::Stopped, u64::from(stopped.is_ok() && continued.is_ok()));
        }
        thread::sleep(LOOK);
    }
    let killed = child.kill().and_then(|()| child.wait());
    Some(format!("did not end in time, and was killed ({killed:?})"))
}

/// What a child's report says is wrong, whether or not a step was removed.
fn trouble_in(report: &Value) -> Option<String> {
    match report["verdict"].as_str() {
        Some("clean" | "missed" | "interrupted") => None,
        _ => {
            let first = &report["first_fault"];
            let text = |field: &str| first[field].as_str().unwrap_or("unknown").to_owned();
            Some(format!("{}: {}", text("kind"), text("detail")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_childs_fault_is_told_and_a_clean_one_is_not() {
        let fault = r#"{"verdict": "caught", "first_fault": {"kind": "stuck", "detail": "x"}}"#;
        let report = |text| serde_json::from_str(text).expect("JSON");
        assert_eq!(trouble_in(&report(fault)).as_deref(), Some("stuck: x"));
        assert_eq!(trouble_in(&report(r#"{"verdict": "clean", "first_fault": null}"#)), None);
        assert!(trouble_in(&report("{}")).is_some(), "no verdict is none");
    }
}
