//! The page cache of `examples/page_cache`.

#[path = "../../examples/page_cache/page_cache.rs"]
mod cache;

use crate::common::*;
use cache::{DIRTY, Disk, File, PAGE, TO_WRITE, Use, WRITEBACK};

const ROUNDS: usize = if cfg!(miri) { 10 } else { 2_000 };

#[test]
fn it_does_what_an_array_does() {
    let file = File::new(Disk::default(), 0, 8);
    let (mut array, mut random) = (Vec::<u8>::new(), Random(1));
    for round in 0..ROUNDS {
        let offset = random.next() % (40 * PAGE as u64);
        let count = (random.next() % (3 * PAGE as u64)) as usize;
        match random.next() % 16 {
            0..8 => {
                let mut read = vec![0xee; count];
                let got = file.read(offset, &mut read);
                let from = array.len().min(offset as usize);
                let expected = &array[from..array.len().min(from + count)];
                assert_eq!(&read[..got], expected, "round {round}: {count} bytes at {offset}");
            }
            8..14 => {
                let bytes = vec![round as u8; count];
                file.write(offset, &bytes);
                if count > 0 {
                    array.resize(array.len().max(offset as usize + count), 0);
                    array[offset as usize..][..count].copy_from_slice(&bytes);
                }
            }
            14 => {
                file.truncate(offset);
                array.resize(offset as usize, 0);
            }
            _ => {
                if round % 2 == 0 {
                    let dirty = file.marked(DIRTY);
                    assert_eq!((file.write_back(), file.write_back()), (dirty, 0));
                } else {
                    file.sync();
                }
                assert_eq!([DIRTY, WRITEBACK, TO_WRITE].map(|mark| file.marked(mark)), [0; 3]);
                let mut disk = file.storage.0.lock().unwrap().clone();
                disk.resize(array.len(), 0);
                assert!(disk == array, "round {round}: the disk has another file");
            }
        }
        assert_eq!(file.len(), array.len() as u64);
        assert!(file.resident() <= 8 + 1, "{} pages", file.resident());
    }
}

#[test]
fn a_scan_that_reads_once_evicts_nothing_and_sees_what_is_written() {
    let file = File::new(Disk::default(), 64 * PAGE as u64, 16);
    let mut byte = [0];
    let mut read = |to, page: u64| {
        assert_eq!(file.read_for(to, page * PAGE as u64, &mut byte), 1);
        byte[0]
    };
    let read_in = || file.counts.read_in.load(Relaxed);
    (0..16).for_each(|page| file.write(page * PAGE as u64, &[page as u8]));
    file.sync();
    let before = read_in();
    for page in 0..64 {
        assert_eq!(read(Use::Once, page), if page < 16 { page as u8 } else { 0 });
    }
    assert_eq!((read_in() - before, file.resident()), (48, 16));
    (0..16).for_each(|page| assert_eq!(read(Use::Again, page), page as u8));
    assert_eq!(read_in() - before, 48, "all of them are in memory still");
    (16..64).for_each(|page| assert_eq!(read(Use::Again, page), 0));
    let scanned = read_in();
    (0..16).for_each(|page| assert_eq!(read(Use::Again, page), page as u8));
    assert!(read_in() > scanned, "an ordinary scan evicts");
}

/// Threads that each write to pages of their own, and read them again, while others write back and
/// the memory is too small for all.
#[test]
fn no_write_is_lost_beside_write_back_and_eviction() {
    const THREADS: u64 = 3;
    let file = File::new(Disk::default(), 0, 6);
    let start = Barrier::new(THREADS as usize);
    let clean = |_| {
        || {
            file.write_back();
            file.sync();
        }
    };
    let write = |thread: usize| {
        let (mut latest, mut random) = ([0_u8; 8], Random(thread as u64 + 1));
        start.wait();
        for round in 0..ROUNDS {
            let mine = (random.next() % 8) as usize;
            let offset = (mine as u64 * THREADS + thread as u64) * PAGE as u64 + 100;
            if random.next().is_multiple_of(2) {
                latest[mine] = round as u8;
                file.write(offset, &[round as u8; 16]);
            } else if latest[mine] != 0 {
                let mut read = [0; 16];
                assert_eq!(file.read(offset, &mut read), 16);
                assert_eq!(read, [latest[mine]; 16], "page {mine} of {thread}");
            }
        }
        latest
    };
    let latest = beside(1, clean, || threads(THREADS as usize, write));
    file.sync();
    let disk = file.storage.0.lock().unwrap();
    for (thread, latest) in latest.iter().enumerate() {
        for (mine, value) in latest.iter().enumerate().filter(|(_, value)| **value != 0) {
            let offset = (mine * THREADS as usize + thread) * PAGE + 100;
            assert_eq!(disk[offset..offset + 16], [*value; 16]);
        }
    }
}

/// What was cut off is gone for all, whatever readers and write-back were about to do with it.
#[test]
fn what_was_truncated_does_not_come_back() {
    let pages = 12_u64;
    let file = File::new(Disk::default(), 0, 1_000);
    let work = |thread| {
        let (mut bytes, mut random, file) = ([0; PAGE], Random(5), &file);
        move || {
            if thread == 0 {
                file.write_back();
                return;
            }
            let count = file.read(random.next() % pages * PAGE as u64, &mut bytes);
            let first = bytes[0];
            assert!(bytes[..count].iter().all(|byte| *byte == first), "a torn page");
        }
    };
    beside(3, work, || {
        let mut bytes = [0xff; PAGE];
        for round in 1..=ROUNDS / 4 {
            for page in 0..pages {
                file.write(page * PAGE as u64, &[(round % 250 + 1) as u8; PAGE]);
            }
            file.truncate(3 * PAGE as u64);
            assert_eq!(file.read(5 * PAGE as u64, &mut bytes), 0);
            file.truncate(pages * PAGE as u64);
            for page in 3..pages {
                assert_eq!(file.read(page * PAGE as u64, &mut bytes), PAGE);
                assert!(bytes == [0; PAGE], "round {round}: page {page} has {}", bytes[0]);
            }
        }
    });
}

/// What was replaced and removed waits within the limit, also while a reader stays in a section. In
/// a process of its own, whose limit no other test shares.
#[test]
fn memory_is_limited() {
    const LIMIT: u64 = 64 * PAGE as u64;
    in_its_own_process!();
    tune(&Domain::global(), |tuning| tuning.bytes_max = LIMIT);
    let file = File::new(Disk::default(), 0, 16);
    let mut most = 0;
    for round in 0..ROUNDS as u64 {
        file.write(round % 64 * PAGE as u64, &[round as u8; PAGE]);
        most = most.max(Domain::global().statistics().bytes_waiting);
        assert!(file.resident() <= 17);
    }
    // Other tests of this file share the domain, which each of their threads may overrun by one.
    assert!(most <= LIMIT + 8 * 2 * PAGE as u64, "{most} bytes waited");
}
