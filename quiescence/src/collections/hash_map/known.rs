//! What an update learns about entries before it takes a lock: whether they have its key, or what
//! their hashes are.
//!
//! **Invariant [HM-I3]: no user code runs while a bucket is locked.** Keys are compared and hashed
//! before. Under the lock only addresses are compared; each belongs to one entry as long as the
//! update's section lasts. If the update finds an entry that it has not checked, it releases the
//! lock, checks the entry, and takes the lock again. So if a `Hash` or an `Eq` panics, nothing is
//! half done, and if it uses the map, it does not wait for this update.

use equivalent::Equivalent;

use crate::os::user_code::{self, Site};

/// Whether `other`, the key of an entry, is `key`.
#[inline(always)]
pub(crate) fn is_key<Q, K>(key: &Q, other: &K) -> bool
where
    Q: Equivalent<K> + ?Sized,
{
    user_code::run(Site::Key, || key.equivalent(other))
}

/// What is known about entries, by their addresses.
pub(super) struct Known<E, T> {
    /// Sorted, except what was added since [`settle`](Self::settle).
    all: Vec<(*const E, T)>,
    settled: usize,
}

impl<E, T> Known<E, T> {
    pub(super) const fn nothing() -> Self {
        Self { all: Vec::new(), settled: 0 }
    }

    /// Empty, with room for `entries` entries.
    pub(super) fn with_room(entries: usize) -> Self {
        Self { all: Vec::with_capacity(entries), settled: 0 }
    }

    pub(super) fn forget(&mut self) {
        self.all.clear();
        self.settled = 0;
    }

    /// Learns something about an entry. [`get`](Self::get) finds it after
    /// [`settle`](Self::settle). `entry` is as its slot has it if it is to be put into another one:
    /// a pointer from a reference would not do to free it.
    pub(super) fn add(&mut self, entry: *const E, what: T) {
        self.all.push((entry, what));
    }

    #[inline(always)]
    pub(super) fn settle(&mut self) {
        if self.settled != self.all.len() {
            self.sort();
        }
    }

    #[cold]
    fn sort(&mut self) {
        self.all.sort_unstable_by_key(|known| known.0);
        self.settled = self.all.len();
    }

    /// Whether these are the entries, in the order in which they were added. Before
    /// [`settle`](Self::settle).
    pub(super) fn are_of(&self, mut entries: impl Iterator<Item = *const E>) -> bool {
        let mut known = self.all.iter();
        let is_next = |entry| known.next().is_some_and(|known| known.0 == entry);
        self.settled == 0 && entries.all(is_next) && known.next().is_none()
    }

    /// What is known, in the order in which it was added. Before [`settle`](Self::settle).
    pub(super) fn all(&self) -> &[(*const E, T)] {
        &self.all
    }

    #[inline(always)]
    pub(super) fn get(&self, entry: *const E) -> Option<&T> {
        if self.settled == 0 { None } else { self.find(entry) }
    }

    fn find(&self, entry: *const E) -> Option<&T> {
        let settled = &self.all[..self.settled];
        let at = settled.binary_search_by_key(&entry, |known| known.0).ok()?;
        Some(&settled[at].1)
    }
}

/// What an update knows of the entries with the tag of its key.
pub(super) struct Seen<E> {
    /// The entry of the key; at the begin, if it is known already.
    pub(super) found: Option<*const E>,
    /// Entries of other keys.
    pub(super) others: Known<E, ()>,
}
