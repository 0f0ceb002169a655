//! `docs/ORDERINGS.md`, the code and the mutants name the same edges.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use check::{Kind, MUTANTS};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("check is in the workspace").to_owned()
}

fn document() -> String {
    fs::read_to_string(workspace().join("docs/ORDERINGS.md")).expect("the document is there")
}

/// The names of edges cited in a text, as often as they are.
fn citations(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for prefix in ["[GP-", "[DQ-"] {
        for (at, _) in text.match_indices(prefix) {
            let digits = text[at + 4..].split(']').next().unwrap_or_default();
            assert!(digits.parse::<u32>().is_ok(), "not the name of an edge: {prefix}{digits}]");
            found.push(format!("{}{digits}", &prefix[1..]));
        }
    }
    found
}

/// What the document says of each grace-period edge: the paragraph that begins with its name.
fn edges() -> BTreeMap<String, String> {
    let text = document();
    let sections = text.split("\n**[GP-").skip(1);
    let edges: BTreeMap<String, String> = sections
        .map(|section| {
            let section = section.split("\n\n").next().unwrap_or_default();
            let (number, rest) = section.split_once(']').expect("a name ends with a bracket");
            (format!("GP-{number}"), rest.to_owned())
        })
        .collect();
    assert_eq!(edges.len(), 10, "{:?}", edges.keys());
    edges
}

fn sources(folder: &Path, into: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("UTF-8");
            into.push((path, text));
        }
    }
}

/// Where the library cites each edge: file and line. The module docs do not count: they are no end.
fn cited() -> BTreeMap<String, BTreeSet<(PathBuf, usize)>> {
    let mut files = Vec::new();
    sources(&workspace().join("quiescence/src"), &mut files);
    let mut cited: BTreeMap<String, BTreeSet<(PathBuf, usize)>> = BTreeMap::new();
    for (path, text) in files {
        for (index, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("//!") {
                citations(line); // well-formed, at least
                continue;
            }
            for name in citations(line) {
                cited.entry(name).or_default().insert((path.clone(), index + 1));
            }
        }
    }
    cited
}

#[test]
fn both_ends_of_every_edge_are_in_the_code() {
    let cited = cited();
    for name in edges().keys() {
        let places = cited.get(name).map_or(0, BTreeSet::len);
        assert!(places >= 2, "[{name}] is cited in {places} places of quiescence/src");
    }
}

#[test]
fn no_edge_is_cited_that_the_document_lacks() {
    let known: BTreeSet<String> = citations(&document()).into_iter().collect();
    for (name, places) in cited() {
        assert!(known.contains(&name), "[{name}] is not in docs/ORDERINGS.md, but in {places:?}");
    }
}

#[test]
fn every_edge_names_its_mutants() {
    for (name, text) in edges() {
        let named = |fault: &&check::Fault| text.contains(&format!("`{}`", fault.name));
        let fatal: Vec<_> = MUTANTS
            .iter()
            .filter(|fault| fault.kind != Kind::Harmless && fault.edges.contains(&name.as_str()))
            .collect();
        assert!(!fatal.is_empty(), "no mutant takes [{name}] away");
        for fault in &fatal {
            assert!(named(fault), "[{name}] does not name {}", fault.name);
        }
        // And none that the table knows nothing of.
        let mutants = text.split("- Mutant").nth(1).expect("each edge has a list of mutants");
        for word in mutants.split('`').skip(1).step_by(2) {
            assert!(MUTANTS.iter().any(|fault| fault.name == word), "[{name}] names {word}");
        }
    }
}

#[test]
fn every_mutant_is_in_the_document() {
    let text = document();
    for fault in MUTANTS {
        assert!(text.contains(&format!("`{}`", fault.name)), "{} is missing", fault.name);
    }
}

#[test]
fn the_document_repeats_the_transcriptions_word_for_word() {
    let text = document();
    for file in ["world/reader", "world/updater", "world/driver", "limit/retire", "limit/run"] {
        let path = workspace().join(format!("check/src/{file}.rs"));
        let source = fs::read_to_string(path).expect("the source is there");
        let block = source.split("//! ```").nth(1).expect("it has a transcription");
        for line in block.lines().skip(1).filter(|line| !line.is_empty()) {
            let line = line.trim_start_matches("//!").trim_start_matches(' ');
            assert!(text.contains(line), "docs/ORDERINGS.md lacks the line of {file}: {line}");
        }
    }
}
