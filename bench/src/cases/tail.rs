//! What updates do to readers: how long 64 reads take at worst, beside an updater without pause.

use std::sync::atomic::Ordering;

use super::clock::quantile_ns;
use super::object::in_turn;
use super::replace::{Limit, drain, site, warm_up};
use crate::rivals::Rival;
use crate::slices::{Judged, Scene};

/// Replacements between two looks of the updater whether to stop.
const BATCH: u64 = 64;

/// What [`measure`] saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tail {
    /// The median time of 64 reads, in nanoseconds.
    pub p50_ns: f64,
    /// Exceeded by one group of 64 in a thousand.
    pub p99_9_ns: f64,
    /// Updates in a second meanwhile.
    pub updates_per_second: f64,
    /// Whether it counts.
    pub(crate) judged: Judged,
}

/// Reads `groups` times 64 times while one thread replaces and retires without pause.
///
/// One measurement at a time in a process; others wait.
///
/// # Panics
/// If the rival panics.
pub fn measure(rival: &Rival, groups: usize) -> Tail {
    in_turn(|| {
        let site = site(rival, Limit::Usual);
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
        Tail {
            p50_ns: quantile_ns(&mut samples, 0.5),
            p99_9_ns: quantile_ns(&mut samples, 0.999),
            updates_per_second: updater.result as f64 / updater.elapsed.as_secs_f64(),
            judged: scene.judged(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::replace::rivals;
    use super::*;

    #[test]
    fn every_rivals_readers_are_timed_while_somebody_updates() {
        for rival in rivals() {
            let seen = measure(rival, 200);
            assert!(seen.p50_ns > 1.0 && seen.p99_9_ns >= seen.p50_ns, "{}: {seen:?}", rival.name);
            assert!(seen.updates_per_second >= 0.0, "{}: {seen:?}", rival.name);
        }
    }
}
