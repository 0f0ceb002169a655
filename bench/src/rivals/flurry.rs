//! flurry: Java's `ConcurrentHashMap`, whose nodes an old version of seize reclaims.

use flurry::HashMap;

use super::Rival;
use crate::cases::maps::{Fast, maps};

pub(super) const RIVALS: &[Rival] = &[Rival::new("flurry")
    .maps::<HashMap<u64, u64, Fast>, HashMap<u64, u64>, HashMap<String, u64, Fast>>()];

maps! {
    HashMap;
    read: |map, key, look| map.pin().get(key).map(look);
    insert: |map, key, value| map.pin().insert(key.clone(), value).is_none();
    update: |map, key, value| map.pin().compute_if_present(key, |_, _| Some(value)).is_some();
    remove: |map, key| map.pin().remove(key).is_some();
}
