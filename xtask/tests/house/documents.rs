//! What the documents point to is there: the files and headings that they link to, and the files
//! that they name.
//!
//! - A link leads to a file of the workspace, and its fragment to a heading of that, by GitHub's
//!   rules; so do those between pages of rustdoc, which checks no fragment.
//! - A name between backticks with a folder in it and the ending of a source is the end of a path
//!   of the workspace; tests may be named by package and file. [`PATTERNS`] stand for others. What
//!   begins with `target/` is made by a command.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::common::{self, resolved};

/// Words that stand for others in a name.
const PATTERNS: [&str; 2] = ["KIND", "NAME"];

/// Endings of files that have to be there where they are named.
const ENDINGS: [&str; 9] = ["rs", "md", "toml", "c", "h", "cpp", "sh", "txt", "yml"];

/// The documents, without their blocks of code.
fn documents() -> BTreeMap<String, String> {
    let all = common::files();
    let found: BTreeMap<_, _> = (all.into_iter())
        .filter(|(name, _)| name.ends_with(".md"))
        .map(|(name, text)| (name, without_blocks(&text)))
        .collect();
    assert!(found.len() > 20, "{:?}", found.keys());
    found
}

/// The lines of a document, those of blocks of code left empty.
fn without_blocks(text: &str) -> String {
    let mut fence = None;
    let mut out = String::new();
    for line in text.lines() {
        let begins = line.trim_start();
        let marks = begins.chars().take_while(|c| *c == '`' || *c == '~').count();
        match fence {
            None if marks >= 3 => fence = Some(marks),
            Some(opened) if marks >= opened && begins.len() == marks => fence = None,
            Some(_) => {}
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

/// The text between backticks, and the rest with nothing in their place.
fn code_and_prose(text: &str) -> (Vec<&str>, String) {
    let (mut code, mut prose) = (Vec::new(), String::new());
    for paragraph in text.split("\n\n") {
        let mut rest = paragraph;
        while let Some(at) = rest.find('`') {
            prose.push_str(&rest[..at]);
            let marks = rest[at..].chars().take_while(|c| *c == '`').count();
            let inside = &rest[at + marks..];
            let Some(end) = inside.find(&"`".repeat(marks)) else { break };
            code.push(&inside[..end]);
            rest = &inside[end + marks..];
        }
        prose.push_str(rest);
        prose.push_str("\n\n");
    }
    (code, prose)
}

/// Where a document's links lead.
fn targets(prose: &str) -> Vec<String> {
    let inline = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let inline = inline.map(|(target, _)| target);
    let defined = prose.lines().filter(|line| line.trim_start().starts_with('['));
    let defined = defined.filter_map(|line| Some(line.split_once("]: ")?.1));
    let words = inline.chain(defined).filter_map(|target| target.split_whitespace().next());
    words.map(|target| target.trim_matches(['<', '>']).to_owned()).collect()
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen = BTreeMap::<String, u32>::new();
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        let level = line.chars().take_while(|c| *c == '#').count();
        if !(1..=6).contains(&level) || !line[level..].starts_with(' ') {
            continue;
        }
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let shown = shown(line[level..].trim()).to_lowercase();
        let anchor: String = shown.chars().filter(kept).collect();
        let anchor = anchor.replace(' ', "-");
        let times = seen.entry(anchor.clone()).and_modify(|times| *times += 1).or_default();
        anchors.insert(if *times == 0 { anchor } else { format!("{anchor}-{times}") });
    }
    anchors
}

/// A heading as it is shown: of a link its text.
fn shown(heading: &str) -> String {
    let mut out = String::new();
    let mut rest = heading;
    while let Some((before, after)) = rest.split_once("](") {
        out.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    out + rest
}

#[test]
fn links_lead_to_files_and_headings_that_are_there() {
    let documents = documents();
    let root = common::workspace();
    let mut dead = Vec::new();
    let mut followed = 0;
    for (name, text) in &documents {
        for target in targets(&code_and_prose(text).1) {
            // Elsewhere; or an item of a crate, in what is compiled into its documentation.
            if target.contains("://") || target.contains("::") || target.starts_with("mailto:") {
                continue;
            }
            let (file, fragment) = target.split_once('#').unwrap_or((&target, ""));
            let path = if file.is_empty() { Some(name.clone()) } else { resolved(name, file) };
            let heading_is_there = |path: &String| match documents.get(path) {
                Some(text) if !fragment.is_empty() => anchors(text).contains(fragment),
                _ => true,
            };
            let is_there = path
                .filter(|path| root.join(path).exists())
                .is_some_and(|path| heading_is_there(&path));
            followed += 1;
            if !is_there {
                dead.push(format!("{name}: {target}"));
            }
        }
    }
    assert!(followed > 100, "only {followed} links found");
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

#[test]
fn links_between_the_pages_of_rustdoc_lead_to_headings_that_are_there() {
    let folder = common::workspace().join("quiescence");
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect(name);
    for line in read("docs/links.txt").lines().filter(|line| !line.is_empty()) {
        let (_, target) = line.split_once("]: ").expect("a definition");
        let (page, fragment) = target.split_once('#').unwrap_or((target, ""));
        let text = match page.strip_prefix("crate::") {
            Some(page) => read(&format!("docs/{}.md", page.to_uppercase())),
            None => read("src/lib.rs").replace("//! ", ""),
        };
        let is_there = fragment.is_empty() || anchors(&without_blocks(&text)).contains(fragment);
        assert!(is_there, "{line}");
    }
}

/// The tests that compile the blocks of this page leave out those marked as something else.
#[test]
fn every_block_of_the_migration_page_is_compiled() {
    let page = fs::read_to_string(common::workspace().join("MIGRATING.md")).expect("it is there");
    let mut languages = BTreeMap::<&str, u32>::new();
    for language in page.lines().filter_map(|line| line.strip_prefix("```")).step_by(2) {
        *languages.entry(language).or_default() += 1;
    }
    assert_eq!(languages, BTreeMap::from([("c", 1), ("rust", 13), ("toml", 1)]));
}

/// The files that a text between backticks names.
fn files_named(code: &str) -> impl Iterator<Item = &str> {
    let is_of_a_name = |c: char| c.is_alphanumeric() || "/._-".contains(c);
    let words = code.split(move |c| !is_of_a_name(c)).map(|word| word.trim_end_matches('.'));
    words.filter(|word| {
        let ending = word.rsplit_once('.').map(|(_, ending)| ending);
        word.contains('/') && !word.starts_with('/') && ending.is_some_and(|e| ENDINGS.contains(&e))
    })
}

#[test]
fn files_that_are_named_are_there() {
    let paths = common::paths();
    let mut gone = Vec::new();
    let mut found = 0;
    for (document, text) in &documents() {
        for name in code_and_prose(text).0.into_iter().flat_map(files_named) {
            let plain = name.trim_start_matches("./").trim_start_matches("../");
            if plain.starts_with("target/") {
                continue;
            }
            let (package, rest) = plain.split_once('/').expect("it has a folder");
            let of_tests = format!("{package}/tests/{rest}");
            let is_it = |path: &String| {
                [plain, &of_tests].iter().any(|name| {
                    let folder = path.strip_suffix(name);
                    folder.is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
                })
            };
            let is_pattern = plain.split(['/', '.']).any(|part| PATTERNS.contains(&part));
            found += 1;
            if !is_pattern && !paths.iter().any(is_it) {
                gone.push(format!("{document}: {name}"));
            }
        }
    }
    assert!(found > 100, "only {found} names found");
    assert!(gone.is_empty(), "no such files:\n{}", gone.join("\n"));
}

/// The rules notice what they are about.
#[test]
fn faults_are_found() {
    let text = "# One `two_three`: [four](x.md)\n```\n# no\n```\n## A/B, c\n## A/B, c\n";
    let expected = ["ab-c", "ab-c-1", "one-two_three-four"].map(str::to_owned);
    assert_eq!(anchors(&without_blocks(text)), BTreeSet::from(expected));
    let text = "[a](b.md#c) `[x](y)` [d](<e>)\n[f]: g.md 'h'\n";
    assert_eq!(targets(&code_and_prose(text).1), ["b.md#c", "e", "g.md"]);
    assert_eq!(resolved("docs/A.md", "../B.md").as_deref(), Some("B.md"));
    assert_eq!(resolved("A.md", "../B.md"), None);
    let names: Vec<_> = files_named("see room/file.rs:12, a.rs, /etc/x.h, b/c.md.").collect();
    assert_eq!(names, ["room/file.rs", "b/c.md"]);
}
