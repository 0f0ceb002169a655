//! The map itself: what it consists of, how it is made, and how it is read.

use std::hash::{BuildHasher, Hash, RandomState};
use std::panic::Location;

use equivalent::Equivalent;

use super::builder::Builder;
use super::growth;
use super::known::is_key;
use super::search::search;
use super::table::{Table, TableRef};
use super::view::HashMapRef;
use crate::domain::domain::Domain;
use crate::domain::guard::Global;
use crate::domain::sections;
use crate::domain::tag::{DomainTag, Section};
use crate::os::sync::AtomicPtr;
use crate::os::user_code::{self, Site};
use crate::reclaim::defer;
use crate::reclaim::free::charge_of_box;
use crate::reclaim::weigh::{self, Weigh};
use crate::sync::Counter;

/// A key and its value, in a box of their own.
pub(super) struct Entry<K, V> {
    pub(super) key: K,
    pub(super) value: V,
}

/// A concurrent hash map. Readers take no lock and write nothing that is shared; what they find
/// stays valid as long as their section.
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
/// [`read`](Self::read) gives a [`HashMapRef`], which is a section with the map's methods.
/// [`get`](Self::get) takes any guard of the map's domain: those of [`Reader`](crate::Reader) and
/// [`Qsbr`](crate::Qsbr), and one guard for several maps. A reader finds an entry as it was at one
/// moment: an entry that is replaced is seen as the old or as the new one, and never as absent.
///
/// # Updates
/// The methods of the map itself have a section of their own. Those of [`HashMapRef`] are for
/// updates that want a reference to what was there before, or is there now. A thread may update the
/// map while it has guards, and references out of the map: an update waits for readers only at the
/// domain's limit, and outside of sections. User code, such as `Hash` and `Eq` of keys, is called
/// under no lock, and may use the map.
///
/// # Memory
/// Key and value are in a box of their own. One that is replaced or removed waits for a grace
/// period: it is retired in the domain and counts against its limit, as with [`Rcu`](crate::Rcu).
/// So does what a full bucket leaves behind, an overflow node for several updates. For small `Copy`
/// pairs a [`CopyMap`](crate::collections::CopyMap) is smaller and cheaper to update, and nothing
/// waits to be freed; its look-ups return copies. For counters use values that change in place: a
/// look-up in a `HashMap<K, AtomicU64>`.
///
/// **At the limit** an update outside of sections waits, and nothing exceeds it. In a section the
/// first one goes over the limit, and another one of the thread panics. The `try_` forms give back
/// what they were given, while there is no room for a box, or more waits than the limit says. So of
/// each thread two updates at most are beyond the limit, one in a section and one of a `try_` form.
/// Each leaves a box at most, and ten nodes: two of its own bucket, and those of eight that it
/// moves to another table. A node has 104 bytes, unless its bucket has more than five entries that
/// found no slot; then at most four slots, of 9 bytes, for each entry. (In a
/// [sleepable domain](crate::Srcu#at-the-limit) an update waits for 10 ms at most, and then goes
/// over the limit.)
///
/// A table has a cache line for each six entries. It grows to twice its size (four times, below 256
/// buckets) when eleven in sixteen of its slots are in use: so an entry takes 16 to 31 bytes there
/// (up to 62, below 256 buckets), and its box. While it moves there are two, and an old one
/// waits for a grace period: outside of the limit, to which it counts as the closure that frees it.
/// All that growth leaves is less than the table, and with what [`shrink_to`](Self::shrink_to)
/// leaves less than twice the table. Tables do not shrink by themselves.
///
/// # Hashing
/// With the default hasher, [`RandomState`], keys cannot be chosen so that they collide. A bucket
/// with many entries is searched one by one. As in the standard library's map, a hasher should be
/// good in its lowest and its highest bits.
///
/// # Progress and cost
/// A look-up in a map of a million integers costs two cache misses: the bucket, and the box. It is
/// wait-free, but for tables that are replaced as fast as it goes from one to the next. An update
/// finds its entry as a look-up does, and then locks one bucket, with a spin lock in it, for some
/// ten instructions; it begins again where another update of the bucket came in between. It makes a
/// box, of memory that this thread has freed before if there is some. While the table grows, each
/// update moves four buckets, in parallel with others; none waits for the end of that.
///
/// # Other domains
/// [`builder`](Self::builder) makes maps in domains of one's own. In a [sleepable](crate::Srcu) one
/// guards may be held across an `.await`:
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
    weight: Weight<K, V>,
}

/// What an entry weighs: its size, or what a function says.
pub(super) type Weight<K, V> = Option<fn(&K, &V) -> usize>;

// SAFETY: entries are shared with other threads, and dropped by any; the rest is Send and Sync.
unsafe impl<K: Send + Sync, V: Send + Sync, S: Send, D: DomainTag> Send for HashMap<K, V, S, D> {}
// SAFETY: as above.
unsafe impl<K: Send + Sync, V: Send + Sync, S: Sync, D: DomainTag> Sync for HashMap<K, V, S, D> {}

impl<K, V> HashMap<K, V>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// An empty map in the global domain. Allocates nothing.
    pub fn new() -> Self
    where
        K: Weigh,
        V: Weigh,
    {
        Self::with_capacity(0)
    }

    /// An empty map with room for so many entries.
    ///
    /// # Panics
    /// If so many are more than the address space has room for.
    pub fn with_capacity(capacity: usize) -> Self
    where
        K: Weigh,
        V: Weigh,
    {
        Self::with_capacity_and_hasher(capacity, RandomState::new())
    }

    /// An empty map in another domain: its guards protect what readers find, and its limit counts
    /// what is replaced.
    pub fn new_in<D: DomainTag>(domain: Domain<D>) -> HashMap<K, V, RandomState, D>
    where
        K: Weigh,
        V: Weigh,
    {
        Self::builder().domain(domain).build()
    }

    /// Makes a map in another domain, with another hasher, or of types that do not implement
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
    /// An empty map with another hasher.
    pub fn with_hasher(hasher: S) -> Self
    where
        K: Weigh,
        V: Weigh,
    {
        Self::with_capacity_and_hasher(0, hasher)
    }

    /// An empty map with room for so many entries, and with another hasher.
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
pub(super) fn weight<K: Weigh, V: Weigh>() -> Weight<K, V> {
    const { K::OWNS || V::OWNS }.then_some(|key, value| {
        let owned = key.owned().saturating_add(value.owned());
        owned.saturating_add(size_of::<Entry<K, V>>())
    })
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
            _ => TableRef::new(growth::buckets_for(capacity)).as_ptr(),
        };
        Self { root: AtomicPtr::new(root), hasher, domain, count, weight }
    }

    #[inline(always)]
    pub(super) fn tag(&self) -> &D {
        self.domain.tag()
    }

    /// What an entry is charged.
    pub(super) fn charge(&self, entry: &Entry<K, V>) -> usize {
        let size = size_of::<Entry<K, V>>();
        let bytes = self.weight.map_or(size, |weight| {
            weigh::ask(self.domain.core(), || weight(&entry.key, &entry.value)).max(size)
        });
        charge_of_box::<Entry<K, V>>(bytes)
    }

    /// Whether an update may take something out: not in a section in which this thread has gone
    /// over the limit already.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.domain.core().grace_periods.is_sleepable() || defer::may_replace(self.tag(), None)
    }

    /// What one is charged that owns nothing.
    pub(super) fn charge_by_size(&self) -> usize {
        charge_of_box::<Entry<K, V>>(size_of::<Entry<K, V>>())
    }

    /// How many entries the map has: exact if it is not changed meanwhile, and if it is, a number
    /// that leaves out some changes of that time. Looks at a word of each CPU.
    pub fn len(&self) -> usize {
        usize::try_from(self.count.sum()).unwrap_or(0)
    }

    /// Whether it has none, as [`len`](Self::len) says.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many entries it can have before its table grows.
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

    /// A section, with the methods of the map.
    ///
    /// # Panics
    /// If a thread's sections are nested 2^32 deep.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> HashMapRef<'_, K, V, S, D, D::Section<'_>> {
        HashMapRef { map: self, section: self.tag().enter(Location::caller()) }
    }

    /// The same under a section that the caller has: of a [`Reader`](crate::Reader), a
    /// [`Qsbr`](crate::Qsbr), or one for several maps.
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
    /// If the section is one of another domain (checked when the program runs only for domains made
    /// with [`Domain::new`]; the compiler refuses the others).
    #[inline]
    pub fn read_in<'s, G: Section<D>>(
        &'s self,
        section: &'s G,
    ) -> HashMapRef<'s, K, V, S, D, &'s G> {
        sections::check_section!(section, &self.domain, "map");
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

    /// The value of a key. It stays valid as long as the section, also if it is removed or
    /// replaced.
    ///
    /// Under a [`HashMapRef`] it is shorter: `map.read().get(key)`.
    ///
    /// # Panics
    /// As [`read_in`](Self::read_in).
    #[inline]
    pub fn get<'s, Q, G>(&'s self, key: &Q, section: &'s G) -> Option<&'s V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        G: Section<D>,
    {
        sections::check_section!(section, &self.domain, "map");
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
        let end = |entry: *const Entry<K, V>| {
            // SAFETY: each box of the map, once.
            let entry = unsafe { Box::from_raw(entry.cast_mut()) };
            user_code::run(Site::Drop, || drop(entry));
        };
        // SAFETY: as above.
        unsafe { table.end(end) };
    }
}
