//! Designs that are wrong on purpose: the tests must see that they are.
//!
//! A race that shows up now and then would be a test that fails now and then. So each of them
//! brings about, in the middle of a read, what a race would bring about: every 64th read, another
//! update strikes between the load of the value and its use.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cases::maps::Map;
use crate::shapes::{Key, Value};

const STRIKE_EVERY: u64 = 64;

/// Never gives memory back while it lives, so that what readers are left with is still theirs to
/// look at: the wrongness is in the value, and the behaviour is defined.
pub(super) struct Wrong<const TEARS: bool, const KEYED: bool> {
    values: Mutex<HashMap<Key, &'static Value>>,
    reads: AtomicU64,
}

/// Frees what it replaces at once.
pub(super) type FreesAtOnce<const KEYED: bool> = Wrong<false, KEYED>;
/// Changes values in place while they are read.
pub(super) type Tears<const KEYED: bool> = Wrong<true, KEYED>;

impl<const TEARS: bool, const KEYED: bool> Map<Key, Value> for Wrong<TEARS, KEYED> {
    const KEYED: bool = KEYED;
    type Thread = ();

    fn of(entries: impl Iterator<Item = (Key, Value)>) -> Self {
        let values = entries.map(|(key, value)| (key, &*Box::leak(Box::new(value))));
        Self { values: Mutex::new(values.collect()), reads: AtomicU64::new(0) }
    }

    fn thread(&self) {}

    fn read<R>(&self, (): &mut (), key: &Key, look: impl FnOnce(&Value) -> R) -> Option<R> {
        let value = self.values.lock().unwrap()[key];
        if self.reads.fetch_add(1, Ordering::Relaxed) % STRIKE_EVERY == STRIKE_EVERY - 1 {
            if TEARS {
                value.tear(u32::MAX);
            } else {
                value.pretend_to_free();
            }
        }
        Some(look(value))
    }

    fn put(&self, (): &mut (), key: &Key, value: Value) -> bool {
        self.values.lock().unwrap().insert(key.clone(), Box::leak(Box::new(value))).is_some()
    }
}
