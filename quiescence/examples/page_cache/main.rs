//! A page cache on an id table: pages by their numbers, written back by mark, evicted and truncated
//! beside readers.

mod page_cache;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use page_cache::{DIRTY, Disk, File, PAGE, Use};

/// Pages of the file, and how many of them may be in memory.
const PAGES: u64 = 1_000;
const RESIDENT_MAX: u32 = 200;

/// Pages that have to be read in again for the first hundred, after a scan of the whole file.
fn missed_after_a_scan(file: &File, to: Use) -> u64 {
    let mut bytes = [0; PAGE];
    let mut read = |to, page| file.read_for(to, page * PAGE as u64, &mut bytes);
    let first = 0..100;
    for page in first.clone().chain(first.clone()) {
        read(Use::Again, page);
    }
    for page in 0..PAGES {
        read(to, page);
    }
    let before = file.counts.read_in.load(Relaxed);
    for page in first {
        read(Use::Again, page);
    }
    file.counts.read_in.load(Relaxed) - before
}

fn main() {
    let length = PAGES * PAGE as u64;
    let file = File::new(Disk(Mutex::new(vec![7; length as usize])), length, RESIDENT_MAX);
    let (done, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        // Readers: every page is of one value, whatever is done to it.
        for thread in 0..2_u64 {
            let (file, done, reads) = (&file, &done, &reads);
            scope.spawn(move || {
                let (mut bytes, mut page) = ([0; PAGE], thread);
                while !done.load(Relaxed) {
                    // Mostly the first hundred, now and then one of all.
                    page = page.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let range = if page >> 60 == 0 { PAGES } else { 100 };
                    let count = file.read((page >> 33) % range * PAGE as u64, &mut bytes);
                    let first = bytes[0];
                    assert!(bytes[..count].iter().all(|byte| *byte == first), "a torn page");
                    reads.fetch_add(1, Relaxed);
                }
            });
        }
        scope.spawn(|| {
            for round in 0..40_u8 {
                (0..50).for_each(|page| file.write(page * 17 * PAGE as u64, &[round; PAGE]));
                let dirty = file.marked(DIRTY);
                let written = file.write_back();
                if round % 10 == 0 {
                    println!("{dirty} dirty pages, {written} written back by mark");
                }
                // Cut to half, and grown again.
                file.truncate(length / 2);
                file.write(length - PAGE as u64, &[round; PAGE]);
            }
            file.sync();
            done.store(true, Relaxed);
        });
    });
    let counts = &file.counts;
    println!(
        "{} pages read, {} of them from the disk; {} written back, {} evicted, {} truncated",
        reads.load(Relaxed),
        counts.read_in.load(Relaxed),
        counts.written_back.load(Relaxed),
        counts.evicted.load(Relaxed),
        counts.truncated.load(Relaxed),
    );
    println!("{} of at most {RESIDENT_MAX} pages are in memory", file.resident());
    for to in [Use::Again, Use::Once] {
        let missed = missed_after_a_scan(&file, to);
        println!(
            "after a scan whose pages are used {to:?}, {missed} of 100 pages are read in again"
        );
    }
    let waiting = quiescence::Domain::global().statistics().bytes_waiting;
    println!(
        "{waiting} bytes wait for readers; the limit is {}",
        quiescence::Domain::global().tuning().bytes_max
    );
}
