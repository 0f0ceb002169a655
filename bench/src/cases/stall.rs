//! One reader that stays in its section while another thread retires as fast as it can.
//!
//! How much waits at most, how much memory that is, and whether a third thread that reads meanwhile
//! is as fast as before. A rival whose memory has no bound is stopped at [`BYTES_MAX`].

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::allocator::bytes_in_use;
use super::object::{OBJECT_BYTES, Release};
use super::replace::{self, Limit, Make, Site, drain, on_site, while_held};
use crate::sample::Sample;
use crate::slices::{Act, Judged, Scene, both};

/// As much memory as a rival may take until it is stopped.
pub(crate) const BYTES_MAX: u64 = 1 << 30;

/// How often it is looked how much memory there is: the fastest rival takes 20 MiB meanwhile.
const LOOK: Duration = Duration::from_millis(5);

/// The part of the time that readers' speed is measured before the stall.
const BEFORE: u32 = 4;

/// Replacements between two of the updater's own looks at what waits.
const BATCH: u64 = 64;

/// Lets one reader stall for so long. Objects that were replaced and not yet freed, and bytes of
/// memory that were taken, the most that was seen, up to [`BYTES_MAX`], where the rival is stopped;
/// reads of the third thread, in per cent of those in the same time before; objects retired by the
/// second; and bytes at the end of each quarter of the time, not a number before the first update,
/// and where nobody looked.
///
/// # Panics
/// If the rival panics.
pub(crate) fn measure(make: Make, stall: Duration) -> Sample {
    on_site(make, Limit::Low, |site| {
        let before = Phase::run(site, false, stall / BEFORE);
        let during = Phase::run(site, true, stall);
        let peaks = [during.unreclaimed_peak, during.bytes_peak].map(|peak| peak as f64);
        let reads_percent = 100.0 * during.reads_per_second / before.reads_per_second;
        let values = [peaks[0], peaks[1], reads_percent, during.updates_per_second];
        Sample::new([&values[..], &during.bytes_at].concat(), both(before.judged, during.judged))
    })
}

/// What was seen in one of the two phases.
#[derive(Debug, Default)]
struct Phase {
    unreclaimed_peak: u64,
    bytes_peak: u64,
    /// At the end of each quarter. A rival that was stopped keeps what it had.
    bytes_at: [f64; 4],
    reads_per_second: f64,
    updates_per_second: f64,
    judged: Judged,
}

/// The updater and what it has done, for those who watch it while it is blocked.
struct Watched<'a> {
    site: &'a dyn Site,
    freed_before: u64,
    retired: AtomicU64,
}

impl Watched<'_> {
    /// Relaxed, here and below: counts and flags that publish nothing.
    fn unreclaimed(&self) -> u64 {
        let freed = self.site.freed() - self.freed_before;
        self.retired.load(Ordering::Relaxed).saturating_sub(freed)
    }

    /// Replaces until told to stop; the most objects that were seen to wait.
    fn update(&self, stop: &AtomicI32) -> u64 {
        let mut updater = self.site.updater();
        let mut peak = 0;
        while stop.load(Ordering::Relaxed) == 0 {
            for _ in 0..BATCH {
                // One by one: a blocked updater is to be seen with all that it has retired.
                updater.replace(1);
                let retired = self.retired.load(Ordering::Relaxed);
                self.retired.store(retired + 1, Ordering::Relaxed);
            }
            peak = peak.max(self.unreclaimed());
        }
        peak
    }
}

impl Phase {
    fn run(site: &dyn Site, stalled: bool, duration: Duration) -> Phase {
        let watched = Watched { site, freed_before: site.freed(), retired: AtomicU64::new(0) };
        let phase = if stalled {
            while_held(site, |release| Phase::play(&watched, Some(release), duration))
        } else {
            Phase::play(&watched, None, duration)
        };
        drain(site, watched.freed_before, watched.retired.into_inner());
        phase
    }

    fn play(watched: &Watched<'_>, released: Option<Release<'_>>, duration: Duration) -> Phase {
        let mut phase = Phase { bytes_at: [f64::NAN; 4], ..Phase::default() };
        let acts: Vec<Act<'_, u64>> = vec![
            Box::new(|cue| cue.work(|stop| watched.update(stop))),
            Box::new(|cue| replace::reads(watched.site, cue)),
        ];
        let (scene, ()) = Scene::play(0, acts, |_| {
            phase.watch(watched, duration);
            // Whom the stall has blocked continues now, and sees that it is to stop.
            drop(released);
        });
        let [updates, reads] = &scene.played[..] else { unreachable!("there are two acts") };
        phase.unreclaimed_peak = phase.unreclaimed_peak.max(updates.result);
        phase.reads_per_second = reads.per_second();
        phase.judged = scene.judged();
        phase
    }

    /// Looks until the time is over, or the memory.
    fn watch(&mut self, watched: &Watched<'_>, duration: Duration) {
        let memory_before = bytes_in_use();
        let begin = Instant::now();
        while self.bytes_peak < BYTES_MAX && begin.elapsed() < duration {
            thread::sleep(LOOK.min(duration.saturating_sub(begin.elapsed())));
            let objects = watched.unreclaimed();
            self.unreclaimed_peak = self.unreclaimed_peak.max(objects);
            let bytes = bytes_in_use()
                .zip(memory_before)
                .map_or(objects * OBJECT_BYTES as u64, |(now, before)| now.saturating_sub(before));
            self.bytes_peak = self.bytes_peak.max(bytes);
            let quarter = 4.0 * begin.elapsed().as_secs_f64() / duration.as_secs_f64();
            let is_updating = watched.retired.load(Ordering::Relaxed) > 0;
            let seen = if is_updating { bytes as f64 } else { f64::NAN };
            self.bytes_at[(quarter as usize).min(3)..].fill(seen);
        }
        let updates = watched.retired.load(Ordering::Relaxed) as f64;
        self.updates_per_second = updates / begin.elapsed().as_secs_f64();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::again::*;
    use crate::rivals;

    /// In a process of its own: other tests allocate and free meanwhile.
    #[test]
    fn what_a_stalled_reader_holds_up_is_seen() {
        in_its_own_process!();
        const STALL: Duration = Duration::from_millis(20);
        for (name, (make, hoards, ours)) in
            rivals::that(|rival| Some((rival.replace?, rival.hoards, rival.ours)))
        {
            // An updater without a CPU retires nothing; and who watches without one sees the memory
            // too early. Either may be so in one try, and not in all.
            let is_seen = |seen: &Sample| {
                let bytes_min = seen.values[0] / 2.0 * OBJECT_BYTES as f64;
                let at_the_end = seen.values[7];
                seen.values[0] >= BATCH as f64 && seen.values[1] >= bytes_min && at_the_end > 0.0
            };
            let mut tries = (0..=200).map(|_| measure(make, STALL));
            let seen = tries.find(|seen| !hoards || is_seen(seen)).expect(name);
            let [unreclaimed_peak, bytes_peak, reads_percent, _, ref quarters @ ..] =
                seen.values[..]
            else {
                unreachable!()
            };
            assert_eq!(quarters.len(), 4, "{name}: {seen:?}");
            let is_seen_by_then = |bytes: &f64| bytes.is_nan() || *bytes <= bytes_peak;
            assert!(quarters.iter().all(is_seen_by_then), "{name}: {seen:?}");
            // Its updater is blocked from the first update on: it has no curve in the picture. A
            // quarter in which nobody looked was one without memory.
            let is_blocked = name == "std-rwlock";
            assert!(!is_blocked || quarters.iter().all(|bytes| bytes.is_nan()), "{seen:?}");
            assert!(bytes_peak < BYTES_MAX as f64, "{name}: a GiB in 20 ms: {seen:?}");
            assert!(reads_percent.is_nan() || reads_percent >= 0.0, "{name}: {seen:?}");
            // Each of the two readers holds one object at most, and one is being replaced.
            if ["arc-swap", "std-rwlock"].contains(&name) {
                assert!(unreclaimed_peak <= 3.0, "{name}: {seen:?}");
            }
            if ours {
                let objects_max = super::super::replace::LIMIT_BYTES / OBJECT_BYTES as u64;
                assert!(unreclaimed_peak <= (objects_max + 1) as f64, "{seen:?}");
            }
        }
    }
}
