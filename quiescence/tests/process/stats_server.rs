//! A process that serves its statistics: to whom, what, and what it survives.
#![cfg(target_os = "linux")]

use crate::common::*;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// One test of this file, run in a new process that serves.
struct Served {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Served {
    /// Starts the test in a process that finds `ROLE` set, and waits until it says that it is
    /// ready.
    fn start(test: &str, environment: &[(&str, &Path)]) -> Self {
        let mut command = command_of(test, "serve");
        command.env("QUIESCENCE_STATS", "1");
        command.envs(environment.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut served = Self { child, stdin, stdout: BufReader::new(stdout) };
        served.wait_for("ready");
        served
    }

    fn in_runtime(test: &str, runtime: &Path) -> Self {
        Self::start(test, &[("XDG_RUNTIME_DIR", runtime)])
    }

    /// The rest of the line that begins with `word`.
    fn wait_for(&mut self, word: &str) -> String {
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
    fn go_on(&mut self) {
        self.stdin.write_all(b"\n").unwrap();
    }

    /// What it says on standard error: one line, for which this waits.
    fn complains(&mut self) -> String {
        let mut said = String::new();
        // It says no more than this, so nothing is lost with the buffer.
        BufReader::new(self.child.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
        said
    }

    /// Has it go on to its end.
    fn end(self) -> Output {
        drop(self.stdin);
        self.child.wait_with_output().unwrap()
    }

    fn socket(&self, runtime: &Path) -> PathBuf {
        runtime.join("quiescence").join(format!("{}.sock", self.child.id()))
    }
}

/// In the process that serves: says that it is ready, and waits for the test.
fn ready() {
    println!("ready");
    next();
}

fn next() {
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// Connects to a process that is about to serve.
fn connect(path: &Path) -> BufReader<UnixStream> {
    loop {
        if let Ok(stream) = UnixStream::connect(path) {
            return BufReader::new(stream);
        }
        thread::yield_now();
    }
}

/// The answer to a request; nothing if the connection was closed instead.
fn ask(client: &mut BufReader<UnixStream>, request: &[u8]) -> Option<Value> {
    client.get_mut().write_all(request).ok()?;
    let mut line = String::new();
    client.read_line(&mut line).ok().filter(|read| *read != 0)?;
    assert!(line.ends_with('\n'));
    Some(serde_json::from_str(&line).expect("the answer is JSON"))
}

fn runtime_directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
    directory
}

#[test]
fn a_process_serves_what_its_domains_do() {
    if role().is_some() {
        let domain = Domain::builder().name("routes").build();
        let (inside, outside) = (Barrier::new(2), Barrier::new(2));
        return thread::scope(|scope| {
            let reader = thread::Builder::new().name("lookup".into());
            let reads = || {
                let _guard = domain.read();
                inside.wait();
                outside.wait();
            };
            reader.spawn_scoped(scope, reads).unwrap();
            inside.wait();
            let waiter = scope.spawn(|| domain.synchronize_expedited());
            until_an_updater_sleeps(&domain);
            ready();
            outside.wait();
            waiter.join().unwrap();
            println!("over");
            next();
        });
    }
    let runtime = runtime_directory();
    let mut served = Served::in_runtime(this_test!(), runtime.path());
    let path = served.socket(runtime.path());
    let mut client = connect(&path);

    let answer = ask(&mut client, b"statistics\n").unwrap();
    assert_eq!(answer["schema"], "quiescence-stats/2");
    assert_eq!(answer["pid"], served.child.id());
    assert!(answer["program"].as_str().unwrap().starts_with("process-"));
    assert!(["membarrier", "portable"].contains(&answer["fences"].as_str().unwrap()));
    let domain = &answer["domains"][0];
    assert_eq!(
        (&answer["domains_total"], domain["engine"].as_str()),
        (&1.into(), Some("adaptive"))
    );
    assert_eq!((&domain["name"], &domain["grace_periods"]), (&"routes".into(), &0.into()));
    assert_eq!((&domain["readers"], &domain["waiters"]), (&1.into(), &1.into()));
    assert_eq!(domain["in_progress"]["number"], 1);
    let reader = &domain["longest_reader"];
    assert!(
        reader["location"].as_str().unwrap().contains("tests/process/stats_server.rs:"),
        "{reader}"
    );
    assert_eq!((&reader["qsbr"], &reader["thread_name"]), (&false.into(), &"lookup".into()));
    let task = format!("/proc/{}/task/{}", served.child.id(), reader["thread_id"]);
    assert!(Path::new(&task).exists(), "{task}");
    let earlier_ns = reader["at_least_ns"].as_u64().unwrap();
    assert_eq!(domain["in_progress"]["waits_ns"], earlier_ns);

    let again = ask(&mut client, b"statistics\n").unwrap();
    let reader = &again["domains"][0]["longest_reader"];
    assert!(reader["at_least_ns"].as_u64().unwrap() > earlier_ns, "it is the same section still");

    served.go_on();
    served.wait_for("over");
    let domain = &ask(&mut connect(&path), b"statistics\n").unwrap()["domains"][0];
    assert_eq!(
        (&domain["grace_periods"], &domain["grace_periods_expedited"]),
        (&1.into(), &1.into())
    );
    assert_eq!((&domain["longest_reader"], &domain["in_progress"]), (&Value::Null, &Value::Null));
    let latency = domain["latency"].as_array().unwrap();
    assert_eq!((latency.len(), &latency[0]["count"]), (1, &1.into()));
    assert!(latency[0]["below_ns"].as_u64().unwrap() > earlier_ns);

    let output = served.end();
    assert!(output.status.success(), "{output:?}");
    assert!(!path.exists(), "the socket goes with the process");
    assert!(output.stderr.is_empty(), "{output:?}");
}

/// A process that serves, and does nothing else.
fn serve_and_wait() {
    quiescence::synchronize();
    ready();
}

#[test]
fn the_socket_is_its_users_alone() {
    if role().is_some() {
        return serve_and_wait();
    }
    let runtime = runtime_directory();
    let served = Served::in_runtime(this_test!(), runtime.path());
    let path = served.socket(runtime.path());
    assert!(ask(&mut connect(&path), b"statistics\n").is_some());
    let directory = fs::symlink_metadata(path.parent().unwrap()).unwrap();
    assert!(directory.is_dir());
    assert_eq!(directory.mode() & 0o7777, 0o700);
    let socket = fs::symlink_metadata(&path).unwrap();
    assert!(socket.file_type().is_socket());
    assert_eq!((socket.mode() & 0o7777, socket.uid()), (0o600, directory.uid()));

    // The thread takes no signals: handlers run on the program's own threads.
    let tasks = fs::read_dir(format!("/proc/{}/task", served.child.id())).unwrap();
    let statuses =
        tasks.map(|task| fs::read_to_string(task.unwrap().path().join("status")).unwrap());
    let status = statuses.into_iter().find(|status| status.contains("quiescence-stat")).unwrap();
    let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
    let blocked = u64::from_str_radix(blocked.trim(), 16).unwrap();
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGPIPE, libc::SIGUSR1, libc::SIGALRM] {
        assert_ne!(blocked & 1 << (signal - 1), 0, "{signal}");
    }
    assert!(served.end().status.success());
}

/// Only root can try this: it takes two users.
#[test]
fn another_user_is_sent_away_even_where_the_file_lets_him_in() {
    if role().is_some() {
        return serve_and_wait();
    }
    // SAFETY: asks for a number.
    if unsafe { libc::geteuid() } != 0 {
        return expect::skip("root", "second user", "", "run the test as root");
    }
    let open = tempfile::tempdir().unwrap();
    fs::set_permissions(open.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = open.path().join("stats.sock");
    let served = Served::start(this_test!(), &[("QUIESCENCE_STATS", &path)]);
    assert!(ask(&mut connect(&path), b"statistics\n").is_some());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    // SAFETY: the child makes system calls, and leaves by `_exit`.
    match unsafe { libc::fork() } {
        0 => {
            let nobody = 65_534;
            // SAFETY: numbers only.
            let changed = unsafe { libc::setresuid(nobody, nobody, nobody) } == 0;
            let refused = UnixStream::connect(&path)
                .map(|stream| ask(&mut BufReader::new(stream), b"statistics\n"));
            let as_promised = changed && matches!(refused, Ok(None));
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(i32::from(!as_promised)) }
        }
        child => {
            let mut status = 0;
            // SAFETY: waits for the child made above.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0, "let in, or not even heard");
        }
    }
    assert!(ask(&mut connect(&path), b"statistics\n").is_some(), "its own user still is let in");
    assert!(served.end().status.success());
}

#[test]
fn whatever_a_client_does_the_next_one_is_served() {
    if role().is_some() {
        return serve_and_wait();
    }
    let runtime = runtime_directory();
    let served = Served::in_runtime(this_test!(), runtime.path());
    let path = served.socket(runtime.path());
    for nonsense in [b"\n".as_slice(), b"\xff\x00\"\\\n", b"statistics please\n"] {
        let answer = ask(&mut connect(&path), nonsense).unwrap();
        assert!(answer["error"].as_str().unwrap().contains("statistics"), "{answer}");
    }
    assert_eq!(ask(&mut connect(&path), &[b'x'; 100_000]), None, "no line is that long");
    drop(connect(&path));
    connect(&path).get_mut().write_all(b"stat").unwrap();
    // One that never asks, and one that never reads what it asked for.
    let silent = connect(&path);
    let mut greedy = connect(&path);
    greedy.get_mut().set_nonblocking(true).unwrap();
    while greedy.get_mut().write(b"statistics\nstatistics\n").is_ok() {}
    assert!(ask(&mut connect(&path), b"statistics\n").is_some());
    drop((silent, greedy));
    let output = served.end();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_directory_that_others_could_use_is_refused_and_the_program_goes_on() {
    if role().is_some() {
        return serve_and_wait();
    }
    let open = runtime_directory();
    let directory = open.path().join("quiescence");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o750)).unwrap();
    let linked = runtime_directory();
    let elsewhere = runtime_directory();
    std::os::unix::fs::symlink(elsewhere.path(), linked.path().join("quiescence")).unwrap();
    for runtime in [&open, &linked] {
        let mut served = Served::in_runtime(this_test!(), runtime.path());
        let said = served.complains();
        let named = runtime.path().join("quiescence").display().to_string();
        assert!(said.contains("not served") && said.contains(&named), "{said}");
        let output = served.end();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        assert_eq!(fs::read_dir(runtime.path().join("quiescence")).unwrap().count(), 0);
    }
    let mut served = Served::start(this_test!(), &[("QUIESCENCE_STATS", Path::new("yes"))]);
    let said = served.complains();
    assert!(said.contains("1 or an absolute path"), "{said}");
    assert!(served.end().status.success());
}

#[test]
fn what_the_dead_left_is_swept_and_nothing_else() {
    if role().is_some() {
        return serve_and_wait();
    }
    let runtime = runtime_directory();
    let directory = runtime.path().join("quiescence");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    // Numbers beyond those that Linux gives to processes.
    let [dead, alive, file, other] = ["4194305.sock", "4194306.sock", "4194307.sock", "other.sock"];
    drop(UnixListener::bind(directory.join(dead)).unwrap());
    let listener = UnixListener::bind(directory.join(alive)).unwrap();
    fs::write(directory.join(file), "not a socket").unwrap();
    drop(UnixListener::bind(directory.join(other)).unwrap());
    let served = Served::in_runtime(this_test!(), runtime.path());
    assert!(ask(&mut connect(&served.socket(runtime.path())), b"statistics\n").is_some());
    assert!(!directory.join(dead).exists());
    for kept in [alive, file, other] {
        assert!(directory.join(kept).exists(), "{kept}");
    }
    assert!(served.end().status.success());
    drop(listener);
}

#[test]
fn a_named_socket_replaces_what_an_earlier_run_left() {
    if role().is_some() {
        return serve_and_wait();
    }
    let directory = runtime_directory();
    let path = directory.path().join("stats.sock");
    drop(UnixListener::bind(&path).unwrap());
    let served = Served::start(this_test!(), &[("QUIESCENCE_STATS", &path)]);
    let pid = loop {
        // What the earlier run left refuses us; then it is gone, and then it is the new one.
        if let Some(answer) = ask(&mut connect(&path), b"statistics\n") {
            break answer["pid"].clone();
        }
    };
    assert_eq!(pid, served.child.id());
    // Two processes cannot have one socket: the second one says so and continues.
    let mut second = Served::start(this_test!(), &[("QUIESCENCE_STATS", &path)]);
    let said = second.complains();
    assert!(said.contains("in use"), "{said}");
    assert!(second.end().status.success());
    assert!(ask(&mut connect(&path), b"statistics\n").is_some());
    assert!(served.end().status.success());
    assert!(!path.exists());
}

/// In the process that serves: forks a child, which serves as well, and waits for the test.
fn fork_and_wait() {
    // SAFETY: the child is used as a program would use it; the library is meant to work there.
    let child = unsafe { libc::fork() };
    if child == 0 {
        quiescence::synchronize();
        next();
        std::process::exit(0);
    }
    println!("child {child}");
    next();
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
}

#[test]
fn a_child_made_by_fork_serves_for_itself() {
    if role().is_some() {
        quiescence::synchronize();
        println!("ready");
        // So that the thread is there, and has the socket open, when the memory is copied.
        next();
        return fork_and_wait();
    }
    let runtime = runtime_directory();
    let mut served = Served::in_runtime(this_test!(), runtime.path());
    let path = served.socket(runtime.path());
    assert!(ask(&mut connect(&path), b"statistics\n").is_some());
    served.go_on();
    let child: u32 = served.wait_for("child").parse().unwrap();
    let path_of_child = path.with_file_name(format!("{child}.sock"));
    let answer = ask(&mut connect(&path_of_child), b"statistics\n").unwrap();
    assert_eq!(answer["pid"], child);
    let answer = ask(&mut connect(&path), b"statistics\n").unwrap();
    assert_eq!(answer["pid"], served.child.id());
    // Else the parent's clients would find a process there that never replies.
    let (parents, childs) = (sockets(served.child.id()), sockets(child));
    assert!(!parents.is_empty() && parents.is_disjoint(&childs), "{parents:?} {childs:?}");
    let output = served.end();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert!(!path.exists() && !path_of_child.exists());
}

/// A past error: a child that was forked before the parent's thread had come to its lock believed
/// that it had such a thread.
#[test]
fn a_child_forked_as_soon_as_a_grace_period_had_ended_served_nothing() {
    if role().is_some() {
        println!("ready");
        quiescence::synchronize();
        return fork_and_wait();
    }
    let runtime = runtime_directory();
    let mut served = Served::in_runtime(this_test!(), runtime.path());
    let child: u32 = served.wait_for("child").parse().unwrap();
    let path_of_child = served.socket(runtime.path()).with_file_name(format!("{child}.sock"));
    let answer = ask(&mut connect(&path_of_child), b"statistics\n").unwrap();
    assert_eq!(answer["pid"], child);
    assert!(served.end().status.success());
}

/// The sockets that a process has open.
fn sockets(pid: u32) -> BTreeSet<PathBuf> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let open = open.filter_map(|file| fs::read_link(file.unwrap().path()).ok());
    open.filter(|file| file.to_string_lossy().starts_with("socket:")).collect()
}

#[test]
fn who_is_not_asked_serves_nothing() {
    if role().is_some() {
        quiescence::synchronize();
        let tasks = fs::read_dir("/proc/self/task").unwrap();
        let names =
            tasks.map(|task| fs::read_to_string(task.unwrap().path().join("comm")).unwrap());
        let names: Vec<String> = names.collect();
        assert!(!names.iter().any(|name| name.contains("quiescence-stat")), "{names:?}");
        return ready();
    }
    let runtime = runtime_directory();
    let none = [("XDG_RUNTIME_DIR", runtime.path()), ("QUIESCENCE_STATS", Path::new("0"))];
    let output = Served::start(this_test!(), &none).end();
    assert!(output.status.success(), "{output:?}");
    let mut left = String::new();
    fs::read_dir(runtime.path()).unwrap().for_each(|entry| left += &format!("{entry:?}"));
    assert_eq!(left, "");
    assert_eq!(std::io::empty().read(&mut [0]).unwrap(), 0);
}
