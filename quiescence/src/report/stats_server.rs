//! Serves the process's statistics: `rcu top` asks, and a thread of the library answers.
//!
//! Only if `QUIESCENCE_STATS` in the environment is 1, or an absolute path for the socket. The
//! thread starts when the library is used for the first time; in a child made by `fork`, with the
//! first grace period there. It serves one client at a time, for at most [`PATIENCE_NS`]. A request
//! is one line, and the answer is one line of JSON ([`snapshot`]). An error is printed once on
//! standard error, and never stops the program.

mod snapshot;

use std::ffi::CString;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::os::forking::{AtFork, ForkMutex};
use crate::os::on_drop::OnDrop;
use crate::os::socket::{self, Place};
use crate::os::sync::{Rank, const_unless_loom};
use crate::os::{clock, environment, exit, nap};

/// The longest time, in nanoseconds, for which a client is served. It may connect again.
const PATIENCE_NS: u64 = 2_000_000_000;
/// The largest number of bytes in a request.
const LINE_MAX: usize = 64;
/// How long the thread pauses after `accept` has failed: the process may be short of descriptors or
/// memory.
const REST: Duration = Duration::from_millis(100);

/// Whether nothing is left to do: the thread has been started, or is not wanted.
static SETTLED: AtomicBool = AtomicBool::new(false);

const_unless_loom! {
    /// The thread's open descriptors. Locked while they change, and across a `fork`.
    static OPEN: ForkMutex<Open> =
        ForkMutex::new(Rank::StatsServer, Open { door: None, client: None });
}

struct Open {
    door: Option<RawFd>,
    client: Option<RawFd>,
}

/// Starts the thread, if it is wanted and has not been started. The caller holds none of the
/// library's locks.
#[inline]
pub(crate) fn attend() {
    // Relaxed: `settle` checks again.
    if !SETTLED.load(Relaxed) {
        settle();
    }
}

#[cold]
fn settle() {
    OPEN.list(); // first, so that a child settles it again wherever the fork comes
    if SETTLED.swap(true, Relaxed) {
        return;
    }
    let Some(value) = environment::c_string(c"QUIESCENCE_STATS") else { return };
    if socket::is_privileged() {
        return;
    }
    match wanted(value) {
        Ok(None) => {}
        Ok(Some(place)) => start(place),
        Err(reason) => say(&reason),
    }
}

/// Where to serve. Reads the environment on the thread that uses the library, so that the program
/// knows when it may change the environment.
fn wanted(value: CString) -> Result<Option<Place>, String> {
    match value.to_bytes() {
        b"" | b"0" => Ok(None),
        b"1" => {
            let session = environment::c_string(c"XDG_RUNTIME_DIR");
            Ok(Some(Place::Usual { session }))
        }
        [b'/', ..] => Ok(Some(Place::At(value))),
        other => {
            let mut said = String::new();
            environment::escaped(other, &mut |byte| said.push(char::from(byte)));
            Err(format!("QUIESCENCE_STATS is \"{said}\", and should be 1 or an absolute path"))
        }
    }
}

fn start(place: Place) {
    if let Err(errno) = exit::start_thread("quiescence-stats", Box::new(|| run(place))) {
        say(&format!("no thread: {}", io::Error::from_raw_os_error(errno)));
    }
}

/// Prints why statistics are not served.
fn say(reason: &str) {
    let text = format!("quiescence: statistics are not served: {reason}\n");
    environment::say(text.as_bytes());
}

fn run(place: Place) {
    let mut open = OPEN.lock();
    let door = match socket::open(place) {
        Ok(door) => door,
        Err(reason) => {
            drop(open);
            return say(&reason);
        }
    };
    open.door = Some(door);
    drop(open);
    // Closed also if a bug of the library ends the thread: clients would wait for it for ever.
    let _door = closing(|open| &mut open.door);
    loop {
        // Whatever it returns, a client is accepted if there is one.
        socket::wait(door, libc::POLLIN, None);
        let mut open = OPEN.lock();
        let admitted = socket::admit(door);
        open.client = admitted.unwrap_or(None);
        drop(open);
        match admitted {
            Ok(None) => {}
            Ok(Some(client)) => {
                let _client = closing(|open| &mut open.client);
                // `None` if the client has closed its side, or took too long: no error.
                let _ = serve(client);
            }
            Err(_) => nap::nap(REST),
        }
    }
}

/// Closes a descriptor when it is dropped.
fn closing(which: fn(&mut Open) -> &mut Option<RawFd>) -> OnDrop<impl FnMut()> {
    OnDrop(move || which(&mut OPEN.lock()).take().into_iter().for_each(socket::close))
}

/// Serves a client's requests for at most [`PATIENCE_NS`].
fn serve(client: RawFd) -> Option<()> {
    let until_ns = clock::monotonic_ns() + PATIENCE_NS;
    let mut receive = |free: &mut [u8]| socket::receive(client, free, until_ns);
    each_line(&mut receive, &mut |line| {
        let answer = answer(line) + "\n";
        socket::send(client, answer.as_bytes(), until_ns)
    })
}

/// Calls `f` with each line of what `read` delivers, without its line break. `read` writes into the
/// room that it is given, and returns how many bytes it wrote. Returns `None` once one of them has
/// returned that, or a line is too long.
fn each_line(
    read: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    f: &mut dyn FnMut(&[u8]) -> Option<()>,
) -> Option<()> {
    let (mut bytes, mut length) = ([0; LINE_MAX], 0);
    loop {
        let free = bytes.get_mut(length..).filter(|free| !free.is_empty())?;
        length += read(free)?;
        while let Some(end) = bytes[..length].iter().position(|byte| *byte == b'\n') {
            f(&bytes[..end])?;
            bytes.copy_within(end + 1..length, 0);
            length -= end + 1;
        }
    }
}

fn answer(request: &[u8]) -> String {
    match request.trim_ascii() {
        b"statistics" => snapshot::Process.to_string(),
        _ => snapshot::of_mistake("unknown request; there is: statistics"),
    }
}

impl AtFork for Open {
    /// The child has no such thread, and closes its copies of the parent's descriptors.
    fn in_child(&mut self) {
        [self.door.take(), self.client.take()].into_iter().flatten().for_each(socket::close);
        SETTLED.store(false, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn requests_are_lines_however_they_arrive() {
        let longest = "x".repeat(LINE_MAX - 1);
        let lines_of = |parts: &[&str]| {
            let (mut parts, mut lines) = (parts.iter(), Vec::new());
            let mut read = |free: &mut [u8]| parts.next()?.as_bytes().read(free).ok();
            let ended = each_line(&mut read, &mut |line| {
                lines.push(String::from_utf8(line.to_vec()).unwrap());
                Some(())
            });
            assert_eq!(ended, None);
            (lines, parts.count())
        };
        let (lines, unread) = lines_of(&["stat", "istics\nmore", "\n\nrest", &longest, "\n"]);
        assert_eq!((lines, unread), (["statistics", "more", ""].map(String::from).into(), 1));
        let whole = lines_of(&[&longest, "\n", &longest, "x", "\n"]);
        assert_eq!(whole, (vec![longest], 1), "no line is longer");
        assert_eq!(lines_of(&[]), (Vec::new(), 0), "nobody there");
    }

    #[test]
    fn the_environment_says_where() {
        let place = |value: &str| wanted(CString::new(value).unwrap());
        assert!(matches!(place("0"), Ok(None)) && matches!(place(""), Ok(None)));
        assert!(matches!(place("1"), Ok(Some(Place::Usual { .. }))));
        assert!(matches!(place("/a/b"), Ok(Some(Place::At(path))) if path.as_c_str() == c"/a/b"));
        assert!(place("yes\n").err().is_some_and(|reason| reason.contains("\"yes\\n\"")));
        assert!(place("stats.sock").is_err());
    }
}
