//! The guest-boot workload: a table of memory slots that readers look up, and one who replaces it
//! thousands of times and waits for an expedited grace period each time.
//!
//! In 2022 a grace period that slept made a virtual machine's boot twenty times as long, and one
//! that spun kept a CPU from the readers it waited for ("Commit 282d8998e997 cause qemu boot slow",
//! linux-kernel, June 2022). A reader stays for about a microsecond, and is away for about as long.
//!
//! Slots that were replaced are freed after the boot: what is measured is the waiting.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::time::Duration;

use super::object::turn;
use super::wait::chain;
use crate::sample::Sample;
use crate::serve::Domain;
use crate::slices::{Cue, Played, Scene};

/// Slots of a table.
const SLOTS: u64 = 64;

/// Pages of a slot.
const PAGES: u64 = 512;

/// Look-ups in a section.
const LOOK_UPS: u64 = 32;

/// Steps of a reader between two sections.
const AWAY_STEPS: u32 = 256;

/// Boots once: so many updates beside so many readers. Nanoseconds for an update with its grace
/// period; of CPU time for it, of all threads but the readers; and their look-ups by the second.
pub(crate) fn measure<D: Domain>(domain: &D, readers: usize, updates: u64) -> Sample {
    let _turn = turn();
    let tables: Vec<OnceLock<Slots>> = (0..=updates).map(|_| OnceLock::new()).collect();
    let make = |version: usize| _ = tables[version].set(Slots::new(version as u64));
    make(0);
    let newest = AtomicUsize::new(0);
    let look_up = |number| {
        // Acquire: pairs with the Release of who boots.
        let table = tables[newest.load(Ordering::Acquire)].get();
        table.expect("it is made before it is the newest").look_up(number);
    };
    let look_ups = |stop: &AtomicI32| {
        let (mut look_ups, mut x) = (0_u64, 1);
        // Once at least: a short boot may be over before this thread has begun.
        loop {
            domain.read(|| look_up(look_ups));
            look_ups += LOOK_UPS;
            x = chain(x, AWAY_STEPS);
            // Relaxed: the flag ends the loop and publishes nothing.
            if stop.load(Ordering::Relaxed) != 0 {
                return look_ups;
            }
        }
    };
    let boot = |cue: &Cue<'_>| {
        cue.work(|_| {
            for version in 1..tables.len() {
                make(version);
                // Release: pairs with the Acquire of the readers.
                newest.store(version, Ordering::Release);
                domain.wait_in_a_hurry();
            }
            0
        })
    };
    let scene = Scene::beside(readers, |cue| cue.work(look_ups), boot);
    let (boot, readers) = scene.front();
    let per_update = |time: Duration| time.as_nanos() as f64 / updates.max(1) as f64;
    let cpu_ns = per_update(boot.cpu() + scene.workers_cpu());
    let look_ups_per_second = readers.iter().map(Played::per_second).sum();
    Sample::new([per_update(boot.elapsed), cpu_ns, look_ups_per_second], scene.judged())
}

/// A range of a guest's pages, and where they are.
struct Slot {
    first_page: u64,
    /// Stands for the address: the same in all slots of a table, and another in each table.
    version: u64,
}

/// The slots in the order of their pages.
struct Slots(Vec<Slot>);

impl Slots {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "all slots are of one table")]
    fn a_mixed_table_is_found_out() {
        let mut table = Slots::new(1);
        for slot in table.0.iter_mut().step_by(2) {
            slot.version = 2;
        }
        table.look_up(0);
    }
}
