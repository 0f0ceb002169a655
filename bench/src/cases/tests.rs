//! Tests that look at the memory of their process, and so need one of their own.

use std::env;
use std::process::Command;

const ALONE: &str = "RIVALS_ALONE";

/// Whether the calling test runs alone in its process. If not, it is run once more in one of its
/// own, by its whole name, and has passed there when this returns.
pub(crate) fn is_alone(test: &str) -> bool {
    if env::var_os(ALONE).is_some() {
        return true;
    }
    let mut again = Command::new(env::current_exe().expect("a test knows its program"));
    let output = again.args([test, "--exact", "--nocapture"]).env(ALONE, "yes").output();
    let output = output.expect("a test can be run again");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
    false
}
