//! evmap: two maps, one that is read and one that is written, which change places (left-right).
//!
//! Each update is published at once, as a map's users expect; the crate is made for those who
//! publish many together. Writers share the one handle that there is by a lock.

use std::collections::hash_map::RandomState;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use evmap::Options;
use evmap::handles::{ReadHandle, WriteHandle};

use super::Rival;
use crate::cases::maps::{Fast, Hashes, Key, Map};

pub(super) const RIVALS: &[Rival] =
    &[Rival::new("evmap").maps::<Published<u64, Fast>, Published<u64>, Published<String, Fast>>()];

type Writer<K, S> = WriteHandle<K, u64, (), S>;

type Reader<K, S> = ReadHandle<K, u64, (), S>;

/// The writers' handle, and the one of which readers get theirs.
struct Published<K: Key, S: Hashes = RandomState> {
    writer: Mutex<Writer<K, S>>,
    reader: Mutex<Reader<K, S>>,
}

impl<K: Key, S: Hashes> Published<K, S> {
    fn writer(&self) -> MutexGuard<'_, Writer<K, S>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline(always)]
    fn if_there(&self, key: &K, change: impl FnOnce(&mut Writer<K, S>)) -> bool {
        let mut writer = self.writer();
        let is_there = writer.contains_key(key);
        if is_there {
            change(&mut writer);
        }
        is_there
    }
}

impl<K: Key, S: Hashes> Map<K> for Published<K, S> {
    type Thread = Reader<K, S>;

    fn with_capacity(entries: usize) -> Self {
        // SAFETY: the same hasher gives the same hashes, of a clone too.
        let options = unsafe { Options::default().with_hasher(S::default()) };
        let options = options.with_capacity(entries);
        // SAFETY: words and strings are equal, and hash, as their clones do.
        let (mut writer, reader) = unsafe { options.assert_stable() };
        // Before the first time there is nothing to be read.
        writer.publish();
        Self { reader: Mutex::new(reader), writer: Mutex::new(writer) }
    }

    fn thread(&self) -> Self::Thread {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[inline(always)]
    fn read<R>(
        &self,
        thread: &mut Self::Thread,
        key: &K,
        look: impl FnOnce(&u64) -> R,
    ) -> Option<R> {
        thread.get_one(key).map(|value| look(&value))
    }

    #[inline(always)]
    fn insert(&self, _thread: &mut Self::Thread, key: &K, value: u64) -> bool {
        let mut writer = self.writer();
        let is_new = !writer.contains_key(key);
        writer.update(key.clone(), value).publish();
        is_new
    }

    #[inline(always)]
    fn replace(&self, _thread: &mut Self::Thread, key: &K, value: u64) {
        self.writer().update(key.clone(), value).publish();
    }

    #[inline(always)]
    fn update(&self, _thread: &mut Self::Thread, key: &K, value: u64) -> bool {
        self.if_there(key, |writer| _ = writer.update(key.clone(), value).publish())
    }

    #[inline(always)]
    fn remove(&self, _thread: &mut Self::Thread, key: &K) -> bool {
        self.if_there(key, |writer| _ = writer.remove_entry(key.clone()).publish())
    }

    /// Published in one go.
    fn fill(&self, numbers: Range<u64>) {
        let mut writer = self.writer();
        for number in numbers {
            writer.update(K::of(number), number);
        }
        writer.publish();
    }

    /// The second copy gets what is missing, and the log is empty.
    fn flush(&self) {
        self.writer().publish().publish();
    }
}
