//! Children made by `fork`, and tests that run once more in a process of their own.
//!
//! The library's unit tests include this file, too.

#![allow(dead_code, unused_imports, unused_macros, reason = "each of them needs a part of it")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// Runs `f` in a child process made by `fork`; a panic there is a failure here.
#[cfg(unix)]
pub(crate) fn in_child(f: impl FnOnce()) {
    // SAFETY: the child runs only `f` on the one thread it has and leaves by `_exit`. What `f` uses
    // of the library is meant to work after a fork; glibc's allocator does.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => {
            // SAFETY: asks for a signal, which ends a child that hangs.
            unsafe { libc::alarm(300) };
            end_child(catch_unwind(AssertUnwindSafe(f)).is_ok())
        }
        child => assert_eq!(status_of(child), 0, "the child failed"),
    }
}

/// Ends a child process, which is well if it is whole, without running anything of the parent's.
#[cfg(unix)]
pub(crate) fn end_child(is_whole: bool) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(i32::from(!is_whole)) }
}

/// Waits until a child made by `fork` has ended: 0 if that is well.
#[cfg(unix)]
pub(crate) fn status_of(child: libc::pid_t) -> libc::c_int {
    let mut status = -1;
    // SAFETY: waits for a child of the caller's.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

/// A fork in the midst of what the library does, on the thread that has made this.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct ForksHere {
    on: ThreadId,
    /// What `fork` has returned; -1 until then.
    child: AtomicI32,
}

#[cfg(unix)]
impl ForksHere {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { on: thread::current().id(), child: AtomicI32::new(-1) })
    }

    pub(crate) fn is_here(&self) -> bool {
        thread::current().id() == self.on
    }

    /// Forks, if the calling thread is the one. Both processes continue, the child with it only.
    pub(crate) fn fork(&self) {
        if self.is_here() {
            // SAFETY: the child ends by `_exit`, in `assert_in_both`.
            self.child.store(unsafe { libc::fork() }, SeqCst);
        }
    }

    pub(crate) fn has_forked(&self) -> bool {
        self.child.load(SeqCst) != -1
    }

    pub(crate) fn is_child(&self) -> bool {
        self.child.load(SeqCst) == 0
    }

    /// Ends the child, and fails in the parent if it is not so in both.
    pub(crate) fn assert_in_both(&self, is_so: bool, what: &str) {
        match self.child.load(SeqCst) {
            0 => end_child(is_so),
            child => assert_eq!(status_of(child), 0, "in the child: {what}"),
        }
        assert!(is_so, "{what}");
    }
}

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
        $crate::common::processes::test_of(|| ())
    };
}

/// The rest of a test is run by a process of its own, with this in its environment if something is
/// given, or one for each of some environments: else the test ends here, once it has passed there.
macro_rules! in_its_own_process {
    () => {
        in_its_own_process!(&[])
    };
    (each of $environments:expr) => {
        if cfg!(miri) || $crate::common::processes::role().is_none() {
            return ($environments.iter()).for_each(|some| {
                $crate::common::processes::passes_again(this_test!(), "alone", some)
            });
        }
    };
    ($environment:expr) => {
        if cfg!(miri) || $crate::common::processes::role().is_none() {
            return $crate::common::processes::passes_again(this_test!(), "alone", $environment);
        }
    };
}

pub(crate) use {in_its_own_process, this_test};

/// The role of this process, if [`again`] has started it.
pub(crate) fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}
