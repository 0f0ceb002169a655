//! Children made by `fork` beside what other threads were doing.

use xtask::needs;

use super::{case_holds_for, compile};
use crate::program::{Whose, ended, run, text};

/// In the child no thread was there to end the pause: no callback ran, and `rcu_barrier` hung.
#[test]
fn another_threads_pause_lasts_for_ever_in_the_child() {
    case_holds_for(&["memb", "qsbr"], "forks.c", "beside_hooks");
    case_holds_for(&["bp"], "forks.c", "beside_hooks_without");
}

/// It ran callbacks in the midst of the fork: the child did not have those that were being run.
#[test]
fn a_worker_made_between_the_hooks_does_not_stand_still() {
    case_holds_for(&["memb", "bp"], "forks.c", "made_meanwhile");
    case_holds_for(&["mb", "qsbr"], "forks.c", "default_made_meanwhile");
}

/// No thread of the child looked at its callbacks before a barrier did.
#[test]
fn a_worker_that_is_being_freed_keeps_its_callbacks_from_the_child() {
    case_holds_for(&["memb"], "forks.c", "freed");
}

/// What a thread kept between the hooks was gone by then: the process ended.
#[test]
fn the_hooks_end_a_process_whose_thread_forks_at_its_end() {
    case_holds_for(&["memb", "bp"], "forks.c", "at_the_end_of_a_thread");
}

/// Each hash table that was made meanwhile kept them: they were called when they were gone.
#[test]
fn hooks_that_were_unregistered_are_called() {
    case_holds_for(&["memb", "qsbr"], "forks.c", "unregistered");
}

/// They registered the forking thread with bp, whose pool that thread had locked.
#[test]
fn hooks_of_an_older_handler_deadlock() {
    needs::or_return!(Gcc);
    let program = compile("older_handler.c", &["-Wl,--as-needed"]);
    assert_eq!(run(&program, Whose::Ours, &["liburcu-bp.so.8"]), "ok\n");
}

/// No handler of `fork` was installed for them: the child waited for a thread that it had not got.
#[test]
fn without_a_flavour_a_child_frees_no_object_that_it_retires() {
    needs::or_return!(Gxx);
    let program = compile("retires_in_child.cpp", &["-Wl,--as-needed"]);
    assert_eq!(run(&program, Whose::Ours, &[]), "ok\n");
}

/// The forking thread held the lock that the portable futex has for all who sleep.
#[test]
fn an_older_handler_that_pauses_a_work_queue_waits_for_its_own_thread() {
    needs::or_return!();
    let options = ["-Wl,--as-needed", "-lurcu-cds", "-lurcu-common"];
    let program = compile("older_handler_of_a_queue.c", &options);
    for environment in [&[][..], &[("QUIESCENCE_FUTEX", "portable")]] {
        let output = ended(&program, Whose::Ours, &[], environment);
        assert!(output.status.success(), "{environment:?}: {}", text(&output));
    }
}
