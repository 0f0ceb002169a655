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
