//! Code to paste: for each design a program of some ten lines, for each shape of state.
//!
//! The programs are in `programs.md`, to which `build.rs` adds some. They are compiled and run as
//! tests of the documentation, so that what `rcu advise` prints is known to work.

use super::{KeyIndex, Workload};

/// The programs, under the names of their designs and of what is shared.
const PROGRAMS: &str = include_str!(concat!(env!("OUT_DIR"), "/programs.md"));

/// Rivals that are left out have programs too, which find no crate then.
#[cfg(all(doctest, feature = "all-rivals"))]
#[doc = include_str!(concat!(env!("OUT_DIR"), "/programs.md"))]
struct Compiled;

/// The program of the design of this name. A design without an index of its own has one place for
/// each key or, if keys come and go, for each bucket: its program is that of a single value.
pub(super) fn program(
    workload: Workload,
    name: &str,
    index: Option<KeyIndex>,
) -> Option<&'static str> {
    let kind = match workload {
        _ if index == Some(KeyIndex::Own) => "table",
        Workload::Table | Workload::Churn | Workload::Config => "config",
        Workload::Counter | Workload::ExactCounter => "counter",
        Workload::LimitCounter => "limit",
        Workload::Queue => "queue",
        Workload::Ids => "ids",
    };
    let (_, rest) = PROGRAMS.split_once(&format!("\n## {name}: {kind}\n\n```rust\n"))?;
    rest.split_once("```").map(|(program, _)| program)
}
