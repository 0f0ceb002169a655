//! Faults that trying the command has found, one test each.

mod common;

use std::fs;

use common::{expect_code, file, run, tiny};

/// The page was written over the JSON.
#[test]
fn two_results_in_one_file_overwrote_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "result", "what was there");
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for other in [&path, &link] {
        let (path, other) = (path.to_str().unwrap(), other.to_str().unwrap());
        let (stdout, stderr) =
            expect_code(&tiny(&["--json", path, "--html", other]).output().unwrap(), 2);
        assert!(stderr.contains("two results would go to one file"), "{stderr}");
        assert!(stdout.is_empty(), "{stdout}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "what was there");
    let null = ["--json", "/dev/null", "--html", "/dev/null"];
    expect_code(&tiny(&null).output().unwrap(), 0);
}

/// "no such file", of a file that was there.
#[test]
fn costs_of_a_binary_file_were_no_such_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "costs.json", b"\xff\xfe\x00");
    let (_, stderr) = expect_code(&run(["simulate", "--costs", path.to_str().unwrap()]), 2);
    assert!(stderr.contains("not text") && !stderr.contains("no such file"), "{stderr}");
    let (_, stderr) = expect_code(&run(["simulate", "--costs", "nowhere"]), 2);
    assert!(stderr.contains("no such file; there are modern"), "{stderr}");
    let directory = directory.path().to_str().unwrap();
    let (_, stderr) = expect_code(&run(["simulate", "--costs", directory]), 2);
    assert!(stderr.contains("cannot read"), "{stderr}");
}

/// "unexpected argument '-3'".
#[test]
fn a_negative_number_was_an_unexpected_argument() {
    let cases: [(&[&str], &str); 4] = [
        (&["--threads", "-3"], "-3 is out of range: at least 1, at most 1024"),
        (&["--max-keys", "-3"], "-3 is out of range"),
        (&["bench", "read", "--rounds", "-3"], "-3 is not in 1..=10000"),
        (&["--seed", "-3"], "not a whole number"),
    ];
    for (args, expected) in cases {
        let (_, stderr) = expect_code(&run(args), 2);
        assert!(stderr.contains(expected), "{args:?}: {stderr}");
    }
    expect_code(&run(["-3"]), 2);
}

/// "expected f64", "invalid float literal", "invalid digit found in string".
#[test]
fn errors_named_the_types_of_rust() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "w.toml", "reads = \"most\"\n");
    let cases: [(&[&str], &str); 6] = [
        (
            &["--workload", path.to_str().unwrap()],
            "line 1: invalid type: string \"most\", expected a number",
        ),
        (&["--reads", "most"], "invalid value 'most' for '--reads <PERCENT>': not a number"),
        (&["--zipf", ""], "not a number"),
        (&["--threads", "1.5"], "not a whole number"),
        (&["--seed", "many"], "invalid value 'many' for '--seed <N>': not a whole number"),
        (&["--seed", "99999999999999999999"], "the number is out of range"),
    ];
    for (args, expected) in cases {
        let (_, stderr) = expect_code(&run(args), 2);
        assert!(stderr.contains(expected), "{args:?}: {stderr}");
        for word in ["f64", "float", "literal", "digit", "target type"] {
            assert!(!stderr.contains(word), "{word} in: {stderr}");
        }
    }
}

#[test]
fn output_began_with_an_empty_line() {
    let tried: [&[&str]; 3] =
        [&["simulate", "--list"], &["simulate", "--engine", "srcu"], &["costs", "--quick"]];
    for args in tried {
        let (stdout, _) = expect_code(&run(args), 0);
        assert!(stdout.starts_with(|first: char| !first.is_whitespace()), "{args:?}: {stdout}");
    }
}

/// It was 2, as if the arguments were wrong.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_was_a_fault_of_the_user() {
    let (_, stderr) = expect_code(&tiny(&["--json", "/dev/full"]).output().unwrap(), 5);
    assert!(stderr.contains("cannot write /dev/full"), "{stderr}");
}
