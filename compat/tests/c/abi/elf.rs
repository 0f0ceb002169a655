//! What a library or program looks like to the dynamic linker, as binutils print it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use crate::program::succeeds;

/// A symbol that a library defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    /// `nm`'s letter; `B` for data of any section, since it does not matter where they lie; `L` for
    /// thread-local.
    pub(crate) class: char,
    /// In bytes. Functions' do not matter; 0.
    pub(crate) size: u64,
}

/// What a library exports.
pub(crate) fn exports(library: &Path) -> BTreeMap<String, Symbol> {
    let thread_local = thread_local_symbols(library);
    let text =
        succeeds(Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(library));
    let symbols = text.lines().map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let (name, letter) = (words[0].to_owned(), words[1].chars().next().expect("a letter"));
        let size =
            words.get(3).map_or(0, |size| u64::from_str_radix(size, 16).expect("hexadecimal"));
        let class = match letter {
            'T' | 'W' => letter,
            _ if thread_local.contains(&name) => 'L',
            'B' | 'D' | 'R' => 'B',
            other => other,
        };
        (name, Symbol { class, size: if class == 'T' { 0 } else { size } })
    });
    symbols.collect()
}

fn thread_local_symbols(library: &Path) -> BTreeSet<String> {
    let text = succeeds(Command::new("readelf").args(["--wide", "--dyn-syms"]).arg(library));
    let lines = text.lines().filter(|line| line.split_whitespace().nth(3) == Some("TLS"));
    lines.map(|line| line.split_whitespace().nth(7).expect("a name").to_owned()).collect()
}

/// The entries of the dynamic section: tag and value, as text.
pub(crate) fn dynamic(file: &Path) -> Vec<(String, String)> {
    let text = succeeds(Command::new("readelf").args(["--wide", "--dynamic"]).arg(file));
    let entries = text.lines().filter_map(|line| {
        let (tag, value) = line.trim().strip_prefix("0x")?.split_once('(')?.1.split_once(')')?;
        let value = value.trim();
        let value = value.split_once('[').map_or(value, |(_, name)| name.trim_end_matches(']'));
        Some((tag.to_owned(), value.to_owned()))
    });
    entries.collect()
}

/// The values of one tag.
pub(crate) fn values<'e>(entries: &'e [(String, String)], tag: &str) -> Vec<&'e str> {
    entries.iter().filter(|(name, _)| name == tag).map(|(_, value)| value.as_str()).collect()
}

/// The kinds of relocations, and the symbols that they name.
pub(crate) fn relocations(file: &Path) -> BTreeSet<(String, String)> {
    let text = succeeds(Command::new("readelf").args(["--wide", "--relocs"]).arg(file));
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(2);
        let kind = words.next()?.to_owned();
        let symbol = words.nth(1)?.split('@').next()?.to_owned();
        kind.starts_with("R_").then_some((kind, symbol))
    });
    lines.collect()
}

/// The names of the segments.
pub(crate) fn segments(file: &Path) -> Vec<String> {
    let text = succeeds(Command::new("readelf").args(["--wide", "--program-headers"]).arg(file));
    text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}
