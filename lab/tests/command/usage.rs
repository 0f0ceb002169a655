//! Every bad value is refused at once, with what is wrong, where, and exit code 2.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::common::{expect_code, file, rcu, refused, run};
use serde::Deserialize;
use serde_json::Value;

/// What the command answers where nothing is measured.
#[derive(Deserialize)]
struct Answers {
    /// The text of a workload file, and what the answer says after its name.
    workload_files: Vec<(String, String)>,
    said: Rows,
    refused: Rows,
}

/// By commands: more words, as a shell takes them, and then what the answer says.
type Rows = BTreeMap<String, Vec<Vec<String>>>;

impl Answers {
    fn read() -> Self {
        toml::from_str(include_str!("../answers.toml")).expect("well-formed")
    }
}

/// The words of each command line, and what it says.
fn lines(rows: Rows) -> impl Iterator<Item = (Vec<String>, Vec<String>)> {
    let of = |(command, rows): (String, Vec<Vec<String>>)| {
        rows.into_iter().map(move |mut row| {
            let said = row.split_off(1);
            let words = shlex::split(&format!("{command} {}", row[0])).expect("words of a shell");
            assert!(!said.is_empty(), "{words:?}");
            (words[1..].to_vec(), said)
        })
    };
    rows.into_iter().flat_map(of)
}

#[test]
fn what_is_asked_is_said() {
    for (words, said) in lines(Answers::read().said) {
        let (stdout, _) = expect_code(&run(&words), 0);
        let text = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for expected in said {
            assert!(text.contains(&expected), "{words:?}, {expected} is missing:\n{stdout}");
        }
    }
}

#[test]
fn what_is_wrong_is_refused_with_the_limits_or_the_known_names() {
    for (words, said) in lines(Answers::read().refused) {
        said.iter().for_each(|said| refused(&words, said));
    }
}

/// It had an option that they refuse.
#[test]
fn the_help_of_commands_without_json_does_not_have_it() {
    for words in ["completions bash", "demo", "man", "schema"] {
        let (help, _) = expect_code(&run(words.split(' ').chain(["--help"])), 0);
        assert!(help.contains("--html") && !help.contains("--json <FILE>"), "{help}");
        let (_, stderr) = expect_code(&run(words.split(' ').chain(["--json", "-"])), 2);
        assert!(stderr.contains("it has no JSON"), "{stderr}");
    }
}

/// It showed that of `rcu` without a command.
#[test]
fn a_bad_number_shows_the_usage_of_no_other_command() {
    for args in [["top", "many"], ["simulate", "--seed=many"]] {
        let (_, stderr) = expect_code(&run(args), 2);
        assert!(stderr.contains("try '--help'") && !stderr.contains("Usage"), "{stderr}");
    }
}

#[test]
fn a_bad_workload_file_is_refused_with_its_name_and_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "bytes.toml", b"\xff\xfe\x00");
    refused(&["--workload".as_ref(), path.as_os_str()], "bytes.toml");
    for (text, expected) in Answers::read().workload_files {
        let path = file(directory.path(), "bad.toml", text);
        refused(&["--workload".as_ref(), path.as_os_str()], &format!("bad.toml{expected}"));
    }
}

#[test]
fn a_workload_that_does_not_fit_into_memory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let lines: String = (0..500_000).map(|line| format!("{line}\n")).collect();
    let path = file(directory.path(), "keys.txt", lines);
    let keys = path.to_str().unwrap();
    let args = ["--keys", keys, "--max-keys", "500000", "--value-bytes", "1048576"];
    let (_, stderr) = expect_code(&run(args), 2);
    assert!(stderr.contains("--max-keys") && stderr.contains("are available"), "{stderr}");
}

/// It was killed after minutes.
#[test]
fn maps_that_do_not_fit_into_memory_are_refused() {
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap();
    let kilobytes = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes: u64 = kilobytes.unwrap().trim_end_matches("kB").trim().parse().unwrap();
    if kilobytes < 50_000_000 {
        let keys = ["--keys", "1000000000", "--strings", "--only", "quiescence-hashmap"];
        refused(&[&["bench", "map"][..], &keys].concat(), "are available; take fewer --keys");
    }
}

#[test]
fn every_schema_is_printed_and_agrees_with_the_others_on_what_they_share() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/schema");
    let (listed, _) = expect_code(&run(["schema"]), 0);
    let mut shared: BTreeMap<String, Value> = BTreeMap::new();
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().and_then(|name| name.to_str()).unwrap();
        let name = file.strip_suffix(".schema.json").expect("a schema");
        let (printed, _) = expect_code(&run(["schema", name]), 0);
        assert_eq!(printed, std::fs::read_to_string(&path).unwrap());
        let schema: Value = serde_json::from_str(&printed).unwrap();
        let of_document = format!("quiescence/{name}");
        assert_eq!(schema["properties"]["schema"]["const"], of_document.as_str());
        assert!(listed.lines().any(|line| line.trim_start().starts_with(name)), "{listed}");
        for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
            let known = shared.entry(name.clone()).or_insert_with(|| definition.clone());
            assert_eq!(known, definition, "{name} in {file}");
        }
        count += 1;
    }
    assert_eq!(listed.lines().count(), count + 3, "a header, one line for each, and a hint");
}

#[test]
fn without_arguments_it_begins_with_an_example() {
    let mut child = rcu([""; 0]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut first).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(first.contains("`rcu --quick`") && first.contains("`rcu --help`"), "{first}");
}

/// The commands that a help lists.
fn listed(help: &str) -> Vec<&str> {
    let commands = help.split("Commands:\n").nth(1).unwrap_or_default();
    let names = commands.lines().map_while(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").collect()
}

#[test]
fn help_was_100_wide_whatever_the_terminal() {
    let help = |words: &[&str]| expect_code(&rcu(words).env("COLUMNS", "200").output().unwrap(), 0);
    let (all, _) = help(&["-h"]);
    let (suites, _) = help(&["bench", "-h"]);
    let commands = listed(&all).into_iter().map(|name| vec![name]);
    let suites = listed(&suites).into_iter().map(|name| vec!["bench", name]);
    let mut count = 0;
    for command in commands.chain(suites).chain([vec![]]) {
        for (flag, lines_max) in [("-h", 40), ("--help", 250)] {
            let (text, _) = help(&[&command[..], &[flag]].concat());
            let example = format!("Example: {}", [&["rcu"], &command[..]].concat().join(" "));
            assert!(text.starts_with(&example), "{example}: {text}");
            for line in text.lines() {
                assert!(line.chars().count() <= 80, "{command:?} {flag}: {line}");
            }
            let lines = text.lines().count();
            assert!(lines <= lines_max || command == ["torture"], "{command:?}: {lines}\n{text}");
            count += 1;
        }
    }
    assert!(count > 40, "{count}: {all}");
}

#[test]
fn the_demo_shows_a_limit_that_holds_and_names_the_reader_that_stalls() {
    let mut command = rcu(["demo", "--seconds", "3"]);
    let output = command.env("QUIESCENCE_LIMIT_OBJECTS", "100").output().unwrap();
    let (stdout, _) = expect_code(&output, 0);
    let words = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in
        [" reads/s ", "the thread stalled-reader is in a section, begun at lab/src/demo.rs"]
    {
        assert!(words.contains(expected), "{expected}: {stdout}");
    }
    let count = |label: &str| -> u64 {
        let line = stdout.lines().find(|line| line.starts_with(label)).expect(label);
        line.split_whitespace().last().unwrap().replace(',', "").parse().unwrap()
    };
    assert!(count("waits at the limit") > 0 && count("stall reports") > 0, "{stdout}");
    assert_eq!(count("versions replaced"), count("of these, freed"), "{stdout}");
    assert!(count("versions replaced") > 400, "about as many as the limit holds: {stdout}");
    let is_above = |line: &&str| line.contains(" MiB wait") && !line.contains("  1 MiB wait");
    assert_eq!(stdout.lines().find(is_above), None, "{stdout}");
}

#[test]
fn the_demo_left_an_old_document_as_if_it_were_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "old.json", "{}");
    let json = path.to_str().unwrap();
    refused(&["demo", "--json", json], "this command writes text; it has no JSON");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{}");
}
