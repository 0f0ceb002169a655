//! Breaks each promise of `docs/GUARANTEES.md` on purpose, and looks whether a test notices.
//!
//! `xtask/promises.toml` says how: for each promise a place in the code, what is written there
//! instead, and the test that must fail then. The tree is copied, one place is changed at a time,
//! the test is built and run, the place is put back. A test that does not end in time has noticed
//! as well, which the table says. What nothing notices is a fault of the tests, and so is a change
//! that does not compile: the command fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::compat::root;
use crate::say;
use crate::tools::run;

/// How the promises are broken, and which of them are not.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promises {
    mutation: Vec<Mutation>,
    #[serde(default)]
    not_yet: Vec<NotYet>,
}

/// One way to break a promise.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutation {
    /// As the document calls it: `G-1`.
    promise: String,
    /// What is wrong then.
    what: String,
    file: String,
    /// Occurs once in the file.
    find: String,
    replace: String,
    /// Arguments of `cargo test`, the name of the test last: `-p quiescence --test updates name`.
    test: String,
    /// Words `NAME=value` for the test's environment.
    #[serde(default)]
    environment: Vec<String>,
    /// How long the test may take, once it is built.
    #[serde(default = "default_timeout_s")]
    timeout_s: u64,
    /// How often the test is run until it notices: for those that look for races.
    #[serde(default = "default_runs")]
    runs: u32,
}

/// A promise that is not broken on purpose.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotYet {
    promise: String,
    reason: String,
}

const fn default_timeout_s() -> u64 {
    60
}

const fn default_runs() -> u32 {
    1
}

/// The command's arguments.
#[derive(Debug)]
pub struct Run {
    /// Which promises, by their names; all, if there is none.
    pub names: Vec<String>,
    /// Say which, and run nothing.
    pub list: bool,
}

/// What came of a test.
#[derive(Debug)]
enum Outcome {
    Passed,
    /// With this said.
    Failed(String),
    /// Not within its time.
    Hung,
    DoesNotCompile(String),
}

impl Run {
    /// Runs it. The table is written to standard output, in Markdown.
    ///
    /// # Errors
    /// If a mutation is not noticed, cannot be made, or does not compile; or if a test fails
    /// without any.
    pub fn run(self) -> Result<()> {
        let root = root();
        let promises = Promises::read(&root)?;
        let chosen = promises.chosen(&self.names)?;
        if self.list {
            for mutation in &chosen {
                println!("{:<6} {} ({})", mutation.promise, mutation.what, mutation.cited());
            }
            for not_yet in promises.not_yet.iter().filter(|_| self.names.is_empty()) {
                println!("{:<6} not broken: {}", not_yet.promise, not_yet.reason);
            }
            return Ok(());
        }
        let mut tree = Tree::copied(&root)?;
        println!("| promise | what is broken | test that noticed | how |\n|---|---|---|---|");
        let mut missed = Vec::new();
        // First as it is, all of them: nothing is built anew in between.
        for mutation in &chosen {
            tree.try_as_it_is(mutation)?;
        }
        for mutation in &chosen {
            let (is_noticed, how) = tree.broken_by(mutation)?;
            let (promise, what) = (&mutation.promise, &mutation.what);
            let (file, test) = (&mutation.file, mutation.cited());
            println!("| {promise} | {what} (`{file}`) | `{test}` | {how} |");
            std::io::stdout().flush()?;
            if !is_noticed {
                missed.push(format!("{promise}: {what}: {how}"));
            }
        }
        ensure!(missed.is_empty(), "not noticed:\n{}", missed.join("\n"));
        Ok(())
    }
}

impl Promises {
    fn read(root: &Path) -> Result<Self> {
        let path = root.join("xtask/promises.toml");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        toml::from_str(&text).with_context(|| path.display().to_string())
    }

    /// The mutations of these promises; all, if none is named.
    fn chosen(&self, names: &[String]) -> Result<Vec<&Mutation>> {
        let known: BTreeSet<&str> = self.mutation.iter().map(|one| one.promise.as_str()).collect();
        for name in names {
            ensure!(known.contains(name.as_str()), "no mutation of {name}; there are {known:?}");
        }
        let is_chosen = |one: &&Mutation| names.is_empty() || names.contains(&one.promise);
        Ok(self.mutation.iter().filter(is_chosen).collect())
    }
}

impl Mutation {
    /// What `cargo test` builds, and the name of the test.
    fn target_and_name(&self) -> (Vec<&str>, &str) {
        let mut words: Vec<&str> = self.test.split_whitespace().collect();
        let name = words.pop().unwrap_or_default();
        (words, name)
    }

    /// The test, as the documents cite it.
    fn cited(&self) -> String {
        let (words, name) = self.target_and_name();
        let after = |flag| {
            let at = words.iter().position(|word| *word == flag)?;
            words.get(at + 1).copied()
        };
        let (folder, target) = (after("-p").map_or("?", folder_of), after("--test"));
        let path = target.into_iter().chain(name.split("::").filter(|part| *part != "tests"));
        let mut parts: Vec<&str> = path.collect();
        let function = parts.pop().unwrap_or_default();
        let file = if parts.is_empty() { "lib".to_owned() } else { parts.join("/") };
        format!("{folder}/{file}::{function}")
    }

    /// The file's text with the place changed.
    fn applied(&self, text: &str) -> Result<String> {
        let times = text.matches(&self.find).count();
        ensure!(
            times == 1,
            "{}: in {} `{}` occurs {times} times",
            self.promise,
            self.file,
            self.find
        );
        ensure!(self.find != self.replace, "{}: nothing is changed", self.promise);
        Ok(text.replacen(&self.find, &self.replace, 1))
    }
}

/// The folder of a package of the workspace, as the documents cite its tests.
pub(crate) fn folder_of(package: &str) -> &str {
    match package {
        "quiescence-verify" => "verify/explore",
        "quiescence-torture" => "verify/torture",
        _ => package.strip_prefix("quiescence-").unwrap_or(package),
    }
}

/// A copy of the tree, in which things are broken.
struct Tree {
    path: PathBuf,
    target: PathBuf,
    /// What came of the tests as the tree is.
    as_it_is: BTreeMap<String, Outcome>,
}

impl Tree {
    /// A copy of the files that git knows, as they stand now. What has not changed since the last
    /// copy is not touched, so that cargo need not build it again.
    fn copied(root: &Path) -> Result<Self> {
        let (path, target) =
            (root.join("target/promises/tree"), root.join("target/promises/target"));
        let listed = run(Command::new("git").current_dir(root).args(["ls-files", "-z"]))?;
        let files: BTreeSet<&str> = listed.split('\0').filter(|file| !file.is_empty()).collect();
        for file in &files {
            let (from, to) = (root.join(file), path.join(file));
            // A link to something, or removed and not committed.
            if !from.is_file() {
                continue;
            }
            let text = fs::read(&from).with_context(|| from.display().to_string())?;
            if !fs::read(&to).is_ok_and(|there| there == text) {
                fs::create_dir_all(to.parent().context("a file is in a directory")?)?;
                fs::copy(&from, &to).with_context(|| to.display().to_string())?;
            }
        }
        for there in crate::tools::files_below(&path)? {
            let file = there.strip_prefix(&path)?.to_string_lossy().into_owned();
            if !files.contains(file.as_str()) || !root.join(&file).is_file() {
                fs::remove_file(&there)?;
            }
        }
        Ok(Self { path, target, as_it_is: BTreeMap::new() })
    }

    /// Runs the test as the tree is, once: one that fails then notices nothing.
    fn try_as_it_is(&mut self, mutation: &Mutation) -> Result<()> {
        if !self.as_it_is.contains_key(&mutation.test) {
            say::begun(&format!("{} as it is", mutation.cited()));
            let outcome = self.test(mutation)?;
            self.as_it_is.insert(mutation.test.clone(), outcome);
        }
        Ok(())
    }

    /// Whether the test has noticed the mutation, and how; or why it cannot have.
    fn broken_by(&self, mutation: &Mutation) -> Result<(bool, String)> {
        match self.as_it_is.get(&mutation.test) {
            Some(Outcome::Passed) => {}
            other => return Ok((false, format!("**fails as it is:** {other:?}"))),
        }
        say::begun(&format!("{}: {}", mutation.promise, mutation.what));
        let path = self.path.join(&mutation.file);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        fs::write(&path, mutation.applied(&text)?)?;
        let outcome = self.until_noticed(mutation);
        fs::write(&path, text)?;
        let (attempt, outcome) = outcome?;
        let how = match outcome {
            Outcome::Passed => return Ok((false, String::from("**not noticed**"))),
            Outcome::Failed(said) => said,
            Outcome::Hung => format!("hangs: ended after {} s", mutation.timeout_s),
            Outcome::DoesNotCompile(said) => {
                eprintln!("{said}");
                return Ok((false, String::from("**does not compile**")));
            }
        };
        Ok((true, if attempt == 1 { how } else { format!("{how} (in run {attempt})") }))
    }

    /// Runs the test as often as it may be, until it does not pass; and says in which run that was.
    fn until_noticed(&self, mutation: &Mutation) -> Result<(u32, Outcome)> {
        for attempt in 1..=mutation.runs {
            let outcome = self.test(mutation)?;
            if !matches!(outcome, Outcome::Passed) {
                return Ok((attempt, outcome));
            }
        }
        Ok((mutation.runs, Outcome::Passed))
    }

    /// Builds the test, and runs it.
    fn test(&self, mutation: &Mutation) -> Result<Outcome> {
        let (target, name) = mutation.target_and_name();
        let cargo = || {
            let mut command = Command::new("cargo");
            command.current_dir(&self.path).env("CARGO_TARGET_DIR", &self.target);
            command.args(["test", "--locked"]).args(&target).stdin(Stdio::null());
            for word in &mutation.environment {
                command.envs(word.split_once('='));
            }
            command
        };
        let built = cargo().arg("--no-run").output().context("cargo")?;
        if !built.status.success() {
            return Ok(Outcome::DoesNotCompile(
                String::from_utf8_lossy(&built.stderr).into_owned(),
            ));
        }
        let mut command = cargo();
        command.args(["--", name, "--exact"]);
        let (status, said) = limited(&mut command, Duration::from_secs(mutation.timeout_s))?;
        Ok(match status {
            None => Outcome::Hung,
            Some(status) if status.success() => {
                ensure!(said.contains("test result: ok. 1 passed"), "no test {}", mutation.test);
                Outcome::Passed
            }
            Some(status) => Outcome::Failed(reason(status, &said)),
        })
    }
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
mod tests {
    use super::*;

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
        let promises = Promises::read(&root()).unwrap();
        let broken: BTreeSet<&str> = promises.mutation.iter().map(|one| &*one.promise).collect();
        let not_yet: BTreeSet<&str> = promises.not_yet.iter().map(|one| &*one.promise).collect();
        let known: BTreeSet<&str> = broken.union(&not_yet).copied().collect();
        assert_eq!(broken.intersection(&not_yet).collect::<Vec<_>>(), Vec::<&&str>::new());
        assert_eq!(known.difference(&document).collect::<Vec<_>>(), Vec::<&&str>::new(), "no such");
        assert_eq!(
            document.difference(&known).collect::<Vec<_>>(),
            Vec::<&&str>::new(),
            "left out"
        );
        for one in &promises.not_yet {
            assert!(one.reason.len() > 20, "{}: {}", one.promise, one.reason);
        }
    }

    /// A mutation whose place has moved would break nothing.
    #[test]
    fn every_mutation_finds_its_place_and_its_test() {
        for one in Promises::read(&root()).unwrap().mutation {
            let text = fs::read_to_string(root().join(&one.file)).unwrap();
            if let Err(error) = one.applied(&text) {
                panic!("{error}");
            }
            let (words, name) = one.target_and_name();
            assert_eq!(words[0], "-p", "{}", one.test);
            assert!(words.contains(&"--lib") || words.contains(&"--test"), "{}", one.test);
            let function = format!("fn {}(", name.rsplit("::").next().unwrap());
            let sources = crate::tools::files_below(&root().join(folder_of(words[1]))).unwrap();
            let rust = sources.iter().filter(|path| path.extension().is_some_and(|e| e == "rs"));
            let is_there = |path: &PathBuf| fs::read_to_string(path).unwrap().contains(&function);
            assert!(rust.into_iter().any(is_there), "{}: no test {name}", one.promise);
        }
    }

    #[test]
    fn a_test_is_cited_as_in_the_documents() {
        let cited = |test: &str| {
            let toml = format!(
                "[[mutation]]\npromise = 'X-1'\nwhat = ''\nfile = ''\nfind = 'a'\nreplace = 'b'\ntest = '{test}'"
            );
            toml::from_str::<Promises>(&toml).unwrap().mutation[0].cited()
        };
        assert_eq!(cited("-p quiescence-grace --test machine name"), "grace/machine::name");
        assert_eq!(
            cited("-p quiescence --lib os::fence::tests::name"),
            "quiescence/os/fence::name"
        );
        let regression = "-p quiescence --test regressions many_domains::name";
        assert_eq!(cited(regression), "quiescence/regressions/many_domains::name");
    }

    #[test]
    fn what_does_not_end_is_ended_with_all_that_it_has_started() {
        let mut command = Command::new("sh");
        // The shell and another one, of which each stops all of its group.
        command.args(["-c", "echo begun; (kill -STOP 0); echo ended"]);
        let (mut reader, writer) = std::io::pipe().unwrap();
        command.stdin(writer);
        let (status, said) = limited(&mut command, Duration::from_millis(300)).unwrap();
        assert!(status.is_none());
        assert_eq!(said, "begun\n");
        drop(command);
        // Ends when no process has the other end of the pipe.
        assert_eq!(reader.read_to_end(&mut Vec::new()).unwrap(), 0);
        let (status, said) = limited(
            Command::new("sh").args(["-c", "echo why >&2; exit 3"]),
            Duration::from_secs(60),
        )
        .unwrap();
        assert_eq!((status.unwrap().code(), said.as_str()), (Some(3), "why\n"));
    }
}
