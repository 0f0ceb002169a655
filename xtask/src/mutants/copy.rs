//! The copy of the tree in which steps can be removed.
//!
//! `//~ NAME` at the end of a line marks it, and `//~ NAME:` alone on a line the next one: the edit
//! of that name changes an expression of it, or all of it. `//~ NAME` alone on a line is a place
//! where the edit's statements are executed; `//~ NAME {` and `//~ }` enclose what is left out. A
//! mark may have several names. `//~ point NAME` is where a hook may delay the thread.
//!
//! Each mark needs an edit and each edit a mark, and nothing is guessed: what does not fit is an
//! error, here or of the compiler.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use mutants::{Edit, Table};

use crate::tools::{root, run};

/// Packages that have marks, and what they need to find the switch.
const PACKAGES: [(&str, &str); 3] = [
    ("quiescence", "quiescence-mutants = { path = \"../verify/mutants\" }"),
    ("compat", "quiescence-mutants = { path = \"../verify/mutants\" }"),
    ("verify/torture", ""),
];

/// Writes the copy of the repository as it is to be now, or brings it up to date. Returns where it
/// is.
///
/// # Errors
/// If a mark has no edit, or an edit no mark; or if something cannot be read or written.
pub(crate) fn tree() -> Result<PathBuf> {
    let mut marks = Marks::new(mutants::table());
    let path = root().join("target/mutants-tree");
    copied(&path, |file, text| marks.edited(file, text))?;
    marks.ended()?;
    Ok(path)
}

/// Copies the files that git knows, as they stand now, each as `edited` has it. What has not
/// changed since the last copy is not touched, so that cargo need not build it again.
///
/// # Errors
/// If something cannot be read, edited or written.
pub(crate) fn copied(
    path: &Path,
    mut edited: impl FnMut(&str, String) -> Result<String>,
) -> Result<()> {
    let root = root();
    let listed = run(Command::new("git").current_dir(&root).args(["ls-files", "-z"]))?;
    let files: BTreeSet<&str> = listed.split('\0').filter(|file| !file.is_empty()).collect();
    for file in &files {
        let (from, to) = (root.join(file), path.join(file));
        // A link to something, or removed and not committed.
        if !from.is_file() {
            continue;
        }
        let bytes = fs::read(&from).with_context(|| from.display().to_string())?;
        let bytes = match String::from_utf8(bytes) {
            Ok(text) => edited(file, text)?.into_bytes(),
            Err(error) => error.into_bytes(),
        };
        if !fs::read(&to).is_ok_and(|there| there == bytes) {
            fs::create_dir_all(to.parent().context("a file is in a directory")?)?;
            if !to.exists() {
                fs::copy(&from, &to).with_context(|| to.display().to_string())?; // its mode
            }
            fs::write(&to, bytes).with_context(|| to.display().to_string())?;
        }
    }
    for there in crate::tools::files_below(path)? {
        let file = there.strip_prefix(path)?.to_string_lossy().into_owned();
        if !files.contains(file.as_str()) || !root.join(&file).is_file() {
            fs::remove_file(&there)?;
        }
    }
    Ok(())
}

/// The edits of a table, and which of them have found their marks.
struct Marks {
    /// Names, with the number of the step, if it is none of the hooks, and an edit.
    edits: Vec<(&'static str, bool, &'static Edit)>,
    used: BTreeSet<usize>,
}

impl Marks {
    fn new(table: &'static Table) -> Self {
        let steps = table
            .step
            .iter()
            .flat_map(|step| step.edits.iter().map(|edit| (step.name.as_str(), true, edit)));
        let hooks = table.hook.iter().map(|hook| (hook.name.as_str(), false, &hook.edit));
        Self { edits: steps.chain(hooks).collect(), used: BTreeSet::new() }
    }

    /// Whether all edits have found their marks.
    fn ended(&self) -> Result<()> {
        for (number, (name, _, edit)) in self.edits.iter().enumerate() {
            ensure!(
                self.used.contains(&number),
                "{name}: no mark in {} is for {edit:?}",
                edit.file
            );
        }
        Ok(())
    }

    /// A file of the copy.
    fn edited(&mut self, file: &str, text: String) -> Result<String> {
        let within = |(package, _): &&(&str, &str)| file.starts_with(&format!("{package}/"));
        let Some((package, needs)) = PACKAGES.iter().find(within) else { return Ok(text) };
        if file == format!("{package}/Cargo.toml") {
            return Ok(text.replacen("[dependencies]\n", &format!("[dependencies]\n{needs}\n"), 1));
        }
        if !file.starts_with(&format!("{package}/src/")) || !file.ends_with(".rs") {
            return Ok(text);
        }
        let mut edited = String::new();
        let (mut next, mut open) = (None, 0);
        for (at, line) in text.lines().enumerate() {
            let (code, mark) = match line.split_once("//~ ") {
                Some((code, mark)) => (code.trim_end(), Some(mark)),
                None => (line, None),
            };
            let made = match (next.take(), mark) {
                (Some(names), None) => self.changed(file, code, names),
                (Some(names), Some(_)) => bail!("{file}:{}: {names} marks a mark", at + 1),
                (None, None) => Ok(code.to_owned()),
                (None, Some(names)) if !code.trim().is_empty() => self.changed(file, code, names),
                (None, Some("}")) => {
                    open -= 1;
                    Ok("}".to_owned())
                }
                (None, Some(mark)) => match (mark.strip_suffix(" {"), mark.strip_suffix(':')) {
                    (Some(name), _) => {
                        open += 1;
                        self.found(file, name, |edit| edit.find.is_none() && edit.with.is_none())
                            .map(|_| format!("if !{} {{", removed(name)))
                    }
                    (_, Some(names)) => {
                        next = Some(names);
                        Ok(String::new())
                    }
                    _ => match mark.strip_prefix("point ") {
                        Some(name) => {
                            Ok(format!("::mutants::point(::mutants::Point::{});", camel(name)))
                        }
                        None => self.inserted(file, mark),
                    },
                },
            };
            let made = made.with_context(|| format!("{file}:{}", at + 1))?;
            writeln!(edited, "{made}")?;
        }
        ensure!(open == 0 && next.is_none(), "{file}: a mark that is not closed");
        Ok(edited)
    }

    /// What marks of these names change in a line.
    fn changed(&mut self, file: &str, code: &str, names: &str) -> Result<String> {
        let mut code = code.to_owned();
        for name in names.split(' ') {
            let finds = |edit: &Edit| {
                edit.find.as_ref().is_some_and(|find| code.matches(find.as_str()).count() == 1)
            };
            let all = |edit: &Edit| edit.find.is_none() && edit.insert.is_none();
            let has = |edit: &Edit| edit.file == file && finds(edit);
            let is_part = self.edits.iter().any(|(of, _, edit)| *of == name && has(edit));
            let found =
                if is_part { self.found(file, name, finds) } else { self.found(file, name, all) };
            let (is_step, edit) = found?;
            let (find, with) = (edit.find.as_deref(), edit.with.as_deref().unwrap_or_default());
            code = match (find, is_step) {
                (Some(find), true) => {
                    let both = format!("(if {} {{ {with} }} else {{ {find} }})", removed(name));
                    code.replacen(find, &both, 1)
                }
                (Some(find), false) => code.replacen(find, with, 1),
                (None, _) => {
                    format!("if {} {{\n{with}\n}} else {{\n{code}\n}}", removed(name))
                }
            };
        }
        Ok(code)
    }

    /// What is executed at a mark of these names.
    fn inserted(&mut self, file: &str, names: &str) -> Result<String> {
        let mut made = String::new();
        for name in names.split(' ') {
            let (is_step, edit) = self.found(file, name, |edit| edit.insert.is_some())?;
            let insert = edit.insert.as_deref().unwrap_or_default();
            let whole = insert.replace("$removed", &removed(name));
            if is_step && whole == insert {
                writeln!(made, "if {} {{\n{insert}\n}}", removed(name))?;
            } else {
                writeln!(made, "{whole}")?;
            }
        }
        Ok(made)
    }

    /// The edit of this name that fits; of several the next that has not found its mark.
    fn found(
        &mut self,
        file: &str,
        name: &str,
        fits: impl Fn(&Edit) -> bool,
    ) -> Result<(bool, &'static Edit)> {
        let is_it = |(_, (of, _, edit)): &(usize, &(&str, bool, &Edit))| {
            *of == name && edit.file == file && fits(edit)
        };
        let fitting: Vec<_> = self.edits.iter().enumerate().filter(is_it).collect();
        let next = fitting.iter().find(|(number, _)| !self.used.contains(number));
        let (number, (_, is_step, edit)) = match (next, &fitting[..]) {
            (Some(next), _) | (None, [next]) => *next,
            _ => bail!("mutants.toml has {} edits for the mark {name:?}", fitting.len()),
        };
        self.used.insert(number);
        Ok((*is_step, edit))
    }
}

/// The question whether a step is removed.
fn removed(name: &str) -> String {
    format!("::mutants::is_removed(const {{ ::mutants::id(\"{name}\") }})")
}

/// `slot-found` as `SlotFound`.
fn camel(name: &str) -> String {
    let word = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('-').map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r#"
        alone = []
        unbroken = []

        [[step]]
        name = "a"
        about = ""
        catchers = []
        edits = [
            { file = "compat/src/y.rs", insert = "first();" },
            { file = "compat/src/y.rs", insert = "second();" },
            { file = "compat/src/x.rs", find = "Release", with = "Relaxed" },
            { file = "compat/src/x.rs" },
            { file = "compat/src/x.rs", insert = "return;" },
        ]

        [[step]]
        name = "b"
        about = ""
        catchers = []
        edits = [{ file = "compat/src/x.rs", insert = "let c = if $removed { 1 } else { 2 };" }]

        [[hook]]
        name = "h"
        about = ""
        edit = { file = "compat/src/x.rs", find = "old()", with = "new()" }
    "#;

    fn marks() -> Marks {
        Marks::new(Box::leak(Box::new(toml::from_str(TABLE).unwrap())))
    }

    fn edited(text: &str) -> Result<String> {
        let made = marks().edited("compat/src/x.rs", text.to_owned())?;
        let (a, b) = (removed("a"), removed("b"));
        Ok(made.replace(&a, "A").replace(&b, "B").split_whitespace().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn marked_lines_ask_whether_their_step_is_removed() {
        let same = |text: &str, made: &str| assert_eq!(edited(text).unwrap(), made);
        same("x(Release); //~ a", "x((if A { Relaxed } else { Release }));");
        same("//~ a:\nx(Release);", "x((if A { Relaxed } else { Release }));");
        same("go(); // why //~ a", "if A { } else { go(); // why }");
        same("//~ a", "if A { return; }");
        same("//~ a {\ngo();\n//~ }", "if !A { go(); }");
        same("//~ b", "let c = if B { 1 } else { 2 };");
        same("//~ a b", "if A { return; } let c = if B { 1 } else { 2 };");
        same("//~ point slot-found", "::mutants::point(::mutants::Point::SlotFound);");
        same("old() //~ h", "new()");
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        for text in ["x(); //~ unknown", "//~ h", "x(); //~ h", "//~ a {\ngo();", "//~ a:\n//~ a"] {
            assert!(edited(text).is_err(), "{text}");
        }
        let mut marks = marks();
        let made = marks.edited("compat/src/y.rs", "//~ a\n//~ a\n".to_owned()).unwrap();
        assert!(made.find("first()") < made.find("second()"), "{made}");
        assert!(marks.edited("compat/src/y.rs", "//~ a\n".to_owned()).is_err(), "a third");
        let text = "//~ a\n//~ b\nold() //~ h\ngo(); //~ a\n";
        marks.edited("compat/src/x.rs", text.to_owned()).unwrap();
        let error = marks.ended().unwrap_err().to_string();
        assert!(error.contains("a: no mark in compat/src/x.rs is for"), "{error}");
        marks.edited("compat/src/x.rs", "x(Release) //~ a".to_owned()).unwrap();
        marks.ended().unwrap();
    }

    /// A place that has moved without its mark would leave a step that is never removed.
    #[test]
    fn each_mark_has_an_edit_and_each_edit_a_mark() {
        let root = root();
        let mut marks = Marks::new(mutants::table());
        for (package, _) in PACKAGES {
            for path in crate::tools::files_below(&root.join(package).join("src")).unwrap() {
                let file = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                marks.edited(&file, fs::read_to_string(&path).unwrap()).unwrap();
            }
        }
        marks.ended().unwrap();
    }

    #[test]
    fn each_edit_changes_something() {
        for (name, _, edit) in Marks::new(mutants::table()).edits {
            assert!(edit.find.is_none() || edit.find != edit.with, "{name}");
            assert!(
                edit.insert.is_none() || (edit.find.is_none() && edit.with.is_none()),
                "{name}"
            );
        }
    }
}
