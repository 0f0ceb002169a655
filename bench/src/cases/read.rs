//! The price of a read: enter a section, load the pointer, read its word, leave.
//!
//! All rivals run the same two nested loops around a shared word, in threads that start together;
//! the inner loop is compiled into each of them.

use std::hint::black_box;
use std::sync::atomic::AtomicPtr;
use std::time::Duration;

use super::loops::{Loop, timed};
use crate::serve::Replace;

/// The word that is read, for the rivals that load a pointer themselves. Never replaced.
static WORD: u64 = 1;

/// Where the word is.
pub(crate) static SLOT: AtomicPtr<u64> = AtomicPtr::new((&raw const WORD).cast_mut());

/// Reads of a word in a place.
pub(crate) fn reads<R: Replace>() -> Loop {
    let scheme = R::default();
    let place = scheme.place(1);
    Loop::new(move |batches| read::<R, false>(batches, &scheme, &place))
}

/// The same inside another section of the thread.
pub(crate) fn nested<R: Replace>() -> Loop {
    let scheme = R::default();
    let place = scheme.place(1);
    Loop::new(move |batches| {
        let outer = &mut scheme.thread();
        scheme.read(outer, &place, |_| read::<R, true>(batches, &scheme, &place))
    })
}

/// Compiled for each of the two apart, or what they share is a call in both.
#[inline(always)]
fn read<R: Replace, const IS_NESTED: bool>(
    batches: u64,
    scheme: &R,
    place: &R::Place<u64>,
) -> Duration {
    let (scheme, place) = black_box((scheme, place));
    let once = |thread: &mut R::Thread| scheme.read(thread, place, |word| *word);
    timed(batches, &mut scheme.thread(), once, R::pause)
}
