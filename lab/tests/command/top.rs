//! `rcu top`: of a process that serves its statistics, of one that does not, and of none.
#![cfg(target_os = "linux")]

use std::ffi::c_int;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::AcqRel;
use std::thread;

use crate::common::schema::accepted_changes;
use crate::common::{expect_code, fails, parsed, rcu};
use quiescence::Domain;
use quiescence::hazard::{HazardDomain, HazardPointer};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A program that uses the library: a test of this file, run in a process of its own.
struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    /// Kept, so that it can write.
    _stdout: BufReader<ChildStdout>,
}

impl Program {
    fn start(test: &str, environment: &[(&str, &Path)]) -> Program {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
        command.env("ROLE", "program").env_remove("QUIESCENCE_STATS");
        command.envs(environment.iter().copied());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        while !line.contains("ready") {
            line.clear();
            assert_ne!(stdout.read_line(&mut line).unwrap(), 0, "it ended before it was ready");
        }
        Program { child, stdin, _stdout: stdout }
    }

    /// One that serves its statistics below this directory, and has made its socket.
    fn serving(test: &str, runtime: &Path) -> Program {
        let environment = [("QUIESCENCE_STATS", Path::new("1")), ("XDG_RUNTIME_DIR", runtime)];
        let program = Program::start(test, &environment);
        wait_for(&runtime.join(format!("quiescence/{}.sock", program.pid())));
        program
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let status = self.child.wait().unwrap();
        assert!(thread::panicking() || status.success(), "{status}");
    }
}

/// In the program: tells the test, and stays until it has seen enough.
fn ready() {
    println!("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

fn wait_for(socket: &Path) {
    while UnixStream::connect(socket).is_err() {
        thread::yield_now();
    }
}

fn has_role() -> bool {
    std::env::var_os("ROLE").is_some()
}

fn runtime_directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
    directory
}

/// Runs `rcu top`, which finds the programs of this directory without arguments.
fn top(runtime: &Path, args: &[&str]) -> std::process::Output {
    let mut command = rcu(["top", "--interval", "0.1"].iter().chain(args));
    command.env("XDG_RUNTIME_DIR", runtime).output().expect("the command starts")
}

#[test]
fn what_hazard_pointers_protect_is_shown() {
    if has_role() {
        static NODES: HazardDomain = HazardDomain::named("nodes");
        let place = AtomicPtr::new(Box::into_raw(Box::new([0_u8; 100])));
        let mut holder = HazardPointer::new();
        // SAFETY: from a box, and retired below, after it was taken out.
        let protected = unsafe { holder.protect(&place) };
        let old = place.swap(std::ptr::null_mut(), AcqRel);
        // SAFETY: from a box, and no thread finds it any more.
        NODES.retire(unsafe { Box::from_raw(old) });
        NODES.barrier();
        ready();
        return drop(protected);
    }
    let runtime = runtime_directory();
    let program = Program::serving("top::what_hazard_pointers_protect_is_shown", runtime.path());
    let pid = program.pid();
    let document = parsed(&top(runtime.path(), &[&pid, "--json", "-"]));
    let domain = &document["processes"][0]["domains"][0];
    assert_eq!((&domain["name"], &domain["objects_protected"]), (&"nodes".into(), &1.into()));
    assert!(domain["bytes_protected"].as_u64().unwrap() >= 100, "{domain}");
    let (shown, _) = expect_code(&top(runtime.path(), &[&pid]), 0);
    assert!(shown.contains("kept by hazard pointers"), "{shown}");
    assert!(shown.contains("1 object"), "{shown}");
}

#[test]
fn a_process_that_serves_is_shown() {
    if has_role() {
        let domain = Domain::builder().name("routes").build();
        return thread::scope(|scope| {
            let reads = || {
                let _guard = domain.read();
                scope.spawn(|| domain.synchronize());
                while domain.statistics().sleeps == 0 {
                    thread::yield_now();
                }
                domain.call(|| ()).unwrap();
                ready();
            };
            thread::Builder::new().name("lookup".into()).spawn_scoped(scope, reads).unwrap();
        });
    }
    let runtime = runtime_directory();
    let program = Program::serving("top::a_process_that_serves_is_shown", runtime.path());
    let pid = program.pid();

    // Found by its own environment, wherever we would look.
    let elsewhere = runtime_directory();
    let document = parsed(&top(elsewhere.path(), &[&pid, "--json", "-"]));
    assert_eq!((&document["schema"], &document["version"]), (&"quiescence/top".into(), &1.into()));
    // A newer library may serve more.
    let accepted = accepted_changes(&document);
    let is_more = |words: &String| {
        words.starts_with("/processes /0") && words.ends_with(" with a member more")
    };
    assert!(!accepted.is_empty() && accepted.iter().all(is_more), "{accepted:?}");
    let process = &document["processes"][0];
    assert_eq!(process["pid"], program.child.id());
    let domain = &process["domains"][0];
    assert_eq!((&domain["name"], &domain["callbacks_waiting"]), (&"routes".into(), &1.into()));
    assert_eq!(domain["longest_reader"]["thread_name"], "lookup");

    // Not a terminal: one line a domain, and the end.
    let (shown, _) = expect_code(&top(elsewhere.path(), &[&pid]), 0);
    let expected = ["periods/s", "routes", "adaptive", "lookup (", "at least", "top.rs:"];
    for expected in expected {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert_eq!(shown.lines().count(), 1, "{shown}");

    // Listed, where one looks for it.
    let (listed, _) = expect_code(&top(runtime.path(), &[]), 0);
    assert!(listed.lines().any(|line| line.trim_start().starts_with(&pid)), "{listed}");
    let document = parsed(&top(runtime.path(), &["--json", "-"]));
    let mut listed = document["processes"].as_array().unwrap().iter();
    assert!(listed.any(|process| process["pid"] == program.child.id()), "{document}");
}

#[test]
fn a_process_that_does_not_serve_is_told_how_it_would() {
    if has_role() {
        quiescence::synchronize();
        return ready();
    }
    let runtime = runtime_directory();
    let test = "top::a_process_that_does_not_serve_is_told_how_it_would";
    let program = Program::start(test, &[("XDG_RUNTIME_DIR", runtime.path())]);
    let (shown, said) = expect_code(&top(runtime.path(), &[&program.pid()]), 4);
    assert!(said.contains("QUIESCENCE_STATS=1"), "{said}");
    assert!(shown.is_empty(), "{shown}");
    // A socket without anybody behind it is no better.
    drop(listener(runtime.path(), program.child.id()));
    fails(&top(runtime.path(), &[&program.pid()]), 4, "QUIESCENCE_STATS=1");
}

#[test]
fn who_answers_nonsense_is_not_believed() {
    let runtime = runtime_directory();
    let listener = listener(runtime.path(), std::process::id());
    let pid = std::process::id().to_string();
    let answers = ["{}\n", "", "{\"schema\": \"quiescence-stats/9\"}\n"];
    let liar = thread::spawn(move || {
        for answer in answers {
            let (mut client, _) = listener.accept().unwrap();
            let mut request = String::new();
            BufReader::new(client.try_clone().unwrap()).read_line(&mut request).unwrap();
            assert_eq!(request, "statistics\n");
            client.write_all(answer.as_bytes()).unwrap();
        }
    });
    for reason in ["cannot read", "without an answer", "cannot read"] {
        let (shown, said) = expect_code(&top(runtime.path(), &[&pid]), 4);
        assert!(said.contains(reason) && shown.is_empty(), "{said}");
    }
    liar.join().unwrap();
}

/// A listener where `rcu top` looks for that of this process.
fn listener(runtime: &Path, pid: u32) -> UnixListener {
    let directory = runtime.join("quiescence");
    fs::create_dir(&directory).unwrap();
    UnixListener::bind(directory.join(format!("{pid}.sock"))).unwrap()
}

/// Connecting waited without a limit while nobody accepted and the queue of connections was full.
#[test]
fn who_accepts_nobody_is_not_waited_for() {
    unsafe extern "C" {
        fn listen(socket: c_int, backlog: c_int) -> c_int;
    }
    let runtime = runtime_directory();
    let listener = listener(runtime.path(), std::process::id());
    // SAFETY: a socket of this test's.
    assert_eq!(unsafe { listen(listener.as_raw_fd(), 0) }, 0);
    let path = listener.local_addr().unwrap();
    let _queued = UnixStream::connect_addr(&path).unwrap();
    let pid = std::process::id().to_string();
    fails(&top(runtime.path(), &[&pid]), 4, "does not answer");
    // Who asks all processes does without it.
    expect_code(&top(runtime.path(), &[]), 0);
}

/// Ctrl-C was not looked at before the answer was there, and a second one left the terminal
/// without echo.
#[test]
fn ctrl_c_ends_the_wait_for_an_answer() {
    let runtime = runtime_directory();
    let listener = listener(runtime.path(), std::process::id());
    let pid = std::process::id().to_string();
    for (args, dribbles) in [(&[&*pid][..], false), (&[&pid], true), (&[], false)] {
        let mut command = rcu(["top"].iter().chain(args));
        command.env("XDG_RUNTIME_DIR", runtime.path()).stderr(Stdio::piped());
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        let (mut client, _) = listener.accept().unwrap();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        while dribbles && client.write_all(b" ").is_ok() {}
        fails(&child.wait_with_output().unwrap(), 130, "interrupted before");
    }
}

/// A process takes its socket away before it ends, and was told to start with QUIESCENCE_STATS=1.
#[test]
fn a_process_that_ends_while_it_is_watched_is_said_to_have_ended() {
    let runtime = runtime_directory();
    let mut command = Command::new("sh");
    let mut child = command.env("XDG_RUNTIME_DIR", runtime.path()).stdin(Stdio::piped()).spawn();
    let child = child.as_mut().unwrap();
    let (pid, stdin) = (child.id(), child.stdin.take());
    let listener = listener(runtime.path(), pid);
    let process = thread::spawn(move || {
        let answer = format!("{{\"schema\": \"quiescence-stats/2\", \"pid\": {pid}}}\n");
        for answer in [&*answer, ""] {
            let (mut client, _) = listener.accept().unwrap();
            BufReader::new(client.try_clone().unwrap()).read_line(&mut String::new()).unwrap();
            client.write_all(answer.as_bytes()).unwrap();
        }
        drop(stdin);
    });
    let (shown, _) = expect_code(&top(runtime.path(), &[&pid.to_string()]), 0);
    assert!(shown.contains("has ended"), "{shown}");
    process.join().unwrap();
    assert!(child.wait().unwrap().success());
}

/// It was told to start with QUIESCENCE_STATS=1.
#[test]
fn a_process_that_has_ended_is_told_apart_from_one_that_does_not_serve() {
    let mut child = Command::new("sh").args(["-c", "exit"]).spawn().unwrap();
    let pid = child.id().to_string();
    let status = || fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    while !status().contains("State:\tZ") {
        thread::yield_now();
    }
    let runtime = runtime_directory();
    fails(&top(runtime.path(), &[&pid]), 2, &format!("there is no process {pid}"));
    assert!(child.wait().unwrap().success());
}

/// Of a child that has its parent's environment the parent's figures were shown.
#[test]
fn a_child_is_not_taken_for_its_parent() {
    if has_role() {
        quiescence::synchronize();
        return ready();
    }
    let runtime = runtime_directory();
    let socket = runtime.path().join("app.sock");
    let environment = [("QUIESCENCE_STATS", &*socket)];
    let test = "top::a_child_is_not_taken_for_its_parent";
    let program = Program::start(test, &environment);
    wait_for(&socket);
    // A shell that waits for words, which do not come.
    let mut child = Command::new("sh").envs(environment).stdin(Stdio::piped()).spawn().unwrap();
    parsed(&top(runtime.path(), &[&program.pid(), "--json", "-"]));
    fails(&top(runtime.path(), &[&child.id().to_string()]), 4, "does not serve");
    // The list has no process whose socket is elsewhere, and said that none serves.
    let (listed, _) = expect_code(&top(runtime.path(), &[]), 0);
    assert!(listed.contains("rcu top PID"), "{listed}");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn processes_that_are_not_ours_are_named() {
    let runtime = runtime_directory();
    // Unless we are the same user as the first process.
    let of_first = fs::metadata("/proc/1").map(|found| std::os::unix::fs::MetadataExt::uid(&found));
    let ours = fs::metadata("/proc/self").map(|found| std::os::unix::fs::MetadataExt::uid(&found));
    if let (Ok(of_first), Ok(ours)) = (of_first, ours)
        && of_first != ours
    {
        fails(&top(runtime.path(), &["1"]), 2, "another user");
    }
}
