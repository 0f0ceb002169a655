//! This project's library with its global domain: no registration, no handle, no announcements.

use quiescence::Rcu;

use super::Design;
use crate::run::Ready;
use crate::value::Value;
use crate::workload::{Config, PerKey, Whole};

pub(super) const TABLE: Design = Design { make: Ready::<PerKey<Rcu<Value>>>::boxed, ..CONFIG };

pub(super) const CONFIG: Design = Design {
    name: "quiescence",
    family: "rcu",
    idea: "readers note that they read; what is replaced is freed after a grace period",
    reader_cost: "two plain stores to the thread's own word; updates pay for the fences",
    limits: "values that must not outlive their replacement; updates as frequent as reads",
    ours: true,
    make: Ready::<Whole<Rcu<Value>>>::boxed,
};

impl Config for Rcu<Value> {
    type Domain = ();
    type Thread<'a> = ();

    fn new(value: Value) -> Self {
        Self::new(value)
    }

    fn thread(_domain: &()) {}

    #[inline]
    fn read<R>(&self, _domain: &(), _thread: &mut (), look: impl FnOnce(&Value) -> R) -> R {
        let guard = quiescence::read();
        look(self.load(&guard))
    }

    #[inline]
    fn update(&self, _domain: &(), _thread: &mut (), value: Value) {
        self.store(value);
    }

    fn flush(_domain: &()) {
        quiescence::barrier();
    }
}
