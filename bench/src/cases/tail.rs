//! What updates do to readers: how long 64 reads take at worst, beside an updater without pause.

use std::sync::atomic::Ordering;

use super::object::in_turn;
use super::replace::{Limit, Make, drain, warm_up};
use crate::clock::quantile_ns;
use crate::sample::Sample;
use crate::slices::Scene;

/// Replacements between two looks of the updater whether to stop.
const BATCH: u64 = 64;

/// Reads `groups` times 64 times while one thread replaces and retires without pause. Nanoseconds
/// that one group of 64 in a thousand exceeds, those of the median one, updates by the second, and
/// what one group in a hundred and one in ten exceeds.
///
/// One measurement at a time in a process; others wait.
///
/// # Panics
/// If the rival panics.
pub(crate) fn measure(make: Make, groups: usize) -> Sample {
    in_turn(|| {
        let site = make(Limit::Usual);
        warm_up(&*site);
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
        drain(&*site, before, updater.result);
        let [p99_9, p99, p90, p50] =
            [0.999, 0.99, 0.9, 0.5].map(|at| quantile_ns(&mut samples, at));
        let updates_per_second = updater.result as f64 / updater.elapsed.as_secs_f64();
        Sample::new([p99_9, p50, updates_per_second, p99, p90], scene.judged())
    })
}
