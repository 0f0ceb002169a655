//! Keys as they come: any line ends, any bytes, any number, from a file, a pipe or `/usr`.

use std::io::{self, Write};

use crate::common::{advised, documented, expect_code, fails, file, tiny, told};
use serde_json::Value;

/// Runs on these bytes as a key file, or as standard input, and gives back the JSON and standard
/// error.
fn with_keys(bytes: &[u8], is_piped: bool) -> (Value, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = file(directory.path(), "keys.txt", bytes);
    let keys = if is_piped { "-" } else { file.to_str().unwrap() };
    let mut command = tiny(&["--keys", keys]);
    if is_piped {
        let (pipe, mut writer) = io::pipe().unwrap();
        writer.write_all(bytes).unwrap();
        command.stdin(pipe);
    }
    let (output, document) = documented(&mut command);
    advised(&output);
    (document, told(&output).2)
}

#[test]
fn odd_lines_are_told_and_stop_nothing() {
    let (report, stderr) = with_keys(b"one\r\ntwo", false);
    assert_eq!((&report["keys"]["count"], &report["keys"]["bytes"]), (&2.into(), &6.into()));
    assert!(!stderr.contains("note:"), "nothing odd here: {stderr}");
    let (report, stderr) = with_keys(b"a\n\nb\na\n\xff\xfe\n\r\nlast", true);
    let keys = &report["keys"];
    assert_eq!(keys["source"], "lines of standard input");
    assert_eq!((&keys["count"], &keys["duplicates"]), (&4.into(), &1.into()));
    assert_eq!((&keys["empty_lines"], &keys["not_utf8"]), (&2.into(), &1.into()));
    assert_eq!(keys["truncated"], false);
    for expected in ["used once: 1", "empty lines, skipped: 2", "used as bytes: 1"] {
        assert!(stderr.contains(expected), "{expected}: {stderr}");
    }
}

#[test]
fn one_key_is_enough() {
    assert_eq!(with_keys(b"only", false).0["keys"]["count"], 1);
}

#[test]
fn no_key_at_all_is_an_error_that_says_so() {
    let directory = tempfile::tempdir().unwrap();
    for (bytes, number) in [(&b""[..], "0 empty lines"), (b"\n\r\n", "2 empty lines")] {
        let keys = file(directory.path(), "empty.txt", bytes);
        let output = tiny(&["--keys", keys.to_str().unwrap()]).output().unwrap();
        let (stdout, stderr) = expect_code(&output, 2);
        assert!(stdout.is_empty(), "the machine was told before it was refused: {stdout}");
        for expected in ["no keys", "empty.txt", number] {
            assert!(stderr.contains(expected), "{expected}: {stderr}");
        }
    }
    fails(&tiny(&["--keys", "/nowhere"]).output().unwrap(), 2, "cannot read /nowhere");
    fails(&tiny(&["--keys", "/"]).output().unwrap(), 2, "cannot read /");
}

#[test]
fn without_a_file_they_are_path_names_up_to_the_limit_which_is_said() {
    let output = tiny(&[]).output().unwrap();
    let (stdout, _) = advised(&output);
    assert!(!stdout.starts_with('\n'), "output begins with words: {stdout}");
    assert!(stdout.contains("path names under /usr: 50"), "{stdout}");
    assert!(stdout.contains("--max-keys"), "{stdout}");
}
