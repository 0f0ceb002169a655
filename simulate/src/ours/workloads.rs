//! User-space workloads by name (`workloads.toml`).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::options::{CPUS_MAX, Group, Role};
use crate::events::Time;
use crate::setup::MILLISECOND;

/// Threads and a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub what: &'static str,
    /// CPUs of its machine.
    pub cpus: usize,
    /// For how long it runs, in nanoseconds.
    pub duration: Time,
    /// The threads.
    pub threads: Vec<Group>,
}

#[derive(Deserialize)]
struct Table {
    role: BTreeMap<String, Role>,
    workload: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    what: String,
    cpus: usize,
    duration_ms: Time,
    threads: Vec<(u32, String)>,
    here: Option<Here>,
}

/// What is other on a machine on which it can be run for real.
#[derive(Deserialize)]
struct Here {
    duration_ms: Time,
    what: Option<String>,
    /// The threads of the first role: so many for each CPU but one, and so many more.
    first: Option<(u32, u32)>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    toml::from_str(include_str!("workloads.toml")).unwrap_or_else(|error| panic!("{error}"))
});

impl Row {
    fn workload(&'static self) -> Workload {
        let group = |(count, role): &(u32, String)| Group { count: *count, role: TABLE.role[role] };
        Workload {
            name: &self.name,
            what: &self.what,
            cpus: self.cpus,
            duration: self.duration_ms * MILLISECOND,
            threads: self.threads.iter().map(group).collect(),
        }
    }

    fn here(&'static self, cpus: usize) -> Option<Workload> {
        let Here { duration_ms, what, first } = self.here.as_ref()?;
        let usual = self.workload();
        let what = what.as_deref().unwrap_or(usual.what);
        let mut workload = Workload { what, cpus, duration: duration_ms * MILLISECOND, ..usual };
        if let Some((each, more)) = first {
            let others = u32::try_from(cpus - 1).unwrap_or(u32::MAX).max(1);
            workload.threads[0].count = each * others + more;
        }
        Some(workload)
    }
}

/// All of them.
pub fn all() -> Vec<Workload> {
    TABLE.workload.iter().map(Row::workload).collect()
}

/// Six of them as they are on a machine of so many CPUs, on which they can be run for real: threads
/// that never sleep are as many as the CPUs, but where there are to be more.
pub fn of_machine(cpus: usize) -> Vec<Workload> {
    let cpus = cpus.clamp(1, CPUS_MAX);
    TABLE.workload.iter().filter_map(|row| row.here(cpus)).collect()
}
