//! `docs/SEEDS.toml`: what the papers claim, and what shows it here. Every command that a row names
//! parses, every example and test is there; what a row expects of its command comes out, and what
//! it says of published figures is what the replay says ([`contradictions`]).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::common::{held, run, told};
use simulate::replay::PARTS;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seeds {
    source: Vec<Source>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    id: String,
    title: String,
    rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    state: State,
    claim: String,
    why: String,
    published: Option<String>,
    /// The words of a command, after `rcu`.
    run: Option<String>,
    example: Option<String>,
    /// A file and the test in it.
    test: Option<String>,
    /// A heading of TRANSFORMATIONS.md, without its number.
    chapter: Option<String>,
    expect: Option<Expect>,
    /// How the names of the figures begin that the row is about, of those of [`PUBLISHED`].
    #[serde(default)]
    figures: Vec<String>,
}

/// The replay of all published figures.
const PUBLISHED: &str = "simulate --published";

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum State {
    Works,
    Partly,
    Absent,
    /// The model is given what the row is about.
    Input,
}

/// A number in the command's JSON, or the ratio of two, and between what it lies.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    at: String,
    over: Option<String>,
    from: f64,
    to: f64,
}

fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn seeds() -> Seeds {
    let file = workspace().join("docs/SEEDS.toml");
    toml::from_str(&std::fs::read_to_string(file).expect("the rows")).expect("well-formed")
}

fn rows(seeds: &Seeds) -> impl Iterator<Item = (&str, &Row)> {
    seeds.source.iter().flat_map(|source| source.rows.iter().map(|row| (&*source.id, row)))
}

/// Everything wrong with a row except its command's output.
fn complaint(row: &Row) -> Option<String> {
    let shown = [&row.run, &row.example, &row.test, &row.chapter].into_iter().flatten().count();
    let is_there = |path: &str| workspace().join(path).exists();
    if row.claim.is_empty() || row.why.is_empty() || row.published.as_deref() == Some("") {
        return Some("it has an empty text".to_owned());
    }
    if shown != usize::from(row.state != State::Absent) {
        return Some(format!("{:?}, and {shown} things show it", row.state));
    }
    if row.expect.is_some() && row.run.is_none() {
        return Some("nothing is run of which something is expected".to_owned());
    }
    let is_replayed = row.run.as_deref() == Some(PUBLISHED);
    if row.state != State::Absent && row.figures.is_empty() == is_replayed {
        return Some("it names figures if, and only if, it stands on their replay".to_owned());
    }
    if let Some(name) = &row.example {
        let at = format!("quiescence/examples/{name}");
        let is_known = is_there(&format!("{at}.rs")) || is_there(&format!("{at}/main.rs"));
        return (!is_known).then(|| format!("no example is called {name}"));
    }
    if let Some(test) = &row.test {
        let (file, name) = test.split_once(':').unwrap_or((test, ""));
        let text = std::fs::read_to_string(workspace().join(file)).unwrap_or_default();
        let head = format!("fn {name}() {{");
        let is_known =
            text.split("#[test]").skip(1).any(|part| part.trim_start().starts_with(&head));
        return (!is_known).then(|| format!("no test is called {test}"));
    }
    if let Some(chapter) = &row.chapter {
        let text = std::fs::read_to_string(workspace().join("docs/TRANSFORMATIONS.md"));
        let text = text.unwrap_or_default();
        let heads = text.lines().filter_map(|line| line.strip_prefix("## ")?.split_once(". "));
        let is_known = heads.into_iter().any(|(_, name)| name == chapter);
        return (!is_known).then(|| format!("no chapter is called {chapter}"));
    }
    let words = row.run.as_deref()?;
    // The names of engines, workloads and numbers are looked up when a simulation begins.
    if words.contains("--engine") && row.expect.is_none() {
        return Some(format!("{words}: nothing is expected of it, so that it is not run"));
    }
    // What comes before is parsed before help is shown.
    let (code, _, stderr) = told(&run(words.split_whitespace().chain(["--help"])));
    (code != 0).then(|| format!("{words}: {stderr}"))
}

/// What is wrong with what a command has written, if this is expected of it.
fn unexpected(expect: &Expect, document: &Value) -> Option<String> {
    let number = |at: &String| match document.pointer(at) {
        Some(Value::Bool(is_so)) => Ok(f64::from(u8::from(*is_so))),
        found => found.and_then(Value::as_f64).ok_or_else(|| format!("there is no number at {at}")),
    };
    let over = expect.over.as_ref().map_or(Ok(1.0), number);
    match (number(&expect.at), over) {
        (Ok(number), Ok(over)) => {
            let found = number / over;
            let fits = (expect.from..=expect.to).contains(&found);
            (!fits)
                .then(|| format!("{} is {found}, not {} to {}", expect.at, expect.from, expect.to))
        }
        (Err(missing), _) | (_, Err(missing)) => Some(missing),
    }
}

/// Where a row that stands on the replay of published figures says anything else of them than the
/// rows of its document do, in which one source may be missing.
pub(crate) fn contradictions(replayed: &[Value], missing: Option<&str>) -> Vec<String> {
    let seeds = seeds();
    let of = |(source, row): (&str, &Row)| {
        contradiction(source, row, replayed).map(|what| format!("{source}, {}: {what}", row.id))
    };
    rows(&seeds).filter(|(source, _)| Some(*source) != missing).filter_map(of).collect()
}

fn contradiction(source: &str, row: &Row, replayed: &[Value]) -> Option<String> {
    let begins =
        |text: &Value, with: &str| text.as_str().is_some_and(|text| text.starts_with(with));
    let (mut fits, is_absent) = (true, row.state == State::Absent);
    for figure in &row.figures {
        let is_meant =
            |one: &&Value| begins(&one["source"], source) && begins(&one["figure"], figure);
        let mut meant = replayed.iter().filter(is_meant).peekable();
        if meant.peek().is_none() {
            return Some(format!("no figure is called {figure}"));
        }
        for one in meant {
            match one["verdict"].as_str() {
                None if is_absent => {}
                Some("fits") if !is_absent => {}
                Some("does not fit") if !is_absent => fits = false,
                None => return Some(format!("{figure} is not compared")),
                Some(_) => return Some(format!("{figure} is compared")),
            }
        }
    }
    let state = if fits { State::Works } else { State::Partly };
    (!row.figures.is_empty() && !is_absent && row.state != state)
        .then(|| format!("it is {state:?}"))
}

#[test]
fn every_row_is_known_and_what_it_names_is_there() {
    let seeds = seeds();
    let stems: Vec<_> = PARTS.iter().filter_map(|part| part.source.split('.').next()).collect();
    for source in &seeds.source {
        assert!(stems.contains(&&*source.id) && !source.title.is_empty(), "{}", source.id);
    }
    let ids: BTreeSet<_> = rows(&seeds).map(|(source, row)| (source, &row.id)).collect();
    assert!(seeds.source.len() == 5 && ids.len() > 100, "{} rows", ids.len());
    assert_eq!(ids.len(), rows(&seeds).count(), "two rows have one id");
    let wrong: Vec<String> = rows(&seeds)
        .filter_map(|(source, row)| Some(format!("{source}, {}: {}", row.id, complaint(row)?)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_rows_expect_of_their_commands_comes_out() {
    let seeds = seeds();
    let mut documents: BTreeMap<&str, Value> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (source, row) in rows(&seeds) {
        let (Some(words), Some(expect)) = (row.run.as_deref(), &row.expect) else { continue };
        let document = documents
            .entry(words)
            .or_insert_with(|| held(&run(words.split_whitespace().chain(["--json", "-"]))));
        let unexpected = unexpected(expect, document);
        wrong.extend(unexpected.map(|what| format!("{source}, {}: {what}", row.id)));
    }
    assert!(documents.len() > 10, "{} commands", documents.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn faults_of_rows_are_noticed() {
    let row = |text: &str| -> Row {
        toml::from_str(&format!("id = 'a'\nclaim = 'c'\nwhy = 'w'\n{text}")).expect("a row")
    };
    let cases = [
        ("state = 'works'", "Works, and 0 things show it"),
        ("state = 'absent'\nexample = 'counters'", "Absent, and 1 things"),
        ("state = 'works'\nrun = 'costs'\nexample = 'counters'", "2 things"),
        ("state = 'works'\nexample = 'tea'", "no example is called tea"),
        ("state = 'works'\ntest = 'lab/tests/command/seeds.rs:tea'", "no test is called"),
        ("state = 'works'\nchapter = 'tea'", "no chapter is called tea"),
        ("state = 'works'\nrun = 'costs --tea'", "unexpected argument '--tea'"),
        ("state = 'works'\nrun = 'bench cache --case tea'", "possible values: conflicts"),
        ("state = 'works'\nrun = 'simulate --engine tick'", "nothing is expected of it"),
        ("state = 'works'\nrun = 'simulate --published'", "names figures"),
        ("state = 'works'\nrun = 'costs'\nfigures = ['tea']", "names figures"),
    ];
    for (text, expected) in cases {
        let complaint = complaint(&row(text)).unwrap_or_default();
        assert!(complaint.contains(expected), "{text}: {complaint:?}");
    }
    let expect = |at: &str| Expect { at: at.to_owned(), over: None, from: 1.0, to: 2.0 };
    let document = serde_json::json!({ "a": 2, "b": 3 });
    assert_eq!(unexpected(&expect("/a"), &document), None);
    assert!(unexpected(&expect("/b"), &document).is_some_and(|what| what.contains("is 3")));
    let over = Expect { over: Some("/a".to_owned()), ..expect("/b") };
    assert_eq!(unexpected(&over, &document), None, "1.5");
    assert!(unexpected(&expect("/c"), &document).is_some_and(|what| what.contains("no number")));
    let figure = |name: &str, verdict: Option<&str>| {
        let source = "paper.table";
        serde_json::json!({ "source": source, "figure": name, "verdict": verdict })
    };
    let (fits, misses) = (Some("fits"), Some("does not fit"));
    let replayed = [figure("tea 1", fits), figure("tea 2", misses), figure("sd", None)];
    for (text, expected) in [
        ("state = 'works'\nfigures = ['tea 1']", None),
        ("state = 'partly'\nfigures = ['tea 1']", Some("it is Works")),
        ("state = 'works'\nfigures = ['tea']", Some("it is Partly")),
        ("state = 'partly'\nfigures = ['tea']", None),
        ("state = 'works'\nfigures = ['sd']", Some("sd is not compared")),
        ("state = 'absent'\nfigures = ['sd']", None),
        ("state = 'absent'\nfigures = ['tea 2']", Some("tea 2 is compared")),
        ("state = 'works'\nfigures = ['milk']", Some("no figure is called milk")),
    ] {
        assert_eq!(contradiction("paper", &row(text), &replayed).as_deref(), expected, "{text}");
    }
}
