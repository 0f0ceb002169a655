//! `rcu costs`: what synchronisation costs on this machine, beside the table of 2005.
//!
//! Paul McKenney's talk at linux.conf.au 2005 put instructions, caches, atomics and locks into one
//! table, and the choice of a tool follows from it. This is that table again, measured here, with
//! what has become possible since: readers that execute no atomic instruction, and `membarrier`.

mod kernel;
mod one_cpu;
mod published;
mod timing;
mod two_cpus;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use crate::statistics::Spread;
use crate::{Host, units};
use kernel::WakeUp;
pub use published::Table;
use two_cpus::Change;

/// Time for each figure, when no thread is in a hurry and when somebody is.
const BUDGET: Duration = Duration::from_millis(80);
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

/// How a figure is measured.
#[derive(Clone, Copy, Debug)]
enum Method {
    Alone(fn(Duration) -> Spread),
    Load(Level),
    Transfer(Change),
    Shared(Shared),
    Fence,
    FenceBesideReader,
    GracePeriodBesideReader,
    Interrupt,
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

/// What two CPUs do at once to the same thing.
#[derive(Clone, Copy, Debug)]
enum Shared {
    Increment,
    Lock,
    ReadLock,
    RcuRead,
}

/// A figure: its name in JSON and in the published table, what it is called, how it is measured.
type Figure = (&'static str, &'static str, Method);

const FIGURES: &[Figure] = &[
    ("instruction", "instruction", Method::Alone(one_cpu::instruction)),
    ("clock_cycle", "clock cycle", Method::Alone(one_cpu::clock_cycle)),
    ("l1_hit", "L1 hit", Method::Load(Level::First)),
    ("l2_hit", "L2 hit", Method::Load(Level::Second)),
    ("main_memory", "main memory", Method::Load(Level::Memory)),
    ("atomic_increment", "atomic increment", Method::Alone(one_cpu::atomic_increment)),
    ("cmpxchg_atomic_increment", "compare-and-swap", Method::Alone(one_cpu::compare_and_swap)),
    (
        "atomic_increment_cache_transfer",
        "atomic increment, line on another CPU",
        Method::Transfer(Change::Increment),
    ),
    (
        "cmpxchg_blind_cache_transfer",
        "blind compare-and-swap, line on another CPU",
        Method::Transfer(Change::BlindSwap),
    ),
    (
        "cmpxchg_cache_transfer_and_invalidate",
        "load and compare-and-swap, line on another CPU",
        Method::Transfer(Change::LoadAndSwap),
    ),
    ("cpu_local_lock", "lock, uncontended", Method::Alone(one_cpu::uncontended_lock)),
    ("read_lock", "read lock, uncontended", Method::Alone(one_cpu::uncontended_read_lock)),
    ("rcu_read", "RCU read", Method::Alone(one_cpu::rcu_read)),
    ("rcu_read_reader", "RCU read, explicit reader", Method::Alone(one_cpu::rcu_read_with_reader)),
    ("shared_increment", "atomic increment, two CPUs at once", Method::Shared(Shared::Increment)),
    ("shared_lock", "lock, two CPUs at once", Method::Shared(Shared::Lock)),
    ("shared_read_lock", "read lock, two CPUs at once", Method::Shared(Shared::ReadLock)),
    ("shared_rcu_read", "RCU read, two CPUs at once", Method::Shared(Shared::RcuRead)),
    ("membarrier", "membarrier, alone", Method::Fence),
    ("membarrier_beside_reader", "membarrier, beside a reader", Method::FenceBesideReader),
    ("grace_period", "grace period, alone", Method::Alone(one_cpu::grace_period)),
    (
        "grace_period_beside_reader",
        "grace period, beside a reader",
        Method::GracePeriodBesideReader,
    ),
    ("interrupt", "interrupt by another CPU's membarrier", Method::Interrupt),
    ("system_call", "system call", Method::Alone(kernel::system_call)),
    ("pause", "pause instruction", Method::Alone(one_cpu::pause)),
    ("allocate", "allocate and free 256 bytes", Method::Alone(one_cpu::allocate)),
    ("switch", "switch to another thread of the CPU", Method::Switch),
    ("wake_up", "wake a thread on another CPU", Method::WakeUp(WakeUp::Call)),
    ("wake_up_latency", "until that thread runs", Method::WakeUp(WakeUp::Latency)),
    ("sleep_overrun", "sleep of 1 ms, beyond it", Method::Alone(kernel::sleep_overrun)),
    ("thread_start", "thread started and joined", Method::Alone(kernel::thread_start)),
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
    /// Nanoseconds here; nothing when it could not be measured.
    pub ns: Option<Spread>,
    /// Why it could not be measured.
    pub missing: Option<&'static str>,
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
    budget(quick) * FIGURES.len() as u32
}

fn budget(quick: bool) -> Duration {
    if quick { BUDGET_QUICK } else { BUDGET }
}

/// Measures every figure. After a stop the rest is missing, and says so.
///
/// # Errors
/// If the host has no reader any more.
pub fn measure(machine: &Machine, quick: bool, host: &mut dyn Host) -> io::Result<Costs> {
    let published = published();
    let mut rows = Vec::new();
    for &(id, name, method) in FIGURES {
        host.announce(&name);
        host.check()?;
        let place = Place { machine, budget: budget(quick), stop: host.stop() };
        let (name, measured) = match place.measure(method) {
            _ if place.is_stopped() => (name.to_owned(), Err("interrupted")),
            (detail, measured) => (format!("{name}{detail}"), measured),
        };
        rows.push(Cost {
            id,
            name,
            missing: measured.err(),
            ns: measured.ok(),
            published_ns: published.ns(id),
        });
        host.advance(budget(quick));
    }
    Ok(Costs { published, rows, section_ns: SECTION_NS })
}

/// Where and how long a figure is measured.
struct Place<'a> {
    machine: &'a Machine,
    budget: Duration,
    stop: &'a AtomicBool,
}

impl Place<'_> {
    fn is_stopped(&self) -> bool {
        // Relaxed: the flag carries no data; it only has to be seen soon.
        self.stop.load(Ordering::Relaxed)
    }

    /// Measures, and adds to the name what the machine decided.
    fn measure(&self, method: Method) -> (String, Result<Spread, &'static str>) {
        const TWO_CPUS: &str = "needs two CPUs";
        const NO_MEMBARRIER: &str = "the kernel has no membarrier";
        let pair = self.machine.cpus.get(..2).map(|cpus| (cpus[0], cpus[1])).ok_or(TWO_CPUS);
        let budget = self.budget;
        let mut detail = String::new();
        let measured = match method {
            Method::Alone(figure) => Ok(self.alone(|| figure(budget))),
            Method::Load(level) => {
                let bytes = self.chase_bytes(level);
                detail = format!(" ({})", units::bytes(bytes));
                Ok(self.alone(|| one_cpu::dependent_load(budget, bytes)))
            }
            Method::Transfer(change) => pair.and_then(|pair| {
                two_cpus::transfer(change, pair, budget, self.stop).ok_or("interrupted")
            }),
            Method::Shared(what) => {
                pair.and_then(|pair| self.shared(what, pair).ok_or("interrupted"))
            }
            Method::Fence => self.alone(|| one_cpu::heavy_fence(budget)).ok_or(NO_MEMBARRIER),
            Method::FenceBesideReader => pair.and_then(|pair| {
                two_cpus::beside_a_reader(pair, || one_cpu::heavy_fence(budget))
                    .flatten()
                    .ok_or(NO_MEMBARRIER)
            }),
            Method::GracePeriodBesideReader => pair.and_then(|pair| {
                two_cpus::beside_a_reader(pair, || one_cpu::grace_period(budget))
                    .ok_or("interrupted")
            }),
            Method::Interrupt => {
                pair.and_then(|pair| kernel::interrupt(pair, budget).ok_or(NO_MEMBARRIER))
            }
            Method::Switch => {
                let cpu = self.machine.cpus.first().copied();
                Ok(self.alone(|| kernel::switch(cpu, budget)))
            }
            Method::WakeUp(what) => pair.and_then(|pair| {
                kernel::wake_up(what, pair, budget, self.stop).ok_or("interrupted")
            }),
        };
        (detail, measured)
    }

    /// Runs a measurement on a thread that stays on the first CPU; the caller's affinity stays.
    fn alone<R: Send>(&self, measure: impl FnOnce() -> R + Send) -> R {
        let cpu = self.machine.cpus.first().copied();
        thread::scope(|scope| {
            let measured = scope.spawn(move || {
                cpu.inspect(|&cpu| timing::pin(cpu));
                measure()
            });
            match measured.join() {
                Ok(measured) => measured,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    fn shared(&self, what: Shared, pair: (usize, usize)) -> Option<Spread> {
        let shared = |operation: &(dyn Fn() + Sync)| {
            two_cpus::shared(pair, self.budget, self.stop, operation)
        };
        match what {
            Shared::Increment => {
                let word = AtomicU64::new(0);
                // Relaxed: the cost is that of the line, not of an order.
                shared(&|| _ = word.fetch_add(1, Ordering::Relaxed))
            }
            Shared::Lock => {
                let lock = Mutex::new(0_u64);
                shared(&|| *lock.lock().unwrap_or_else(PoisonError::into_inner) += 1)
            }
            Shared::ReadLock => {
                let lock = RwLock::new(0_u64);
                shared(&|| {
                    std::hint::black_box(*lock.read().unwrap_or_else(PoisonError::into_inner));
                })
            }
            Shared::RcuRead => {
                let value = quiescence::Rcu::new(0_u64);
                shared(&|| {
                    std::hint::black_box(*value.load(&quiescence::read()));
                })
            }
        }
    }

    /// How much to walk over so that a load finds its line in this level and in none before it.
    /// Unknown caches are taken to be those of a small server CPU.
    fn chase_bytes(&self, level: Level) -> u64 {
        let [first, second, last] = self.machine.cache_bytes;
        let first = first.unwrap_or(32 << 10);
        let second = second.unwrap_or(1 << 20);
        let last = last.unwrap_or(32 << 20);
        let wanted = match level {
            Level::First => first / 2,
            Level::Second => second / 2,
            Level::Memory => {
                let most = self.machine.memory_available_bytes.map_or(256 << 20, |free| free / 4);
                (2 * last).clamp(64 << 20, 1 << 30).min(most)
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
