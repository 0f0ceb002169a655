//! The map itself: how it is made, read and updated.

use std::hash::{BuildHasher, Hash, RandomState};

use equivalent::Equivalent;

use super::iter::Iter;
use super::tables::Tables;
use crate::collections::hash_map::{Operation, is_key};
use crate::os::user_code::{self, Site};
use crate::reclaim::weigh::Weigh;
use crate::sync::NoUninit;

/// A concurrent hash map of small pairs that are copied. A look-up gives a copy, and needs no
/// section; what is replaced or removed is written over, and waits for no reader.
///
/// ```
/// use quiescence::collections::CopyMap;
/// use std::thread;
///
/// // What an article costs, and how many there are.
/// let articles = CopyMap::from([(80_u32, [250_u32, 40])]);
/// let sell = || articles.update(&80, |[price, left]| [price, left - 1]);
/// thread::scope(|scope| {
///     for _ in 0..2 {
///         scope.spawn(|| (0..10).for_each(|_| _ = sell()));
///     }
/// });
/// assert_eq!(articles.get(&80), Some([250, 20]));
/// ```
///
/// # This map or [`HashMap`](crate::collections::HashMap)
/// | | `CopyMap` | `HashMap` |
/// |---|---|---|
/// | a look-up gives | a copy | a reference, as long as a section |
/// | key and value | `Copy`, no padding, 48 bytes together at most | any |
/// | a look-up waits | for an update of the same bucket | never |
/// | what is replaced | is written over | waits for a grace period, within the domain's limit |
/// | memory of tables | is kept | is freed after a grace period |
///
/// For counters take values that change in place, as in a `HashMap<K, AtomicU64>`: to count is to
/// look up then.
///
/// # Which types
/// Pairs are read and written in words, while other threads change them; so they have no byte
/// without a value, which [`NoUninit`] says: see [`SeqLock`](crate::sync::SeqLock#which-types). No
/// torn pair is ever seen, also not by `Eq` of keys.
///
/// ```compile_fail,E0080
/// // Together more than 48 bytes.
/// quiescence::collections::CopyMap::<u64, [u64; 6]>::new();
/// ```
/// ```compile_fail,E0277
/// quiescence::collections::CopyMap::<u64, (u8, u64)>::new(); // padding
/// ```
///
/// # Waiting
/// An update locks its bucket for some ten instructions, and more if that has overflow buckets: an
/// insertion or removal goes to the last one. While the table grows or shrinks it locks some other
/// buckets, one or two at a time, for the time of two copies. If another thread has the bucket of
/// its key locked, it waits for that, and so does a look-up; for no other bucket. **A thread that
/// is descheduled there holds up all look-ups and updates of this bucket, some pairs, until it runs
/// again:** they spin for a moment, give away their CPUs some times, and then nap, for 200 µs at a
/// time. A thread of a real-time priority must not share a map with those that it keeps from
/// running.
///
/// Look-ups that find their bucket changed 64 times take the lock, for the time of a copy; so each
/// ends, if its turn comes: the lock knows no order. An update that finds its bucket changed begins
/// again: another one has succeeded, or a look-up has had the lock, or a move.
///
/// [`reserve`](Self::reserve), [`extend`](Self::extend), [`shrink_to`](Self::shrink_to) and
/// [`shrink_to_fit`](Self::shrink_to_fit) wait until all buckets have moved: so for **each** thread
/// that has a bucket locked or is moving one, also if it was descheduled there. Updates of values
/// do not keep a bucket from moving; keys that come and go in it each time that the mover calls
/// `Hash` of its keys may. The update that moves the last bucket gives back the pages of the old
/// table, which for GiBs takes tens of milliseconds; those four wait for that, too.
///
/// A table that begins to grow or shrink, and overflow buckets that come or go, take a mutex of the
/// map, under which memory is allocated: **a global allocator must not use a `CopyMap`.**
///
/// Functions of the user's, `Hash` and `Eq` of keys among them, are called under no lock, and may
/// use the map; but an update never ends whose functions change its bucket each time. If one of
/// them panics, the pair has not changed, nor have those that come after it in `retain`, `clear`
/// and `extend`. `Hash` of keys in the map is called by updates while a table moves, by iterators,
/// and so by `retain`, `clear`, `==`, `Debug` and `Serialize`; if it panics, so do they, and the
/// iterator leaves out some pairs.
///
/// A signal handler must not use a map whose update or look-up it may have interrupted, nor one
/// that any thread may be updating: a look-up may allocate then. In a child
/// made by `fork` while another thread had a bucket locked, that bucket stays locked; and so do the
/// lists of tables and overflow buckets, if they were. A move that such a thread had a part in may
/// never end there: then the map works on, but its table does not grow any more, and
/// [`reserve`](Self::reserve), [`extend`](Self::extend), [`shrink_to`](Self::shrink_to) and
/// [`shrink_to_fit`](Self::shrink_to_fit) may never return.
///
/// # Memory
/// A table has 64 bytes for each five pairs of up to 8 bytes, and 128 bytes for six pairs of 16,
/// four of 24, three of 32, two of more. It grows to twice its size when a bucket is full, and
/// eleven in sixteen of its slots are in use; each update meanwhile moves four buckets. A move ends
/// with updates only: if there are none any more, look-ups are somewhat slower, until
/// [`shrink_to_fit`](Self::shrink_to_fit) ends it. No table shrinks by itself. Pairs for which a
/// bucket has no slot are in overflow buckets of the same size, as many as they need. **What was
/// allocated is kept until the map is dropped**, and used again: overflow buckets, and the tables
/// of sizes that the map has had, which together are less than twice the largest. The pages
/// of such a table are given back to the system if it has 64 KiB or more (on Linux).
///
/// # Hashing
/// As [`HashMap`](crate::collections::HashMap#hashing).
///
/// # Cost
/// A look-up is one cache miss in a large map, of one line or two side by side, and one more for
/// each overflow bucket that it searches: before its table grows, some one bucket in eight has one.
/// It writes nothing. An update is that and one locked instruction. Neither allocates, but an
/// update that needs an overflow bucket, gives one back, or moves buckets; and a look-up whose
/// bucket has changed 32 times.
pub struct CopyMap<K, V, S = RandomState> {
    pub(super) tables: Tables<K, V>,
    hasher: S,
}

impl<K: NoUninit, V: NoUninit> CopyMap<K, V> {
    /// An empty map.
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// An empty map with room for so many pairs.
    ///
    /// # Panics
    /// If so many are more than the address space has room for. If they are not, but the system has
    /// not so much memory, the process aborts.
    pub fn with_capacity(capacity: usize) -> Self {
        Self::with_capacity_and_hasher(capacity, RandomState::new())
    }
}

impl<K: NoUninit, V: NoUninit, S> CopyMap<K, V, S> {
    /// An empty map with another hasher.
    pub fn with_hasher(hasher: S) -> Self {
        Self::with_capacity_and_hasher(0, hasher)
    }

    /// An empty map with room for so many pairs, and with another hasher.
    ///
    /// # Panics
    /// As [`with_capacity`](Self::with_capacity).
    pub fn with_capacity_and_hasher(capacity: usize, hasher: S) -> Self {
        Self { tables: Tables::new(capacity), hasher }
    }

    /// How many pairs the map has: exact if it is not changed meanwhile, and if it is, a number
    /// that leaves out some changes of that time. Looks at a word of each CPU.
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// Whether it has none, as [`len`](Self::len) says.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many pairs it can have before its table grows; and as many more until a bucket is full.
    pub fn capacity(&self) -> usize {
        Tables::<K, V>::most(self.tables.buckets())
    }

    /// The hasher.
    pub fn hasher(&self) -> &S {
        &self.hasher
    }
}

impl<K: NoUninit + Hash, V: NoUninit, S: BuildHasher> CopyMap<K, V, S> {
    #[inline(always)]
    pub(super) fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        user_code::run(Site::Key, || self.hasher.hash_one(key))
    }
}

/// # Reading
impl<K: NoUninit + Hash + Eq, V: NoUninit, S: BuildHasher> CopyMap<K, V, S> {
    /// A copy of the value of a key, as it is at one moment.
    ///
    /// ```
    /// let map = quiescence::collections::CopyMap::from([(1, 1.5), (2, 2.5)]);
    /// assert_eq!((map.get(&2), map.get(&3)), (Some(2.5), None));
    /// ```
    #[inline]
    pub fn get<Q>(&self, key: &Q) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.get_key_value(key).map(|(_, value)| value)
    }

    /// The same, with the key that the map has.
    #[inline]
    pub fn get_key_value<Q>(&self, key: &Q) -> Option<(K, V)>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.tables.get(self.hash(key), |other| is_key(key, other))
    }

    /// Whether a key is there.
    #[inline]
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.get(key).is_some()
    }

    /// Copies of all pairs, in no order. A pair that is there all the time is seen once; of those
    /// that come or go meanwhile some are seen. No key is seen twice, unless its hash changes. A
    /// value that is replaced is seen as one of both.
    ///
    /// ```
    /// let map = quiescence::collections::CopyMap::from([(1, 10), (2, 20)]);
    /// let mut all: Vec<_> = map.iter().collect();
    /// all.sort();
    /// assert_eq!(all, [(1, 10), (2, 20)]);
    /// ```
    pub fn iter(&self) -> Iter<'_, K, V, S> {
        let mask = self.tables.root().mask;
        Iter::of(self, 0..mask + 1, mask)
    }

    /// All keys: see [`iter`](Self::iter).
    pub fn keys(&self) -> impl Iterator<Item = K> {
        self.iter().map(|(key, _)| key)
    }

    /// All values: see [`iter`](Self::iter).
    pub fn values(&self) -> impl Iterator<Item = V> {
        self.iter().map(|(_, value)| value)
    }
}

/// # Updates
impl<K: NoUninit + Hash + Eq, V: NoUninit, S: BuildHasher> CopyMap<K, V, S> {
    #[inline(always)]
    fn change<Q, T>(
        &self,
        of: &Q,
        key: Option<K>,
        decide: impl FnMut(Option<V>) -> Operation<V, T>,
    ) -> Result<Option<(K, V)>, T>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let is_key = |other: &K| is_key(of, other);
        self.tables.change(self.hash(of), key, is_key, |key| self.hash(key), decide)
    }

    /// Has the map have this value for this key. Returns the value that the key had before.
    ///
    /// ```
    /// let map = quiescence::collections::CopyMap::new();
    /// assert_eq!(map.insert(1, 10), None);
    /// assert_eq!(map.insert(1, 20), Some(10));
    /// ```
    #[inline]
    pub fn insert(&self, key: K, value: V) -> Option<V> {
        let done = self.change(&key, Some(key), |_| Operation::<V>::Insert(value));
        done.ok().flatten().map(|(_, old)| old)
    }

    /// Inserts a pair, unless the key is there; then gives the value of that.
    fn add(&self, key: K, value: V) -> Result<(), V> {
        let decide = |old: Option<V>| old.map_or(Operation::Insert(value), Operation::Abort);
        self.change(&key, Some(key), decide).map(drop)
    }

    /// The value of a key; if it has none, `value`, which is inserted.
    pub fn get_or_insert(&self, key: K, value: V) -> V {
        self.add(key, value).err().unwrap_or(value)
    }

    /// The value of a key; if it has none, what `make` returns, which is inserted. It is called
    /// under no lock: if another thread inserts the key meanwhile, that one's value is given.
    ///
    /// ```
    /// let map = quiescence::collections::CopyMap::new();
    /// assert_eq!(map.get_or_insert_with(1, || 10), 10);
    /// assert_eq!(map.get_or_insert_with(1, || unreachable!()), 10);
    /// ```
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V {
        let insert = || self.get_or_insert(key, user_code::run(Site::Make, make));
        self.get(&key).unwrap_or_else(insert)
    }

    /// Has the map have this value for this key, unless the key is there. Returns whether it was
    /// inserted.
    ///
    /// ```
    /// let map = quiescence::collections::CopyMap::new();
    /// assert!(map.insert_if_absent(1, 10));
    /// assert!(!map.insert_if_absent(1, 20));
    /// assert_eq!(map.get(&1), Some(10));
    /// ```
    pub fn insert_if_absent(&self, key: K, value: V) -> bool {
        self.add(key, value).is_ok()
    }

    /// Removes a key. Returns the value that it had.
    ///
    /// ```
    /// let map = quiescence::collections::CopyMap::from([(1, 10)]);
    /// assert_eq!((map.remove(&1), map.remove(&1)), (Some(10), None));
    /// ```
    #[inline]
    pub fn remove<Q>(&self, key: &Q) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.remove_entry(key).map(|(_, value)| value)
    }

    /// The same, with the key that the map had.
    #[inline]
    pub fn remove_entry<Q>(&self, key: &Q) -> Option<(K, V)>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.change(key, None, |_| Operation::<V>::Remove).ok().flatten()
    }

    /// Replaces the value of a key by `f` of it. Returns the new value, if the key was there. If
    /// another update of the bucket comes in between, or another thread has had the bucket locked
    /// to copy or move it, `f` is called again. It is called under no lock. If it panics nothing
    /// has changed.
    ///
    /// ```
    /// let map = quiescence::collections::CopyMap::from([(1, 10)]);
    /// assert_eq!((map.update(&1, |n| n + 1), map.update(&2, |n| n + 1)), (Some(11), None));
    /// ```
    #[inline]
    pub fn update<Q>(&self, key: &Q, mut f: impl FnMut(V) -> V) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let mut new = None;
        let decided = self.change(key, None, |old| {
            let Some(old) = old else { return Operation::Abort(()) };
            let value = user_code::run(Site::Update, || f(old));
            new = Some(value);
            Operation::Insert(value)
        });
        decided.ok().and(new)
    }

    /// Has `f` decide what is to become of a key, and does that, at one moment: nothing comes
    /// between what `f` has seen and what it decides. If another update of the bucket does, or
    /// another thread has had the bucket locked to copy or move it, `f` is called again, as often
    /// as that happens. It is called under no lock, and may use the map. If it panics nothing has
    /// changed.
    ///
    /// Returns the value before.
    ///
    /// # Errors
    /// What `f` has aborted with; nothing has changed.
    ///
    /// ```
    /// use quiescence::collections::copy_map::{CopyMap, Operation};
    ///
    /// let seats = CopyMap::from([(7_u32, 2_u32)]);
    /// let book = || {
    ///     seats.compute(7, |free| match free {
    ///         Some(1) => Operation::Remove,
    ///         Some(free) => Operation::Insert(free - 1),
    ///         None => Operation::Abort("sold out"),
    ///     })
    /// };
    /// assert_eq!([book(), book(), book()], [Ok(Some(2)), Ok(Some(1)), Err("sold out")]);
    /// ```
    pub fn compute<T>(
        &self,
        key: K,
        mut f: impl FnMut(Option<V>) -> Operation<V, T>,
    ) -> Result<Option<V>, T> {
        let done = self.change(&key, Some(key), |old| user_code::run(Site::Update, || f(old)));
        done.map(|old| old.map(|(_, value)| value))
    }

    /// Removes the pairs that `keeps` returns `false` of: of those that are there all the time,
    /// each one. One by one, and not at one moment. `keeps` is called under no lock, and more than
    /// once for some.
    ///
    /// ```
    /// let map: quiescence::collections::CopyMap<u32, u32> = (0..10).map(|n| (n, n)).collect();
    /// map.retain(|_, n| n % 2 == 0);
    /// assert_eq!(map.len(), 5);
    /// ```
    pub fn retain(&self, mut keeps: impl FnMut(K, V) -> bool) {
        for (key, value) in self {
            if user_code::run(Site::Choose, || keeps(key, value)) {
                continue;
            }
            let _removed = self.change(&key, None, |now| match now {
                Some(now) if user_code::run(Site::Choose, || keeps(key, now)) => {
                    Operation::Abort(())
                }
                _ => Operation::Remove,
            });
        }
    }

    /// Removes all pairs that are there all the time: see [`retain`](Self::retain). The table stays
    /// as large as it is.
    pub fn clear(&self) {
        self.retain(|_, _| false);
    }

    /// Inserts all of these, one by one. A map that is shared can be extended, too:
    /// `(&map).extend(...)` is this. First [`reserve`](Self::reserve)s room for half as many as the
    /// iterator says there are at least.
    ///
    /// # Panics
    /// As [`reserve`](Self::reserve).
    pub fn extend(&self, pairs: impl IntoIterator<Item = (K, V)>) {
        let pairs = pairs.into_iter();
        // Half of them, as the standard library has it: some keys may be there.
        self.reserve(pairs.size_hint().0.div_ceil(2));
        for (key, value) in pairs {
            self.insert(key, value);
        }
    }

    /// Makes room for `additional` more pairs. If the table is too small all pairs move to a larger
    /// one, while other updates go on. If another thread has the table shrink meanwhile, there may
    /// be less room.
    ///
    /// # Panics
    /// As [`with_capacity`](Self::with_capacity), which may abort; or if `Hash` of a key does.
    pub fn reserve(&self, additional: usize) {
        let enough = Tables::<K, V>::buckets_for(self.len().saturating_add(additional));
        let larger = |buckets| (enough > buckets).then_some(enough);
        self.tables.resize(larger, |key| self.hash(key));
    }

    /// Makes the table as small as its pairs, and at least `capacity` of them, allow. All pairs
    /// move, by halves, while other updates go on. If another thread has the table grow meanwhile,
    /// it may stay larger.
    ///
    /// ```
    /// let map: quiescence::collections::CopyMap<u64, u64> = (0..10_000).map(|n| (n, n)).collect();
    /// map.retain(|n, _| n < 10);
    /// map.shrink_to(100);
    /// assert!(map.capacity() >= 100 && map.capacity() < 1_000);
    /// ```
    pub fn shrink_to(&self, capacity: usize) {
        // Of the number that it has now: others may insert meanwhile.
        let smaller = |buckets| {
            let enough = Tables::<K, V>::buckets_for(self.len().max(capacity));
            (enough < buckets).then_some(enough)
        };
        self.tables.resize(smaller, |key| self.hash(key));
    }

    /// As [`shrink_to`](Self::shrink_to), for the pairs that it has. Ends a move that goes on, also
    /// if the table is as small as it can be.
    pub fn shrink_to_fit(&self) {
        self.tables.end_moves(|key| self.hash(key));
        self.shrink_to(0);
    }
}

/// What is allocated for its tables and overflow buckets, pages that the system has back included.
impl<K: NoUninit, V: NoUninit, S> Weigh for CopyMap<K, V, S> {
    fn owned(&self) -> usize {
        self.tables.bytes()
    }
}
