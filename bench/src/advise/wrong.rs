//! Designs that are wrong on purpose: the tests must see that they are.
//!
//! A race that shows up now and then would be a test that fails now and then. So each of them
//! brings about, in the middle of a read, what a race would bring about: every 64th read, another
//! update strikes between the load of the value and its use.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::value::Value;
use super::workload::Config;

const STRIKE_EVERY: u64 = 64;

/// Never gives memory back while it lives, so that what readers are left with is still theirs to
/// look at: the wrongness is in the value, and the behaviour is defined.
#[derive(Debug)]
pub(super) struct Wrong<const TEARS: bool> {
    /// The current value is the last one.
    values: Mutex<Vec<&'static Value>>,
    reads: AtomicU64,
}

/// Frees what it replaces at once.
pub(super) type FreesAtOnce = Wrong<false>;
/// Changes values in place while they are read.
pub(super) type Tears = Wrong<true>;

impl<const TEARS: bool> Config for Wrong<TEARS> {
    type Domain = ();
    type Thread<'a> = ();

    fn domain() {}

    fn new(_domain: &(), value: Value) -> Self {
        let values = Mutex::new(vec![&*Box::leak(Box::new(value))]);
        Self { values, reads: AtomicU64::new(0) }
    }

    fn thread(_domain: &()) {}

    fn read<R>(&self, _domain: &(), _thread: &mut (), look: impl FnOnce(&Value) -> R) -> R {
        let value = *self.values.lock().unwrap().last().unwrap();
        if self.reads.fetch_add(1, Ordering::Relaxed) % STRIKE_EVERY == STRIKE_EVERY - 1 {
            if TEARS {
                value.tear(u32::MAX);
            } else {
                value.pretend_to_free();
            }
        }
        look(value)
    }

    fn update(&self, _domain: &(), _thread: &mut (), value: Value) {
        self.values.lock().unwrap().push(Box::leak(Box::new(value)));
    }
}
