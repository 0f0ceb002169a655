//! Tells torture which commit it is built from.
//!
//! Without git, or outside of a repository, that is "unknown".

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or("unknown".to_owned());
    println!("cargo::rustc-env=RCU_COMMIT={commit}");
    // The log of HEAD grows with every commit and checkout. A file that does not exist would have
    // the script run each time.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"])
        && std::path::Path::new(&log).exists()
    {
        println!("cargo::rerun-if-changed={log}");
    }
}

/// What git returns, if there is a git, it succeeds, and it returns one word.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let answer = String::from_utf8(output.stdout).ok()?;
    let answer = answer.trim();
    (output.status.success() && !answer.is_empty() && !answer.contains('\n'))
        .then(|| answer.to_owned())
}
