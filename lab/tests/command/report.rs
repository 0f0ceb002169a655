//! What a run tells: on the terminal, as JSON, as a page; and when it is stopped.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::common::schema::hold;
use crate::common::{TINY, advised, documented, expect_code, file, json, rcu, tiny, tiny_of};
use bench::advise::{Design, KeyIndex, Workload};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn names(designs: &Value) -> BTreeSet<&str> {
    designs.as_array().unwrap().iter().map(|design| design["name"].as_str().unwrap()).collect()
}

/// On a busy machine time may be up before every setting was tried.
fn is_cut_short(report: &Value) -> bool {
    report["cut_short"].as_bool().unwrap()
}

/// Every leaf of the kind's tree has a figure or is undecided: by the ranking, if it and the design
/// beside it are there.
fn has_every_leaf(report: &Value) {
    let tree = bench::advise::tree(report["workload"]["kind"].as_str().unwrap());
    let expected: Vec<&str> = tree.iter().flat_map(|tree| tree.leaves.keys()).copied().collect();
    let leaves = report["leaves"].as_array().unwrap();
    let found: Vec<&str> = leaves.iter().map(|leaf| leaf["leaf"].as_str().unwrap()).collect();
    assert_eq!(found, expected);
    let ranked = names(&report["designs"]);
    for leaf in leaves {
        let is_ranked =
            ["leaf", "beside"].map(|name| ranked.contains(leaf[name].as_str().unwrap()));
        let figure = &leaf["figure"];
        assert_eq!(figure.is_null(), leaf["undecided"].is_string(), "{leaf}");
        assert_eq!(leaf["measured_by"].is_null(), is_ranked == [true; 2], "{leaf}");
        if !figure.is_null() {
            let times = |end: &str| figure["times_as_fast"][end].as_f64().unwrap();
            assert!(figure["ns_per_operation"].as_f64().unwrap() > 0.0, "{leaf}");
            assert!(times("low") <= times("median") && times("median") <= times("high"), "{leaf}");
        }
    }
}

/// What is run for this workload, as a document has it.
fn measured(workload: &Value) -> Workload {
    let (has_limit, is_exact) = (!workload["limit"].is_null(), workload["exact"] == true);
    match workload["kind"].as_str().unwrap() {
        "table" if workload["churn_percent"].as_f64() > Some(0.0) => Workload::Churn,
        "table" => Workload::Table,
        "config" | "reference" => Workload::Config,
        "counter" if has_limit => Workload::LimitCounter,
        "counter" if is_exact => Workload::ExactCounter,
        "counter" => Workload::Counter,
        "queue" => Workload::Queue,
        "ids" => Workload::Ids,
        other => panic!("{other} is no kind"),
    }
}

/// Each workload that is shipped, and those of which there is none.
#[test]
fn json_on_standard_output_is_alone_there_and_has_every_design() {
    let shipped = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../workloads")).unwrap();
    let shipped = shipped.map(|entry| {
        let path = entry.unwrap().path().into_os_string().into_string().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with('#'), "{path} says nothing about itself");
        let kind = text.lines().find_map(|line| line.strip_prefix("kind = \"")?.strip_suffix('"'));
        (kind.expect("it has a kind").to_owned(), vec!["--workload".to_owned(), path])
    });
    let others = ["table", "counter --exact", "reference"].map(|words| {
        let words: Vec<String> = format!("--kind {words}").split(' ').map(str::to_owned).collect();
        (words[1].clone(), words)
    });
    let (mut count, mut run) = (0, BTreeSet::new());
    for (kind, words) in shipped.chain(others) {
        let words: Vec<&str> = words.iter().map(String::as_str).chain(["--json", "-"]).collect();
        let has_keys = ["table", "ids"].contains(&&*kind);
        let (stdout, is_noisy) = advised(&tiny_of(has_keys, &words).output().unwrap());
        let report: Value = serde_json::from_str(&stdout).expect("nothing but JSON");
        hold(&report);
        has_every_design(&report, is_noisy);
        assert_eq!(report["workload"]["kind"], kind);
        count += 1;
        run.insert(format!("{:?}", measured(&report["workload"])));
    }
    assert!(count >= 6 + 3, "{count} workloads");
    assert_eq!(run, Workload::ALL.iter().map(|one| format!("{one:?}")).collect());
}

/// A document of `rcu advise`, which was too noisy for advice or was not.
fn has_every_design(report: &Value, is_noisy: bool) {
    let (workload, kind) = (measured(&report["workload"]), report["workload"]["kind"].as_str());
    assert_eq!((&report["schema"], &report["version"]), (&"quiescence/advise".into(), &2.into()));
    let value_bytes = report["workload"]["value_bytes"].as_u64().unwrap() as usize;
    let fits = |design: &&Design| design.value_bytes_max.is_none_or(|most| value_bytes <= most);
    let designs = bench::advise::designs(workload).iter().filter(fits);
    let expected: BTreeSet<&str> = designs.clone().map(|design| design.name).collect();
    let ranked = names(&report["designs"]);
    // On a machine that does something else some may have no figure.
    assert_eq!(&ranked | &names(&report["unranked"]), expected);
    let has_tree = [Some("counter"), Some("reference")].contains(&kind);
    assert_eq!(report["decision"].is_null(), !has_tree);
    has_every_leaf(report);
    let program = report["program"].as_str();
    assert_eq!(program.is_some_and(|text| text.contains("fn main()")), !is_noisy);
    assert_eq!(report["too_noisy"].is_null(), !is_noisy);
    let disclosed = report["disclosures"].to_string();
    // It is said of those that are ranked: on a busy machine that may be none.
    let mut fixed = designs.filter(|design| design.index == Some(KeyIndex::Fixed));
    assert_eq!(fixed.clone().count() > 0, workload == Workload::Table);
    assert_eq!(disclosed.contains("fixed index"), fixed.any(|one| ranked.contains(one.name)));
    assert_eq!(disclosed.contains("Left out: mutex-per-value"), workload == Workload::Churn);
    assert_eq!((&report["checksum_errors"], &report["interrupted"]), (&0.into(), &false.into()));
    for design in report["designs"].as_array().unwrap() {
        let throughput = &design["operations_per_second"];
        assert!(throughput["high"].as_f64() >= throughput["median"].as_f64(), "{design}");
    }
    if let Some(first) = report["designs"].as_array().unwrap().first() {
        assert!(first["operations_per_second"]["high"].as_f64().unwrap() > 0.0);
        assert_eq!(first["rank"], 1);
    }
    assert!(!report["recommendation"].as_array().unwrap().is_empty());
}

#[test]
fn a_whole_run_has_costs_a_ranking_sweeps_and_a_recommendation() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("page.html");
    let (output, report) = documented(rcu(TINY).args(["--quick", "--html"]).arg(&path));
    let (stdout, is_noisy) = advised(&output);
    has_whole_page(&std::fs::read_to_string(path).unwrap(), &report);
    assert_eq!(report["sweeps"].as_array().unwrap().len(), usize::from(!is_noisy));
    let stderr = String::from_utf8(output.stderr).unwrap();
    for expected in
        ["Machine", "2005", "Workload: built-in", "This run was ", "Ranking", "Recommendation"]
    {
        assert!(stdout.contains(expected), "{expected} is missing:\n{stdout}");
    }
    assert!(!(stdout.clone() + &stderr).contains('\u{1b}'), "escape codes in a pipe:\n{stdout}");
    assert!(!stderr.contains(['\r', '█', '░']), "a progress bar in a pipe: {stderr}");
    assert_eq!(report["costs"]["rows"][0]["id"], "instruction");
    if is_noisy || is_cut_short(&report) {
        return;
    }
    let points = report["sweeps"][0]["points"].as_array().unwrap();
    let shares: Vec<f64> = points.iter().map(|point| point["value"].as_f64().unwrap()).collect();
    assert_eq!(shares, [100.0, 99.9, 99.0, 90.0, 50.0]);
    // A design has no figure at a point where too few of its slices counted.
    let swept: BTreeSet<&str> = points.iter().flat_map(|point| names(&point["designs"])).collect();
    if swept.is_empty() {
        return;
    }
    assert!(stdout.contains("Where the answer flips"), "{stdout}");
    assert!(swept.len() >= 3 && swept.is_subset(&names(&report["designs"])), "{swept:?}");
}

#[test]
fn the_page_is_self_contained_and_light_and_dark() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("page.html");
    // Of a kind with few designs.
    let mut command = rcu(TINY.iter().chain(&["--kind", "ids", "--skip", "costs", "--html"]));
    let (output, report) = documented(command.arg(&path));
    let ((_, is_noisy), page) = (advised(&output), std::fs::read_to_string(path).unwrap());
    has_whole_page(&page, &report);
    let sweeps = report["sweeps"].as_array().unwrap();
    assert_eq!(sweeps.len(), if is_noisy { 0 } else { 2 });
    // Threads are swept, too, unless in a hurry.
    if let Some(sweep) = sweeps.get(1).filter(|_| !is_cut_short(&report)) {
        let own = report["workload"]["threads"].as_u64().unwrap();
        assert_eq!((&sweep["over"], sweep["own"].as_f64()), (&"threads".into(), Some(own as f64)));
        let points = sweep["points"].as_array().unwrap().iter();
        let counts: BTreeSet<u64> = points.map(|p| p["value"].as_f64().unwrap() as u64).collect();
        assert!(counts.contains(&1) && counts.contains(&own), "{counts:?}");
    }
}

/// Needs nothing else, and has each design and a plot of each sweep.
fn has_whole_page(page: &str, report: &Value) {
    // Of many without a figure for one reason the page has the number.
    for name in names(&report["designs"]) {
        assert!(page.contains(name), "{name} is missing");
    }
    for absent in ["http:", "https:", "<script", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(absent), "{absent} in a page that should need nothing");
    }
    assert!(page.contains("prefers-color-scheme: dark"));
    let sweeps = report["sweeps"].as_array().unwrap();
    // On a busy machine nothing may be known of a point, or of all of them.
    let is_known = |point: &Value| !point["designs"].as_array().unwrap().is_empty();
    let is_whole = |sweep: &&Value| sweep["points"].as_array().unwrap().len() > 1;
    let is_line = |sweep: &&Value| sweep["points"].as_array().unwrap().iter().any(is_known);
    assert!(sweeps.iter().all(|sweep| is_whole(&sweep)) || is_cut_short(report));
    let lines = sweeps.iter().filter(is_whole).filter(is_line).count();
    let says_values = page.contains(" million operations per second</title></circle>");
    assert!(says_values || lines == 0, "points say values");
    // Without a slice that counts there is nothing to draw, or no latency.
    let designs = report["designs"].as_array().unwrap();
    let latency = designs.iter().any(|design| !design["update_latency_ns"].is_null());
    let others = [!report["costs"].is_null(), !designs.is_empty(), latency].map(usize::from);
    let plots = others.iter().sum::<usize>() + lines;
    assert_eq!(page.matches("<svg").count(), plots, "costs, throughput, latency, and the sweeps");
    assert!(!page.contains("NaN") && !page.contains("inf\""), "a plot without a number");
}

#[test]
fn a_range_of_threads_draws_a_curve_of_every_design_for_each_load() {
    let directory = tempfile::tempdir().unwrap();
    let pictures = directory.path().join("p");
    let lines: String = (0..50).map(|line| format!("{line}\n")).collect();
    let keys = file(directory.path(), "keys", lines);
    let mut command = rcu("--threads 1..2 --run-ms 5 --rounds 3 --skip costs".split(' '));
    command.arg("--pictures").arg(&pictures).arg("--keys").arg(keys);
    let (output, document) = documented(&mut command);
    let (stdout, is_noisy) = advised(&output);
    assert!(document["sweeps"].as_array().unwrap().is_empty(), "curves are in their place");
    let curves = document["curves"].as_array().unwrap();
    if is_noisy {
        return assert!(curves.is_empty(), "{document}");
    }
    let loads: Vec<_> = curves.iter().map(|one| (&one["load"], &one["reads_percent"])).collect();
    let expected = [("read only".into(), 100.0.into()), ("mixed".into(), 90.0.into())];
    let expected: Vec<(&Value, &Value)> = expected.iter().map(|(a, b)| (a, b)).collect();
    assert_eq!(loads, expected);
    let all = bench::advise::designs(bench::advise::Workload::Table);
    for one in curves {
        let points = one["points"].as_array().unwrap();
        let threads: Vec<_> = points.iter().map(|point| point["value"].as_f64().unwrap()).collect();
        assert_eq!(threads, [1.0, 2.0]);
    }
    assert!(stdout.contains("Curves, read only: 100 % reads, 50 keys"), "{stdout}");
    let files: BTreeSet<_> = std::fs::read_dir(&pictures)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let by_threads: Vec<_> = files.iter().filter(|name| name.contains("by-threads")).collect();
    // On a busy machine a design, or all of them, may have no slice that counts.
    let has_figure = |point: &Value| !point["designs"].as_array().unwrap().is_empty();
    let has_line = |one: &&Value| one["points"].as_array().unwrap().iter().any(has_figure);
    assert_eq!(by_threads.len(), curves.iter().filter(has_line).count(), "{files:?}");
    for name in by_threads {
        let picture = std::fs::read_to_string(pictures.join(name)).unwrap();
        let has = |name: &str| picture.contains(&format!(">{name}</text>"));
        assert!(picture.starts_with("<svg") && all.iter().any(|one| has(one.name)), "{picture}");
    }
}

/// More threads than CPUs never have them at once.
#[test]
fn without_slices_that_count_all_are_ranked_by_cpu_time() {
    let cpus = std::thread::available_parallelism().unwrap().get();
    let threads = (cpus + 1).to_string();
    let (stdout, _) = advised(&tiny(&["--threads", &threads, "--json", "-"]).output().unwrap());
    let report: Value = serde_json::from_str(&stdout).unwrap();
    hold(&report);
    assert_eq!(report["ranked_by"], "cpu");
    assert!(report["simplicity"][0]["because"].is_string());
}

/// Runs for hours, unless something ends it.
fn endless(args: &[&str]) -> std::process::Command {
    let mut all = vec!["--minutes", "600", "--run-ms", "1000", "--skip", "costs"];
    all.extend(args);
    rcu(all)
}

#[test]
fn ctrl_c_writes_what_there_is_and_exits_130() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out.json");
    let page = directory.path().join("out.html");
    let files = ["--json", out.to_str().unwrap(), "--html", page.to_str().unwrap()];
    let mut child = endless(&[&files[..], &["--kind", "counter"]].concat())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().starts_with("Workload")).expect("a heading").unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    assert!(rest.iter().any(|line| line.starts_with("Interrupted")), "{rest:?}");
    // It was the noise that was blamed, and an idle machine that was asked for.
    assert!(rest.iter().any(|line| line.starts_with("Nothing is recommended: ")), "{rest:?}");
    let report = json(&out);
    hold(&report);
    assert_eq!(report["interrupted"], true);
    // Every leaf was prepared, and said to have too few slices.
    assert_eq!(report["leaves"].as_array().map(Vec::len), Some(0));
    assert_eq!(report["keys"]["count"], 100_000.min(report["keys"]["count"].as_u64().unwrap()));
    assert!(std::fs::read_to_string(page).unwrap().contains("Interrupted"));
}

#[test]
fn a_closed_pipe_is_no_error_and_ends_the_run() {
    let mut child = endless(&[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    // As `head` does: reads something, and goes.
    while first.trim().is_empty() {
        first.clear();
        assert_ne!(reader.read_line(&mut first).unwrap(), 0, "it ended before its first line");
    }
    drop(reader);
    let output = child.wait_with_output().unwrap();
    let (_, stderr) = expect_code(&output, 0);
    assert!(stderr.lines().all(|line| line.contains(" s left: ")), "{stderr}");
}

/// A document that no process read ended the command before the page was written.
#[test]
fn a_closed_pipe_does_not_cost_the_file_that_was_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let name = path.to_str().unwrap();
    for (words, expected) in [
        (&["--json", name][..], "\"designs\": ["),
        (&["--json", "-", "--html", name], "Where this comes from"),
    ] {
        let mut child = tiny(words).stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert!(matches!(child.wait().unwrap().code(), Some(0 | 3)), "too noisy is no fault");
        assert!(std::fs::read_to_string(&path).unwrap().contains(expected), "{words:?}");
    }
}

/// Pictures did not count as files that are still to be written.
#[test]
fn a_closed_pipe_does_not_cost_the_pictures() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = rcu([OsStr::new("simulate"), OsStr::new("--pictures")]);
    let mut child = command.arg(directory.path()).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
    assert_ne!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// A named pipe without a reader was taken for standard output: results were lost without a word.
#[test]
fn a_pipe_by_name_that_is_closed_is_told_and_does_not_cost_the_page() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    let mut command = endless(&["--json", "/dev/stderr", "--html", page.to_str().unwrap()]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Its files are open before its first line.
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    assert_ne!(stdout.read_line(&mut String::new()).unwrap(), 0);
    drop(child.stderr.take());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    std::io::copy(&mut stdout, &mut std::io::sink()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(5), "results could not be written");
    assert!(std::fs::read_to_string(page).unwrap().contains("Where this comes from"));
}
