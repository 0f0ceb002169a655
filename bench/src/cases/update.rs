//! The price of an update: allocate an object of 64 bytes, publish it, retire the old one.
//!
//! Without a reader and beside one that reads without pause. How many there are in a second, and
//! what waits meanwhile, is seen in a loop without a clock in it; how long single ones take, in a
//! second loop, with the cheapest clock there is. The CPU time is of the whole process, workers
//! included, until everything is freed that can be; but not the reader's, who reads all the time.
//! (What readers free is not seen in it, but in their tail: [`super::tail`].)

use super::object::in_turn;
use super::replace::{Site, Worker, drain, warm_up};
use crate::clock::quantile_ns;
use crate::sample::Sample;
use crate::slices::{Cue, Scene, both};

/// Replacements between two samples of what waits.
const BATCH: u64 = 64;

/// Replaces `updates` objects, rounded up to whole batches of 64, while `readers` threads read;
/// then `timed` more of them, one by one. How fast updates are; CPU time for each, of all threads
/// that have to do with it; nanoseconds that one in a thousand exceeds; and objects that were
/// replaced and not yet freed, the most that was seen. The first is given as `first` makes it of
/// the nanoseconds for each update.
///
/// One measurement at a time in a process; others wait.
///
/// # Panics
/// If the rival panics.
pub(crate) fn measure(
    make: impl FnOnce() -> Box<dyn Site> + Send,
    readers: usize,
    updates: u64,
    timed: usize,
    first: fn(f64) -> f64,
) -> Sample {
    in_turn(|| {
        let site = &*make();
        warm_up(site);
        let batches = updates.div_ceil(BATCH).max(1);
        let updates = batches * BATCH;
        let scene =
            play(site, readers, updates, |updater| unreclaimed_peak(site, updater, batches));
        let (updater, _) = scene.front();
        let times = [updater.elapsed, scene.cpu_since_it_began()];
        let [ns, cpu_ns] = times.map(|time| time.as_nanos() as f64 / updates as f64);
        let mut samples = vec![0; timed.max(1)];
        let one_by_one = play(site, readers, samples.len() as u64, |updater| {
            updater.replace_timed(&mut samples);
            0
        });
        let values = [first(ns), cpu_ns, quantile_ns(&mut samples, 0.999), updater.result as f64];
        Sample::new(values, both(scene.judged(), one_by_one.judged()))
    })
}

/// So many updates with the readers beside them, and the time until all is freed that can be.
fn play(
    site: &dyn Site,
    readers: usize,
    updates: u64,
    update: impl FnOnce(&mut dyn Worker) -> u64 + Send,
) -> Scene<u64> {
    let before = site.freed();
    let read = |cue: &Cue<'_>| {
        let mut reader = site.reader();
        cue.work(|stop| reader.read_until(stop))
    };
    let scene = Scene::beside(readers, read, |cue| {
        let mut updater = ready(site);
        cue.work(|_| update(&mut *updater))
    });
    drain(site, before, updates + READY);
    scene
}

/// Replacements before the first that counts.
const READY: u64 = 4 * BATCH;

/// An updater that has done a little.
fn ready(site: &dyn Site) -> Box<dyn Worker + '_> {
    let mut updater = site.updater();
    updater.replace(READY);
    updater
}

/// Replaces so many batches; the most objects that were seen to wait between them.
fn unreclaimed_peak(site: &dyn Site, updater: &mut dyn Worker, batches: u64) -> u64 {
    let before = site.freed();
    let mut peak = 0;
    for batch in 1..=batches {
        updater.replace(BATCH);
        // What was retired before the first batch may be freed now: never below 0.
        peak = peak.max((batch * BATCH).saturating_sub(site.freed() - before));
    }
    peak
}
