//! Installs the command `rcu` below a prefix: the program, `rcu-torture` beside it, manual pages,
//! and completions for shells where these look for them.
//!
//! The program itself writes pages and completions, so that they describe what is installed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::say;
use crate::tools::{self, built_program, files_below, run};

/// Shells, and where each looks for the completions of `rcu`, below the prefix.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/rcu"),
    ("zsh", "share/zsh/site-functions/_rcu"),
    ("fish", "share/fish/vendor_completions.d/rcu.fish"),
];

/// Builds the command, and installs it below `prefix`.
///
/// # Errors
/// If the prefix is not absolute, the command does not compile, or a file cannot be written.
pub fn install(prefix: &Path) -> Result<()> {
    ensure!(prefix.is_absolute(), "--prefix is to be absolute: {}", prefix.display());
    say::begun("building the command");
    for (package, name) in [("rcu", "rcu"), ("quiescence-torture", "rcu-torture")] {
        let program = built_program(package, name)?;
        let installed = prefix.join("bin").join(name);
        let built = fs::read(&program).with_context(|| program.display().to_string())?;
        tools::write(&installed, built)?;
        say::line(installed.display())?;
        fs::set_permissions(&installed, fs::Permissions::from_mode(0o755))?;
    }
    let installed = prefix.join("bin/rcu");
    for (shell, place) in COMPLETIONS {
        let script = run(Command::new(&installed).args(["completions", shell]))?;
        tools::write(&prefix.join(place), script)?;
        say::line(prefix.join(place).display())?;
    }
    let pages = prefix.join("share/man/man1");
    run(Command::new(&installed).args(["man", "--dir"]).arg(&pages))?;
    for page in files_below(&pages)? {
        if page.file_name().is_some_and(|name| name.to_string_lossy().starts_with("rcu")) {
            say::line(page.display())?;
        }
    }
    Ok(())
}
