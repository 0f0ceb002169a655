//! Callbacks of `call_rcu` that were lost, or that no barrier waited for.

use xtask::needs;
use xtask::needs::Need::Gcc;

use super::liburcu::compiled_for;
use super::program::succeeds;

/// Its worker had handed over what it had, and was in no list any more, when the callback came: the
/// barrier did not look where it went.
#[test]
fn rcu_barrier_misses_a_callback_that_comes_while_its_worker_is_freed() {
    if !needs::met(&[Gcc]) {
        return;
    }
    assert_eq!(succeeds(&compiled_for("memb", "late_push.c"), &[]), "ok\n");
}
