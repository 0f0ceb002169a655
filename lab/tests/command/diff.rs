//! `rcu diff`: profiles of other programs, loads that are sampled here, pages.

use std::io::Write;
use std::process::Stdio;

use crate::common::{documented, expect_code, fails, file, json, of_mode, rcu, refused, told};

const BEFORE: &str = "main;read 60\nmain;lock 40\n";
const AFTER: &str = "main;read 60\nmain;lock;wait 140\n";

#[test]
fn files_are_compared_for_a_unit_of_work() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("out.html");
    let (a, b) = (file(directory.path(), "a.txt", BEFORE), file(directory.path(), "b.txt", AFTER));
    let mut command = rcu(["diff", "--work-a", "100", "--work-b", "100"]);
    let (output, document) = documented(command.args([&a, &b]).arg("--html").arg(&page));
    let (stdout, _) = expect_code(&output, 0);
    assert_eq!(
        (&document["schema"], &document["scale"]),
        (&"quiescence/diff".into(), &"samples-per-unit".into())
    );
    let functions = document["functions"].as_array().unwrap();
    let names: Vec<_> = functions.iter().map(|each| each["function"].as_str().unwrap()).collect();
    assert_eq!((names[0], names[3]), ("wait", "lock"), "grew most, shrank most");
    assert_eq!((&functions[0]["after"], &functions[3]["before"]), (&1.4.into(), &0.4.into()));
    assert!(stdout.contains("wait") && stdout.contains("+1.40"), "{stdout}");
    assert!(!stdout.contains("read"), "what did not grow is not shown: {stdout}");
    let page = std::fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("<svg").count(), 2, "as wide as before, and as after");
    assert!(page.contains("wait: 0.00 before, 1.40 after"), "{page}");
    assert!(page.contains("Where this comes from") && page.contains("<dt>date</dt>"), "{page}");
    // Without units of work: shares.
    let mut command = rcu(["diff", "--within", "lock"]);
    let (stdout, _) = expect_code(&command.args([&a, &b]).output().unwrap(), 0);
    assert!(stdout.contains("per cent of all samples") && stdout.contains("+100 %"), "{stdout}");
}

#[test]
fn of_no_functions_a_table_without_lines_was_shown() {
    let directory = tempfile::tempdir().unwrap();
    let (a, b) = (file(directory.path(), "a.txt", BEFORE), file(directory.path(), "b.txt", AFTER));
    let output = rcu(["diff", "--top", "0"]).args([&a, &b]).output().unwrap();
    let (stdout, _) = expect_code(&output, 0);
    assert!(stdout.contains("per cent of all samples"), "{stdout}");
    assert!(!stdout.contains("with callees"), "{stdout}");
    assert!(!stdout.contains("No function costs more"), "some do: {stdout}");
}

#[test]
fn a_profile_may_come_out_of_a_pipe_and_be_as_deep_as_a_recursion() {
    let directory = tempfile::tempdir().unwrap();
    let a = file(directory.path(), "a.txt", BEFORE);
    let deep = format!("main{} 7\n", ";f;g".repeat(50_000));
    let page = directory.path().join("out.html");
    let mut command = rcu(["diff"]);
    command.arg(&a).arg("/dev/stdin").arg("--html").arg(&page).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(deep.as_bytes()).unwrap();
    let (stdout, _) = expect_code(&child.wait_with_output().unwrap(), 0);
    assert!(stdout.contains("+100 %"), "{stdout}");
    assert!(std::fs::read_to_string(page).unwrap().contains("main: 100 % before, 100 % after"));
}

#[test]
fn counts_that_are_none_or_too_large_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    for (counts, why) in [
        ("a 18446744073709551615\nb 1\n", "counts are too large"),
        ("a 18446744073709551615\na 1\nb 1\n", "counts are too large"),
        ("a 0\nb 0\n", "no samples"),
    ] {
        let path = file(directory.path(), "counts.txt", counts);
        refused(&["diff".as_ref(), path.as_os_str(), path.as_os_str()], why);
    }
}

/// The timer's signal works everywhere, also where perf is not permitted.
#[test]
fn loads_are_sampled_and_their_cost_is_shared_out() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out.json");
    let load = |rival: &str| format!("bench read --case read --rounds 60 --quick --only {rival}");
    let mut command = rcu(["diff", "--sampler", "signal"]);
    command.args([load("quiescence"), load("std-rwlock")]).arg("--json").arg(&out);
    let (code, _, stderr) = told(&command.output().unwrap());
    if code == 4 {
        // Tests of the workspace have the feature; those of this package alone have not.
        assert!(stderr.contains("--features sampling"), "{stderr}");
        return;
    }
    assert_eq!(code, 0, "{stderr}");
    let document = json(&out);
    assert_eq!(document["scale"], "nanoseconds-per-operation");
    for (side, number) in [("a", "before"), ("b", "after")] {
        let cost = document[side]["unit_cost"].as_f64().unwrap();
        assert!(document[side]["samples"].as_u64().unwrap() > 0, "{document}");
        let functions = document["functions"].as_array().unwrap();
        let sum: f64 = functions.iter().map(|each| each[number].as_f64().unwrap()).sum();
        assert!((sum / cost - 1.0).abs() < 1e-6, "{sum} of {cost}");
    }
}

/// What the signal did to the load was told, as if the words were wrong.
#[test]
fn a_load_that_ctrl_c_ended_was_called_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let text =
        "#!/bin/sh\n[ \"$1\" = --version ] && echo rcu 0.1.0 && exit\nkill -INT $PPID\nexit 1\n";
    let program = of_mode(directory.path(), "program", 0o755, text);
    let mut command = rcu(["diff", "--sampler", "signal", "bench read", "bench read"]);
    fails(&command.arg("--program-a").arg(program).output().unwrap(), 130, "interrupted before");
}
