//! What the maps under torture have in them: entries in slots, and entries in boxes that count
//! themselves and know whether they are alive.

use std::fmt::Debug;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher};
use std::mem::needs_drop;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use quiescence::collections::HashMap;
use quiescence::{Weigh, tag::Private};

use crate::canary::{Canary, Live};

/// A map under torture.
pub(super) type Map<E> = HashMap<<E as Entries>::Key, <E as Entries>::Value, Crowded, Private>;

/// Keys and values that stand for numbers.
pub(super) trait Entries: 'static {
    const NAME: &'static str;
    /// Whether its values count themselves: those do that are in boxes.
    const ARE_COUNTED: bool = needs_drop::<Self::Value>();
    /// Bytes of a slot: of a pointer to a box, or of two words.
    const SLOT: u64 = if Self::ARE_COUNTED { 8 } else { 16 };
    type Key: Hash + Eq + Clone + Debug + Weigh + Send + Sync + 'static;
    type Value: Weigh + Send + Sync + 'static;

    fn key(number: u64) -> Self::Key;

    fn number(key: &Self::Key) -> u64;

    /// A value for this key, which no other has.
    fn value(key: u64) -> Self::Value;

    /// What is in a value, and whether it is one of this key and alive.
    fn read(value: &Self::Value, key: u64) -> Result<u64, String>;
}

/// Numbers in slots. A value has the number of its key, too.
#[derive(Debug)]
pub(super) struct InSlots;

/// Where the number of the key stands in a value.
const KEY_AT: u32 = 40;

/// Values that were made.
static MADE: AtomicU64 = AtomicU64::new(0);

/// Values in boxes: of one map at a time.
pub(super) static LIVE: Live = Live::none();

/// What is in a new value for a key.
fn next(key: u64) -> u64 {
    key << KEY_AT | MADE.fetch_add(1, Relaxed)
}

/// What is in a value, if it is one of this key.
fn whole(value: u64, key: u64) -> Result<u64, String> {
    if value >> KEY_AT == key {
        return Ok(value);
    }
    Err(format!("{value:#x} is no value of key {key}"))
}

impl Entries for InSlots {
    const NAME: &'static str = "map with entries in slots";
    type Key = u64;
    type Value = u64;

    fn key(number: u64) -> u64 {
        number
    }

    fn number(key: &u64) -> u64 {
        *key
    }

    fn value(key: u64) -> u64 {
        next(key)
    }

    fn read(value: &u64, key: u64) -> Result<u64, String> {
        whole(*value, key)
    }
}

/// Strings, and values that count themselves, in boxes.
#[derive(Debug)]
pub(super) struct InBoxes;

impl Entries for InBoxes {
    const NAME: &'static str = "map with entries in boxes";
    type Key = String;
    type Value = Canary;

    fn key(number: u64) -> String {
        format!("key number {number}")
    }

    fn number(key: &String) -> u64 {
        key.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(u64::MAX)
    }

    fn value(key: u64) -> Canary {
        Canary::new(next(key), &LIVE)
    }

    fn read(value: &Canary, key: u64) -> Result<u64, String> {
        if value.is_alive() {
            return whole(value.serial(), key);
        }
        Err(format!("a value of key {key} is not alive"))
    }
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
#[derive(Debug)]
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
