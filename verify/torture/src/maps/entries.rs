//! What the maps under torture have in them: entries in slots, and entries in boxes that count
//! themselves and know whether they are alive.

use std::fmt::Debug;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU64};

use quiescence::collections::HashMap;
use quiescence::{Domain, Weigh, tag::Private};

/// A map under torture.
pub(super) type Map<E> = HashMap<<E as Entries>::Key, <E as Entries>::Value, Crowded, Private>;

/// Keys and values that stand for numbers.
pub(super) trait Entries: 'static {
    const NAME: &'static str;
    /// Bytes of a slot.
    const SLOT: u64;
    type Key: Hash + Eq + Clone + Debug + Send + Sync + 'static;
    type Value: Send + Sync + 'static;

    fn map(domain: Domain<Private>, hasher: Crowded) -> Map<Self>
    where
        Self: Sized;

    fn key(number: u64) -> Self::Key;

    fn number(key: &Self::Key) -> u64;

    /// A value for this key.
    fn value(values: &Values, key: u64) -> Self::Value;

    /// What is in a value, and whether it is one of this key and alive.
    fn read(value: &Self::Value, key: u64) -> Result<u64, String>;
}

/// The values of a map: how many were made, and how many of them are alive.
#[derive(Debug, Default)]
pub(super) struct Values {
    made: AtomicU64,
    alive: Arc<AtomicI64>,
}

impl Values {
    /// A number that no other value has.
    fn next(&self) -> u64 {
        self.made.fetch_add(1, Relaxed)
    }

    pub(super) fn alive(&self) -> i64 {
        self.alive.load(Relaxed)
    }
}

/// Numbers in slots. A value has the number of its key, too.
#[derive(Debug)]
pub(super) struct InSlots;

/// Where the number of the key stands in a value.
const KEY_AT: u32 = 40;

impl Entries for InSlots {
    const NAME: &'static str = "map with entries in slots";
    const SLOT: u64 = 16;
    type Key = u64;
    type Value = u64;

    fn map(domain: Domain<Private>, hasher: Crowded) -> Map<Self> {
        HashMap::builder().domain(domain).hasher(hasher).build()
    }

    fn key(number: u64) -> u64 {
        number
    }

    fn number(key: &u64) -> u64 {
        *key
    }

    fn value(values: &Values, key: u64) -> u64 {
        key << KEY_AT | values.next()
    }

    fn read(value: &u64, key: u64) -> Result<u64, String> {
        if value >> KEY_AT == key {
            return Ok(*value);
        }
        Err(format!("{value:#x} is no value of key {key}"))
    }
}

/// Strings, and values that count themselves, in boxes.
#[derive(Debug)]
pub(super) struct InBoxes;

/// Counts itself. A drop leaves the mark that it is dead, for a thread that reads it afterwards.
#[derive(Debug)]
pub(super) struct Counted {
    life: AtomicU64,
    key: u64,
    number: u64,
    alive: Arc<AtomicI64>,
}

const ALIVE: u64 = 0x616c_6976_6521;
const DEAD: u64 = 0x6465_6164_2121;

impl Weigh for Counted {}

impl Drop for Counted {
    fn drop(&mut self) {
        let before = self.life.swap(DEAD, Relaxed);
        // A second drop of a value is known from the first: it leaves too few.
        self.alive.fetch_sub(if before == ALIVE { 1 } else { 1 << 32 }, Relaxed);
    }
}

impl Entries for InBoxes {
    const NAME: &'static str = "map with entries in boxes";
    const SLOT: u64 = 8;
    type Key = String;
    type Value = Counted;

    fn map(domain: Domain<Private>, hasher: Crowded) -> Map<Self> {
        HashMap::builder().domain(domain).hasher(hasher).build()
    }

    fn key(number: u64) -> String {
        format!("key number {number}")
    }

    fn number(key: &String) -> u64 {
        key.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(u64::MAX)
    }

    fn value(values: &Values, key: u64) -> Counted {
        values.alive.fetch_add(1, Relaxed);
        let (life, alive) = (AtomicU64::new(ALIVE), Arc::clone(&values.alive));
        Counted { life, key, number: values.next(), alive }
    }

    fn read(value: &Counted, key: u64) -> Result<u64, String> {
        match value.life.load(Relaxed) {
            ALIVE if value.key == key => Ok(value.number),
            ALIVE => Err(format!("a value of key {} is under key {key}", value.key)),
            life => Err(format!("a value of key {key} is not alive: {life:#x}")),
        }
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
