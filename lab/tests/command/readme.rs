//! `rcu bench readme` and README: the tables there are those that the command makes.

use std::path::Path;

use crate::common::{expect_code, run};

/// Of rivals that are soon measured: a row without figures is a row.
const QUICK: [&str; 7] =
    ["bench", "readme", "--quick", "--rounds", "1", "--only", "std-rwlock,quiescence-hashmap"];

/// The header and the labels of each table between the markers of a CPU.
fn rows(block: &str) -> Vec<String> {
    let is_table = |line: &&str| line.starts_with('|');
    let label = |line: &str| {
        let is_header = line.contains("lower is better");
        let first = line.split('|').nth(1).unwrap_or_default().trim();
        if is_header { line.to_owned() } else { first.to_owned() }
    };
    block.lines().filter(is_table).map(label).collect()
}

/// What stands between the markers of each CPU.
fn blocks(text: &str) -> Vec<&str> {
    let begin = "<!-- rcu bench readme: ";
    let blocks = text.split(begin).skip(1);
    blocks.map(|block| block.split("<!-- end of rcu bench readme: ").next().unwrap()).collect()
}

fn readme() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    std::fs::read_to_string(path).expect("README is there")
}

#[test]
fn readme_has_the_rows_and_the_columns_that_the_command_makes() {
    let (stdout, _) = expect_code(&run(QUICK), 0);
    let made = blocks(&stdout);
    assert_eq!(made.len(), 1, "{stdout}");
    let made = rows(made[0]);
    assert!(made.len() > 15, "{made:?}");
    let readme = readme();
    let kept = blocks(&readme);
    assert!(!kept.is_empty(), "README has no figures");
    for block in kept {
        assert_eq!(
            rows(block),
            made,
            "cargo run --release --features all-rivals -- bench readme \
                                       --into README.md"
        );
        assert!(block.contains("interleaved slices"), "{block}");
        // What was measured of the library has a figure.
        let own = block.lines().find(|line| line.contains("`read()`")).expect("a row");
        assert_eq!(own.matches(" ± ").count(), 4, "{own}");
    }
    assert!(readme.lines().count() < 150, "README is a page");
}
