//! Where user code runs: each place has a name in `src/os/user_code.rs`, and user code is called at
//! these places only. What it may do there includes a fork: the table is for Unix.

#[path = "common/mod.rs"]
mod common;

#[cfg(all(debug_assertions, unix))]
#[path = "user_code/actions.rs"]
mod actions;
#[cfg(all(debug_assertions, unix))]
#[path = "user_code/reach.rs"]
mod reach;
#[cfg(all(debug_assertions, unix))]
#[path = "user_code/table.rs"]
mod table;

use std::fs;
use std::path::Path;

/// What calls user code, as it stands in the sources: only inside of `user_code::run` or `caught`.
const CALLS: [&str; 9] = [
    ".wake()",
    ".wake_by_ref()",
    "context.waker().clone()",
    "catch_unwind(",
    "hook(report)",
    "hash_one(",
    ".equivalent(",
    "P::clone(",
    "P::target(",
];

/// Files that have such a call for a reason of their own.
const EXCEPTIONS: [(&str, &str, &str); 7] = [
    ("os/user_code.rs", "catch_unwind(", "is what the others go through"),
    ("os/lock_rank.rs", "catch_unwind(", "tests"),
    ("domain/tasks.rs", "catch_unwind(", "hands what a barrier panics with to its task"),
    ("gp/grace_periods.rs", ".wake()", "a futex"),
    ("gp/grace_periods/liburcu.rs", ".wake()", "a futex"),
    ("gp/grace_periods/handover.rs", ".wake()", "a futex"),
    ("gp/gp_words.rs", ".wake()", "a futex"),
];

/// The sources of the library, without comments and without tests at their ends.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut folders, mut files) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("\nmod tests {").next().unwrap();
            let is_code = |line: &&str| !line.trim_start().starts_with("//");
            files.push((name, text.lines().filter(is_code).collect::<Vec<_>>().join("\n")));
        }
    }
    assert!(files.len() > 200, "only {} files", files.len());
    files
}

#[test]
#[cfg_attr(miri, ignore = "reads the sources")]
fn user_code_is_called_at_marked_places_only() {
    let mut unmarked = Vec::new();
    for (file, text) in sources() {
        if file.contains("tests") || file.starts_with("sync/writers") {
            continue;
        }
        for line in text.lines() {
            for call in CALLS.iter().filter(|call| line.contains(**call)) {
                let is_known = EXCEPTIONS.iter().any(|(of, known, _)| *of == file && known == call);
                let is_marked = ["user_code::run(", "user_code::caught("]
                    .iter()
                    .any(|mark| line.find(mark).is_some_and(|at| at < line.find(call).unwrap()));
                if !is_known && !is_marked {
                    unmarked.push(format!("{file}: {}", line.trim()));
                }
            }
        }
    }
    assert!(unmarked.is_empty(), "user code outside of os/user_code.rs: {unmarked:#?}");
}

/// The names of the places.
#[cfg(all(debug_assertions, unix))]
fn sites() -> Vec<String> {
    let (_, text) = sources().into_iter().find(|(file, _)| file == "os/user_code.rs").unwrap();
    let variants = text.split("pub enum Site {").nth(1).unwrap().split('}').next().unwrap();
    variants.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

#[test]
#[cfg(all(debug_assertions, unix))]
#[cfg_attr(miri, ignore = "reads the sources")]
fn each_place_is_in_the_table() {
    let sites = sites();
    assert!(sites.len() > 15, "{sites:?}");
    for site in sites {
        let is_there = table::ROWS.iter().any(|row| format!("{:?}", row.site) == site);
        assert!(is_there, "no row for {site}");
    }
    for row in &table::ROWS {
        let is_said = [row.held, row.used, row.left].iter().all(|column| !column.is_empty());
        assert!(is_said, "{:?} by {}", row.site, row.by);
    }
}

#[test]
#[cfg(all(debug_assertions, unix))]
fn each_place_is_reached_as_its_row_says() {
    table::ROWS.iter().for_each(actions::reach);
}
