//! `rcu simulate` as a user runs it: what-if machines, the picture, refusals, and that it repeats.

use std::io::{BufRead, BufReader};

use crate::common::schema::hold;
use crate::common::{documented, expect_code, file, held, json, parsed, rcu, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use simulate::replay::PARTS;
use simulate::replay::lwn2014::FITTED;

/// A run that takes milliseconds.
const SHORT: [&str; 7] =
    ["simulate", "--duration", "40ms", "--warm-up", "10ms", "--workload", "dbench"];

fn short(args: &[&str]) -> std::process::Output {
    run(SHORT.iter().chain(args))
}

/// The document of a run with these words.
fn of_words(words: &str) -> Value {
    held(&run(format!("simulate {words} --json -").split_whitespace()))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

#[test]
fn engines_stand_side_by_side_on_the_same_machine() {
    let directory = tempfile::tempdir().unwrap();
    let (svg, page) = (directory.path().join("t.svg"), directory.path().join("t.html"));
    let mut command = rcu(SHORT.iter().chain(&["--engine", "poll,tick", "--cpus", "2", "--svg"]));
    let (output, document) = documented(command.arg(&svg).arg("--html").arg(&page));
    let (stdout, _) = expect_code(&output, 0);
    assert!(stdout.contains("dbench, 2 CPUs, 250 Hz"), "{stdout}");
    let header = stdout.lines().find(|line| line.contains("poll") && line.contains("tick"));
    assert!(header.is_some(), "{stdout}");
    assert_eq!(document["schema"], "quiescence/simulate");
    let runs = list(&document["runs"]);
    let engines: Vec<_> = runs.iter().map(|run| &run["report"]["engine"]["name"]).collect();
    assert_eq!(engines, ["poll", "tick"]);
    for run in runs {
        let report = &run["report"];
        assert!(report["callbacks"]["queued"].as_u64() > Some(0), "{report}");
        assert_eq!(report["callbacks"]["invoked_beyond_queue"], 0);
        assert_eq!(report["machine"]["cpus"], 2);
        assert_eq!(report["machine"]["duration_ns"], 40_000_000);
    }
    // The 2003 paper's ordering: polling is far quicker than waiting for ticks.
    let p50 = |run: &Value| run["report"]["callback_latency_ns"]["p50"].as_u64().unwrap();
    assert!(10 * p50(&runs[0]) < p50(&runs[1]), "{} and {}", p50(&runs[0]), p50(&runs[1]));
    let picture = std::fs::read_to_string(svg).unwrap();
    let is_whole = picture.starts_with("<svg ") && picture.trim_end().ends_with("</svg>");
    assert!(is_whole && picture.contains(" xmlns="), "{picture}");
    assert!(picture.contains("dbench, 2 CPUs"), "{picture}");
    assert!(picture.contains(">poll: 1<") && picture.contains(">tick: 1<"), "{picture}");
    // The page has the same picture, and no address, not even that of the namespace.
    let page = std::fs::read_to_string(page).unwrap();
    let inside = picture.split_once("</style>").expect("the picture's own rules").1;
    assert!(page.contains(inside.trim_end()) && !page.contains("http:"), "{page}");
}

#[test]
fn the_same_options_give_the_same_bytes_in_the_given_order() {
    let args = ["--engine", "tick,poll,tick", "--cpus", "8,1", "--seed", "3,2", "--json", "-"];
    // All but when it was: the last member of a document.
    let results = |args: &[&str]| {
        let (stdout, _) = expect_code(&short(args), 0);
        let provenance = stdout.find("\"provenance\"").expect("where it comes from");
        (stdout[..provenance].to_owned(), stdout)
    };
    let (first, stdout) = results(&args);
    assert_eq!(first, results(&args).0);
    let document: Value = serde_json::from_str(&stdout).expect("nothing but JSON");
    let runs = list(&document["runs"]);
    let seen: Vec<_> = runs
        .iter()
        .map(|run| {
            let (machine, engine) = (&run["report"]["machine"], &run["report"]["engine"]["name"]);
            (machine["cpus"].as_u64(), machine["seed"].as_u64(), engine.as_str())
        })
        .collect();
    let mut expected = Vec::new();
    for cpus in [8, 1] {
        for seed in [3, 2] {
            // The same engine twice is the same run.
            for engine in ["tick", "poll"] {
                expected.push((Some(cpus), Some(seed), Some(engine)));
            }
        }
    }
    assert_eq!(seen, expected);
    let other = results(&["--engine", "tick", "--cpus", "8", "--seed", "4", "--json", "-"]);
    assert_ne!(first, other.0);
}

/// Table 3's rcu_sched: its idle loop passes through the scheduler while callbacks are pending.
#[test]
fn numbers_of_the_machine_are_set_by_name_and_costs_come_from_a_file() {
    let args = "--engine token --tickless off --set idle_look_every_ns=0,4600 --set softirq_runs=1 \
                --set ksoftirqd_percent=10 --set background_every_us=1000 --costs \
                tests/costs.json --json -";
    let args: Vec<&str> = args.split_whitespace().collect();
    let document = parsed(&short(&args));
    let runs = list(&document["runs"]);
    assert_eq!(runs.len(), 2);
    for (run, look_ns) in runs.iter().zip([0, 4_600]) {
        assert_eq!(run["idle_look_every_ns"], look_ns);
        assert_eq!((&run["softirq_runs"], &run["ksoftirqd_percent"]), (&1.into(), &10.into()));
        assert_eq!(run["background_every_ns"], 1_000_000);
        let costs = ["instruction", "hit", "atomic", "atomic_transfer", "read_transfer", "lock"];
        let costs = costs.map(|name| run["costs_ps"][name].as_u64().unwrap());
        assert_eq!(costs, [250, 1_500, 6_000, 50_000, 50_500, 16_000]);
        assert_eq!(run["costs_ps"]["interrupt"], 1_500_000);
    }
    let switches = |run: &Value| run["report"]["machinery"]["context_switches"].as_u64().unwrap();
    assert!(switches(&runs[1]) > 2 * switches(&runs[0]), "{} {}", runs[0], runs[1]);
}

#[test]
fn a_sweep_of_many_runs_has_a_line_for_each() {
    let args = ["--engine", "poll,tick", "--cpus", "1,2,4", "--set", "busy_us=100,400"];
    let (stdout, _) = expect_code(&short(&args), 0);
    let header = stdout.lines().find(|line| line.contains("busy_us")).expect("a header");
    assert!(header.contains("CPUs") && header.contains("engine"), "{stdout}");
    let of_tick = stdout.lines().filter(|line| line.split_whitespace().nth(2) == Some("tick"));
    assert_eq!(of_tick.count() % 6, 0, "{stdout}");
}

#[test]
fn engines_over_cpus_are_curves_on_the_page() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    let curves = |cpus: &str| {
        let args = ["--engine", "poll,tick", "--cpus", cpus, "--html", page.to_str().unwrap()];
        expect_code(&short(&args), 0);
        let page = std::fs::read_to_string(&page).unwrap();
        let is_there = |title| page.contains(&format!("aria-label=\"{title} by CPUs\""));
        ["latency of callbacks", "length of grace periods", "CPUs busy", "time of an iteration"]
            .map(is_there)
    };
    assert_eq!(curves("1,2"), [true, true, true, false], "dbench has no iterations");
    assert_eq!(curves("2"), [false; 4], "one number of CPUs is no curve");
}

#[test]
fn boots_of_ones_own_can_be_tried() {
    let words = "--engine srcu --variant first-diff --set calls=200 --set looks=20,1000 --set \
                 looks_each=0 --set pause_us=200 --set limit=0 --set callbacks_at_once=1 --cpus \
                 1,128";
    let document = of_words(words);
    let runs = list(&document["runs"]);
    assert_eq!(runs.len(), 4);
    for run in runs {
        let (cpus, pulls) = (&run["cpus"], run["report"]["pulls"].as_u64().unwrap());
        assert_eq!(pulls > 0, *cpus == 128, "{run}");
        assert_eq!(run["set"][2], serde_json::json!(["looks_each", 0]));
    }
    let text = run("simulate --engine srcu --set calls=10 --set looks=5,6".split(' '));
    let (stdout, _) = expect_code(&text, 0);
    assert!(stdout.contains("10 calls, 128 CPUs, 250 Hz, preemptible"), "{stdout}");
    let lines = |name: &str| stdout.lines().filter(|line| line.contains(name)).count();
    assert_eq!((lines("final"), lines("adaptive")), (2, 0), "{stdout}");
}

#[test]
fn one_workload_of_the_suite_runs_on_a_larger_machine() {
    let document = of_words("--suite --quick --only lone-updater,churn --on-cpus 32");
    let cases = list(&document["cases"]);
    assert_eq!(cases.len(), 2);
    let [alone, crowd] = [&cases[0], &cases[1]];
    assert_eq!((&alone["cpus"], &crowd["cpus"]), (&32.into(), &32.into()));
    // A lone updater stays alone; 16 threads that come and go on eight CPUs are 64 on 32.
    let started = |case: &Value| case["reports"][0]["threads_started"].as_u64().expect("a count");
    assert_eq!(started(alone), 0);
    assert!(started(crowd) > 64, "{crowd}");
}

/// It ended with exit code 1, as if something had become worse.
#[test]
fn the_quick_suite_missed_an_aim_that_was_not_recorded() {
    let output = run("simulate --suite --quick --only oversubscribed".split(' '));
    let (stdout, stderr) = expect_code(&output, 0);
    assert!(stdout.contains("missed: oversubscribed: updates"), "{stdout}");
    assert!(!stderr.contains("when it was recorded"), "{stderr}");
}

/// Takes a minute and a half of CPU time.
const SLOW: &str = "lwn2014";

#[test]
fn published_figures_are_there_and_none_that_fitted_is_broken() {
    let quick = PARTS.iter().map(|part| part.source).filter(|source| *source != SLOW);
    replayed(&format!("--published={}", quick.collect::<Vec<_>>().join(",")), Some(SLOW));
}

#[test]
#[ignore = "minutes: .ci/bench"]
fn every_published_figure_is_there_and_none_that_fitted_is_broken() {
    let rows = replayed("--published", None);
    assert!(rows.iter().filter(|row| row["source"] == SLOW).count() >= 3);
    the_page_of_2014_says_what_comes_out(&rows);
}

/// The rows of a replay, which has what each source publishes but the one that is missing.
fn replayed(published: &str, missing: Option<&str>) -> Vec<Value> {
    let pictures = tempfile::tempdir().unwrap();
    let args = ["simulate", published, "--json", "-", "--pictures"].map(std::ffi::OsStr::new);
    let output = run(args.into_iter().chain([pictures.path().as_os_str()]));
    let (stdout, stderr) = expect_code(&output, 0);
    assert!(!stderr.contains("fitted when it was recorded"), "{stderr}");
    let document: Value = serde_json::from_str(&stdout).expect("nothing but JSON");
    hold(&document);
    let rows = list(&document["rows"]);
    published_figures_are_drawn_beside_ours(pictures.path(), rows);
    let contradictions = crate::seeds::contradictions(rows, missing);
    assert!(contradictions.is_empty(), "{}", contradictions.join("\n"));
    let is_of = |row: &Value, source: &str| {
        row["source"].as_str().is_some_and(|own| own.starts_with(source))
    };
    for (source, figures) in [
        ("usenix2003.table3", 12),
        ("usenix2003.latency", 3),
        ("usenix2003.semop", 4),
        ("usenix2003.dbt1", 4),
        ("lca2005.costs_ns", 10),
        ("lkml2022.srcu", 10),
        ("vajapan2005.wakeup", 7),
        ("perfbook.costs_ns", 8),
    ] {
        let found = rows.iter().filter(|row| is_of(row, source)).count();
        assert!(found >= figures, "{source}: {found} of {figures}");
    }
    let booted: toml::Table =
        toml::from_str(include_str!("../../src/simulate/kernel.toml")).unwrap();
    for one in booted["row"].as_array().unwrap() {
        let [source, figure] = ["source", "figure"].map(|name| one[name].as_str().unwrap());
        let begins = |row: &Value| row["figure"].as_str().unwrap().starts_with(figure);
        let mut rows = rows.iter().filter(|row| row["source"] == source && begins(row));
        let is_shown = rows.any(|row| row["kernel"].is_string());
        assert!(is_shown || Some(source) == missing, "{source}: no figure begins with {figure}");
    }
    let fitted = list(&document["fitted"]);
    for row in rows {
        // A miss that is known and fits by now is to be taken off the list.
        let is_known_miss = row["fitted_when_recorded"] == false;
        assert!(!is_known_miss || row["verdict"] == "does not fit", "{row}");
        let has_parameter = fitted.iter().any(|one| one["source"] == row["source"]);
        assert!(row["role"] != "fitted" || has_parameter, "{row}");
    }
    for one in fitted {
        let is_on = |row: &&Value| {
            row["source"] == one["source"]
                && row["figure"].as_str().unwrap().starts_with(one["on"].as_str().unwrap())
        };
        let row = rows.iter().find(is_on).expect("a figure");
        assert_eq!(row["role"], "fitted", "{one}");
    }
    let parts = PARTS.iter().filter(|part| Some(part.source) != missing);
    assert_eq!(fitted.len(), parts.map(|part| part.fitted.len()).sum::<usize>());
    // Neither times nor shares of 2003 can leave the band: what engines add is compared.
    let of_engines = |source| rows.iter().filter(move |row| is_of(row, source));
    let of_engines = of_engines("usenix2003.table3").chain(of_engines("usenix2003.latency"));
    assert_eq!(of_engines.filter(|row| row["kind"] == "difference").count(), 4);
    // An engine that costs nothing passes these.
    for figure in ["rcu-sched ms_per_iteration", "rcu_poll, idle", "rcu_poll, dbench"] {
        let row = rows.iter().find(|row| row["figure"] == figure).expect(figure);
        assert_eq!(row["free_share"], 0.0, "{row}");
    }
    rows.to_vec()
}

/// The boots of 2022 as bars with what was published, and the engines of 2003 over CPUs.
fn published_figures_are_drawn_beside_ours(pictures: &std::path::Path, rows: &[Value]) {
    let text = |part: &str| {
        let is_it = |path: &std::path::PathBuf| path.to_str().unwrap().contains(part);
        let path = files_of(pictures).into_iter().find(is_it).unwrap_or_else(|| panic!("{part}"));
        std::fs::read_to_string(path).unwrap()
    };
    assert!(files_of(pictures).len() > 10);
    let boots = text("lkml2022-srcu-in-s-");
    let count = |part: &str| boots.matches(part).count();
    assert!(count("<rect class=\"ours\"") > 25, "{boots}");
    assert_eq!(count("<rect class=\"ours\""), count("<circle class=\"other hollow\""));
    let figure = text("latency-of-callbacks-by-cpus");
    // A picture of eight CPUs shows what the row of them says.
    let row = rows.iter().find(|row| row["figure"] == "rcu_poll, dbench").expect("it is there");
    let said: Vec<f64> =
        row["ours"].as_str().unwrap().split(' ').filter_map(|word| word.parse().ok()).collect();
    assert_eq!(said.len(), 3, "{row}");
    for (engine, said) in ["poll", "tick", "token"].into_iter().zip(said) {
        let drawn = figure.split_once(&format!("<title>{engine}, 8: ")).expect(engine).1;
        let (drawn, unit) = drawn.split_once(' ').unwrap();
        let drawn: f64 = drawn.parse().unwrap();
        assert!(unit.starts_with("ms") && (drawn / said - 1.0).abs() < 0.02, "{drawn}, {said}");
    }
    assert!(figure.contains(">100 ms</text>") && figure.contains(">1.00 ms</text>"), "{figure}");
}

fn files_of(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Should a change bring the rows that miss near, the page `replay::lwn2014` has to be written
/// anew. Here, since to replay it takes minutes.
fn the_page_of_2014_says_what_comes_out(rows: &[Value]) {
    let of_2014: Vec<&Value> = rows.iter().filter(|row| row["source"] == "lwn2014").collect();
    let has = |row: &Value, figure| row["figure"].as_str().unwrap().starts_with(figure);
    for row in &of_2014 {
        let is_fitted = FITTED.iter().any(|fitted| has(row, fitted.on));
        assert_eq!(row["role"] == "fitted", is_fitted, "{row}");
        let is_known = ["irqsave spinning", "v2_default_loss", "raising the period of 256"]
            .iter()
            .any(|figure| has(row, figure));
        assert_eq!(row["verdict"] == "does not fit", is_known, "{row}");
    }
    let find = |figure| of_2014.iter().find(|row| has(row, figure)).expect("it is there");
    for fitted in FITTED {
        let ratio = find(fitted.on)["ratio"].as_f64().unwrap();
        assert!((0.98..=1.02).contains(&ratio), "{ratio}");
    }
    let default = find("v2_default_loss_percent");
    let ours = default["ours"].as_str().unwrap();
    assert!(ours.contains("standard error") && !ours.contains("undecided"), "{default}");
    assert!(default["mechanism"].as_str().unwrap().contains("would have to make"), "{default}");
}

/// A run that Ctrl-C ends before anything is simulated: its document. `t.svg` and `t.csv` in the
/// directory are where its picture and its tables would be.
fn interrupted(directory: &std::path::Path) -> Value {
    let [svg, csv, document] = ["t.svg", "t.csv", "t.json"].map(|name| directory.join(name));
    // Minutes, if it were let.
    let args = "simulate --engine tick --workload mixed --cpus 4096 --duration 10s --svg";
    let mut child = rcu(args.split(' ').map(std::ffi::OsStr::new).chain([
        svg.as_os_str(),
        "--csv".as_ref(),
        csv.as_os_str(),
        "--json".as_ref(),
        document.as_os_str(),
    ]))
    .stdout(std::process::Stdio::piped())
    .spawn()
    .expect("the command starts");
    // Both are opened when the handler is in place.
    while !document.exists() || !svg.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("the child is there");
    let output = child.wait_with_output().expect("the child ends");
    assert_eq!(output.status.code(), Some(130));
    json(&document)
}

#[test]
fn an_interrupted_run_writes_what_there_is() {
    let directory = tempfile::tempdir().unwrap();
    let document = interrupted(directory.path());
    assert_eq!(document["interrupted"], true);
    assert!(document["runs"][0]["report"].is_null());
}

/// What was written was nothing, which is no picture and no table.
#[test]
fn an_interrupted_run_without_results_emptied_the_files_of_an_older_one() {
    let directory = tempfile::tempdir().unwrap();
    let files = ["t.svg", "t.csv"].map(|name| file(directory.path(), name, "older"));
    interrupted(directory.path());
    assert_eq!(files.map(|path| std::fs::read_to_string(path).unwrap()), ["older"; 2]);
}

/// The schema had a report of each run, and each was run to its end.
#[test]
fn a_run_of_srcu_ignored_ctrl_c_and_its_document_had_not_its_schema() {
    let args = "simulate --engine srcu --variant 5.18 --set calls=10000000 --json -".split(' ');
    let mut command = rcu(args);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    // A line of progress: the handler is in place, and runs have begun.
    let mut first = String::new();
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    stderr.read_line(&mut first).expect("UTF-8");
    assert!(first.contains("SRCU"), "{first}");
    kill_process(Pid::from_child(&child), Signal::INT).expect("the child is there");
    let output = child.wait_with_output().expect("the child ends");
    assert_eq!(output.status.code(), Some(130));
    let document: Value = serde_json::from_slice(&output.stdout).expect("nothing but JSON");
    hold(&document);
    let runs = list(&document["runs"]);
    assert!(runs.iter().any(|run| run["report"].is_null()), "{document}");
}

/// A replay was run to its end, which takes that of 2014 a minute and a half.
#[test]
fn ctrl_c_did_not_end_a_replay() {
    let mut command = rcu(["simulate", &format!("--published={SLOW}"), "--json", "-"]);
    let child = command.stdout(std::process::Stdio::piped()).spawn().expect("it starts");
    // It has begun when there is a thread for it.
    let threads = format!("/proc/{}/task", child.id());
    while std::fs::read_dir(&threads).expect("it goes on").count() < 2 {
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("the child is there");
    let output = child.wait_with_output().expect("the child ends");
    assert_eq!(output.status.code(), Some(130));
    let document: Value = serde_json::from_slice(&output.stdout).expect("nothing but JSON");
    hold(&document);
    assert_eq!((&document["interrupted"], list(&document["rows"])), (&true.into(), &[][..]));
}
