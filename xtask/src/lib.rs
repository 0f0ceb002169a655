//! What `cargo xtask` does, callable from a program: the tests of `compat`.
//!
//! The liburcu-compatible libraries are not what cargo makes: one core in Rust, linked by the C
//! compiler, and thin libraries out of C around it. Here is how these come about ([`compat`],
//! `archives`) and what the headers are made of ([`headers`]), how they get to where a system looks
//! for them ([`install`], `pkgconfig`, `cmake`), and how they become Debian packages ([`deb`]); how
//! they are tortured ([`torture`]); how crates from the registry run on what stands in for others
//! ([`facades`]); how a kernel boots that the kernel crate is in ([`kernel`]); what tests of all
//! that need of the machine ([`needs`]), and how long their programs may run ([`limited`]).
//! Besides, steps of the code are removed and promises of the documentation broken on purpose
//! ([`mutants`]), and the command has to tell the truth on a machine that does something else
//! besides ([`noise`]). It runs cargo, git, the C compiler, binutils, QEMU and Debian's packaging
//! tools; it touches nothing outside the directories it is given.

#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, clippy::print_stdout)] // see `say`

mod archives;
mod cmake;
pub mod command;
pub mod compat;
pub mod deb;
pub mod facades;
pub mod headers;
pub mod install;
pub mod kernel;
mod library;
#[path = "../../quiescence/tests/common/limited.rs"]
pub mod limited;
pub mod mutants;
pub mod needs;
pub mod noise;
mod pkgconfig;
pub mod say;
mod tools;
pub mod torture;

pub use tools::files_below;
