//! `rcu torture` is the package `quiescence-torture`, whose tests are there.

use crate::common::{expect_code, held, run};

#[test]
fn a_run_is_written_as_text_and_as_json() {
    let args = "torture --only readers,processes --seconds 1 --seed 42";
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    let with_page = args.split(' ').chain(["--html", page.to_str().unwrap()]);
    let (stdout, stderr) = expect_code(&run(with_page), 0);
    assert!(std::fs::read_to_string(&page).unwrap().contains("clean: "), "{page:?}");
    assert!(stderr.contains("page.html"), "{stderr}");
    assert!(stdout.starts_with("seed"), "{stdout}");
    assert!(stdout.contains("clean: "), "{stdout}");
    let args = format!("{args} --json -");
    let report = held(&run(args.split(' ')));
    assert_eq!(report["schema"], "quiescence/torture");
    assert_eq!(report["verdict"], "clean");
    let children = report["deferred"].as_array().expect("a list");
    let child = children.iter().find(|done| done["operation"] == "child process");
    assert!(child.is_some_and(|child| child["count"].as_u64() > Some(0)), "{report}");
}

#[test]
fn a_step_is_removed_from_another_build_of_the_library() {
    let (names, _) = expect_code(&run(["torture", "--list-mutants"]), 0);
    assert!(names.lines().any(|name| name == "no-scan"), "{names}");
    let (_, stderr) = expect_code(&run(["torture", "--mutant", "no-scan"]), 2);
    assert!(stderr.contains("cargo xtask mutants --by torture no-scan"), "{stderr}");
}
