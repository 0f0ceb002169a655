//! Compares our libraries with Debian 13's liburcu 0.15. It makes a root of Debian 13, and runs the
//! test programs and the package's own examples in it, compiled with that system's compiler and
//! headers, on the system's libraries and on ours; then the tests of this repository that compare
//! with 0.15.
//!
//! `compat/debian13/inside.sh` runs inside the root. Only root may change into one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::compat;
use crate::needs::ROOT_0_15;
use crate::say;
use crate::tools::{self, cargo, copy_tree};

/// Where the root is made, below the repository, if no other one is named.
const ROOT: &str = "target/debian13/root";
/// What is installed in it.
const PACKAGES: &str = "gcc,g++,libc6-dev,make,pkg-config,liburcu-dev";

/// What is run, and where.
#[derive(Clone, Debug, clap::Args)]
pub struct Debian13 {
    /// A root of Debian 13 that has gcc, g++, make and liburcu-dev. It is written to in /tmp.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Write the table to this file as well.
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// Leave the tests of this repository out.
    #[arg(long)]
    programs_only: bool,
}

impl Debian13 {
    /// Makes what is not there, and runs it.
    ///
    /// # Errors
    /// If the caller is not root, something is missing, or a program does not hold on our
    /// libraries.
    pub fn run(&self) -> Result<()> {
        ensure!(
            rustix::process::getuid().is_root(),
            "only root may change into a root of Debian 13: run it by sudo, or in a container"
        );
        let root = self.root.clone().unwrap_or_else(|| tools::root().join(ROOT));
        if !root.join("usr/include").is_dir() {
            make_root(&root)?;
        }
        let (table, held) = beside(&root, &compat::build()?)?;
        say::line(table.trim_end())?;
        if let Some(file) = &self.table {
            fs::write(file, &table).with_context(|| file.display().to_string())?;
        }
        ensure!(held, "something did not hold on our libraries: see above");
        if self.programs_only { Ok(()) } else { tests(&root) }
    }
}

/// Makes the root beside its place, and moves it there once it is whole.
fn make_root(root: &Path) -> Result<()> {
    say::begun(&format!("making a root of Debian 13 in {}: minutes", root.display()));
    let new = root.with_added_extension("new");
    if new.exists() {
        fs::remove_dir_all(&new).with_context(|| new.display().to_string())?;
    }
    fs::create_dir_all(&new).with_context(|| new.display().to_string())?;
    let made = Command::new("debootstrap")
        .args(["--variant=minbase", &format!("--include={PACKAGES}"), "trixie"])
        .arg(&new)
        .stdout(Stdio::null())
        .status();
    let made =
        made.context("debootstrap is not there; get it with: apt-get install debootstrap")?;
    ensure!(
        made.success(),
        "debootstrap fails: its log is {}/debootstrap/debootstrap.log",
        new.display()
    );
    fs::rename(&new, root).with_context(|| root.display().to_string())
}

/// Brings the programs and our libraries into a directory in the root, and runs them there: the
/// table, and whether all held on ours. `/proc` is mounted for these processes only.
fn beside(root: &Path, tree: &Path) -> Result<(String, bool)> {
    let root = fs::canonicalize(root).with_context(|| root.display().to_string())?;
    let place = tempfile::Builder::new().prefix("quiescence-").tempdir_in(root.join("tmp"))?;
    let compat = tools::root().join("compat");
    copy_tree(&compat.join("tests/programs"), &place.path().join("programs"))?;
    copy_tree(&tree.join("lib"), &place.path().join("lib"))?;
    fs::copy(compat.join("debian13/inside.sh"), place.path().join("inside.sh"))?;
    let script = r#"mount -t proc proc "$1/proc" && exec chroot "$1" bash "$2/inside.sh" "$2""#;
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(&root)
        .arg(Path::new("/").join(place.path().strip_prefix(&root)?))
        .stderr(Stdio::inherit())
        .output()
        .context("unshare, of util-linux")?;
    let table = String::from_utf8(output.stdout).context("the table is text")?;
    match output.status.code() {
        Some(0) => Ok((table, true)),
        Some(1) if !table.is_empty() => Ok((table, false)),
        _ => bail!("compat/debian13/inside.sh could not be run: {}", output.status),
    }
}

/// The tests that compare with 0.15 where there is one.
fn tests(root: &Path) -> Result<()> {
    let tests = ["--test", "c", "--", "headers::", "abi::", "programs::"];
    let status = cargo(&tools::root())
        .args(["test", "--package", "quiescence-compat"])
        .args(tests)
        .env(ROOT_0_15, fs::canonicalize(root)?)
        .status()?;
    ensure!(status.success(), "a test did not hold beside liburcu 0.15: see above");
    Ok(())
}
