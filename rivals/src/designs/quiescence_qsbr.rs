//! This project's library with readers that announce quiescent states.

use quiescence::{Qsbr, Rcu};

use super::Design;
use crate::run::Ready;
use crate::value::Value;
use crate::workload::{Config, PerKey, Whole};

pub(super) const TABLE: Design = Design { make: Ready::<PerKey<Cell>>::boxed, ..CONFIG };

pub(super) const CONFIG: Design = Design {
    name: "quiescence-qsbr",
    family: "rcu",
    idea: "readers announce between operations that they hold nothing; sections cost nothing",
    reader_cost: "one load; an announcement every few operations is one load and mostly no store",
    limits: "every reading thread must announce quiescent states, and go offline before it blocks",
    ours: true,
    make: Ready::<Whole<Cell>>::boxed,
};

#[derive(Debug)]
struct Cell(Rcu<Value>);

impl Config for Cell {
    type Domain = ();
    type Thread<'a> = Qsbr;

    fn new(value: Value) -> Self {
        Self(Rcu::new(value))
    }

    fn thread(_domain: &()) -> Qsbr {
        Qsbr::register()
    }

    #[inline]
    fn read<R>(&self, _domain: &(), thread: &mut Qsbr, look: impl FnOnce(&Value) -> R) -> R {
        let guard = thread.read();
        look(self.0.load(&guard))
    }

    #[inline]
    fn update(&self, _domain: &(), _thread: &mut Qsbr, value: Value) {
        self.0.store(value);
    }

    fn pause(thread: &mut Qsbr) {
        thread.quiescent_state();
    }

    fn flush(_domain: &()) {
        quiescence::barrier();
    }
}
