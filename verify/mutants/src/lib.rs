//! The steps of the library that can be removed on purpose, and what must notice.
//!
//! `mutants.toml` is the only list of them: a name, what is left out, what must notice, and how the
//! code is edited so that the step can be missing. Places in the code have marks (`//~ no-scan`).
//! The library as it is shipped has no branch for any of this: `cargo xtask mutants` writes a copy
//! of the tree in which each marked place asks [`is_removed`], and builds that with
//! `--cfg quiescence_mutants`. There a process that is started with the name of a step in the
//! environment variable `QUIESCENCE_MUTANT` runs without it. Changes that no choice at run time can
//! make, of types and items, are compiled each by itself.
//!
//! The copy has two more things for tests: [`Point`]s, where a hook can delay the calling thread;
//! and memory of retired objects that is given back late ([`free`]), so that a reader that a fault
//! lets see one finds what the object's drop left, and can count the fault.

mod points;
mod quarantine;
mod switch;
mod table;

pub use points::{Point, install, point};
pub use quarantine::{free, with_quarantine_held};
pub use switch::{HAS_HOOKS, SWITCH, id, is_removed, remove};
pub use table::{Catcher, Edit, Hook, Step, Table, Test, Unbroken, all, named, parts, table};
