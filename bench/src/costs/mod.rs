//! `rcu costs`: what synchronisation costs on this machine, beside the table of 2005.
//!
//! Paul McKenney's talk at linux.conf.au 2005 put instructions, caches, atomics and locks into one
//! table, and the choice of a tool follows from it. This is that table again, measured here, with
//! what has become possible since: readers that execute no atomic instruction, and `membarrier`.

mod kernel;
mod one_cpu;
mod possible;
mod published;
mod two_cpus;

use std::io;
use std::time::Duration;

use crate::slices::{self, Missing, Row, RunVerdict, Wanted};
use crate::statistics::{Spread, spread};
use crate::{Host, units};
use kernel::WakeUp;
pub use published::Table;
use two_cpus::Change;

/// Time for each figure, when no thread is in a hurry and when somebody is.
const BUDGET: Duration = Duration::from_millis(30);
const BUDGET_QUICK: Duration = Duration::from_millis(15);

/// What the measurements need to know of the machine.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// CPUs that this process may use, by number.
    pub cpus: Vec<usize>,
    /// The sizes of the data caches of the first and of the second level, and of the last cache
    /// before memory, where they are known.
    pub cache_bytes: [Option<u64>; 3],
    /// Memory that the kernel says is available.
    pub memory_available_bytes: Option<u64>,
}

/// What is timed for a figure, or why it cannot be.
type Made = Result<Row<'static>, Missing>;

/// How a figure is measured.
#[derive(Clone, Copy, Debug)]
enum Method {
    Alone(fn() -> Row<'static>),
    Load(Level),
    /// By two CPUs at once.
    Pair(fn() -> Made),
    Fence,
    Switch,
    WakeUp(WakeUp),
}

/// Where a load finds its line.
#[derive(Clone, Copy, Debug)]
enum Level {
    First,
    Second,
    Memory,
}

/// A figure: its name in JSON and in the published table, what it is called, how it is measured.
type Figure = (&'static str, &'static str, Method);

use Method::{Alone, Pair};

const FIGURES: &[Figure] = &[
    ("instruction", "instruction", Alone(one_cpu::instruction)),
    ("clock_cycle", "clock cycle", Alone(one_cpu::clock_cycle)),
    ("l1_hit", "L1 hit", Method::Load(Level::First)),
    ("l2_hit", "L2 hit", Method::Load(Level::Second)),
    ("main_memory", "main memory", Method::Load(Level::Memory)),
    ("atomic_increment", "atomic increment", Alone(|| one_cpu::atomic_increment(1))),
    ("cmpxchg_atomic_increment", "compare-and-swap", Alone(one_cpu::compare_and_swap)),
    (
        "atomic_increment_cache_transfer",
        "atomic increment, line on another CPU",
        Pair(|| Ok(two_cpus::transfer(Change::Increment))),
    ),
    (
        "cmpxchg_blind_cache_transfer",
        "blind compare-and-swap, line on another CPU",
        Pair(|| Ok(two_cpus::transfer(Change::BlindSwap))),
    ),
    (
        "cmpxchg_cache_transfer_and_invalidate",
        "load and compare-and-swap, line on another CPU",
        Pair(|| Ok(two_cpus::transfer(Change::LoadAndSwap))),
    ),
    ("cpu_local_lock", "lock, uncontended", Alone(|| one_cpu::lock(1))),
    ("read_lock", "read lock, uncontended", Alone(|| one_cpu::read_lock(1))),
    ("rcu_read", "RCU read", Alone(|| one_cpu::rcu_read(1))),
    ("rcu_read_reader", "RCU read, explicit reader", Alone(one_cpu::rcu_read_with_reader)),
    (
        "shared_increment",
        "atomic increment, two CPUs at once",
        Pair(|| Ok(one_cpu::atomic_increment(2))),
    ),
    ("shared_lock", "lock, two CPUs at once", Pair(|| Ok(one_cpu::lock(2)))),
    ("shared_read_lock", "read lock, two CPUs at once", Pair(|| Ok(one_cpu::read_lock(2)))),
    ("shared_rcu_read", "RCU read, two CPUs at once", Pair(|| Ok(one_cpu::rcu_read(2)))),
    ("membarrier", "membarrier, alone", Method::Fence),
    (
        "membarrier_beside_reader",
        "membarrier, beside a reader",
        Pair(|| one_cpu::heavy_fence().map(one_cpu::beside_a_reader)),
    ),
    ("grace_period", "grace period, alone", Alone(one_cpu::grace_period)),
    (
        "grace_period_beside_reader",
        "grace period, beside a reader",
        Pair(|| Ok(one_cpu::beside_a_reader(one_cpu::grace_period()))),
    ),
    ("interrupt", "interrupt by another CPU's membarrier", Pair(kernel::interrupt)),
    ("system_call", "system call", Alone(kernel::system_call)),
    ("pause", "pause instruction", Alone(one_cpu::pause)),
    ("allocate", "allocate and free 256 bytes", Alone(one_cpu::allocate)),
    ("switch", "switch to another thread of the CPU", Method::Switch),
    ("wake_up", "wake a thread on another CPU", Method::WakeUp(WakeUp::Call)),
    ("wake_up_latency", "until that thread runs", Method::WakeUp(WakeUp::Latency)),
    ("sleep_overrun", "sleep of 1 ms, beyond it", Alone(kernel::sleep_overrun)),
    ("thread_start", "thread started and joined", Alone(kernel::thread_start)),
];

/// The names of all figures.
#[cfg(test)]
fn ids() -> impl Iterator<Item = &'static str> {
    FIGURES.iter().map(|&(id, ..)| id)
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Its name in JSON, as in the published table where that has it.
    pub id: &'static str,
    /// Its name for people.
    pub name: String,
    /// How many threads work in it; 0 where it cannot be measured.
    pub threads: usize,
    /// Nanoseconds here: the median of the slices that count, and their quartiles.
    pub ns: Option<Spread>,
    /// Why there is no figure.
    pub missing: Option<Missing>,
    /// Nanoseconds in the table of 2005.
    pub published_ns: Option<f64>,
}

/// Figures that are the entry and the exit of a critical section, by sections that do not wait for
/// each other: nothing but these two is between their work and that of a program without them.
const SECTIONS: [&str; 6] = [
    "cpu_local_lock",
    "read_lock",
    "rcu_read",
    "rcu_read_reader",
    "shared_read_lock",
    "shared_rcu_read",
];

impl Cost {
    /// The efficiency of a critical section of `section_ns`: `Tc / (Tc + Ta + Tr)`, where `Tc` is
    /// the section's own time, `Ta` that of its entry and `Tr` that of its exit (McKenney 2005).
    /// Nothing for what is no section, or was not measured.
    pub fn efficiency(&self, section_ns: f64) -> Option<f64> {
        let overhead = self.ns.filter(|_| SECTIONS.contains(&self.id))?.median;
        (section_ns > 0.0).then(|| section_ns / (section_ns + overhead))
    }
}

/// The table.
#[derive(Clone, Debug)]
pub struct Costs {
    /// Where the other column comes from.
    pub published: &'static Table,
    /// The figures, in the order of the table.
    pub rows: Vec<Cost>,
    /// How good the run was.
    pub run: RunVerdict,
    /// The section whose efficiency is of interest, in nanoseconds.
    pub section_ns: f64,
}

/// The section of [`Costs::section_ns`] where nothing else is said: a hundred instructions or one
/// miss of all caches, as short as sections are where the choice of a lock matters.
pub const SECTION_NS: f64 = 100.0;

/// The table that others have published, which [`measure`] puts beside its figures.
pub fn published() -> &'static Table {
    &published::LCA_2005
}

/// About how long [`measure`] takes.
pub fn duration(quick: bool) -> Duration {
    wanted(quick, false).duration(FIGURES.len())
}

fn wanted(quick: bool, pin: bool) -> Wanted {
    Wanted { pin, ..Wanted::in_time(if quick { BUDGET_QUICK } else { BUDGET }, 1) }
}

/// Measures every figure, and throws away what cannot be. After a stop the rest is missing, and
/// says so.
///
/// # Errors
/// If the host has no reader any more.
pub fn measure(
    machine: &Machine,
    quick: bool,
    pin: bool,
    host: &mut dyn Host,
) -> io::Result<Costs> {
    let (mut costs, mut rows, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for (place, &(id, name, method)) in FIGURES.iter().enumerate() {
        let (detail, made) = machine.make(method);
        let (threads, missing) = match &made {
            Ok(row) => (row.threads + row.sleeps.unwrap_or(0) as usize, None),
            Err(missing) => (0, Some(missing.clone())),
        };
        let (name, published_ns) = (format!("{name}{detail}"), published().ns(id));
        costs.push(Cost { id, name, threads, ns: None, missing, published_ns });
        if let Ok(row) = made {
            rows.push(row);
            places.push(place);
        }
    }
    let (measured, mut run) = slices::run(&rows, &wanted(quick, pin), host)?;
    for (place, measured) in places.into_iter().zip(measured) {
        let cost = &mut costs[place];
        let changed = possible::change_midway(&measured.values, cost.threads);
        run.without_figure += u32::from(changed.is_some());
        cost.missing = measured.missing.or(changed);
        cost.ns = cost.missing.is_none().then(|| spread(&measured.values));
    }
    run.without_figure += possible::throw_away(&mut costs);
    Ok(Costs { published: published(), rows: costs, run, section_ns: SECTION_NS })
}

impl Machine {
    /// What is timed, and what the machine decided of it, for the name.
    fn make(&self, method: Method) -> (String, Made) {
        let pair = self.cpus.get(..2).map(|cpus| (cpus[0], cpus[1])).ok_or(Missing::NeedsCpus(2));
        let mut detail = String::new();
        let made = match method {
            Alone(make) => Ok(make()),
            Method::Load(level) => {
                let bytes = self.chase_bytes(level);
                detail = format!(" ({})", units::bytes(bytes));
                Ok(one_cpu::dependent_load(bytes))
            }
            Pair(make) => pair.and_then(|_| make()),
            Method::Fence => one_cpu::heavy_fence(),
            Method::Switch => Ok(kernel::switch(self.cpus.first().copied().unwrap_or(0))),
            Method::WakeUp(what) => pair.map(|pair| kernel::wake_up(what, pair)),
        };
        (detail, made)
    }

    /// How much to walk over so that a load finds its line in this level and in none before it.
    /// Unknown caches are taken to be those of a small server CPU.
    fn chase_bytes(&self, level: Level) -> u64 {
        let [first, second, last] = self.cache_bytes;
        let first = first.unwrap_or(32 << 10);
        let second = second.unwrap_or(1 << 20);
        let last = last.unwrap_or(32 << 20);
        let wanted = match level {
            Level::First => first / 2,
            Level::Second => (second / 4).max(2 * first),
            Level::Memory => {
                let most = self.memory_available_bytes.map_or(256 << 20, |free| free / 4);
                (8 * last).clamp(64 << 20, 1 << 30).min(most)
            }
        };
        // The largest power of two that is not above it.
        1 << wanted.max(4096).ilog2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_is_a_figure_and_efficiency_is_the_share_of_the_work() {
        for section in SECTIONS {
            assert!(ids().any(|id| id == section), "{section} is no figure");
        }
        let cost = |id, ns: Option<f64>| Cost {
            id,
            name: String::new(),
            threads: 1,
            ns: ns.map(|ns| Spread { median: ns, low: ns, high: ns }),
            missing: None,
            published_ns: None,
        };
        assert_eq!(cost("read_lock", Some(25.0)).efficiency(100.0), Some(0.8));
        assert_eq!(cost("read_lock", Some(300.0)).efficiency(100.0), Some(0.25));
        assert_eq!(cost("read_lock", None).efficiency(100.0), None);
        assert_eq!(cost("read_lock", Some(0.0)).efficiency(0.0), None);
        assert_eq!(cost("l1_hit", Some(1.0)).efficiency(100.0), None);
    }
}
