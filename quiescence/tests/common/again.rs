//! Tests that run once more in a process of their own.
//!
//! The library's unit tests include this file, and tests of other packages.

#![allow(dead_code, unused_imports, unused_macros, reason = "each of them needs a part of it")]

use std::process::{Command, Output};
use std::time::Duration;

const ROLE: &str = "ROLE";

/// One test of this program in a new process, in which it finds its role set to `role`.
pub(crate) fn command_of(test: &str, role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(ROLE, role);
    command
}

/// Runs one test of this program in a new process, in which it finds its role set to `role`. It is
/// killed if it takes longer than 300 s, which is a failure of its own, and if this thread ends.
pub(crate) fn again(test: &str, role: &str, environment: &[(&str, &str)]) -> Output {
    let mut command = command_of(test, role);
    command.envs(environment.iter().copied());
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, set_parent_process_death_signal};
        use std::os::unix::process::CommandExt;
        let end_with_parent = || Ok(set_parent_process_death_signal(Some(Signal::KILL))?);
        // SAFETY: between `fork` and `exec` it makes a system call and nothing else.
        unsafe { command.pre_exec(end_with_parent) };
    }
    super::limited::output(&mut command, Duration::from_secs(300)).unwrap()
}

/// As [`again`], which ends with this code; returns what it has said to standard error.
pub(crate) fn ends_again(test: &str, role: &str, code: i32) -> String {
    let output = again(test, role, &[]);
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// As [`again`], for a test that is to pass there. Miri has no other processes.
pub(crate) fn passes_again(test: &str, role: &str, environment: &[(&str, &str)]) {
    if cfg!(miri) {
        return super::expect::say("other processes", "", "run it without Miri");
    }
    let output = again(test, role, environment);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{role} {environment:?} {:?}: {said}", output.status);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("1 passed"), "no such test: {said}");
}

/// The test that the type of a function in it names: `program::module::test::{{closure}}`.
pub(crate) fn test_of<F>(_: F) -> &'static str {
    let path = std::any::type_name::<F>().split("::{{closure}}").next().unwrap();
    path.split_once("::").unwrap().1
}

/// The name of the test that this is in, in its program.
macro_rules! this_test {
    () => {
        $crate::common::again::test_of(|| ())
    };
}

/// The rest of a test is run by a process of its own, with this in its environment if something is
/// given, or one for each of some environments: else the test ends here, once it has passed there.
macro_rules! in_its_own_process {
    () => {
        in_its_own_process!(&[])
    };
    (each of $environments:expr) => {
        if cfg!(miri) || $crate::common::again::role().is_none() {
            return ($environments.iter())
                .for_each(|some| $crate::common::again::passes_again(this_test!(), "alone", some));
        }
    };
    ($environment:expr) => {
        if cfg!(miri) || $crate::common::again::role().is_none() {
            return $crate::common::again::passes_again(this_test!(), "alone", $environment);
        }
    };
}

pub(crate) use {in_its_own_process, this_test};

/// The role of this process, if [`again`] has started it.
pub(crate) fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}
