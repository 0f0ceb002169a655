//! A test that is also, in a new process, a program that serves its statistics.
//!
//! Tests of two packages include this file.
#![cfg(target_os = "linux")]
#![allow(dead_code, reason = "each of them needs a part of it")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::thread;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::again::{command_of, role};

/// One test of this program, run in a new process that serves.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    pub(crate) runtime: TempDir,
    /// Its socket, once that is there.
    pub(crate) path: PathBuf,
}

impl Served {
    /// In the test: starts it in a process that finds `ROLE` set, and waits until it says that it
    /// is ready. In that process: `serve` is the test.
    pub(crate) fn by(test: &str, serve: impl FnOnce()) -> Option<Self> {
        if role().is_some() {
            serve();
            return None;
        }
        Some(Self::in_runtime(test, private_directory()))
    }

    pub(crate) fn in_runtime(test: &str, runtime: TempDir) -> Self {
        let environment =
            [("QUIESCENCE_STATS", "1".into()), ("XDG_RUNTIME_DIR", runtime.path().to_owned())];
        let mut served = Self::start(test, &environment, runtime);
        let name = format!("{}.sock", served.child.id());
        served.path = served.runtime.path().join("quiescence").join(name);
        served
    }

    /// At a named socket.
    pub(crate) fn at(test: &str, path: &Path) -> Self {
        let served = Self::start(test, &[("QUIESCENCE_STATS", path.into())], private_directory());
        Self { path: path.into(), ..served }
    }

    pub(crate) fn start(test: &str, environment: &[(&str, PathBuf)], runtime: TempDir) -> Self {
        let mut command = command_of(test, "serve");
        // No report of a stall, however long a test looks at one.
        command.env_remove("QUIESCENCE_STATS").env("QUIESCENCE_STALL_MS", "0");
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let stdout = BufReader::new(stdout);
        let mut served = Self { child, stdin, stdout, runtime, path: PathBuf::new() };
        served.wait_for("ready");
        served
    }

    /// The rest of the line that begins with `word`.
    pub(crate) fn wait_for(&mut self, word: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "it ended before {word:?}");
            // The harness writes in front of it.
            if let Some((_, rest)) = line.split_once(word) {
                return rest.trim().to_owned();
            }
        }
    }

    /// Has it go on.
    pub(crate) fn go_on(&mut self) {
        self.stdin.write_all(b"\n").unwrap();
    }

    /// What it says on standard error, of this: one line, for which this waits.
    pub(crate) fn complains_of(&mut self, what: &str) -> String {
        let mut said = String::new();
        // It says no more than this, so nothing is lost with the buffer.
        BufReader::new(self.child.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
        assert!(said.contains(what), "{said}");
        said
    }

    /// Has it go on to its end, which is well. What it has said to standard error, and has not been
    /// read, is nothing. Returns the directory, with what it has left there.
    pub(crate) fn end(self) -> TempDir {
        drop(self.stdin);
        let output = self.child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        self.runtime
    }

    /// The child of it that says who it is, and its socket, at which it serves.
    pub(crate) fn child_that_serves(&mut self) -> (u32, PathBuf) {
        let child: u32 = self.wait_for("child").parse().unwrap();
        let path = self.path.with_file_name(format!("{child}.sock"));
        let answer = ask(&mut connect(&path), b"statistics\n").unwrap();
        assert_eq!(answer["pid"], child);
        (child, path)
    }

    /// What a new client is told.
    pub(crate) fn statistics(&self) -> Option<Value> {
        ask(&mut connect(&self.path), b"statistics\n")
    }
}

/// In the process that serves: says that it is ready, and waits for the test.
pub(crate) fn ready() {
    println!("ready");
    next();
}

pub(crate) fn next() {
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// Connects to a process that is about to serve.
pub(crate) fn connect(path: &Path) -> BufReader<UnixStream> {
    loop {
        if let Ok(stream) = UnixStream::connect(path) {
            return BufReader::new(stream);
        }
        thread::yield_now();
    }
}

/// The answer to a request; nothing if the connection was closed instead.
pub(crate) fn ask(client: &mut BufReader<UnixStream>, request: &[u8]) -> Option<Value> {
    client.get_mut().write_all(request).ok()?;
    let mut line = String::new();
    client.read_line(&mut line).ok().filter(|read| *read != 0)?;
    assert!(line.ends_with('\n'));
    Some(serde_json::from_str(&line).expect("the answer is JSON"))
}

/// A directory for sockets.
pub(crate) fn private_directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
    directory
}
