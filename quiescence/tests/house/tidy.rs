//! The rules of the house, as far as a reading of the sources can hold them.
//!
//! - The library's modules stand in rooms, folders of `src`, and a room imports only rooms above it
//!   in [`ROOMS`]. So there is no cycle among rooms. What a room has done by rooms below it is in
//!   one table, `HOOKS` of `lib.rs`, and in no other.
//! - No modules import each other in a cycle. A module is a file of a room, with the folder of its
//!   name.
//! - Each lock has a rank: it is a `Mutex` of `os::sync`. The order of locks is stated once, by the
//!   table in [`LOCK_RANKS`], and a list of them stands nowhere else.
//! - User code is called at the marked places only that `tests/user_code` has rows for.
//!
//! [`LOCKS_WITHOUT_RANK`] is exact: an exception that does not occur any more fails the test as
//! well.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms, in their order. What is not in a room is `lib.rs` and tests.
const ROOMS: [&str; 14] = [
    "os",
    "event",
    "percpu",
    "hazptr",
    "gp",
    "srcu",
    "reclaim",
    "rseq",
    "domain",
    "sync",
    "collections",
    "call_rcu",
    "report",
    "process",
];

/// What paths from the root lead to that stands in no room.
const OF_NO_ROOM: [&str; 3] = ["HOOKS", "__private", "common"];

/// The table of the ranks of locks.
const LOCK_RANKS: &str = "os/lock_rank.rs";

/// Files that name the standard library's locks, and why.
const LOCKS_WITHOUT_RANK: &[(&str, &str)] = &[
    ("os/sync.rs", "makes those with a rank of them"),
    ("reclaim/weigh/owners.rs", "weighs what users put into theirs"),
];

/// A sentence about the order of locks that names so many ranks, one after the other, is a list.
const RANKS_OF_A_LIST: usize = 3;

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
    ("domain/tasks.rs", "catch_unwind(", "hands what a barrier panics with to its task"),
    ("collections/hash_map/map.rs", "catch_unwind(", "drops the other entries before it goes on"),
    ("gp/grace_periods/steps.rs", ".wake()", "a futex"),
    ("gp/grace_periods/liburcu.rs", ".wake()", "a futex"),
    ("gp/grace_periods/handover.rs", ".wake()", "a futex"),
    ("gp/slot.rs", ".wake()", "a futex"),
];

#[test]
fn no_room_imports_one_below_it() {
    let place = |module: &str| ROOMS.iter().position(|room| module.split('/').next() == Some(room));
    for (from, all) in imports(&sources()) {
        for to in all {
            assert!(place(&to) <= place(&from), "{from}: {to} is in a room below its own");
        }
    }
}

#[test]
fn no_modules_import_each_other_in_a_cycle() {
    let imports = imports(&sources());
    assert!(imports.len() > 50, "only {} modules found", imports.len());
    let in_cycles = in_cycles(&imports);
    assert!(in_cycles.is_empty(), "modules that reach themselves: {in_cycles:#?}");
}

/// What each module imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The modules that reach themselves by their imports.
fn in_cycles(imports: &Imports) -> BTreeSet<&str> {
    let all = imports.keys().map(String::as_str);
    all.filter(|module| reach(imports, module).contains(module)).collect()
}

/// What a module imports, and what that imports, and so on.
fn reach<'i>(imports: &'i Imports, module: &str) -> BTreeSet<&'i str> {
    let (mut reached, mut left) = (BTreeSet::new(), vec![module]);
    while let Some(module) = left.pop() {
        let more = imports.get(module).into_iter().flatten();
        left.extend(more.filter(|other| reached.insert(&***other)).map(|other| &**other));
    }
    reached
}

#[test]
fn cycles_are_found() {
    let edge = |from: &str, to: &[&str]| {
        (from.to_owned(), to.iter().map(|to| (*to).to_owned()).collect::<BTreeSet<_>>())
    };
    let mut imports = Imports::from([edge("a", &["b", "c"]), edge("b", &["c"]), edge("c", &["d"])]);
    assert_eq!(in_cycles(&imports), BTreeSet::new());
    imports.extend([edge("d", &["b"]), edge("e", &["a", "f"]), edge("f", &["e"])]);
    assert_eq!(in_cycles(&imports), BTreeSet::from(["b", "c", "d", "e", "f"]));

    let files = [
        ("lib.rs", "pub use crate::{gp::reader::Slot, reclaim::thread_queue::Queue};"),
        ("gp/mod.rs", "pub(crate) mod reader;\npub(crate) use reader::Word;"),
        ("gp/reader.rs", "mod word;\nuse crate::reclaim::{thread_queue, Contents};"),
        ("gp/reader/word.rs", "use super::Slot; use super::super::Word; // use crate::os;"),
        ("reclaim/mod.rs", ""),
        ("rseq/mod.rs", "use crate::{gp::{reader::{self, Word}, Slot as S}};"),
        ("rseq/read.rs", "fn f() { crate::reclaim::local::f(); \"crate::os\"; $crate::Slot }"),
        ("os/mod.rs", "#[cfg(all(test, unix))]\n#[allow(dead_code)]\nmod tests { use crate::gp; }"),
        ("reclaim/thread_queue.rs", "use super::local::*; fn f() { crate::Slot::new() }"),
        ("reclaim/local.rs", "#[cfg(test)]\nmod tests { use crate::gp::reader::Slot; }"),
    ];
    let files = files.map(|(file, text)| (file.to_owned(), text.to_owned()));
    let found = self::imports(&files.into());
    let expected = Imports::from([
        edge("gp", &["gp/reader"]),
        edge("gp/reader", &["gp", "reclaim", "reclaim/thread_queue"]),
        edge("reclaim/thread_queue", &["gp/reader", "reclaim/local"]),
        edge("rseq", &["gp", "gp/reader"]),
        edge("rseq/read", &["reclaim/local"]),
    ]);
    assert_eq!(found, expected);
}

#[test]
fn each_lock_has_a_rank() {
    let sources = sources();
    let ours = sources.iter().filter(|(file, _)| !is_test(file));
    let found = ours.filter(|(_, text)| names_locks_without_rank(&code(text)));
    let found: BTreeSet<_> = found.map(|(file, _)| &**file).collect();
    let known: BTreeSet<_> = LOCKS_WITHOUT_RANK.iter().map(|(file, _)| *file).collect();
    assert_eq!(found, known, "files with locks of the standard library, and those that are listed");
}

/// Whether code imports or names `Mutex` or `RwLock` of the standard library, or of loom.
fn names_locks_without_rank(code: &str) -> bool {
    let mut paths = Vec::new();
    for root in ["std::sync::", "loom::sync::"] {
        for (at, found) in code.match_indices(root) {
            tree(&code[at + found.len()..], &mut Vec::new(), &mut paths);
        }
    }
    paths.iter().any(|path| matches!(&*path[0], "Mutex" | "RwLock"))
        // What is made of these is not seen.
        || ["use std as", "use std::sync as"].iter().any(|alias| code.contains(alias))
}

#[test]
fn user_code_is_called_at_marked_places_only() {
    let mut unmarked = Vec::new();
    for (file, text) in &sources() {
        if is_test(file) || file.starts_with("sync/writers") {
            continue;
        }
        for line in code(text).lines() {
            for call in CALLS.iter().filter(|call| line.contains(**call)) {
                let is_known = EXCEPTIONS.iter().any(|(of, known, _)| of == file && known == call);
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

#[test]
fn the_order_of_locks_is_told_once() {
    let sources = sources();
    let ranks = ranks(&sources[LOCK_RANKS]);
    assert!(ranks.len() > 20 && ranks.contains(&"registry".to_owned()), "{ranks:?}");
    let mut texts: Vec<_> = (sources.into_iter())
        .filter(|(file, _)| file != LOCK_RANKS)
        .map(|(file, text)| (file, comments(&text)))
        .collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let pages = ["ARCHITECTURE.md", "README.md", "CONTRIBUTING.md"].map(|page| root.join(page));
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let compat = fs::read_dir(root.join("compat/src")).unwrap().map(|entry| entry.unwrap().path());
    for path in docs.chain(compat).chain(pages).filter(|path| path.is_file()) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        texts.push((name.clone(), if name.ends_with(".rs") { comments(&text) } else { text }));
    }
    let lists: Vec<_> = (texts.iter())
        .flat_map(|(file, text)| lists_of_locks(text, &ranks).into_iter().map(move |s| (file, s)))
        .collect();
    assert!(lists.is_empty(), "lists of locks beside the one in {LOCK_RANKS}: {lists:#?}");
}

/// The ranks, in small letters: `StatsServer` is "statsserver".
fn ranks(table: &str) -> Vec<String> {
    let (_, body) = table.split_once("enum Rank {").expect("the table");
    let (body, _) = body.split_once("\n}").expect("its end");
    let names = body.lines().filter_map(|line| line.trim().strip_suffix(','));
    names.filter(|name| name.chars().all(char::is_alphanumeric)).map(str::to_lowercase).collect()
}

/// What the comments say, each block of them as one paragraph.
fn comments(text: &str) -> String {
    let comment = |line: &str| match line.trim().strip_prefix("//") {
        Some(comment) => format!("{} ", comment.trim_start_matches(['/', '!']).trim()),
        None => "\n\n".to_owned(),
    };
    text.lines().map(comment).collect()
}

/// The sentences that are a list of locks in their order: about order and locks, and
/// [`RANKS_OF_A_LIST`] of their parts that follow each other, of a few words each, name a rank.
fn lists_of_locks(text: &str, ranks: &[String]) -> Vec<String> {
    fn words(text: &str) -> Vec<&str> {
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
    }
    let names_a_rank = |part: &str| {
        let words = words(part);
        let mut few = (1..=3).flat_map(|many| words.windows(many));
        words.len() <= 4 && few.any(|words| ranks.contains(&words.concat()))
    };
    let is_list = |sentence: &str| {
        let (words, parts) = (words(sentence), sentence.split([',', ':', ';', '|']));
        words.contains(&"order")
            && words.iter().any(|word| word.starts_with("lock"))
            && (parts.map(names_a_rank).collect::<Vec<_>>().split(|names| !names))
                .any(|run| run.len() >= RANKS_OF_A_LIST)
    };
    let mut lists = Vec::new();
    for paragraph in text.split("\n\n") {
        let paragraph = paragraph.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        let found = paragraph.split(". ").filter(|sentence| is_list(sentence));
        lists.extend(found.map(str::to_owned));
    }
    lists
}

/// The rules notice what they are about.
#[test]
fn a_second_list_of_locks_is_found() {
    let ranks = ranks("enum Rank {\n /// A.\n Worker,\n Domains,\n SharedQueues,\n Queue,\n}\n");
    assert_eq!(ranks, ["worker", "domains", "sharedqueues", "queue"]);
    let list = "
        //! Lock order, outer first: worker, domains,
        //! queue, machine.
        fn f() {}
        /// A worker knows the domains of its queue; it takes no lock.
        // The worker's lock before the domains'.
    ";
    let found = lists_of_locks(&comments(list), &ranks);
    assert_eq!(found, ["lock order, outer first: worker, domains, queue, machine."]);
    let page = "- **Locks are taken in one order**: worker, domains, shared\nqueues. A fork waits.";
    assert_eq!(lists_of_locks(page, &ranks).len(), 1);
    assert!(names_locks_without_rank("use std::sync::{Arc, Mutex};"));
    assert!(names_locks_without_rank("x: std::sync::RwLock<u8>"));
    assert!(!names_locks_without_rank("use std::sync::{Arc, Once};"));
}

/// The sources of the library, by their paths in `src`.
type Sources = BTreeMap<String, String>;

fn sources() -> Sources {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Sources::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                files.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    assert!(files.len() > 100, "only {} files found", files.len());
    files
}

/// Whether a file is compiled for tests only: those are modules of such names.
fn is_test(file: &str) -> bool {
    file.contains("tests")
}

/// What the modules of the rooms import, but for tests.
fn imports(sources: &Sources) -> Imports {
    let modules: BTreeSet<_> = sources.keys().map(|file| module_of(file)).collect();
    let exported = exported(sources);
    let mut imports = Imports::new();
    for (file, text) in sources {
        if is_test(file) || !file.contains('/') {
            continue;
        }
        let module = module_of(file);
        for mut path in paths_from(&module, &modules, &code(text)) {
            if let Some(whole) = exported.get(&path[0]) {
                path.splice(..1, whole.iter().cloned());
            }
            let depths = (1..=path.len()).rev();
            let known = depths.map(|depth| &path[..depth]).find(|p| modules.contains(*p));
            let Some(other) = known.filter(|path| ROOMS.contains(&&*path[0])) else {
                let is_known = OF_NO_ROOM.contains(&&*path[0]);
                assert!(is_known, "{file}: crate::{} is in no room", path.join("::"));
                continue;
            };
            let (from, to) = (unit(&module), unit(other));
            if from != to {
                imports.entry(from).or_default().insert(to);
            }
        }
    }
    imports
}

/// What `lib.rs` exports, with the path that it comes from.
fn exported(sources: &Sources) -> BTreeMap<String, Vec<String>> {
    // By a star: the functions of the global domain.
    let global = sources.get("domain/global.rs").map_or("", String::as_str);
    let functions = global.lines().filter_map(|line| line.strip_prefix("pub fn "));
    let functions = functions.filter_map(|line| line.split(['(', '<']).next());
    let functions = functions.map(|name| ["domain", "global", name].map(str::to_owned).into());
    let all = paths("crate", &[], &code(&sources["lib.rs"])).into_iter().chain(functions);
    all.filter_map(|path| Some((path.last()?.clone(), path))).collect()
}

/// The path of the module that a file is.
fn module_of(file: &str) -> Vec<String> {
    let path = file.trim_end_matches(".rs").split('/').filter(|name| *name != "mod");
    path.map(str::to_owned).collect()
}

/// A room's file and the folder of its name are one module.
fn unit(module: &[String]) -> String {
    module[..module.len().min(2)].join("/")
}

/// The paths that the code of a module names, from the root on: those that begin with `crate`, with
/// `self` or `super`, and with a module inside it.
fn paths_from(module: &[String], modules: &BTreeSet<Vec<String>>, code: &str) -> Vec<Vec<String>> {
    let is_within = |other: &&Vec<String>| {
        other.len() == module.len() + 1 && other.starts_with(module) && !module.is_empty()
    };
    let inside = modules.iter().filter(is_within).filter_map(|other| other.last());
    let roots = inside.map(String::as_str).chain(["crate", "self", "super"]);
    let all = roots.flat_map(|root| paths(root, module, code));
    all.filter(|path| !path.is_empty()).collect()
}

/// Those that begin with `root`, groups written out.
fn paths(root: &str, module: &[String], code: &str) -> Vec<Vec<String>> {
    let mut out = Vec::new();
    for (at, _) in code.match_indices(&format!("{root}::")) {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '$')) {
            continue;
        }
        let (mut prefix, mut rest) = (module.to_vec(), &code[at..]);
        if let Some(after) = rest.strip_prefix("crate::") {
            (prefix, rest) = (Vec::new(), after);
        }
        while let Some(after) = rest.strip_prefix("super::") {
            prefix.pop();
            rest = after;
        }
        rest = rest.strip_prefix("self::").unwrap_or(rest);
        tree(rest, &mut prefix, &mut out);
    }
    out
}

/// Whether a line is an attribute of what is compiled for tests only.
fn is_for_tests(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test")
}

/// The text without comments, strings, and modules of tests.
fn code(text: &str) -> String {
    let mut out = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if is_for_tests(line) {
            while lines.next_if(|line| line.trim().starts_with("#[")).is_some() {}
            if lines.next_if(|line| line.trim().starts_with("mod ") && line.contains('{')).is_some()
            {
                break; // modules of tests come last
            }
            continue;
        }
        let line = line.split("//").next().unwrap_or_default();
        // What stands between quotes; those of this code have no others in them.
        out.extend(line.split('"').step_by(2));
        out.push('\n');
    }
    out
}

/// Reads a path, or a group of them, after `prefix`. Returns what comes after it.
fn tree<'a>(text: &'a str, prefix: &mut Vec<String>, out: &mut Vec<Vec<String>>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = tree(rest, prefix, out).trim_start();
            if let Some(renamed) = rest.strip_prefix("as ") {
                rest = renamed.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
            }
            rest = rest.trim_start().trim_start_matches(',').trim_start();
            match rest.strip_prefix('}') {
                Some(after) => return after,
                None if rest.is_empty() => return rest,
                None => {}
            }
        }
    }
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    if end == 0 {
        // A star, or nothing that is known here.
        out.extend((!prefix.is_empty()).then(|| prefix.clone()));
        return text.get(1..).unwrap_or_default();
    }
    prefix.push(text[..end].to_owned());
    let rest = match text[end..].strip_prefix("::") {
        Some(more) if !more.starts_with('<') => tree(more, prefix, out),
        _ => {
            out.push(prefix.clone());
            &text[end..]
        }
    };
    prefix.pop();
    rest
}
