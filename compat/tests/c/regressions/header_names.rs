//! What a program may define as a macro before it includes a header of ours: all that is not
//! reserved, nor the standard's or the interface's. The headers named parameters, variables and
//! types of their own with ordinary words. And what else stood among them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::headers::excepted;
use crate::headers::offered::{is_word, tokens};
use crate::headers::tree::Tree;
use xtask::needs;

/// The names in a header, without comments, texts, and what it includes.
fn names(text: &str) -> BTreeSet<String> {
    let is_left_out = |line: &&str| {
        let directive = line.trim_start().strip_prefix('#').map(str::trim_start);
        let left_out = ["include", "error", "pragma"];
        directive.is_some_and(|rest| left_out.iter().any(|word| rest.starts_with(word)))
    };
    let code: Vec<_> = text.lines().filter(|line| !is_left_out(line)).collect();
    tokens(&code.join("\n")).into_iter().filter(|token| is_word(token)).collect()
}

/// The names in all headers of C of a tree.
fn names_in(tree: &Tree) -> BTreeSet<String> {
    let texts = tree.headers().into_iter().map(|header| read(&tree.root.join(header)));
    texts.flat_map(|text| names(&text)).collect()
}

fn read(header: &Path) -> String {
    fs::read_to_string(header).unwrap_or_else(|error| panic!("{}: {error}", header.display()))
}

fn is_reserved(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next() == Some('_')
        && letters.next().is_some_and(|c| c == '_' || c.is_ascii_uppercase())
}

/// What is ours by its beginning, and documented: names that a program cannot have taken for
/// something else.
fn is_ours(name: &str) -> bool {
    [
        "syscall",
        "quiescence",
        "QUIESCENCE_",
        "urcu_",
        "_urcu_",
        "_cds_",
        "_uatomic_",
        "compat_futex_",
        "rcu_head",
    ]
    .iter()
    .any(|start| name.starts_with(start))
}

fn ordinary(text: &str, allowed: &BTreeSet<String>) -> Vec<String> {
    // What is joined to a word before it is no macro by itself.
    let all = names(&text.replace("##", "##__")).into_iter();
    all.filter(|name| !is_reserved(name) && !is_ours(name) && !allowed.contains(name)).collect()
}

/// The words that `tests/headers/exceptions.txt` has for these.
fn words(of: &'static [&str]) -> impl Iterator<Item = String> {
    of.iter().flat_map(|what| excepted(what)).map(str::to_owned)
}

/// The headers of C++.
const CPP: [&str; 2] = ["rcu", "hazard_pointer"];

fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

/// The whole folder is installed: so was `<stdin>.s`, which a compiler had left there.
#[test]
fn something_else_stands_among_the_headers() {
    let cpp = CPP.map(|header| include().join(header));
    let mut others = xtask::files_below(&include()).expect("the folder of headers");
    others.retain(|path| path.extension().is_none_or(|end| end != "h") && !cpp.contains(path));
    assert!(others.is_empty(), "no header: {others:?}");
}

/// A macro of the program's broke them: each of their words could be one.
#[test]
fn the_headers_of_cpp_use_ordinary_words() {
    let allowed: BTreeSet<String> = words(&["keyword", "standard"]).collect();
    for header in CPP {
        assert_eq!(ordinary(&read(&include().join(header)), &allowed), [""; 0], "<{header}>");
    }
    // The words are looked for: in code, and not in comments.
    let text = "// of node\n#include <link>\n#define _Q(p) \"take\" p /* set */\nint __a, value;";
    assert_eq!(ordinary(text, &allowed), ["p", "value"]);
}

/// Words that liburcu's headers use themselves are the interface's, or would break a program there
/// as well.
#[test]
fn the_headers_of_c_use_words_that_liburcus_do_not() {
    needs::or_return!(Liburcu);
    let allowed = words(&["keyword", "later", "from 0.15"]).chain(names_in(&Tree::debians()));
    let allowed: BTreeSet<String> = allowed.collect();
    let ours = Tree::ours();
    assert!(ours.headers().len() > 70);
    for header in ours.headers() {
        let text = read(&ours.root.join(&header));
        assert_eq!(ordinary(&text, &allowed), [""; 0], "{header}");
    }
}

#[test]
fn the_names_of_0_15_are_in_its_headers() {
    needs::or_return!(Liburcu15);
    let named = names_in(&Tree::debian_13s());
    let others: Vec<_> = words(&["from 0.15"]).filter(|name| !named.contains(name)).collect();
    assert_eq!(others, [""; 0]);
}
