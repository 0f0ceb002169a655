//! `<rcu>` and `<hazard_pointer>`.

use xtask::needs;
use xtask::needs::Need::Gxx;

use super::program::{aborts, compile, run, scratch, succeeds};

/// What was protected was in each module's own list: one that another module had retired was freed
/// under it.
#[test]
fn an_object_protected_by_one_module_is_freed_by_another() {
    if !needs::met(&[Gxx]) {
        return;
    }
    let directory = scratch("modules");
    for (number, visibility) in ["-fvisibility=default", "-fvisibility=hidden"].iter().enumerate() {
        let module = |name: &str| {
            let options = ["-shared", "-fPIC", visibility];
            compile(&directory, "module.cpp", &format!("{name}{number}.so"), &options)
        };
        let (one, two) = (module("one"), module("two"));
        for (kind, more) in [("pie", "-pie"), ("no-pie", "-no-pie"), ("exported", "-rdynamic")] {
            let program = compile(
                &directory,
                "module.cpp",
                &format!("{kind}{number}"),
                &[
                    "-DEXECUTABLE",
                    visibility,
                    if more == "-no-pie" { "-fno-pie" } else { "-fPIE" },
                    more,
                ],
            );
            assert_eq!(succeeds(&program, &[&one]), "ok\n", "{kind} and a plugin");
            assert_eq!(succeeds(&program, &[&one, &two]), "ok\n", "two plugins of {kind}");
        }
    }
}

/// It ran as a callback of `<rcu>`, for which the barrier waits.
#[test]
fn a_hazard_pointers_deleter_that_waits_in_rcu_barrier_aborts() {
    if !needs::met(&[Gxx]) {
        return;
    }
    let program = compile(&scratch("waiting-deleter"), "waiting_deleter.cpp", "program", &[]);
    assert_eq!(succeeds(&program, &[]), "ok\n");
}

/// It went on without a fence, and objects were freed that are protected.
#[test]
fn a_membarrier_that_fails_is_ignored_by_hazard_pointers() {
    if !needs::met(&[Gxx]) {
        return;
    }
    let program = compile(&scratch("membarrier-lost"), "membarrier_lost.cpp", "program", &[]);
    let output = run(&program, &[], &[]);
    if output.status.code() == Some(77) {
        return needs::skipped("seccomp(2)", "a kernel that has it");
    }
    let said = aborts(&output);
    assert!(
        said.contains("membarrier(2), which worked when this process started, now fails"),
        "{said}"
    );
    // Those who say so at the start have other fences.
    let output = run(&program, &[], &[("QUIESCENCE_FENCES", "portable")]);
    assert!(output.status.success(), "{output:?}");
}

/// Bases brought names along: `link`, `node`, `take`, and the deleter's own.
#[test]
fn base_classes_bring_names_into_users_classes() {
    if !needs::met(&[Gxx]) {
        return;
    }
    let program = compile(&scratch("names"), "names.cpp", "program", &["-Wshadow", "-Wpedantic"]);
    assert_eq!(succeeds(&program, &[]), "ok\n");
}
