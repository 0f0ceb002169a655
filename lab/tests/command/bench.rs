//! `rcu bench srcu`, `percpu`, `cells`, `epoch`, `ids`, `map`, `tools` and `engines` as a user runs
//! them: tables, verdicts, JSON, exit codes.

use crate::common::schema::hold;
use crate::common::{rcu, told};
use std::process::Command;

use serde_json::Value;

/// Runs the benchmark in so many rounds; the document, and what was said about it.
fn document(args: &str, rounds: u32) -> (i32, Value, String) {
    document_of(rcu(["bench"].into_iter().chain(args.split_whitespace())), rounds)
}

fn document_of(mut command: Command, rounds: u32) -> (i32, Value, String) {
    command.args(["--quick", "--json", "-", "--rounds", &rounds.to_string()]);
    let (code, stdout, stderr) = told(&command.output().expect("the command starts"));
    let document = serde_json::from_str(&stdout).expect("nothing but JSON");
    hold(&document);
    (code, document, stderr)
}

/// Fails unless the document is of this benchmark, the first of these rivals is what the others are
/// compared with, and each case has them all. Returns its cases.
fn has_all<'d>(document: &'d Value, bench: &str, rivals: [&str; 2]) -> Vec<&'d str> {
    assert_eq!((&document["bench"], &document["base"]), (&bench.into(), &rivals[0].into()));
    for case in document["cases"].as_array().expect("a list") {
        assert_eq!(names(&case["rivals"], "name"), rivals);
    }
    names(&document["cases"], "id")
}

fn names<'v>(list: &'v Value, key: &str) -> Vec<&'v str> {
    let list = list.as_array().expect("a list");
    list.iter().map(|item| item[key].as_str().expect("a name")).collect()
}

#[test]
fn a_missed_aim_is_told_and_ends_a_run_badly_for_a_gate_alone() {
    let args = "percpu --case counter,lock --only quiescence,atomic-own,std-rwlock";
    let (code, json, _) = document(&format!("{args} --gate"), 3);
    assert_eq!(json["schema"], "quiescence/bench");
    assert_eq!((&json["bench"], &json["base"]), (&"percpu".into(), &"quiescence".into()));
    let cases = ["counter/1-thread", "counter/2-threads", "lock/1-thread", "lock/2-threads"];
    assert_eq!(names(&json["cases"], "id"), cases);
    assert_eq!(names(&json["cases"][0]["rivals"], "name"), ["quiescence", "atomic-own"]);
    assert_eq!(names(&json["cases"][2]["rivals"], "name"), ["quiescence", "std-rwlock"]);
    // Of the lock nothing is promised against what was measured.
    assert_eq!(names(&json["targets"], "case"), cases[..2]);
    let verdicts = names(&json["targets"], "verdict");
    let expected = match () {
        () if verdicts.contains(&"missed") => 1,
        () if verdicts.iter().any(|verdict| *verdict != "met") => 3,
        () => 0,
    };
    assert_eq!(code, expected, "{verdicts:?}");
}

#[test]
fn the_greatest_seed_overflowed() {
    for args in ["map --case get --keys 256 --only quiescence-copymap", "tools --case rcu"] {
        let (code, json, _) = document(&format!("{args} --seed {}", u64::MAX), 2);
        assert_eq!((code, json["seed"].as_u64()), (0, Some(u64::MAX)));
    }
}

#[test]
fn cells_are_measured_beside_their_rivals_and_judged() {
    let args = "cells --case load,garbage --only quiescence,arc-swap";
    let (code, document, _) = document(args, 3);
    assert_eq!(code, 0, "without --gate, whatever is missed: {:#}", document["targets"]);
    let cases = ["load/1-thread", "load/2-threads", "garbage/last-store"];
    assert_eq!(has_all(&document, "cells", ["quiescence", "arc-swap"]), cases);
    assert_eq!(names(&document["targets"], "case"), cases);
}

#[test]
fn maps_are_measured_on_the_keys_that_are_asked_for() {
    let args = "map --case get,churn,memory --keys 1000,2000 --threads 2,3 --reads 50 --only \
                quiescence-intrusive,dashmap";
    let (_, json, _) = document(args, 1);
    let ids = has_all(&json, "map", ["quiescence-intrusive", "dashmap"]);
    assert_eq!(ids.len(), 2 * 3 * 2 + 2, "{ids:?}");
    for id in ["get/1000/1-thread", "get/2000/3-threads", "churn-50/2000/1-thread", "memory/2000"] {
        assert!(ids.contains(&id), "{ids:?}");
    }
    let strings = "map --case get,zipf --strings --keys 1000 --threads 1 --reads 90 --only dashmap";
    let (_, json, _) = document(strings, 1);
    let zipf =
        ["get", "replace-90", "churn-90"].map(|mix| format!("zipf-{mix}-strings/1000/1-thread"));
    let ids = names(&json["cases"], "id");
    assert_eq!(
        (ids[0], &ids[1..]),
        ("get-strings/1000/1-thread", &zipf.each_ref().map(|id| &**id)[..])
    );
    let metrics = &json["cases"][3]["rivals"][0]["metrics"];
    assert_eq!(names(metrics, "name"), ["operations", "CPU", "p50", "p99", "p99.9"]);
}

#[test]
fn ids_and_the_epochs_are_measured_beside_those_of_others_and_reads_by_threads() {
    let of = |args: &str, bench: &str, rivals: [&str; 2]| {
        let (_, json, _) = document(&format!("{args} --only {}", rivals.join(",")), 1);
        has_all(&json, bench, rivals).join(" ")
    };
    let ids = of("ids --case few", "ids", ["quiescence-idmap", "dashmap"]);
    let all = "few/100/1-thread few/100/2-threads few/90/1-thread few/90/2-threads few/50/1-thread \
               few/50/2-threads";
    assert_eq!(ids, all);
    let ids = of("epoch", "epoch", ["quiescence-epoch-handle", "crossbeam-epoch"]);
    let all =
        "pin/1-thread pin/2-threads pin/nested retire/no-reader retire/1-reader tail/1-retirer";
    assert_eq!(ids, all);
    let ids = of("read --case threads", "read", ["quiescence", "arc-swap"]);
    assert_eq!(ids, "threads/1 threads/2 threads/4 threads/8");
}

#[test]
fn each_transformation_is_measured_before_and_after_and_compared_with_what_is_asked_for() {
    let (_, json, _) = document("tools --case rcu,publish --base after", 1);
    assert_eq!((&json["base"], &json["quick"]), (&"after".into(), &true.into()));
    assert_eq!(names(&json["cases"][0]["rivals"], "name"), ["before", "after"]);
    let ids = names(&json["cases"], "id");
    assert_eq!(ids.len(), 4, "{ids:?}");
    assert_eq!((ids[0], ids[2]), ("rcu/1-thread", "publish/1-thread"));
}

#[test]
fn the_portable_path_is_measured_when_it_is_asked_for_and_said_to_be() {
    let args = "bench srcu --case pair --only quiescence,quiescence-thread";
    let mut command = rcu(args.split(' '));
    command.env("QUIESCENCE_PERCPU", "portable");
    let (_, document, stderr) = document_of(command, 3);
    assert_eq!(document["per_cpu_path"], "portable");
    assert!(stderr.contains("portable"), "{stderr}");
    assert_eq!(names(&document["targets"], "case"), ["pair/1-thread", "pair/2-threads"]);
    for case in document["cases"].as_array().expect("a list") {
        for rival in case["rivals"].as_array().expect("a list") {
            let metric = &rival["metrics"][0];
            let rounds = metric["rounds"].as_array().expect("a list");
            // On a machine that does something else there may be too few.
            assert_eq!(rounds.is_empty(), metric["missing"].is_string(), "{rival}");
            assert!(rounds.iter().all(|ns| ns.as_f64() > Some(0.0)), "{rival}");
        }
    }
}

#[test]
fn a_reader_that_stays_is_waited_for_without_burning_the_cpu() {
    let (_, document, stderr) = document("srcu --case blocked --only quiescence", 1);
    // It takes two seconds at least, after which a file has a line of progress.
    let is_told = stderr.contains(" s left: ") || stderr.contains("longer than planned: ");
    assert!(is_told, "{stderr}");
    let metrics = &document["cases"][0]["rivals"][0]["metrics"];
    assert_eq!(names(metrics, "name"), ["CPU", "stretch", "sleeps", "answer"]);
    let sleeps = metrics[2]["spread"]["median"].as_f64();
    // Or the kernel does not say.
    assert!(sleeps.is_none_or(|sleeps| sleeps > 0.0), "{metrics:#}");
    let targets = ["blocked/1-reader", "blocked/1-reader"];
    assert_eq!(names(&document["targets"], "case"), targets);
}

#[test]
fn engines_are_measured_on_the_tree_and_in_the_rounds_that_are_asked_for() {
    let args = "engines --case work,latency --only poll,tick --tree . --quiescent-every 400";
    let (code, document, stderr) = document(args, 3);
    assert_eq!(code, 0, "nothing is promised of engines");
    assert_eq!((&document["version"], &document["base"]), (&3.into(), &"tick".into()));
    assert!(stderr.contains("every 400 look-ups"), "{stderr}");
    let cases = document["cases"].as_array().expect("a list");
    assert_eq!(names(&document["cases"], "id"), ["engines/work", "engines/latency"]);
    for (case, metrics) in cases.iter().zip([
        &["iteration", "CPU each", "CPU", "grace periods"][..],
        &["callback p50", "callback p99", "waiter p50"],
    ]) {
        assert_eq!(names(&case["rivals"], "name"), ["poll", "tick"]);
        let [poll, tick] = [0, 1].map(|rival| &case["rivals"][rival]["metrics"]);
        assert_eq!(names(poll, "name"), metrics);
        let [few, many] = [poll, tick].map(|of| of[0]["rounds"].as_array().expect("a list").len());
        let is_judged = case["id"] == "engines/work";
        let all = if is_judged { 4 * 3 } else { 3 };
        // On a machine that does something else there may be too few.
        assert!(few.max(many) <= all && (is_judged || few.min(many) == all), "{few}, {many}");
    }
}
