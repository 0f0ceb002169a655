//! What so many threads read beside one that replaces what they read, now and then: as many as
//! there are CPUs, and more, which take turns.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use super::object::in_turn;
use super::replace::{Limit, Make, drain, warm_up};
use crate::sample::Sample;
use crate::slices::{Act, Scene};

/// From one replacement to the next, at least.
const UPDATE_EVERY: Duration = Duration::from_micros(100);

/// Reads in so many threads for so long: reads of all of them by the second, and replacements.
///
/// One measurement at a time in a process; others wait.
///
/// # Panics
/// If the rival panics.
pub(crate) fn measure(make: Make, readers: usize, time: Duration) -> Sample {
    in_turn(|| {
        let site = make(Limit::Usual);
        warm_up(&*site);
        let before = site.freed();
        let act = |_| -> Act<'_, u64> {
            Box::new(|cue| {
                let mut reader = site.reader();
                cue.work(|stop| reader.read_until(stop))
            })
        };
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
        drain(&*site, before, updates.0);
        let reads = scene.played.iter();
        let reads = reads.map(|played| played.result as f64 / played.elapsed.as_secs_f64());
        let updates = updates.0 as f64 / updates.1.as_secs_f64();
        // By one rule for all numbers of threads: readers that wait for a CPU are the point here.
        Sample::new([reads.sum(), updates], None)
    })
}
