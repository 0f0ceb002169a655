//! Where processes serve their statistics, how they are asked, and why that may fail.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Uid, geteuid, test_kill_process};

use super::answer::Process;
use crate::exit::{Exit, Failure, Result};
use crate::output::Output;

/// How long it may take to connect and to be answered: others may be asking, and each has two
/// seconds.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of an answer.
const ANSWER_MAX: u64 = 4 << 20;
/// Files looked at in a directory.
const FILES_MAX: usize = 4_096;

/// The replies of all processes that serve in the usual directories, by the numbers that they say
/// they have, and then by their sockets.
pub(super) fn all(output: &Output) -> Vec<Process> {
    let sockets = directories(None).flat_map(|directory| sockets_in(&directory, geteuid()));
    // Two of the directories may be one.
    let sockets: BTreeSet<PathBuf> = sockets.flat_map(|socket| socket.canonicalize()).collect();
    let mut answers: Vec<Process> = answers(sockets, output).into_values().flatten().collect();
    answers.sort_by_key(|answer| answer.pid);
    answers
}

/// The sockets of this user in a directory of this user: anybody can make one in /tmp.
fn sockets_in(directory: &Path, user: Uid) -> impl Iterator<Item = PathBuf> + use<> {
    let files = is_of(directory, user).then(|| fs::read_dir(directory).ok()).flatten();
    let files = files.into_iter().flat_map(|files| files.take(FILES_MAX)).flatten();
    files
        .map(|file| file.path())
        .filter(move |path| path.extension().is_some_and(|end| end == "sock") && is_of(path, user))
}

/// The directories in which a process may serve: below that of its session, or of ours, or where it
/// has none.
fn directories(of_session: Option<PathBuf>) -> impl Iterator<Item = PathBuf> {
    let user = geteuid().as_raw();
    let ours = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let parents = [of_session, ours, Some(format!("/run/user/{user}").into())].into_iter();
    let directories = parents.flatten().map(|parent| parent.join("quiescence"));
    directories.chain([PathBuf::from(format!("/tmp/quiescence-{user}"))])
}

/// A variable of the environment that a process was started with.
fn variable(environment: &[u8], name: &str) -> Option<PathBuf> {
    let mut variables = environment.split(|byte| *byte == 0);
    let value =
        variables.find_map(|each| each.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    Some(PathBuf::from(std::ffi::OsString::from_vec(value.to_vec())))
}

/// Whether there is such a process, and it has not ended: the kernel keeps its number until its
/// parent asks for its exit code.
pub(super) fn is_alive(pid: u32) -> bool {
    let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let is = |line: &[u8]| status.windows(line.len()).any(|part| part == line);
    // A first thread may end before the others.
    let has_ended = is(b"\nState:\tZ") && is(b"\nThreads:\t1\n");
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    !has_ended && pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// The socket that a process serves on; or why there is none.
pub(super) fn socket_of(pid: u32) -> Result<PathBuf> {
    if !is_alive(pid) {
        return Err(Failure::usage(format!("there is no process {pid}")));
    }
    let owner = fs::metadata(format!("/proc/{pid}")).map(|found| found.uid());
    let other = owner.ok().filter(|owner| *owner != geteuid().as_raw());
    let no_socket = || match other {
        None => does_not_serve(pid),
        Some(owner) => Failure::usage(format!(
            "process {pid} belongs to another user (number {owner}): ask as that user"
        )),
    };
    // A process of another user may have been ours when it made its socket. Its environment is that
    // user's word, and could lead us to any socket of ours.
    let environment = fs::read(format!("/proc/{pid}/environ")).ok().filter(|_| other.is_none());
    let of_process = |name| variable(environment.as_ref()?, name);
    let places = directories(of_process("XDG_RUNTIME_DIR"));
    let is_ours = |path: &PathBuf| is_of(path, geteuid());
    of_process("QUIESCENCE_STATS")
        .filter(|path| path.is_absolute())
        .into_iter()
        .chain(places.filter(is_ours).map(|directory| directory.join(format!("{pid}.sock"))))
        .find(is_ours)
        .ok_or_else(no_socket)
}

/// Whether the file is there and this user's.
fn is_of(path: &Path, user: Uid) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.uid() == user.as_raw())
}

fn does_not_serve(pid: u32) -> Failure {
    let why = format!(
        "process {pid} does not serve its statistics: start it with QUIESCENCE_STATS=1 in its \
         environment (it serves from when it uses the library for the first time)"
    );
    Failure::because(Exit::Unsupported, why)
}

/// Asks a process for its statistics by its socket.
pub(super) fn ask(socket: &Path, pid: u32, output: &Output) -> io::Result<Process> {
    let answer = answers([socket.to_owned()].into(), output).into_values().next();
    let late = if output.must_stop() { ErrorKind::Interrupted } else { ErrorKind::TimedOut };
    let answer = answer.ok_or(late)??;
    // A child has its parent's QUIESCENCE_STATS, and not the socket.
    let is_its = number_of_its_own(pid) == answer.pid;
    is_its.then_some(answer).ok_or(ErrorKind::NotFound.into())
}

/// What the processes behind these sockets answer within [`PATIENCE`], and before Ctrl-C.
///
/// Even to connect may take for ever, since a stopped process accepts nobody. So a thread for each
/// waits, and is left to itself then.
fn answers(sockets: BTreeSet<PathBuf>, output: &Output) -> BTreeMap<PathBuf, io::Result<Process>> {
    let asked = sockets.len();
    let (answered, came) = mpsc::channel();
    let mut answers = BTreeMap::new();
    for socket in sockets {
        let (path, answered) = (socket.clone(), answered.clone());
        let answer = move || answered.send((path.clone(), answer_of(&path))).is_ok();
        if let Err(error) = thread::Builder::new().spawn(answer) {
            answers.insert(socket, Err(error));
        }
    }
    output.wait(PATIENCE, || {
        answers.extend(came.try_iter());
        answers.len() < asked
    });
    answers
}

/// What a process answers.
fn answer_of(socket: &Path) -> io::Result<Process> {
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(b"statistics\n")?;
    let mut line = String::new();
    match BufReader::new(stream.take(ANSWER_MAX)).read_line(&mut line)? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        _ => Process::read(&line).map_err(|why| io::Error::new(ErrorKind::InvalidData, why)),
    }
}

/// The number that a process has for itself: another one, if it is in a container.
fn number_of_its_own(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let number = numbers.and_then(|numbers| numbers.split_whitespace().last()?.parse().ok());
    number.unwrap_or(pid)
}

/// Why a process that has a socket did not answer.
pub(super) fn explain(pid: u32, error: io::Error, output: &mut Output) -> Failure {
    let why = match error.kind() {
        ErrorKind::Interrupted => return output.stopped(),
        _ if !is_alive(pid) => return Failure::usage(format!("process {pid} has ended")),
        ErrorKind::ConnectionRefused | ErrorKind::NotFound => return does_not_serve(pid),
        ErrorKind::TimedOut => "does not answer: it is stopped, or busy answering others".into(),
        ErrorKind::InvalidData => format!("sent an answer that this command cannot read: {error}"),
        ErrorKind::UnexpectedEof => "closed the connection without an answer".into(),
        _ => format!("cannot be asked: {error}"),
    };
    Failure::because(Exit::Unsupported, format!("process {pid} {why}"))
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

    /// In /tmp another user could make the directory, and answer for our processes.
    #[test]
    fn sockets_of_other_users_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("1.sock");
        fs::write(&socket, "").unwrap();
        let user = geteuid();
        let other = Uid::from_raw(user.as_raw() + 1);
        let of = |user| sockets_in(directory.path(), user).collect::<Vec<_>>();
        assert_eq!((of(user), of(other)), (vec![socket.clone()], vec![]));
        // In the user's directory, but not the user's.
        assert!(is_of(&socket, user) && !is_of(&socket, other));
    }

    #[test]
    fn somebody_is_alive() {
        assert!(is_alive(std::process::id()));
        assert!(!is_alive(0) && !is_alive(u32::MAX) && !is_alive(4_194_305));
    }
}
