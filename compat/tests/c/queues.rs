//! The queues and stacks beside Debian's: the same operations, chosen by a seed, give the same
//! results, whether a program has them inlined, calls the library, or does both with one structure;
//! also where an insertion is half done.

use std::path::PathBuf;

use xtask::needs;

use crate::program::{Whose, compile_for, run_surely};

const BOTH: [Whose; 2] = [Whose::Ours, Whose::Debians];

/// Compiles a program of `tests/queues`. The older interfaces are deprecated, and tested.
fn compile(source: &str, headers: Whose) -> PathBuf {
    compile_for("memb", source, headers, &["-O2", "-Wno-deprecated-declarations"])
}

/// Where two outputs part, for the message.
fn first_difference(one: &str, other: &str) -> String {
    let lines = one.lines().zip(other.lines()).enumerate();
    let different = lines.into_iter().find(|(_, (one, other))| one != other);
    different.map_or_else(
        || "one ends earlier".into(),
        |(number, (one, other))| format!("line {}: {one:?} and {other:?}", number + 1),
    )
}

#[test]
fn every_answer_is_debians() {
    needs::or_return!(Liburcu);
    for headers in BOTH {
        let program = compile("queues/random.c", headers);
        for seed in ["1", "20", "300"] {
            let expected = run_surely(&program, Whose::Debians, &[seed, "library"]);
            assert!(expected.lines().count() > 50_000, "it does something");
            for kind in ["half done", "wfq dequeue", "wfs pop", "lfs pop", "lfs_rcu", "lfq destroy"]
            {
                assert!(expected.contains(kind), "no {kind:?}");
            }
            for libraries in BOTH {
                for who in ["library", "inlined", "mixed"] {
                    let answers = run_surely(&program, libraries, &[seed, who]);
                    assert!(
                        answers == expected,
                        "seed {seed}, {who}, {headers:?} headers, {libraries:?} libraries: {}",
                        first_difference(&answers, &expected)
                    );
                }
            }
        }
    }
}

#[test]
fn threads_that_inline_and_threads_that_call_share_a_structure() {
    needs::or_return!();
    let debians = needs::met_for("with Debian's headers and libraries", &["Liburcu"]);
    let sides = if debians { &BOTH[..] } else { &BOTH[..1] };
    for &headers in sides {
        let program = compile("queues/beside.c", headers);
        for &libraries in sides {
            let said = run_surely(&program, libraries, &[]);
            assert_eq!(said.lines().count(), 4, "{said}");
        }
    }
}
