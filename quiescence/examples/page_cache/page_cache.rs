//! A page cache: the pages of a file in memory, by their numbers, in an id table.
//!
//! A page that is there is read in a section, without a lock and without a count: the table leads
//! to the page, and that to its bytes, which are replaced as a whole when they are written. All
//! else goes by the lock of the page, outside of sections. Who has locked a page looks first
//! whether it is *gone*, since it may have been truncated or evicted between the look-up and the
//! lock; and whether it is *filled*, since it comes into the table before it has been read from
//! storage: so no two threads read one page in, and none reads it in beside a write.
//!
//! Three marks say what is to be done, and the table finds the pages that have one: [`DIRTY`] pages
//! are to be written back, [`WRITEBACK`] ones are being written, [`TO_WRITE`] ones were dirty when
//! [`File::sync`] began, so that pages that become dirty meanwhile do not keep it from its end.
//!
//! A reader that comes once, such as a backup, displaces nothing: a page that it brings in goes as
//! soon as it has been read ([`Use::Once`]).
//!
//! Memory is limited twice: so many pages are in the table, and what was replaced or evicted waits
//! for readers within the limit of the domain.
//!
//! Source of the idea: the kernel's `mm/filemap.c` and `mm/page-writeback.c` on the XArray (Matthew
//! Wilcox); the look-up without a lock is Nick Piggin's (2008).

#![allow(dead_code, reason = "a part for each program that includes this file")]

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quiescence::collections::{Id, IdMap, Mark};
use quiescence::{RcuOption, Weigh};

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;

/// To be written back.
pub(crate) const DIRTY: Mark = Mark::M0;
/// Being written back.
pub(crate) const WRITEBACK: Mark = Mark::M1;
/// Was dirty when `sync` began.
pub(crate) const TO_WRITE: Mark = Mark::M2;

/// Pages that are read in when a file seems to be read from its begin to its end.
const AHEAD: u32 = 4;

/// Whether what is read is likely to be read again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Use {
    Again,
    /// As `POSIX_FADV_NOREUSE` says of a file.
    Once,
}

pub(crate) type Bytes = [u8; PAGE];

/// Where the pages are when they are not in memory.
#[derive(Debug, Default)]
pub(crate) struct Disk(pub(crate) Mutex<Vec<u8>>);

impl Disk {
    /// Reads a page; what was never written is 0.
    fn read(&self, page: u32, into: &mut Bytes) {
        let disk = lock(&self.0);
        let from = (page as usize * PAGE).min(disk.len());
        let count = (disk.len() - from).min(PAGE);
        into[..count].copy_from_slice(&disk[from..from + count]);
    }

    fn write(&self, page: u32, bytes: &Bytes) {
        let mut disk = lock(&self.0);
        let from = page as usize * PAGE;
        let length = disk.len().max(from + PAGE);
        disk.resize(length, 0);
        disk[from..from + PAGE].copy_from_slice(bytes);
    }

    /// Forgets what is beyond so many bytes.
    fn truncate(&self, length: u64) {
        lock(&self.0).truncate(length as usize);
    }
}

/// A page of a file.
#[derive(Debug)]
struct Page {
    /// Nothing, until it is filled.
    bytes: RcuOption<Bytes>,
    /// Read since the last turn of the eviction.
    referenced: AtomicBool,
    /// Whether it is gone. A thread locks it to fill, change, write back or remove the page.
    gone: Mutex<bool>,
}

/// With its bytes, which wait with it when it is removed.
impl Weigh for Page {
    fn owned(&self) -> usize {
        PAGE
    }
}

/// What has happened.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) read_in: AtomicU64,
    pub(crate) written_back: AtomicU64,
    pub(crate) evicted: AtomicU64,
    pub(crate) truncated: AtomicU64,
}

/// A file whose pages are cached.
#[derive(Debug)]
pub(crate) struct File {
    pages: IdMap<Arc<Page>>,
    pub(crate) storage: Disk,
    length: AtomicU64,
    /// Held by threads that write or truncate, as the kernel's `i_rwsem`. Not by those that read,
    /// or write back.
    changing: Mutex<()>,
    /// How many pages there are, and may be.
    resident: AtomicU32,
    resident_max: u32,
    /// Where the eviction continues.
    hand: AtomicU32,
    /// The page that was missed last.
    missed: AtomicU32,
    pub(crate) counts: Counts,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The page of a byte, and where it is in that.
fn place_of(at: u64) -> (u32, usize) {
    let page = u32::try_from(at / PAGE as u64).expect("a file has less than 16 TiB");
    (page, (at % PAGE as u64) as usize)
}

fn pages_of(length: u64) -> u64 {
    length.div_ceil(PAGE as u64)
}

impl File {
    /// A file of so many bytes that are in storage, of which so many pages may be in memory.
    pub(crate) fn new(storage: Disk, length: u64, resident_max: u32) -> Self {
        Self {
            pages: IdMap::new(),
            storage,
            length: AtomicU64::new(length),
            changing: Mutex::new(()),
            resident: AtomicU32::new(0),
            resident_max,
            hand: AtomicU32::new(0),
            missed: AtomicU32::new(u32::MAX),
            counts: Counts::default(),
        }
    }

    /// Bytes of the file.
    pub(crate) fn len(&self) -> u64 {
        self.length.load(Acquire) // pairs with the Release in `truncate` and `write`
    }

    /// Pages in memory.
    pub(crate) fn resident(&self) -> usize {
        self.pages.len()
    }

    /// Pages with a mark.
    pub(crate) fn marked(&self, mark: Mark) -> usize {
        self.pages.read().marked(mark, ..).count()
    }

    /// Reads bytes; returns how many there are before the end of the file. Each page is whole: as
    /// it was before a write of `write`, or after it.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> usize {
        self.read_for(Use::Again, offset, into)
    }

    /// The same; read once, it evicts nothing.
    pub(crate) fn read_for(&self, to: Use, offset: u64, into: &mut [u8]) -> usize {
        let end = self.len().min(offset + into.len() as u64);
        let mut at = offset;
        while at < end {
            let (page, from) = place_of(at);
            let count = (PAGE - from).min((end - at) as usize);
            let target = &mut into[(at - offset) as usize..][..count];
            if !self.copy(to, page, from, target) && !self.bring_in(to, page, from, target) {
                return (at - offset) as usize; // truncated meanwhile
            }
            at += count as u64;
        }
        end.saturating_sub(offset) as usize
    }

    /// Copies out of a page that is in memory: the whole of a read that hits.
    fn copy(&self, to: Use, page: u32, from: usize, into: &mut [u8]) -> bool {
        let reader = self.pages.read();
        let Some((_, page)) = reader.get_at(page) else { return false };
        let Some(bytes) = page.bytes.load(&reader) else { return false };
        into.copy_from_slice(&bytes[from..from + into.len()]);
        // Relaxed: a hint. Written once in a turn of the eviction.
        if to == Use::Again && !page.referenced.load(Relaxed) {
            page.referenced.store(true, Relaxed);
        }
        true
    }

    /// Brings a page in that is missing, and copies out of it; then those behind it, if it seems
    /// that they are next. Returns `false` where the file has no such page any more.
    fn bring_in(&self, to: Use, page: u32, from: usize, into: &mut [u8]) -> bool {
        let pages = pages_of(self.len());
        if u64::from(page) >= pages {
            return false;
        }
        self.with_page(to, page, |_, page| {
            let bytes = page.bytes.read().expect("filled");
            into.copy_from_slice(&bytes[from..from + into.len()]);
        });
        if to == Use::Once {
            return true;
        }
        // Relaxed: a hint.
        let mut last = page;
        if self.missed.load(Relaxed).wrapping_add(1) == page {
            last = page.saturating_add(AHEAD).min((pages - 1) as u32);
            (page + 1..=last).for_each(|ahead| self.with_page(to, ahead, |_, _| ()));
        }
        self.missed.store(last, Relaxed);
        true
    }

    /// Calls `f` with a page that is locked, filled, and not gone; with its bytes. Used once, it is
    /// only read, and goes if it was not there.
    fn with_page<R>(&self, to: Use, index: u32, f: impl FnOnce(Id, &Page) -> R) -> R {
        loop {
            let (id, page) = self.page(index);
            let mut gone = lock(&page.gone);
            if *gone {
                continue; // it was removed between the look-up and the lock
            }
            let was_missing = page.bytes.read().is_none();
            if was_missing {
                page.bytes.store(Some(self.fetch(index)));
            }
            let result = f(id, &page);
            if to == Use::Once && was_missing {
                self.remove(id, &mut gone);
                return result;
            }
            drop(gone);
            self.evict();
            return result;
        }
    }

    /// A page in the table, perhaps a new one. It may be gone when this returns.
    fn page(&self, index: u32) -> (Id, Arc<Page>) {
        loop {
            if let Some((id, page)) = self.pages.read().get_at(index) {
                return (id, Arc::clone(page));
            }
            let new = Page {
                bytes: RcuOption::empty(),
                referenced: AtomicBool::new(true),
                gone: Mutex::new(false),
            };
            // Whether this is it, or another thread was first: the next look says.
            if self.pages.insert_at(index, Arc::new(new)).is_ok() {
                self.resident.fetch_add(1, Relaxed);
            }
        }
    }

    /// The bytes of a page, from storage; 0 beyond the end of the file, whatever is in storage
    /// still.
    fn fetch(&self, index: u32) -> Bytes {
        let mut bytes = [0; PAGE];
        // Pairs with the fence in `truncate`: that sees the page, which came into the table before,
        // or this sees the new length.
        fence(SeqCst);
        let there = self.len().saturating_sub(u64::from(index) * PAGE as u64);
        if there > 0 {
            self.storage.read(index, &mut bytes);
            self.counts.read_in.fetch_add(1, Relaxed);
            bytes[there.min(PAGE as u64) as usize..].fill(0);
        }
        bytes
    }

    /// Writes bytes into pages, which become dirty; the file becomes as long as is needed.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) {
        let _changing = lock(&self.changing);
        let end = offset + bytes.len() as u64;
        let mut at = offset;
        while at < end {
            let (page, from) = place_of(at);
            let count = (PAGE - from).min((end - at) as usize);
            let source = &bytes[(at - offset) as usize..][..count];
            at += count as u64;
            self.change(page, at, |page| page[from..from + count].copy_from_slice(source));
        }
    }

    /// Replaces the bytes of a page by a changed copy, and marks it. The file is so long at least
    /// then.
    fn change(&self, index: u32, length: u64, change: impl FnOnce(&mut Bytes)) {
        self.with_page(Use::Again, index, |id, page| {
            let mut bytes = *page.bytes.read().expect("filled");
            change(&mut bytes);
            page.bytes.store(Some(bytes));
            // Under the lock of the page: it is not gone, and is not being written back. What is
            // fetched again has all bytes up to the length, so that is changed here, too.
            self.pages.set_mark(id, DIRTY);
            if length > self.len() {
                self.length.store(length, Release); // the bytes come first
            }
        });
    }

    /// Cuts the file, or lengthens it by zeros. Pages beyond the end are removed beside readers,
    /// which have them until their sections end.
    pub(crate) fn truncate(&self, length: u64) {
        let _changing = lock(&self.changing);
        self.length.store(length, Release);
        fence(SeqCst); // pairs with that in `fetch`
        let first = u32::try_from(pages_of(length)).unwrap_or(u32::MAX);
        let beyond: Vec<_> = {
            let reader = self.pages.read();
            reader.range(first..).map(|(id, page)| (id, Arc::clone(page))).collect()
        };
        for (id, page) in beyond {
            let mut gone = lock(&page.gone); // written back, if a thread was at it
            if !*gone {
                self.remove(id, &mut gone);
                self.counts.truncated.fetch_add(1, Relaxed);
            }
        }
        let rest = (length % PAGE as u64) as usize;
        if rest != 0 {
            self.change(place_of(length).0, length, |bytes| bytes[rest..].fill(0));
        }
        self.storage.truncate(length);
    }

    /// Removes a page that is locked.
    fn remove(&self, id: Id, gone: &mut bool) {
        *gone = true;
        self.pages.remove(id);
        self.resident.fetch_sub(1, Relaxed);
    }

    /// Writes the dirty pages of now back. Returns how many it has written; others may be written
    /// by other threads at the same time.
    pub(crate) fn write_back(&self) -> usize {
        self.write_marked(DIRTY, usize::MAX)
    }

    /// Writes everything back that was written before, by whichever thread.
    pub(crate) fn sync(&self) {
        let dirty: Vec<Id> = self.pages.read().marked(DIRTY, ..).map(|(id, _)| id).collect();
        for id in dirty {
            self.pages.set_mark(id, TO_WRITE);
        }
        self.write_marked(TO_WRITE, usize::MAX);
        // Those that other threads are writing: their locks are held until they are written.
        for (_, page) in self.with_mark(WRITEBACK) {
            drop(lock(&page.gone));
        }
    }

    /// The pages with a mark.
    fn with_mark(&self, mark: Mark) -> Vec<(Id, Arc<Page>)> {
        let reader = self.pages.read();
        reader.marked(mark, ..).map(|(id, page)| (id, Arc::clone(page))).collect()
    }

    fn write_marked(&self, mark: Mark, most: usize) -> usize {
        let mut written = 0;
        for (id, page) in self.with_mark(mark).into_iter().take(most) {
            // Held until it is written: so `truncate` and `sync` wait for that.
            let gone = lock(&page.gone);
            self.pages.clear_mark(id, TO_WRITE);
            // Not, if it was removed; nor if another thread has written it since it was found.
            if !*gone && self.pages.swap_mark(id, DIRTY, WRITEBACK) {
                let reader = self.pages.read();
                let bytes = *page.bytes.load(&reader).expect("a dirty page is filled");
                drop(reader); // no section while it is written
                self.storage.write(id.index(), &bytes);
                self.pages.clear_mark(id, WRITEBACK);
                self.counts.written_back.fetch_add(1, Relaxed);
                written += 1;
            }
        }
        written
    }

    /// Removes clean pages that were not read lately until there are as many as there may be;
    /// writes some back, where dirty ones are in the way.
    fn evict(&self) {
        for _ in 0..4 {
            if self.resident.load(Relaxed) <= self.resident_max {
                return;
            }
            if self.turn() {
                self.write_marked(DIRTY, 16);
            }
        }
    }

    /// Goes once round. Returns whether it came by a dirty page.
    fn turn(&self) -> bool {
        let from = self.hand.load(Relaxed); // a hint
        let candidates: Vec<_> = {
            let reader = self.pages.read();
            let all = reader.range(from..).chain(reader.range(..from));
            all.map(|(id, page)| (id, Arc::clone(page))).collect()
        };
        let mut found_dirty = false;
        for (id, page) in candidates {
            if self.resident.load(Relaxed) <= self.resident_max {
                break;
            }
            self.hand.store(id.index().wrapping_add(1), Relaxed);
            if page.referenced.swap(false, Relaxed) {
                continue;
            }
            // A page that is locked is needed.
            let Ok(mut gone) = page.gone.try_lock() else { continue };
            let is_dirty = self.pages.is_marked(id, DIRTY);
            found_dirty |= is_dirty;
            if !*gone && !is_dirty {
                self.remove(id, &mut gone);
                self.counts.evicted.fetch_add(1, Relaxed);
            }
        }
        found_dirty
    }
}
