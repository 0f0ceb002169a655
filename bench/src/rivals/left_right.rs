//! left-right: two copies, of which readers have one and the writer the other.

use std::sync::{Arc, Mutex, PoisonError};

use left_right::{Absorb, ReadHandle};

use super::Rival;
use crate::cases::loops::{Loop, Looped, sum, timed, words};

pub(super) const RIVALS: &[Rival] = &[Rival::new("left-right")
    .times(Looped::Read, || cell::<_, false>(1, |_| 1, |word| *word))
    .times(Looped::Cell, || cell::<_, false>(words(0), words, sum))
    .times(Looped::CellStore, || cell::<_, true>(words(0), words, sum))];

/// What left-right keeps two of.
#[derive(Clone)]
struct Held<T>(T);

impl<T: Copy> Absorb<T> for Held<T> {
    fn absorb_first(&mut self, operation: &mut T, _: &Self) {
        self.0 = *operation;
    }

    fn sync_with(&mut self, first: &Self) {
        self.0 = first.0;
    }
}

/// Reads of what is held, and what writes it, as other cells of [`loops`](crate::cases::loops).
fn cell<T: Copy + Send + Sync + 'static, const IS_WRITTEN: bool>(
    held: T,
    make: impl Fn(u64) -> T + Send + Sync + 'static,
    look: impl Fn(&T) -> u64 + Copy + Send + Sync + 'static,
) -> Loop {
    let (writer, reader) = left_right::new_from_empty(Held(held));
    let (writer, readers) = (Arc::new(Mutex::new(writer)), reader.factory());
    // Readers of a writer that is gone find nothing.
    let stays = Arc::clone(&writer);
    let reads = Loop::new(move |batches| {
        let _stays = &stays;
        let read =
            |reader: &mut ReadHandle<Held<T>>| reader.enter().map_or(0, |guard| look(&guard.0));
        timed(batches, &mut readers.handle(), read, |_| {})
    });
    let write = move |number| {
        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.append(make(number));
        writer.publish();
    };
    Loop::cell::<IS_WRITTEN>(reads, write)
}
