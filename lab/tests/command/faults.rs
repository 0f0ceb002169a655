//! Faults of the command that users met, each held by the test that its mending began with.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::OpenOptions;

use crate::common::{advised, expect_code, fails, file, json, rcu, refused, run, tiny};

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
    assert!(stderr.contains("is not text") && !stderr.contains("no such file"), "{stderr}");
}

#[test]
fn a_negative_number_is_refused_with_the_limits() {
    for args in
        [&["--threads", "-3"][..], &["--value-bytes", "-3"], &["bench", "map", "--threads", "-3"]]
    {
        let (_, stderr) = expect_code(&run(args), 2);
        assert!(stderr.contains("-3") && !stderr.contains("unexpected"), "{args:?}: {stderr}");
    }
}

#[test]
fn words_of_rust_do_not_reach_the_user() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "w.toml", "reads = \"most\"\n");
    let workload = path.to_str().unwrap();
    let cases: [&[&str]; 5] = [
        &["--workload", workload],
        &["--reads", "most"],
        &["--threads", "many"],
        &["bench", "read", "--rounds", "many"],
        &["top", "1", "--interval", "soon"],
    ];
    for args in cases {
        let (_, stderr) = expect_code(&run(args), 2);
        for word in ["f64", "float literal", "invalid digit", "i64", "u32"] {
            assert!(!stderr.contains(word), "{args:?}: {stderr}");
        }
        assert!(stderr.contains("number"), "{args:?}: {stderr}");
    }
}

#[test]
fn output_begins_with_words() {
    let (stdout, _) = advised(&tiny(&[]).output().unwrap());
    assert!(!stdout.starts_with('\n'), "{stdout}");
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

#[test]
fn the_advice_and_the_documentation_count_the_same_stores() {
    let documentation = include_str!("../../../quiescence/src/domain/guard.rs");
    assert!(documentation.contains("takes three stores to the thread's own cache line"));
    let advice = include_str!("../../../bench/designs.toml");
    assert!(advice.contains("three plain stores to the thread's own cache line"));
}

#[test]
fn every_document_says_where_it_comes_from() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (document, page, text, values) = (at("a.json"), at("a.html"), at("a.md"), at("a.csv"));
    let files = ["--json", &document, "--html", &page, "--markdown", &text, "--csv", &values];
    advised(&tiny(&files).output().unwrap());
    let found = json(document.as_ref());
    let provenance = &found["provenance"];
    for member in ["date", "host_class", "cpu", "command_line", "version", "commit"] {
        assert!(provenance[member].as_str().is_some_and(|text| !text.is_empty()), "{member}");
    }
    assert!(provenance.get("host_name").is_none());
    for path in [&page, &text] {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains(provenance["date"].as_str().unwrap()), "{path}");
    }
    let values = std::fs::read_to_string(values).unwrap();
    let is_ranked = !found["designs"].as_array().unwrap().is_empty();
    let has = [values.starts_with("table,"), values.contains("Ranking")];
    assert_eq!(has, [is_ranked; 2], "{values}");
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

#[test]
fn each_command_has_a_manual_page() {
    let directory = tempfile::tempdir().unwrap();
    expect_code(&run(["man", "--dir", directory.path().to_str().unwrap()]), 0);
    for page in ["rcu.1", "rcu-bench.1", "rcu-bench-read.1"] {
        assert!(directory.path().join(page).is_file(), "{page}");
    }
}

#[test]
fn a_figure_is_never_split_from_its_unit_at_80_columns() {
    let suite = ["simulate", "--suite", "--only", "lone-updater,stalled-reader"];
    for (args, name) in [(&suite[..], "liburcu "), (&["costs", "--quick"], "instruction ")] {
        let output = rcu(args.iter()).env("COLUMNS", "80").output().unwrap();
        let (stdout, _) = advised(&output);
        let is_figure = |line: &str| line.starts_with(name) && line.contains(" ns");
        assert!(stdout.lines().any(is_figure), "{stdout}");
        for line in stdout.lines() {
            assert!(line.chars().count() <= 80, "{line}");
            let is_unit = |word| ["ns", "µs", "ms", "%", "B", "KiB", "MiB"].contains(&word);
            // Columns are two blanks apart, or more, if the next cell is not as wide as its column.
            for cell in line.split("  ") {
                assert!(!cell.split_whitespace().next().is_some_and(is_unit), "{line} in {stdout}");
            }
        }
    }
}
