//! What the maps under torture have in them: strings, and values that count themselves and know
//! whether they are alive.

use std::hash::{BuildHasher, DefaultHasher, Hasher};

use quiescence::collections::HashMap;
use quiescence::tag::Private;

use crate::canary::{Canary, Live};

/// A map under torture.
pub(super) type Map = HashMap<String, Canary, Crowded, Private>;

pub(super) const NAME: &str = "map";

/// Where the number of the key stands in a value.
pub(super) const KEY_AT: u32 = 40;

/// The values of one map at a time.
pub(super) static LIVE: Live = Live::none();

/// The key that stands for a number.
pub(super) fn key(number: u64) -> String {
    format!("key number {number}")
}

pub(super) fn number(key: &str) -> u64 {
    key.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(u64::MAX)
}

/// What is in a new value for this key, and in no other.
pub(super) fn fresh(key: u64) -> u64 {
    key << KEY_AT | LIVE.next_serial()
}

/// A value that has this in it.
pub(super) fn value(number: u64) -> Canary {
    Canary::new(number, &LIVE)
}

/// A hasher that crowds keys into few buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Crowded {
    /// It is a good one.
    Not,
    /// Four buckets, three tags.
    Few,
    /// One bucket, all tags.
    OneBucket,
    /// One bucket, one tag.
    OneTag,
}

impl Crowded {
    pub(super) const ALL: [Self; 4] = [Self::Not, Self::Few, Self::OneBucket, Self::OneTag];
}

impl BuildHasher for Crowded {
    type Hasher = CrowdedHasher;

    fn build_hasher(&self) -> CrowdedHasher {
        CrowdedHasher(*self, DefaultHasher::new())
    }
}

/// The hasher that [`Crowded`] builds.
pub(super) struct CrowdedHasher(Crowded, DefaultHasher);

impl Hasher for CrowdedHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.1.write(bytes);
    }

    fn finish(&self) -> u64 {
        let hash = self.1.finish();
        match self.0 {
            Crowded::Not => hash,
            Crowded::Few => (hash % 4) | ((7 + hash / 4 % 3) << 56),
            Crowded::OneBucket => hash << 56,
            Crowded::OneTag => 9 << 56,
        }
    }
}
