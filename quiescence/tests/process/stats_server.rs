//! A process that serves its statistics: to whom, what, and what it survives.
#![cfg(target_os = "linux")]

use crate::common::*;
use crate::serving::*;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufReader, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use serde_json::Value;

#[test]
fn a_process_serves_what_its_domains_do() {
    let serve = || {
        let domain = Domain::builder().name("routes").build();
        let (inside, outside) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
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
    };
    let Some(mut served) = Served::by(this_test!(), serve) else { return };
    let mut client = connect(&served.path);

    let answer = ask(&mut client, b"statistics\n").unwrap();
    assert_eq!((&answer["schema"], &answer["error"]), (&"quiescence-stats/2".into(), &Value::Null));
    assert_eq!(answer["pid"], served.child.id());
    assert!(answer["program"].as_str().unwrap().starts_with("process-"));
    assert!(["membarrier", "portable"].contains(&answer["fences"].as_str().unwrap()));
    let domain = &answer["domains"][0];
    assert_eq!((&answer["domains_total"], &domain["engine"]), (&1.into(), &"adaptive".into()));
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

    let again = ask(&mut client, b"statistics\r\n").unwrap();
    let reader = &again["domains"][0]["longest_reader"];
    assert!(reader["at_least_ns"].as_u64().unwrap() > earlier_ns, "it is the same section still");

    served.go_on();
    served.wait_for("over");
    let domain = &served.statistics().unwrap()["domains"][0];
    assert_eq!(
        (&domain["grace_periods"], &domain["grace_periods_expedited"]),
        (&1.into(), &1.into())
    );
    assert_eq!((&domain["longest_reader"], &domain["in_progress"]), (&Value::Null, &Value::Null));
    let latency = domain["latency"].as_array().unwrap();
    assert_eq!((latency.len(), &latency[0]["count"]), (1, &1.into()));
    assert!(latency[0]["below_ns"].as_u64().unwrap() > earlier_ns);
    let path = served.path.clone();
    let _directory = served.end();
    assert!(!path.exists(), "the socket goes with the process");
}

/// A process that serves, and does nothing else.
fn serve_and_wait() {
    quiescence::synchronize();
    ready();
}

/// The name of a test, for which it starts such processes; in these, nothing.
fn starts_those_that_serve(test: &str) -> Option<&str> {
    if role().is_some() {
        serve_and_wait();
        return None;
    }
    Some(test)
}

#[test]
fn the_socket_is_its_users_alone() {
    let Some(served) = Served::by(this_test!(), serve_and_wait) else { return };
    assert!(served.statistics().is_some());
    let path = &served.path;
    let directory = fs::symlink_metadata(path.parent().unwrap()).unwrap();
    assert!(directory.is_dir());
    assert_eq!(directory.mode() & 0o7777, 0o700);
    let socket = fs::symlink_metadata(path).unwrap();
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
    served.end();
}

const NOBODY: libc::uid_t = 65_534;

/// Starts a program of root's, and sends another user to it. Only root can: it takes two users.
fn another_user_is_sent_away(test: &str) {
    // SAFETY: asks for a number.
    if unsafe { libc::geteuid() } != 0 {
        return expect::skip("root", "second user", "", "run the test as root");
    }
    let open = tempfile::tempdir().unwrap();
    fs::set_permissions(open.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let served = Served::at(test, &open.path().join("stats.sock"));
    assert!(served.statistics().is_some());
    fs::set_permissions(&served.path, fs::Permissions::from_mode(0o666)).unwrap();
    in_child(|| {
        // SAFETY: numbers only.
        assert_eq!(unsafe { libc::setresuid(NOBODY, NOBODY, NOBODY) }, 0);
        let client = UnixStream::connect(&served.path).expect("the file mode lets anyone in");
        assert_eq!(ask(&mut BufReader::new(client), b"statistics\n"), None);
    });
    assert!(served.statistics().is_some(), "its own user still is let in");
    served.end();
}

#[test]
fn another_user_is_sent_away_even_where_the_file_lets_him_in() {
    let Some(test) = starts_those_that_serve(this_test!()) else { return };
    another_user_is_sent_away(test);
}

/// The socket is that user's, and the program is root's again.
#[test]
fn a_user_is_sent_away_whose_rights_root_had_when_it_made_the_socket() {
    if role().is_some() {
        // SAFETY: a number only.
        let act_as = |user| assert_eq!(unsafe { libc::seteuid(user) }, 0);
        act_as(NOBODY);
        quiescence::synchronize();
        let socket = PathBuf::from(std::env::var_os("QUIESCENCE_STATS").unwrap());
        while !socket.exists() {
            thread::yield_now();
        }
        act_as(0);
        return ready();
    }
    another_user_is_sent_away(this_test!());
}

#[test]
fn whatever_a_client_does_the_next_one_is_served() {
    let Some(served) = Served::by(this_test!(), serve_and_wait) else { return };
    let path = &served.path;
    for nonsense in [b"\n".as_slice(), b"\xff\x00\"\\\n", b"statistics please\n"] {
        let answer = ask(&mut connect(path), nonsense).unwrap();
        assert!(answer["error"].as_str().unwrap().contains("statistics"), "{answer}");
        let rest = (&answer["schema"], &answer["domains"]);
        assert_eq!(rest, (&"quiescence-stats/2".into(), &Value::Null));
    }
    assert_eq!(ask(&mut connect(path), &[b'x'; 100_000]), None, "no line is that long");
    drop(connect(path));
    connect(path).get_mut().write_all(b"stat").unwrap();
    // One that never asks, and one that never reads what it asked for.
    let silent = connect(path);
    let mut greedy = connect(path);
    greedy.get_mut().set_nonblocking(true).unwrap();
    while greedy.get_mut().write(b"statistics\nstatistics\n").is_ok() {}
    assert!(served.statistics().is_some());
    drop((silent, greedy));
    served.end();
}

#[test]
fn a_directory_that_others_could_use_is_refused_and_the_program_goes_on() {
    let Some(test) = starts_those_that_serve(this_test!()) else { return };
    let open = private_directory();
    let directory = open.path().join("quiescence");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o750)).unwrap();
    let (linked, elsewhere) = (private_directory(), private_directory());
    std::os::unix::fs::symlink(elsewhere.path(), linked.path().join("quiescence")).unwrap();
    for runtime in [open, linked] {
        let mut served = Served::in_runtime(test, runtime);
        let directory = served.runtime.path().join("quiescence");
        let said = served.complains_of("not served");
        assert!(said.contains(&directory.display().to_string()), "{said}");
        let _runtime = served.end();
        assert_eq!(fs::read_dir(directory).unwrap().count(), 0);
    }
    let mut served = Served::at(test, Path::new("yes"));
    served.complains_of("1 or an absolute path");
    served.end();
}

#[test]
fn what_the_dead_left_is_swept_and_nothing_else() {
    let Some(test) = starts_those_that_serve(this_test!()) else { return };
    let runtime = private_directory();
    let directory = runtime.path().join("quiescence");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    // Numbers beyond those that Linux gives to processes.
    let [dead, alive, file, other] = ["4194305.sock", "4194306.sock", "4194307.sock", "other.sock"];
    drop(UnixListener::bind(directory.join(dead)).unwrap());
    let listener = UnixListener::bind(directory.join(alive)).unwrap();
    fs::write(directory.join(file), "not a socket").unwrap();
    drop(UnixListener::bind(directory.join(other)).unwrap());
    let served = Served::in_runtime(test, runtime);
    assert!(served.statistics().is_some());
    assert!(!directory.join(dead).exists());
    for kept in [alive, file, other] {
        assert!(directory.join(kept).exists(), "{kept}");
    }
    served.end();
    drop(listener);
}

#[test]
fn a_named_socket_replaces_what_an_earlier_run_left() {
    let Some(test) = starts_those_that_serve(this_test!()) else { return };
    let directory = private_directory();
    let path = directory.path().join("stats.sock");
    drop(UnixListener::bind(&path).unwrap());
    let served = Served::at(test, &path);
    // What the earlier run left refuses us; then it is gone, and then it is the new one.
    let answer = std::iter::repeat_with(|| served.statistics()).flatten().next().unwrap();
    assert_eq!(answer["pid"], served.child.id());
    // Two processes cannot have one socket: the second one says so and continues.
    let mut second = Served::at(test, &path);
    second.complains_of("in use");
    second.end();
    assert!(served.statistics().is_some());
    served.end();
    assert!(!path.exists());
}

#[test]
fn a_path_is_as_long_as_the_system_takes_it() {
    let Some(test) = starts_those_that_serve(this_test!()) else { return };
    let directory = private_directory();
    let path = |length| {
        let named = directory.path().as_os_str().len() + 1;
        directory.path().join("s".repeat(length - named))
    };
    let served = Served::at(test, &path(107));
    assert!(served.statistics().is_some());
    served.end();
    // One byte more, and no zero follows it.
    let mut refused = Served::at(test, &path(108));
    refused.complains_of("too long");
    refused.end();
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
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
    assert_eq!(status_of(child), 0);
}

#[test]
fn a_child_made_by_fork_serves_for_itself() {
    let serve = || {
        serve_and_wait();
        // The thread is there, and had the socket open when the memory was copied.
        fork_and_wait();
    };
    let Some(mut served) = Served::by(this_test!(), serve) else { return };
    assert!(served.statistics().is_some());
    served.go_on();
    let (child, path_of_child) = served.child_that_serves();
    assert_eq!(served.statistics().unwrap()["pid"], served.child.id());
    // Else the parent's clients would find a process there that never replies.
    let (parents, childs) = (sockets(served.child.id()), sockets(child));
    assert!(!parents.is_empty() && parents.is_disjoint(&childs), "{parents:?} {childs:?}");
    let path = served.path.clone();
    let _directory = served.end();
    assert!(!path.exists() && !path_of_child.exists());
}

/// A past error: a child that was forked before the parent's thread had come to its lock believed
/// that it had such a thread.
#[test]
fn a_child_forked_as_soon_as_a_grace_period_had_ended_served_nothing() {
    let serve = || {
        println!("ready");
        quiescence::synchronize();
        fork_and_wait();
    };
    let Some(mut served) = Served::by(this_test!(), serve) else { return };
    served.child_that_serves();
    served.end();
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
        let name = |task: std::io::Result<fs::DirEntry>| {
            fs::read_to_string(task.unwrap().path().join("comm")).unwrap()
        };
        let names: Vec<String> = tasks.map(name).collect();
        assert!(!names.iter().any(|name| name.contains("quiescence-stat")), "{names:?}");
        return ready();
    }
    let runtime = private_directory();
    let none = [("XDG_RUNTIME_DIR", runtime.path().into()), ("QUIESCENCE_STATS", "0".into())];
    let runtime = Served::start(this_test!(), &none, runtime).end();
    assert_eq!(fs::read_dir(runtime.path()).unwrap().count(), 0);
}
