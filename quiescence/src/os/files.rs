//! Small files in which Linux tells of itself, and what is in a directory. Not for signal handlers:
//! paths are allocated.

use std::ffi::{CStr, c_int};
use std::fmt;

/// Reads the beginning of a file, as much as there is room for; or says by `errno` why it cannot.
pub(crate) fn read<'a>(path: fmt::Arguments<'_>, text: &'a mut [u8]) -> Result<&'a [u8], c_int> {
    let path = format!("{path}\0");
    let path = CStr::from_bytes_until_nul(path.as_bytes()).map_err(|_| libc::EINVAL)?;
    super::calls::read_file(path, text)
}

/// The same, all of the file. (If it does not fit, it is read anew: the system makes the text.)
pub(crate) fn read_all(path: fmt::Arguments<'_>) -> Result<Vec<u8>, c_int> {
    let mut room = 4_096;
    loop {
        let mut text = vec![0; room];
        let length = read(path, &mut text)?.len();
        if length < room {
            text.truncate(length);
            return Ok(text);
        }
        room *= 2;
    }
}

/// What follows a name at the beginning of a line, as in `/proc/PID/status`. (There a line break in
/// a thread's name is escaped.)
pub(crate) fn field<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name))?;
    Some(line.trim_ascii())
}

/// Calls `f` with the name of each file in a directory, of at most so many.
#[cfg(target_os = "linux")]
pub(crate) fn each_in(directory: &CStr, most: usize, f: &mut dyn FnMut(&CStr)) {
    // SAFETY: a path that ends with a zero.
    let open = unsafe { libc::opendir(directory.as_ptr()) };
    if open.is_null() {
        return;
    }
    for _ in 0..most {
        // SAFETY: the directory opened above, which no other thread knows.
        let entry = unsafe { libc::readdir64(open) };
        if entry.is_null() {
            break;
        }
        // SAFETY: an entry of the C library's.
        let name = unsafe { &raw const (*entry).d_name };
        // SAFETY: its name ends with a zero, and stays until the next entry is read.
        f(unsafe { CStr::from_ptr(name.cast()) });
    }
    // SAFETY: as above.
    unsafe { libc::closedir(open) };
}
