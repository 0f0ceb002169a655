//! `<rcu>` and `<hazard_pointer>`.

use std::path::PathBuf;

use xtask::needs;

use super::compile;
use crate::program::{Whose, aborts, ended, run};

/// A program says that all is well.
fn holds(source: &str, options: &[&str]) {
    if needs::met(&["Gxx"]) {
        assert_eq!(run(&compile(source, options), Whose::Ours, &[]), "ok\n");
    }
}

/// What was protected was in each module's own list: one that another module had retired was freed
/// under it.
#[test]
fn an_object_protected_by_one_module_is_freed_by_another() {
    needs::or_return!(Gxx);
    let path = |program: PathBuf| program.into_os_string().into_string().expect("UTF-8");
    for visibility in ["-fvisibility=default", "-fvisibility=hidden"] {
        let object = |options: &[&str]| {
            path(compile("module.cpp", &[&["-c", visibility], options].concat()))
        };
        let linked =
            |object: &str, options: &[&str]| compile(object, &[options, &["-lstdc++"]].concat());
        let plugin = object(&["-fPIC"]);
        let [one, two] = ["-Wl,-soname,one", "-Wl,-soname,two"]
            .map(|soname| path(linked(&plugin, &["-shared", soname])));
        let [pie, other] = ["-fPIE", "-fno-pie"].map(|kind| object(&["-DEXECUTABLE", kind]));
        for (object, kind) in
            [(&pie, &["-pie"][..]), (&other, &["-no-pie"]), (&pie, &["-pie", "-rdynamic"])]
        {
            let program = linked(object, kind);
            assert_eq!(run(&program, Whose::Ours, &[&one]), "ok\n", "{kind:?} and a plugin");
            let said = run(&program, Whose::Ours, &[&one, &two]);
            assert_eq!(said, "ok\n", "two plugins of {kind:?}");
        }
    }
}

/// It ran as a callback of `<rcu>`, for which the barrier waits.
#[test]
fn a_hazard_pointers_deleter_that_waits_in_rcu_barrier_aborts() {
    holds("waiting_deleter.cpp", &[]);
}

/// It waited 10 ms for each object beyond some thousand: clearing a container took minutes.
#[test]
fn a_thread_with_a_lock_of_the_deleters_waits_for_each_object() {
    holds("locked_deleter.cpp", &[]);
}

/// It went on without a fence, and objects were freed that are protected.
#[test]
fn a_membarrier_that_fails_is_ignored_by_hazard_pointers() {
    needs::or_return!(Gxx);
    let program = compile("membarrier_lost.cpp", &[]);
    if ended(&program, Whose::Ours, &[], &[]).status.code() == Some(77) {
        return needs::skipped("seccomp(2)", "a kernel that has it");
    }
    let said = aborts(&program, Whose::Ours, &[], &[]);
    assert!(
        said.contains("membarrier(2), which worked when this process started, now fails"),
        "{said}"
    );
    // Those who say so at the start have other fences.
    let output = ended(&program, Whose::Ours, &[], &[("QUIESCENCE_FENCES", "portable")]);
    assert!(output.status.success(), "{output:?}");
}

/// Bases brought names along: `link`, `node`, `take`, and the deleter's own.
#[test]
fn base_classes_bring_names_into_users_classes() {
    holds("names.cpp", &["-Wshadow", "-Wpedantic"]);
}

/// Its macros changed names of ours: `<rcu>` did not compile, nor either header where membarrier is
/// forced; and `std::rcu_barrier` would have called itself.
#[test]
fn after_the_headers_of_liburcu_those_of_cpp_do_not_compile() {
    holds("short_names.cpp", &[]);
    if quiescence::tuning::fences() == quiescence::tuning::Fences::Membarrier {
        holds("short_names.cpp", &["-D_LGPL_SOURCE", "-DCONFIG_RCU_FORCE_SYS_MEMBARRIER"]);
    }
}
