//! What each package weighs, and each file of `TRUST.md`: its lines of code, which are neither
//! blank nor comment nor test.
//!
//! A commit that needs more raises the number there, or in `budget.toml`, and says why. One that
//! has taken away more than one line in a hundred lowers it, so that what was won is kept.

use std::collections::BTreeMap;
use std::fs;

use serde::Deserialize;

use crate::common::{paths, workspace};

/// Of this many lines of a budget one may be unused.
const SLACK: usize = 100;

#[derive(Debug, Deserialize)]
struct Budget {
    code: BTreeMap<String, usize>,
}

/// The part of the workspace that a file of Rust is of: two folders deep where a package has
/// several.
fn part(path: &str) -> String {
    let mut folders = path.split('/');
    let top = folders.next().unwrap_or_default();
    match (top, folders.next()) {
        ("verify" | "quiescence", Some(below)) => format!("{top}/{below}"),
        ("kernel", Some(part @ ("conformance" | "demo" | "examples"))) => format!("kernel/{part}"),
        _ => top.to_owned(),
    }
}

/// Whether all of a file is a test, by its name.
fn is_test(path: &str) -> bool {
    path.split('/').any(|name| {
        let stem = name.strip_suffix(".rs").unwrap_or(name);
        matches!(stem, "tests" | "benches" | "loom_tests" | "test")
            || name.starts_with("test_")
            || name.starts_with("tests_")
            || name.ends_with("_test.rs")
            || name.ends_with("_tests.rs")
    })
}

/// Without strings, characters and what follows `//`: braces in them close nothing.
fn bare(line: &str) -> String {
    let mut bare = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next().filter(|_| !rest.starts_with("//")) {
        let literal = matches!(first, '"' | '\'').then(|| end_of_literal(rest, first)).flatten();
        bare.extend(literal.is_none().then_some(first));
        rest = &rest[literal.unwrap_or(first.len_utf8())..];
    }
    bare
}

/// Where a literal ends that begins with this quote; a lifetime is none.
fn end_of_literal(text: &str, quote: char) -> Option<usize> {
    let (mut inside, mut is_escaped) = (0, false);
    for (at, of) in text.char_indices().skip(1) {
        if !is_escaped && of == quote {
            return (quote == '"' || inside == 1).then_some(at + 1);
        }
        is_escaped = !is_escaped && of == '\\';
        inside += usize::from(!is_escaped);
    }
    None
}

/// The lines of code of a file that is no test.
fn code(text: &str) -> usize {
    let (mut code, mut depth) = (0, 0_i64);
    let (mut is_block, mut is_marked) = (false, false);
    // The depth of the item that is a test, while it lasts.
    let mut test = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if is_block || line.starts_with("/*") {
            is_block = !line.contains("*/");
            continue;
        }
        if line.starts_with("//") {
            continue;
        }
        is_marked |= line.starts_with("#[cfg(test") || line.starts_with("#[cfg(all(test");
        let bare = bare(line);
        let count = |brace| bare.matches(brace).count() as i64;
        let (opened, change) = (count('{') > 0, count('{') - count('}'));
        let mut is_tested = test.is_some();
        if is_marked && test.is_none() && !line.starts_with('#') {
            if opened {
                (test, is_marked, is_tested) = (Some(depth), false, true);
            } else if line.ends_with(';') {
                (is_marked, is_tested) = (false, true);
            }
        }
        depth += change;
        code += usize::from(!is_tested);
        if test.is_some_and(|begun| depth <= begun) {
            test = None;
        }
    }
    code
}

fn text_of(path: &str) -> String {
    fs::read_to_string(workspace().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What is wrong of so many lines where these are the budget.
fn complaint(what: &str, lines: usize, most: usize) -> Option<String> {
    if lines > most {
        Some(format!("{what} has {lines} lines of code, and {most} are its budget"))
    } else if lines + most / SLACK < most {
        Some(format!("{what} has {lines} lines of code only: lower {most}"))
    } else {
        None
    }
}

#[test]
fn every_part_of_the_workspace_keeps_to_its_budget() {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let is_code = |path: &str| path.ends_with(".rs") && !is_test(path);
    // A link counts as what it leads to: who reads the package reads that.
    for path in paths().into_iter().filter(|path| is_code(path)) {
        *seen.entry(part(&path)).or_default() += code(&text_of(&path));
    }
    let file = "xtask/tests/budget.toml";
    let Budget { code: budget } = toml::from_str(&text_of(file)).expect(file);
    let mut wrong = Vec::new();
    for (part, lines) in &seen {
        match budget.get(part) {
            None => wrong.push(format!("{part} has {lines} lines of code and no budget")),
            Some(most) => wrong.extend(complaint(part, *lines, *most)),
        }
    }
    for part in budget.keys().filter(|part| !seen.contains_key(*part)) {
        wrong.push(format!("{part} is no part of the workspace any more"));
    }
    assert!(wrong.is_empty(), "{file}:\n{}", wrong.join("\n"));
}

#[test]
fn what_must_be_right_keeps_to_its_budget() {
    let text = text_of("TRUST.md");
    let (mut files, mut lines, mut wrong) = ([0, 0], [0, 0], Vec::new());
    for row in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, path, most, mark, what, _] = cells[..] else { panic!("not a row: {row}") };
        let (path, most) = (path.trim_matches('`'), most.parse().expect(row));
        assert!(matches!(mark, "" | "unsound") && !what.is_empty(), "{row}");
        wrong.extend(complaint(path, code(&text_of(path)), most));
        for kind in 0..=usize::from(mark == "unsound") {
            files[kind] += 1;
            lines[kind] += most;
        }
    }
    let ([all, unsound], [of_all, of_unsound]) = (files, lines);
    let sum = format!(
        "{all} files with {of_all} lines, of which {unsound} files with {of_unsound} lines are \
         unsound if wrong"
    );
    if !text.contains(&sum) {
        wrong.push(format!("it is {sum}"));
    }
    assert!(wrong.is_empty(), "TRUST.md:\n{}", wrong.join("\n"));
}

#[test]
fn tests_comments_and_blanks_are_no_code() {
    let text = r##"//! What it is.

/* A block
   of words. */
fn one() -> char {
    // Why.
    let brace = "{";
    '{'
}

#[cfg(test)]
use std::fmt;

#[cfg(test)]
mod tests {
    fn two() {
        if true {}
    }
}
static LIFE: &'static str = "/* no block";
"##;
    // `one` has four, each mark one, and the last line.
    assert_eq!(code(text), 4 + 2 + 1);
    assert!(is_test("a/tests/b.rs") && is_test("a/tests.rs") && is_test("a/b_tests.rs"));
    assert!(!is_test("a/testing.rs") && !is_test("a/attest.rs"));
    assert_eq!(
        (part("quiescence/src/a.rs"), part("lab/src/a.rs")),
        ("quiescence/src".into(), "lab".into())
    );
}
