//! What the packages of the workspace build does not get in each other's way.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use super::told::expect_code;

/// Two examples of one name are one file: which of them a test ran was a matter of luck.
#[test]
fn no_two_examples_or_commands_have_one_name() {
    let mut cargo = Command::new(env!("CARGO"));
    let output =
        cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).output();
    let output = output.expect("cargo runs");
    let metadata: Value = serde_json::from_str(&expect_code(&output, 0).0).expect("JSON");
    let mut owners: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for package in metadata["packages"].as_array().expect("packages") {
        for target in package["targets"].as_array().expect("targets") {
            let [kind, name] =
                [&target["kind"][0], &target["name"]].map(|text| text.as_str().expect("text"));
            if matches!(kind, "bin" | "example") {
                owners
                    .entry((kind, name))
                    .or_default()
                    .push(package["name"].as_str().expect("a name"));
            }
        }
    }
    assert!(owners.len() > 15, "{owners:?}");
    owners.retain(|_, owners| owners.len() > 1);
    assert!(owners.is_empty(), "{owners:?}");
}
