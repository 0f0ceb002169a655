//! The price of an update: allocate an object of 64 bytes, publish it, retire the old one; and what
//! updates do to readers.
//!
//! Without a reader and beside one that reads without pause. How many there are in a second, and
//! what waits meanwhile, is seen in a loop without a clock in it; how long single ones take, in a
//! second loop, with the cheapest clock there is. The CPU time is of the whole process, workers
//! included, until everything is freed that can be; but not the reader's, who reads all the time.
//! (What readers free is not seen in it, but in their [`tail`].)

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use super::replace::{Limit, Make, Site, Worker, drain, on_site, reads};
use crate::clock::quantile_ns;
use crate::sample::Sample;
use crate::slices::{Act, Cue, Scene, both};

/// Replacements between two samples of what waits, or two looks whether to stop.
const BATCH: u64 = 64;
/// Where readers are many: from one replacement to the next, at least.
const UPDATE_EVERY: Duration = Duration::from_micros(100);

/// Replaces `updates` objects, rounded up to whole batches of 64, while `readers` threads read;
/// then `timed` more of them, one by one. How fast updates are; CPU time for each, of all threads
/// that have to do with it; nanoseconds that one in a thousand exceeds; and objects that were
/// replaced and not yet freed, the most that was seen. The first is given as `first` makes it of
/// the nanoseconds for each update.
///
/// # Panics
/// If the rival panics.
pub(crate) fn measure(
    make: Make,
    readers: usize,
    updates: u64,
    timed: usize,
    first: fn(f64) -> f64,
) -> Sample {
    on_site(make, Limit::Usual, |site| {
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

/// Reads `groups` times 64 times while one thread replaces and retires without pause. Nanoseconds
/// that one group of 64 in a thousand exceeds, those of the median one, updates by the second, and
/// what one group in a hundred and one in ten exceeds.
///
/// # Panics
/// If the rival panics.
pub(crate) fn tail(make: Make, groups: usize) -> Sample {
    on_site(make, Limit::Usual, |site| {
        let before = site.freed();
        let mut samples = vec![0; groups.max(1)];
        let scene = Scene::beside(
            1,
            |cue| {
                let mut updater = site.updater();
                cue.work(|stop| {
                    let mut updates = 0;
                    // Relaxed: the flag ends the loop and publishes nothing.
                    while stop.load(Ordering::Relaxed) == 0 {
                        updater.replace(BATCH);
                        updates += BATCH;
                    }
                    updates
                })
            },
            |cue| {
                let mut reader = site.reader();
                cue.work(|_| {
                    reader.read_timed(&mut samples);
                    0
                })
            },
        );
        let updater = &scene.played[1];
        drain(site, before, updater.result);
        let [p99_9, p99, p90, p50] =
            [0.999, 0.99, 0.9, 0.5].map(|at| quantile_ns(&mut samples, at));
        Sample::new([p99_9, p50, updater.per_second(), p99, p90], scene.judged())
    })
}

/// Reads in so many threads for so long, as many as there are CPUs, or more, which take turns,
/// beside one that replaces now and then: reads of all of them by the second, and replacements.
///
/// # Panics
/// If the rival panics.
pub(crate) fn beside(make: Make, readers: usize, time: Duration) -> Sample {
    on_site(make, Limit::Usual, |site| {
        let before = site.freed();
        let act = |_| -> Act<'_, u64> { Box::new(|cue| reads(site, cue)) };
        let (scene, updates) = Scene::play(0, (0..readers).map(act).collect(), |stop| {
            let (mut updater, mut updates, begin) = (site.updater(), 0_u64, Instant::now());
            // Only a reader that has panicked has stopped. Relaxed: the flag publishes nothing.
            while begin.elapsed() < time && stop.load(Ordering::Relaxed) == 0 {
                updater.replace(1);
                updates += 1;
                thread::sleep(UPDATE_EVERY);
            }
            (updates, begin.elapsed())
        });
        drain(site, before, updates.0);
        // In the time of all: one that got its CPU when the others were done has read for a moment.
        let reads = scene.played.iter().map(|played| played.result).sum::<u64>() as f64;
        let reads = reads / scene.elapsed().as_secs_f64();
        // By one rule for all numbers of threads: readers that wait for a CPU are the point here.
        Sample::new([reads, updates.0 as f64 / updates.1.as_secs_f64()], None)
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
    let read = |cue: &Cue<'_>| reads(site, cue);
    let scene = Scene::beside(readers, read, |cue| {
        let mut updater = site.updater();
        // An updater that has done a little.
        updater.replace(READY);
        cue.work(|_| update(&mut *updater))
    });
    drain(site, before, updates + READY);
    scene
}

/// Replacements before the first that counts.
const READY: u64 = 4 * BATCH;

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
