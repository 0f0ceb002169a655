//! The borders between crates that the compiler does not hold: an import across one would compile.
//!
//! - `grace` is what the library runs. It depends on nothing, and its code names nothing that only
//!   an engine of a kernel has ([`OF_KERNEL_ENGINES`]).
//! - The library's crates ([`LIBRARY`]) depend on none but themselves in this workspace, and import
//!   none: not the simulator, nor the explorer.
//! - The kernel engines import `grace` and one another, and nothing of the front over them.
//! - The names in [`NAMES`] are one type's each, in all crates that drive the machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use toml::{Table, Value};

use crate::common::{files, workspace};

/// What programs link against, by folder.
const LIBRARY: [&str; 4] = ["derive", "grace", "quiescence", "compat"];

/// The folder of the kernel engines.
const KERNEL: &str = "kernel/src/engine";

/// Words of code that only an engine over CPUs has, or its host.
const OF_KERNEL_ENGINES: [&str; 10] = [
    "Engine",
    "Host",
    "Mask",
    "Mode",
    "cond_resched",
    "context_switch",
    "enter_eqs",
    "exit_eqs",
    "resched",
    "softirq",
];

/// Names that two types shared once, and where the one that has it stands.
const NAMES: [(&str, &str); 6] = [
    ("Machine", "grace/src/machine.rs"),
    ("SrcuMachine", "grace/src/srcu/machine.rs"),
    ("Adaptive", "grace/src/policy/adaptive.rs"),
    ("AdaptiveDelay", "grace/src/srcu/adaptive.rs"),
    ("OnDemand", "kernel/src/engine/on_demand.rs"),
    ("Budget", "grace/src/policy/adaptive.rs"),
];

/// Where a type of one of these names could stand.
const DRIVERS: [&str; 5] =
    ["grace/src", "kernel/src", "quiescence/src", "simulate/src", "verify/explore/src"];

/// The words of the code of each Rust file under a folder, in their order, by the file's path.
fn sources(folder: &str) -> BTreeMap<String, Vec<String>> {
    let is_source = |name: &str| Path::new(name).starts_with(folder) && name.ends_with(".rs");
    let files = files().into_iter().filter(|(name, _)| is_source(name));
    let sources: BTreeMap<_, _> = files.map(|(name, text)| (name, words(&text))).collect();
    assert!(!sources.is_empty(), "no sources in {folder}");
    sources
}

/// Identifiers and `::`, without comments and strings.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for line in text.lines() {
        let line: String = line.split('"').step_by(2).collect::<Vec<_>>().join("\"");
        let code = line.split("//").next().unwrap_or_default().replace("::", " :: ");
        let split = code.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
        words.extend(split.filter(|word| !word.is_empty()).map(str::to_owned));
    }
    words
}

/// The words of so many of these files that are among `wanted`, with their file.
fn uses<'a>(
    sources: &'a BTreeMap<String, Vec<String>>,
    wanted: &'a [&str],
) -> impl Iterator<Item = (&'a str, &'a str)> {
    sources.iter().flat_map(move |(file, words)| {
        let found = words.iter().filter(|word| wanted.contains(&word.as_str()));
        found.map(|word| (file.as_str(), word.as_str()))
    })
}

/// The names of crates that a file's code has before a `::`, be it in an import or not.
fn crates<'a>(words: &'a [String], names: &[&str]) -> BTreeSet<&'a str> {
    let at = |index: usize| words.get(index).map_or("", String::as_str);
    let is_crate = |index: &usize| {
        let is_path = at(index + 1) == "::" || *index > 0 && at(index - 1) == "use";
        is_path && (*index == 0 || at(index - 1) != "::") && names.contains(&at(*index))
    };
    (0..words.len()).filter(is_crate).map(at).collect()
}

fn manifest(folder: &str) -> Table {
    let path = workspace().join(folder).join("Cargo.toml");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    text.parse().unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

/// What a package is built from, and tested with if that is asked for: the names in its manifest.
fn dependencies(manifest: &Table, tests: bool) -> BTreeSet<String> {
    let kinds = ["dependencies", "build-dependencies", "dev-dependencies"];
    let kinds = &kinds[..if tests { 3 } else { 2 }];
    let targets = manifest.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(|targets| targets.values());
    let tables = targets.filter_map(Value::as_table).chain([manifest]);
    let tables = tables.flat_map(|table| kinds.iter().filter_map(|kind| table.get(*kind)));
    tables.filter_map(Value::as_table).flat_map(Table::keys).cloned().collect()
}

/// The crates of this workspace, by the name that code has for them, with their folders.
fn members() -> BTreeMap<String, String> {
    let root = manifest("");
    let known = root["workspace"]["dependencies"].as_table().expect("it is a table");
    let folder = |value: &Value| Some(value.get("path")?.as_str()?.to_owned());
    let members = known.iter().filter_map(|(name, value)| Some((name.clone(), folder(value)?)));
    members.collect()
}

#[test]
fn grace_names_no_engine_of_a_kernel() {
    let engines = sources(KERNEL);
    let there: BTreeSet<_> = uses(&engines, &OF_KERNEL_ENGINES).map(|(_, word)| word).collect();
    let stale: Vec<_> = OF_KERNEL_ENGINES.iter().filter(|word| !there.contains(*word)).collect();
    assert!(stale.is_empty(), "the engines do not have {stale:?} any more");
    let grace = sources("grace/src");
    let found: Vec<_> = uses(&grace, &OF_KERNEL_ENGINES).collect();
    assert!(found.is_empty(), "of the kernel engines, in grace: {found:?}");
    let needed = dependencies(&manifest("grace"), false);
    assert!(needed.is_empty(), "grace depends on {needed:?}");
}

#[test]
fn the_library_neither_depends_on_the_simulator_nor_imports_it() {
    let members = members();
    assert!(members.contains_key("simulate") && members.contains_key("check"), "{members:?}");
    let is_foreign = |name: &&str| !LIBRARY.contains(&members[*name].as_str());
    let foreign: Vec<&str> = members.keys().map(String::as_str).filter(is_foreign).collect();
    for folder in LIBRARY {
        // The tests of `compat` are started by `xtask`, which is not in the table.
        let needed = dependencies(&manifest(folder), true);
        let needed: Vec<_> = foreign.iter().filter(|name| needed.contains(**name)).collect();
        assert!(needed.is_empty(), "{folder} depends on {needed:?}");
        for (file, words) in sources(&format!("{folder}/src")) {
            let found = crates(&words, &foreign);
            assert!(found.is_empty(), "{file} imports {found:?}");
        }
    }
}

/// What depends on itself for its tests' features turns none on that was left off: Miri, which has
/// no default features, met the assembly of the probes.
#[test]
fn tests_without_default_features_have_none() {
    let itself = &manifest("quiescence")["dev-dependencies"]["quiescence"];
    assert_eq!(itself.get("default-features").and_then(Value::as_bool), Some(false), "{itself}");
}

#[test]
fn the_kernel_engines_import_nothing_of_the_front_over_them() {
    let needed = dependencies(&manifest("kernel"), false);
    assert_eq!(needed.iter().filter(|name| *name != "loom").collect::<Vec<_>>(), ["grace"]);
    let members = members();
    let others: Vec<&str> = members.keys().map(String::as_str).filter(|n| *n != "grace").collect();
    for (file, words) in sources(KERNEL) {
        let found = crates(&words, &others);
        assert!(found.is_empty(), "{file} imports {found:?}");
        let outside = outside_of(&words, "engine");
        let is_atomics = |name: &&str| *name == "sync";
        assert!(outside.iter().all(is_atomics), "{file} imports crate::{outside:?}");
        // Above `engine` there is the rest of the crate: `token/v2.rs` may go up two modules.
        let inside = Path::new(&file).strip_prefix(KERNEL).expect("it is in there");
        let depth = if inside == Path::new("mod.rs") { 0 } else { inside.components().count() };
        assert!(supers(&words) <= depth, "{file} imports from above");
    }
}

/// How many modules a path goes up, at most.
fn supers(words: &[String]) -> usize {
    let runs = words.split(|word| word != "super" && word != "::");
    runs.map(|run| run.iter().filter(|word| *word == "super").count()).max().unwrap_or(0)
}

/// The modules that paths from the root of the crate begin with, but for `own`.
fn outside_of<'a>(words: &'a [String], own: &str) -> Vec<&'a str> {
    let rooted = words.windows(3).filter(|at| at[0] == "crate" && at[1] == "::" && at[2] != own);
    rooted.map(|at| at[2].as_str()).collect()
}

#[test]
fn each_of_these_names_is_one_types() {
    let sources = DRIVERS.map(sources);
    for (name, place) in NAMES {
        let defines = |words: &[String]| {
            let kinds = ["struct", "enum", "trait", "union"];
            words.windows(2).any(|at| kinds.contains(&at[0].as_str()) && at[1] == name)
        };
        let all = sources.iter().flatten();
        let found: Vec<_> = all.filter(|(_, words)| defines(words)).map(|(file, _)| file).collect();
        assert_eq!(found, [place], "{name}");
    }
}

/// The rules notice what they are about.
#[test]
fn faults_are_found() {
    let text =
        "use simulate::kernel::Engine; // use check::x\nlet a = \"bench::b\"; x::simulate::y()";
    let words = words(text);
    assert_eq!(crates(&words, &["simulate", "check", "bench"]), BTreeSet::from(["simulate"]));
    let use_alone: Vec<String> = ["use", "check"].map(str::to_owned).into();
    assert_eq!(crates(&use_alone, &["check"]), BTreeSet::from(["check"]));
    let sources = BTreeMap::from([("a.rs".to_owned(), words)]);
    assert_eq!(uses(&sources, &OF_KERNEL_ENGINES).collect::<Vec<_>>(), [("a.rs", "Engine")]);
    let words = self::words("use crate::engine::Mask; use crate::world::World;");
    assert_eq!(outside_of(&words, "engine"), ["world"]);
    assert_eq!(supers(&self::words("super::a; super::super::b::c(super::d)")), 2);
    let manifest = "[target.'cfg(unix)'.dependencies]\na = '1'\n[dev-dependencies]\nb = '1'";
    let manifest = manifest.parse().expect("it is well-formed");
    assert_eq!(dependencies(&manifest, false), BTreeSet::from(["a".to_owned()]));
    assert!(dependencies(&manifest, true).contains("b"));
}
