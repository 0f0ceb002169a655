//! Tries the packages out: installs, upgrades, removes and purges them in Debian systems of their
//! own. The script `compat/packages/try.sh` does it; here is only for which releases.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Build, packages};
use crate::say;

/// Debian 12 and Debian 13.
pub const SUITES: [&str; 2] = ["bookworm", "trixie"];

/// What the script ends with where it cannot be run.
const IMPOSSIBLE: i32 = 4;

/// Makes the packages twice, as two builds of one version, below `output`, and tries them on these
/// releases (all of them, if none is named). Where that is impossible (no root's rights, no
/// `debootstrap`), that is said, and no error.
///
/// # Errors
/// If something did not hold; the other releases are tried nevertheless.
pub fn run(tree: &Path, output: &Path, suites: &[String]) -> Result<()> {
    let maintainer = "Package Trial <trial@quiescence.example.org>".to_owned();
    let [old, new] = [1, 2].map(|revision| output.join(format!("trial/{revision}")));
    for (revision, directory) in [(1, &old), (2, &new)] {
        packages(tree, directory, &Build { maintainer: maintainer.clone(), revision })?;
    }
    let script = crate::tools::root().join("compat/packages/try.sh");
    let all = SUITES.map(str::to_owned);
    let mut failed = Vec::new();
    for suite in if suites.is_empty() { &all[..] } else { suites } {
        say::begun(&format!("trying the packages on {suite}"));
        let mut command = Command::new(&script);
        let status = command.arg(suite).args([&old, &new]).status();
        match status.with_context(|| script.display().to_string())?.code() {
            Some(0 | IMPOSSIBLE) => {}
            _ => failed.push(suite.clone()),
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("did not pass: {}", failed.join(", "))
}
