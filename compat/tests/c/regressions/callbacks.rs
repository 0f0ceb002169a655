//! Callbacks of `call_rcu` that were lost, or that no barrier waited for.

use xtask::needs;

use super::compiled_for;
use crate::program::{Whose, run};

/// Its worker had handed over what it had, and was in no list any more, when the callback came: the
/// barrier did not look where it went.
#[test]
fn rcu_barrier_misses_a_callback_that_comes_while_its_worker_is_freed() {
    needs::or_return!(Gcc);
    let program = compiled_for("memb", "late_push.c");
    assert_eq!(run(&program, Whose::Ours, &[]), "ok\n");
}
