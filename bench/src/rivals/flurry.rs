//! flurry: Java's `ConcurrentHashMap`, whose nodes an old version of seize reclaims.

use flurry::{DefaultHashBuilder, HashMap};

use super::Rival;
use crate::cases::maps::{Hashes, Key, Map, Maps};

pub(super) const RIVALS: &[Rival] = &[Rival::new("flurry").maps::<Flurry>()];

struct Flurry;

impl Maps for Flurry {
    type Own = DefaultHashBuilder;
    type Of<K: Key, S: Hashes> = HashMap<K, u64, S>;
}

impl<K: Key, S: Hashes> Map<K> for HashMap<K, u64, S> {
    type Thread = ();

    fn with_capacity(entries: usize) -> Self {
        Self::with_capacity_and_hasher(entries, S::default())
    }

    fn thread(&self) {}

    #[inline(always)]
    fn get(&self, (): &mut (), key: &K) -> Option<u64> {
        self.pin().get(key).copied()
    }

    #[inline(always)]
    fn insert(&self, (): &mut (), key: &K, value: u64) -> bool {
        self.pin().insert(key.clone(), value).is_none()
    }

    #[inline(always)]
    fn replace(&self, (): &mut (), key: &K, value: u64) {
        self.pin().insert(key.clone(), value);
    }

    #[inline(always)]
    fn update(&self, (): &mut (), key: &K, value: u64) -> bool {
        self.pin().compute_if_present(key, |_, _| Some(value)).is_some()
    }

    #[inline(always)]
    fn remove(&self, (): &mut (), key: &K) -> bool {
        self.pin().remove(key).is_some()
    }
}
