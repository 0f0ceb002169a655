//! Maps with settings other than the default: [`Builder`].

use std::hash::RandomState;

use super::map::{HashMap, Weight, weight};
use crate::domain::domain::Domain;
use crate::domain::guard::Global;
use crate::domain::impls::shown_in_part;
use crate::domain::tag::DomainTag;
use crate::reclaim::weigh::Weigh;

/// Makes a [`HashMap`]: see [`HashMap::builder`].
#[must_use = "a builder makes nothing until `build` is called"]
pub struct Builder<K, V, S = RandomState, D: DomainTag = Global> {
    capacity: usize,
    hasher: S,
    domain: Domain<D>,
    entries: std::marker::PhantomData<fn() -> (K, V)>,
}

impl<K, V> Builder<K, V> {
    pub(super) fn new() -> Self {
        let (hasher, domain) = (RandomState::new(), Domain::global());
        Self { capacity: 0, hasher, domain, entries: std::marker::PhantomData }
    }
}

impl<K, V, S, D> Builder<K, V, S, D>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    D: DomainTag,
{
    /// Has [`build`](Self::build) allocate room for `capacity` entries.
    pub fn capacity(self, capacity: usize) -> Self {
        Self { capacity, ..self }
    }

    /// Sets the hasher.
    pub fn hasher<T>(self, hasher: T) -> Builder<K, V, T, D> {
        Builder { capacity: self.capacity, hasher, domain: self.domain, entries: self.entries }
    }

    /// Sets the domain: its guards protect what readers find, and its limit counts replaced
    /// entries.
    pub fn domain<T: DomainTag>(self, domain: Domain<T>) -> Builder<K, V, S, T> {
        Builder { capacity: self.capacity, hasher: self.hasher, domain, entries: self.entries }
    }

    /// Builds the map.
    ///
    /// # Panics
    /// As [`HashMap::with_capacity`].
    pub fn build(self) -> HashMap<K, V, S, D>
    where
        K: Weigh,
        V: Weigh,
    {
        HashMap::make(self.capacity, self.hasher, self.domain, weight::<K, V>())
    }

    /// Builds the map for types that do not implement [`Weigh`]. `weight` returns the bytes of an
    /// entry and of all that it owns.
    ///
    /// ```
    /// use quiescence::collections::HashMap;
    ///
    /// mod foreign {
    ///     pub struct Image(pub Vec<u8>);
    /// }
    ///
    /// let images = HashMap::builder()
    ///     .build_with_weight(|_: &u32, image: &foreign::Image| image.0.capacity());
    /// images.insert(1, foreign::Image(vec![0; 1 << 20]));
    /// images.remove(&1); // a megabyte waits
    /// ```
    ///
    /// # Panics
    /// As [`HashMap::with_capacity`].
    pub fn build_with_weight(self, weight: fn(&K, &V) -> usize) -> HashMap<K, V, S, D> {
        let weight = Weight { entry: Some(weight), value: None, hands_on: false };
        HashMap::make(self.capacity, self.hasher, self.domain, weight)
    }
}

shown_in_part!(
    [K, V, S, D: DomainTag] Builder<K, V, S, D> { capacity: |builder| builder.capacity }
);
