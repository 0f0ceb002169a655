//! `mutants.toml`, read.

use std::sync::OnceLock;

use serde::Deserialize;

const TEXT: &str = include_str!("../mutants.toml");

/// The whole table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The steps, in their order.
    pub step: Vec<Step>,
    /// What the copy has in any case.
    pub hook: Vec<Hook>,
    /// Changes that are compiled each by itself. What an edit of these finds is not marked, and
    /// occurs once in its file.
    pub alone: Vec<Step>,
    /// Promises of `docs/GUARANTEES.md` that are not broken on purpose.
    pub unbroken: Vec<Unbroken>,
}

/// A step that can be removed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The name: that of `docs/ORDERINGS.md`, where the step is one of an ordering edge.
    pub name: String,
    /// What is left out, in a sentence.
    pub about: String,
    /// What must notice.
    pub catchers: Vec<Catcher>,
    /// How the code is changed at the marks of this name.
    pub edits: Vec<Edit>,
}

/// How marked lines of a file are changed. The words "if the step is removed" belong to each.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// Where the marks are, from the root of the repository on.
    pub file: String,
    /// An expression of the marked line, where it occurs once; the whole line, a statement, without
    /// this.
    pub find: Option<String>,
    /// What is there in its place. Nothing, without this.
    pub with: Option<String>,
    /// What is executed where a mark has a line of its own.
    pub insert: Option<String>,
}

/// A promise that is not broken on purpose.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unbroken {
    /// As the document calls it: `G-1`.
    pub promise: String,
    /// Why.
    pub reason: String,
}

/// What a marked line is in the copy, whichever step is removed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// As the mark calls it.
    pub name: String,
    /// Why.
    pub about: String,
    /// Where, and how.
    pub edit: Edit,
}

/// What must notice that a step is missing.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(tag = "by", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Catcher {
    /// The explorer, which has the same step under the same name.
    Explorer,
    /// Tests of the library's own sources under loom. Each of them must fail.
    Loom {
        /// Their names, with their modules.
        tests: Vec<String>,
        /// The promise of `docs/GUARANTEES.md` that is broken.
        promise: Option<String>,
    },
    /// A torture run.
    Torture {
        /// What it is about.
        theme: String,
        /// How the process must count per CPU for the step to be taken at all: a value of
        /// `QUIESCENCE_PERCPU`.
        per_cpu: Option<String>,
    },
    /// The C program that tortures the liburcu-compatible libraries: `cargo xtask torture`.
    CTorture,
    /// A test, which must fail.
    Test(Test),
}

/// Where a test is, and how it is run.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Test {
    /// The package, the test program, or `lib` for a unit test, and the name with its modules:
    /// `quiescence/domain::updates::name`.
    pub test: String,
    /// How the process must count per CPU: a value of `QUIESCENCE_PERCPU`; empty for the best way.
    #[serde(default)]
    pub per_cpu: String,
    /// Options of `cargo test`.
    #[serde(default)]
    pub options: Vec<String>,
    /// Words `NAME=value` for its environment.
    #[serde(default)]
    pub environment: Vec<String>,
    /// How often it is run, at most, until it fails: where a fault needs luck to show.
    #[serde(default = "once")]
    pub runs: u32,
    /// A run that takes longer hangs, which is a failure.
    #[serde(default = "default_seconds")]
    pub seconds: u64,
    /// The promise of `docs/GUARANTEES.md` that is broken.
    pub promise: Option<String>,
}

const fn once() -> u32 {
    1
}

const fn default_seconds() -> u64 {
    100
}

/// The table.
///
/// # Panics
/// If it cannot be read, which a test would have found.
pub fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| toml::from_str(TEXT).unwrap_or_else(|error| panic!("{error}")))
}

/// All steps, in the order of the table.
pub fn all() -> &'static [Step] {
    &table().step
}

/// The step with this name.
pub fn named(name: &str) -> Option<&'static Step> {
    all().iter().find(|step| step.name == name)
}

/// Their names, without reading the whole.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let steps = TEXT.split("\n[[hook]]").next().unwrap_or_default();
    steps.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'))
}

impl Catcher {
    /// The promise of `docs/GUARANTEES.md` that is broken.
    pub fn promise(&self) -> Option<&str> {
        match self {
            Self::Test(Test { promise, .. }) | Self::Loom { promise, .. } => promise.as_deref(),
            _ => None,
        }
    }
}

/// Of the name of a test the package, the test program or `lib`, and the name with its modules.
///
/// # Panics
/// If it has other parts, which a test would have found.
pub fn parts(test: &str) -> (&str, &str, &str) {
    let parts = test.split_once('/').and_then(|(package, rest)| {
        let (target, name) = rest.split_once("::")?;
        Some((package, target, name))
    });
    parts.unwrap_or_else(|| panic!("{test}: not PACKAGE/PROGRAM::TEST"))
}

impl Test {
    /// As [`parts`].
    pub fn parts(&self) -> (&str, &str, &str) {
        parts(&self.test)
    }
}

impl Step {
    /// The theme of the torture run that must notice, and how the process must count per CPU for
    /// the step to be taken at all.
    pub fn torture(&self) -> Option<(&str, Option<&str>)> {
        self.catchers.iter().find_map(|catcher| match catcher {
            Catcher::Torture { theme, per_cpu } => Some((theme.as_str(), per_cpu.as_deref())),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_step_has_a_name_of_its_own_and_is_to_be_noticed() {
        let mut found = BTreeSet::new();
        let hooks = table().hook.iter().map(|hook| &hook.name);
        let steps = all().iter().chain(&table().alone).map(|step| &step.name);
        for name in steps.chain(hooks) {
            let is_kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(name.chars().all(is_kebab), "{name}");
            assert!(found.insert(name), "{name} comes twice");
        }
        for step in all().iter().chain(&table().alone) {
            assert!(!step.catchers.is_empty(), "{}", step.name);
        }
        assert!(names().eq(all().iter().map(|step| step.name.as_str())));
    }
}
