//! The queues and stacks beside Debian's: the same operations, chosen by a seed, give the same
//! results, whether a program has them inlined, calls the library, or does both with one structure;
//! also where an insertion is half done.

use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::needs;
use xtask::needs::Need::Liburcu;

/// Whose headers a program is compiled against, and whose libraries it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Ours,
    Debians,
}

const BOTH: [Whose; 2] = [Whose::Ours, Whose::Debians];

/// Compiles a program of `tests/queues`.
fn compile(source: &str, headers: Whose) -> PathBuf {
    let tree = xtask::compat::built();
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("queues");
    std::fs::create_dir_all(&directory).expect("the directory for tests' files");
    let program = directory.join(format!("{source}-{headers:?}"));
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/queues");
    let mut compiler = Command::new("cc");
    // The older interfaces are deprecated, and tested.
    compiler.args(["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"]);
    compiler.arg("-Wno-deprecated-declarations");
    if headers == Whose::Ours {
        compiler.arg("-I").arg(tree.join("include"));
    }
    compiler.arg(sources.join(source).with_extension("c")).arg("-o").arg(&program);
    compiler.arg("-L").arg(tree.join("lib"));
    let output =
        compiler.args(["-lurcu-memb", "-lurcu-cds", "-lurcu-common"]).output().expect("cc runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{source} with {headers:?} headers:\n{said}");
    program
}

/// Runs a program, and gives what it printed.
fn run(program: &Path, arguments: &[&str], libraries: Whose) -> String {
    let mut command = Command::new(program);
    command.args(arguments).env_remove("LD_LIBRARY_PATH");
    if libraries == Whose::Ours {
        command.env("LD_LIBRARY_PATH", xtask::compat::built().join("lib"));
    }
    let loaded = Command::new(command.get_program())
        .env_remove("LD_LIBRARY_PATH")
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .output()
        .expect("it is there");
    let loaded = String::from_utf8_lossy(&loaded.stdout);
    assert_eq!(loaded.contains("libquiescence"), libraries == Whose::Ours, "{loaded}");
    let output = command.output().expect("it is there");
    assert!(
        output.status.success(),
        "{} {arguments:?} on {libraries:?} libraries: {}\n{}",
        program.display(),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
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
    if !needs::met(&[Liburcu]) {
        return;
    }
    for headers in BOTH {
        let program = compile("random", headers);
        for seed in ["1", "20", "300"] {
            let expected = run(&program, &[seed, "library"], Whose::Debians);
            assert!(expected.lines().count() > 50_000, "it does something");
            for kind in ["half done", "wfq dequeue", "wfs pop", "lfs pop", "lfs_rcu", "lfq destroy"]
            {
                assert!(expected.contains(kind), "no {kind:?}");
            }
            for libraries in BOTH {
                for who in ["library", "inlined", "mixed"] {
                    let answers = run(&program, &[seed, who], libraries);
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
    if !needs::met(&[]) {
        return;
    }
    let debians = needs::met_for("with Debian's headers and libraries", &[Liburcu]);
    let sides = if debians { &BOTH[..] } else { &BOTH[..1] };
    for &headers in sides {
        let program = compile("beside", headers);
        for &libraries in sides {
            let said = run(&program, &[], libraries);
            assert_eq!(said.lines().count(), 4, "{said}");
        }
    }
}
