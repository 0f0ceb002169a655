//! kovan: batches that are handed to the active threads (Crystalline, wait-free), and its map.

use kovan::Atom;
use kovan_map::HashMap;

use super::Rival;
use crate::cases::maps::{Fast, maps};
use crate::serve::replace;

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("kovan").sections::<Crystalline>().replace::<Crystalline>(),
    Rival::new("kovan-map")
        .maps::<HashMap<u64, u64, Fast>, HashMap<u64, u64>, HashMap<String, u64, Fast>>(),
];

/// One collector, which all its users share.
#[derive(Debug, Default)]
struct Crystalline;

/// What a thread leaves behind without a flush waits until the process ends.
struct Thread;

impl Drop for Thread {
    fn drop(&mut self) {
        kovan::flush();
    }
}

replace! {
    Crystalline => Atom<T>, Thread;
    place: |_, value| Atom::new(value);
    thread: |_| Thread;
    read: |_, _, place, look| place.peek(look);
    replace: |_, _, place, value| place.store(value);
    flush: |_| kovan::flush();
}

maps! {
    HashMap of Copy values;
    read: |map, key, look| map.get(key).as_ref().map(look);
    insert: |map, key, value| map.insert(key.clone(), value).is_none();
    // There is no update of what is there only, but it must not add a key.
    update: |map, key, value| map.contains_key(key) && map.insert(key.clone(), value).is_some();
    remove: |map, key| map.remove(key).is_some();
    flush: |_| kovan::flush();
}
