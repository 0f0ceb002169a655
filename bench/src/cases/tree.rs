//! The names of a real directory tree: what the path-lookup cache of [`engines`](super::engines)
//! knows.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::Path;

/// An entry's number; the root's is 0.
pub(crate) type Id = u32;

/// What an entry is found by: its parent, and its name there. Names stay until the process ends.
pub(crate) type Key = (Id, &'static str);

/// The tree.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Each entry but the root, whose numbers begin with 1; parents come first.
    pub(crate) entries: Vec<Key>,
    /// The entries that are no directories.
    pub(crate) files: Vec<Id>,
}

impl Tree {
    /// Reads the names below `root`, level by level, until there are `entries_max`. What cannot be
    /// read is left out; symbolic links are not followed.
    ///
    /// # Errors
    /// If `root` itself cannot be read, or holds no file within that many entries.
    pub(crate) fn read(root: &Path, entries_max: usize) -> io::Result<Self> {
        let mut tree = Self::default();
        let mut folders = VecDeque::from([(0, fs::read_dir(root)?)]);
        while let Some((parent, folder)) = folders.pop_front() {
            for entry in folder.flatten() {
                if tree.entries.len() >= entries_max {
                    break;
                }
                let Ok(name) = entry.file_name().into_string() else { continue };
                tree.entries.push((parent, name.leak()));
                let id = tree.entries.len() as Id;
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.extend(fs::read_dir(entry.path()).ok().map(|folder| (id, folder)));
                } else {
                    tree.files.push(id);
                }
            }
        }
        if tree.files.is_empty() {
            let what = format!("{} holds no files within {entries_max} entries", root.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, what));
        }
        Ok(tree)
    }

    /// What this entry is found by.
    pub(crate) fn key(&self, id: Id) -> Key {
        self.entries[id as usize - 1]
    }

    /// The names from the root to this entry.
    pub(crate) fn path(&self, mut id: Id) -> Vec<&'static str> {
        let mut path = Vec::new();
        while id != 0 {
            let (parent, name) = self.key(id);
            path.push(name);
            id = parent;
        }
        path.reverse();
        path
    }
}
