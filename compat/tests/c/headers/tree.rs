//! Trees of headers: ours, Debian's, and ours with one fault put in, on purpose. And the compiler
//! on them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::Duration;
use std::{fs, io::Write};

use xtask::limited;

use crate::scratch::scratch;

/// A directory that `<urcu.h>` is in.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) root: PathBuf,
}

/// What a compilation came to.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) ok: bool,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Tree {
    pub(crate) fn ours() -> Self {
        static OURS: LazyLock<PathBuf> = LazyLock::new(|| {
            let root = scratch("ours").join("include");
            xtask::headers::write(&root).expect("the headers");
            root
        });
        Self { root: OURS.clone() }
    }

    /// Of the package liburcu-dev.
    pub(crate) fn debians() -> Self {
        Self { root: xtask::needs::debian_headers() }
    }

    /// Of Debian 13: liburcu 0.15.
    pub(crate) fn debian_13s() -> Self {
        Self { root: xtask::needs::liburcu_0_15().join("include") }
    }

    /// A copy of ours, with one passage of one header replaced. `name` is the mutant's own.
    pub(crate) fn mutant(name: &str, header: &str, from: &str, to: &str) -> Self {
        let tree = Self { root: scratch(&format!("mutant-{name}")) };
        let ours = Self::ours();
        for header in ours.headers() {
            let place = tree.root.join(&header);
            fs::create_dir_all(place.parent().expect("a file in the tree")).expect("directories");
            fs::copy(ours.root.join(&header), place).expect("a copy");
        }
        let text = fs::read_to_string(tree.root.join(header)).expect("a header of ours");
        assert!(text.contains(from), "{header} has no {from:?} for the mutant {name} to change");
        fs::write(tree.root.join(header), text.replace(from, to)).expect("the changed header");
        tree
    }

    /// All of liburcu's there are in this tree, by the names that programs include them by; sorted.
    pub(crate) fn headers(&self) -> Vec<String> {
        let inside = xtask::files_below(&self.root.join("urcu")).expect("a folder of headers");
        let beside = fs::read_dir(&self.root).expect("a folder of headers");
        let files = beside.map(|entry| entry.expect("an entry").path()).chain(inside);
        let name =
            |file: PathBuf| file.strip_prefix(&self.root).unwrap().to_str().map(str::to_owned);
        let mut found: Vec<String> = files.filter_map(name).collect();
        found.retain(|name| name.starts_with("urcu") && name.ends_with(".h"));
        found.sort();
        found
    }

    /// Runs `command` ("gcc -x c", say) on `source`, with this tree in front of the system's.
    pub(crate) fn compile(&self, command: &str, options: &[&str], source: &str) -> Compiled {
        let mut words = command.split(' ');
        let mut child = Command::new(words.next().expect("a compiler"))
            .args(words)
            .arg("-I")
            .arg(&self.root)
            .args(options)
            .arg("-")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the compiler runs");
        let mut input = child.stdin.take().expect("a pipe");
        input.write_all(source.as_bytes()).expect("the compiler reads");
        drop(input);
        Compiled::of(&child.wait_with_output().expect("the compiler ends"))
    }
}

impl Compiled {
    fn of(output: &Output) -> Self {
        Self {
            ok: output.status.success(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Compiles a program of `tests/headers` against a tree, runs it, and returns what it wrote.
pub(crate) fn run(
    tree: &Tree,
    source: &str,
    name: &str,
    options: &[&str],
) -> Result<String, String> {
    let program = scratch(name).join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/headers").join(source);
    let text = fs::read_to_string(&source).expect("a program of this test");
    let place = program.to_str().expect("a path in ASCII");
    let mut all = vec!["-o", place, "-pthread"];
    all.extend(options);
    let compiled = tree.compile("gcc -std=gnu11 -O2 -Wall -Wextra -Werror -x c", &all, &text);
    if !compiled.ok {
        return Err(compiled.err);
    }
    let output = limited::output(&mut Command::new(&program), Duration::from_secs(60));
    let output = output.expect("the program runs");
    let ran = Compiled::of(&output);
    if ran.ok { Ok(ran.out) } else { Err(format!("{}{}", ran.out, ran.err)) }
}
