//! A list of values that readers traverse while an updater changes it: [`List`].
//!
//! - `chain`: the links, how updaters change them, and why readers may follow them at the same
//!   time. Loom runs it.
//! - `public`: [`List`]. `reader`: [`ListRef`] and [`Iter`]. `updater`: [`ListUpdater`].

mod chain;
#[cfg(all(test, loom))]
mod loom_tests;
mod public;
mod reader;
mod updater;

pub use self::{
    public::{IntoIter, List},
    reader::{Iter, ListRef},
    updater::ListUpdater,
};
