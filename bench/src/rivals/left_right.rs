//! left-right: two copies, of which readers have one and the writer the other.

use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use left_right::{Absorb, ReadHandle, ReadHandleFactory, WriteHandle};

use super::Rival;
use crate::cases::cells::{Words, sum, words};
use crate::cases::loops::{Looped, timed};
use crate::serve::Cell;

pub(super) const RIVALS: &[Rival] =
    &[Rival::new("left-right").times(Looped::Read, read).cell::<LeftRight>()];

/// What left-right keeps two of.
#[derive(Clone)]
struct Held(Words);

impl Absorb<Words> for Held {
    fn absorb_first(&mut self, operation: &mut Words, _: &Self) {
        self.0 = *operation;
    }

    fn sync_with(&mut self, first: &Self) {
        self.0 = first.0;
    }
}

/// One word, of which it keeps two as well.
#[derive(Clone)]
struct Word(u64);

impl Absorb<u64> for Word {
    fn absorb_first(&mut self, operation: &mut u64, _: &Self) {
        self.0 = *operation;
    }

    fn sync_with(&mut self, first: &Self) {
        self.0 = first.0;
    }
}

/// The handle that writes, and where readers come from.
struct LeftRight {
    writer: Mutex<WriteHandle<Held, Words>>,
    readers: ReadHandleFactory<Held>,
}

static LEFT_RIGHT: LazyLock<LeftRight> = LazyLock::new(|| {
    let (writer, reader) = left_right::new_from_empty(Held(words(0)));
    LeftRight { writer: Mutex::new(writer), readers: reader.factory() }
});

fn read(batches: u64) -> Duration {
    static WORD: LazyLock<ReadHandleFactory<Word>> = LazyLock::new(|| {
        let (writer, reader) = left_right::new_from_empty(Word(1));
        // Readers of a writer that is gone find nothing; this one stays, and never writes.
        std::mem::forget(writer);
        reader.factory()
    });
    let read = |reader: &mut ReadHandle<Word>| reader.enter().map_or(0, |guard| guard.0);
    timed(batches, &mut WORD.handle(), read, |_| {})
}

impl Cell for LeftRight {
    fn load(batches: u64) -> Duration {
        let read =
            |reader: &mut ReadHandle<Held>| reader.enter().map_or(0, |guard| sum(&guard.0));
        timed(batches, &mut LEFT_RIGHT.readers.handle(), read, |_| {})
    }

    fn store(number: u64) {
        let mut writer = LEFT_RIGHT.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.append(words(number));
        writer.publish();
    }
}
