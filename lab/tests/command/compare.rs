//! `rcu compare`: verdicts and exit codes, saved rounds, other programs, what is refused.
//!
//! Which verdict a busy machine allows is not what these tests are about: changes are made so large
//! that no noise hides them, or are undone by a threshold that no noise passes.

use std::ffi::OsStr;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::expect::skip;
use crate::common::schema::{accepted_changes, hold};
use crate::common::{documented, expect_code, fails, file, json, of_mode, prints, rcu, run, told};

/// A program that writes the document of a benchmark with these nanoseconds, by whatever words it
/// is run; each run in this directory adds another digit, as noise does.
fn program(directory: &Path, name: &str, ns: &[(&str, u32)]) -> PathBuf {
    let spreads: Vec<_> = ns.iter().map(|(rival, ns)| (*rival, spread(ns))).collect();
    prepared(directory, name, "", &spreads)
}

/// The spread of a figure of so many nanoseconds.
fn spread(ns: impl Display) -> String {
    format!(r#"{{"median":{ns}.$d,"low":{ns}.$d,"high":{ns}.$d}}"#)
}

/// What stands in the place of a spread of which nothing counted.
const NONE: &str = r#"null,"missing":"threads never ran at once""#;

/// A program with these spreads, in which a shell has done this before: its `n` is the number of
/// the run, and `run` is what the document has of it.
fn prepared(directory: &Path, name: &str, words: &str, spreads: &[(&str, String)]) -> PathBuf {
    let metric = |(rival, spread): &(&str, String)| {
        let metric = format!(r#"{{"name":"read","unit":"ns","spread":{spread}}}"#);
        format!(r#"{{"name":"{rival}","ours":true,"metrics":[{metric}]}}"#)
    };
    let rivals: Vec<String> = spreads.iter().map(metric).collect();
    let script = format!(
        "#!/bin/sh\necho >> {0}\nn=$(wc -l < {0})\nd=$((n % 10))\n{words}\n\
         cat <<END\n{{\"schema\":\"quiescence/bench\",$run\"cases\":\
         [{{\"id\":\"read/1-thread\",\"rivals\":[{1}]}}]}}\nEND\n",
        directory.join("runs").display(),
        rivals.join(",")
    );
    executable(directory, name, script)
}

/// A script with this text, which says that it is a version of the command.
fn executable(directory: &Path, name: &str, text: impl AsRef<str>) -> PathBuf {
    let version = "#!/bin/sh\n[ \"$1\" = --version ] && echo rcu 0.1.0 && exit\n";
    of_mode(directory, name, 0o755, &text.as_ref().replacen("#!/bin/sh\n", version, 1))
}

/// The comparison of two programs.
fn pair(base: &Path, candidate: &Path) -> Command {
    let mut command = rcu(["compare", "bench read", "--with"]);
    command.arg(base).arg("--candidate").arg(candidate);
    command
}

/// What becomes of the rounds of a program that are to be kept in this folder.
fn saved(candidate: &Path, folder: impl AsRef<OsStr>) -> Output {
    let mut command = rcu(["compare", "bench read", "--save", "one", "--folder"]);
    command.arg(folder).arg("--candidate").arg(candidate).output().unwrap()
}

/// Compares two programs; the exit code, what was written, and the document.
fn compare(base: &Path, candidate: &Path, more: &[&str]) -> (i32, String, serde_json::Value) {
    let mut command = pair(base, candidate);
    let (output, document) = documented(command.args(["--rounds", "20"]).args(more));
    let (code, stdout, stderr) = told(&output);
    let expected = ["note: the page is in ", " s left: ", "longer than planned: "];
    let is_expected = |line: &str| expected.iter().any(|part| line.contains(part));
    assert!(stderr.lines().all(is_expected), "{stderr}");
    (code, stdout, document)
}

#[test]
fn the_exit_code_is_the_verdict() {
    let directory = tempfile::tempdir().unwrap();
    let made = |name, ns| program(directory.path(), name, &[("quiescence", ns)]);
    let (fast, slow) = (made("fast", 1000), made("slow", 1100));
    let (code, stdout, document) = compare(&fast, &slow, &[]);
    assert_eq!((code, &document["verdict"]), (1, &"worse".into()), "{stdout}");
    assert_eq!(document["schema"], "quiescence/compare");
    assert!(stdout.contains("Verdict: worse") && stdout.contains("+10.0 %"), "{stdout}");
    let figure = &document["figures"][0];
    assert_eq!(figure["base"]["rounds"].as_array().unwrap().len(), 15, "decided at the first look");
    assert!(figure["ratio"]["low"].as_f64().unwrap() > 1.09, "{figure}");
    let (code, _, document) = compare(&slow, &fast, &[]);
    assert_eq!((code, &document["verdict"]), (0, &"better".into()));
    let (code, _, document) = compare(&fast, &fast, &[]);
    assert_eq!((code, &document["verdict"]), (0, &"same".into()));
    let (code, _, document) = compare(&fast, &slow, &["--threshold", "20"]);
    assert_eq!((code, &document["verdict"]), (0, &"same".into()), "less than the threshold");
}

/// The message did not say which there are.
#[test]
fn a_metric_that_no_figure_has_is_refused_with_those_that_there_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = program(directory.path(), "fast", &[("quiescence", 1000)]);
    let output = pair(&path, &path).args(["--metric", "speed"]).output().unwrap();
    fails(&output, 2, "no figure has a metric of --metric; it has read");
}

#[test]
fn a_change_that_helps_one_and_hurts_another_is_worse_and_the_table_says_whom() {
    let directory = tempfile::tempdir().unwrap();
    let before = program(directory.path(), "before", &[("domain", 1000), ("cell", 1000)]);
    let after = program(directory.path(), "after", &[("domain", 800), ("cell", 1300)]);
    let (code, stdout, document) = compare(&before, &after, &[]);
    assert_eq!(code, 1, "{stdout}");
    let verdicts: Vec<_> = (0..2).map(|n| document["figures"][n]["verdict"].clone()).collect();
    assert_eq!(verdicts, ["better", "worse"]);
    let page = directory.path().join("page.html");
    compare(&before, &after, &["--html", page.to_str().unwrap()]);
    let page = std::fs::read_to_string(page).unwrap();
    let expected = [
        "<title>read/1-thread domain: read: -20.",
        "change of the cost, % of the base's",
        "class=\"guide\"",
        "Where this comes from",
    ];
    for expected in expected {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    for (rival, verdict) in [("domain", "better"), ("cell", "worse")] {
        let mut lines = stdout.lines().filter(|line| line.contains(&format!("{rival}: read")));
        assert!(lines.any(|line| line.trim_end().ends_with(verdict)), "{rival}: {stdout}");
    }
}

#[test]
fn a_candidate_that_cannot_be_run_is_not_condemned_and_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let dies = |name, mode| {
        of_mode(directory.path(), name, mode, "#!/bin/sh\necho no lib.so >&2\nexit 127\n")
    };
    let own = Path::new(env!("CARGO_BIN_EXE_rcu"));
    for (path, said) in [
        (dies("dies", 0o755), "dies --version` fails: no lib.so; exit status: 127"),
        (dies("plain", 0o644), "plain: Permission denied"),
        (directory.path().join("missing"), "missing: No such file"),
        ("/bin/true".into(), "`/bin/true` is not a version of rcu"),
    ] {
        for (base, candidate, code) in [(own, &*path, 125), (&*path, own, 2)] {
            fails(&pair(base, candidate).output().unwrap(), code, said);
        }
    }
}

/// Whoever had its output open was waited for: a process that it left, or a run whose shell was
/// stopped.
#[test]
fn what_a_program_leaves_behind_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    // They end with the test.
    let does = |what| format!("while [ -e {} ]; do {what}; done", directory.path().display());
    let (stays, writes) = (does("sleep 0.1"), does("echo still here"));
    let made = |name, script: &str| of_mode(directory.path(), name, 0o755, script);
    let leaves = made("leaves", &format!("#!/bin/sh\n({writes}) &\necho other 1\n"));
    let output = run(["compare".as_ref(), "--with".as_ref(), leaves.as_os_str()]);
    fails(&output, 2, "leaves` is not a version of rcu");
    let wraps = made("wraps", &format!("#!/bin/sh\nsh -c '{stays}'\n"));
    let output = run(["compare".as_ref(), "--with".as_ref(), wraps.as_os_str()]);
    fails(&output, 2, "wraps --version` fails: signal: 15");
}

/// Its standard output was a file, which does not break: nobody told it that nobody would read it.
#[test]
fn a_program_went_on_measuring_when_the_comparison_was_killed() {
    let directory = tempfile::tempdir().unwrap();
    // The comparison is there until this test, which reads descriptor 3, has waited for it.
    let script = "#!/bin/sh\ntrap '' PIPE\nkill -9 $PPID\n\
                  while kill -0 $PPID 2>/dev/null; do :; done\n\
                  echo document && echo goes on >&3 || echo notices >&3\n";
    let program = executable(directory.path(), "measures", script);
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$@\" 3>&1 >/dev/null", "sh", env!("CARGO_BIN_EXE_rcu")]);
    command.args(["compare", "bench read", "--with"]).arg(&program);
    command.arg("--candidate").arg(&program).stdout(Stdio::piped());
    let mut comparison = command.spawn().unwrap();
    comparison.wait().unwrap();
    let said = std::io::read_to_string(comparison.stdout.unwrap()).unwrap();
    assert_eq!(said, "notices\n");
}

#[test]
fn what_cannot_be_measured_is_skipped_and_not_condemned() {
    let directory = tempfile::tempdir().unwrap();
    let good = program(directory.path(), "good", &[("quiescence", 1000)]);
    let broken = "#!/bin/sh\necho 'error: no such case' >&2\nexit 2";
    let broken = executable(directory.path(), "broken", broken);
    fails(&pair(&good, &broken).output().unwrap(), 125, "no such case");
    // What is known to work does not: then the words are wrong.
    expect_code(&pair(&broken, &good).output().unwrap(), 2);
    // The runs take once and twice as long by turns of their own.
    let turns = "case $((n % 4)) in 0|1) x=1000 ;; *) x=2000 ;; esac";
    let alone = tempfile::tempdir().unwrap();
    let noisy = prepared(alone.path(), "noisy", turns, &[("quiescence", spread("$x"))]);
    let (code, stdout, _) = compare(&noisy, &noisy, &["--rounds", "20"]);
    assert!(code == 125 && stdout.contains("too noisy"), "{code}: {stdout}");
}

#[test]
fn a_figure_that_is_missing_is_told_with_its_reason_and_runs_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let whole = program(directory.path(), "whole", &[("cell", 1000), ("domain", 1000)]);
    let incomplete = r#"run='"run":{"verdict":"incomplete"},'"#;
    let spreads = [("cell", NONE.to_owned()), ("domain", spread(1000))];
    let half = prepared(directory.path(), "half", incomplete, &spreads);
    let (code, stdout, document) = compare(&whole, &half, &[]);
    assert_eq!(code, 125, "one figure decides, and is not known: {stdout}");
    let first = stdout.lines().find(|line| !line.is_empty()).unwrap();
    assert!(
        first.starts_with("Of 160 runs 0 were calm, 0 disturbed, 80 incomplete; 80"),
        "{first}"
    );
    assert!(stdout.contains("cell: read: no figure: threads never ran at once"), "{stdout}");
    assert_eq!(document["runs"]["incomplete"], 80, "20 pairs, each drawn three times more");
    let figures = &document["figures"];
    let of = |number: usize, member: &str| figures[number][member].clone();
    let [domain, cell] =
        [of(0, "rival"), of(1, "rival")].map(|name| name.as_str().unwrap().to_owned());
    assert_eq!((&*domain, &*cell), ("domain", "cell"), "{figures}");
    assert_eq!((of(0, "verdict"), of(0, "missing")), ("same".into(), serde_json::Value::Null));
    assert!(of(1, "ratio").is_null() && of(1, "base")["cost"].is_null(), "{figures}");
    assert_eq!(of(1, "missing"), "threads never ran at once");
}

#[test]
fn rounds_are_saved_and_compared_with_later() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("made/when/needed");
    let command = |words: &[&str]| {
        let mut command = rcu(["compare"]);
        command.args(words).arg("--folder").arg(&folder);
        command
    };
    let made = |name, ns| program(directory.path(), name, &[("quiescence", ns), ("seize", 1000)]);
    let (fast, slow) = (made("fast", 1000), made("slow", 1100));
    // The first figure is in all rounds, the second in those whose number in four `is` so.
    let lossy = |name: &str, is: &str| {
        let turns = r#"[ $((n % 4)) IS ] && spread='{"median":1000,"low":1000,"high":1000}'"#;
        let turns = format!("spread='{NONE}'\n{}", turns.replace("IS", is));
        let spreads = [("quiescence", spread(1000)), ("seize", "$spread".to_owned())];
        prepared(directory.path(), name, &turns, &spreads)
    };
    let with = |words: &[&str], candidate: &Path| {
        command(words).arg("--candidate").arg(candidate).output().unwrap()
    };
    let save = ["--save", "one", "bench read"];
    prints(&with(&save, &lossy("most", "!= 0")), 0, "40 rounds are in");
    let saved = json(&folder.join("one.json"));
    assert_eq!(accepted_changes(&saved), [""; 0], "a file without provenance");
    assert_eq!((&saved["schema"], &saved["version"]), (&"quiescence/baseline".into(), &2.into()));
    let costs = |n: usize| saved["loads"][0]["figures"][n]["costs"].as_array().unwrap();
    let known = |n| costs(n).iter().filter(|cost| !cost.is_null()).count();
    assert_eq!([costs(0).len(), known(0), costs(1).len(), known(1)], [40, 40, 40, 30]);
    // The loads are those of the baseline.
    let again = ["--baseline", "one"];
    prints(&with(&again, &fast), 0, "Verdict: same");
    prints(&with(&again, &slow), 1, "Verdict: worse");
    // A figure in ten rounds would never be decided, and is not kept.
    fails(
        &with(&save, &lossy("few", "= 0")),
        0,
        "seize: read is not saved: it has a figure in few",
    );
    prints(&with(&again, &fast), 0, "Verdict: same");
    fails(&command(&["--baseline", "two"]).output().unwrap(), 2, "there are: one");
    fails(&command(&["--baseline", "one", "bench gp"]).output().unwrap(), 2, "it has: bench read");
    // One without loads was compared with nothing, and found to be the same.
    let empty = r#"{"schema":"quiescence/baseline","version":2,"cpu":null,"cpus":1,"rcu":"0.2.0",
        "loads":[]}"#;
    for (text, why) in [("{}", ""), (empty, ": it has no load")] {
        file(&folder, "bad.json", text);
        let output = command(&["--baseline", "bad"]).output().unwrap();
        fails(&output, 2, &format!("bad.json: no baseline of rcu compare{why}"));
    }
}

/// Ctrl-C lost all of them, and said that there was nothing to show.
#[test]
fn rounds_that_are_enough_are_saved_after_ctrl_c() {
    let directory = tempfile::tempdir().unwrap();
    let whole = program(directory.path(), "whole", &[("quiescence", 1000)]);
    // The first run fills caches, and is no round.
    let counted = |last: u32| {
        let count = directory.path().join(format!("runs-{last}"));
        let interrupt = format!(
            "echo >> {0}\n[ $(wc -l < {0}) -eq {last} ] && kill -INT $PPID\ncat <<END\n",
            count.display()
        );
        let script = std::fs::read_to_string(&whole).unwrap();
        let script = script.replacen("cat <<END\n", &interrupt, 1);
        let program = executable(directory.path(), &format!("interrupts-{last}"), script);
        saved(&program, directory.path())
    };
    fails(&counted(15), 130, "interrupted");
    assert!(!directory.path().join("one.json").exists(), "too few can be compared with nothing");
    prints(&counted(18), 130, "16 rounds are in");
    let saved = json(&directory.path().join("one.json"));
    assert_eq!(saved["loads"][0]["figures"][0]["costs"].as_array().unwrap().len(), 16);
}

/// All was measured first, and lost.
#[test]
fn rounds_were_measured_for_a_folder_that_takes_none() {
    let directory = tempfile::tempdir().unwrap();
    let path = program(directory.path(), "fast", &[("quiescence", 1000)]);
    for folder in ["/proc", "/dev/null/below"] {
        fails(&saved(&path, folder), 2, &format!("cannot write {folder}"));
        assert!(!directory.path().join("runs").exists(), "it was measured");
    }
}

#[test]
fn an_empty_home_is_no_folder_for_baselines() {
    for home in ["", "relative"] {
        let mut command = rcu(["compare", "--baseline", "one"]);
        command.env_remove("XDG_DATA_HOME").env("HOME", home);
        fails(&command.output().unwrap(), 2, "give --folder");
    }
}

#[test]
fn rounds_without_figures_are_not_saved() {
    let directory = tempfile::tempdir().unwrap();
    let never = prepared(directory.path(), "never", "", &[("quiescence", NONE.to_owned())]);
    fails(&saved(&never, directory.path()), 125, "no figure is in 15 rounds: nothing is saved");
    assert!(!directory.path().join("one.json").exists());
}

/// Compares the instructions of two programs, where programs are found in this folder.
fn count(directory: &Path, base: &str, candidate: &str, more: &[&str]) -> Output {
    let mut command = rcu(["compare", "--instructions"]);
    command.args(more).env("PATH", directory).arg("--with").arg(directory.join(base));
    command.arg("--candidate").arg(directory.join(candidate)).output().unwrap()
}

#[test]
fn instructions_are_counted_by_what_can_count_here() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let paths = "#!/bin/sh\n[ $# = 1 ] && printf 'read\\nretire\\n'";
    for name in ["old", "slow"] {
        executable(directory, name, paths);
    }
    executable(directory, "ancient", "#!/bin/sh\nexit 2");
    executable(directory, "other", "#!/bin/sh\n[ $# = 1 ] && echo write");
    let document = directory.join("out.json");
    let json_to = ["--json", document.to_str().unwrap()];
    fails(&count(directory, "old", "old", &[]), 4, "install Debian's valgrind");
    executable(directory, "perf", "#!/bin/sh\necho '<not supported>,,instructions:u,0,,,' >&2");
    // A thousand for the process, and ten for an operation; of a slow one, eleven.
    let valgrind = r#"#!/bin/sh
        each=100
        case "$*" in *slow*retire*) each=110 ;; esac
        for count; do :; done
        [ "$count" = true ] && count=0
        echo "==1== Collected : $((1000 + each * count / 10))" >&2
        echo "words: portable""#;
    executable(directory, "valgrind", valgrind);
    prints(&count(directory, "old", "old", &json_to), 0, "The base has words: portable");
    let told = json(&document);
    hold(&told);
    let base = &told["figures"][0]["base"]["rounds"];
    assert_eq!((&told["counted"]["by"], base), (&"valgrind".into(), &serde_json::json!([10.0])));
    let (stdout, _) = expect_code(&count(directory, "old", "slow", &json_to), 1);
    let words = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("retire quiescence: instructions 10.0 11.0 +1.00, +10.0 % 5 worse"),
        "{stdout}"
    );
    let told = json(&document);
    let rounds = &told["figures"][1]["candidate"]["rounds"];
    assert_eq!(*rounds, serde_json::json!(vec![11.0; 5]), "what differs is counted again");
    expect_code(&count(directory, "old", "slow", &["--threshold", "20"]), 0);
    expect_code(&count(directory, "slow", "old", &["--path", "retire"]), 0);
    fails(&count(directory, "old", "old", &["--path", "write"]), 2, "the base has read, retire");
    // They were called interrupted, which ends a bisection.
    fails(&count(directory, "old", "other", &[]), 125, "no path in common");
    for (base, candidate, code) in [("ancient", "old", 2), ("old", "ancient", 125)] {
        fails(&count(directory, base, candidate, &[]), code, "no command that runs single paths");
    }
}

/// A program that the signal ended was a comparison that cannot be decided, or wrong words.
#[test]
fn ctrl_c_in_a_first_run_is_no_verdict() {
    let directory = tempfile::tempdir().unwrap();
    let good = program(directory.path(), "good", &[("quiescence", 1000)]);
    let ends = executable(directory.path(), "ends", "#!/bin/sh\nkill -INT $PPID\nexit 1\n");
    for (base, candidate) in [(&good, &ends), (&ends, &good)] {
        fails(&pair(base, candidate).output().unwrap(), 130, "interrupted before");
    }
}

/// It was a comparison that cannot be decided: a bisection skipped the commit, and went on.
#[test]
fn ctrl_c_while_instructions_are_counted_is_no_verdict() {
    let directory = tempfile::tempdir().unwrap();
    executable(directory.path(), "old", "#!/bin/sh\n[ $# = 1 ] && echo read");
    let valgrind = "#!/bin/sh\nfor last; do :; done\n\
                    [ \"$last\" = true ] && echo '==1== Collected : 1000' >&2 && exit\n\
                    kill -INT $PPID\nexit 1";
    executable(directory.path(), "valgrind", valgrind);
    fails(&count(directory.path(), "old", "old", &[]), 130, "interrupted before");
}

/// The programs were called old, or what counts was called missing.
#[test]
fn ctrl_c_before_instructions_are_counted_is_no_verdict() {
    let directory = tempfile::tempdir().unwrap();
    let ends = "#!/bin/sh\nkill -INT $PPID\nexit 1\n";
    executable(directory.path(), "ends", ends);
    executable(directory.path(), "old", "#!/bin/sh\n[ $# = 1 ] && echo read");
    executable(directory.path(), "valgrind", ends);
    for (base, candidate) in [("ends", "old"), ("old", "ends"), ("old", "old")] {
        fails(&count(directory.path(), base, candidate, &[]), 130, "interrupted before");
    }
}

#[test]
fn a_path_takes_as_many_instructions_each_time_it_is_counted() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        skip("valgrind", "valgrind", "", "install valgrind");
        return;
    }
    let own = env!("CARGO_BIN_EXE_rcu");
    let output = run(["compare", "--instructions", "--path", "seqlock-read", "--with", own]);
    let (stdout, _) = expect_code(&output, 0);
    // All but some hundred of the process's instructions, which depend on the other threads.
    assert!(stdout.contains("Of 1 figures that decide: 0 worse, 0 better, 1 same"), "{stdout}");
}

#[test]
fn planted_work_is_found() {
    // Twenty-one times the work is found at the first look beside any noise, unless nothing can be
    // measured: other tests run beside this one.
    let own = Path::new(env!("CARGO_BIN_EXE_rcu"));
    let words = "bench read --case nested --only quiescence";
    let mut command = rcu(["compare", words, "--plant", "2000", "--threshold", "50"]);
    command.args(["--time", "20", "--with"]).arg(own);
    let (found, stdout, stderr) = told(&command.output().unwrap());
    let is_found = found == 1 && stdout.contains("Verdict: worse");
    assert!(is_found || found == 125, "{found}: {stdout}{stderr}");
}
