//! flurry: Java's `ConcurrentHashMap`, whose nodes an old version of seize reclaims.

use flurry::{DefaultHashBuilder, HashMap};

use super::Rival;
use crate::cases::maps::maps;

pub(super) const RIVALS: &[Rival] = &[Rival::new("flurry").maps::<Flurry>()];

maps! {
    Flurry => HashMap, hashed by DefaultHashBuilder;
    read: |map, key, look| map.pin().get(key).map(look);
    insert: |map, key, value| map.pin().insert(key.clone(), value).is_none();
    update: |map, key, value| map.pin().compute_if_present(key, |_, _| Some(value)).is_some();
    remove: |map, key| map.pin().remove(key).is_some();
}
