//! The guest-boot workload: a table of memory slots that readers look up, and one who replaces it
//! thousands of times and waits for an expedited grace period each time.
//!
//! In 2022 a grace period that slept made a virtual machine's boot twenty times as long, and one that
//! spun kept a processor from the readers it waited for ("Commit 282d8998e997 cause qemu boot slow",
//! linux-kernel, June 2022). A reader stays for about a microsecond, and is away for about as long.
//!
//! Tables that were replaced are freed after the boot: what is measured is the waiting.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use grace::two_bank::Adaptive;
use quiescence::{Domain, Private, Rcu, Srcu};

use super::grace_rivals::chain;
use super::object::Turn;
use super::together::{Gate, Shift, together};

/// Slots of a table.
const SLOTS: u64 = 64;

/// Pages of a slot.
const PAGES: u64 = 512;

/// Look-ups in a section.
const LOOK_UPS: u64 = 32;

/// Steps of a reader between two sections.
const AWAY_STEPS: u32 = 256;

/// One way to protect the table.
#[derive(Debug)]
pub struct BootRival {
    /// The name by which it is chosen.
    pub name: &'static str,
    /// Whether it is this project's own.
    pub ours: bool,
    make: fn() -> Box<dyn Site>,
}

/// What [`measure`] saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Boot {
    /// Nanoseconds for an update with its grace period.
    pub ns: f64,
    /// Nanoseconds of processor time for an update, of all threads but the readers.
    pub cpu_ns: f64,
    /// Look-ups of all readers by the second, meanwhile.
    pub look_ups_per_second: f64,
    /// The least share of the time that a reader was not kept waiting for a CPU by neighbours; 1 where
    /// there are too few CPUs for all, and they keep each other waiting.
    pub readers_share: f64,
}

/// Everything that is compiled in, ours first.
pub fn rivals() -> &'static [BootRival] {
    &RIVALS
}

/// Looks again and again, and never sleeps.
static BUSY: Adaptive = Adaptive { first_nap_us: 0, runs_max: u32::MAX, ..Adaptive::at(100) };

static RIVALS: [BootRival; 4] = [
    BootRival { name: "quiescence", ours: true, make: || Box::new(Sleepable::new(Srcu::new())) },
    BootRival {
        name: "quiescence-busy",
        ours: true,
        make: || Box::new(Sleepable::new(Srcu::with_delay(&BUSY))),
    },
    BootRival {
        name: "quiescence-thread",
        ours: true,
        make: || {
            let domain = Domain::new();
            Box::new(InDomain(Rcu::new_in(Table::new(0), domain.clone()), domain))
        },
    },
    BootRival {
        name: "parking_lot-rwlock",
        ours: false,
        make: || Box::new(Locked(parking_lot::RwLock::new(Table::new(0)))),
    },
];

/// Boots once: so many updates beside so many readers.
pub fn measure(rival: &BootRival, readers: usize, updates: u64) -> Boot {
    let _turn = Turn::wait();
    let site = &*(rival.make)();
    let look_ups = |stop: &AtomicI32| {
        let (mut look_ups, mut x) = (0_u64, 1);
        // Once at least: a short boot may be over before this thread has begun.
        loop {
            site.look_up(look_ups);
            look_ups += LOOK_UPS;
            x = chain(x, AWAY_STEPS);
            // Relaxed: the flag ends the loop and publishes nothing.
            if stop.load(Ordering::Relaxed) != 0 {
                return look_ups;
            }
        }
    };
    let reader = |gate: &Gate<'_>| gate.work(look_ups);
    let seen = together(readers, reader, |gate| gate.work(|_| site.boot(updates)));
    let cpus = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let look_ups = |reader: &Shift<u64>| reader.result as f64 / reader.elapsed.as_secs_f64();
    Boot {
        ns: per_update(seen.front.elapsed, updates),
        cpu_ns: per_update(seen.front.cpu + seen.others_cpu, updates),
        look_ups_per_second: seen.backs.iter().map(look_ups).sum(),
        readers_share: if readers < cpus { seen.backs_share() } else { 1.0 },
    }
}

fn per_update(time: Duration, updates: u64) -> f64 {
    time.as_nanos() as f64 / updates.max(1) as f64
}

/// A range of a guest's pages, and where they are.
#[derive(Debug)]
struct Slot {
    first_page: u64,
    /// Stands for the address: the same in all slots of a table, and another in each table.
    version: u64,
}

/// The slots in the order of their pages.
#[derive(Debug)]
struct Table(Vec<Slot>);

impl quiescence::Weigh for Table {
    fn owned(&self) -> usize {
        self.0.capacity() * size_of::<Slot>()
    }
}

impl Table {
    fn new(version: u64) -> Self {
        Self((0..SLOTS).map(|slot| Slot { first_page: slot * PAGES, version }).collect())
    }

    /// Looks up some pages, other ones for each number.
    ///
    /// # Panics
    /// If two of them are in different tables.
    fn look_up(&self, number: u64) {
        let versions = (number..number + LOOK_UPS).map(|number| {
            let page = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (SLOTS * PAGES);
            let slot = self.0.partition_point(|slot| slot.first_page <= page) - 1;
            assert_eq!(self.0[slot].first_page, page / PAGES * PAGES, "page {page}");
            self.0[slot].version
        });
        let (least, most) = versions.fold((u64::MAX, 0), |(a, b), v| (a.min(v), b.max(v)));
        assert_eq!(least, most, "all slots are of one table");
    }
}

/// A table that is protected.
trait Site: Sync {
    /// One section.
    fn look_up(&self, number: u64);
    /// Replaces the table so many times, and waits for those who read the old one.
    fn boot(&self, updates: u64);
}

/// In a sleepable domain.
struct Sleepable {
    table: Rcu<Table, quiescence::Sleepable>,
    domain: Srcu,
}

impl Sleepable {
    fn new(domain: Srcu) -> Self {
        Self { table: Rcu::new_in(Table::new(0), domain.domain()), domain }
    }
}

impl Site for Sleepable {
    fn look_up(&self, number: u64) {
        self.table.load(&self.domain.read()).look_up(number);
    }

    fn boot(&self, updates: u64) {
        boot(updates, |table| self.table.swap(table), || self.domain.synchronize_expedited());
    }
}

/// In a domain of threads.
struct InDomain(Rcu<Table, Private>, Domain);

impl Site for InDomain {
    fn look_up(&self, number: u64) {
        self.0.load(&self.1.read()).look_up(number);
    }

    fn boot(&self, updates: u64) {
        boot(updates, |table| self.0.swap(table), || self.1.synchronize_expedited());
    }
}

/// Replaces the table so many times by `swap`, and lets `wait` wait for the readers of the old one.
fn boot<O>(updates: u64, swap: impl Fn(Table) -> O, wait: impl Fn()) {
    let mut old = Vec::with_capacity(updates as usize);
    for version in 1..=updates {
        old.push(swap(Table::new(version)));
        wait();
    }
}

/// Behind a lock: who replaces waits for all readers, and all readers wait for it.
struct Locked(parking_lot::RwLock<Table>);

impl Site for Locked {
    fn look_up(&self, number: u64) {
        self.0.read().look_up(number);
    }

    fn boot(&self, updates: u64) {
        boot(updates, |table| std::mem::replace(&mut *self.0.write(), table), || {});
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::cpu_time;

    #[test]
    fn every_rival_boots_beside_readers_who_look_up() {
        for rival in rivals() {
            for readers in [1, 2] {
                let cpu_before = cpu_time();
                let boot = measure(rival, readers, 50);
                assert!(boot.ns > 0.0 && boot.ns.is_finite(), "{}: {boot:?}", rival.name);
                assert!(boot.look_ups_per_second > 0.0, "{}: {boot:?}", rival.name);
                let cpu = cpu_time().saturating_sub(cpu_before).as_nanos() as f64;
                assert!(boot.cpu_ns * 50.0 <= cpu, "{}: {boot:?}", rival.name);
            }
        }
    }

    #[test]
    #[should_panic(expected = "all slots are of one table")]
    fn a_mixed_table_is_found_out() {
        let mut table = Table::new(1);
        for slot in table.0.iter_mut().step_by(2) {
            slot.version = 2;
        }
        table.look_up(0);
    }
}
