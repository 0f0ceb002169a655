//! Files for results: opened before anything is measured, written when all is known.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};

use crate::exit::{Failure, Result, is_of_the_disk};

/// The files for results that a command has opened, by device and number, so that each is for one
/// kind of results only.
pub(super) type Opened = Vec<(u64, u64)>;

/// A file for results.
#[derive(Debug)]
pub(crate) struct ResultFile {
    path: PathBuf,
    file: File,
    /// Device and number.
    identity: (u64, u64),
    /// It was not there before, and has no results yet.
    is_new: bool,
}

impl ResultFile {
    /// Opens the file that the option `flag` names, without emptying it yet: a bad path costs no
    /// minute of measuring. `-` is refused: standard output has the text.
    pub(super) fn open(opened: &mut Opened, flag: &str, path: &Path) -> Result<ResultFile> {
        if path == Path::new("-") {
            return Err(Failure::usage(format!(
                "{flag} takes a file, not `-`: standard output has the text"
            )));
        }
        let cannot = |error| Failure::file("write", path, error);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        // Who makes a file may write to it, even if its rights say that it cannot be opened again.
        let (file, is_new) = match options.clone().create_new(true).open(path) {
            Ok(file) => (file, true),
            Err(_) => (options.open(path).map_err(cannot)?, false),
        };
        let metadata = file.metadata().map_err(cannot)?;
        let identity = (metadata.dev(), metadata.ino());
        // The last results would silently replace the others, under whatever name. Devices and
        // pipes can be shared.
        if metadata.is_file() && opened.contains(&identity) {
            return Err(Failure::usage(format!(
                "{} is named for two kinds of results; give each a file of its own",
                path.display()
            )));
        }
        opened.push(identity);
        Ok(ResultFile { path: path.to_owned(), file, identity, is_new })
    }

    /// Writes the results, over those that the file has if it is one, not a pipe or a device.
    pub(crate) fn write(&mut self, results: &str) -> Result<()> {
        self.replace(results.as_bytes()).map_err(|error| Failure::file("write", &self.path, error))
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (before, length) = (self.file.metadata()?, bytes.len() as u64);
        // Room first, where the file system has that: a full disk does not cost the old results.
        if before.is_file()
            && let Err(error) = fallocate(&self.file, FallocateFlags::empty(), 0, length.max(1))
            && is_of_the_disk(&error.into())
        {
            self.file.set_len(before.len())?;
            return Err(error.into());
        }
        self.is_new = false;
        self.file.write_all(bytes)?;
        if before.is_file() { self.file.set_len(length) } else { Ok(()) }
    }
}

/// A file without results goes as it came, unless another process has written to its place.
impl Drop for ResultFile {
    fn drop(&mut self) {
        let is_own =
            |there: Metadata| there.len() == 0 && (there.dev(), there.ino()) == self.identity;
        if self.is_new && fs::symlink_metadata(&self.path).is_ok_and(is_own) {
            // What cannot be removed stays, and is empty.
            let _ = fs::remove_file(&self.path);
        }
    }
}
