//! A cache for path look-ups, as a kernel keeps one in front of its file systems.
//!
//! A path is looked up name by name: each step asks the library's hash map for the entry with this
//! parent and this name. Readers go through it inside a read-side critical section and write
//! nothing. A rename is two changes, between which a look-up may find neither name; so a look-up
//! that found nothing asks whether a rename was under way meanwhile (`PathCache::renames`, a
//! sequence that is odd during one), and if so tries again: the global version number of
//! McKenney's "Using the Right Tool for the Job" (2005).
//!
//! Names are never freed: those of a process are of one tree.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use foldhash::fast::FixedState;
use quiescence::collections::HashMap;
use quiescence::{
    Domain,
    tag::{Private, Section},
};

/// An entry's number; the root's is 0.
pub(crate) type Id = u32;

/// The names of a real directory tree.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Parent and name of each entry but the root, whose numbers begin with 1; parents come first.
    entries: Vec<(Id, &'static str)>,
    /// The entries that are no directories.
    files: Vec<Id>,
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

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The entries that are no directories.
    pub(crate) fn files(&self) -> &[Id] {
        &self.files
    }

    /// Parent and name of an entry.
    pub(crate) fn entry(&self, id: Id) -> (Id, &'static str) {
        self.entries[id as usize - 1]
    }

    /// The names from the root to this entry.
    pub(crate) fn path(&self, mut id: Id) -> Vec<&'static str> {
        let mut path = Vec::new();
        while id != 0 {
            let (parent, name) = self.entry(id);
            path.push(name);
            id = parent;
        }
        path.reverse();
        path
    }
}

/// The cache. See the module.
#[derive(Debug)]
pub(crate) struct PathCache {
    /// By parent and name.
    entries: HashMap<(Id, &'static str), Id, FixedState, Private>,
    /// Odd while a rename is under way.
    renames: AtomicU64,
    /// One rename at a time.
    renaming: Mutex<()>,
}

impl PathCache {
    /// A cache that knows the whole tree.
    pub(crate) fn new(tree: &Tree, domain: &Domain) -> Self {
        let builder = HashMap::builder().domain(domain.clone()).hasher(FixedState::default());
        let entries = builder.capacity(tree.len()).build();
        entries.extend((1..=tree.len() as Id).map(|id| (tree.entry(id), id)));
        Self { entries, renames: AtomicU64::new(0), renaming: Mutex::new(()) }
    }

    /// The entry at this path. Lock-free: tries again only if a rename was under way.
    pub(crate) fn look_up(
        &self,
        section: &impl Section<Private>,
        path: &[&'static str],
    ) -> Option<Id> {
        loop {
            // Acquire: what the walk finds is no older than this; pairs with the Release in
            // `rename`.
            let before = self.renames.load(Ordering::Acquire);
            let found = self.walk(section, path);
            // The walk's loads are Acquire: this one is not moved before them.
            if found.is_some() || self.renames.load(Ordering::Acquire) == before && before & 1 == 0
            {
                return found;
            }
        }
    }

    fn walk(&self, section: &impl Section<Private>, path: &[&'static str]) -> Option<Id> {
        path.iter().try_fold(0, |parent, name| self.entries.get(&(parent, *name), section).copied())
    }

    /// Gives an entry another name in the same directory.
    pub(crate) fn rename(
        &self,
        section: &impl Section<Private>,
        parent: Id,
        [from, to]: [&'static str; 2],
        id: Id,
    ) {
        // A rename that panicked has left an odd number, and no look-up misses anything.
        let _renaming = self.renaming.lock().unwrap_or_else(PoisonError::into_inner);
        // Relaxed loads of one's own: renames are made one at a time. Release: the thread that sees
        // the even number sees both changes; the odd one is seen by the thread that sees the first
        // change, which is published with Release after it.
        let before = self.renames.load(Ordering::Relaxed);
        self.renames.store(before + 1, Ordering::Release);
        self.unlink(section, parent, from);
        self.link(section, parent, to, id);
        self.renames.store(before + 2, Ordering::Release);
    }

    /// Forgets an entry. Returns whether it was there.
    pub(crate) fn unlink(
        &self,
        section: &impl Section<Private>,
        parent: Id,
        name: &'static str,
    ) -> bool {
        self.entries.read_in(section).remove(&(parent, name)).is_some()
    }

    /// Adds an entry that is not there.
    pub(crate) fn link(
        &self,
        section: &impl Section<Private>,
        parent: Id,
        name: &'static str,
        id: Id,
    ) {
        self.entries.read_in(section).insert((parent, name), id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    fn tree() -> Tree {
        Tree::read(Path::new(env!("CARGO_MANIFEST_DIR")), 10_000).expect("our own sources")
    }

    #[test]
    fn every_path_of_a_real_tree_is_found_and_no_other() {
        let (tree, domain) = (tree(), Domain::new());
        let cache = PathCache::new(&tree, &domain);
        let guard = domain.read();
        for id in 1..=tree.len() as Id {
            assert_eq!(cache.look_up(&guard, &tree.path(id)), Some(id));
        }
        assert_eq!(cache.look_up(&guard, &["src", "cases", "path_cache.rs~"]), None);
        assert!(cache.look_up(&guard, &["src", "cases", "path_cache.rs"]).is_some());
    }

    #[test]
    fn changes_are_seen() {
        let (tree, domain) = (tree(), Domain::new());
        let cache = PathCache::new(&tree, &domain);
        let id = tree.files()[0];
        let (parent, name) = tree.entry(id);
        let path = tree.path(id);
        let guard = domain.read();
        cache.rename(&guard, parent, [name, "other"], id);
        assert_eq!(cache.look_up(&guard, &path), None);
        assert!(cache.unlink(&guard, parent, "other"));
        assert!(!cache.unlink(&guard, parent, "other"));
        cache.link(&guard, parent, name, id);
        assert_eq!(cache.look_up(&guard, &path), Some(id));
    }

    /// An entry that is renamed to what it is called already is there all the time, though there
    /// are moments between the two changes when it is in no bucket.
    #[test]
    fn a_look_up_does_not_miss_because_of_a_rename() {
        let (tree, domain) = (tree(), Domain::new());
        let cache = PathCache::new(&tree, &domain);
        let id = tree.files()[0];
        let (parent, name) = tree.entry(id);
        let path = tree.path(id);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(cache.look_up(&domain.read(), &path), Some(id));
                }
            });
            for _ in 0..20_000 {
                cache.rename(&domain.read(), parent, [name, name], id);
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}
