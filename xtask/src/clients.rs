//! Runs Debian's own programs on the libraries: the scripts of `compat/clients`, one after the
//! other.
//!
//! What a script does it says itself; here is only which are run, on which libraries, and how it
//! ended. A program that is not installed is a failure too: otherwise a machine without any would
//! show that all is well.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::say;

/// The scripts, in the order they are run in.
pub const CLIENTS: [&str; 9] =
    ["knot", "gdnsd", "kzone", "xfs", "multipath", "flowtop", "ganesha", "gluster", "lttng"];

/// What a script ends with if something that it needs is not installed.
const MISSING: i32 = 4;

/// And if this machine does not let it run, which it says why.
const CANNOT: i32 = 5;

/// Runs these clients (all of them, if none is named) on the libraries of `tree`, and beside them
/// on Debian's: for some seconds, or `long`. The command `rcu`, by which they look at the
/// libraries' counts, is built first, unless the environment says in `RCU` where it is.
///
/// # Errors
/// If one did not hold, or something that it needs is not installed, or none could run on this
/// machine; the others are run nevertheless.
pub fn run(tree: &Path, names: &[String], long: bool) -> Result<()> {
    let scripts = crate::tools::root().join("compat/clients");
    let rcu = match std::env::var_os("RCU") {
        Some(rcu) => rcu.into(),
        None => crate::tools::built_rcu()?,
    };
    let all = CLIENTS.map(str::to_owned);
    let names = if names.is_empty() { &all[..] } else { names };
    let (mut failed, mut not_run) = (Vec::new(), Vec::new());
    for name in names {
        let mut script = Command::new(scripts.join(name).with_extension("sh"));
        script.arg("--libraries").arg(tree.join("lib")).env("RCU", &rcu);
        if long {
            script.arg("--long");
        }
        let status = script.status().with_context(|| format!("compat/clients/{name}.sh"))?;
        match status.code() {
            Some(0) => {}
            Some(CANNOT) => not_run.push(name.as_str()),
            Some(MISSING) => failed.push(format!("{name} (not installed)")),
            Some(_) => failed.push(name.clone()),
            None => failed.push(format!("{name} ({status})")),
        }
    }
    if !not_run.is_empty() {
        say::begun(&format!("not run, for the reasons above: {}", not_run.join(", ")));
    }
    if not_run.len() == names.len() {
        bail!("none of the clients could run on this machine");
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("did not pass: {}", failed.join(", "))
}
