//! What runs on the machine: workloads by name, with numbers that can be changed.

use crate::parameter::{self, Parameter, parameter};
use crate::setup::Impossible;

/// Which workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Idle,
    Dbench,
    Dcachebench,
    OpenClose,
    ExitFiles,
    LongReaders,
    ReadMostly,
    UpdateFlood,
    Waiter,
    WaiterIdle,
    Mixed,
}

/// What runs on the machine: the same kind of task on each CPU, or a few kinds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Workload {
    kind: Kind,
    name: &'static str,
    what: &'static str,
    parameters: Vec<Parameter>,
}

const US: (u64, u64) = (1, 100_000_000);
const PERCENT: (u64, u64) = (0, 100);

/// What a program that calls into the kernel is like.
const BUSY: [Parameter; 3] = [
    parameter("kernel_percent", 70, PERCENT, "share of a busy task's time in the kernel"),
    parameter("section_us", 5, US, "mean time, from any moment, until it can be preempted there"),
    parameter("bytes", 256, (1, 1 << 20), "memory that a callback gives back"),
];

const SERVER: [Parameter; 3] = [
    parameter("busy_us", 500, US, "mean length of a burst, at whose end another task runs"),
    parameter("idle_us", 150, (0, 100_000_000), "mean length of the sleeps after half of them"),
    parameter("calls_per_1000_bursts", 500, (0, 1_000), "bursts that end with a callback"),
];

const LOOP: [Parameter; 4] = [
    parameter("operation_ns", 1_500, US, "length of an operation"),
    parameter("chunk_operations", 16, (1, 1_000), "operations that are simulated at a time"),
    parameter("operations_per_call", 1, (0, 1_000_000), "operations to a callback; 0 for none"),
    parameter("cond_resched_ns", 700, (0, 1_000_000_000), "between offers to reschedule; 0: none"),
];

/// SLUB's pages for `struct file`: [`Shape::filp`](crate::slab::Shape::filp) of a large machine.
const SLAB: [Parameter; 9] = [
    parameter("slab_objects_per_page", 64, (0, 4_096), "objects in a slab page; 0: no allocator"),
    parameter("slab_partial_objects", 13, (0, 4_096), "free objects in the pages that a CPU keeps"),
    parameter("slab_refill_objects", 6, (0, 4_096), "free objects that it takes from the node"),
    parameter("slab_node_pages", 5, (0, 4_096), "pages that the node keeps even if empty"),
    parameter("slab_page_ns", 60, (0, 1_000_000), "work under the node's lock for each page"),
    parameter("slab_fresh_page_ns", 500, (0, 1_000_000), "to take a fresh page or give one back"),
    parameter("slab_cpus_per_node", 0, (0, 4_096), "CPUs of a memory node; 0: all of one"),
    parameter("slab_search_of_1024", 1_000, (0, 1_024), "cases in which other nodes are searched"),
    parameter("slab_zone_line_ns", 75, (0, 100_000), "a line under a zone's lock; 0: no such lock"),
];

const WAITER: [Parameter; 3] = [
    parameter("work_us", 20, US, "mean work before each update"),
    parameter("update_every_us", 0, (0, 100_000_000), "mean sleep before it; 0 for none"),
    parameter("expedited", 0, (0, 1), "whether waiters are in a hurry"),
];

const IDLE: [Parameter; 1] =
    [parameter("wake_every_us", 50_000, US, "mean sleep between pieces of work of 20 us")];

impl Workload {
    /// Every workload as it is by default.
    pub fn all() -> Vec<Self> {
        let of = |kind, name, what, groups: &[&[Parameter]]| Self {
            kind,
            name,
            what,
            parameters: groups.concat(),
        };
        vec![
            of(Kind::Idle, "idle", "nothing but a little work now and then", &[&BUSY, &IDLE]),
            of(Kind::Dbench, "dbench", "a file server: bursts of system calls", &[&BUSY, &SERVER]),
            dcachebench(),
            of(
                Kind::OpenClose,
                "open-close",
                "each opens and closes its own file",
                &[&BUSY, &LOOP, &SLAB],
            ),
            exit_files(),
            long_readers(),
            read_mostly(),
            update_flood(),
            waiter(),
            waiter_idle(),
            of(
                Kind::Mixed,
                "mixed",
                "of eight CPUs one waits for updates, one floods, two idle, four serve",
                &[&BUSY, &SERVER, &LOOP, &WAITER, &IDLE],
            ),
        ]
    }

    /// The names of all workloads.
    pub fn names() -> Vec<&'static str> {
        Self::all().iter().map(|workload| workload.name).collect()
    }

    /// The workload of this name, as it is by default.
    ///
    /// # Errors
    /// If there is none: the reason lists those there are.
    pub fn named(name: &str) -> Result<Self, Impossible> {
        parameter::named("workload", Self::all(), name, Self::name)
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What it is, in a line.
    pub const fn what(&self) -> &'static str {
        self.what
    }

    /// The numbers that can be changed.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Changes a number.
    ///
    /// # Errors
    /// If there is none of this name, or the value is out of its range.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), Impossible> {
        parameter::set(self.name, &mut self.parameters, name, value)
    }

    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }
}

/// A workload of these numbers, of which some are other than usual.
fn with(
    (kind, name, what): (Kind, &'static str, &'static str),
    groups: &[&[Parameter]],
    other: &[(&str, u64)],
) -> Workload {
    let mut workload = Workload { kind, name, what, parameters: groups.concat() };
    for (name, value) in other {
        for parameter in &mut workload.parameters {
            if parameter.name == *name {
                parameter.value = *value;
            }
        }
    }
    workload
}

fn dcachebench() -> Workload {
    const ROUNDS: [Parameter; 6] = [
        parameter("round_us", 20_000, US, "work of the longest task in a round"),
        parameter("barriers", 1, (1, 1_000), "times in a round that all wait for the last"),
        parameter("share_percent", 70, PERCENT, "mean work of the others, of the longest one's"),
        parameter("call_every_us", 200, US, "mean time between renames and unlinks"),
        parameter("switch_every_us", 10_000, US, "mean time between context switches"),
        parameter("operation_ns", 2_000, US, "length of a path lookup"),
    ];
    let what = "path lookups in rounds, with renames and unlinks";
    with((Kind::Dcachebench, "dcachebench", what), &[&BUSY, &ROUNDS], &[("kernel_percent", 85)])
}

fn exit_files() -> Workload {
    const EXITS: [Parameter; 4] = [
        parameter("files", 5_000, (1, 1_000_000), "files that are open at exit"),
        parameter("file_ns", 2_000, US, "to close one"),
        parameter("pause_us", 20_000, US, "mean user time before each exit"),
        parameter("exits_on_every_cpus", 4, (1, 4_096), "of so many CPUs one exits"),
    ];
    let what = "exit() closes thousands of files in one kernel loop";
    with(
        (Kind::ExitFiles, "exit-files", what),
        &[&BUSY, &SERVER, &EXITS],
        &[("idle_us", 2_000), ("calls_per_1000_bursts", 20)],
    )
}

fn long_readers() -> Workload {
    const READERS: [Parameter; 3] = [
        parameter("read_us", 10_000, US, "mean length of a long section"),
        parameter("pause_us", 1_000, US, "mean user time before each"),
        parameter("readers_on_every_cpus", 4, (1, 4_096), "of so many CPUs one reads for long"),
    ];
    let what = "sections of milliseconds beside ordinary updates";
    with((Kind::LongReaders, "long-readers", what), &[&BUSY, &SERVER, &READERS], &[])
}

fn read_mostly() -> Workload {
    let what = "lookups without end, an update in ten thousand";
    with(
        (Kind::ReadMostly, "read-mostly", what),
        &[&BUSY, &LOOP],
        &[
            ("operation_ns", 500),
            ("chunk_operations", 200),
            ("operations_per_call", 10_000),
            ("cond_resched_ns", 0),
        ],
    )
}

fn update_flood() -> Workload {
    let what = "every CPU queues a callback each microsecond";
    with(
        (Kind::UpdateFlood, "update-flood", what),
        &[&BUSY, &LOOP],
        &[("operation_ns", 1_000), ("chunk_operations", 50), ("cond_resched_ns", 0)],
    )
}

fn waiter() -> Workload {
    const WAITERS: [Parameter; 1] =
        [parameter("waiters", 1, (1, 4_096), "CPUs that update and wait; the others read")];
    let what = "updates that are waited for, one after the other, beside readers";
    with(
        (Kind::Waiter, "waiter", what),
        &[&BUSY, &LOOP, &WAITER, &WAITERS],
        &[("chunk_operations", 200), ("operations_per_call", 0), ("cond_resched_ns", 0)],
    )
}

fn waiter_idle() -> Workload {
    let what = "now and then an update that is waited for, on an idle machine";
    with(
        (Kind::WaiterIdle, "waiter-idle", what),
        &[&BUSY, &WAITER, &IDLE],
        &[("update_every_us", 10_000)],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_workload_is_found_by_its_name_and_has_each_number_once() {
        let all = Workload::all();
        assert!(all.len() >= 10);
        for workload in all {
            assert_eq!(Workload::named(workload.name()).as_ref(), Ok(&workload));
            let mut names: Vec<_> = workload.parameters().iter().map(|each| each.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), workload.parameters().len(), "{}", workload.name());
            for each in workload.parameters() {
                assert!((each.min..=each.max).contains(&each.value), "{}", each.name);
            }
        }
        let refused = Workload::named("coffee").unwrap_err().to_string();
        assert!(refused.contains("dbench, dcachebench"), "{refused}");
    }
}
