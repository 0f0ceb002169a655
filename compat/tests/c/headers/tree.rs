//! Trees of headers: ours, Debian's, and ours with one fault put in, on purpose. And the compiler
//! on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use crate::program::{output, text};
use crate::scratch::scratch;

/// A directory that `<urcu.h>` is in.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) root: PathBuf,
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
    /// Returns what it wrote, or all that it said if it failed.
    pub(crate) fn compile(
        &self,
        command: &str,
        options: &[&str],
        source: &str,
    ) -> Result<String, String> {
        let file = tempfile::NamedTempFile::new().expect("a file for the source");
        fs::write(&file, source).expect("the source is written");
        let mut words = command.split(' ');
        let mut compiler = Command::new(words.next().expect("a compiler"));
        compiler.args(words).arg("-I").arg(&self.root).args(options).arg(file.path());
        said(&output(&mut compiler))
    }
}

fn said(output: &Output) -> Result<String, String> {
    let is_well = output.status.success();
    let out = || String::from_utf8_lossy(&output.stdout).into_owned();
    if is_well { Ok(out()) } else { Err(text(output)) }
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
    let all = ["-o", program.to_str().expect("a path in ASCII"), "-pthread"];
    let compiler = "gcc -std=gnu11 -O2 -Wall -Wextra -Werror -x c";
    tree.compile(compiler, &[&all, options].concat(), &text)?;
    said(&output(&mut Command::new(&program)))
}
