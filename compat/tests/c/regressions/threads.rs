//! What threads left behind.

use super::case_holds_for;

const FLAVORS: [&str; 3] = ["memb", "qsbr", "bp"];

/// The library noticed the end of a thread by a thread-local variable, which is not dropped if it
/// is used after the others were: a queue, or a reader of each such thread stayed for ever.
#[test]
fn a_thread_that_defers_in_a_keys_destructor_leaves_its_queue() {
    for case in ["deferred", "deferred_as_registered", "queued_for_a_cpu"] {
        case_holds_for(&FLAVORS, "key_destructors.c", case);
    }
}

/// Its queue was left already, so it was taken for empty.
#[test]
fn to_unregister_after_the_librarys_destructor_waits_for_no_deferred_call() {
    case_holds_for(&FLAVORS, "key_destructors.c", "waited_for_in_the_next_round");
}
