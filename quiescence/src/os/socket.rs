//! The socket on which a process serves its statistics: where it is, who may use it, and when it is
//! removed.
//!
//! Only its user can access its directory, so no other user can reach the socket. The socket's mode
//! and the client's credentials, which the kernel reports, are checked as well.
//!
//! By system calls: the standard library's way is several times as much code, which every program
//! would carry.

use std::ffi::{CStr, CString};
use std::io;
use std::mem;
use std::os::fd::RawFd;
use std::process;

use libc::{c_int, c_short};

use super::calls::{self, Result};
use super::sync::{self, Mutex, Rank, const_unless_loom};
use super::{clock, environment, files};

/// Files that are looked at, to see whether the process that left them is gone.
const SWEEP_MAX: usize = 4_096;

const_unless_loom! {
    /// The file to take away at the end, and the process that made it: not its children.
    static MADE: Mutex<Option<(u32, CString)>> = Mutex::new(Rank::SocketFile, None);
}

/// Whether this program runs with rights that its caller does not have: then the caller's
/// environment is not to be obeyed.
pub(crate) fn is_privileged() -> bool {
    // SAFETY: reads what the kernel told the process at its start.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Where a process serves.
pub(crate) enum Place {
    At(CString),
    /// Where `rcu top` looks first: below the directory of the user's session, if there is one.
    Usual {
        session: Option<CString>,
    },
}

/// Listens. The error says what is wrong, and where.
pub(crate) fn open(place: Place) -> std::result::Result<RawFd, String> {
    let path = match place {
        Place::At(path) => path,
        Place::Usual { session } => {
            let directory = directory(session)?;
            sweep(&directory);
            below(&directory, &format!("{}.sock", process::id()))
        }
    };
    let door = socket().and_then(|door| {
        let listens = listen(door, &path);
        listens.inspect_err(|_| close(door)).map(|()| door)
    });
    let door = door.map_err(|errno| failed(&path, errno))?;
    remove_at_exit(path);
    Ok(door)
}

/// What failed at this path.
fn failed(path: &CStr, errno: c_int) -> String {
    format!("{}: {}", path.to_string_lossy(), io::Error::from_raw_os_error(errno))
}

/// The path of a file in this directory.
fn below(directory: &CStr, name: &str) -> CString {
    let mut path = directory.to_bytes().to_vec();
    path.push(b'/');
    path.extend_from_slice(name.as_bytes());
    CString::new(path).unwrap_or_default() // neither part has a zero
}

/// The directory of this user's sockets, which no other user can write to or look into.
fn directory(session: Option<CString>) -> std::result::Result<CString, String> {
    let directory = match session {
        Some(parent) if is_own_directory(&parent, 0o022) => below(&parent, "quiescence"),
        _ => below(c"/tmp", &format!("quiescence-{}", user())),
    };
    // SAFETY: a path that ends with a zero.
    match calls::call(|| unsafe { libc::mkdir(directory.as_ptr(), 0o700) }) {
        Err(errno) if errno != libc::EEXIST => Err(failed(&directory, errno)),
        _ if is_own_directory(&directory, 0o077) => Ok(directory),
        _ => Err(format!(
            "{} is not a directory that belongs to this user alone (mode 0700)",
            directory.to_string_lossy()
        )),
    }
}

/// Whether it is a directory, not a link to one, of this user, and gives others none of these
/// rights.
fn is_own_directory(path: &CStr, others: libc::mode_t) -> bool {
    path.to_bytes().starts_with(b"/") && is_own(path, libc::S_IFDIR, others)
}

/// Whether there is a file of this type, not a link to one, which belongs to this user, and gives
/// others none of these rights.
fn is_own(path: &CStr, kind: libc::mode_t, others: libc::mode_t) -> bool {
    // SAFETY: plain data, for which zero is a value.
    let mut found: libc::stat64 = unsafe { mem::zeroed() };
    // SAFETY: a path that ends with a zero; writes to `found`.
    let told = calls::call(|| unsafe { libc::lstat64(path.as_ptr(), &raw mut found) });
    told.is_ok()
        && found.st_mode & libc::S_IFMT == kind
        && found.st_uid == user()
        && found.st_mode & others == 0
}

/// Takes away what processes left that ended in haste: no process listens, and their number is
/// free.
fn sweep(directory: &CStr) {
    files::each_in(directory, SWEEP_MAX, &mut |name| {
        let number = name.to_bytes().strip_suffix(b".sock");
        let process = number.and_then(environment::parse::<libc::pid_t>);
        if let (Some(process @ 1..), Ok(name)) = (process, name.to_str())
            && is_gone(process)
        {
            remove_if_deserted(&below(directory, name));
        }
    });
}

fn is_gone(process: libc::pid_t) -> bool {
    // SAFETY: sends no signal, and asks whether it could.
    calls::call(|| unsafe { libc::kill(process, 0) }) == Err(libc::ESRCH)
}

/// By whose rights this process acts.
fn user() -> libc::uid_t {
    // SAFETY: asks for a number.
    unsafe { libc::geteuid() }
}

/// The user whose process has connected, as the kernel states.
fn user_of(client: RawFd) -> Option<libc::uid_t> {
    // SAFETY: plain data, for which zero is a value.
    let mut found: libc::ucred = unsafe { mem::zeroed() };
    let mut bytes = size_of_val(&found) as libc::socklen_t;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    let place = (&raw mut found).cast();
    // SAFETY: writes to `found`, as many bytes as it has.
    let told = unsafe { libc::getsockopt(client, level, name, place, &raw mut bytes) };
    (told == 0).then_some(found.uid)
}

/// A socket without a name. Nothing that is done with it waits.
fn socket() -> Result<RawFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: makes a descriptor.
    calls::call(|| unsafe { libc::socket(libc::AF_UNIX, kind, 0) })
}

/// Calls `bind` or `connect`.
fn with_address(
    f: unsafe extern "C" fn(RawFd, *const libc::sockaddr, libc::socklen_t) -> c_int,
    socket: RawFd,
    path: &CStr,
) -> Result<()> {
    // SAFETY: plain data, for which zero is a value.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let path = path.to_bytes_with_nul();
    if path.len() > address.sun_path.len() {
        return Err(libc::ENAMETOOLONG);
    }
    for (to, from) in address.sun_path.iter_mut().zip(path) {
        *to = libc::c_char::from_ne_bytes([*from]); // signed or not, by the architecture
    }
    let bytes = size_of_val(&address) as libc::socklen_t;
    // SAFETY: one of the two, with an address of this length.
    calls::call(|| unsafe { f(socket, (&raw const address).cast(), bytes) }).map(drop)
}

/// Removes the file if it is a socket of this user that no process listens on.
fn remove_if_deserted(path: &CStr) -> bool {
    is_own(path, libc::S_IFSOCK, 0)
        && socket().is_ok_and(|client| {
            let connected = with_address(libc::connect, client, path);
            close(client);
            connected == Err(libc::ECONNREFUSED)
        })
        && remove(path)
}

fn remove(path: &CStr) -> bool {
    // SAFETY: a path that ends with a zero.
    unsafe { libc::unlink(path.as_ptr()) == 0 }
}

/// Gives the socket its name, in place of one that an earlier program left, be it of this process.
fn listen(door: RawFd, path: &CStr) -> Result<()> {
    // The name takes the socket's mode, less the umask. Between the name and `listen` nothing else
    // is done: another process of this user takes the name for one that was left.
    // SAFETY: a socket of our own.
    calls::call(|| unsafe { libc::fchmod(door, 0o600) })?;
    match with_address(libc::bind, door, path) {
        Err(libc::EADDRINUSE) if remove_if_deserted(path) => with_address(libc::bind, door, path)?,
        bound => bound?,
    }
    // SAFETY: as above.
    let listens = calls::call(|| unsafe { libc::listen(door, 128) });
    listens.inspect_err(|_| _ = remove(path)).map(drop)
}

/// Has the file taken away at the orderly end of this process.
fn remove_at_exit(path: CString) {
    extern "C" fn remove_made() {
        // If somebody is at it just now, the file stays, and is swept by the next thread.
        if let Some(made) = sync::try_lock(&MADE).as_deref_mut().and_then(Option::take)
            && made.0 == process::id()
        {
            remove(&made.1);
        }
    }
    // A child has its parent's functions for the end of the process.
    let is_known = sync::lock(&MADE).replace((process::id(), path)).is_some();
    if !is_known {
        // If there is no memory to remember it, the file stays, and is swept later.
        super::exit::at_exit(remove_made);
    }
}

/// Closes a descriptor that no thread uses any more.
pub(crate) fn close(open: RawFd) {
    // SAFETY: its owner will not use it or close it again.
    unsafe { libc::close(open) };
}

/// Sleeps until one of the events, until a time at most if one is given. Whether it has happened.
pub(crate) fn wait(open: RawFd, events: c_short, until_ns: Option<u64>) -> bool {
    let left_ms =
        |until_ns: u64| until_ns.saturating_sub(clock::monotonic_ns()).div_ceil(1_000_000);
    let mut wanted = libc::pollfd { fd: open, events, revents: 0 };
    loop {
        let most_ms = until_ns.map_or(-1, |until_ns| left_ms(until_ns) as c_int);
        if most_ms == 0 {
            return false;
        }
        // SAFETY: writes to `wanted`, which is one.
        match calls::call(|| unsafe { libc::poll(&raw mut wanted, 1, most_ms) }) {
            Err(libc::EINTR) => {}
            happened => return happened.is_ok_and(|happened| happened != 0),
        }
    }
}

/// Calls `f` once the event has happened, and once more if that was too early. Returns how many
/// bytes it has moved; `None` if the event does not happen in time, or `f` fails.
fn once(
    open: RawFd,
    events: c_short,
    until_ns: u64,
    f: &mut dyn FnMut() -> libc::ssize_t,
) -> Option<usize> {
    while wait(open, events, Some(until_ns)) {
        match calls::call(&mut *f) {
            Err(libc::EAGAIN | libc::EINTR) => {}
            moved => return usize::try_from(moved.ok()?).ok(),
        }
    }
    None
}

/// Accepts a client that has connected. `Ok(None)` if none has, or it was another user, who is not
/// root: the socket is root's where a program has given up root's rights.
pub(crate) fn admit(door: RawFd) -> Result<Option<RawFd>> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    let nothing = std::ptr::null_mut();
    // SAFETY: makes a descriptor. Nobody wants the client's address.
    match calls::call(|| unsafe { libc::accept4(door, nothing, nothing.cast(), flags) }) {
        Err(libc::EAGAIN) => Ok(None),
        Ok(client) if user_of(client).is_none_or(|client| client != user() && client != 0) => {
            close(client);
            Ok(None)
        }
        admitted => admitted.map(Some),
    }
}

/// Reads what a client has sent; `None` if nothing comes in time, or any more.
pub(crate) fn receive(client: RawFd, free: &mut [u8], until_ns: u64) -> Option<usize> {
    let (place, bytes) = (free.as_mut_ptr().cast(), free.len());
    // SAFETY: writes to `free`, not beyond its end.
    let receive = &mut || unsafe { libc::recv(client, place, bytes, 0) };
    once(client, libc::POLLIN, until_ns, receive).filter(|read| *read != 0)
}

/// Sends all of it; `None` if the client does not take it in time, or is gone.
pub(crate) fn send(client: RawFd, mut rest: &[u8], until_ns: u64) -> Option<()> {
    while !rest.is_empty() {
        let (place, bytes) = (rest.as_ptr().cast(), rest.len());
        // SAFETY: reads these bytes.
        let send = &mut || unsafe { libc::send(client, place, bytes, libc::MSG_NOSIGNAL) };
        rest = &rest[once(client, libc::POLLOUT, until_ns, send)?..];
    }
    Some(())
}
