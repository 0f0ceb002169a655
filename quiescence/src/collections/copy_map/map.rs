//! The map itself: how it is made, read and updated.

use std::hash::{BuildHasher, Hash, RandomState};

use equivalent::Equivalent;

use super::iter::Iter;
use super::tables::Tables;
use crate::collections::hash_map::{Operation, is_key};
use crate::os::user_code::{self, Site};
use crate::reclaim::weigh::owns;
use crate::sync::NoUninit;

/// A concurrent hash map of small pairs that are copied. A look-up returns a copy and needs no
/// section. Replaced and removed pairs are overwritten, which waits for no reader.
///
/// ```
/// use quiescence::collections::CopyMap;
/// use std::thread;
///
/// // The price of an article, and how many are in stock.
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
/// | a look-up returns | a copy | a reference, valid for the section |
/// | key and value | `Copy`, no padding, at most 48 bytes together | any |
/// | a look-up waits | for an update of the same bucket | never |
/// | a replaced value | is overwritten | waits for a grace period, within the domain's limit |
/// | memory of tables | is kept | is freed after a grace period |
///
/// For counters use values that change in place, as in a `HashMap<K, AtomicU64>`: counting is then
/// a look-up.
///
/// # Which types
/// Pairs are read and written in words while other threads change them. So they must have no
/// padding bytes, which [`NoUninit`] asserts: see [`SeqLock`](crate::sync::SeqLock#which-types). No
/// torn pair is ever visible, not even to `Eq` of keys.
///
/// ```compile_fail,E0080
/// // Together more than 48 bytes.
/// quiescence::collections::CopyMap::<u64, [u64; 6]>::new();
/// ```
/// ```compile_fail,E0599
/// quiescence::collections::CopyMap::<u64, (u8, u64)>::new(); // padding
/// ```
///
/// # Waiting
/// An update locks its bucket for some ten instructions, or more if the bucket has overflow
/// buckets: an insertion or removal walks to the last one. While the table grows or shrinks, an
/// update also locks some other buckets, one or two at a time, for the duration of two copies. If
/// another thread has locked the bucket of its key, an update or a look-up waits for it; neither
/// waits for any other bucket. **A thread that is descheduled while it holds the lock delays all
/// look-ups and updates of this bucket, which has a few pairs, until it runs again:** they spin for
/// a moment, yield their CPUs several times, and then nap, for 200 µs at a time. A real-time thread
/// must not share a map with threads that it can keep from running.
///
/// A look-up that has found its bucket changed 64 times takes the lock for the duration of a copy.
/// So each look-up ends once it gets the lock, which is not granted in any order. An update that
/// finds its bucket changed retries: another update has succeeded, or a look-up or a move has held
/// the lock.
///
/// [`reserve`](Self::reserve), [`extend`](Self::extend), [`shrink_to`](Self::shrink_to) and
/// [`shrink_to_fit`](Self::shrink_to_fit) wait until all buckets have moved. So they wait for
/// **every** thread that has locked a bucket or is moving one, even if it was descheduled there.
/// Updates of values do not prevent a bucket from moving. Keys that are inserted into and removed
/// from it each time the mover calls `Hash` of its keys may. The update that moves the last bucket
/// returns the pages of the old table, which for GiBs takes tens of milliseconds; those four
/// methods wait for that, too.
///
/// Starting to grow or shrink the table, and adding or removing overflow buckets, takes a mutex of
/// the map, under which memory is allocated: **a global allocator must not use a `CopyMap`.**
///
/// User code, including `Hash` and `Eq` of keys, is called under no lock, and may use the map. But
/// an update never ends if the functions it calls change its bucket each time. If one of them
/// panics, the pair has not changed, nor have the pairs that follow it in `retain`, `clear` and
/// `extend`. `Hash` of keys in the map is called by updates while a table moves, by iterators, and
/// so by `retain`, `clear`, `==`, `Debug` and `Serialize`. If it panics, so do they, and the
/// iterator skips some pairs. If it calls `reserve` or shrinks the map each time, it recurses until
/// the stack overflows.
///
/// A signal handler must not use a map if it may have interrupted an update or look-up of it, or if
/// any thread may be updating it: a look-up may then allocate. In a child made by `fork` while
/// another thread held the lock of a bucket, that bucket stays locked; so do the lists of tables
/// and overflow buckets, if they were locked. A move in which such a thread took part may never end
/// there. Then the map continues to work, but its table does not grow any more, and
/// [`reserve`](Self::reserve), [`extend`](Self::extend), [`shrink_to`](Self::shrink_to) and
/// [`shrink_to_fit`](Self::shrink_to_fit) may never return.
///
/// # Memory
/// A table takes 64 bytes for each five pairs of up to 8 bytes. Larger pairs take 128 bytes for six
/// pairs of 16 bytes, four of 24, three of 32, or two of more. It grows to twice its size when a
/// bucket is full and eleven in sixteen of its slots are in use; meanwhile each update moves four
/// buckets. Only updates complete a move: if there are no more updates, look-ups are somewhat
/// slower until [`shrink_to_fit`](Self::shrink_to_fit) completes it. No table shrinks by itself.
/// Pairs for which a bucket has no slot are in overflow buckets of the same size, as many as they
/// need. **Allocated memory is kept until the map is dropped**, and reused: overflow buckets, and
/// the tables of sizes that the map has had, which together are less than twice the largest. The
/// pages of such a table are returned to the system if it has 64 KiB or more (on Linux).
///
/// # Hashing
/// As [`HashMap`](crate::collections::HashMap#hashing).
///
/// # Cost
/// In a large map, a look-up costs one cache miss, of one line or two adjacent ones, and one more
/// for each overflow bucket that it searches; shortly before its table grows, about one bucket in
/// eight has one. A look-up writes nothing. An update costs that and one locked instruction.
/// Neither allocates, except for an update that adds an overflow bucket, removes one, or moves
/// buckets, and a look-up whose bucket has changed 32 times.
pub struct CopyMap<K, V, S = RandomState> {
    pub(super) tables: Tables<K, V>,
    hasher: S,
}

impl<K: NoUninit, V: NoUninit> CopyMap<K, V> {
    /// Creates an empty map.
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// Creates an empty map with room for `capacity` pairs.
    ///
    /// # Panics
    /// If the address space has no room for that many. If it has, but the system has too little
    /// memory, the process aborts.
    pub fn with_capacity(capacity: usize) -> Self {
        Self::with_capacity_and_hasher(capacity, RandomState::new())
    }
}

impl<K: NoUninit, V: NoUninit, S> CopyMap<K, V, S> {
    /// Creates an empty map with another hasher.
    pub fn with_hasher(hasher: S) -> Self {
        Self::with_capacity_and_hasher(0, hasher)
    }

    /// Creates an empty map with another hasher and room for `capacity` pairs.
    ///
    /// # Panics
    /// As [`with_capacity`](Self::with_capacity).
    pub fn with_capacity_and_hasher(capacity: usize, hasher: S) -> Self {
        Self { tables: Tables::new(capacity), hasher }
    }

    /// The number of pairs. Exact unless the map is changed during the call; otherwise it may miss
    /// some of those changes. Loads one word per CPU.
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// Whether the map has no pairs, as [`len`](Self::len) counts.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of pairs that fit before the table grows; after that, it grows as soon as a
    /// bucket is full.
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
    /// Returns a copy of the value of a key, as it is at one moment.
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

    /// Like [`get`](Self::get), with the key as it is in the map.
    #[inline]
    pub fn get_key_value<Q>(&self, key: &Q) -> Option<(K, V)>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.tables.get(self.hash(key), |other| is_key(key, other))
    }

    /// Returns whether a key is present.
    #[inline]
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.get(key).is_some()
    }

    /// Iterates over copies of all pairs, in no order. A pair that is present all the time is
    /// visited once; of pairs that are inserted or removed meanwhile, some are visited. No key is
    /// visited twice, unless its hash changes. For a replaced value, either the old or the new one
    /// is visited.
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

    /// Iterates over all keys: see [`iter`](Self::iter).
    pub fn keys(&self) -> impl Iterator<Item = K> {
        self.iter().map(|(key, _)| key)
    }

    /// Iterates over all values: see [`iter`](Self::iter).
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

    /// Inserts a key with its value, or replaces its value. Returns the previous value.
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

    /// Returns the value of a key, after inserting `value` if it had none.
    pub fn get_or_insert(&self, key: K, value: V) -> V {
        self.add(key, value).err().unwrap_or(value)
    }

    /// Returns the value of a key, after inserting the result of `make` if it had none. `make` is
    /// called under no lock: if another thread inserts the key meanwhile, that thread's value is
    /// returned.
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

    /// Inserts a key with its value, unless the key is present. Returns whether it was inserted.
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

    /// Like [`remove`](Self::remove), with the key as it was in the map.
    #[inline]
    pub fn remove_entry<Q>(&self, key: &Q) -> Option<(K, V)>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.change(key, None, |_| Operation::<V>::Remove).ok().flatten()
    }

    /// Replaces the value of a key by the result of `f`, called with the current value. Returns the
    /// new value, if the key was present. If another update of the bucket comes first, or another
    /// thread has locked the bucket to copy or move it, `f` is called again. It is called under no
    /// lock. If it panics, nothing has changed.
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

    /// Calls `f` to decide what to do with the entry of a key, and does it atomically: no other
    /// update comes between what `f` has seen and what it decides. If another update of the bucket
    /// comes first, or another thread has locked the bucket to copy or move it, `f` is called
    /// again, as often as that happens. It is called under no lock, and may use the map. If it
    /// panics, nothing has changed.
    ///
    /// Returns the previous value.
    ///
    /// # Errors
    /// The value with which `f` aborted; nothing has changed.
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

    /// Removes every pair for which `keeps` returns `false`, one after the other, not all at one
    /// moment. A pair that is present during the whole call is certain to be visited. `keeps` is
    /// called under no lock, and more than once for some pairs.
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

    /// Removes every pair that is present during the whole call: see [`retain`](Self::retain). The
    /// table keeps its size.
    pub fn clear(&self) {
        self.retain(|_, _| false);
    }

    /// Inserts all `pairs`, one by one. `(&map).extend(...)` does the same, so a shared map can be
    /// extended, too. First [`reserve`](Self::reserve)s room for half of the iterator's lower size
    /// bound.
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

    /// Makes room for `additional` more pairs. If the table is too small, all pairs move to a
    /// larger one while other updates continue. If another thread shrinks the table meanwhile,
    /// there may be less room.
    ///
    /// # Panics
    /// As [`with_capacity`](Self::with_capacity), which may abort; or if `Hash` of a key panics.
    pub fn reserve(&self, additional: usize) {
        let enough = Tables::<K, V>::buckets_for(self.len().saturating_add(additional));
        let larger = |buckets| (enough > buckets).then_some(enough);
        self.tables.resize(larger, |key| self.hash(key));
    }

    /// Shrinks the table as far as its pairs, or `capacity` if that is more, allow. All pairs move,
    /// halving the table step by step, while other updates continue. If another thread makes the
    /// table grow meanwhile, it may stay larger.
    ///
    /// ```
    /// let map: quiescence::collections::CopyMap<u64, u64> = (0..10_000).map(|n| (n, n)).collect();
    /// map.retain(|n, _| n < 10);
    /// map.shrink_to(100);
    /// assert!(map.capacity() >= 100 && map.capacity() < 1_000);
    /// ```
    pub fn shrink_to(&self, capacity: usize) {
        // For the number of pairs that there are now: other threads may insert meanwhile.
        let smaller = |buckets| {
            let enough = Tables::<K, V>::buckets_for(self.len().max(capacity));
            (enough < buckets).then_some(enough)
        };
        self.tables.resize(smaller, |key| self.hash(key));
    }

    /// Like [`shrink_to`](Self::shrink_to), as far as the map's pairs allow. Completes a move in
    /// progress, even if the table is already as small as possible.
    pub fn shrink_to_fit(&self) {
        self.tables.end_moves(|key| self.hash(key));
        self.shrink_to(0);
    }
}

owns! {
    /// Owns what is allocated for its tables and overflow buckets, including pages that went back
    /// to the system.
    [K: NoUninit, V: NoUninit, S] CopyMap<K, V, S>, true, |map| map.tables.bytes();
}
