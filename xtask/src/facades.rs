//! Runs the tests of crates from the registry that use a crate which `facades/` stands in for: with
//! the original, and with the facade by `[patch.crates-io]`; what came of it is a row of
//! docs/WORKS_WITH.md.
//!
//! A client is unpacked below `target/facades`, with nothing changed but that it is a workspace of
//! its own. What its tests print is kept beside it.

mod measure;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::say;
use crate::tools::{copy_tree, root, run, works_with};

/// A crate whose tests are run, as `clients.toml` describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Client {
    name: String,
    version: String,
    original: String,
    facade: Option<String>,
    #[serde(default)]
    options: Vec<String>,
    #[serde(default)]
    of_tests: String,
}

/// The clients, in the order they are run in.
static CLIENTS: LazyLock<Vec<Client>> = LazyLock::new(|| {
    let read: Result<BTreeMap<String, _>, _> = toml::from_str(include_str!("facades/clients.toml"));
    read.expect("clients.toml is well-formed").remove("client").expect("it has clients")
});

/// What the clients are called. A name may be that of two versions.
fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = CLIENTS.iter().map(|client| client.name.as_str()).collect();
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    names
}

/// How the rows of docs/WORKS_WITH.md begin that this command writes.
pub fn rows() -> Vec<String> {
    CLIENTS.iter().map(Client::row).chain([measure::EPOCH.to_owned()]).collect()
}

/// What is run: tests of clients, or programs that are measured.
#[derive(Debug, clap::Args)]
pub struct Facades {
    /// Measure programs on both instead, so many rounds. On a machine that does nothing else.
    #[arg(long, value_name = "ROUNDS", conflicts_with = "names",
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    measure: Option<u32>,
    /// Which clients; all, if none is named.
    #[arg(value_name = "NAME", value_parser = names())]
    names: Vec<String>,
}

/// How the tests of a client went, with one of the two crates.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    passed: BTreeSet<String>,
    failed: BTreeSet<String>,
    ignored: usize,
}

impl Outcome {
    /// How many passed, failed and were ignored; and which failed.
    fn cell(&self) -> String {
        let names = self.failed.iter().map(|test| format!(" `{test}`"));
        let failed: String = names.collect();
        format!("{} / {} / {}{failed}", self.passed.len(), self.failed.len(), self.ignored)
    }
}

impl Facades {
    /// Runs them.
    ///
    /// # Errors
    /// If a client cannot be had or built, or a test passes with the original and not with the
    /// facade; the other clients are run nevertheless.
    pub fn run(&self) -> Result<()> {
        if let Some(rounds) = self.measure {
            return measure::measure(rounds);
        }
        let chosen = |client: &&Client| self.names.is_empty() || self.names.contains(&client.name);
        let mut lost = Vec::new();
        for client in CLIENTS.iter().filter(chosen) {
            let cells = match client.compare() {
                Ok((theirs, ours)) => {
                    let tests = missing(&theirs, &ours);
                    lost.extend(tests.map(|test| format!("{}: {test}", client.name)));
                    [ours.cell(), theirs.cell()]
                }
                Err(error) => {
                    lost.push(format!("{}: {error:#}", client.name));
                    let reason = error.to_string();
                    let reason = reason.lines().next().unwrap_or_default();
                    [format!("failed: {reason}"), String::from("=")]
                }
            };
            let [ours, theirs] = &cells;
            works_with(&[&client.row(), &client.original, ours, theirs, "COMMIT, DAY", "="])?;
        }
        ensure!(lost.is_empty(), "not as with the original:\n{}", lost.join("\n"));
        Ok(())
    }
}

/// Tests that pass with the original, and with the facade do not.
fn missing<'o>(theirs: &'o Outcome, ours: &'o Outcome) -> impl Iterator<Item = &'o String> {
    theirs.passed.difference(&ours.passed)
}

impl Client {
    /// How its row begins.
    fn row(&self) -> String {
        format!("{} | {}", self.name, self.version)
    }

    /// The folder of the facade.
    fn facade(&self) -> &str {
        self.facade.as_ref().unwrap_or(&self.original)
    }

    /// Its tests with the original, and with the facade.
    fn compare(&self) -> Result<(Outcome, Outcome)> {
        say::begun(&format!("{} {}, with {} and ours", self.name, self.version, self.original));
        let package = self.unpack()?;
        let theirs = self.test(&package, false)?;
        let ours = self.test(&package, true)?;
        Ok((theirs, ours))
    }

    /// The crate as the registry has it, as a workspace of its own.
    fn unpack(&self) -> Result<PathBuf> {
        let place = target().join(format!("{}-{}", self.name, self.version));
        let _ = fs::remove_dir_all(&place);
        let asks = place.join("asks");
        fs::create_dir_all(asks.join("src"))?;
        fs::write(asks.join("src/lib.rs"), "")?;
        let manifest = format!(
            "[package]\nname = \"asks\"\nedition = \"2024\"\n\n[dependencies]\n{} = \"={}\"\n\n\
             [dev-dependencies]\n{}\n[workspace]\n",
            self.name, self.version, self.of_tests
        );
        fs::write(asks.join("Cargo.toml"), manifest)?;
        let mut metadata = cargo(&asks);
        metadata.args(["metadata", "--format-version", "1"]);
        let metadata: Value = serde_json::from_str(&run(&mut metadata)?)?;
        let packages =
            metadata["packages"].as_array().context("no packages in cargo's metadata")?;
        let found = packages.iter().find(|package| package["name"] == *self.name);
        let manifest = found.and_then(|package| package["manifest_path"].as_str());
        let source = Path::new(manifest.context("not among cargo's packages")?)
            .parent()
            .context("a manifest without a directory")?;
        if self.name == self.original {
            // Its tests, in the package that asks for it.
            copy_tree(&source.join("tests"), &asks.join("tests"))?;
            return Ok(asks);
        }
        let package = place.join("package");
        copy_tree(source, &package)?;
        // It names an older version of the original, which the facade cannot take the place of.
        let _ = fs::remove_file(package.join("Cargo.lock"));
        as_workspace(&package)?;
        Ok(package)
    }

    /// Builds its tests, and runs them.
    fn test(&self, package: &Path, patched: bool) -> Result<Outcome> {
        let facade = patched.then_some((&*self.original, self.facade()));
        let cargo = || cargo_with(package, facade);
        if patched {
            // By now the client has a lock file that names the original.
            run(cargo().args(["update", "--quiet", "--package", &self.original]))?;
            let tree = run(cargo().args(["tree", "--all-features", "--prefix", "none"]))?;
            let used = format!("({})", facades().join(self.facade()).display());
            ensure!(tree.contains(&used), "the patch is not used: {tree}");
        }
        let test = || {
            let mut test = cargo();
            test.args(["test", "--no-fail-fast"]).args(&self.options);
            test
        };
        run(test().args(["--no-run", "--quiet"]))?;
        let output = test().output().context("cargo test")?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let kept = package.with_file_name(if patched { "ours.txt" } else { "theirs.txt" });
        fs::write(&kept, printed.as_bytes())?;
        fs::write(kept.with_extension("errors.txt"), &output.stderr)?;
        let outcome = outcome(&printed);
        if outcome.passed.is_empty() {
            // The page's readers have another checkout.
            bail!("no test passed: see {}", kept.strip_prefix(root()).unwrap_or(&kept).display());
        }
        Ok(outcome)
    }
}

/// Lets a package be a workspace of its own: it lies in another one's directory.
fn as_workspace(package: &Path) -> Result<()> {
    let manifest = package.join("Cargo.toml");
    let mut text = fs::read_to_string(&manifest)?.replace("[lints]\nworkspace = true\n", "");
    if !text.contains("\n[workspace]") {
        text += "\n[workspace]\n";
    }
    fs::write(&manifest, text).with_context(|| manifest.display().to_string())
}

/// Where the facades are.
fn facades() -> PathBuf {
    root().join("facades")
}

/// Cargo, as below, with facades that stand in for originals.
fn cargo_with<'n>(
    directory: &Path,
    patches: impl IntoIterator<Item = (&'n str, &'n str)>,
) -> Command {
    let mut cargo = cargo(directory);
    for (original, facade) in patches {
        let path = facades().join(facade).display().to_string();
        cargo.args(["--config", &format!("patch.crates-io.{original}.path={path:?}")]);
    }
    cargo
}

/// Cargo, in a directory, with a place of its own for what it builds.
fn cargo(directory: &Path) -> Command {
    let mut cargo = crate::tools::cargo(directory);
    // Not what cargo tells this program of its own package.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CARGO_PKG") {
            cargo.env_remove(name);
        }
    }
    cargo.env("CARGO_TARGET_DIR", target().join("build"));
    // Younger compilers refuse what was allowed when a client was published; as in dependencies.
    cargo.env("RUSTFLAGS", "--cap-lints allow");
    cargo
}

/// Where clients are unpacked and built.
fn target() -> PathBuf {
    root().join("target/facades/clients")
}

/// Which tests a run of `cargo test` says have passed, and have not. A test's name stands after the
/// number of its program: programs have tests of the same name.
fn outcome(printed: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let mut program = 0;
    for line in printed.lines() {
        if line.starts_with("running ") {
            program += 1;
        }
        let Some(test) = line.strip_prefix("test ") else { continue };
        let Some((test, result)) = test.rsplit_once(" ... ") else { continue };
        let name = format!("{program}: {test}");
        if result.starts_with("ok") {
            outcome.passed.insert(name);
        } else if result.starts_with("FAILED") {
            outcome.failed.insert(name);
        } else if result.starts_with("ignored") {
            outcome.ignored += 1;
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "running 3 tests\ntest a::b ... ok\ntest c - should panic ... ok\n\
                           test d ... ignored\n\nrunning 2 tests\ntest a::b ... FAILED\n\
                           test e ... ok (12 ms)\n";

    #[test]
    fn tests_are_told_apart_by_their_programs() {
        let outcome = outcome(PRINTED);
        let passed = ["1: a::b", "1: c - should panic", "2: e"].map(str::to_owned);
        assert_eq!(outcome.passed, BTreeSet::from(passed));
        assert_eq!(outcome.failed, BTreeSet::from([String::from("2: a::b")]));
        assert_eq!(outcome.cell(), "3 / 1 / 1 `2: a::b`");
    }

    #[test]
    fn what_passes_with_the_original_only_is_found() {
        let (theirs, ours) =
            (outcome(PRINTED), outcome(&PRINTED.replace("e ... ok", "e ... FAILED")));
        assert_eq!(missing(&theirs, &ours).collect::<Vec<_>>(), ["2: e"]);
        assert_eq!(missing(&ours, &theirs).count(), 0);
    }
}
