//! Processes: this command once more, as a child that is stopped and continued while it defers, and
//! as one that forks. Each must end clean.

use std::env;
use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};
use serde::Deserialize;
use serde_json::Value;

use super::{Deferral, Operation, ThreadContext};
use crate::kinds::FaultKind;
use crate::report::{Setup, Verdict};

/// What a child is about.
const ROLES: [&str; 4] =
    ["floods,limits", "forks", "sleepable,rseq-read,hazards,tools", "quiet,churn,stalls"];

/// How long a child runs.
const SECONDS: u64 = 2;

/// Between two looks at a child.
const LOOK: Duration = Duration::from_millis(5);

/// When it should have ended, its own patience with threads that are stuck included.
const PATIENCE: Duration = Duration::from_secs(SECONDS + 40);

/// What is wrong with one that did not.
pub(super) const LATE: &str = "did not end in time, and was killed";

/// How seldom it is stopped, at a look; and for how long at most.
const STOP_ONE_IN: u64 = 64;
const STOP_MAX_US: u64 = 100_000;

/// Has one child after the other until the run is over, with its engine, and without its step.
pub(crate) fn run(own: &Deferral, context: &ThreadContext) {
    for role in ROLES.iter().cycle() {
        if context.is_over() {
            return;
        }
        context.begin(Operation::ChildStart);
        let fault = |trouble: String| {
            let detail = || format!("a child process ({role}): {trouble}");
            context.fault(FaultKind::Process, "", detail);
        };
        match start(&own.setup, role, context.next()) {
            Ok(child) => {
                context.did(Operation::ChildStart);
                watch(context, child).into_iter().for_each(fault);
            }
            // Nor would the next one.
            Err(error) => return fault(format!("did not start: {error}")),
        }
    }
}

fn start(setup: &Setup, role: &str, seed: u64) -> io::Result<Child> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["--child", "--only", role, "--json", "-"]);
    command.arg("--seconds").arg(SECONDS.to_string());
    command.arg("--seed").arg(seed.to_string());
    command.arg("--engine").arg(setup.engine.name());
    if let Some(mutant) = setup.mutant {
        command.args(["--mutant", mutant]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()
}

/// Waits for a child, and stops and continues it meanwhile. Returns what is wrong with it.
fn watch(context: &ThreadContext, child: Child) -> Option<String> {
    let pid = Pid::from_child(&child);
    let status = wait_for(context, pid, Operation::Child, PATIENCE, || {
        if context.one_in(STOP_ONE_IN) {
            context.begin(Operation::Stopped);
            // It may have ended by now, which the next look finds.
            let stopped = kill_process(pid, Signal::STOP);
            context.sleep(STOP_MAX_US);
            let continued = kill_process(pid, Signal::CONT);
            let is_done = stopped.is_ok() && continued.is_ok();
            context.ledger.operations.add(Operation::Stopped, u64::from(is_done));
        }
    });
    let Some(status) = status else { return Some(LATE.to_owned()) };
    context.did(Operation::Child);
    let mut text = String::new();
    let read = child.stdout.map(|mut stdout| stdout.read_to_string(&mut text));
    match serde_json::from_str(&text) {
        Ok(report) => trouble_in(&report, status.exit_status()),
        Err(_) => Some(format!("{status:?}, without a report ({read:?})")),
    }
}

/// Waits for a child to end, and does something between two looks at it. If it does not end in
/// time it is killed.
pub(super) fn wait_for(
    context: &ThreadContext,
    pid: Pid,
    operation: Operation,
    patience: Duration,
    mut meanwhile: impl FnMut(),
) -> Option<WaitStatus> {
    let wait = |options| waitpid(Some(pid), options).expect("it is a child of ours");
    // Looks, not time: while the machine stands still, so do both.
    for _ in 0..patience.as_millis() / LOOK.as_millis() {
        context.begin(operation);
        if let Some((_, status)) = wait(WaitOptions::NOHANG) {
            return Some(status);
        }
        meanwhile();
        thread::sleep(LOOK);
    }
    kill_process(pid, Signal::KILL).expect("it is a child of ours");
    wait(WaitOptions::empty());
    None
}

/// What a child's report says is wrong, whether or not a step was removed; or its end, with this
/// code, after a report that is clean.
fn trouble_in(report: &Value, code: Option<i32>) -> Option<String> {
    let told = match Verdict::deserialize(&report["verdict"]) {
        Ok(told @ (Verdict::Clean | Verdict::Missed | Verdict::Interrupted)) => told.exit_code(),
        _ => {
            let first = &report["first_fault"];
            let text = |field: &str| first[field].as_str().unwrap_or("unknown").to_owned();
            return Some(format!("{}: {}", text("kind"), text("detail")));
        }
    };
    let ended = || format!("it ended with {code:?} and not with {told} after its report");
    (code != Some(told.into())).then(ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_childs_fault_is_told_and_a_clean_one_is_not() {
        let fault = r#"{"verdict": "caught", "first_fault": {"kind": "stuck", "detail": "x"}}"#;
        let trouble = |text, code| trouble_in(&serde_json::from_str(text).expect("JSON"), code);
        assert_eq!(trouble(fault, Some(0)).as_deref(), Some("stuck: x"));
        assert_eq!(trouble(r#"{"verdict": "clean", "first_fault": null}"#, Some(0)), None);
        assert_eq!(trouble(r#"{"verdict": "missed"}"#, Some(1)), None);
        assert!(trouble("{}", Some(0)).is_some(), "no verdict is none");
    }

    /// What a child does after its report is the library's end of the process.
    #[test]
    fn a_child_that_crashed_after_its_report_was_clean() {
        let clean = serde_json::json!({"verdict": "clean"});
        assert!(trouble_in(&clean, None).is_some(), "by a signal");
        assert!(trouble_in(&clean, Some(101)).is_some());
    }
}
