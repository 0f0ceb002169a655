//! The socket on which a process serves its statistics: where it is, who may use it, and when it is
//! removed.
//!
//! Only its user can access its directory, so no other user can reach the socket. The socket's mode
//! and the client's credentials, which the kernel reports, are checked as well.

use std::ffi::CString;
use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Once;

use crate::os::environment;
use crate::os::sync::{self, Mutex, Rank, const_unless_loom};

/// Files that are looked at, to see whether the process that left them is gone.
const SWEEP_MAX: usize = 4_096;

const_unless_loom! {
    /// The file to take away at the end, and the process that made it: not its children.
    static MADE: Mutex<Option<(u32, PathBuf)>> = Mutex::new(Rank::SocketFile, None);
}

/// A socket that listens.
#[derive(Debug)]
pub(crate) struct Door {
    listener: UnixListener,
}

/// Whether this program runs with rights that its caller does not have: then the caller's
/// environment is not to be obeyed.
pub(crate) fn is_privileged() -> bool {
    // SAFETY: reads what the kernel told the process at its start.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Listens at `named`, or where `rcu top` looks first. The error says what is wrong, and where.
pub(crate) fn open(named: Option<PathBuf>) -> Result<Door, String> {
    let path = match named {
        Some(path) => path,
        None => {
            let directory = directory()?;
            sweep(&directory);
            directory.join(format!("{}.sock", process::id()))
        }
    };
    let tell = |error: io::Error| format!("{}: {error}", path.display());
    let listener = bind(&path).map_err(tell)?;
    // The directory keeps others out until this is done; and so do the clients' credentials.
    fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(tell)?;
    listener.set_nonblocking(true).map_err(tell)?;
    remove_at_exit(path);
    Ok(Door { listener })
}

/// The directory of this user's sockets, which no other user can write to or look into.
fn directory() -> Result<PathBuf, String> {
    let of_session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let directory = match of_session {
        Some(parent) if is_own_directory(&parent, 0o022) => parent.join("quiescence"),
        _ => PathBuf::from(format!("/tmp/quiescence-{}", user())),
    };
    match make_directory(&directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(format!("{}: {error}", directory.display()))
        }
        _ if is_own_directory(&directory, 0o077) => Ok(directory),
        _ => Err(format!(
            "{} is not a directory that belongs to this user alone (mode 0700)",
            directory.display()
        )),
    }
}

/// (What the standard library has for this also makes the directories around it.)
fn make_directory(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a path that ends with a zero.
    let made = unsafe { libc::mkdir(path.as_ptr(), 0o700) };
    if made == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether it is a directory, not a link to one, of this user, and gives others none of these
/// rights.
fn is_own_directory(path: &Path, others: u32) -> bool {
    let is_ours =
        |found: Metadata| found.is_dir() && found.uid() == user() && found.mode() & others == 0;
    path.is_absolute() && fs::symlink_metadata(path).is_ok_and(is_ours)
}

/// Takes away what processes left that ended in haste: no process listens, and their number is
/// free.
fn sweep(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.take(SWEEP_MAX).flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".sock"));
        let process =
            number.and_then(|number| environment::parse::<libc::pid_t>(number.as_bytes()));
        if process.is_some_and(|process| process > 0 && is_gone(process)) {
            remove_if_deserted(&entry.path());
        }
    }
}

fn is_gone(process: libc::pid_t) -> bool {
    // SAFETY: sends no signal, and asks whether it could.
    let found = unsafe { libc::kill(process, 0) };
    found != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

/// By whose rights this process acts.
fn user() -> libc::uid_t {
    // SAFETY: asks for a number.
    unsafe { libc::geteuid() }
}

/// The user whose process has connected, as the kernel states.
fn user_of(client: &UnixStream) -> io::Result<libc::uid_t> {
    // SAFETY: plain data, for which zero is a value.
    let mut found: libc::ucred = unsafe { std::mem::zeroed() };
    let mut bytes = size_of_val(&found) as libc::socklen_t;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    let place = (&raw mut found).cast();
    // SAFETY: writes to `found`, as many bytes as it has.
    let told = unsafe { libc::getsockopt(client.as_raw_fd(), level, name, place, &raw mut bytes) };
    if told == 0 { Ok(found.uid) } else { Err(io::Error::last_os_error()) }
}

/// Removes the file if it is a socket of this user that no process listens on.
fn remove_if_deserted(path: &Path) -> bool {
    let is_own_socket = fs::symlink_metadata(path)
        .is_ok_and(|found| found.file_type().is_socket() && found.uid() == user());
    is_own_socket
        && UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        && fs::remove_file(path).is_ok()
}

/// Makes the socket; in place of one that an earlier program left, be it of this process.
fn bind(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && remove_if_deserted(path) => {
            UnixListener::bind(path)
        }
        result => result,
    }
}

/// Has the file taken away at the orderly end of this process.
fn remove_at_exit(path: PathBuf) {
    extern "C" fn remove() {
        // If somebody is at it just now, the file stays, and is swept by the next thread.
        if let Some(made) = sync::try_lock(&MADE).as_deref_mut().and_then(Option::take)
            && made.0 == process::id()
        {
            let _ = fs::remove_file(made.1);
        }
    }
    static INSTALL: Once = Once::new();
    *sync::lock(&MADE) = Some((process::id(), path));
    INSTALL.call_once(|| {
        // If there is no memory to remember it, the file stays, and is swept later.
        crate::os::thread::at_exit(remove);
    });
}

/// In a child made by `fork`: closes what the parent's thread had open, which no thread here
/// owns.
pub(crate) fn close_inherited(open: RawFd) {
    // SAFETY: a descriptor of a thread that this process does not have; so its owner will not
    // use it or close it again.
    unsafe { libc::close(open) };
}

impl Door {
    /// Sleeps until somebody knocks.
    pub(crate) fn wait(&self) {
        let descriptor = self.descriptor();
        let mut knock = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
        // Whatever it returns, the caller tries to let somebody in.
        // SAFETY: writes to `knock`, which is one.
        let _ = unsafe { libc::poll(&raw mut knock, 1, -1) };
    }

    /// Accepts a client that has connected. `Ok(None)` if none has, or it was another user.
    pub(crate) fn admit(&self) -> io::Result<Option<UnixStream>> {
        let client = match self.listener.accept() {
            Ok((client, _)) => client,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        client.set_nonblocking(false)?;
        Ok((user_of(&client)? == user()).then_some(client))
    }

    /// The descriptor, for [`close_inherited`].
    pub(crate) fn descriptor(&self) -> RawFd {
        self.listener.as_raw_fd()
    }
}
