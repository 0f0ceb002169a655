//! A directory cache: paths are looked up without a lock, while others are renamed.
//!
//! `cache.rs` says how it works.

pub mod cache;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use cache::{DirectoryCache, Error, Paths};

fn main() -> Result<(), Error> {
    let cache = DirectoryCache::new(1_000);
    for path in ["/home", "/home/anna", "/home/ben", "/usr", "/usr/lib"] {
        cache.create(path, true)?;
    }
    let file = cache.create("/home/anna/notes", false)?;
    assert_eq!(cache.look_up("/home/anna/notes"), Some(file));

    // An absent name is asked of the disk once.
    let before = cache.disk_reads();
    for _ in 0..100 {
        assert_eq!(cache.look_up("/usr/lib/libmissing.so"), None);
    }
    println!("100 look-ups of an absent name: {} read of the disk", cache.disk_reads() - before);

    // Each look-up finds the file under one of its names.
    let done = AtomicBool::new(false);
    let seen: u64 = thread::scope(|scope| {
        let readers = [0, 1].map(|_| {
            scope.spawn(|| {
                let mut seen = 0;
                while !done.load(Relaxed) {
                    let found = cache.look_up_all(["/home/anna/notes", "/home/ben/notes"]);
                    assert_eq!(found.iter().flatten().count(), 1);
                    seen += 1;
                }
                seen
            })
        });
        for _ in 0..1_000 {
            cache.rename("/home/anna/notes", "/home/ben/notes").expect("it is there");
            cache.rename("/home/ben/notes", "/home/anna/notes").expect("it is there");
        }
        done.store(true, Relaxed);
        readers.into_iter().map(|reader| reader.join().expect("it found one name")).sum()
    });
    println!("{seen} look-ups beside 2000 renames found one name each");
    Ok(())
}
