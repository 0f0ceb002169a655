//! Changes that are made one at a time, in a copy of the tree of their own, and compiled each by
//! itself: what no choice at run time can change, types and items and more than a line.
//!
//! The tree is copied, one text is replaced that occurs once in its file, the test is built and
//! run, the text is put back. A test that does not end in time has noticed as well. What nothing
//! notices is a fault of the tests, and so is a change that does not compile.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use mutants::{Edit, Step, Test};

use super::Outcome;
use super::copy::copied;
use crate::say;
use crate::tools::root;

/// What came of a test.
#[derive(Debug)]
pub(super) enum Ended {
    Passed,
    /// With this said.
    Failed(String),
    /// Not within its time.
    Hung,
    DoesNotCompile(String),
}

/// A copy of the tree, in which things are broken.
pub(super) struct Tree {
    path: PathBuf,
    target: PathBuf,
    /// What came of the tests as the tree is.
    as_it_is: BTreeMap<&'static str, Ended>,
}

/// The file's text with the place changed.
pub(crate) fn applied(edit: &Edit, text: &str) -> Result<String> {
    let find = edit.find.as_deref().unwrap_or_default();
    let times = text.matches(find).count();
    ensure!(times == 1, "in {} `{find}` occurs {times} times", edit.file);
    Ok(text.replacen(find, edit.with.as_deref().unwrap_or_default(), 1))
}

impl Tree {
    /// A copy of the files that git knows, as they stand now.
    pub(super) fn copied() -> Result<Self> {
        let place = root().join("target/mutants-alone");
        let (path, target) = (place.join("tree"), place.join("target"));
        copied(&path, |_, text| Ok(text))?;
        Ok(Self { path, target, as_it_is: BTreeMap::new() })
    }

    /// Runs the test as the tree is, once: one that fails then notices nothing.
    pub(super) fn try_as_it_is(&mut self, test: &'static Test) -> Result<()> {
        if !self.as_it_is.contains_key(test.test.as_str()) {
            say::begun(&format!("{} as it is", test.test));
            let ended = self.ended(test)?;
            self.as_it_is.insert(&test.test, ended);
        }
        Ok(())
    }

    /// What came of the step's change, for a test that has been tried.
    pub(super) fn attempt(&self, step: &Step, test: &'static Test) -> Result<Outcome> {
        match self.as_it_is.get(test.test.as_str()) {
            Some(Ended::Passed) => {}
            other => return Ok(Outcome::Missed(format!("**fails as it is:** {other:?}"))),
        }
        say::begun(&format!("{}: {}", step.name, step.about));
        let mut before = Vec::new();
        for edit in &step.edits {
            let path = self.path.join(&edit.file);
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            fs::write(&path, applied(edit, &text).with_context(|| step.name.clone())?)?;
            before.push((path, text));
        }
        let ended = self.until_noticed(test);
        // The last edit first: a file may have several.
        for (path, text) in before.into_iter().rev() {
            fs::write(path, text)?;
        }
        let (attempt, ended) = ended?;
        let how = match ended {
            Ended::Passed => return Ok(Outcome::Missed(String::new())),
            Ended::Failed(said) => said,
            Ended::Hung => format!("hangs: ended after {} s", test.seconds),
            Ended::DoesNotCompile(said) => {
                say::aside(said);
                return Ok(Outcome::Missed(String::from("**does not compile**")));
            }
        };
        Ok(Outcome::Caught(if attempt == 1 { how } else { format!("{how} (in run {attempt})") }))
    }

    /// Runs the test as often as it may be, until it does not pass; and says in which run that was.
    fn until_noticed(&self, test: &Test) -> Result<(u32, Ended)> {
        for attempt in 1..=test.runs {
            let ended = self.ended(test)?;
            if !matches!(ended, Ended::Passed) {
                return Ok((attempt, ended));
            }
        }
        Ok((test.runs, Ended::Passed))
    }

    /// Builds the test, and runs it.
    fn ended(&self, test: &Test) -> Result<Ended> {
        let (package, target, name) = test.parts();
        let cargo = || {
            let mut command = crate::tools::cargo(&self.path);
            command.env("CARGO_TARGET_DIR", &self.target);
            command.args(["test", "--locked", "-p", package]).args(chosen(target));
            command.args(&test.options).stdin(Stdio::null());
            command.envs(test.environment.iter().filter_map(|word| word.split_once('=')));
            command
        };
        let built = cargo().arg("--no-run").output().context("cargo")?;
        if !built.status.success() {
            let said = String::from_utf8_lossy(&built.stderr).into_owned();
            return Ok(Ended::DoesNotCompile(said));
        }
        let mut command = cargo();
        command.args(["--", name, "--exact"]);
        ended(&mut command, name, Duration::from_secs(test.seconds))
    }
}

/// What cargo is told of a package's tests: those in the library, or those of a file.
pub(super) fn chosen(target: &str) -> Vec<&str> {
    if target == "lib" { vec!["--lib"] } else { vec!["--test", target] }
}

/// Runs a test, which the command names.
pub(super) fn ended(command: &mut Command, test: &str, limit: Duration) -> Result<Ended> {
    let (status, said) = limited(command, limit)?;
    Ok(match status {
        None => Ended::Hung,
        Some(status) if status.success() => {
            ensure!(said.contains("test result: ok. 1 passed"), "there is no test {test}: {said}");
            Ended::Passed
        }
        Some(status) => Ended::Failed(reason(status, &said)),
    })
}

/// Runs a command for so long at most. Returns its status, if it has ended by itself, and what it
/// said.
pub(crate) fn limited(
    command: &mut Command,
    limit: Duration,
) -> Result<(Option<ExitStatus>, String)> {
    let mut said = tempfile::tempfile()?;
    // Of which all are ended: cargo, the test, and the processes that the test has started.
    crate::limited::lead_a_group(command);
    let mut child = command.stdout(said.try_clone()?).stderr(said.try_clone()?).spawn()?;
    let status = crate::limited::wait(&mut child, limit)?;
    said.seek(SeekFrom::Start(0))?;
    let mut bytes = Vec::new();
    said.read_to_end(&mut bytes)?;
    Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
}

/// Why a test has failed, in a few words.
fn reason(status: ExitStatus, said: &str) -> String {
    let mut lines = said.lines();
    // The message is on the next line.
    let panicked =
        lines.find(|line| line.contains("' panicked at ") || line.contains(") panicked at "));
    let why = match (panicked, lines.next()) {
        (Some(_), Some(message)) if !message.trim().is_empty() => message.trim().to_owned(),
        _ => match said.lines().find(|line| line.contains("signal: ")) {
            Some(line) => {
                let (_, signal) = line.rsplit_once("signal: ").unwrap_or(("", line));
                format!("ends by signal {}", signal.trim_end_matches(')'))
            }
            None => format!("{status}"),
        },
    };
    let mut short: String = why.chars().take(80).collect();
    if short.len() < why.len() {
        short.push('…');
    }
    // In a table.
    short.replace('|', "\\|")
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;

    use mutants::Catcher;

    use super::*;

    /// The tests of `verify/mutants/promises.toml` that hold each promise.
    pub(in super::super) fn tests_of_promises() -> BTreeMap<String, Vec<String>> {
        let text = fs::read_to_string(root().join("verify/mutants/promises.toml")).unwrap();
        toml::from_str(&text).unwrap()
    }

    /// The names of the promises, but for what is not promised.
    fn named(document: &str) -> BTreeSet<&str> {
        let bold = document.lines().filter_map(|line| line.strip_prefix("**"));
        let promises = bold.filter_map(|line| line.split_once(". ").or(line.split_once(".")));
        promises
            .filter(|(_, text)| !text.trim_start().starts_with("Not promised"))
            .map(|(name, _)| name)
            .filter(|name| {
                name.split_once('-').is_some_and(|(room, number)| {
                    room.chars().all(|c| c.is_ascii_uppercase()) && number.parse::<u32>().is_ok()
                })
            })
            .collect()
    }

    /// Each promise is broken on purpose, or it is said why not, and no other ones are.
    #[test]
    fn every_promise_is_broken_or_has_a_reason() {
        let document = fs::read_to_string(root().join("docs/GUARANTEES.md")).unwrap();
        let document = named(&document);
        assert!(document.len() > 80 && document.contains("G-1") && !document.contains("G-"));
        let table = mutants::table();
        let catchers = table.step.iter().chain(&table.alone).flat_map(|step| &step.catchers);
        let broken: BTreeSet<&str> = catchers.filter_map(Catcher::promise).collect();
        let unbroken: BTreeSet<&str> = table.unbroken.iter().map(|one| &*one.promise).collect();
        let known: BTreeSet<&str> = broken.union(&unbroken).copied().collect();
        let none = Vec::<&&str>::new();
        assert_eq!(broken.intersection(&unbroken).collect::<Vec<_>>(), none);
        assert_eq!(known.difference(&document).collect::<Vec<_>>(), none, "no such");
        assert_eq!(document.difference(&known).collect::<Vec<_>>(), none, "left out");
        let tests = tests_of_promises();
        let tested: BTreeSet<&str> = tests.keys().map(String::as_str).collect();
        assert_eq!(document.difference(&tested).collect::<Vec<_>>(), none, "without a test");
        for one in &table.unbroken {
            assert!(one.reason.len() > 20, "{}: {}", one.promise, one.reason);
        }
    }

    /// A change whose place has moved would break nothing.
    #[test]
    fn every_change_finds_its_place_and_has_a_test() {
        for step in &mutants::table().alone {
            for edit in &step.edits {
                let text = fs::read_to_string(root().join(&edit.file)).unwrap();
                assert_ne!(applied(edit, &text).unwrap(), text, "{}", step.name);
            }
            let is_test = |catcher: &Catcher| matches!(catcher, Catcher::Test(_));
            assert!(step.catchers.iter().all(is_test), "{}", step.name);
        }
    }

    #[test]
    fn what_does_not_end_is_ended_with_all_that_it_has_started() {
        let mut soon = Duration::from_millis(300);
        let said = loop {
            let mut command = Command::new("sh");
            // The shell and another one, of which each stops all of its group.
            command.args(["-c", "echo begun; (kill -STOP 0); echo ended"]);
            let (mut reader, writer) = std::io::pipe().unwrap();
            let (status, said) = limited(command.stdin(writer), soon).unwrap();
            assert!(status.is_none());
            drop(command);
            // Ends when no process has the other end of the pipe.
            assert_eq!(reader.read_to_end(&mut Vec::new()).unwrap(), 0);
            // On a busy machine it has not begun by then.
            if !said.is_empty() {
                break said;
            }
            soon *= 2;
            assert!(soon < Duration::from_secs(60), "it says nothing");
        };
        assert_eq!(said, "begun\n");
        let mut fails = Command::new("sh");
        fails.args(["-c", "echo why >&2; exit 3"]);
        let (status, said) = limited(&mut fails, Duration::from_secs(60)).unwrap();
        assert_eq!((status.unwrap().code(), said.as_str()), (Some(3), "why\n"));
    }
}
