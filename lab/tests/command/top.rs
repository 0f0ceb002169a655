//! `rcu top`: of a process that serves its statistics, of one that does not, and of none.
#![cfg(target_os = "linux")]

use std::ffi::c_int;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::AcqRel;
use std::thread;

use crate::common::again::*;
use crate::common::schema::accepted_changes;
use crate::common::{expect_code, fails, parsed, rcu};
use crate::serving::*;
use quiescence::Domain;
use quiescence::hazard::{HazardDomain, HazardPointer};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// As [`Served::by`], once it has made its socket; and its number.
fn serving(test: &str, serve: impl FnOnce()) -> Option<(Served, String)> {
    let served = Served::by(test, serve)?;
    drop(connect(&served.path));
    let pid = served.child.id().to_string();
    Some((served, pid))
}

/// Runs `rcu top`, which finds the programs of this directory without arguments.
fn top(runtime: &Path, args: &[&str]) -> std::process::Output {
    let mut command = rcu(["top", "--interval", "0.1"].iter().chain(args));
    command.env("XDG_RUNTIME_DIR", runtime).output().expect("the command starts")
}

#[test]
fn what_hazard_pointers_protect_is_shown() {
    let serve = || {
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
        drop(protected);
    };
    let Some((served, pid)) = serving(this_test!(), serve) else { return };
    let document = parsed(&top(served.runtime.path(), &[&pid, "--json", "-"]));
    let domain = &document["processes"][0]["domains"][0];
    assert_eq!((&domain["name"], &domain["objects_protected"]), (&"nodes".into(), &1.into()));
    assert!(domain["bytes_protected"].as_u64().unwrap() >= 100, "{domain}");
    let (shown, _) = expect_code(&top(served.runtime.path(), &[&pid]), 0);
    assert!(shown.contains("kept by hazard pointers"), "{shown}");
    assert!(shown.contains("1 object"), "{shown}");
    served.end();
}

#[test]
fn a_process_that_serves_is_shown() {
    let serve = || {
        let domain = Domain::builder().name("routes").build();
        thread::scope(|scope| {
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
    };
    let Some((served, pid)) = serving(this_test!(), serve) else { return };

    // Found by its own environment, wherever we would look.
    let elsewhere = private_directory();
    let document = parsed(&top(elsewhere.path(), &[&pid, "--json", "-"]));
    assert_eq!((&document["schema"], &document["version"]), (&"quiescence/top".into(), &1.into()));
    // A newer library may serve more.
    let accepted = accepted_changes(&document);
    let is_more = |words: &String| {
        words.starts_with("/processes/0") && words.ends_with(" with a member more")
    };
    assert!(!accepted.is_empty() && accepted.iter().all(is_more), "{accepted:?}");
    let process = &document["processes"][0];
    assert_eq!(process["pid"], served.child.id());
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
    let (listed, _) = expect_code(&top(served.runtime.path(), &[]), 0);
    assert!(listed.lines().any(|line| line.trim_start().starts_with(&pid)), "{listed}");
    let document = parsed(&top(served.runtime.path(), &["--json", "-"]));
    let mut listed = document["processes"].as_array().unwrap().iter();
    assert!(listed.any(|process| process["pid"] == served.child.id()), "{document}");
    served.end();
}

#[test]
fn a_process_that_does_not_serve_is_told_how_it_would() {
    if role().is_some() {
        quiescence::synchronize();
        return ready();
    }
    let runtime = private_directory();
    let environment = [("XDG_RUNTIME_DIR", runtime.path().into())];
    let program = Served::start(this_test!(), &environment, runtime);
    let (runtime, pid) = (program.runtime.path(), program.child.id());
    let (shown, said) = expect_code(&top(runtime, &[&pid.to_string()]), 4);
    assert!(said.contains("QUIESCENCE_STATS=1"), "{said}");
    assert!(shown.is_empty(), "{shown}");
    // A socket without anybody behind it is no better.
    drop(listener(runtime, pid));
    fails(&top(runtime, &[&pid.to_string()]), 4, "QUIESCENCE_STATS=1");
    program.end();
}

#[test]
fn who_answers_nonsense_is_not_believed() {
    let (runtime, listener, pid) = listening();
    let answers = ["{}\n", "", "{\"schema\": \"quiescence-stats/9\"}\n"];
    let liar = thread::spawn(move || {
        for answer in answers {
            answer_with(listener.accept().unwrap().0, answer);
        }
    });
    for reason in ["cannot read", "without an answer", "cannot read"] {
        let (shown, said) = expect_code(&top(runtime.path(), &[&pid]), 4);
        assert!(said.contains(reason) && shown.is_empty(), "{said}");
    }
    liar.join().unwrap();
}

/// Answers the client's request with this.
fn answer_with(mut client: UnixStream, answer: &str) {
    let mut request = String::new();
    BufReader::new(client.try_clone().unwrap()).read_line(&mut request).unwrap();
    assert_eq!(request, "statistics\n");
    client.write_all(answer.as_bytes()).unwrap();
}

/// A listener where `rcu top` looks for that of this process.
fn listener(runtime: &Path, pid: u32) -> UnixListener {
    let directory = runtime.join("quiescence");
    fs::create_dir_all(&directory).unwrap();
    UnixListener::bind(directory.join(format!("{pid}.sock"))).unwrap()
}

/// This process, which listens where `rcu top` looks in the directory: and its number.
fn listening() -> (TempDir, UnixListener, String) {
    let (runtime, pid) = (private_directory(), std::process::id());
    let listener = listener(runtime.path(), pid);
    (runtime, listener, pid.to_string())
}

/// Connecting waited without a limit while nobody accepted and the queue of connections was full.
#[test]
fn who_accepts_nobody_is_not_waited_for() {
    unsafe extern "C" {
        fn listen(socket: c_int, backlog: c_int) -> c_int;
    }
    let (runtime, listener, pid) = listening();
    // SAFETY: a socket of this test's.
    assert_eq!(unsafe { listen(listener.as_raw_fd(), 0) }, 0);
    let path = listener.local_addr().unwrap();
    let _queued = UnixStream::connect_addr(&path).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| fails(&top(runtime.path(), &[&pid]), 4, "does not answer"));
        // Who asks all processes does without it.
        expect_code(&top(runtime.path(), &[]), 0);
    });
}

/// Two processes that are asked before either answers, which then give these numbers, are both
/// listed.
#[track_caller]
fn both_are_listed(numbers: [u32; 2]) {
    let runtime = private_directory();
    let listeners = [1, 2].map(|place| listener(runtime.path(), place));
    let processes = thread::spawn(move || {
        let clients = listeners.map(|listener| listener.accept().unwrap().0);
        for (client, pid) in clients.into_iter().zip(numbers) {
            let answer = r#""schema": "quiescence-stats/2", "program": "together", "pid""#;
            answer_with(client, &format!("{{{answer}: {pid}}}\n"));
        }
    });
    let document = parsed(&top(runtime.path(), &["--json", "-"]));
    let listed = document["processes"].as_array().unwrap().iter();
    assert_eq!(listed.filter(|process| process["program"] == "together").count(), 2);
    processes.join().unwrap();
}

/// One that has stopped was waited for before the next was asked.
#[test]
fn a_process_that_does_not_answer_holds_up_the_question_to_others() {
    both_are_listed([1, 2]);
}

/// It was shown in the place of the one that has the number.
#[test]
fn a_process_that_gives_anothers_number_hides_it() {
    both_are_listed([7, 7]);
}

/// Its socket is the superuser's, who was sent away: the process is another user's by then.
#[test]
fn nobody_may_watch_a_program_that_has_given_up_rights() {
    unsafe extern "C" {
        fn setuid(user: u32) -> c_int;
    }
    let serve = || {
        quiescence::synchronize();
        ready();
        // SAFETY: a number only.
        assert_eq!(unsafe { setuid(65_534) }, 0);
        println!("given up");
        next();
    };
    if !rustix::process::geteuid().is_root() {
        return; // only the superuser can start one
    }
    let Some((mut served, pid)) = serving(this_test!(), serve) else { return };
    served.go_on();
    served.wait_for("given up");
    let document = parsed(&top(served.runtime.path(), &[&pid, "--json", "-"]));
    assert_eq!(document["processes"][0]["pid"], served.child.id());
    served.end();
}

/// Its user could have the superuser send words to any socket of the superuser's.
#[test]
fn the_environment_of_anothers_process_leads_to_a_socket_of_ours() {
    if !rustix::process::geteuid().is_root() {
        return; // only the superuser can start one
    }
    let runtime = private_directory();
    let socket = runtime.path().join("ours.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    listener.set_nonblocking(true).unwrap();
    let mut shell = Command::new("sh");
    let shell = shell.uid(65_534).env("QUIESCENCE_STATS", &socket).stdin(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    fails(&top(runtime.path(), &[&child.id().to_string()]), 2, "another user");
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

/// Ctrl-C was not looked at before the answer was there, and a second one left the terminal
/// without echo.
#[test]
fn ctrl_c_ends_the_wait_for_an_answer() {
    let (runtime, listener, pid) = listening();
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
    let runtime = private_directory();
    let mut command = Command::new("sh");
    let mut child = command.env("XDG_RUNTIME_DIR", runtime.path()).stdin(Stdio::piped()).spawn();
    let child = child.as_mut().unwrap();
    let (pid, stdin) = (child.id(), child.stdin.take());
    let listener = listener(runtime.path(), pid);
    let process = thread::spawn(move || {
        let answer = format!("{{\"schema\": \"quiescence-stats/2\", \"pid\": {pid}}}\n");
        for answer in [&*answer, ""] {
            answer_with(listener.accept().unwrap().0, answer);
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
    let runtime = private_directory();
    fails(&top(runtime.path(), &[&pid]), 2, &format!("there is no process {pid}"));
    assert!(child.wait().unwrap().success());
}

/// Of a child that has its parent's environment the parent's figures were shown.
#[test]
fn a_child_is_not_taken_for_its_parent() {
    if role().is_some() {
        quiescence::synchronize();
        return ready();
    }
    let runtime = private_directory();
    let socket = runtime.path().join("app.sock");
    let program = Served::at(this_test!(), &socket);
    drop(connect(&socket));
    // A shell that waits for words, which do not come.
    let mut shell = Command::new("sh");
    let mut child = shell.env("QUIESCENCE_STATS", &socket).stdin(Stdio::piped()).spawn().unwrap();
    parsed(&top(runtime.path(), &[&program.child.id().to_string(), "--json", "-"]));
    fails(&top(runtime.path(), &[&child.id().to_string()]), 4, "does not serve");
    // The list has no process whose socket is elsewhere, and said that none serves.
    let (listed, _) = expect_code(&top(runtime.path(), &[]), 0);
    assert!(listed.contains("rcu top PID"), "{listed}");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    program.end();
}

#[test]
fn processes_that_are_not_ours_are_named() {
    let runtime = private_directory();
    // Unless we are the same user as the first process.
    let user = |process: &str| Some(fs::metadata(Path::new("/proc").join(process)).ok()?.uid());
    let [of_first, ours] = ["1", "self"].map(user);
    if of_first.is_some() && ours.is_some() && of_first != ours {
        fails(&top(runtime.path(), &["1"]), 2, "another user");
    }
}
