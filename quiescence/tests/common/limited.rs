//! Programs that tests run, and that may never end: after a limit they are killed, with all that
//! they have started. No other program is needed for it.
//!
//! Tests of several packages include this file, and so does `xtask`.

// Each of them needs a part of it, and `xtask` passes it on.
#![allow(dead_code, unreachable_pub)]

use std::io::{self, Read};
use std::panic::resume_unwind;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Runs a program to its end, for so long at most: its status is that of a killed one then. Returns
/// what it has said. There is nothing for it to read.
///
/// # Errors
/// If the program cannot be started, or its output not be read.
pub fn output(command: &mut Command, limit: Duration) -> io::Result<Output> {
    lead_a_group(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let (out, err) = (read(child.stdout.take()), read(child.stderr.take()));
    wait(&mut child, limit)?;
    let status = child.wait()?; // it has ended: the same once more
    let said = |reader: thread::JoinHandle<_>| reader.join().unwrap_or_else(|e| resume_unwind(e));
    Ok(Output { status, stdout: said(out)?, stderr: said(err)? })
}

/// Has the program, when it is started, lead a process group of its own: see [`wait`].
pub fn lead_a_group(command: &mut Command) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    #[cfg(not(unix))]
    let _ = command;
}

/// Waits until the leader of a process group has ended. If that takes longer than the limit, the
/// whole group is killed, and there is no status.
///
/// # Errors
/// Of the system, which has none for a child that nothing else waits for.
pub fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if began.elapsed() >= limit {
            // No process waits for it but this one, so the number is still the group's.
            kill(child)?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(unix)]
fn kill(leader: &Child) -> io::Result<()> {
    use rustix::process::{Pid, Signal, kill_process_group};
    Ok(kill_process_group(Pid::from_child(leader), Signal::KILL)?)
}

#[cfg(not(unix))]
fn kill(leader: &mut Child) -> io::Result<()> {
    leader.kill()
}

/// Reads all of it beside the program, which may write to two pipes in any order.
fn read<R: Read + Send + 'static>(pipe: Option<R>) -> thread::JoinHandle<io::Result<Vec<u8>>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut bytes))?;
        Ok(bytes)
    })
}
