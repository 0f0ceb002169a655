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
use crate::sample::Sample;
use crate::slices::{Cue, Judged, Played, Scene, both};

/// Replacements between two samples of what waits.
const BATCH: u64 = 64;

/// Replaces `updates` objects, rounded up to whole batches of 64, while `readers` threads read;
/// then `timed` more of them, one by one. Updates by the second; CPU time for each, of all threads
/// that have to do with it; nanoseconds that one in a thousand exceeds; and objects that were
/// replaced and not yet freed, the most that was seen.
///
/// One measurement at a time in a process; others wait.
///
/// # Panics
/// If the rival panics.
pub(crate) fn measure(rival: &Rival, readers: usize, updates: u64, timed: usize) -> Sample {
    measure_site(|| site(rival, Limit::Usual), readers, updates, timed, |ns| 1e9 / ns)
}

/// The same of the `Arc` in a cell, but for the first: nanoseconds for each update.
///
/// # Panics
/// If the rival has none, or panics.
pub(crate) fn measure_cell(rival: &Rival, readers: usize, updates: u64, timed: usize) -> Sample {
    let make = rival.stored.expect("only rivals with a cell are asked");
    measure_site(make, readers, updates, timed, |ns| ns)
}

fn measure_site(
    make: impl FnOnce() -> Box<dyn Site> + Send,
    readers: usize,
    updates: u64,
    timed: usize,
    first: fn(f64) -> f64,
) -> Sample {
    in_turn(|| {
        let site = make();
        warm_up(&*site);
        let loops = Loops { site: &*site, readers };
        let ([ns, cpu_ns, peak], counted) = loops.count(updates.div_ceil(BATCH).max(1));
        let (p99_9_ns, judged) = loops.time(timed.max(1));
        Sample::new([first(ns), cpu_ns, p99_9_ns, peak], both(counted, judged))
    })
}

/// The two loops, with the readers beside them.
struct Loops<'a> {
    site: &'a dyn Site,
    readers: usize,
}

impl Loops<'_> {
    fn count(&self, batches: u64) -> ([f64; 3], Judged) {
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
        let times = [updater.elapsed, scene.cpu_since_it_began()];
        let [ns, cpu_ns] = times.map(|time| time.as_nanos() as f64 / updates);
        ([ns, cpu_ns, updater.result as f64], scene.judged())
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
                let [per_second, cpu_ns, p99_9_ns, peak] = seen.values[..] else { unreachable!() };
                assert!(per_second > 0.0 && cpu_ns > 0.0, "{}: {seen:?}", rival.name);
                assert!(per_second.is_finite(), "{}: {seen:?}", rival.name);
                assert!(p99_9_ns > 0.0 && p99_9_ns.is_finite(), "{}", rival.name);
                assert!(peak <= 10.0 * BATCH as f64, "{}: {seen:?}", rival.name);
                if rival.name == "std-rwlock" {
                    assert_eq!(peak, 0.0);
                }
            }
        }
    }
}
