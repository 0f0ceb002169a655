//! What threads left behind.

use xtask::needs;

use super::compiled_for;
use crate::program::{Whose, run};

/// The library noticed the end of a thread by a thread-local variable, which is not dropped if it
/// is used after the others were: a queue, or a reader of each such thread stayed for ever.
#[test]
fn a_thread_that_defers_in_a_keys_destructor_leaves_its_queue() {
    needs::or_return!();
    for flavor in ["memb", "qsbr", "bp"] {
        let program = compiled_for(flavor, "key_destructors.c");
        for case in ["deferred", "deferred_as_registered", "queued_for_a_cpu"] {
            let said = run(&program, Whose::Ours, &[case]);
            assert_eq!(said, format!("run {case}\nok {case}\n"), "{flavor}");
        }
    }
}

/// Its queue was left already, so it was taken for empty.
#[test]
fn to_unregister_after_the_librarys_destructor_waits_for_no_deferred_call() {
    needs::or_return!();
    for flavor in ["memb", "qsbr", "bp"] {
        let program = compiled_for(flavor, "key_destructors.c");
        let said = run(&program, Whose::Ours, &["waited_for_in_the_next_round"]);
        assert!(said.ends_with("ok waited_for_in_the_next_round\n"), "{flavor}: {said}");
    }
}
