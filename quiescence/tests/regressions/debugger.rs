//! A debugger that stops threads inside restartable sequences.
//!
//! A call that it makes in such a thread has the kernel forget the sequence, which then continues
//! in its midst. So a process that is traced when it chooses its path does without sequences.
#![cfg(target_os = "linux")]

use crate::common::*;
use std::io;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use quiescence::{ArcCell, tuning::PerCpuPath};

/// One test of this file, to be run in a new process with this role.
fn again(test: &str, role: &str) -> Command {
    let mut command = command_of(&format!("debugger::{test}"), role);
    command.env_remove("QUIESCENCE_PERCPU");
    command
}

/// Starts it traced by the calling thread from its first instruction on, and lets it run to its
/// end.
fn succeeds_under_a_tracer(mut command: Command) -> bool {
    let traced = || {
        // SAFETY: has no pointers.
        match unsafe { libc::ptrace(libc::PTRACE_TRACEME) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // SAFETY: between `fork` and `exec` it makes a system call and nothing else.
    unsafe { command.pre_exec(traced) };
    run_to_the_end(command.spawn().unwrap())
}

/// Lets a traced process run, each stop passed on, until it ends; whether it ended well.
fn run_to_the_end(mut child: Child) -> bool {
    let id = child.id().cast_signed();
    loop {
        let mut status = 0;
        // Not the processes of tests beside this one: they are children of other threads.
        let of_ours = libc::__WALL | libc::__WNOTHREAD;
        // SAFETY: writes to `status`. A thread that was attached to is waited for under its own id.
        let stopped = unsafe { libc::waitpid(-1, &raw mut status, of_ours) };
        assert_ne!(stopped, -1, "{}", io::Error::last_os_error());
        if libc::WIFSTOPPED(status) {
            let signal = match libc::WSTOPSIG(status) {
                libc::SIGTRAP => 0, // of the `exec`
                signal => signal,
            };
            // SAFETY: the thread is traced by the calling one, and stopped.
            unsafe { libc::ptrace(libc::PTRACE_CONT, stopped, ptr::null_mut::<u8>(), signal) };
        } else if stopped == id {
            child.wait().unwrap_err(); // it has been waited for here
            return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
        }
    }
}

/// Whether a process that is not traced uses sequences here. If not, that is said.
fn has_sequences() -> bool {
    let test = "a_debugger_that_is_there_from_the_start_means_the_portable_path";
    let has = again(test, "is restartable").status().unwrap().success();
    expect::sequences(has)
}

fn load_and_store() {
    let cell = ArcCell::from_pointee(1);
    cell.store(Arc::new(2));
    assert_eq!(*cell.load(), 2);
}

/// As `gdb --args program`, `strace -f program` and `rr record program` are.
#[test]
#[cfg_attr(miri, ignore = "child processes")]
fn a_debugger_that_is_there_from_the_start_means_the_portable_path() {
    let test = "a_debugger_that_is_there_from_the_start_means_the_portable_path";
    match role().as_deref() {
        Some("is portable") => {
            assert_eq!(quiescence::tuning::per_cpu_path(), PerCpuPath::Portable);
            load_and_store();
        }
        Some(_) => {
            assert_eq!(quiescence::tuning::per_cpu_path(), PerCpuPath::Restartable);
            load_and_store();
        }
        None if has_sequences() => {
            assert!(succeeds_under_a_tracer(again(test, "is portable")));
            let mut overridden = again(test, "is restartable");
            overridden.env("QUIESCENCE_PERCPU", "restartable");
            assert!(succeeds_under_a_tracer(overridden));
        }
        None => {}
    }
}

/// A tracer may have one thread only.
#[test]
#[cfg_attr(miri, ignore = "child processes")]
fn a_tracer_of_one_thread_means_the_portable_path() {
    let test = "a_tracer_of_one_thread_means_the_portable_path";
    if role().is_some() {
        let path = thread::spawn(|| {
            println!("\nthread {}", thread_id());
            let _ = io::stdin().read(&mut [0]); // until the tracer is there
            quiescence::tuning::per_cpu_path()
        });
        return assert_eq!(path.join().unwrap(), PerCpuPath::Portable);
    }
    if !has_sequences() {
        return;
    }
    let mut command = again(test, "child");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let thread = said.find_map(|line| line.strip_prefix("thread ")?.parse::<i32>().ok()).unwrap();
    // SAFETY: attaches to a thread of the child's.
    let seized = unsafe {
        libc::ptrace(libc::PTRACE_SEIZE, thread, ptr::null_mut::<u8>(), ptr::null_mut::<u8>())
    };
    assert_eq!(seized, 0, "{}", io::Error::last_os_error());
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    said.for_each(drop);
    assert!(run_to_the_end(child));
}
