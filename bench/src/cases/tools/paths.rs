//! Look-ups of paths in a directory cache, and now and then a rename, in the two forms of the
//! example `directory_cache`.

use super::chapters::random::Random;
use super::directory_cache::Paths;

/// Names in each of three directories above a file: so many, cubed, are the files.
const NAMES: usize = 10;

/// More entries than there are, so that none is pruned.
const ENTRIES_MAX: usize = 1 << 16;

/// One operation of so many is a rename.
const RENAME_EACH: usize = 1000;

/// Threads whose renames do not meet.
const THREADS: usize = 64;

/// The paths, and what knows them.
pub(super) struct Tree<C> {
    cache: C,
    files: Vec<String>,
}

impl<C: Paths> Tree<C> {
    pub(super) fn of(new: fn(usize) -> C) -> Self {
        let cache = new(ENTRIES_MAX);
        let make = |path: &str, is_directory| {
            cache.create(path, is_directory).expect("it is not there");
        };
        make("/usr", true);
        let mut files = Vec::new();
        for outer in 0..NAMES {
            make(&format!("/usr/share-{outer}"), true);
            for inner in 0..NAMES {
                let directory = format!("/usr/share-{outer}/program-{inner}");
                make(&directory, true);
                for file in 0..NAMES {
                    let path = format!("{directory}/file-{file}");
                    make(&path, false);
                    files.push(path);
                }
            }
        }
        for thread in 0..THREADS {
            make(&format!("/usr/moved-{thread}"), false);
        }
        let tree = Self { cache, files };
        // Each name is in the cache.
        for path in &tree.files {
            assert!(tree.cache.look_up(path).is_some(), "{path}");
        }
        tree
    }

    /// Look-ups and renames; the sum of what was found.
    pub(super) fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
        let mut random = Random::new(thread, seed);
        let mut names = ["moved", "new"].map(|name| format!("/usr/{name}-{}", thread % THREADS));
        let mut sum = 0_u64;
        for operation in 1..=operations {
            if operation % RENAME_EACH == 0 {
                // Another thread of the same number may have done it.
                let _ = self.cache.rename(&names[0], &names[1]);
                names.swap(0, 1);
            } else {
                let path = &self.files[random.below(self.files.len())];
                let found = self.cache.look_up(path).expect("it stays");
                sum = sum.wrapping_add(found.number);
            }
        }
        // As it was before, for the next one.
        if names[0].contains("new") {
            let _ = self.cache.rename(&names[0], &names[1]);
        }
        sum
    }
}
