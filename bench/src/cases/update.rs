//! The price of an update: allocate an object of 64 bytes, publish it, retire the old one.
//!
//! Without a reader and beside one that reads without pause. How many there are in a second, and
//! what waits meanwhile, is seen in a loop without a clock in it; how long single ones take, in a
//! second loop, with the cheapest clock there is. The CPU time is of the whole process, workers
//! included, until everything is freed that can be; but not the reader's, who reads all the time.
//! (What readers free is not seen in it, but in their tail: [`super::tail`].)

use super::clock::quantile_ns;
use super::object::in_turn;
use super::replace::{Limit, Site, Updater, drain, site, warm_up};
use crate::rivals::Rival;
use crate::slices::{Cue, Judged, Played, Scene, both};

/// Replacements between two samples of what waits.
const BATCH: u64 = 64;

/// What [`measure`] saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Updates {
    /// Nanoseconds for each update, as its thread pays them.
    pub ns: f64,
    /// CPU time for each update, of all threads that have to do with it.
    pub cpu_ns: f64,
    /// Exceeded by one update in a thousand, in nanoseconds.
    pub p99_9_ns: f64,
    /// Objects replaced and not yet freed, the most that was seen.
    pub unreclaimed_peak: u64,
    /// Whether it counts.
    pub(crate) judged: Judged,
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
    in_turn(|| {
        let site = make();
        warm_up(&*site);
        let loops = Loops { site: &*site, readers };
        let counted = loops.count(updates.div_ceil(BATCH).max(1));
        let (p99_9_ns, judged) = loops.time(timed.max(1));
        Updates { p99_9_ns, judged: both(counted.judged, judged), ..counted }
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
        let scene = Scene::beside(
            self.readers,
            |cue| self.read(cue),
            |cue| {
                let mut updater = ready(site);
                cue.work(|_| unreclaimed_peak(site, &mut *updater, batches))
            },
        );
        let (updater, _) = scene.front();
        let updates = (batches * BATCH) as f64;
        drain(site, before, batches * BATCH + READY);
        Updates {
            ns: updater.elapsed.as_nanos() as f64 / updates,
            cpu_ns: scene.cpu_since_it_began().as_nanos() as f64 / updates,
            p99_9_ns: f64::NAN,
            unreclaimed_peak: updater.result,
            judged: scene.judged(),
        }
    }

    fn time(&self, updates: usize) -> (f64, Judged) {
        let site = self.site;
        let before = site.freed();
        let mut samples = vec![0; updates];
        let scene = Scene::beside(
            self.readers,
            |cue| self.read(cue),
            |cue| {
                let mut updater = ready(site);
                cue.work(|_| {
                    updater.replace_timed(&mut samples);
                    0
                })
            },
        );
        drain(site, before, updates as u64 + READY);
        (quantile_ns(&mut samples, 0.999), scene.judged())
    }

    fn read(&self, cue: &Cue<'_>) -> Played<u64> {
        let mut reader = self.site.reader();
        cue.work(|stop| reader.read_until(stop))
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
                if rival.name == "std-rwlock" {
                    assert_eq!(seen.unreclaimed_peak, 0);
                }
            }
        }
    }
}
