//! Where liburcu continues, or returns an error, the process was ended.

use std::path::PathBuf;

use xtask::needs;

use super::program::{aborts, compile, run, scratch, succeeds};

const FLAVORS: [&str; 5] = ["memb", "mb", "signal", "bp", "qsbr"];

/// A program, compiled for a flavour.
pub(crate) fn compiled_for(flavor: &str, source: &str) -> PathBuf {
    let directory = scratch(&format!("{}-{flavor}", source.trim_end_matches(".c")));
    let define = format!("-DFLAVOR_{}", flavor.to_uppercase());
    let library = format!("-lurcu-{flavor}");
    let options = [define.as_str(), &library, "-lurcu-cds", "-lurcu-common"];
    compile(&directory, source, flavor, &options)
}

/// A program, compiled for each flavour.
fn for_each_flavor(source: &str, mut then: impl FnMut(&str, PathBuf)) {
    for flavor in FLAVORS {
        then(flavor, compiled_for(flavor, source));
    }
}

/// Each is named once, however often it is made, and nothing comes of it; with `QUIESCENCE_DEBUG=1`
/// it aborts.
#[test]
fn a_mistake_that_liburcu_survives_ends_the_process() {
    if !needs::met(&[]) {
        return;
    }
    let mistakes = [
        ("barrier", "barrier() inside a read-side critical section"),
        ("unlock", "rcu_read_unlock() outside a read-side critical section"),
        ("unregister", "unregister_thread() inside a read-side critical section"),
        (
            "unregistered",
            "synchronize_rcu() in a read-side critical section of a thread that is not",
        ),
    ];
    for_each_flavor("tolerated.c", |flavor, program| {
        for (mistake, named) in mistakes {
            // A thread of bp is registered by its section, and stays so: it would wait for itself.
            if flavor == "bp" && mistake.starts_with("unregister") {
                continue;
            }
            let output = run(&program, &[&mistake], &[]);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{flavor} {mistake}: {}\n{said}", output.status);
            // In QSBR there are no sections.
            if flavor == "qsbr" {
                assert_eq!(said, "", "{mistake}");
                continue;
            }
            assert_eq!(said.matches(named).count(), 1, "{flavor} {mistake}: {said}");
            assert_eq!(said.lines().count(), 1, "{flavor} {mistake}: {said}");
            let said = aborts(&run(&program, &[&mistake], &[("QUIESCENCE_DEBUG", "1")]));
            assert!(said.contains("liburcu (quiescence): "), "{flavor} {mistake}: {said}");
        }
    });
}

/// It was written by `write`, in which a thread that was cancelled ends: through our frames.
#[test]
fn a_cancelled_thread_ends_in_the_message_of_a_mistake() {
    if !needs::met(&[]) {
        return;
    }
    for flavor in ["memb", "mb", "signal", "bp"] {
        assert_eq!(succeeds(&compiled_for(flavor, "cancelled.c"), &[]), "ok\n");
    }
}

/// Its readers had no fences, and nothing said whether updaters had them.
#[test]
fn a_program_that_forces_membarrier_runs_where_there_is_none() {
    if !needs::met(&[]) {
        return;
    }
    for flavor in ["memb", "bp"] {
        let program = compiled_for(flavor, "force_membarrier.c");
        if quiescence::tuning::fences() == quiescence::tuning::Fences::Membarrier {
            assert_eq!(succeeds(&program, &[]), "ok\n");
        }
        let said = aborts(&run(&program, &[], &[("QUIESCENCE_FENCES", "portable")]));
        assert!(said.contains("CONFIG_RCU_FORCE_SYS_MEMBARRIER"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

/// It takes a pointer that its caller has loaded, plainly. What comes next loads it, in order, and
/// was not there.
#[test]
fn rcu_dereference_sym_orders_nothing() {
    if !needs::met(&[]) {
        return;
    }
    for flavor in FLAVORS {
        let program = compiled_for(flavor, "dereference.c");
        assert_eq!(succeeds(&program, &[]), "ok\n", "{flavor}");
    }
}

#[test]
fn a_call_without_memory_that_has_an_error_to_return_ends_the_process() {
    if !needs::met(&[]) {
        return;
    }
    for_each_flavor("memory.c", |_, program| {
        for call in ["defer_register", "create_all", "set_cpu", "table"] {
            assert_eq!(succeeds(&program, &[&call]), "ok\n");
        }
    });
}

/// The language's own words said a C program nothing, and came twice.
#[test]
fn the_want_of_memory_is_named_in_the_words_of_the_language() {
    if !needs::met(&[]) {
        return;
    }
    for_each_flavor("memory.c", |flavor, program| {
        for call in ["call_rcu", "create", "barrier", "defer"] {
            let said = aborts(&run(&program, &[&call], &[]));
            assert!(said.starts_with("liburcu (quiescence): "), "{flavor} {call}: {said}");
            assert!(said.contains("out of memory"), "{flavor} {call}: {said}");
            assert_eq!(said.lines().count(), 1, "{flavor} {call}: {said}");
        }
    });
}
