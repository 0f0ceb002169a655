//! A step is taken out, and the test that holds it must fail: by itself, or, where no thread is
//! woken, by never ending.

use std::os::unix::process::ExitStatusExt;

use crate::c::again_within;

/// Without these the test that notices does not end.
const HANGS: [&str; 3] = ["end", "wake", "hazard wake"];

/// What is removed (see `removed` in the crate), and which test notices.
const STEPS: [(&str, &str); 19] = [
    ("register", "readers::a_grace_period_waits_for_a_section_and_not_for_later_ones"),
    ("end", "readers::a_thread_that_ends_is_no_reader_any_more"),
    ("wake", "qsbr::going_offline_wakes_an_updater_that_sleeps"),
    ("away", "qsbr::who_waits_is_offline_meanwhile_and_online_afterwards"),
    ("back", "qsbr::who_waits_is_offline_meanwhile_and_online_afterwards"),
    ("ahead", "bp::who_calls_the_library_is_registered_ahead_of_signal_handlers"),
    ("room", "bp::the_first_section_allocates_nothing"),
    ("reserve", "bp::the_first_section_allocates_nothing"),
    ("errno", "bp::callers_are_not_disturbed"),
    ("uncancelled", "bp::callers_are_not_disturbed"),
    ("block", "bp::signals_are_blocked_while_a_thread_registers_and_unregisters"),
    ("give back", "bp::records_are_used_again"),
    ("own record", "fork::the_child_has_all_records_of_bp"),
    ("fork mask", "fork::no_handler_runs_while_the_memory_is_copied"),
    ("surroundings", "defer::functions_are_called_by_a_registered_reader"),
    ("barrier", "defer::calls_are_made_in_order_and_a_barrier_waits_for_them"),
    ("hazard scan", "hazard::what_is_protected_stays_until_it_is_not"),
    ("hazard wake", "hazard::the_thread_that_reclaims_is_woken"),
    ("limit", "defer::online_threads_at_the_limit_do_not_wait_for_each_other"),
];

#[test]
fn every_removed_step_is_noticed() {
    for (step, test) in STEPS {
        // The whole one has no longer than the other: a machine on which it takes that long shows
        // nothing.
        let hangs = HANGS.contains(&step);
        let seconds = if hangs { "10" } else { "100" };
        let whole = again_within(seconds, test, "", &[]);
        assert!(whole.status.success(), "{test}: {whole:?}");
        let said = String::from_utf8_lossy(&whole.stdout);
        assert!(said.contains("1 passed"), "{test} is one test: {said}");
        let without = again_within(seconds, test, "", &[("QUIESCENCE_REMOVED", step)]).status;
        assert!(!without.success(), "{test} does not notice that there is no {step}");
        assert_eq!(
            without.signal() == Some(libc::SIGKILL),
            hangs,
            "{test} without {step}: {without}"
        );
    }
}
