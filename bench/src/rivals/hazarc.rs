//! hazarc: a counted pointer whose loads borrow, by hazard pointers and without a second look; with
//! and without the cache that each thread may keep of it.

use std::hint::black_box;

use hazarc::{AtomicArc, Cache};

use super::Rival;
use crate::cases::loops::{Loop, Looped, timed};
use crate::serve::arcs;

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("hazarc").arcs::<AtomicArc<u64>>().stored::<Borrowed>(),
    Rival::new("hazarc-cache").times(Looped::Guard, || {
        let place = AtomicArc::<u64>::from(1);
        Loop::new(move |batches| {
            let mut cache = Cache::new(black_box(&place));
            timed(batches, &mut cache, |cache| **cache.load(), |_| {})
        })
    }),
];

arcs!(Borrowed => AtomicArc, load_owned);
