//! Faults of the command that users met, each held by the test that its mending began with.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::process::Command;

use crate::common::{
    advised, documented, expect_code, fails, file, json, rcu, refused, run, tiny, tiny_of,
};
use serde_json::Value;

#[test]
fn two_kinds_of_results_do_not_share_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("result");
    let other = directory.path().join(".").join("result");
    let (path, other) = (path.to_str().unwrap(), other.to_str().unwrap());
    for second in ["--html", "--markdown", "--csv"] {
        let args = ["--run-ms", "60000", "--json", path, second, other];
        refused(&args, "give each a file of its own");
    }
}

#[test]
fn a_file_of_costs_that_is_binary_is_not_called_missing() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "binary", b"\xff\xfe\x00\x80");
    let (_, stderr) = expect_code(&run(["simulate", "--costs", path.to_str().unwrap()]), 2);
    assert!(stderr.contains("UTF-8") && !stderr.contains("such file"), "{stderr}");
}

#[test]
fn a_full_disk_is_no_usage_error() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    for words in [&["completions", "bash"][..], &["--help"], &["bench", "-h"], &["--version"]] {
        let output = rcu(words).stdout(full.try_clone().unwrap()).output().unwrap();
        fails(&output, 5, "cannot write to standard output");
    }
    fails(&tiny(&["--json", "/dev/full"]).output().unwrap(), 5, "cannot write /dev/full");
}

/// A signal ended the command without a word; later the old results were lost, too.
#[test]
fn a_limit_on_files_is_told_as_a_full_disk_is_and_costs_no_old_results() {
    let directory = tempfile::tempdir().unwrap();
    let old = file(directory.path(), "a.json", "old results");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 0; exec \"$0\" simulate --duration 1ms --json \"$1\""]);
    command.arg(env!("CARGO_BIN_EXE_rcu")).arg(&old);
    fails(&command.output().unwrap(), 5, "File too large");
    assert_eq!(std::fs::read_to_string(old).unwrap(), "old results");
}

#[test]
fn a_run_that_failed_left_an_empty_file_for_its_results() {
    let directory = tempfile::tempdir().unwrap();
    let old = file(directory.path(), "old.json", "old results");
    for path in [&old, &directory.path().join("new.json")] {
        let words = ["diff", "tests/diff/good", "tests/diff/bad", "--json", path.to_str().unwrap()];
        refused(&words, "neither perf script");
    }
    assert_eq!(std::fs::read_to_string(old).unwrap(), "old results");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

/// What was measured was lost with the text: a disk that is full for one need not be for the other.
#[test]
fn a_full_disk_does_not_cost_the_files_on_another() {
    let directory = tempfile::tempdir().unwrap();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let path = |name: &str| directory.path().join(name);
    let mut command = rcu(["simulate", "--duration", "1ms", "--json"]);
    command.arg(path("a.json")).arg("--html").arg(path("a.html")).stdout(full);
    fails(&command.output().unwrap(), 5, "cannot write to standard output");
    assert_eq!(json(&path("a.json"))["schema"], "quiescence/simulate");
    let page = std::fs::read_to_string(path("a.html")).unwrap();
    assert!(page.contains("Grace periods"), "{page}");
}

#[test]
fn the_advice_and_the_documentation_count_the_same_stores() {
    let documentation = include_str!("../../../quiescence/src/domain/guard.rs");
    assert!(documentation.contains("takes three stores to the thread's own cache line"));
    let advice = include_str!("../../../bench/designs.toml");
    assert!(advice.contains("Three plain stores to the thread's own cache line"));
}

/// What the user calls a workload is text and no markup, an older and longer file leaves nothing in
/// the new one, and without updates there is no latency: each was once otherwise.
#[test]
fn every_document_says_where_it_comes_from() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (document, page, text, values) = (at("a.json"), at("a.html"), at("a.md"), at("a.csv"));
    let workload = file(directory.path(), "w.toml", "name = \"<script>&\"\nreads = 100\n");
    file(directory.path(), "a.json", vec![b'x'; 1 << 20]);
    let files = ["--json", &document, "--html", &page, "--markdown", &text, "--csv", &values];
    let words = [&files[..], &["--workload", workload.to_str().unwrap()]].concat();
    advised(&tiny(&words).output().unwrap());
    let found = json(document.as_ref());
    assert_eq!(found["schema"], "quiescence/advise");
    assert!(found["designs"][0]["update_latency_ns"].is_null(), "{found}");
    let provenance = &found["provenance"];
    for member in ["date", "host_class", "cpu", "command_line", "version", "commit"] {
        assert!(provenance[member].as_str().is_some_and(|text| !text.is_empty()), "{member}");
    }
    assert!(provenance.get("host_name").is_none());
    let [page, text, values] =
        [page, text, values].map(|path| std::fs::read_to_string(path).unwrap());
    for text in [&page, &text] {
        assert!(text.contains(provenance["date"].as_str().unwrap()), "{text}");
    }
    assert!(page.contains("&lt;script&gt;&amp;") && !page.contains("<script>"), "{page}");
    let is_ranked = !found["designs"].as_array().unwrap().is_empty();
    let has = [values.starts_with("table,"), values.contains("Ranking")];
    assert_eq!(has, [is_ranked; 2], "{values}");
}

/// It was said that updates pay for the fences of readers.
#[test]
fn where_there_is_no_membarrier_readers_are_said_to_fence() {
    for (fences, is_said) in [("portable", true), ("", false)] {
        let mut command = tiny_of(false, &["--rounds", "1", "--kind", "config", "--json", "-"]);
        if is_said {
            command.env("QUIESCENCE_FENCES", fences);
        }
        let report: Value = serde_json::from_str(&advised(&command.output().unwrap()).0).unwrap();
        let has_ours = report["designs"].to_string().contains("\"ours\":true");
        let is_portable = report["machine"]["fences"] == "portable";
        assert!(is_portable || !is_said, "{report}");
        let said = report["disclosures"].to_string().contains("readers of its designs");
        assert_eq!(said, has_ours && is_portable, "{report}");
    }
}

#[test]
fn a_page_adds_nothing_to_a_script_or_a_schema() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    for args in [&["schema", "costs"][..], &["completions", "bash"], &["man"]] {
        let (alone, _) = expect_code(&run(args), 0);
        let with_page = args.iter().copied().chain(["--html", page.to_str().unwrap()]);
        let (stdout, stderr) = expect_code(&run(with_page), 0);
        assert!(stdout == alone, "{args:?}: {stdout}");
        assert!(stderr.contains("the page is in "), "{args:?}: {stderr}");
        assert!(std::fs::read_to_string(&page).unwrap().contains(args[0]), "{args:?}");
        std::fs::remove_file(&page).unwrap();
    }
}

/// The file from which a result is moved to its place had a name that another one may have.
#[test]
fn a_file_beside_a_picture_survives() {
    let directory = tempfile::tempdir().unwrap();
    let words = [OsStr::new("simulate"), OsStr::new("--pictures"), directory.path().as_os_str()];
    let names = || {
        let files = std::fs::read_dir(directory.path()).unwrap();
        files.map(|file| file.unwrap().path()).collect::<BTreeSet<_>>()
    };
    expect_code(&run(words), 0);
    let pictures = names();
    assert!(!pictures.is_empty());
    let theirs = pictures.iter().map(|picture| picture.with_extension("new"));
    let theirs: Vec<_> = theirs.inspect(|path| std::fs::write(path, "theirs").unwrap()).collect();
    let all = names();
    expect_code(&run(words), 0);
    assert_eq!(names(), all);
    for path in theirs {
        assert_eq!(std::fs::read_to_string(path).unwrap(), "theirs");
    }
}

/// The lines of a table were joined, and its columns were gone.
#[test]
fn each_command_has_a_manual_page_whose_tables_keep_their_lines() {
    let directory = tempfile::tempdir().unwrap();
    expect_code(&run(["man", "--dir", directory.path().to_str().unwrap()]), 0);
    for page in ["rcu.1", "rcu-bench.1", "rcu-bench-read.1"] {
        assert!(directory.path().join(page).is_file(), "{page}");
    }
    let bench = std::fs::read_to_string(directory.path().join("rcu-bench.1")).unwrap();
    let (whole, _) = expect_code(&run(["man"]), 0);
    for page in [bench, whole] {
        let (_, last) = page.split_once("\n.SH EXTRA\n").expect("a last section");
        assert!(last.starts_with(".nf\n"), "{last}");
    }
}

/// Fails unless a line has this name and a figure, and each figure its unit beside it.
fn has_whole_figures(stdout: &str, name: &str) {
    let is_figure = |line: &str| line.starts_with(name) && line.contains(" ns");
    assert!(stdout.lines().any(is_figure), "{stdout}");
    // What has no figure is told in a sentence, which breaks between any two words.
    for line in stdout.lines().take_while(|line| !line.starts_with("No figure: ")) {
        assert!(line.chars().count() <= 80, "{line}");
        let is_unit = |word| ["ns", "µs", "ms", "%", "B", "KiB", "MiB"].contains(&word);
        // Columns are two blanks apart, or more, if the next cell is not as wide as its column.
        for cell in line.split("  ") {
            assert!(!cell.split_whitespace().next().is_some_and(is_unit), "{line} in {stdout}");
        }
    }
}

#[test]
fn a_figure_is_never_split_from_its_unit_at_80_columns() {
    let suite = ["simulate", "--suite", "--only", "lone-updater,stalled-reader"];
    let (stdout, _) = expect_code(&rcu(suite).env("COLUMNS", "80").output().unwrap(), 0);
    has_whole_figures(&stdout, "liburcu ");
}

#[test]
fn costs_alone_have_json_and_a_page_too() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    let mut command = rcu(["costs", "--quick", "--html"]);
    let (output, report) = documented(command.arg(&page).env("COLUMNS", "80"));
    let (stdout, _) = expect_code(&output, 0);
    has_whole_figures(&stdout, "instruction ");
    assert_eq!(report["schema"], "quiescence/costs");
    let page = std::fs::read_to_string(page).unwrap();
    // On a machine that does something else no figure may be left to draw.
    let rows = report["costs"]["rows"].as_array().unwrap();
    let has_l1 = rows.iter().any(|row| row["id"] == "l1_hit" && !row["ns"].is_null());
    let drawn: &[&str] = &["<title>L1 hit", "time of one operation", "whisker"];
    // On A4 nothing is cut off, and code fits its column on a screen.
    let rules = ["Where this comes from", "@media print", "size: A4", "pre {"];
    for expected in rules.iter().chain(drawn.iter().filter(|_| has_l1)) {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    for row in rows {
        let (ns, missing) = (&row["ns"], &row["missing"]);
        assert!(ns.is_null() != missing.is_null(), "measured or missing: {row}");
        if !ns.is_null() {
            assert!(ns["median"].as_f64().unwrap() > 0.0, "{row}");
        }
    }
}
