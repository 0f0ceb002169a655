//! `docs/ORDERINGS.md`, the code and the mutants name the same edges.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use check::limit::LIMITED;
use check::{GRACE_PERIODS, Kind, World};
use mutants::Catcher;

fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("it is in the workspace's folder verify").to_owned()
}

fn document() -> String {
    fs::read_to_string(workspace().join("docs/ORDERINGS.md")).expect("the document is there")
}

/// What the names of edges begin with.
const EDGES: [&str; 19] = [
    "GP", "UL", "TK", "DQ", "DS", "LN", "FR", "SR", "RR", "FD", "BR", "LG", "SQ", "LT", "HP", "ID",
    "HM", "CM", "KN",
];

/// The names of edges cited in a text, as often as they are.
fn citations(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for prefix in EDGES {
        for (at, start) in text.match_indices(&format!("[{prefix}-")) {
            let digits = text[at + start.len()..].split(']').next().unwrap_or_default();
            if digits.starts_with('I') {
                continue; // an invariant's: what the edges are for
            }
            assert!(digits.parse::<u32>().is_ok(), "not the name of an edge: [{prefix}-{digits}]");
            found.push(format!("{prefix}-{digits}"));
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

/// Where the library, or the kernel crate, cites each edge: file and line. The module docs do not
/// count: they are no end.
fn cited() -> BTreeMap<String, BTreeSet<(PathBuf, usize)>> {
    let mut files = Vec::new();
    for folder in ["quiescence/src", "kernel/src"] {
        sources(&workspace().join(folder), &mut files);
    }
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
    let (cited, text) = (cited(), document());
    let defined: Vec<&str> = text
        .split("\n**[")
        .skip(1)
        .filter_map(|paragraph| paragraph.split(']').next())
        .filter(|name| EDGES.contains(&name.split('-').next().unwrap_or_default()))
        // The other end of the queues' is [GP-9], or has no line of its own.
        .filter(|name| !name.starts_with("DQ"))
        .collect();
    assert!(defined.len() > 20, "{defined:?}");
    for name in defined {
        let places = cited.get(name).map_or(0, BTreeSet::len);
        assert!(places >= 2, "[{name}] is cited in {places} places");
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
        let fatal: Vec<&str> = GRACE_PERIODS
            .faults
            .iter()
            .filter(|fault| fault.kind != Kind::Harmless && fault.edges.contains(&name.as_str()))
            .map(|fault| fault.mutant)
            .collect();
        assert!(!fatal.is_empty(), "no mutant takes [{name}] away");
        for mutant in &fatal {
            assert!(text.contains(&format!("`{mutant}`")), "[{name}] does not name {mutant}");
        }
        // And none that the table knows nothing of.
        let mutants = text.split("- Mutant").nth(1).expect("each edge has a list of mutants");
        for word in mutants.split('`').skip(1).step_by(2) {
            assert!(names(&GRACE_PERIODS, true).any(|name| name == word), "[{name}] names {word}");
        }
    }
}

/// The names of the mutants of a world, or of those that do harm.
fn names(world: &World, with_harmless: bool) -> impl Iterator<Item = &str> {
    let is_asked = move |fault: &&check::Fault| with_harmless || fault.kind != Kind::Harmless;
    world.faults.iter().filter(is_asked).map(|fault| fault.mutant)
}

/// Whether the limit has such a mutant, which does harm. The document leaves out what is before it.
fn is_of_the_limit(name: &str) -> bool {
    names(&LIMITED, false).any(|known| known.strip_prefix("limit-") == Some(name))
}

#[test]
fn the_mutants_that_are_named_exist() {
    let is_a_fault = |name: &str| {
        // Harmless ones of these are in the document, too.
        let with_harmless = [&*GRACE_PERIODS, &*check::hazard::HAZARD];
        let is_there = |world: &World, all| names(world, all).any(|known| known == name);
        with_harmless.into_iter().any(|world| is_there(world, true))
            || check::catalogue::worlds().into_iter().any(|world| is_there(world, false))
            || is_of_the_limit(name)
    };
    let is_kebab =
        |name: &str| name.contains('-') && name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let text = document();
    let mut checked = 0;
    for name in text.split('`').skip(1).step_by(2) {
        if !is_kebab(name) {
            continue;
        }
        let is_known = is_a_fault(name)
            || mutants::named(name).is_some()
            || mutants::table().alone.iter().any(|step| step.name == name)
            || GRACE_PERIODS.named(name).is_some();
        assert!(is_known, "no table has `{name}` as a fault that is found");
        checked += 1;
    }
    assert!(checked > 60, "only {checked} names found");
}

/// A step of the code that the explorer must find is a fault that it finds.
#[test]
fn the_explorer_finds_the_steps_of_the_registry_that_are_its_own() {
    for step in mutants::all() {
        let is_ours = check::catalogue::named(&step.name).is_some();
        let is_asked = step.catchers.contains(&Catcher::Explorer);
        assert_eq!(is_ours, is_asked, "{}", step.name);
    }
}

#[test]
fn every_mutant_is_in_the_document() {
    let text = document();
    for name in names(&GRACE_PERIODS, true) {
        assert!(text.contains(&format!("`{name}`")), "{name} is missing");
    }
}

#[test]
fn every_mutant_of_hazard_pointers_is_in_the_document() {
    let text = document();
    for name in names(&check::hazard::HAZARD, true) {
        assert!(text.contains(&format!("`{name}`")), "{name} is missing");
    }
}

/// Those that are left out here are of no edge: what an update has looked at, how much waits, which
/// entry owns a key, and what a forked child leaves alone.
#[test]
fn every_step_of_the_hash_map_is_in_the_document() {
    let text = document();
    let names = mutants::all().iter().map(|step| step.name.as_str());
    let others =
        ["map-unseen", "map-stale-slot", "map-shrinks-on", "map-key-of-two", "map-end-locked"];
    let of_edges = names.filter(|name| name.starts_with("map-") && !others.contains(name));
    let missing: Vec<_> = of_edges.filter(|name| !text.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_document_names_faults_that_do_harm() {
    let text = document();
    let section = text.split("\n## The limit\n").nth(1).expect("it has a section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let quoted = section.split('`').skip(1).step_by(2);
    let is_name = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let named: Vec<&str> = quoted.filter(is_name).collect();
    assert!(named.len() > 10, "{named:?}");
    for name in named {
        assert!(is_of_the_limit(name), "{name}");
    }
}
