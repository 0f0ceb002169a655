//! arc-swap: a reference-counted value behind a pointer that is swapped; with and without the
//! cache that each thread may keep of it.

use std::sync::Arc;

use arc_swap::{ArcSwap, Cache};

use super::Design;
use crate::run::Ready;
use crate::value::Value;
use crate::workload::{Config, PerKey, Whole};

pub(super) const TABLE: Design = Design { make: Ready::<PerKey<ArcSwap<Value>>>::boxed, ..CONFIG };

pub(super) const CONFIG: Design = Design {
    name: "arc-swap",
    family: "reference count",
    idea: "a pointer to a reference-counted value is swapped; readers note debts and not counts",
    reader_cost: "a locked swap to note the debt and a compare-and-swap to pay it back",
    limits: "frequent updates: each walks the debts of every thread that ever read",
    ours: false,
    make: Ready::<Whole<ArcSwap<Value>>>::boxed,
};

pub(super) const CACHED_CONFIG: Design = Design {
    name: "arc-swap-cache",
    family: "reference count",
    idea: "each thread keeps a reference and looks whether the shared pointer is still the same",
    reader_cost: "one load and a comparison, as long as nothing was replaced",
    limits: "every thread keeps an old value alive until it reads again; one cache per value",
    ours: false,
    make: Ready::<Whole<Cached>>::boxed,
};

impl Config for ArcSwap<Value> {
    type Domain = ();
    type Thread<'a> = ();

    fn new(value: Value) -> Self {
        Self::from_pointee(value)
    }

    fn thread(_domain: &()) {}

    #[inline]
    fn read<R>(&self, _domain: &(), _thread: &mut (), look: impl FnOnce(&Value) -> R) -> R {
        look(&self.load())
    }

    #[inline]
    fn update(&self, _domain: &(), _thread: &mut (), value: Value) {
        self.store(Arc::new(value));
    }
}

/// Shared with the caches, which do not borrow.
type Shared = Arc<ArcSwap<Value>>;

#[derive(Debug)]
struct Cached(Shared);

impl Config for Cached {
    type Domain = ();
    /// Filled at the first read.
    type Thread<'a> = Option<Cache<Shared, Arc<Value>>>;

    fn new(value: Value) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(value)))
    }

    fn thread(_domain: &()) -> Self::Thread<'_> {
        None
    }

    #[inline]
    fn read<R>(
        &self,
        _domain: &(),
        thread: &mut Self::Thread<'_>,
        look: impl FnOnce(&Value) -> R,
    ) -> R {
        look(thread.get_or_insert_with(|| Cache::new(Arc::clone(&self.0))).load())
    }

    #[inline]
    fn update(&self, _domain: &(), _thread: &mut Self::Thread<'_>, value: Value) {
        self.0.store(Arc::new(value));
    }
}
