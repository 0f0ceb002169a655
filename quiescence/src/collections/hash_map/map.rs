//! The map itself: its fields, its constructors, and look-ups.

use std::hash::{BuildHasher, Hash, RandomState};
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};

use equivalent::Equivalent;

use super::builder::Builder;
use super::growth;
use super::handed_on::hands_on;
use super::search::{is_key, search};
use super::table::{Table, TableRef};
use super::view::HashMapRef;
use crate::domain::domain::Domain;
use crate::domain::guard::Global;
use crate::domain::sections;
use crate::domain::tag::{DomainTag, Section};
use crate::os::sync::AtomicPtr;
use crate::os::user_code::{self, Site};
use crate::reclaim::weigh::{self, Weigh, charge_of_box};
use crate::sync::Counter;

/// A key and its value, in a box of their own.
// In the order of C, so that a key is where its entry is, and is there or not: see `handed_on`.
#[repr(C)]
pub(super) struct Entry<K, V> {
    pub(super) key: K,
    pub(super) value: V,
}

/// A concurrent hash map. Readers take no lock and write nothing that other threads share;
/// references that they find stay valid until their section ends.
///
/// ```
/// use quiescence::collections::HashMap;
/// use std::thread;
///
/// let ports = HashMap::new();
/// ports.insert("http", 80);
/// thread::scope(|scope| {
///     scope.spawn(|| {
///         let ports = ports.read(); // a section; what it finds lives as long
///         let http = ports.get("http").expect("it is never removed");
///         assert!(*http == 80 || *http == 8080);
///     });
///     ports.update("http", |old| old + 8000);
/// });
/// assert_eq!(ports.read().get("http"), Some(&8080));
/// ```
///
/// # Reading
/// [`read`](Self::read) returns a [`HashMapRef`], which is a section with the map's methods.
/// [`get`](Self::get) takes any guard of the map's domain: one of a [`Reader`](crate::Reader) or
/// [`Qsbr`](crate::Qsbr), or one guard for several maps. A reader finds an entry as it was at one
/// moment: while an entry is replaced, it sees the old or the new one, and never finds it absent.
///
/// # Updates
/// The methods of the map itself run in a section of their own. Use those of [`HashMapRef`] if you
/// want a reference to the previous or the current value. A thread may update the map while it
/// holds guards, and references into the map: an update waits for readers only at the domain's
/// limit, and only outside of sections. User code, such as `Hash` and `Eq` of keys, is called under
/// no lock, and may use the map. But a `Hash` that calls [`reserve`](Self::reserve) or shrinks the
/// map each time recurses until the stack overflows: moving entries hashes their keys.
///
/// # Memory
/// Key and value share one box. A box that is replaced or removed is retired in the domain, and
/// counts against its limit until its grace period ends, as with [`Rcu`](crate::Rcu). So does an
/// overflow node that a full bucket replaces, once in several updates. For small `Copy` pairs a
/// [`CopyMap`](crate::collections::CopyMap) is smaller and cheaper to update, and nothing waits to
/// be freed; its look-ups return copies. For counters use values that change in place: counting is
/// then a look-up in a `HashMap<K, AtomicU64>`.
///
/// **A key stays** while its value is replaced, if it is a `String`, `Box<str>`, `Vec<u8>`,
/// `Box<[u8]>` or `OsString`: it moves to the new box, with its capacity, so what it owns does not
/// wait, and an equal key that is passed is dropped. Not so in a map with a
/// [weight](Builder::build_with_weight) of its own.
///
/// **At the limit** an update outside of sections waits, and does not exceed the limit. In a
/// section, a thread's first update exceeds it, and the next one panics. The `try_` methods return
/// their arguments if there is no room for a box, or if the limit is already exceeded. So at most
/// two updates of each thread exceed the limit, one in a section and one by a `try_` method. Each
/// retires at most one box and ten nodes: two of its own bucket, and those of eight buckets that it
/// moves to another table. A node has 104 bytes, unless more than five entries of its bucket found
/// no slot; then it has at most four slots, of 9 bytes, for each such entry. (In a [sleepable
/// domain](crate::Srcu#at-the-limit) an update waits for at most 10 ms, then exceeds the limit.)
///
/// A table has one cache line for each six entries. It grows to twice its size (four times, below
/// 256 buckets) when eleven in sixteen of its slots are in use. So an entry takes 16 to 31 bytes of
/// the table (up to 62, below 256 buckets), plus its box. During growth there are two tables. The
/// old one then waits for a grace period outside of the limit, in which it counts only as the
/// closure that frees it. All tables that growth has replaced are together smaller than the current
/// one; with those that [`shrink_to`](Self::shrink_to) has replaced, smaller than twice the current
/// one. Tables do not shrink by themselves.
///
/// # Hashing
/// With the default hasher, [`RandomState`], an attacker cannot choose keys that collide. A bucket
/// with many entries is searched one by one. As with the standard library's map, a hasher should
/// distribute its lowest and its highest bits well.
///
/// # Progress and cost
/// A look-up in a map of a million integers costs two cache misses: the bucket, and the box. It is
/// wait-free, unless tables are replaced as fast as it moves from one to the next. An update finds
/// its entry as a look-up does, then locks one bucket with a spin lock for some ten instructions;
/// it retries if another update of the bucket came first. It allocates a box, or reuses memory that
/// this thread has freed. While the table grows, each update moves four buckets, in parallel with
/// others; no update waits for the growth to finish. An overflow node may be allocated while its
/// bucket is locked: **a global allocator must not update a `HashMap`.**
///
/// # Other domains
/// [`builder`](Self::builder) makes maps in domains of your own. In a [sleepable](crate::Srcu)
/// domain, guards may be held across an `.await`:
///
/// ```
/// use quiescence::{Srcu, collections::HashMap};
///
/// let sessions = HashMap::<u64, String>::new_in(Srcu::new().domain());
/// sessions.insert(7, "anna".into());
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # runtime.block_on(async {
/// let open = sessions.read();
/// let name = open.get(&7).unwrap();
/// tokio::task::yield_now().await;
/// sessions.remove(&7);
/// assert_eq!(name, "anna");
/// # });
/// ```
#[doc(alias("DashMap", "papaya"))]
pub struct HashMap<K, V, S = RandomState, D: DomainTag = Global> {
    /// The table that readers begin with; never null.
    pub(super) root: AtomicPtr<Table<Entry<K, V>>>,
    pub(super) hasher: S,
    pub(super) domain: Domain<D>,
    /// Entries.
    pub(super) count: Counter,
    pub(super) weight: Weight<K, V>,
}

/// What entries weigh: their size, or what a function says.
pub(super) struct Weight<K, V> {
    pub(super) entry: Option<fn(&K, &V) -> usize>,
    /// Those whose key was handed on.
    pub(super) value: Option<fn(&V) -> usize>,
    /// Whether keys are handed on: not if a function of the user's would weigh them afterwards.
    pub(super) hands_on: bool,
}

// SAFETY: entries are shared with other threads, and dropped by any; the rest is Send and Sync.
unsafe impl<K: Send + Sync, V: Send + Sync, S: Send, D: DomainTag> Send for HashMap<K, V, S, D> {}
// SAFETY: as above.
unsafe impl<K: Send + Sync, V: Send + Sync, S: Sync, D: DomainTag> Sync for HashMap<K, V, S, D> {}

impl<K, V> HashMap<K, V>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// Creates an empty map in the global domain. Allocates nothing.
    pub fn new() -> Self
    where
        K: Weigh,
        V: Weigh,
    {
        Self::with_capacity(0)
    }

    /// Creates an empty map with room for `capacity` entries.
    ///
    /// # Panics
    /// If the address space has no room for that many. If it has, but the system has too little
    /// memory, the process aborts.
    pub fn with_capacity(capacity: usize) -> Self
    where
        K: Weigh,
        V: Weigh,
    {
        Self::with_capacity_and_hasher(capacity, RandomState::new())
    }

    /// Creates an empty map in another domain, whose guards protect what readers find, and whose
    /// limit counts replaced entries.
    pub fn new_in<D: DomainTag>(domain: Domain<D>) -> HashMap<K, V, RandomState, D>
    where
        K: Weigh,
        V: Weigh,
    {
        Self::builder().domain(domain).build()
    }

    /// Makes a map in another domain, with another hasher, or for types that do not implement
    /// [`Weigh`].
    ///
    /// ```
    /// use quiescence::{Domain, collections::HashMap};
    ///
    /// quiescence::domain! { struct Zones; }
    /// let zones = Domain::of(Zones);
    /// let zones = HashMap::<u32, String>::builder().domain(zones).capacity(100).build();
    /// zones.insert(1, "example.org".into());
    /// assert_eq!(zones.get(&1, &Domain::of(Zones).read()).unwrap(), "example.org");
    /// ```
    pub fn builder() -> Builder<K, V> {
        Builder::new()
    }
}

impl<K, V, S> HashMap<K, V, S>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// Creates an empty map with another hasher.
    pub fn with_hasher(hasher: S) -> Self
    where
        K: Weigh,
        V: Weigh,
    {
        Self::with_capacity_and_hasher(0, hasher)
    }

    /// Creates an empty map with another hasher and room for `capacity` entries.
    ///
    /// # Panics
    /// As [`with_capacity`](Self::with_capacity).
    pub fn with_capacity_and_hasher(capacity: usize, hasher: S) -> Self
    where
        K: Weigh,
        V: Weigh,
    {
        Self::make(capacity, hasher, Domain::global(), weight::<K, V>())
    }
}

/// How entries of types that say it are weighed.
pub(super) fn weight<K: Weigh + 'static, V: Weigh>() -> Weight<K, V> {
    Weight {
        entry: const { K::OWNS || V::OWNS }.then_some(|key, value| {
            let owned = key.owned().saturating_add(value.owned());
            owned.saturating_add(size_of::<Entry<K, V>>())
        }),
        value: V::OWNS.then_some(|value| value.owned().saturating_add(size_of::<Entry<K, V>>())),
        hands_on: hands_on::<K>(),
    }
}

impl<K, V, S, D: DomainTag> HashMap<K, V, S, D> {
    /// A map. Its entries are freed by other threads, after grace periods: so it is here that their
    /// types must be `Send`, `Sync` and `'static`.
    pub(super) fn make(capacity: usize, hasher: S, domain: Domain<D>, weight: Weight<K, V>) -> Self
    where
        K: Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        let count = Counter::new();
        // Before there is a map, whose drop relies on a table: this may panic.
        let root = match capacity {
            0 => TableRef::nothing(),
            _ => TableRef::new(growth::buckets_for(capacity), None).as_ptr(),
        };
        Self { root: AtomicPtr::new(root), hasher, domain, count, weight }
    }

    #[inline(always)]
    pub(super) fn tag(&self) -> &D {
        self.domain.tag()
    }

    /// What an entry is charged.
    pub(super) fn charge(&self, entry: &Entry<K, V>) -> usize {
        self.charge_by(self.weight.entry, |weight| weight(&entry.key, &entry.value))
    }

    /// What one is charged whose key was handed on.
    pub(super) fn charge_value(&self, value: &V) -> usize {
        self.charge_by(self.weight.value, |weight| weight(value))
    }

    fn charge_by<F>(&self, weight: Option<F>, ask: impl FnOnce(F) -> usize) -> usize {
        let size = size_of::<Entry<K, V>>();
        let ask = |weight| weigh::ask(self.domain.core(), || ask(weight)).max(size);
        charge_of_box::<Entry<K, V>>(weight.map_or(size, ask))
    }

    /// The number of entries. Exact unless the map is changed during the call; otherwise it may
    /// miss some of those changes. Loads one word per CPU.
    pub fn len(&self) -> usize {
        usize::try_from(self.count.sum()).unwrap_or(0)
    }

    /// Whether the map has no entries, as [`len`](Self::len) counts.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of entries that fit before the table grows.
    pub fn capacity(&self) -> usize {
        let _section = self.tag().enter(Location::caller());
        // SAFETY: in a section.
        let table = unsafe { growth::root(&self.root) };
        let table = table.next().unwrap_or(table);
        if table.is_nothing() { 0 } else { growth::most(table.buckets()) }
    }

    /// Bytes of all its tables, and of the boxes of its entries.
    pub(super) fn bytes(&self) -> usize {
        let _section = self.tag().enter(Location::caller());
        // SAFETY: in a section.
        let table = unsafe { growth::root(&self.root) };
        let boxes = self.len() * size_of::<Entry<K, V>>();
        if table.is_nothing() { 0 } else { table.bytes_of_all() + boxes }
    }

    /// The domain whose sections protect what readers find.
    pub fn domain(&self) -> &Domain<D> {
        &self.domain
    }

    /// The hasher.
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Begins a section, and returns it with the methods of the map.
    ///
    /// # Panics
    /// If a thread's sections are nested 2^32 deep.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> HashMapRef<'_, K, V, S, D, D::Section<'_>> {
        HashMapRef { map: self, section: self.tag().enter(Location::caller()) }
    }

    /// Like [`read`](Self::read), in a section of the caller's: of a [`Reader`](crate::Reader), a
    /// [`Qsbr`](crate::Qsbr), or one shared by several maps.
    ///
    /// ```
    /// use quiescence::collections::HashMap;
    ///
    /// let (names, ages) = (HashMap::new(), HashMap::new());
    /// names.insert(1, "anna");
    /// ages.insert(1, 44);
    /// let guard = quiescence::read();
    /// let (names, ages) = (names.read_in(&guard), ages.read_in(&guard));
    /// assert_eq!((names.get(&1), ages.get(&1)), (Some(&"anna"), Some(&44)));
    /// ```
    ///
    /// # Panics
    /// If the section belongs to another domain. The compiler rejects this, except between domains
    /// made with [`Domain::new`], where it is checked at run time.
    #[inline]
    #[track_caller]
    pub fn read_in<'s, G: Section<D>>(
        &'s self,
        section: &'s G,
    ) -> HashMapRef<'s, K, V, S, D, &'s G> {
        sections::check(section, &self.domain, "map");
        HashMapRef { map: self, section }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher, D: DomainTag> HashMap<K, V, S, D> {
    #[inline(always)]
    pub(super) fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        user_code::run(Site::Key, || self.hasher.hash_one(key))
    }

    /// The entry of a key.
    ///
    /// # Safety
    /// The caller is in a section of the map's domain, or has the map alone.
    #[inline(always)]
    pub(super) unsafe fn find<Q>(&self, key: &Q) -> Option<*const Entry<K, V>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let hash = self.hash(key);
        // SAFETY: by the contract.
        unsafe { self.find_hashed(key, hash) }
    }

    /// The same, of a key whose hash is known.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub(super) unsafe fn find_hashed<Q>(&self, key: &Q, hash: u64) -> Option<*const Entry<K, V>>
    where
        Q: Equivalent<K> + ?Sized,
    {
        // SAFETY: in a section.
        let table = unsafe { growth::root(&self.root) };
        // SAFETY: loaded in the section.
        unsafe { search(table, hash, |entry| is_key(key, &entry.key)) }
    }

    /// Returns the value of a key. The reference stays valid for the whole section, even if the
    /// entry is removed or replaced.
    ///
    /// With a [`HashMapRef`] this is shorter: `map.read().get(key)`.
    ///
    /// # Panics
    /// As [`read_in`](Self::read_in).
    #[inline]
    #[track_caller]
    pub fn get<'s, Q, G>(&'s self, key: &Q, section: &'s G) -> Option<&'s V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        G: Section<D>,
    {
        sections::check(section, &self.domain, "map");
        // SAFETY: in a section.
        let entry = unsafe { self.find(key) };
        // SAFETY: it is not written to or freed before the section ends.
        entry.map(|entry| unsafe { &(*entry).value })
    }
}

impl<K, V, S, D: DomainTag> Drop for HashMap<K, V, S, D> {
    fn drop(&mut self) {
        // SAFETY: borrowed exclusively: no thread can have a reference out of it.
        let table = unsafe { growth::root(&self.root) };
        let mut panicked = None;
        let end = |entry: *const Entry<K, V>| {
            // SAFETY: each box of the map, once.
            let entry = unsafe { Box::from_raw(entry.cast_mut()) };
            if panicked.is_some() {
                user_code::caught(Site::Drop, || drop(entry));
                return;
            }
            let drop_it = || user_code::run(Site::Drop, || drop(entry));
            panicked = catch_unwind(AssertUnwindSafe(drop_it)).err();
        };
        // SAFETY: as above.
        unsafe { table.end(end) };
        if let Some(panic) = panicked {
            resume_unwind(panic);
        }
    }
}
