//! The files of the workspace, for tests that read them.

#![allow(dead_code, reason = "each test file uses the part that it needs")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the workspace").to_owned()
}

/// The paths of all files and links, but for those that `.gitignore` names. It is asked for without
/// git, which a machine, or an archive of the sources, may not have.
pub(crate) fn paths() -> Vec<String> {
    let root = workspace();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}")) {
            let path = entry.expect("a folder is read").path();
            let name = path.strip_prefix(&root).expect("it is in the workspace");
            let name = name.to_str().expect("paths are UTF-8");
            if path.is_dir() && !path.is_symlink() {
                if !name.ends_with("target") && name != ".git" {
                    folders.push(path);
                }
            } else if name != ".git" && !name.ends_with(".rcu.json") {
                found.push(name.to_owned());
            }
        }
    }
    found.sort();
    found
}

/// The text files, as they stand now, by their paths.
pub(crate) fn files() -> BTreeMap<String, String> {
    let root = workspace();
    let texts = paths().into_iter().filter_map(|name| {
        let path = root.join(&name);
        let is_file = path.is_file() && !path.is_symlink();
        Some((name, fs::read_to_string(path).ok().filter(|_| is_file)?))
    });
    let files: BTreeMap<String, String> = texts.collect();
    assert!(files.len() > 400, "only {} files found", files.len());
    files
}

/// The path that a file names from its own folder on, without `.` and `..`; `None` if it leads out
/// of the workspace.
pub(crate) fn resolved(from: &str, target: &str) -> Option<String> {
    let mut path = PathBuf::new();
    for component in Path::new(from).parent()?.join(target).components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir if path.pop() => {}
            _ => return None,
        }
    }
    Some(path.to_str()?.to_owned())
}
