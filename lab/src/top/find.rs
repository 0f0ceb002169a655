//! Where processes serve their statistics, how they are asked, and why that may fail.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Uid, geteuid, test_kill_process};

use super::answer::Answer;
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
/// they have. All are asked at once: some may never answer.
pub(super) fn all(output: &Output) -> Vec<Answer> {
    let own = own_directories().into_iter().filter(|directory| is_of(directory, geteuid()));
    let directories: BTreeSet<_> =
        own.filter_map(|directory| directory.canonicalize().ok()).collect();
    let paths = directories.iter().flat_map(|directory| sockets_in(directory, geteuid()));
    let began = Instant::now();
    let asked: Vec<Asked> = paths.filter_map(|path| begin_to_ask(&path).ok()).collect();
    let left = || PATIENCE.saturating_sub(began.elapsed()).max(MOMENT);
    let mut answers: Vec<Answer> =
        asked.iter().filter_map(|each| answer_of(each, left(), output).ok()).collect();
    answers.sort_by_key(|answer| answer.process.pid);
    answers
}

/// The sockets of this user in a directory of this user: anybody can make one in /tmp.
fn sockets_in(directory: &Path, user: Uid) -> impl Iterator<Item = PathBuf> {
    let files = is_of(directory, user).then(|| fs::read_dir(directory).ok()).flatten();
    let files = files.into_iter().flat_map(|files| files.take(FILES_MAX)).flatten();
    files
        .map(|file| file.path())
        .filter(move |path| path.extension().is_some_and(|end| end == "sock") && is_of(path, user))
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
            "process {pid} belongs to another user (number {owner}), and serves that user alone"
        )),
    };
    // A program that has given up the superuser's rights may have served by then.
    if other.is_some() && !geteuid().is_root() {
        return Err(no_socket());
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
        .find(|path| is_of(path, geteuid()))
        .ok_or_else(no_socket)
}

/// Whether the file is there and this user's.
fn is_of(path: &Path, user: Uid) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.uid() == user.as_raw())
}

fn does_not_serve(pid: u32) -> Failure {
    Failure::because(
        Exit::Unsupported,
        format!(
            "process {pid} does not serve its statistics: start it with QUIESCENCE_STATS=1 in its \
         environment (it serves from when it uses the library for the first time)"
        ),
    )
}

/// Where a thread gives the line that a process answers.
type Asked = Receiver<io::Result<String>>;

/// Between two looks at whether the user has had enough.
const MOMENT: Duration = Duration::from_millis(20);

/// Asks a process for its statistics by its socket.
pub(super) fn ask(socket: &Path, pid: u32, output: &Output) -> io::Result<Answer> {
    let answer = answer_of(&begin_to_ask(socket)?, PATIENCE, output)?;
    // A child has its parent's QUIESCENCE_STATS, and not the socket.
    let is_its = number_of_its_own(pid) == answer.process.pid;
    is_its.then_some(answer).ok_or(ErrorKind::NotFound.into())
}

/// Asks the process behind a socket.
///
/// Even to connect may take for ever, since a stopped process accepts nobody. So a thread of its
/// own waits for the process, and is left to itself if that takes too long, and after Ctrl-C.
fn begin_to_ask(socket: &Path) -> io::Result<Asked> {
    let (answered, answers) = mpsc::channel();
    let path = socket.to_owned();
    thread::Builder::new().spawn(move || answered.send(line_of(&path)))?;
    Ok(answers)
}

/// Waits for the answer so long.
fn answer_of(asked: &Asked, patience: Duration, output: &Output) -> io::Result<Answer> {
    let mut line = None;
    output.wait(patience, || {
        line = asked.recv_timeout(MOMENT).ok();
        line.is_none()
    });
    let late = if output.must_stop() { ErrorKind::Interrupted } else { ErrorKind::TimedOut };
    Answer::read(&line.ok_or(late)??)
        .map_err(|reason| io::Error::new(ErrorKind::InvalidData, reason))
}

/// The line that a process answers.
fn line_of(socket: &Path) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(b"statistics\n")?;
    let mut line = String::new();
    match BufReader::new(stream.take(ANSWER_MAX)).read_line(&mut line)? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        _ => Ok(line),
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
        ErrorKind::TimedOut => {
            "does not answer: it is stopped, or busy answering others".to_owned()
        }
        ErrorKind::InvalidData => format!("sent an answer that this command cannot read: {error}"),
        ErrorKind::UnexpectedEof => "closed the connection without an answer".to_owned(),
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
