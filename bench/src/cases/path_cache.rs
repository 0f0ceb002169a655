//! A cache for path look-ups, as a kernel keeps one in front of its file systems.
//!
//! A path is looked up name by name: each step asks a hash table for the entry with this parent and
//! this name. Readers go through it inside a read-side critical section and write nothing. A change
//! copies the bucket it concerns and publishes the copy; the old one is retired. A rename is two
//! such changes, between which a look-up may find neither name; so a look-up that found nothing
//! asks whether a rename was under way meanwhile (`PathCache::renames`, a sequence that is odd
//! during one), and if so tries again. These are two of the transformations of McKenney's "Using
//! the Right Tool for the Job" (2005): substitute copy, and global version number.

use std::collections::VecDeque;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::fast::FixedState;
use quiescence::{
    Domain, Rcu,
    tag::{Private, Section},
};

/// An entry's number; the root's is 0.
pub(crate) type Id = u32;

/// The names of a real directory tree.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Parent and name of each entry but the root, whose numbers begin with 1; parents come first.
    entries: Vec<(Id, Box<str>)>,
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
                tree.entries.push((parent, name.into_boxed_str()));
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
    pub(crate) fn entry(&self, id: Id) -> (Id, &str) {
        let (parent, name) = &self.entries[id as usize - 1];
        (*parent, name)
    }

    /// The names from the root to this entry.
    pub(crate) fn path(&self, mut id: Id) -> Vec<&str> {
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

/// What is known of one entry.
#[derive(Clone, Debug, quiescence::Weigh)]
struct Entry {
    parent: Id,
    name: Box<str>,
    id: Id,
}

/// The entries of one bucket; never changed, only replaced.
type Bucket = Vec<Entry>;

/// The cache. See the module.
#[derive(Debug)]
pub(crate) struct PathCache {
    buckets: Box<[Rcu<Bucket, Private>]>,
    hasher: FixedState,
    /// Odd while a rename is under way.
    renames: AtomicU64,
    /// One change at a time.
    changes: Mutex<()>,
}

impl PathCache {
    /// A cache that knows the whole tree, about two entries to a bucket.
    pub(crate) fn new(tree: &Tree, domain: &Domain) -> Self {
        let hasher = FixedState::default();
        let mut buckets = vec![Bucket::new(); (tree.len() / 2).next_power_of_two()];
        let mask = buckets.len() - 1;
        for id in 1..=tree.len() as Id {
            let (parent, name) = tree.entry(id);
            let place = hash(&hasher, parent, name) as usize & mask;
            buckets[place].push(Entry { parent, name: name.into(), id });
        }
        let buckets = buckets.into_iter().map(|bucket| Rcu::new_in(bucket, domain.clone()));
        Self {
            buckets: buckets.collect(),
            hasher,
            renames: AtomicU64::new(0),
            changes: Mutex::new(()),
        }
    }

    /// The entry at this path. Lock-free: tries again only if a rename was under way.
    pub(crate) fn look_up(&self, section: &impl Section<Private>, path: &[&str]) -> Option<Id> {
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

    fn walk(&self, section: &impl Section<Private>, path: &[&str]) -> Option<Id> {
        path.iter().try_fold(0, |parent, name| {
            let bucket = self.bucket(parent, name).load(section);
            let entry = bucket.iter().find(|entry| entry.parent == parent && *entry.name == **name);
            entry.map(|entry| entry.id)
        })
    }

    /// Gives an entry another name in the same directory.
    pub(crate) fn rename(
        &self,
        section: &impl Section<Private>,
        parent: Id,
        [from, to]: [&str; 2],
        id: Id,
    ) {
        let _changing = self.change();
        // Relaxed loads of one's own: changes are made one at a time. Release: the thread that sees
        // the even number sees both changes; the odd one is seen by the thread that sees the first
        // change, which is published with Release after it.
        let before = self.renames.load(Ordering::Relaxed);
        self.renames.store(before + 1, Ordering::Release);
        self.remove_locked(section, parent, from);
        self.insert_locked(section, parent, to, id);
        self.renames.store(before + 2, Ordering::Release);
    }

    /// Forgets an entry. Returns whether it was there.
    pub(crate) fn unlink(&self, section: &impl Section<Private>, parent: Id, name: &str) -> bool {
        let _changing = self.change();
        self.remove_locked(section, parent, name)
    }

    /// Adds an entry that is not there.
    pub(crate) fn link(&self, section: &impl Section<Private>, parent: Id, name: &str, id: Id) {
        let _changing = self.change();
        self.insert_locked(section, parent, name, id);
    }

    fn change(&self) -> MutexGuard<'_, ()> {
        // A bucket is replaced in one step: the thread that panicked left everything whole.
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remove_locked(&self, section: &impl Section<Private>, parent: Id, name: &str) -> bool {
        let mut removed = false;
        // What is unlinked is retired as it is dropped: by a QSBR reader at its quiescent states.
        let _old = self.bucket(parent, name).update_in(section, |bucket| {
            let is_other = |entry: &&Entry| entry.parent != parent || *entry.name != *name;
            let kept: Bucket = bucket.iter().filter(is_other).cloned().collect();
            removed = kept.len() != bucket.len();
            kept
        });
        removed
    }

    fn insert_locked(&self, section: &impl Section<Private>, parent: Id, name: &str, id: Id) {
        let _old = self.bucket(parent, name).update_in(section, |bucket| {
            let mut bucket = bucket.clone();
            bucket.push(Entry { parent, name: name.into(), id });
            bucket
        });
    }

    fn bucket(&self, parent: Id, name: &str) -> &Rcu<Bucket, Private> {
        &self.buckets[hash(&self.hasher, parent, name) as usize & (self.buckets.len() - 1)]
    }
}

fn hash(hasher: &FixedState, parent: Id, name: &str) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write_u32(parent);
    hasher.write(name.as_bytes());
    hasher.finish()
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
