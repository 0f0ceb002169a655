//! The hot paths of this project's library, each in one thread: what `rcu compare --instructions`
//! counts the instructions of.
//!
//! A path is a loop of `rcu bench`, or an update, which no case runs alone. All that an update
//! retires is freed before its loop ends, so that twice the operations are twice the work. Times
//! mean nothing here.

use std::hint::black_box;
use std::sync::Arc;

use quiescence::collections::{CopyMap, HashMap, IdMap};
use quiescence::sync::{Counter, SeqLock};
use quiescence::{ArcCell, Rcu, Srcu, epoch, hazard};

use crate::cases::BATCH;
use crate::cases::enqueue::callback;
use crate::cases::loops::{Loop, Looped, Words, cells, counts, sections, timed};
use crate::cases::maps::{Fast, Key, Map};
use crate::{Error, rivals};

/// The name of a path, and what makes its loop.
type Path = (&'static str, fn() -> Loop);

static PATHS: &[Path] = &[
    ("read", || of("quiescence", Looped::Read)),
    ("read-nested", || of("quiescence", Looped::Nested)),
    ("reader", || of("quiescence-reader", Looped::Read)),
    ("qsbr", || of("quiescence-qsbr", Looped::Read)),
    ("srcu", sections::<Srcu>),
    ("epoch-pin", || update((), |()| drop(epoch::pin()))),
    ("hazard-protect", || of("quiescence", Looped::Protect)),
    ("arc-cell-load", || of("quiescence", Looped::Guard)),
    ("arc-cell-store", || update(ArcCell::from_pointee(0), |cell| cell.store(Arc::new(1)))),
    ("rcu-store", || update(Rcu::new([0; 8]), |rcu| rcu.store([1_u64; 8]))),
    ("retire", || update((), |()| quiescence::retire(Box::new([1_u64; 8])).expect(ROOM))),
    ("call", || update((), |()| quiescence::call(callback()).expect(ROOM))),
    ("hash-map-get", || keyed::<Hashed>(|map, key, n| map.read().get(&key) == Some(&n))),
    ("hash-map-replace", || keyed::<Hashed>(|map, key, n| map.update(&key, |_| n))),
    ("hash-map-insert-remove", || {
        keyed::<Hashed>(|map, key, n| map.remove(&key) && map.insert(key, n))
    }),
    ("copy-map-get", || keyed::<Copied>(|map, key, n| map.get(&key) == Some(n))),
    ("copy-map-insert", || keyed::<Copied>(|map, key, n| map.insert(key, n).is_some())),
    ("id-map-get", id_map_get),
    ("id-map-insert-remove", || update(IdMap::new(), |map| _ = map.remove(map.insert(1_u64)))),
    ("seqlock-read", cells::<SeqLock<Words>, false>),
    ("seqlock-write", cells::<SeqLock<Words>, true>),
    ("counter-add", counts::<Counter>),
];

const ROOM: &str = "outside of sections there is room";

type Hashed = HashMap<u64, u64, Fast>;
type Copied = CopyMap<u64, u64, Fast>;

/// Their names.
pub fn names() -> impl Iterator<Item = &'static str> {
    PATHS.iter().map(|(name, _)| *name)
}

/// Does what a path does so many times, rounded up to whole batches of 1,024.
///
/// # Errors
/// If there is no such path.
pub fn run(name: &str, count: u64) -> Result<(), Error> {
    let path = PATHS.iter().find(|(known, _)| *known == name);
    let (_, make) = path.ok_or_else(|| Error::Usage(format!("there is no path {name}")))?;
    make().times(count.div_ceil(BATCH));
    Ok(())
}

/// The loop of a rival.
fn of(name: &str, what: Looped) -> Loop {
    let rival = rivals::all().find(|rival| rival.name == name);
    let make = rival.and_then(|rival| rival.looped(what));
    make.expect("the library's own are always there")()
}

/// A loop that changes what is shared, and frees after each batch what it has retired.
fn update<T: Send + Sync + 'static>(shared: T, once: impl Fn(&T) + Send + Sync + 'static) -> Loop {
    stepped(shared, move |shared, _| {
        once(shared);
        true
    })
}

/// The same with a map of a batch of keys, one after the other: whether each step did what it
/// should, with the key of this number, which is its value.
fn keyed<M: Map<u64>>(once: impl Fn(&M, u64, u64) -> bool + Send + Sync + 'static) -> Loop {
    // Room enough, so that no worker makes more while instructions are counted.
    let map = M::with_capacity(4 * BATCH as usize);
    map.fill(0..BATCH);
    stepped(map, move |map, number| once(map, u64::of(number), number))
}

/// The same with the number of the step in its batch.
fn stepped<T: Send + Sync + 'static>(
    shared: T,
    once: impl Fn(&T, u64) -> bool + Send + Sync + 'static,
) -> Loop {
    Loop::new(move |batches| {
        let shared = black_box(&shared);
        let step = |number: &mut u64| {
            *number = (*number + 1) % BATCH;
            once(shared, *number).into()
        };
        let settle = |_: &mut u64| {
            quiescence::barrier();
            hazard::barrier();
        };
        timed(batches, &mut 0, step, settle)
    })
}

fn id_map_get() -> Loop {
    let map = IdMap::new();
    let id = map.insert(1);
    Loop::of((map, id), |(map, id)| map.read().get(*id).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_does_what_it_says_as_often_as_it_is_told() {
        // What each step gives is asserted within.
        names().for_each(|name| run(name, 2_000).expect("it is there"));
        assert!(run("nowhere", 1).unwrap_err().to_string().contains("no path nowhere"));
    }
}
