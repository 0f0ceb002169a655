//! Where processes serve their statistics, how they are asked, and why that may fail.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, geteuid, test_kill_process};

use super::answer::Answer;
use crate::exit::{Exit, Failure, Result};

/// How long an answer may take: others may be asking, and each has two seconds.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of an answer.
const ANSWER_MAX: u64 = 4 << 20;
/// Files looked at in a directory.
const FILES_MAX: usize = 4_096;

/// The replies of all processes that serve in the usual directories, by process.
pub(super) fn all() -> Vec<Answer> {
    let mut answers = BTreeMap::new();
    for directory in own_directories() {
        let Ok(files) = fs::read_dir(directory) else { continue };
        let files = files.take(FILES_MAX).flatten().map(|file| file.path());
        for path in files.filter(|path| path.extension().is_some_and(|end| end == "sock")) {
            if let Ok(answer) = ask(&path) {
                answers.entry(answer.process.pid).or_insert(answer);
            }
        }
    }
    answers.into_values().collect()
}

/// The directories in which a process may serve whose session has this one.
fn directories(of_session: Option<PathBuf>) -> Vec<PathBuf> {
    let user = geteuid().as_raw();
    let parents = of_session.into_iter().chain([PathBuf::from(format!("/run/user/{user}"))]);
    let directories = parents.map(|parent| parent.join("quiescence"));
    directories.chain([PathBuf::from(format!("/tmp/quiescence-{user}"))]).collect()
}

/// The same of our own session.
fn own_directories() -> Vec<PathBuf> {
    directories(std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from))
}

/// A variable of the environment that a process was started with.
fn variable(environment: &[u8], name: &str) -> Option<PathBuf> {
    let mut variables = environment.split(|byte| *byte == 0);
    let value =
        variables.find_map(|each| each.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    Some(PathBuf::from(std::ffi::OsString::from_vec(value.to_vec())))
}

/// Whether there is such a process.
pub(super) fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// The socket that a process serves on; or why there is none.
pub(super) fn socket_of(pid: u32) -> Result<PathBuf> {
    if !is_alive(pid) {
        return Err(Failure::usage(format!("there is no process {pid}")));
    }
    let owner = fs::metadata(format!("/proc/{pid}")).map(|found| found.uid());
    if let Ok(owner) = owner
        && owner != geteuid().as_raw()
    {
        return Err(Failure::usage(format!(
            "process {pid} belongs to another user (number {owner}), and serves that user alone"
        )));
    }
    let environment = fs::read(format!("/proc/{pid}/environ"));
    let of_process = |name| variable(environment.as_ref().ok()?, name);
    let named = of_process("QUIESCENCE_STATS");
    let file = format!("{pid}.sock");
    let of_its_session = environment.is_ok().then(|| directories(of_process("XDG_RUNTIME_DIR")));
    let places = of_its_session.into_iter().flatten().chain(own_directories());
    named
        .into_iter()
        .filter(|path| path.is_absolute())
        .chain(places.map(|directory| directory.join(&file)))
        .find(|path| is_own(path))
        .ok_or_else(|| does_not_serve(pid))
}

/// Whether the file is there and this user's: anybody can make one in /tmp.
fn is_own(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.uid() == geteuid().as_raw())
}

fn does_not_serve(pid: u32) -> Failure {
    Failure::Because(
        Exit::Unsupported,
        format!(
            "process {pid} does not serve its statistics: start it with QUIESCENCE_STATS=1 in its \
         environment (it serves from when it uses the library for the first time)"
        ),
    )
}

/// Asks the process behind a socket for its statistics.
pub(super) fn ask(socket: &Path) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(b"statistics\n")?;
    let mut line = String::new();
    BufReader::new(stream.take(ANSWER_MAX)).read_line(&mut line)?;
    if line.is_empty() {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Answer::read(&line).map_err(|reason| io::Error::new(ErrorKind::InvalidData, reason))
}

/// Why a process that has a socket did not answer.
pub(super) fn explain(pid: u32, error: io::Error) -> Failure {
    let why = match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::NotFound => return does_not_serve(pid),
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            "does not answer: it is stopped, or busy answering others".to_owned()
        }
        ErrorKind::InvalidData => format!("sent an answer that this command cannot read: {error}"),
        ErrorKind::UnexpectedEof => "closed the connection without an answer".to_owned(),
        _ => format!("cannot be asked: {error}"),
    };
    Failure::Because(Exit::Unsupported, format!("process {pid} {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_by_their_whole_names() {
        let get = |name| variable(b"A=1\0QUIESCENCE_STATS=/a=b\0QUIESCENCE_STATS_X=2\0", name);
        assert_eq!(get("QUIESCENCE_STATS"), Some(PathBuf::from("/a=b")));
        assert_eq!(get("QUIESCENCE"), None);
        assert_eq!(get("B"), None);
    }

    #[test]
    fn somebody_is_alive() {
        assert!(is_alive(std::process::id()));
        assert!(!is_alive(0) && !is_alive(u32::MAX) && !is_alive(4_194_305));
    }
}
