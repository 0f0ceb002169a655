//! A list of values that readers traverse while an updater changes it: [`List`].
//!
//! - `chain`: the links, what updaters do to them, and why a reader may follow them meanwhile. Loom
//!   runs it.
//! - `public`: [`List`]. `reader`: [`ListRef`] and [`Iter`]. `updater`: [`ListUpdater`].

mod chain;
#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(not(loom))]
mod public;
#[cfg(not(loom))]
mod reader;
#[cfg(not(loom))]
mod updater;

#[cfg(not(loom))]
pub use self::{
    public::{IntoIter, List},
    reader::{Iter, ListRef},
    updater::ListUpdater,
};
