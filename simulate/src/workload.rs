//! Workloads by name, with their parameters (`workloads.toml`).

use std::sync::LazyLock;

use serde::Deserialize;

use crate::parameter::{self, Choice};

/// Which workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Nothing but a little work now and then.
    Idle,
    /// A file server.
    Dbench,
    /// Path lookups in rounds.
    Dcachebench,
    /// Each opens and closes its own file.
    OpenClose,
    /// `exit()` with thousands of open files.
    ExitFiles,
    /// Sections of milliseconds beside a server.
    LongReaders,
    /// Lookups without end.
    ReadMostly,
    /// Callbacks without end.
    UpdateFlood,
    /// Updates that are waited for, beside readers.
    Waiter,
    /// The same on an idle machine.
    WaiterIdle,
    /// A few kinds of task.
    Mixed,
}

/// What runs on the machine: the same kind of task on each CPU, or a few kinds.
pub type Workload = Choice<Kind>;

impl parameter::Kind for Kind {
    const CALLED: &'static str = "workload";

    fn all() -> &'static [Workload] {
        static ALL: LazyLock<Vec<Workload>> =
            LazyLock::new(|| parameter::read(include_str!("workloads.toml")));
        &ALL
    }
}
