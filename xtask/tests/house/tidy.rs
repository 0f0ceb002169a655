//! The rules of the house for the whole workspace, as far as a reading of the files can hold them.
//!
//! - A line has at most [`COLUMNS_MAX`] columns: code and comments, scripts, and the prose of
//!   documents (their tables and code blocks may be wider).
//! - A file of Rust has at most [`LINES_MAX`] lines.
//! - An invariant has a name of its own: no two are stated under one.
//! - A test runs programs that each machine has which builds the workspace, or asks for others first
//!   ([`Programs`]).
//! - A test with cases of `proptest` writes none of them into the tree.
//! - Each environment variable that the code names is in one table for users or for developers
//!   ([`VARIABLES`]), and no table has others.
//!
//! What breaks a rule still is listed in `tests/tidy.toml`, with how often. The lists are exact:
//! they can only become shorter. If one has to change, the test writes what it should be to
//! `target/tidy.toml`.
//!
//! Which module may import which, and the lists of locks, are the library's own rules:
//! `quiescence/tests/house/tidy.rs`. That both ends of each ordering edge are cited is held where
//! the mutants of the edges are known, in the explorer's `tests/orderings.rs`. That a file of tests
//! is compiled at all is held by `modules.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use serde::{Deserialize, Serialize};

use crate::common::{files, workspace};

const COLUMNS_MAX: usize = 100;
const LINES_MAX: usize = 700;

/// The file that has the names which this test looks for.
const UNREAD: [&str; 1] = ["xtask/tests/house/tidy.rs"];

/// The tables of environment variables, each in a document: for users, and for developers.
const VARIABLES: [&str; 2] = ["docs/GUIDE.md", "CONTRIBUTING.md"];

/// The programs that code of the workspace runs by their names: `tests/programs.toml`.
#[derive(Deserialize)]
struct Programs {
    there: Vec<String>,
    asked_for: Vec<String>,
    of_commands: Vec<String>,
}

/// What breaks a rule still: by file, how often (of `lines`: how many lines the file has).
#[derive(Debug, Default, Deserialize, Serialize, PartialEq)]
struct Ratchets {
    columns: BTreeMap<String, usize>,
    lines: BTreeMap<String, usize>,
}

/// What a file is, as far as the rules differ.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Rust,
    /// C, C++ and scripts.
    Other,
    Document,
}

fn kind(name: &str) -> Option<Kind> {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension {
        "rs" => Some(Kind::Rust),
        "md" => Some(Kind::Document),
        "c" | "h" | "cpp" | "sh" => Some(Kind::Other),
        _ if name.starts_with(".ci/") => Some(Kind::Other),
        _ => None,
    }
}

/// How many lines are too long.
fn long_lines(kind: Kind, text: &str) -> usize {
    let mut in_block = false;
    let is_long = |line: &&str| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        let free = kind == Kind::Document
            && (in_block || line.trim_start().starts_with('|') || line.contains("]: "));
        !free && line.chars().count() > COLUMNS_MAX
    };
    text.lines().filter(is_long).count()
}

#[test]
fn the_rules_are_kept_but_for_what_is_listed() {
    let mut now = Ratchets::default();
    for (name, text) in files() {
        let Some(kind) = kind(&name) else { continue };
        let note = |list: &mut BTreeMap<String, usize>, times: usize| {
            _ = (times != 0).then(|| list.insert(name.clone(), times));
        };
        let lines = text.lines().count();
        note(&mut now.lines, if kind == Kind::Rust && lines > LINES_MAX { lines } else { 0 });
        if UNREAD.iter().any(|unread| name.ends_with(unread)) {
            continue;
        }
        note(&mut now.columns, long_lines(kind, &text));
    }
    let listed = fs::read_to_string(workspace().join("xtask/tests/tidy.toml")).expect("the lists");
    let known: Ratchets = toml::from_str(&listed).expect("the lists are well-formed");
    if now == known {
        return;
    }
    let text = toml::to_string(&now).expect("lists of numbers");
    let text = format!("# What breaks a rule of tidy.rs still. The lists only shrink.\n\n{text}");
    let mut said = String::new();
    let pairs = [("columns", &now.columns, &known.columns), ("lines", &now.lines, &known.lines)];
    for (rule, now, known) in pairs {
        for file in now.keys().chain(known.keys()).collect::<BTreeSet<_>>() {
            let [now, known] = [now, known].map(|list| list.get(file).copied().unwrap_or(0));
            if now != known {
                writeln!(said, "{rule}: {file} has {now}, and {known} are listed").expect("memory");
            }
        }
    }
    let written = workspace().join("target/tidy.toml");
    fs::create_dir_all(workspace().join("target")).expect("a folder can be made");
    fs::write(&written, text).expect("a file can be written");
    panic!(
        "{said}\nMore than listed: mend it. Less: shorten the lists in xtask/tests/tidy.toml; {} has \
         what they should be.",
        written.display(),
    );
}

/// The variables that a text names as whole strings.
fn named(text: &str) -> BTreeSet<String> {
    let strings = text.split('"').filter(|string| string.starts_with("QUIESCENCE_"));
    let is_name = |string: &&str| {
        !string.ends_with('_') && string.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    };
    strings.filter(is_name).map(str::to_owned).collect()
}

/// The variables that begin a row of a table.
fn rows(text: &str) -> Vec<String> {
    let cells = text.lines().filter_map(|line| line.strip_prefix("| `QUIESCENCE_"));
    let cells = cells.filter_map(|line| line.split('|').next());
    cells
        .flat_map(|cell| {
            let more = cell.split("`QUIESCENCE_").map(|part| part.to_owned());
            more.map(|part| {
                let end = part.find(|c: char| !(c.is_ascii_uppercase() || c == '_'));
                format!("QUIESCENCE_{}", &part[..end.unwrap_or(part.len())])
            })
        })
        .collect()
}

#[test]
fn each_environment_variable_is_documented_once() {
    let files = files();
    let rust = files
        .iter()
        .filter(|(name, _)| kind(name) == Some(Kind::Rust) && !UNREAD.contains(&name.as_str()));
    let used: BTreeSet<String> = rust.flat_map(|(_, text)| named(text)).collect();
    assert!(used.len() > 10, "{used:?}");
    let documented: Vec<String> = VARIABLES.iter().flat_map(|name| rows(&files[*name])).collect();
    let once: BTreeSet<String> = documented.iter().cloned().collect();
    let missing: Vec<_> = used.difference(&once).collect();
    assert!(missing.is_empty(), "in no table of {VARIABLES:?}: {missing:?}");
    let gone: Vec<_> = once.difference(&used).collect();
    assert!(gone.is_empty(), "in a table of {VARIABLES:?}, and not in the code: {gone:?}");
    assert_eq!(once.len(), documented.len(), "some are there more than once: {documented:?}");
}

/// The programs that code names where it starts one. Names in capitals are variables, and files in a
/// folder are its own.
fn started(code: &str) -> Vec<&str> {
    let calls = code.split("Command::new(").skip(1);
    let arguments = calls.filter_map(|rest| Some(rest.split_once(')')?.0));
    let arguments = arguments.filter(|argument| !argument.contains(".join("));
    let named = arguments.flat_map(|argument| argument.split('"').skip(1).step_by(2));
    named.filter(|name| name.starts_with(char::is_lowercase)).collect()
}

/// The part of a file of Rust that is compiled for tests only.
fn test_code<'t>(name: &str, text: &'t str) -> &'t str {
    let in_folder = name.split('/').any(|part| matches!(part, "tests" | "tests.rs"));
    let begins = if in_folder { Some(0) } else { text.find("\nmod tests {") };
    &text[begins.unwrap_or(text.len())..]
}

/// The module of a test program that a file is part of: `room/tests/program/name.rs` and
/// `room/tests/program/name/part.rs`.
fn test_module(name: &str) -> &str {
    let Some((room, rest)) = name.split_once("/tests/") else { return name };
    let end = rest.match_indices(['/', '.']).nth(1).map_or(rest.len(), |(at, _)| at);
    &name[..room.len() + "/tests/".len() + end]
}

#[test]
fn tests_run_what_every_machine_has_or_ask_first() {
    let files = files();
    let rust: Vec<_> = (files.iter())
        .filter(|(name, _)| kind(name) == Some(Kind::Rust) && *name != "xtask/tests/house/tidy.rs")
        .collect();
    let of_test_module = |name: &str| -> String {
        let same = rust.iter().filter(|(other, _)| test_module(other) == test_module(name));
        same.map(|(_, text)| text.as_str()).collect()
    };
    let known: Programs = toml::from_str(include_str!("../programs.toml")).expect("the lists");
    let mut found = BTreeSet::new();
    for (name, text) in &rust {
        let in_tests = test_code(name, text);
        for program in started(text) {
            let is_of = |list: &[String]| list.iter().any(|known| known == program);
            let [there, asked_for] = [&known.there, &known.asked_for].map(|list| is_of(list));
            let is_listed = there || asked_for || is_of(&known.of_commands);
            assert!(is_listed, "{name} runs {program}: not listed");
            found.insert(program);
            let asks = || ["needs::", "expect::"].iter().any(|a| of_test_module(name).contains(a));
            let is_fine = there || !started(in_tests).contains(&program) || asked_for && asks();
            assert!(is_fine, "a test in {name} runs {program}, and does not ask for it");
        }
    }
    assert!(found.len() > 15, "{found:?}");
}

/// A script that nothing runs is one that no longer works.
#[test]
fn each_check_is_part_of_what_ci_runs_or_of_the_night() {
    let files = files();
    let runs = ["run", "test", "steps", "only", "nightly"].map(|name| format!(".ci/{name}"));
    let named: BTreeSet<&str> = (runs.iter())
        .flat_map(|name| files[name].split(|c: char| !(c.is_alphanumeric() || c == '-')))
        .collect();
    for name in files.keys().filter_map(|name| name.strip_prefix(".ci/")) {
        // `judge` is sourced; the others are begun by a person, or by git.
        let is_begun = matches!(name, "run" | "nightly" | "pre-commit");
        let is_known = named.contains(name) || name == "judge" || is_begun;
        assert!(is_known, ".ci/{name} is in no list");
    }
}

/// `proptest` writes a case that fails into the tree, unless it is told not to.
#[test]
fn a_case_that_fails_is_written_into_no_file() {
    let files = files();
    let written: Vec<_> = files.keys().filter(|name| name.contains("regressions")).collect();
    assert!(written.iter().all(|name| !name.contains("proptest")), "{written:?}");
    for (name, text) in files.iter().filter(|(name, _)| name.ends_with(".rs")) {
        let count = |what| text.matches(what).count();
        let told = count("failure_persistence: None") + count("::written_nowhere()");
        assert!(count("\nproptest! {") <= told, "{name}");
    }
}

/// The names under which a text states invariants.
fn invariants(text: &str) -> Vec<&str> {
    let stated = text.split("Invariant [").skip(1);
    stated.filter_map(|rest| Some(rest.split_once(']')?.0)).collect()
}

#[test]
fn each_invariant_has_a_name_of_its_own() {
    let mut stated = BTreeMap::<String, Vec<String>>::new();
    for (file, text) in files() {
        if matches!(kind(&file), Some(Kind::Rust | Kind::Document)) && !UNREAD.contains(&&*file) {
            for name in invariants(&text) {
                stated.entry(name.to_owned()).or_default().push(file.clone());
            }
        }
    }
    assert!(stated.len() > 20, "{stated:?}");
    stated.retain(|_, files| files.len() != 1);
    assert!(stated.is_empty(), "stated more than once: {stated:?}");
}

/// The rules notice what they are about.
#[test]
fn faults_are_found() {
    assert_eq!(
        invariants("//! **Invariant [X-1]: a** ... [X-2], Invariant [Y-3]."),
        ["X-1", "Y-3"]
    );
    let long = format!("// {}\n", "x".repeat(COLUMNS_MAX));
    assert_eq!(long_lines(Kind::Rust, &long), 1);
    assert_eq!(long_lines(Kind::Document, &format!("| {long}```\n{long}```\n{long}")), 1);
    assert_eq!(named("env(c\"QUIESCENCE_X\"), \"QUIESCENCE_Y=1\"").len(), 1);
    let code = "Command::new(if is_cpp { \"g++\" } else { \"gcc\" }) Command::new(x)\nmod tests {\n\
                Command::new(\"kill\").arg(\"x\")";
    assert_eq!(started(code), ["g++", "gcc", "kill"]);
    assert_eq!(started(test_code("xtask/src/a.rs", code)), ["kill"]);
    assert_eq!(started(test_code("xtask/tests/a/b.rs", code)).len(), 3);
    assert_eq!(test_module("a/tests/b/c/d.rs"), test_module("a/tests/b/c.rs"));
    assert_eq!(rows("| `QUIESCENCE_A=1`, `QUIESCENCE_B` | `x` |").len(), 2);
}
