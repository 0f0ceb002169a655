//! Removes each step of the registry (`quiescence::chaos::mutants`), and looks whether what must
//! notice does: the explorer, a model under loom, a torture run, a test. Also every fault that only
//! the explorer knows.
//!
//! Builds go to `target/mutants` and `target/loom`, which CI uses too.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use quiescence::chaos::{Catcher, Mutant, Place, SWITCH};

use crate::compat::root;
use crate::promises::limited;
use crate::say;
use crate::tools::run;
use crate::torture::Torture;

/// A model under loom, or a torture run, that takes longer than this hangs.
const LONGEST: Duration = Duration::from_secs(600);

/// How long a torture run may be, in seconds: it ends when the fault is found.
const TORTURE_SECONDS: &str = "120";

/// How long each flavour is tortured by the C program, in seconds.
const C_TORTURE_SECONDS: u32 = 4;

/// The command's arguments.
#[derive(Debug)]
pub struct Run {
    /// These steps; all, if there is none.
    pub names: Vec<String>,
    /// Say which, and by what they are caught; run nothing.
    pub list: bool,
}

/// Where a program is built with a step that can be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Build {
    Hooks,
    Loom,
}

/// What is built: a file of tests, or a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Program {
    Tests { build: Build, package: &'static str, target: &'static str },
    Torture,
}

/// What came of a step that is removed.
enum Outcome {
    Caught,
    Missed,
    /// This machine cannot take the step at all.
    Skipped(&'static str),
}

#[derive(Default)]
struct Bench {
    built: BTreeMap<Program, PathBuf>,
    /// Tests that pass as the library is.
    sound: BTreeSet<(Program, &'static str, &'static str)>,
}

impl Run {
    /// Runs it. The table is written to standard output, in Markdown.
    ///
    /// # Errors
    /// If a step is missed; if there is none of a name; or if something does not build, or fails as
    /// it is.
    pub fn run(&self) -> Result<()> {
        let chosen: Vec<Mutant> =
            Mutant::ALL.iter().copied().filter(|one| self.wants(one.name())).collect();
        let explored: Vec<_> = check::catalogue::entries()
            .into_iter()
            .filter(|entry| self.wants(&entry.name) && Mutant::by_name(&entry.name).is_none())
            .collect();
        for name in &self.names {
            let is_known = chosen.iter().any(|one| one.name() == name)
                || explored.iter().any(|entry| entry.name == *name);
            ensure!(is_known, "there is no step {name:?}; cargo xtask mutants --list has all");
        }
        if self.list {
            for mutant in chosen {
                let catchers: Vec<_> = mutant.catchers().iter().map(told).collect();
                let about = mutant.about().trim();
                println!("{:<28} {about} Caught by {}", mutant.name(), catchers.join("; "));
            }
            for entry in explored {
                println!("{:<28} {} Caught by the explorer", entry.name, entry.about);
            }
            return Ok(());
        }
        println!("| mutant | catcher | caught in |\n|---|---|---|");
        let mut bench = Bench::default();
        let mut missed = Vec::new();
        let mut row = |name: &str, catcher: &str, begun: Instant, outcome: Outcome| {
            let how = match outcome {
                Outcome::Caught => format!("{:.1} s", begun.elapsed().as_secs_f32()),
                Outcome::Skipped(why) => format!("skipped: {why}"),
                Outcome::Missed => {
                    missed.push(format!("{name} by {catcher}"));
                    "**missed**".to_owned()
                }
            };
            println!("| {name} | {catcher} | {how} |");
            std::io::stdout().flush()
        };
        for mutant in chosen {
            for catcher in mutant.catchers() {
                let begun = bench.ready(catcher)?;
                let outcome = bench.attempt(mutant, catcher)?;
                row(mutant.name(), &told(catcher), begun, outcome)?;
            }
        }
        for entry in explored {
            let begun = Instant::now();
            let outcome = if entry.is_found() { Outcome::Caught } else { Outcome::Missed };
            row(&entry.name, "the explorer", begun, outcome)?;
        }
        ensure!(missed.is_empty(), "not noticed:\n{}", missed.join("\n"));
        Ok(())
    }

    fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| wanted == name)
    }
}

/// A catcher, as people read it.
fn told(catcher: &Catcher) -> String {
    match catcher {
        Catcher::Explorer => "the explorer".to_owned(),
        Catcher::Loom(tests) => format!("loom, `{}`", tests.join("`, `")),
        Catcher::Torture(theme) => format!("torture, {theme}"),
        Catcher::TortureOn(theme, path) => format!("torture, {theme}, {path}"),
        Catcher::CTorture => "`cargo xtask torture`".to_owned(),
        Catcher::Test(place) => {
            let path = if place.per_cpu.is_empty() { "" } else { ", " };
            let Place { package, target, test, per_cpu, .. } = place;
            format!("`{package}/{target}::{test}`{path}{per_cpu}")
        }
    }
}

impl Bench {
    /// Builds what the catcher needs, and sees that it passes as the library is. Returns when it
    /// was ready.
    fn ready(&mut self, catcher: &Catcher) -> Result<Instant> {
        match catcher {
            Catcher::Explorer | Catcher::CTorture => {}
            Catcher::Torture(_) | Catcher::TortureOn(..) => self.build(Program::Torture)?,
            Catcher::Loom(tests) => {
                for test in *tests {
                    self.try_as_it_is(LOOM, test, "", LONGEST)?;
                }
            }
            Catcher::Test(place) => {
                let limit = Duration::from_secs(place.seconds.into());
                self.try_as_it_is(of(place), place.test, place.per_cpu, limit)?;
            }
        }
        Ok(Instant::now())
    }

    /// Removes the step for what must notice.
    fn attempt(&self, mutant: Mutant, catcher: &Catcher) -> Result<Outcome> {
        let is_caught = match catcher {
            Catcher::Explorer => {
                let entry = check::catalogue::named(mutant.name());
                let entry = entry.with_context(|| format!("{}: no such fault", mutant.name()))?;
                entry.is_found()
            }
            Catcher::Torture(_) | Catcher::TortureOn(..) => {
                let mut torture = Command::new(&self.built[&Program::Torture]);
                torture.args(["--mutant", mutant.name(), "--seconds", TORTURE_SECONDS]);
                let (status, said) = limited(&mut torture, LONGEST)?;
                if said.contains("restartable sequences, which this process has not") {
                    return Ok(Outcome::Skipped("no restartable sequences here"));
                }
                let code = status.and_then(|status| status.code());
                ensure!(code != Some(2), "torture without {}: {said}", mutant.name());
                code == Some(0)
            }
            Catcher::Loom(tests) => {
                let mut fail = true;
                for test in *tests {
                    fail &= !self.passes(LOOM, test, "", Some(mutant), LONGEST)?;
                }
                fail
            }
            Catcher::Test(place) => {
                let limit = Duration::from_secs(place.seconds.into());
                let mut fails = false;
                for _ in 0..place.runs {
                    let (test, path) = (place.test, place.per_cpu);
                    fails = fails || !self.passes(of(place), test, path, Some(mutant), limit)?;
                }
                fails
            }
            Catcher::CTorture => {
                let removed = Some(mutant.name().to_owned());
                let flavors = Vec::new();
                let torture = Torture { seconds: C_TORTURE_SECONDS, seed: 1, flavors, removed };
                torture.caught()?
            }
        };
        Ok(if is_caught { Outcome::Caught } else { Outcome::Missed })
    }

    fn try_as_it_is(
        &mut self,
        program: Program,
        test: &'static str,
        per_cpu: &'static str,
        limit: Duration,
    ) -> Result<()> {
        self.build(program)?;
        if self.sound.insert((program, test, per_cpu)) {
            let passes = self.passes(program, test, per_cpu, None, limit)?;
            ensure!(passes, "{test} fails though no step is removed");
        }
        Ok(())
    }

    /// Whether a test passes, in time.
    fn passes(
        &self,
        program: Program,
        test: &str,
        per_cpu: &str,
        without: Option<Mutant>,
        limit: Duration,
    ) -> Result<bool> {
        let mut tests = Command::new(&self.built[&program]);
        tests.args([test, "--exact", "--nocapture", "--test-threads=1"]).stdin(Stdio::null());
        if let Program::Tests { package, .. } = program {
            tests.current_dir(folder(package));
        }
        if !per_cpu.is_empty() {
            tests.env("QUIESCENCE_PERCPU", per_cpu);
        }
        match without {
            Some(mutant) => tests.env(SWITCH, mutant.name()),
            None => tests.env_remove(SWITCH),
        };
        let (status, said) = limited(&mut tests, limit)?;
        ensure!(said.contains("running 1 test"), "there is no test {test}: {said}");
        Ok(status.is_some_and(|status| status.success()))
    }

    /// Has cargo build a program, once.
    fn build(&mut self, program: Program) -> Result<()> {
        if self.built.contains_key(&program) {
            return Ok(());
        }
        say::begun(&format!("building {program:?}"));
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(root()).stderr(Stdio::inherit());
        let (hooks, loom) = ("--cfg quiescence_mutants", "--cfg loom --cfg quiescence_mutants");
        let (flags, folder) = match program {
            Program::Tests { build: Build::Loom, .. } => (loom, "target/loom"),
            Program::Tests { .. } | Program::Torture => (hooks, "target/mutants"),
        };
        // Optimised: torture without a step is a race with the reader that the step protects.
        cargo.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        cargo.env("RUSTFLAGS", flags).env("CARGO_TARGET_DIR", root().join(folder));
        match program {
            Program::Torture => {
                cargo.args(["build", "-p", "quiescence-torture", "--bin", "rcu-torture"]);
            }
            Program::Tests { build, package, target } => {
                cargo.args(["test", "--no-run", "-p", package]);
                match target {
                    "lib" => cargo.arg("--lib"),
                    file => cargo.args(["--test", file]),
                };
                if build == Build::Loom {
                    cargo.arg("--release");
                }
            }
        }
        cargo.args(["--locked", "--message-format", "json-render-diagnostics"]);
        let messages = run(&mut cargo)?;
        let is_test = program != Program::Torture;
        let made = messages
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter(|message| message["profile"]["test"] == is_test)
            .find_map(|message| message["executable"].as_str().map(PathBuf::from));
        let Some(made) = made else { bail!("cargo built no {program:?}") };
        self.built.insert(program, made);
        Ok(())
    }
}

/// The models of the library.
const LOOM: Program = Program::Tests { build: Build::Loom, package: "quiescence", target: "lib" };

/// The file of a test.
fn of(place: &Place) -> Program {
    Program::Tests { build: Build::Hooks, package: place.package, target: place.target }
}

/// The folder of a package that has tests, in which cargo runs them.
fn folder(package: &str) -> PathBuf {
    root().join(crate::promises::folder_of(package))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The explorer knows the steps that it must catch, under the name of the registry.
    #[test]
    fn what_the_explorer_must_catch_is_in_its_catalogue() {
        for mutant in Mutant::ALL.iter().filter(|one| one.catchers().contains(&Catcher::Explorer)) {
            assert!(check::catalogue::named(mutant.name()).is_some(), "{}", mutant.name());
        }
    }

    /// Every name is that of one step.
    #[test]
    fn names_are_kebab_case_and_come_once() {
        let mut names = BTreeSet::new();
        for mutant in Mutant::ALL {
            let name = mutant.name();
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{name}");
            assert!(names.insert(name), "{name} comes twice");
        }
    }

    /// A test that is named is there.
    #[test]
    fn every_test_that_must_notice_exists() {
        // Of a unit test `target` is `lib`; else it is a file in `tests`, or a folder there.
        let is_there = |package: &str, target: &str, test: &str| {
            let function = format!("fn {}(", test.rsplit("::").next().unwrap_or_default());
            let below = match target {
                "lib" => folder(package).join("src"),
                target => folder(package).join("tests").join(target),
            };
            let mut files = vec![below.with_extension("rs")];
            files.extend(crate::tools::files_below(&below).unwrap_or_default());
            let rust = files.iter().filter(|path| path.extension().is_some_and(|e| e == "rs"));
            let mut texts = rust.filter_map(|path| std::fs::read_to_string(path).ok());
            texts.any(|text| text.contains(&function))
        };
        for catcher in Mutant::ALL.iter().flat_map(|mutant| mutant.catchers()) {
            match catcher {
                Catcher::Test(place) => {
                    assert!(is_there(place.package, place.target, place.test), "{place:?}");
                }
                Catcher::Loom(tests) => {
                    assert!(
                        tests.iter().all(|test| is_there("quiescence", "lib", test)),
                        "{tests:?}"
                    );
                }
                _ => {}
            }
        }
    }
}
