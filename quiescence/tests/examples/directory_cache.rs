//! The directory cache of `examples/directory_cache`: a model, renames beside look-ups, negative
//! entries, and pruning.

#[path = "../../examples/directory_cache/cache.rs"]
#[allow(dead_code, unreachable_pub)]
mod cache;

use crate::common::*;
use std::collections::BTreeMap;

use cache::{DirectoryCache, Error, Inode, LockedCache, Paths};

/// All paths that there are.
#[derive(Default)]
struct Model(BTreeMap<String, Inode>);

impl Model {
    /// Whether the directory of a path is there.
    fn has_directory(&self, path: &str) -> bool {
        let directory = path.rsplit_once('/').unwrap().0;
        directory.is_empty() || self.0.get(directory).is_some_and(|inode| inode.is_directory)
    }

    fn below(&self, path: &str) -> Vec<String> {
        let inside = format!("{path}/");
        self.0.keys().filter(|other| other.starts_with(&inside)).cloned().collect()
    }

    fn unlink(&mut self, path: &str) -> Result<(), Error> {
        if !self.0.contains_key(path) {
            return Err(Error::NotFound);
        }
        if !self.below(path).is_empty() {
            return Err(Error::NotEmpty);
        }
        self.0.remove(path);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), Error> {
        if !self.0.contains_key(from) || !self.has_directory(to) {
            return Err(Error::NotFound);
        }
        if self.0.contains_key(to) {
            return Err(Error::Exists);
        }
        if to.starts_with(&format!("{from}/")) {
            return Err(Error::IntoItself);
        }
        for old in self.below(from).into_iter().chain([from.to_owned()]) {
            let inode = self.0.remove(&old).unwrap();
            self.0.insert(format!("{to}{}", &old[from.len()..]), inode);
        }
        Ok(())
    }
}

fn does_what_its_model_does(cache: &impl Paths, entries_max: usize, seed: u64) {
    let (mut model, mut numbers) = (Model::default(), Random(seed));
    let path = |numbers: &mut Random| -> String {
        (0..=numbers.index(3)).map(|_| ["/a", "/b", "/c"][numbers.index(3)]).collect()
    };
    for _ in 0..rounds(5_000, 50) {
        let one = path(&mut numbers);
        match numbers.index(8) {
            0 | 1 => {
                let is_directory = numbers.index(4) != 0;
                let made = cache.create(&one, is_directory);
                if model.0.contains_key(&one) {
                    assert_eq!(made, Err(Error::Exists));
                } else if model.has_directory(&one) {
                    model.0.insert(one, made.unwrap());
                } else {
                    assert_eq!(made, Err(Error::NotFound));
                }
            }
            2 => assert_eq!(cache.unlink(&one), model.unlink(&one)),
            3 => {
                let other = path(&mut numbers);
                assert_eq!(cache.rename(&one, &other), model.rename(&one, &other), "{one} {other}");
            }
            _ => assert_eq!(cache.look_up(&one), model.0.get(&one).copied(), "{one}"),
        }
        assert!(cache.cached() <= entries_max);
    }
}

#[test]
fn both_caches_do_what_their_model_does() {
    for seed in 1..=rounds(6, 1) {
        for entries_max in [4, 20, 1_000] {
            does_what_its_model_does(&DirectoryCache::new(entries_max), entries_max, seed);
            does_what_its_model_does(&LockedCache::new(entries_max), entries_max, seed);
        }
    }
}

/// Files and whole directories go back and forth between two directories: each look-up sees exactly
/// one of the names.
fn each_look_up_sees_one_name(cache: &impl Paths) {
    for path in ["/left", "/right", "/left/file", "/left/directory", "/left/directory/inner"] {
        cache.create(path, path != "/left/file").unwrap();
    }
    let deep = cache.create("/left/directory/inner/deep", false).unwrap();
    let pairs = [
        ["/left/file", "/right/file"],
        ["/left/directory/inner/deep", "/right/directory/inner/deep"],
    ];
    let look_up = |reader: usize| {
        move || {
            let found = cache.look_up_all(pairs[reader]);
            let place = found.iter().position(Option::is_some).expect("neither name");
            assert_eq!(found[1 - place], None, "both names");
            assert!(reader == 0 || found[place] == Some(deep));
        }
    };
    beside(2, look_up, || {
        for _ in 0..rounds(5_000, 20) {
            for what in ["file", "directory"] {
                cache.rename(&format!("/left/{what}"), &format!("/right/{what}")).unwrap();
                cache.rename(&format!("/right/{what}"), &format!("/left/{what}")).unwrap();
            }
        }
    });
}

#[test]
fn a_look_up_beside_renames_sees_exactly_one_name() {
    each_look_up_sees_one_name(&DirectoryCache::new(1_000));
    each_look_up_sees_one_name(&DirectoryCache::new(4)); // pruned all the time
    each_look_up_sees_one_name(&LockedCache::new(1_000));
}

fn asks_the_disk_once(cache: &impl Paths) {
    cache.create("/usr", true).unwrap();
    let before = cache.disk_reads();
    for _ in 0..10 {
        assert_eq!(cache.look_up("/usr/missing/file"), None);
    }
    assert_eq!(cache.disk_reads() - before, 1, "`missing`, once");
    let made = cache.create("/usr/missing", true).unwrap();
    assert_eq!(cache.look_up("/usr/missing"), Some(made));
    cache.unlink("/usr/missing").unwrap();
    assert_eq!(cache.look_up("/usr/missing"), None);
    assert_eq!(cache.disk_reads() - before, 1, "the cache was told");
}

#[test]
fn an_absent_name_is_cached() {
    asks_the_disk_once(&DirectoryCache::new(100));
    asks_the_disk_once(&LockedCache::new(100));
}

fn prunes_what_is_not_used(cache: &impl Paths, entries_max: usize) {
    cache.create("/used", false).unwrap();
    for number in 0..10 * entries_max {
        assert!(cache.look_up("/used").is_some());
        assert_eq!(cache.look_up(&format!("/absent{number}")), None);
        assert!(cache.cached() <= entries_max);
    }
    assert!(cache.cached() >= entries_max / 2);
    let before = cache.disk_reads();
    assert!(cache.look_up("/used").is_some());
    assert_eq!(cache.disk_reads(), before, "what is used all the time was not pruned");
    // And where everything is used, something is pruned nonetheless.
    for _ in 0..2 {
        for number in 0..2 * entries_max {
            cache.look_up(&format!("/{number}"));
            cache.look_up(&format!("/{number}"));
            assert!(cache.cached() <= entries_max);
        }
    }
}

#[test]
fn what_is_not_used_is_pruned() {
    prunes_what_is_not_used(&DirectoryCache::new(64), 64);
    prunes_what_is_not_used(&LockedCache::new(64), 64);
}
