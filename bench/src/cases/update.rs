//! The price of an update: allocate an object of 64 bytes, publish it, retire the old one.
//!
//! Without a reader and beside one that reads without pause. How many there are in a second, and
//! what waits meanwhile, is seen in a loop without a clock in it; how long single ones take, in a
//! second loop, with the cheapest clock there is. The CPU time is of the whole process, workers
//! included, until everything is freed that can be; but not the reader's, who reads all the time.
//! (What readers free is not seen in it, but in their tail: [`super::tail`].)

use std::thread;

use super::clock::quantile_ns;
use super::object::Turn;
use super::replace::{Limit, Site, Updater, drain, site, warm_up};
use super::together::{Gate, together};
use crate::rivals::Rival;

/// Replacements between two samples of what waits.
const BATCH: u64 = 64;

/// What [`measure`] saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Updates {
    /// Nanoseconds for each update, as its thread pays them; without waiting for a CPU that a
    /// neighbour had.
    pub ns: f64,
    /// CPU time for each update, of all threads that have to do with it.
    pub cpu_ns: f64,
    /// Exceeded by one update in a thousand, in nanoseconds.
    pub p99_9_ns: f64,
    /// Objects replaced and not yet freed, the most that was seen.
    pub unreclaimed_peak: u64,
    /// The share of the time that neighbours kept no reader waiting for a CPU; 1 without readers.
    pub readers_share: f64,
}

/// Replaces `updates` objects, rounded up to whole batches of 64, while `readers` threads read;
/// then `timed` more of them, one by one. One measurement at a time in a process; others wait.
///
/// # Panics
/// If the rival panics.
pub fn measure(rival: &Rival, readers: usize, updates: u64, timed: usize) -> Updates {
    measure_site(|| site(rival, Limit::Usual), readers, updates, timed)
}

/// The same of the `Arc` in a cell.
///
/// # Panics
/// If the rival has none, or panics.
pub fn measure_cell(rival: &Rival, readers: usize, updates: u64, timed: usize) -> Updates {
    measure_site(rival.stored.expect("only rivals with a cell are asked"), readers, updates, timed)
}

fn measure_site(
    make: impl FnOnce() -> Box<dyn Site> + Send,
    readers: usize,
    updates: u64,
    timed: usize,
) -> Updates {
    let _turn = Turn::wait();
    // Not in the caller's thread, where schemes would leave what they keep for threads.
    thread::scope(|scope| {
        let measured = scope.spawn(|| {
            let site = make();
            warm_up(&*site);
            let loops = Loops { site: &*site, readers };
            let counted = loops.count(updates.div_ceil(BATCH).max(1));
            let (p99_9_ns, readers_share) = loops.time(timed.max(1));
            Updates { p99_9_ns, readers_share: counted.readers_share.min(readers_share), ..counted }
        });
        measured.join().expect("a measurement does not panic")
    })
}

/// The two loops, with the readers beside them.
struct Loops<'a> {
    site: &'a dyn Site,
    readers: usize,
}

impl Loops<'_> {
    fn count(&self, batches: u64) -> Updates {
        let site = self.site;
        let before = site.freed();
        let seen = together(
            self.readers,
            |gate| self.read(gate),
            |gate| {
                let mut updater = ready(site);
                gate.work(|_| unreclaimed_peak(site, &mut *updater, batches))
            },
        );
        let updates = (batches * BATCH) as f64;
        drain(site, before, batches * BATCH + READY);
        Updates {
            ns: seen.front_time().as_nanos() as f64 / updates,
            cpu_ns: seen.cpu_since_front_began().as_nanos() as f64 / updates,
            p99_9_ns: f64::NAN,
            unreclaimed_peak: seen.front.result,
            readers_share: seen.backs_share(),
        }
    }

    fn time(&self, updates: usize) -> (f64, f64) {
        let site = self.site;
        let before = site.freed();
        let mut samples = vec![0; updates];
        let seen = together(
            self.readers,
            |gate| self.read(gate),
            |gate| {
                let mut updater = ready(site);
                gate.work(|_| updater.replace_timed(&mut samples))
            },
        );
        drain(site, before, updates as u64 + READY);
        (quantile_ns(&mut samples, 0.999), seen.backs_share())
    }

    fn read(&self, gate: &Gate<'_>) -> super::together::TimedWork<u64> {
        let mut reader = self.site.reader();
        gate.work(|stop| reader.read_until(stop))
    }
}

/// Replacements before the first that counts.
const READY: u64 = 4 * BATCH;

/// An updater that has done a little.
fn ready(site: &dyn Site) -> Box<dyn Updater + '_> {
    let mut updater = site.updater();
    updater.replace(READY);
    updater
}

/// Replaces so many batches; the most objects that were seen to wait between them.
fn unreclaimed_peak(site: &dyn Site, updater: &mut dyn Updater, batches: u64) -> u64 {
    let before = site.freed();
    let mut peak = 0;
    for batch in 1..=batches {
        updater.replace(BATCH);
        // What was retired before the first batch may be freed now: never below 0.
        peak = peak.max((batch * BATCH).saturating_sub(site.freed() - before));
    }
    peak
}

#[cfg(test)]
mod tests {
    use super::super::replace::rivals;
    use super::*;

    #[test]
    fn every_rival_updates_and_those_that_free_at_once_have_nothing_waiting() {
        for rival in rivals() {
            for readers in [0, 1] {
                let seen = measure(rival, readers, 10 * BATCH, 100);
                assert!(seen.ns > 0.0 && seen.cpu_ns > 0.0, "{}: {seen:?}", rival.name);
                assert!(seen.p99_9_ns > 0.0 && seen.p99_9_ns.is_finite(), "{}", rival.name);
                assert!(seen.unreclaimed_peak <= 10 * BATCH, "{}: {seen:?}", rival.name);
                assert!((0.0..=1.0).contains(&seen.readers_share), "{}", rival.name);
                if rival.name == "std-rwlock" {
                    assert_eq!(seen.unreclaimed_peak, 0);
                }
            }
        }
    }
}
