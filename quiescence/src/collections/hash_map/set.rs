//! A concurrent hash set: a [`HashMap`] without values.

use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::iter::Map;
use std::ops::Deref;

use equivalent::Equivalent;

use super::map::HashMap;
use super::view::{HashMapRef, Iter};
use crate::collections::impls::{collected, extended, iterated, shown_as_all, view};
use crate::domain::domain::Domain;
use crate::domain::guard::Global;
use crate::domain::tag::{DomainTag, Section};
use crate::reclaim::free::AtLimit;
use crate::reclaim::weigh::{Weigh, owns};

/// A concurrent hash set. Readers take no lock and write nothing that is shared.
///
/// Everything is as with [`HashMap`]. An element takes 16 to 31 bytes of the table (up to 62, below
/// 256 buckets), plus a box. For small `Copy` elements a [`CopyMap<T,
/// ()>`](crate::collections::CopyMap) is smaller, and has no boxes. A set dereferences to its map
/// from elements to `()`, whose `len`, `remove`, `clear`, `reserve` and `domain` apply to the set.
/// The map's `insert(element, ())` replaces an element that is present, unless it
/// [stays](HashMap#memory); the set's `insert` does not.
///
/// ```
/// use quiescence::collections::HashSet;
///
/// let blocked = HashSet::new();
/// assert!(blocked.insert("10.0.0.1"));
/// assert!(!blocked.insert("10.0.0.1"));
/// let guard = blocked.read();
/// assert!(guard.contains("10.0.0.1"));
/// blocked.remove("10.0.0.1"); // while there is a guard
/// assert!(!guard.contains("10.0.0.1"));
/// ```
pub struct HashSet<T, S = RandomState, D: DomainTag = Global>(HashMap<T, (), S, D>);

/// A set together with a section: elements that it finds stay valid as long as this value. Made by
/// [`HashSet::read`].
#[must_use = "the section ends when this is dropped"]
pub struct HashSetRef<'m, T, S, D: DomainTag, G> {
    set: &'m HashSet<T, S, D>,
    pub(super) elements: HashMapRef<'m, T, (), S, D, G>,
}

/// The elements of a set: see [`HashSetRef::iter`].
pub type Elements<'s, T, S, D> = Map<Iter<'s, T, (), S, D>, fn((&'s T, &'s ())) -> &'s T>;

impl<T: Send + Sync + 'static> HashSet<T> {
    /// Creates an empty set in the global domain. Allocates nothing.
    pub fn new() -> Self
    where
        T: Weigh,
    {
        Self(HashMap::new())
    }

    /// Creates an empty set with room for `capacity` elements.
    ///
    /// # Panics
    /// As [`HashMap::with_capacity`].
    pub fn with_capacity(capacity: usize) -> Self
    where
        T: Weigh,
    {
        Self(HashMap::with_capacity(capacity))
    }

    /// Creates an empty set in another domain.
    pub fn new_in<D: DomainTag>(domain: Domain<D>) -> HashSet<T, RandomState, D>
    where
        T: Weigh,
    {
        HashSet(HashMap::new_in(domain))
    }
}

impl<T: Send + Sync + 'static, S> HashSet<T, S> {
    /// Creates an empty set with another hasher.
    pub fn with_hasher(hasher: S) -> Self
    where
        T: Weigh,
    {
        Self(HashMap::with_hasher(hasher))
    }

    /// Creates an empty set with another hasher and room for `capacity` elements.
    ///
    /// # Panics
    /// As [`HashMap::with_capacity`].
    pub fn with_capacity_and_hasher(capacity: usize, hasher: S) -> Self
    where
        T: Weigh,
    {
        Self(HashMap::with_capacity_and_hasher(capacity, hasher))
    }
}

impl<T, S, D: DomainTag> HashSet<T, S, D> {
    /// Begins a section, and returns it with the methods of the set: see [`HashMap::read`].
    ///
    /// # Panics
    /// If a thread's sections are nested 2^32 deep.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> HashSetRef<'_, T, S, D, D::Section<'_>> {
        HashSetRef { set: self, elements: self.0.read() }
    }

    /// Like [`read`](Self::read), in a section of the caller's: see [`HashMap::read_in`].
    ///
    /// # Panics
    /// If the section belongs to another domain, as in [`HashMap::read_in`].
    #[inline]
    #[track_caller]
    pub fn read_in<'s, G: Section<D>>(&'s self, section: &'s G) -> HashSetRef<'s, T, S, D, &'s G> {
        HashSetRef { set: self, elements: self.0.read_in(section) }
    }
}

impl<T, S, D: DomainTag> Deref for HashSet<T, S, D> {
    type Target = HashMap<T, (), S, D>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T, S, D> HashSet<T, S, D>
where
    T: Hash + Eq + Send + Sync + 'static,
    S: BuildHasher,
    D: DomainTag,
{
    /// Adds an element, and returns whether it is new. If an equal one is present, that one stays.
    /// Waits at the domain's limit as [`HashMap::insert_if_absent`] does.
    ///
    /// # Panics
    /// As [`HashMap::insert`], if the element is absent.
    #[track_caller]
    pub fn insert(&self, element: T) -> bool {
        self.0.insert_if_absent(element, ())
    }

    /// Like [`insert`](Self::insert), but never waits.
    ///
    /// # Errors
    /// The element, as in [`HashMap::try_insert_if_absent`].
    ///
    /// ```
    /// let set = quiescence::collections::HashSet::new();
    /// assert_eq!(set.try_insert("a"), Ok(true));
    /// assert_eq!(set.try_insert("a"), Ok(false));
    /// ```
    #[track_caller]
    pub fn try_insert(&self, element: T) -> Result<bool, AtLimit<T>> {
        let refused = |refused: AtLimit<(T, ())>| AtLimit::unchanged(refused.into_inner().0);
        self.0.try_insert_if_absent(element, ()).map_err(refused)
    }

    /// Removes the elements for which `keeps` returns `false`: see [`HashMap::retain`].
    ///
    /// # Panics
    /// As [`HashMap::retain`].
    #[track_caller]
    pub fn retain(&self, mut keeps: impl FnMut(&T) -> bool) {
        self.0.retain(|element, ()| keeps(element));
    }

    /// Adds all `elements`.
    ///
    /// # Panics
    /// As [`insert`](Self::insert).
    #[track_caller]
    pub fn extend(&self, elements: impl IntoIterator<Item = T>) {
        for element in elements {
            self.insert(element);
        }
    }
}

impl<T: Hash + Eq, S: BuildHasher, D: DomainTag, G> HashSetRef<'_, T, S, D, G> {
    /// Returns whether an element is present.
    #[inline]
    pub fn contains<Q>(&self, element: &Q) -> bool
    where
        Q: Hash + Equivalent<T> + ?Sized,
    {
        self.elements.contains_key(element)
    }

    /// Returns the element as it is in the set.
    #[inline]
    pub fn get<Q>(&self, element: &Q) -> Option<&T>
    where
        Q: Hash + Equivalent<T> + ?Sized,
    {
        self.elements.get_key_value(element).map(|(element, ())| element)
    }

    /// All elements: see [`HashMapRef::iter`].
    pub fn iter(&self) -> Elements<'_, T, S, D> {
        self.elements.iter().map(|(element, ())| element)
    }
}

impl<T, S, D, G> HashSetRef<'_, T, S, D, G>
where
    T: Hash + Eq + Send + Sync + 'static,
    S: BuildHasher,
    D: DomainTag,
    G: Section<D>,
{
    /// Removes an element, and returns it.
    ///
    /// # Panics
    /// As [`HashMap::remove`].
    #[track_caller]
    pub fn remove<Q>(&self, element: &Q) -> Option<&T>
    where
        Q: Hash + Equivalent<T> + ?Sized,
    {
        self.elements.remove_entry(element).map(|(element, ())| element)
    }
}

view!(
    [T, S, D: DomainTag, G] HashSetRef<'_, T, S, D, G>, set: HashSet<T, S, D>,
    elements: Section<D> where G: Section<D>
);

iterated!(
    ['s, T: Hash + Eq, S: BuildHasher, D: DomainTag, G]
    &'s HashSetRef<'_, T, S, D, G>, &'s T, Elements<'s, T, S, D>
);

/// The keys of a map without values: for a set with settings that only a map's
/// [builder](HashMap::builder) has.
///
/// ```
/// use quiescence::Domain;
/// use quiescence::collections::{HashMap, HashSet};
///
/// let domain = Domain::new();
/// let map = HashMap::<u32, ()>::builder().domain(domain.clone()).capacity(100).build();
/// let set = HashSet::from(map);
/// assert!(set.insert(7) && set.read_in(&domain.read()).contains(&7));
/// ```
impl<T, S, D: DomainTag> From<HashMap<T, (), S, D>> for HashSet<T, S, D> {
    fn from(map: HashMap<T, (), S, D>) -> Self {
        Self(map)
    }
}

impl<T: Weigh + Send + Sync + 'static, S: Default> Default for HashSet<T, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

collected!([T: Weigh + Hash + Eq + Send + Sync + 'static] HashSet<T>, T);

extended!(
    [T: Hash + Eq + Send + Sync + 'static, S: BuildHasher, D: DomainTag]
    HashSet<T, S, D>, T, |set, elements| set.extend(elements)
);

shown_as_all!(
    [T: Hash + Eq + fmt::Debug, S: BuildHasher, D: DomainTag]
    HashSet<T, S, D>, debug_set, |set| set.read().iter()
);

shown_as_all!(
    [T: Hash + Eq + fmt::Debug, S: BuildHasher, D: DomainTag, G]
    HashSetRef<'_, T, S, D, G>, debug_set, |set| set.iter()
);

/// The same elements; of sets that do not change meanwhile.
impl<T: Hash + Eq, S: BuildHasher, D: DomainTag> PartialEq for HashSet<T, S, D> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T: Hash + Eq, S: BuildHasher, D: DomainTag> Eq for HashSet<T, S, D> {}

owns! {
    /// As of the map.
    [T, S, D: DomainTag] HashSet<T, S, D>, true, |set| set.0.owned();
}
