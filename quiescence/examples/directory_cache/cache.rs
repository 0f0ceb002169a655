//! A directory cache: names of files, as paths are looked up, in front of a slow disk. The kernel
//! has one (`fs/dcache.c`), from which the idea of each part here is taken; no code is.
//!
//! - **One table for all directories**, by the number of the directory and the name in it, as the
//!   kernel's. A directory that is renamed keeps its number, so nothing below it changes; and a
//!   small directory costs no table of its own.
//! - **A look-up of what is cached takes no lock and writes nothing that is shared.** It goes from
//!   component to component in one section. Absent names are cached, too: *negative* entries.
//! - **A rename is two changes of the table**, between which both names are there. A sequence count
//!   is odd meanwhile, and a look-up that finds it odd, or changed, begins again. After some times
//!   it takes the disk's lock, as it does for a name that is not cached: so it ends.
//! - **All changes are made under the lock of the disk**: also those by which a look-up fills the
//!   cache. So what is filled in is what is on the disk at that moment.
//! - **Pruning** by second chance: an entry has a bit that says whether it was used since the last
//!   pruning. A look-up sets it where it is clear, and only there: so an entry that is used often
//!   is written to once from one pruning to the next, and a look-up writes nothing as a rule.
//! - **Room from the beginning** for as many entries as there may be, so that the table does not
//!   move, and hardly a bucket overflows.
//! - **A domain of its own**: its sections begin and end in this file, and none of them lasts while
//!   a lock is waited for. So a grace period may be waited for under the lock, at the limit of what
//!   may wait.

use std::borrow::Borrow;
use std::collections::HashMap as StdHashMap;
use std::fmt;
use std::hash::{Hash, Hasher, RandomState};
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use quiescence::collections::HashMap;
use quiescence::{Domain, Reader, Weigh};

quiescence::domain! {
    /// The domain of directory caches.
    pub struct Directories;
}

thread_local! {
    /// The thread's registration there: a section by it begins with some plain stores.
    static READER: Reader<Directories> = Domain::of(Directories).reader();
}

/// A file or a directory, by a number that no other one ever gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Weigh)]
pub struct Inode {
    /// The number.
    pub number: u64,
    /// Whether it has names in it.
    pub is_directory: bool,
}

const ROOT: Inode = Inode { number: 0, is_directory: true };

/// Why something was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is no such name, or no such directory on the way.
    NotFound,
    /// The name is there already.
    Exists,
    /// It is a directory with names in it.
    NotEmpty,
    /// A directory cannot be moved into itself.
    IntoItself,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFound => "no such file or directory",
            Self::Exists => "the name is there already",
            Self::NotEmpty => "the directory is not empty",
            Self::IntoItself => "a directory cannot be moved into itself",
        })
    }
}

impl std::error::Error for Error {}

/// What can be done with paths, whatever keeps them. The names of a path are separated by `/`.
pub trait Paths: Sync {
    /// Looks paths up in the cache, as they are at a moment at which nothing is being renamed;
    /// `None` if a name on the way is not cached, or if renames come between all the time.
    fn look_up_cached<const N: usize>(&self, paths: [&str; N]) -> Option<[Option<Inode>; N]>;

    /// Does something under the lock, and prunes the cache then.
    fn change<R>(&self, f: impl FnOnce(&mut dyn Names) -> R) -> R;

    /// What these paths lead to, at a moment at which nothing is being renamed.
    fn look_up_all<const N: usize>(&self, paths: [&str; N]) -> [Option<Inode>; N] {
        self.look_up_cached(paths).unwrap_or_else(|| {
            self.change(|names| {
                let mut find = |directory, name: &str| Some(names.find(directory, name));
                paths.map(|path| walk(path, &mut find).flatten())
            })
        })
    }

    /// What a path leads to.
    fn look_up(&self, path: &str) -> Option<Inode> {
        let [found] = self.look_up_all([path]);
        found
    }

    /// Makes a file, or a directory.
    ///
    /// # Errors
    /// The name is there, or a directory on the way is not.
    fn create(&self, path: &str, is_directory: bool) -> Result<Inode, Error> {
        self.change(|names| {
            let (directory, name) = names.place(path)?;
            let inode = names.disk().create(directory, name, is_directory)?;
            names.put(directory, name, Some(inode));
            Ok(inode)
        })
    }

    /// Removes a file, or an empty directory.
    ///
    /// # Errors
    /// There is none, or it is not empty.
    fn unlink(&self, path: &str) -> Result<(), Error> {
        self.change(|names| {
            let (directory, name) = names.place(path)?;
            names.disk().unlink(directory, name)?;
            names.put(directory, name, None);
            Ok(())
        })
    }

    /// Gives a file or directory, with all that is in it, another path.
    ///
    /// # Errors
    /// There is none; the new name is there; or it would be in itself.
    fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        self.change(|names| {
            let (from, to) = (names.place(from)?, names.place(to)?);
            let inode = names.disk().rename(from, to)?;
            names.put_renamed(from, to, inode);
            Ok(())
        })
    }

    /// How often the disk was asked for a name.
    fn disk_reads(&self) -> u64 {
        self.change(|names| names.disk().reads)
    }

    /// How many entries are cached.
    fn cached(&self) -> usize {
        self.change(|names| names.cached())
    }
}

/// What is changed under the lock: the disk, and the cache in front of it.
pub trait Names {
    /// The disk.
    fn disk(&mut self) -> &mut Disk;

    /// What the cache knows of a name.
    fn hit(&self, directory: u64, name: &str) -> Option<Option<Inode>>;

    /// Has the cache know this of a name.
    fn put(&mut self, directory: u64, name: &str, inode: Option<Inode>);

    /// How many entries are cached.
    fn cached(&self) -> usize;

    /// Goes through all entries, and removes those for which `keeps` returns `false`.
    fn retain(&mut self, keeps: &mut dyn FnMut(&Entry) -> bool);

    /// Has the cache know that a name was given to another place.
    fn put_renamed(&mut self, from: (u64, &str), to: (u64, &str), inode: Inode) {
        self.put(to.0, to.1, Some(inode));
        self.put(from.0, from.1, None);
    }

    /// What a directory has under a name, by the cache, or by the disk and cached then.
    fn find(&mut self, directory: u64, name: &str) -> Option<Inode> {
        self.hit(directory, name).unwrap_or_else(|| {
            let inode = self.disk().find(directory, name);
            self.put(directory, name, inode);
            inode
        })
    }

    /// Looks a name's directory up, and gives its number and the name in it.
    ///
    /// # Errors
    /// There is no such directory, or the path is that of the root.
    fn place<'p>(&mut self, path: &'p str) -> Result<(u64, &'p str), Error> {
        let path = path.trim_end_matches('/');
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name.is_empty() {
            return Err(Error::Exists);
        }
        match walk(directory, |number, name| Some(self.find(number, name))).flatten() {
            Some(Inode { number, is_directory: true }) => Ok((number, name)),
            _ => Err(Error::NotFound),
        }
    }

    /// Removes entries until there are `most`: those that were not used since this was done last.
    /// If that is not enough, no entry has been used since then, and the next ones are removed.
    fn prune(&mut self, most: usize) {
        while self.cached() > most {
            let mut unused = 0;
            self.retain(&mut |entry| {
                unused += usize::from(!entry.used.load(Relaxed));
                true
            });
            let mut quota = Quota { excess: self.cached() - most / 4 * 3, unused, sum: 0 };
            self.retain(&mut |entry| !quota.takes(entry));
        }
    }
}

/// A name in a directory: what entries are found by.
#[derive(Clone, Debug, PartialEq, Eq, Weigh)]
struct Key {
    directory: u64,
    name: Box<str>,
}

/// The same, borrowed: a key, or its parts.
trait Name {
    fn parts(&self) -> (u64, &str);
}

impl Name for Key {
    fn parts(&self) -> (u64, &str) {
        (self.directory, &self.name)
    }
}

impl Name for (u64, &str) {
    fn parts(&self) -> (u64, &str) {
        *self
    }
}

impl Hash for dyn Name + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (directory, name) = self.parts();
        state.write_u64(directory);
        // All that follows is the name, so its end needs no mark.
        state.write(name.as_bytes());
    }
}

impl PartialEq for dyn Name + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for dyn Name + '_ {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self as &dyn Name).hash(state);
    }
}

impl<'k> Borrow<dyn Name + 'k> for Key {
    fn borrow(&self) -> &(dyn Name + 'k) {
        self
    }
}

impl Key {
    fn new(directory: u64, name: &str) -> Self {
        Self { directory, name: name.into() }
    }
}

/// What is known of a name.
#[derive(Debug, Weigh)]
pub struct Entry {
    /// `None`: the disk has no such name.
    inode: Option<Inode>,
    /// Since the last pruning.
    used: AtomicBool,
}

impl Entry {
    fn new(inode: Option<Inode>) -> Self {
        Self { inode, used: AtomicBool::new(false) }
    }

    /// What is known, by a look-up.
    fn hit(&self) -> Option<Inode> {
        // Relaxed: a hint. It is written only where that changes it.
        if !self.used.load(Relaxed) {
            self.used.store(true, Relaxed);
        }
        self.inode
    }
}

/// Which entries a pruning takes: `excess` of the `unused` ones, spread over all of them.
#[derive(Debug)]
struct Quota {
    excess: usize,
    unused: usize,
    sum: usize,
}

impl Quota {
    /// Whether an entry is taken. Its second chance is used up if not.
    fn takes(&mut self, entry: &Entry) -> bool {
        if entry.used.swap(false, Relaxed) {
            return false;
        }
        self.sum += self.excess;
        let takes = self.sum >= self.unused;
        self.sum -= if takes { self.unused } else { 0 };
        takes
    }
}

/// Goes from the root to where a path leads, by what `find` knows of the names in a directory.
/// `None` if it does not know one of them.
fn walk(
    path: &str,
    mut find: impl FnMut(u64, &str) -> Option<Option<Inode>>,
) -> Option<Option<Inode>> {
    let mut at = ROOT;
    for name in path.split('/').filter(|name| !name.is_empty()) {
        if !at.is_directory {
            return Some(None);
        }
        match find(at.number, name)? {
            Some(next) => at = next,
            None => return Some(None),
        }
    }
    Some(Some(at))
}

/// Walks each path by the entries that `get` finds; `None` if one of the names is not cached.
fn walk_cached<'e, const N: usize>(
    paths: [&str; N],
    get: impl Fn(&dyn Name) -> Option<&'e Entry>,
) -> Option<[Option<Inode>; N]> {
    let find = |directory, name: &str| get(&(directory, name)).map(Entry::hit);
    let found = paths.map(|path| walk(path, find));
    found.iter().all(Option::is_some).then(|| found.map(Option::flatten))
}

/// The names on a disk.
#[derive(Debug)]
pub struct Disk {
    names: StdHashMap<Key, Inode>,
    /// By number: where a directory is, and how many names are in it.
    directories: StdHashMap<u64, (u64, usize)>,
    next_number: u64,
    reads: u64,
}

impl Disk {
    fn new() -> Self {
        let directories = [(ROOT.number, (ROOT.number, 0))].into();
        Self { names: StdHashMap::new(), directories, next_number: 1, reads: 0 }
    }

    fn find(&mut self, directory: u64, name: &str) -> Option<Inode> {
        self.reads += 1;
        self.names.get(&(directory, name) as &dyn Name).copied()
    }

    fn insert(&mut self, directory: u64, name: &str, inode: Inode) {
        self.names.insert(Key::new(directory, name), inode);
        self.directories.get_mut(&directory).expect("there is one").1 += 1;
    }

    fn create(&mut self, directory: u64, name: &str, is_directory: bool) -> Result<Inode, Error> {
        if self.names.contains_key(&(directory, name) as &dyn Name) {
            return Err(Error::Exists);
        }
        let inode = Inode { number: self.next_number, is_directory };
        self.next_number += 1;
        self.insert(directory, name, inode);
        if is_directory {
            self.directories.insert(inode.number, (directory, 0));
        }
        Ok(inode)
    }

    fn unlink(&mut self, directory: u64, name: &str) -> Result<(), Error> {
        let key = &(directory, name) as &dyn Name;
        let inode = *self.names.get(key).ok_or(Error::NotFound)?;
        if self.directories.get(&inode.number).is_some_and(|(_, names)| *names != 0) {
            return Err(Error::NotEmpty);
        }
        self.directories.remove(&inode.number);
        self.remove(directory, name);
        Ok(())
    }

    fn remove(&mut self, directory: u64, name: &str) {
        self.names.remove(&(directory, name) as &dyn Name);
        self.directories.get_mut(&directory).expect("there is one").1 -= 1;
    }

    fn rename(&mut self, from: (u64, &str), to: (u64, &str)) -> Result<Inode, Error> {
        let inode = *self.names.get(&from as &dyn Name).ok_or(Error::NotFound)?;
        if self.names.contains_key(&to as &dyn Name) {
            return Err(Error::Exists);
        }
        let mut above = to.0;
        while above != ROOT.number {
            if above == inode.number {
                return Err(Error::IntoItself);
            }
            above = self.directories[&above].0;
        }
        self.remove(from.0, from.1);
        self.insert(to.0, to.1, inode);
        if let Some(directory) = self.directories.get_mut(&inode.number) {
            directory.0 = to.0;
        }
        Ok(inode)
    }
}

/// How often a look-up that meets renames begins again, before it takes the lock.
const TRIES: u32 = 4;

/// The cache.
pub struct DirectoryCache {
    entries: HashMap<Key, Entry, RandomState, Directories>,
    /// Odd while a rename changes the table. Written under the lock.
    renames: AtomicU64,
    disk: Mutex<Disk>,
    entries_max: usize,
}

impl DirectoryCache {
    /// An empty disk, of whose names `entries_max` are cached at most. There is room for them from
    /// the beginning.
    pub fn new(entries_max: usize) -> Self {
        let room = HashMap::builder().capacity(entries_max);
        let entries = room.domain(Domain::of(Directories)).build();
        Self { entries, renames: AtomicU64::new(0), disk: Mutex::new(Disk::new()), entries_max }
    }
}

/// The cache, for the thread that has the lock.
struct Locked<'c> {
    cache: &'c DirectoryCache,
    disk: MutexGuard<'c, Disk>,
}

impl Names for Locked<'_> {
    fn disk(&mut self) -> &mut Disk {
        &mut self.disk
    }

    fn hit(&self, directory: u64, name: &str) -> Option<Option<Inode>> {
        self.cache.entries.read().get(&(directory, name) as &dyn Name).map(Entry::hit)
    }

    fn put(&mut self, directory: u64, name: &str, inode: Option<Inode>) {
        self.cache.entries.insert(Key::new(directory, name), Entry::new(inode));
    }

    fn put_renamed(&mut self, from: (u64, &str), to: (u64, &str), inode: Inode) {
        let count = self.cache.renames.load(Relaxed);
        self.cache.renames.store(count + 1, Relaxed);
        // Release: pairs with the Acquire fence in `look_up_cached`.
        fence(Release);
        self.put(to.0, to.1, Some(inode));
        self.put(from.0, from.1, None);
        // Release: pairs with the Acquire in `look_up_cached`.
        self.cache.renames.store(count + 2, Release);
    }

    fn cached(&self) -> usize {
        self.cache.entries.len()
    }

    fn retain(&mut self, keeps: &mut dyn FnMut(&Entry) -> bool) {
        self.cache.entries.retain(|_, entry| keeps(entry));
    }
}

impl Paths for DirectoryCache {
    fn look_up_cached<const N: usize>(&self, paths: [&str; N]) -> Option<[Option<Inode>; N]> {
        for _ in 0..TRIES {
            // Acquire: pairs with the Release at the end of a rename, all of which is seen.
            let before = self.renames.load(Acquire);
            if !before.is_multiple_of(2) {
                continue;
            }
            let found = READER.with(|reader| {
                let section = reader.read();
                walk_cached(paths, |key| self.entries.get(key, &section))
            });
            // Acquire: pairs with the Release fence of a rename: who has seen one of its changes
            // above sees here that it has begun.
            fence(Acquire);
            if self.renames.load(Relaxed) == before {
                return found;
            }
        }
        None
    }

    fn change<R>(&self, f: impl FnOnce(&mut dyn Names) -> R) -> R {
        let disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
        let mut locked = Locked { cache: self, disk };
        let result = f(&mut locked);
        locked.prune(self.entries_max);
        result
    }
}

impl fmt::Debug for DirectoryCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectoryCache").field("cached", &self.cached()).finish_non_exhaustive()
    }
}

/// The same with one reader-writer lock around everything.
#[derive(Debug)]
pub struct LockedCache {
    entries_max: usize,
    shared: RwLock<LockedShared>,
}

#[derive(Debug)]
struct LockedShared {
    disk: Disk,
    entries: StdHashMap<Key, Entry>,
}

impl Names for LockedShared {
    fn disk(&mut self) -> &mut Disk {
        &mut self.disk
    }

    fn hit(&self, directory: u64, name: &str) -> Option<Option<Inode>> {
        self.entries.get(&(directory, name) as &dyn Name).map(Entry::hit)
    }

    fn put(&mut self, directory: u64, name: &str, inode: Option<Inode>) {
        self.entries.insert(Key::new(directory, name), Entry::new(inode));
    }

    fn cached(&self) -> usize {
        self.entries.len()
    }

    fn retain(&mut self, keeps: &mut dyn FnMut(&Entry) -> bool) {
        self.entries.retain(|_, entry| keeps(entry));
    }
}

impl LockedCache {
    /// As [`DirectoryCache::new`].
    pub fn new(entries_max: usize) -> Self {
        let entries = StdHashMap::with_capacity(entries_max);
        let shared = LockedShared { disk: Disk::new(), entries };
        Self { entries_max, shared: RwLock::new(shared) }
    }
}

impl Paths for LockedCache {
    fn look_up_cached<const N: usize>(&self, paths: [&str; N]) -> Option<[Option<Inode>; N]> {
        let shared = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        walk_cached(paths, |key| shared.entries.get(key))
    }

    fn change<R>(&self, f: impl FnOnce(&mut dyn Names) -> R) -> R {
        let mut shared = self.shared.write().unwrap_or_else(PoisonError::into_inner);
        let result = f(&mut *shared);
        shared.prune(self.entries_max);
        result
    }
}
