//! Callbacks of `call_rcu` that were lost, that no barrier waited for, or that no thread ran.

use xtask::needs;

use super::{compiled_for, holds_for};
use crate::program::{Whose, ended, text};

/// Its worker had handed over what it had, and was in no list any more, when the callback came: the
/// barrier did not look where it went.
#[test]
fn rcu_barrier_misses_a_callback_that_comes_while_its_worker_is_freed() {
    holds_for(&["memb"], "late_push.c");
}

/// What the program in a sandbox wrote; `None` if the kernel has none.
fn in_a_sandbox(case: &str) -> Option<String> {
    let output = ended(&compiled_for("memb", "sandbox.c"), Whose::Ours, &[case], &[]);
    if output.status.code() == Some(77) {
        needs::skipped("seccomp(2)", "a kernel that has it");
        return None;
    }
    assert!(output.status.success(), "{}: {}", output.status, text(&output));
    Some(text(&output))
}

/// It was made with the first callback only: in a sandbox that killed the process.
#[test]
fn get_default_call_rcu_data_made_no_thread() {
    needs::or_return!(Gcc);
    let said = in_a_sandbox("prepared");
    assert!(said.is_none_or(|said| said == "ok\n"));
}

/// Callbacks waited without a word.
#[test]
fn a_thread_that_cannot_be_made_was_not_reported() {
    needs::or_return!(Gcc);
    let Some(said) = in_a_sandbox("unprepared") else { return };
    assert_eq!(said.matches("pthread_create() failed with error 11").count(), 1, "{said}");
}

/// At the limit it waited 10 ms in each call, for a callback that waited for its lock: to empty a
/// table took minutes.
#[test]
fn a_thread_with_a_lock_of_the_callbacks_waits_in_each_call() {
    needs::or_return!(Gcc);
    let limit = [("QUIESCENCE_LIMIT_OBJECTS", "1000")];
    let output = ended(&compiled_for("memb", "locked_callback.c"), Whose::Ours, &[], &limit);
    assert_eq!(text(&output), "ok\n", "{}", output.status);
}
