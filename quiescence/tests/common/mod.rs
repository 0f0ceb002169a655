//! What several test files need, each of them a part of it.

#![allow(dead_code)]

pub(crate) mod expect;
pub(crate) mod limited;
#[cfg(target_os = "linux")]
pub(crate) mod shuffle;
pub(crate) mod storm;
pub(crate) mod user_types;

use std::process::{Command, Output};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use quiescence::Domain;
#[cfg(target_os = "linux")]
use quiescence::tuning::{Fences, PerCpuPath};

/// So many rounds, or bytes, or threads; fewer under Miri, which takes a thousand times as long.
pub(crate) const fn rounds<T: Copy>(many: T, under_miri: T) -> T {
    if cfg!(miri) { under_miri } else { many }
}

/// Calls `f` while another thread is in a section of `domain`, which ends when `f` calls its
/// argument.
pub(crate) fn beside_a_section<R>(domain: &Domain, f: impl FnOnce(&dyn Fn()) -> R) -> R {
    let (entered, leave) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            let guard = domain.read();
            entered.wait();
            leave.wait();
            drop(guard);
        });
        entered.wait();
        f(&|| {
            leave.wait();
        })
    })
}

/// Lets other threads run until some updater has gone to sleep in `domain`.
pub(crate) fn until_an_updater_sleeps(domain: &Domain) {
    while domain.statistics().sleeps == 0 {
        thread::yield_now();
    }
}

/// Whether a thread of this process, or none yet (0), sleeps or has ended.
pub(crate) fn sleeps_or_is_gone(thread: u32) -> bool {
    if thread == 0 {
        return false;
    }
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    // The state follows the name, which is in parentheses.
    stat.map_or(true, |stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S')))
}

/// Runs `f` in a child process made by `fork`; a panic there is a failure here.
#[cfg(unix)]
pub(crate) fn in_child(f: impl FnOnce()) {
    // SAFETY: the child runs only `f` on the one thread it has and leaves by `_exit`. What `f` uses
    // of the library is meant to work after a fork; glibc's allocator does.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => {
            let whole = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_ok();
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(i32::from(!whole)) }
        }
        child => {
            let mut status = 0;
            // SAFETY: waits for the child made above.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0, "the child failed");
        }
    }
}

const ROLE: &str = "ROLE";

/// Runs one test of this program in a new process, in which it finds its role set to `role`.
pub(crate) fn again(test: &str, role: &str, environment: &[(&str, &str)]) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

/// As [`again`], for a process that may be one that never ends: it is killed after 100 s, which is
/// a failure of its own.
pub(crate) fn again_in_time(test: &str, role: &str, environment: &[(&str, &str)]) -> Output {
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(ROLE, role);
    again.envs(environment.iter().copied());
    limited::output(&mut again, Duration::from_secs(100)).unwrap()
}

/// The role of this process, if [`again`] has started it.
pub(crate) fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// A domain with a limit, and without reports of stalls.
pub(crate) fn domain_with_limit(objects_max: u64, bytes_max: u64) -> Domain {
    let domain = Domain::new();
    set_limit(&domain, objects_max, bytes_max);
    domain
}

/// Sets a domain's limit, and turns its reports of stalls off.
pub(crate) fn set_limit(domain: &Domain, objects_max: u64, bytes_max: u64) {
    let mut tuning = domain.tuning();
    tuning.objects_max = objects_max;
    tuning.bytes_max = bytes_max;
    tuning.stall_after = None;
    tuning.stall_after_expedited = None;
    domain.tune(tuning);
}

/// Where the machine is known to have them, no test falls back to the portable paths unless it was
/// asked to.
#[test]
#[cfg(target_os = "linux")]
fn the_paths_are_those_that_are_expected() {
    expect::is_expected("membarrier"); // complains of words that mean nothing
    let is_portable = |name| std::env::var_os(name).is_some_and(|value| value == "portable");
    if quiescence::tuning::fences() == Fences::Portable && !is_portable("QUIESCENCE_FENCES") {
        expect::skip("membarrier", "membarrier(2)", "", "use Linux 4.14 or later, unfiltered");
    }
    let _: bool = expect::sequences(quiescence::tuning::per_cpu_path() == PerCpuPath::Restartable);
}
