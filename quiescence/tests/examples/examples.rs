//! Every example runs, ends well and says something.

use std::path::Path;
use std::process::Command;

#[test]
fn every_example_runs() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    // Cargo builds the examples before the tests, in a folder beside those of the tests.
    let program = std::env::current_exe().unwrap();
    let mut beside = program.ancestors().map(|folder| folder.join("examples"));
    let built = beside.find(|folder| folder.is_dir()).expect("run all tests");
    let mut run = 0;
    for source in std::fs::read_dir(sources).unwrap() {
        let name = source.unwrap().path().file_stem().unwrap().to_owned();
        let output = Command::new(built.join(&name)).output().unwrap_or_else(|error| {
            panic!("{name:?} is not built ({error}); run all tests, or cargo build --examples")
        });
        assert!(output.status.success(), "{name:?}: {output:?}");
        assert!(output.stderr.is_empty(), "{name:?}: {output:?}");
        run += 1;
    }
    assert_eq!(run, 15);
}
