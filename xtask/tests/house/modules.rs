//! Each file of a folder of tests is a module of a test program. One that no program includes would
//! not be compiled, and its tests would not run.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{files, resolved};

/// The modules that a file declares without a body, each by its name and the attribute `path` that
/// it may have.
fn declared(text: &str) -> Vec<(&str, Option<&str>)> {
    let mut found = Vec::new();
    let mut path = None;
    for line in text.lines().map(str::trim) {
        if let Some(named) = line.strip_prefix("#[path = \"") {
            path = named.strip_suffix("\"]");
        } else if !line.starts_with("#[") {
            let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
            let name = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';'));
            found.extend(name.map(|name| (name, path)));
            path = None;
        }
    }
    found
}

/// Adds a file to those that are included, with its modules, which are in `folder`, seen from the
/// file's own.
fn include(
    file: &str,
    folder: &str,
    files: &BTreeMap<String, String>,
    included: &mut BTreeSet<String>,
) {
    let Some(text) = files.get(file) else { return };
    included.insert(file.to_owned());
    for (name, path) in declared(text) {
        let [beside, below] = [format!("{folder}{name}.rs"), format!("{folder}{name}/mod.rs")];
        let places = match path {
            Some(path) => vec![(path, String::new())],
            None => vec![(&*beside, format!("{name}/")), (&*below, String::new())],
        };
        for (place, folder) in places {
            if let Some(module) = resolved(file, place) {
                include(&module, &folder, files, included);
            }
        }
    }
}

/// The name of the test program whose root the file is: `tests/NAME.rs`, `tests/NAME/main.rs`.
fn program(file: &str) -> Option<&str> {
    let (_, rest) = file.rsplit_once("/tests/")?;
    let name = rest.strip_suffix("/main.rs").or_else(|| rest.strip_suffix(".rs"))?;
    (!name.contains('/')).then_some(name)
}

/// The files of Rust in the folders of tests that packages have, and those that are included.
fn in_tests(files: &BTreeMap<String, String>) -> (BTreeSet<&str>, BTreeSet<String>) {
    let is_of_package = |file: &str| {
        let folder = file.split_once("/tests/").map(|(folder, _)| folder);
        folder.is_some_and(|folder| files.contains_key(&format!("{folder}/Cargo.toml")))
    };
    let names = files.keys().map(String::as_str);
    let all: BTreeSet<&str> =
        names.filter(|name| name.ends_with(".rs") && is_of_package(name)).collect();
    let mut included = BTreeSet::new();
    for root in all.iter().filter(|file| program(file).is_some()) {
        include(root, "", files, &mut included);
    }
    (all, included)
}

#[test]
fn each_file_of_tests_is_a_module_of_a_test_program() {
    let files = files();
    let (all, included) = in_tests(&files);
    assert!(all.len() > 150, "only {} files found", all.len());
    let lost: Vec<&&str> = all.iter().filter(|file| !included.contains(**file)).collect();
    assert!(lost.is_empty(), "no test program has these as modules: {lost:?}");
}

/// The rule notices what it is about.
#[test]
fn a_file_that_no_program_includes_is_found() {
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let files = BTreeMap::from([
        file("a/Cargo.toml", ""),
        file("a/src/b/tests/not.rs", "is a module of the package"),
        file("a/tests/alone.rs", "#[path = \"common/parts.rs\"]\nmod common;"),
        file("a/tests/common/parts.rs", "mod more;"),
        file("a/tests/common/more.rs", ""),
        file("a/tests/theme/main.rs", "#[cfg(unix)]\nmod one;\n// mod lost;"),
        file("a/tests/theme/one.rs", "pub(crate) mod deep;"),
        file("a/tests/theme/one/deep/mod.rs", ""),
        file("a/tests/theme/lost.rs", "#[test] fn never_runs() {}"),
    ]);
    let (all, included) = in_tests(&files);
    let lost: Vec<&&str> = all.iter().filter(|file| !included.contains(**file)).collect();
    assert_eq!(lost, [&"a/tests/theme/lost.rs"]);
}
