//! Removes each step of the table (`verify/mutants/mutants.toml`), and looks whether what must
//! notice does: the explorer, a model under loom, a torture run, a test. Also every fault that only
//! the explorer knows.
//!
//! The code as it is shipped has no branch for a step that is missing: it has marks at the ends of
//! lines, and the table says what is there without the step. The command writes a copy of the tree
//! ([`copy`]) in which each marked line is `if REMOVED { edit } else { line }`, builds it once for
//! each kind of build, and removes a step by an environment variable. So all steps cost one
//! compilation; an edit that does not compile fails it; and a place may move, or be rewritten, as
//! long as its mark goes with it.
//!
//! The copy is `target/mutants-tree`; builds go to `target/mutants` and `target/loom`. Changes that
//! no choice at run time can make are made one at a time, in another copy ([`alone`]). The table
//! of what came of all is written to `target/mutants.md` as well.

mod alone;
mod copy;

pub(crate) use alone::{applied, limited};
pub(crate) use copy::{copied, tree};

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use mutants::{Catcher, SWITCH, Step, Test};

use crate::say;
use crate::tools::{built, built_file, cargo, root};
use crate::torture::Torture;

/// A model under loom, or a torture run, that takes longer than this hangs.
const LONGEST: Duration = Duration::from_secs(600);

/// How long a torture run may be, in seconds: it ends when the fault is found.
const TORTURE_SECONDS: &str = "120";

/// How long each flavour is tortured by the C program, in seconds.
const C_TORTURE_SECONDS: u32 = 4;

/// The command's arguments.
#[derive(Debug, clap::Args)]
pub struct Run {
    /// Say which steps there are, and by what each is caught; run nothing.
    #[arg(long)]
    list: bool,
    /// Write the copy of the tree in which steps can be removed, print where it is, and run a
    /// command there, if one follows: --copy -- cargo test -p quiescence hash_table.
    #[arg(long, conflicts_with_all = ["list", "by"])]
    copy: bool,
    /// Only what notices whose description has this text: "loom", "quiescence/lib". Changes that
    /// are compiled each by itself are left out then, unless they are named as well.
    #[arg(long, value_name = "TEXT")]
    by: Vec<String>,
    /// Which steps (no-scan, locks-first), or promises (G-1, M-3); all, if none is named.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

/// What is built: tests, of the library's own sources or of a file, or the program that tortures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Program {
    Tests { package: &'static str, target: &'static str },
    Loom,
    Torture,
}

/// How tests are run.
#[derive(Clone, Copy)]
struct How {
    program: Program,
    /// A value of `QUIESCENCE_PERCPU`; empty for the best way.
    per_cpu: &'static str,
    limit: Duration,
}

/// What came of a step that is removed.
enum Outcome {
    /// With this said.
    Caught(String),
    Missed(String),
    /// This machine cannot take the step at all.
    Skipped(&'static str),
}

#[derive(Default)]
struct Bench {
    /// The tree in which steps can be removed.
    copy: PathBuf,
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
        if self.copy {
            return in_copy(&self.names);
        }
        let chosen: Vec<&Step> = mutants::all().iter().filter(|one| self.wants(one)).collect();
        let explored: Vec<_> = check::catalogue::entries()
            .into_iter()
            .filter(|entry| self.is_named(&entry.name) && mutants::named(&entry.name).is_none())
            .collect();
        // Each is compiled by itself: not for a text of `--by` alone.
        let is_all = self.by.is_empty() || !self.names.is_empty();
        let alone = mutants::table().alone.iter().filter(|one| is_all && self.wants(one));
        let alone: Vec<&Step> = alone.collect();
        for name in &self.names {
            let is_known = chosen.iter().chain(&alone).any(|one| has_name(one, name))
                || explored.iter().any(|entry| entry.name == *name);
            ensure!(is_known, "there is no step {name:?}; cargo xtask mutants --list has all");
        }
        if self.list {
            for step in chosen.into_iter().chain(alone) {
                let catchers: Vec<_> = step.catchers.iter().map(told).collect();
                let (name, about, by) = (&step.name, &step.about, catchers.join("; "));
                say::line(format_args!("{name:<28} {about} Caught by {by}"))?;
            }
            for entry in explored {
                let (name, about) = (entry.name, entry.about);
                say::line(format_args!("{name:<28} {about} Caught by the explorer"))?;
            }
            for one in mutants::table().unbroken.iter().filter(|one| self.is_named(&one.promise)) {
                say::line(format_args!("{:<28} not broken: {}", one.promise, one.reason))?;
            }
            return Ok(());
        }
        let mut table = String::from("| mutant | catcher | caught in |\n|---|---|---|\n");
        say::line(table.trim_end())?;
        let mut bench = Bench { copy: tree()?, ..Bench::default() };
        let mut missed = Vec::new();
        let mut row = |name: &str, catcher: &str, begun: Instant, outcome: Outcome| {
            let how = match outcome {
                Outcome::Caught(said) => {
                    let colon = if said.is_empty() { "" } else { ": " };
                    format!("{:.1} s{colon}{said}", begun.elapsed().as_secs_f32())
                }
                Outcome::Skipped(why) => format!("skipped: {why}"),
                Outcome::Missed(why) => {
                    missed.push(format!("{name} by {catcher}"));
                    format!("**missed** {why}")
                }
            };
            let line = format!("| {name} | {catcher} | {how} |");
            table.extend([&line, "\n"]);
            say::line(line)
        };
        for step in chosen {
            for catcher in step.catchers.iter().filter(|catcher| self.asks(step, catcher)) {
                let (begun, outcome) = bench.attempt(step, catcher)?;
                row(&step.name, &told(catcher), begun, outcome)?;
            }
        }
        for entry in explored.into_iter().filter(|_| self.is_by("the explorer")) {
            let begun = Instant::now();
            row(&entry.name, "the explorer", begun, outcome(entry.is_found()))?;
        }
        self.each_alone(&alone, row)?;
        for one in &mutants::table().unbroken {
            table.push_str(&format!("| {} | | not broken: {} |\n", one.promise, one.reason));
        }
        fs::write(root().join("target/mutants.md"), table).context("target/mutants.md")?;
        ensure!(missed.is_empty(), "not noticed:\n{}", missed.join("\n"));
        Ok(())
    }

    /// Makes the changes that are compiled each by itself. First runs the tests as the tree is, all
    /// of them: nothing is built anew in between.
    fn each_alone(
        &self,
        steps: &[&'static Step],
        mut row: impl FnMut(&str, &str, Instant, Outcome) -> std::io::Result<()>,
    ) -> Result<()> {
        let asked: Vec<_> = steps
            .iter()
            .flat_map(|step| step.catchers.iter().map(move |catcher| (*step, catcher)))
            .filter(|(step, catcher)| self.asks(step, catcher))
            .filter_map(|(step, catcher)| match catcher {
                Catcher::Test(test) => Some((step, catcher, test)),
                _ => None,
            })
            .collect();
        if asked.is_empty() {
            return Ok(());
        }
        let mut tree = alone::Tree::copied()?;
        for (_, _, test) in &asked {
            tree.try_as_it_is(test)?;
        }
        for (step, catcher, test) in asked {
            let begun = Instant::now();
            row(&step.name, &told(catcher), begun, tree.attempt(step, test)?)?;
        }
        Ok(())
    }

    fn wants(&self, step: &Step) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| has_name(step, name))
    }

    /// Whether a step is tried by this: if a promise is named, by what holds it.
    fn asks(&self, step: &Step, catcher: &Catcher) -> bool {
        let is_its = |name: &String| catcher.promise() == Some(name.as_str());
        (self.is_named(&step.name) || self.names.iter().any(is_its)) && self.is_by(&told(catcher))
    }

    fn is_named(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| wanted == name)
    }

    fn is_by(&self, told: &str) -> bool {
        self.by.is_empty() || self.by.iter().any(|by| told.contains(by.as_str()))
    }
}

/// Writes the copy, says where it is, and runs a command there, if there is one.
fn in_copy(command: &[String]) -> Result<()> {
    let path = tree()?;
    say::line(path.display())?;
    let [program, arguments @ ..] = command else { return Ok(()) };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(path).env("RUSTFLAGS", FLAGS);
    command.env("CARGO_TARGET_DIR", root().join("target/mutants"));
    let status =
        command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1").status().context(program.clone())?;
    ensure!(status.success(), "{program}: {status}");
    Ok(())
}

/// Whether a name is that of a step, or of a promise that it breaks.
fn has_name(step: &Step, name: &str) -> bool {
    step.name == name || step.catchers.iter().any(|catcher| catcher.promise() == Some(name))
}

/// Whether something has noticed.
fn outcome(is_caught: bool) -> Outcome {
    let said = String::new();
    if is_caught { Outcome::Caught(said) } else { Outcome::Missed(said) }
}

/// A catcher, as people read it.
fn told(catcher: &Catcher) -> String {
    let promise = catcher.promise().map_or_else(String::new, |promise| format!(" ({promise})"));
    match catcher {
        Catcher::Explorer => "the explorer".to_owned(),
        Catcher::Loom { tests, .. } => format!("loom, `{}`{promise}", tests.join("`, `")),
        Catcher::Torture { theme, per_cpu: None } => format!("torture, {theme}"),
        Catcher::Torture { theme, per_cpu: Some(path) } => format!("torture, {theme}, {path}"),
        Catcher::CTorture => "`cargo xtask torture`".to_owned(),
        Catcher::Test(Test { test, per_cpu, .. }) => {
            let path = if per_cpu.is_empty() { "" } else { ", " };
            format!("`{test}`{path}{per_cpu}{promise}")
        }
    }
}

impl Bench {
    /// Builds what the catcher needs, sees that it passes as the library is, and removes the step.
    /// Returns when it was ready for that, and what came of it.
    fn attempt(&mut self, step: &Step, catcher: &'static Catcher) -> Result<(Instant, Outcome)> {
        let begun = Instant::now();
        match catcher {
            Catcher::Explorer => {
                let entry = check::catalogue::named(&step.name);
                let entry = entry.with_context(|| format!("{}: no such fault", step.name))?;
                Ok((begun, outcome(entry.is_found())))
            }
            Catcher::Torture { .. } => self.torture(step),
            Catcher::Loom { tests, .. } => {
                let tests: Vec<&str> = tests.iter().map(String::as_str).collect();
                let how = How { program: Program::Loom, per_cpu: "", limit: LONGEST };
                self.all_fail(step, how, &tests, 1)
            }
            Catcher::Test(test) => {
                let (package, target, name) = test.parts();
                let program = Program::Tests { package, target };
                let limit = Duration::from_secs(test.seconds);
                self.all_fail(
                    step,
                    How { program, per_cpu: &test.per_cpu, limit },
                    &[name],
                    test.runs,
                )
            }
            Catcher::CTorture => {
                let removed = Some(step.name.clone());
                let flavors = Vec::new();
                let torture = Torture { seconds: C_TORTURE_SECONDS, seed: 1, flavors, removed };
                Ok((begun, outcome(torture.noticed()? > 0)))
            }
        }
    }

    fn torture(&mut self, step: &Step) -> Result<(Instant, Outcome)> {
        let mut torture = Command::new(self.built(Program::Torture)?);
        let begun = Instant::now();
        torture.args(["--mutant", &step.name, "--seconds", TORTURE_SECONDS]);
        let (status, said) = alone::limited(&mut torture, LONGEST)?;
        if said.contains("restartable sequences, which this process does not have") {
            return Ok((begun, Outcome::Skipped("no restartable sequences here")));
        }
        let code = status.and_then(|status| status.code());
        ensure!(code != Some(2), "torture without {}: {said}", step.name);
        Ok((begun, outcome(code == Some(0))))
    }

    /// Whether each of the tests fails without the step, in one of so many runs.
    fn all_fail(
        &mut self,
        step: &Step,
        how: How,
        tests: &[&'static str],
        runs: u32,
    ) -> Result<(Instant, Outcome)> {
        for test in tests {
            if self.sound.insert((how.program, test, how.per_cpu)) {
                let passes = self.passes(how, test, None)?;
                ensure!(passes, "{test} fails though no step is removed");
            }
        }
        let (begun, mut fail) = (Instant::now(), true);
        for test in tests {
            let mut fails = false;
            for _ in 0..runs {
                fails = fails || !self.passes(how, test, Some(step))?;
            }
            fail &= fails;
        }
        Ok((begun, outcome(fail)))
    }

    /// Whether a test passes, in time.
    fn passes(&mut self, how: How, test: &str, without: Option<&Step>) -> Result<bool> {
        let mut tests = Command::new(self.built(how.program)?);
        tests.args([test, "--exact", "--nocapture", "--test-threads=1"]).stdin(Stdio::null());
        let package = match how.program {
            Program::Tests { package, .. } => package,
            _ => "quiescence",
        };
        tests.current_dir(self.copy.join(folder_of(package)));
        if !how.per_cpu.is_empty() {
            tests.env("QUIESCENCE_PERCPU", how.per_cpu);
        }
        match without {
            Some(step) => tests.env(SWITCH, &step.name),
            None => tests.env_remove(SWITCH),
        };
        Ok(matches!(alone::ended(&mut tests, test, how.limit)?, alone::Ended::Passed))
    }

    /// A program, built by cargo, once.
    fn built(&mut self, program: Program) -> Result<PathBuf> {
        if let Some(built) = self.built.get(&program) {
            return Ok(built.clone());
        }
        say::begun(&format!("building {program:?}"));
        let mut cargo = cargo(&self.copy);
        let (more, folder) = match program {
            Program::Loom => ("--cfg loom", "target/loom"),
            Program::Tests { .. } | Program::Torture => ("", "target/mutants"),
        };
        // Optimised: torture without a step is a race with the reader that the step protects.
        cargo.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        cargo
            .env("RUSTFLAGS", format!("{FLAGS} {more}"))
            .env("CARGO_TARGET_DIR", root().join(folder));
        // Not `--locked`: of the copy's packages some depend on the switch as well.
        let mut tests = |package, options: &[&str]| {
            cargo.args(["test", "--no-run", "-p", package]).args(options);
            let made = built(&mut cargo, true)?.into_iter().next();
            made.with_context(|| format!("cargo built no {program:?}"))
        };
        let made = match program {
            Program::Torture => {
                cargo.args(["build", "-p", "quiescence-torture", "--bin", "rcu-torture"]);
                built_file(&mut cargo, "rcu-torture")?
            }
            Program::Loom => tests("quiescence", &["--lib", "--release"])?,
            Program::Tests { package, target } => tests(package, &alone::chosen(target))?,
        };
        self.built.insert(program, made.clone());
        Ok(made)
    }
}

/// What the copy is compiled with. Its code is not meant to be read, nor to please lints.
pub(crate) const FLAGS: &str = "--cfg quiescence_mutants --cap-lints allow";

/// The folder of a package of the workspace, as the documents cite its tests.
pub(crate) fn folder_of(package: &str) -> &str {
    match package {
        "rcu" => "lab",
        "quiescence-verify" => "verify/explore",
        "quiescence-torture" => "verify/torture",
        _ => package.strip_prefix("quiescence-").unwrap_or(package),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The explorer knows the steps that it must catch, under the name of the table.
    #[test]
    fn what_the_explorer_must_catch_is_in_its_catalogue() {
        for step in mutants::all().iter().filter(|one| one.catchers.contains(&Catcher::Explorer)) {
            assert!(check::catalogue::named(&step.name).is_some(), "{}", step.name);
        }
    }

    /// Whether a test is there. Of a unit test `target` is `lib`; else it is a test program, or the
    /// file of a C or C++ program, which runs the case.
    fn is_there(package: &str, target: &str, test: &str) -> bool {
        let folder = root().join(folder_of(package));
        if target.contains('.') {
            let text = fs::read_to_string(folder.join("tests").join(target));
            let text = text.unwrap_or_default();
            // A case of its program, or called by `main`.
            let of_main = [format!("void {test}()"), format!("\t{test}();")];
            let is_case = [format!("CASE({test})"), format!("MISTAKE({test},")];
            return is_case.iter().any(|part| text.contains(part))
                || of_main.iter().all(|part| text.contains(part));
        }
        let mut module = match target {
            "lib" => folder.join("src"),
            target => folder.join("tests").join(target),
        };
        let (modules, function) = test.rsplit_once("::").unwrap_or(("", test));
        let function = format!("fn {function}(");
        // It is in the file of its module, or of one around that.
        std::iter::once("").chain(modules.split("::")).any(|name| {
            module.push(name);
            let files =
                [module.with_extension("rs"), module.join("mod.rs"), module.join("main.rs")];
            let mut texts = files.iter().filter_map(|file| fs::read_to_string(file).ok());
            texts.any(|text| text.contains(&function))
        })
    }

    #[test]
    fn every_test_that_must_notice_exists() {
        let table = mutants::table();
        for catcher in table.step.iter().chain(&table.alone).flat_map(|step| &step.catchers) {
            match catcher {
                Catcher::Test(test) => {
                    let (package, target, name) = test.parts();
                    assert!(is_there(package, target, name), "{test:?}");
                }
                Catcher::Loom { tests, .. } => {
                    for test in tests {
                        assert!(is_there("quiescence", "lib", test), "{test}");
                    }
                }
                _ => {}
            }
        }
    }

    #[test]
    fn every_promise_has_tests_that_exist() {
        for (promise, tests) in alone::tests::tests_of_promises() {
            assert!(!tests.is_empty(), "{promise}");
            for test in tests {
                let (package, target, name) = mutants::parts(&test);
                assert!(is_there(package, target, name), "{promise}: {test}");
            }
        }
    }
}
