//! What a race is given. Plain data: no design is named here.

use std::sync::Arc;

/// The shape of the shared state, and what is done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Workload {
    /// A keyed table whose values are replaced while others read them: a routing table, zone
    /// data, an index. The keys stay.
    Table,
    /// The same, and keys come and go.
    Churn,
    /// One shared structure, read by all threads and now and then replaced as a whole.
    Config,
    /// Events are counted, and the sum is read.
    Counter,
    /// The same, and a sum is the value that the counter had at one moment.
    ExactCounter,
    /// What is in use is counted, and never exceeds a limit.
    LimitCounter,
    /// Values go from any thread to any other.
    Queue,
    /// Values are found by an id that the table gives them.
    Ids,
}

impl Workload {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Table,
        Self::Churn,
        Self::Config,
        Self::Counter,
        Self::ExactCounter,
        Self::LimitCounter,
        Self::Queue,
        Self::Ids,
    ];
}

/// One thing that a thread does, in four bytes so that a long sequence stays in the cache.
///
/// The number is that of a key in [`Plan::keys`]; a workload without keys does not look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operation(u32);

impl Operation {
    /// The largest number of a key that fits beside the kind of the operation.
    pub const KEY_MAX: u32 = (1 << 30) - 1;
    const UPDATE: u32 = 1 << 31;
    const REMOVE: u32 = 1 << 30;

    /// Find the value of `key` and read it; of a counter, the sum; of a queue, take the first.
    ///
    /// # Panics
    /// When `key` is above [`Self::KEY_MAX`].
    pub const fn read(key: u32) -> Self {
        Self::of(0, key)
    }

    /// Replace the value of `key`, or insert it; of a counter, add one; of a queue, add a value.
    ///
    /// # Panics
    /// When `key` is above [`Self::KEY_MAX`].
    pub const fn update(key: u32) -> Self {
        Self::of(Self::UPDATE, key)
    }

    /// Remove `key` if it is there: [`Workload::Churn`] only.
    ///
    /// # Panics
    /// When `key` is above [`Self::KEY_MAX`].
    pub const fn remove(key: u32) -> Self {
        Self::of(Self::UPDATE | Self::REMOVE, key)
    }

    const fn of(kind: u32, key: u32) -> Self {
        assert!(key <= Self::KEY_MAX, "a key number must fit into 30 bits");
        Self(key | kind)
    }

    /// Whether something is changed.
    pub const fn is_update(self) -> bool {
        self.0 & Self::UPDATE != 0
    }

    /// Whether the key is removed.
    pub const fn is_remove(self) -> bool {
        self.0 & Self::REMOVE != 0
    }

    /// The number of the key.
    pub const fn key(self) -> u32 {
        self.0 & Self::KEY_MAX
    }
}

/// What to run. The same plan is given to every design, so that all do the same work.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The keys of the table, without duplicates. [`Workload::Ids`] has as many values; the other
    /// workloads ignore them.
    pub keys: Arc<[Box<[u8]>]>,
    /// Bytes of one value, rounded up to whole words of eight bytes, at least one.
    pub value_bytes: usize,
    /// Words read of the value inside the section; again from its start if it is shorter.
    pub work: u32,
    /// The operations of each thread, drawn beforehand and run cyclically: one thread per entry,
    /// and no generator of random numbers in the timed loop.
    pub operations: Arc<[Box<[Operation]>]>,
    /// What [`Workload::LimitCounter`] may count up to; the others ignore it.
    pub limit: u64,
}

#[cfg(test)]
impl Plan {
    /// One thread's, without keys, and with values of a word.
    pub(crate) fn of_one_thread<const N: usize>(operations: [Operation; N]) -> Self {
        let operations = [operations.into()].into();
        Self { keys: [].into(), value_bytes: 8, work: 0, operations, limit: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_keeps_its_kind_and_its_key() {
        for key in [0, 1, Operation::KEY_MAX] {
            let kinds = [
                (Operation::read(key), false, false),
                (Operation::update(key), true, false),
                (Operation::remove(key), true, true),
            ];
            for (operation, is_update, is_remove) in kinds {
                assert_eq!(operation.key(), key);
                assert_eq!((operation.is_update(), operation.is_remove()), (is_update, is_remove));
            }
        }
        assert_eq!(size_of::<Operation>(), 4);
    }

    #[test]
    #[should_panic(expected = "30 bits")]
    fn a_key_that_would_change_the_kind_is_refused() {
        Operation::read(Operation::KEY_MAX + 1);
    }
}
