//! hazarc: a counted pointer whose loads borrow, by hazard pointers and without a second look; with
//! and without the cache that each thread may keep of it.

use std::hint::black_box;

use hazarc::{AtomicArc, Cache};

use super::Rival;
use crate::cases::loops::{Loop, Looped, timed};
use crate::cases::store;
use crate::serve::arcs;

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("hazarc")
        .times(Looped::Guard, store::guards::<AtomicArc<u64>>)
        .times(Looped::Arc, store::arcs::<AtomicArc<u64>>)
        .store::<AtomicArc<u64>>()
        .stored::<Borrowed>(),
    Rival::new("hazarc-cache").times(Looped::Guard, || {
        let place = AtomicArc::<u64>::from(1);
        Loop::new(move |batches| {
            let mut cache = Cache::new(black_box(&place));
            timed(batches, &mut cache, |cache| **cache.load(), |_| {})
        })
    }),
];

arcs!(Borrowed => AtomicArc, load_owned);
