//! What `cargo xtask` builds, installs and packages.

mod clients;
mod install;
mod manual;
mod packages;
mod targets;
#[path = "../../../lab/tests/common/told.rs"]
mod told;

use std::process::Command;
use std::time::Duration;

use xtask::limited;

/// What a program says that must end well.
fn tool(command: &mut Command) -> String {
    let output = limited::output(command, Duration::from_secs(60));
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory for files of the test")
}
