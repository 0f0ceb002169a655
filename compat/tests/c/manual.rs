//! What the manuals say: the lists of environment variables are the same everywhere. (The commands
//! of `docs/C.md` are run by a test of `xtask`, whose first one is.)

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{output, text};
use xtask::needs;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("compat is a folder").to_path_buf()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The environment variables that a text names.
fn variables(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
    let names = words.filter(|word| word.starts_with("QUIESCENCE_") && !word.ends_with('_'));
    names.map(str::to_owned).collect()
}

#[test]
fn all_lists_of_variables_are_the_same() {
    let readme = read("compat/README.md");
    let (_, table) = readme.split_once("## What the environment says").expect("the table");
    let (table, _) = table.split_once("\n## ").expect("its end");
    let rows = table.lines().filter(|line| line.starts_with("| `QUIESCENCE_"));
    let listed = variables(&rows.map(|row| row.split('|').nth(1).unwrap()).collect::<String>());
    assert!(listed.len() >= 10, "{listed:?}");
    let page = read("compat/man/libquiescence-urcu.7");
    let (_, section) = page.split_once(".SH ENVIRONMENT").expect("the section");
    let (section, _) = section.split_once(".SH ").expect("its end");
    let headings = section.lines().filter(|line| line.starts_with(".B QUIESCENCE_"));
    assert_eq!(variables(&headings.collect::<Vec<_>>().join("\n")), listed);
    // The manual for C names some, and none that is not there.
    let named = variables(&read("docs/C.md"));
    assert!(named.len() >= 4 && named.is_subset(&listed), "{named:?}");
}

/// One of them was the other way round, so that a search in the page did not find it.
#[test]
fn a_message_of_the_manual_page_was_none_of_the_libraries() {
    let sources = ["compat/src/flavor.rs", "compat/shim/copies.c"].map(read).concat();
    let sources = sources + &read("quiescence/src/report/stall/report.rs");
    // A string that goes on in the next line is one.
    let parts = sources.split("\\\n").map(str::trim_start);
    let sources: String = parts.collect();
    let page = read("compat/man/libquiescence-urcu.7").replace("\\-", "-");
    let (_, section) = page.split_once(".SH DIAGNOSTICS").expect("the section");
    let (section, _) = section.split_once(".SH ").expect("its end");
    let headings = section.split(".TP\n").skip(1).filter_map(|entry| entry.lines().next());
    let headings: Vec<_> = headings.collect();
    assert!(headings.len() >= 3, "{headings:?}");
    for heading in headings {
        // Without what stands for a number, and without what the message begins with.
        let quoted = heading.split('"').nth(1).or(heading.strip_prefix(".B ")).expect(heading);
        let message = quoted.trim_start_matches("... ").trim_start_matches("a grace period");
        assert!(sources.contains(message), "{message}");
    }
}

/// By groff itself, which complains of what it does not know.
#[test]
fn the_manual_page_is_well_formed() {
    let groff = Command::new("groff").arg("--version").output();
    if !groff.is_ok_and(|output| output.status.success()) {
        needs::skipped("groff", "groff-base");
        return;
    }
    let page = root().join("compat/man/libquiescence-urcu.7");
    let format = output(Command::new("groff").args(["-man", "-ww", "-z", "-Tutf8"]).arg(page));
    assert!(format.status.success() && format.stderr.is_empty(), "{}", text(&format));
}
