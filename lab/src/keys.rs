//! Real input: the keys that a workload looks up.
//!
//! By default they are path names under `/usr`, in the order a depth-first walk meets them: every
//! machine has some, they share long prefixes as real keys do, and no thread made them up to please
//! a hash function. `--keys FILE` takes any file, one key a line. Keys are bytes, not text; what is
//! odd about them (duplicates, empty lines, lines that are not UTF-8) is counted and said, and
//! stops nothing. Lines are bounded, and keys; of lines there may be no end, but for Ctrl-C.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use indexmap::IndexSet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Serialize;

use crate::exit::{Failure, Result};

/// The longest line taken for a key. Longer ones mean that the file is not a list of keys.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// Where the keys come from when nothing else is said.
const TREE: &str = "/usr";

/// The keys, each once, and what was noticed on the way.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    /// The distinct keys in the order they were found.
    pub(crate) list: Arc<[Box<[u8]>]>,
    /// What was noticed.
    pub(crate) census: Census,
}

/// What was noticed while the keys were read.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub(crate) struct Census {
    /// Where the keys came from, in words.
    pub(crate) source: String,
    /// Distinct keys.
    pub(crate) count: u64,
    /// Their bytes together.
    pub(crate) bytes: u64,
    /// Keys that had been seen before; each counts once.
    pub(crate) duplicates: u64,
    /// Lines with nothing on them.
    pub(crate) empty_lines: u64,
    /// Keys that are not UTF-8; they are used as bytes.
    pub(crate) not_utf8: u64,
    /// Directories that could not be read.
    pub(crate) unreadable: u64,
    /// Whether there was more than the number of keys asked for.
    pub(crate) truncated: bool,
}

impl Census {
    /// What the user should know about the keys, one sentence each; nothing when all is plain.
    pub(crate) fn notes(&self) -> Vec<String> {
        let all = [
            (self.duplicates, "duplicate keys, each used once"),
            (self.empty_lines, "empty lines, skipped"),
            (self.not_utf8, "keys that are not UTF-8, used as bytes"),
            (self.unreadable, "directories that could not be read"),
        ];
        let odd = all.into_iter().filter(|(count, _)| *count > 0);
        odd.map(|(count, what)| format!("{what}: {count}")).collect()
    }
}

impl Keys {
    /// At most `limit` distinct keys of those that a collector is given; none is an error.
    fn collected(
        source: String,
        limit: u32,
        collect: impl FnOnce(&mut Collector) -> Result,
    ) -> Result<Keys> {
        let census = Census { source, ..Census::default() };
        let mut all = Collector { list: IndexSet::new(), limit: limit as usize, census };
        collect(&mut all)?;
        let Collector { list, mut census, .. } = all;
        if list.is_empty() {
            return Err(Failure::usage(format!(
                "no keys: {} gave none ({} empty lines); give a file with one key a line, as in \
                 --keys FILE",
                census.source, census.empty_lines
            )));
        }
        census.count = list.len() as u64;
        Ok(Keys { list: list.into_iter().collect(), census })
    }
}

/// Collects keys up to a limit and counts what is odd.
struct Collector {
    list: IndexSet<Box<[u8]>>,
    limit: usize,
    census: Census,
}

impl Collector {
    /// Takes one key; says whether there is room for more.
    fn take(&mut self, key: &[u8]) -> bool {
        if self.list.contains(key) {
            self.census.duplicates += 1;
            return true;
        }
        if self.list.len() == self.limit {
            self.census.truncated = true;
            return false;
        }
        self.census.bytes += key.len() as u64;
        self.census.not_utf8 += u64::from(std::str::from_utf8(key).is_err());
        self.list.insert(key.into());
        true
    }

    /// Takes the names in a directory, sorted, behind each directory what is below it; says whether
    /// there is room for more.
    fn take_below(&mut self, directory: &Path) -> io::Result<bool> {
        let mut entries = std::fs::read_dir(directory)?
            .map(|entry| entry.and_then(|entry| Ok((entry.path(), entry.file_type()?.is_dir()))))
            .collect::<io::Result<Vec<_>>>()?;
        entries.sort();
        for (path, is_directory) in entries {
            if !self.take(path.as_os_str().as_bytes()) {
                return Ok(false);
            }
            match is_directory.then(|| self.take_below(&path)) {
                Some(Err(_)) => self.census.unreadable += 1,
                Some(Ok(false)) => return Ok(false),
                _ => {}
            }
        }
        Ok(true)
    }

    /// Takes every line as a key, without its line feed and the carriage return before that.
    fn take_lines(&mut self, mut reader: impl BufRead, name: &str) -> Result {
        let mut line = Vec::new();
        for number in 1_u64.. {
            line.clear();
            let mut bounded = reader.by_ref().take(LINE_BYTES_MAX as u64 + 1);
            let length = bounded
                .read_until(b'\n', &mut line)
                .map_err(|error| Failure::io(format!("cannot read {name}"), error))?;
            if length == 0 {
                break;
            }
            let key = match line.strip_suffix(b"\n") {
                Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
                None if length > LINE_BYTES_MAX => {
                    return Err(Failure::usage(format!(
                        "{name}, line {number}: longer than {LINE_BYTES_MAX} bytes; a key file has \
                         one key a line"
                    )));
                }
                None => &line,
            };
            if key.is_empty() {
                self.census.empty_lines += 1;
            } else if !self.take(key) {
                break;
            }
        }
        Ok(())
    }
}

/// Reads at most `limit` distinct keys: the lines of a file, of standard input if that is `-`; the
/// path names under [`TREE`] if none is named.
pub(crate) fn read(file: Option<&Path>, limit: u32, must_stop: impl Fn() -> bool) -> Result<Keys> {
    let Some(path) = file else { return below(Path::new(TREE), limit) };
    let (name, file) = match path == Path::new("-") {
        true => ("standard input".into(), io::stdin().as_fd().try_clone_to_owned().map(File::from)),
        false => (path.to_string_lossy(), File::open(path)),
    };
    let file = file.map_err(|error| Failure::file("read", path, error))?;
    lines(Input { file, must_stop }, &name, limit)
}

/// The lines of this input, unless it ends because it must.
fn lines(mut input: Input<impl Fn() -> bool>, name: &str, limit: u32) -> Result<Keys> {
    let keys = Keys::collected(format!("lines of {name}"), limit, |all| {
        all.take_lines(BufReader::new(&mut input), name)
    });
    if (input.must_stop)() { Err(Failure::interrupted()) } else { keys }
}

/// A file or a pipe, of which there is no more once it `must_stop`: else it may have no end, or let
/// its reader wait for ever.
struct Input<F> {
    file: File,
    must_stop: F,
}

impl<F: Fn() -> bool> Read for Input<F> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        /// A signal that comes just before the wait is seen after it.
        const MOMENT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        while !(self.must_stop)() {
            let mut fds = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut fds, Some(&MOMENT)) {
                Ok(0) | Err(Errno::INTR) => {}
                ready => return ready.map_err(io::Error::from).and_then(|_| self.file.read(bytes)),
            }
        }
        Ok(0)
    }
}

/// Takes the path names under `root`, sorted within each directory, depth first. Links are keys
/// like any other name, but are not followed, so the walk ends.
fn below(root: &Path, limit: u32) -> Result<Keys> {
    let shown = root.display();
    let hint = format!("cannot read {shown}; name a key file with --keys FILE");
    Keys::collected(format!("path names under {shown}"), limit, |all| {
        all.take_below(root).map(drop).map_err(|error| Failure::io(hint, error))
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::os::fd::OwnedFd;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::exit::Exit;

    fn from_bytes(bytes: &[u8], limit: u32) -> Result<Keys> {
        Keys::collected("test".to_owned(), limit, |all| all.take_lines(bytes, "test"))
    }

    /// Ctrl-C was not looked at: `yes | rcu --keys -` went on for ever, and so did the wait for
    /// words of a terminal.
    #[test]
    fn input_without_an_end_can_be_interrupted() {
        let (silent, _writer) = io::pipe().unwrap();
        let mut endless = Command::new("yes").stdout(Stdio::piped()).spawn().unwrap();
        let endless_pipe = OwnedFd::from(endless.stdout.take().unwrap());
        for pipe in [OwnedFd::from(silent), endless_pipe] {
            let asked = Cell::new(0);
            let must_stop = || asked.replace(asked.get() + 1) > 2;
            let stopped = lines(Input { file: pipe.into(), must_stop }, "test", 10);
            assert_eq!(stopped.unwrap_err().exit, Exit::Interrupted);
        }
        endless.wait().unwrap();
    }

    #[test]
    fn a_carriage_return_inside_a_key_belongs_to_it() {
        let keys = from_bytes(b"a\rb\n", 10).unwrap();
        assert_eq!(&*keys.list[0], b"a\rb");
    }

    #[test]
    fn the_limit_holds_and_is_said() {
        let keys = from_bytes(b"a\nb\nc\n", 2).unwrap();
        assert_eq!(keys.census.count, 2);
        assert!(keys.census.truncated);
        assert!(!from_bytes(b"a\nb\n", 2).unwrap().census.truncated);
    }

    #[test]
    fn a_file_without_line_ends_is_refused_with_its_line() {
        let mut bytes = b"fine\n".to_vec();
        bytes.extend(vec![b'x'; LINE_BYTES_MAX + 1]);
        let error = from_bytes(&bytes, 10).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
    }

    #[test]
    fn the_walk_is_sorted_and_follows_no_links() {
        let root = tempfile::tempdir().unwrap();
        let inside = |name: &str| root.path().join(name);
        std::fs::create_dir(inside("b")).unwrap();
        std::fs::write(inside("b/z"), "").unwrap();
        std::fs::write(inside("a"), "").unwrap();
        std::os::unix::fs::symlink(root.path(), inside("loop")).unwrap();
        let keys = below(root.path(), 100).unwrap();
        let found: Vec<_> = keys
            .list
            .iter()
            .map(|key| String::from_utf8_lossy(key).rsplit_once('/').unwrap().1.to_owned())
            .collect();
        assert_eq!(found, ["a", "b", "z", "loop"]);
    }
}
