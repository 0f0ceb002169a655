//! Where liburcu continues, or returns an error, the process was ended.

use xtask::needs;

use super::{compiled_for, holds_for, says};
use crate::program::{FLAVORS, Whose, aborts, ended, run};

/// Each is named once, however often it is made, and nothing comes of it; with `QUIESCENCE_DEBUG=1`
/// it aborts.
#[test]
fn a_mistake_that_liburcu_survives_ends_the_process() {
    needs::or_return!();
    let mistakes = [
        ("barrier", "barrier() inside a read-side critical section"),
        ("unlock", "FLAVOR: rcu_read_unlock() outside a read-side critical section"),
        ("unregister", "unregister_thread() inside a read-side critical section"),
        (
            "unregistered",
            "synchronize_rcu() in a read-side critical section of a thread that is not",
        ),
    ];
    for flavor in FLAVORS {
        let program = compiled_for(flavor, "tolerated.c");
        for (mistake, named) in mistakes {
            let named = &named.replace("FLAVOR", &format!("urcu_{flavor}"));
            // A thread of bp is registered by its section, and stays so: it would wait for itself.
            if flavor == "bp" && mistake.starts_with("unregister") {
                continue;
            }
            let output = ended(&program, Whose::Ours, &[mistake], &[]);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{flavor} {mistake}: {}\n{said}", output.status);
            // In QSBR there are no sections.
            if flavor == "qsbr" {
                assert_eq!(said, "", "{mistake}");
                continue;
            }
            assert_eq!(said.matches(named).count(), 1, "{flavor} {mistake}: {said}");
            assert_eq!(said.lines().count(), 1, "{flavor} {mistake}: {said}");
            let debugging = [("QUIESCENCE_DEBUG", "1")];
            let said = aborts(&program, Whose::Ours, &[mistake], &debugging);
            assert!(said.contains("liburcu (quiescence): "), "{flavor} {mistake}: {said}");
            // A section of a thread that is not registered is noticed where it begins.
            let is_named = mistake == "unregistered" || said.contains(named);
            assert!(is_named, "{flavor} {mistake}: {said}");
        }
    }
}

/// It was written by `write`, in which a thread that was cancelled ends: through our frames.
#[test]
fn a_cancelled_thread_ends_in_the_message_of_a_mistake() {
    holds_for(&["memb", "mb", "signal", "bp"], "cancelled.c");
}

/// Its readers had no fences, and nothing said whether updaters had them.
#[test]
fn a_program_that_forces_membarrier_runs_where_there_is_none() {
    needs::or_return!();
    for flavor in ["memb", "bp"] {
        let program = compiled_for(flavor, "force_membarrier.c");
        if quiescence::tuning::fences() == quiescence::tuning::Fences::Membarrier {
            assert_eq!(run(&program, Whose::Ours, &[]), "ok\n");
        }
        let portable = [("QUIESCENCE_FENCES", "portable")];
        let said = aborts(&program, Whose::Ours, &[], &portable);
        assert!(said.contains("CONFIG_RCU_FORCE_SYS_MEMBARRIER"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

/// It takes a pointer that its caller has loaded, plainly. What comes next loads it, in order, and
/// was not there.
#[test]
fn rcu_dereference_sym_orders_nothing() {
    holds_for(&FLAVORS, "dereference.c");
}

#[test]
fn a_call_without_memory_that_has_an_error_to_return_ends_the_process() {
    for call in ["defer_register", "create_all", "set_cpu", "table"] {
        says(&FLAVORS, "memory.c", Some(call), "ok\n");
    }
}

/// The language's own words said a C program nothing, and came twice.
#[test]
fn the_want_of_memory_is_named_in_the_words_of_the_language() {
    needs::or_return!();
    for flavor in FLAVORS {
        let program = compiled_for(flavor, "memory.c");
        for call in ["call_rcu", "create", "barrier", "defer"] {
            let said = aborts(&program, Whose::Ours, &[call], &[]);
            assert!(said.starts_with("liburcu (quiescence): "), "{flavor} {call}: {said}");
            assert!(said.contains("out of memory"), "{flavor} {call}: {said}");
            assert_eq!(said.lines().count(), 1, "{flavor} {call}: {said}");
        }
    }
}

/// A library that is not linked with a flavour that it uses may be initialised before it.
#[test]
fn a_section_before_the_librarys_constructor_ends_the_process() {
    holds_for(&FLAVORS, "early.c");
}

/// They were statements: such a program of 0.13 did not compile.
#[test]
fn an_atomic_operation_without_a_result_is_no_expression() {
    holds_for(&["memb"], "expressions.c");
}
