//! The rivals that replace and retire objects, as the measurements drive them: a batch at a time,
//! so that a virtual call costs nothing that counts.
//!
//! Replaces are compiled into loops here, liburcu has the same loops in C.

use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

pub(crate) use super::object::OBJECT_BYTES;
use super::object::{Object, Release, in_turn};
use crate::clock::{ticks, ticks_since};
use crate::freed;
use crate::sample::Sample;
use crate::serve::Replace;
use crate::slices::{Cue, Played};

/// Reads that are timed together: `READS` in `c/update.c` is the same number.
pub(crate) const READS: u64 = 64;

/// Replacements between two quiescent states of QSBR.
const PAUSE: u64 = 64;

/// What our limit is where a reader stalls, in bytes of objects.
pub(crate) const LIMIT_BYTES: u64 = 1 << 20;

/// How often who holds a section looks whether to leave it: `c/update.c` looks as often.
const HOLD_LOOK: Duration = Duration::from_millis(2);

/// How much may wait, for those who can be told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limit {
    /// The default.
    Usual,
    /// [`LIMIT_BYTES`].
    Low,
    /// More than is measured.
    High,
}

/// Makes the object of a rival, in its place.
pub(crate) type Make = fn(Limit) -> Box<dyn Site>;

/// An object in its place, which is replaced and read.
pub(crate) trait Site: Sync {
    /// Registers the calling thread to replace. One at a time.
    fn updater(&self) -> Box<dyn Worker + '_>;
    /// Registers the calling thread to read.
    fn reader(&self) -> Box<dyn Worker + '_> {
        self.updater()
    }
    /// Objects of this rival that were freed since the process began.
    fn freed(&self) -> u64;
    /// Frees some of what waits, if the rival can be asked to.
    fn flush(&self);

    /// Fails if the rival does not keep what [`Replace`] says. Whether it is one.
    #[cfg(test)]
    fn keeps_its_word(&self, name: &str) -> bool;
}

/// A registered thread.
pub(crate) trait Worker {
    /// Replaces so many objects.
    fn replace(&mut self, count: u64);
    /// Replaces an object for each place, and says how long it took.
    fn replace_timed(&mut self, samples: &mut [u32]);
    /// Reads until told to stop, but once at least; how many reads there were.
    fn read_until(&mut self, stop: &AtomicI32) -> u64;
    /// Reads [`READS`] times for each place, and says how long it took.
    fn read_timed(&mut self, samples: &mut [u32]);
    /// Enters a section, reads, says so, and leaves it when `release` is not 0.
    fn hold(&mut self, entered: &AtomicI32, release: &AtomicI32);
}

/// A design of [`Replace`] with one object of so many words in one place.
pub(crate) struct Replacements<S: Replace, const WORDS: usize = { OBJECT_BYTES / 8 }> {
    // Before the scheme, which it may need while it is dropped.
    place: S::Place<Object<S, WORDS>>,
    scheme: S,
}

/// A thread of a [`Replacements`].
struct Registered<'a, S: Replace, const WORDS: usize> {
    site: &'a Replacements<S, WORDS>,
    thread: S::Thread,
}

impl<S: Replace, const WORDS: usize> Replacements<S, WORDS> {
    /// What waits is up to the design.
    pub(crate) fn boxed(_: Limit) -> Box<dyn Site> {
        Self::with(S::default())
    }

    pub(crate) fn with(scheme: S) -> Box<dyn Site> {
        Box::new(Self { place: scheme.place(Object::new()), scheme })
    }
}

impl<S: Replace, const WORDS: usize> Site for Replacements<S, WORDS> {
    fn updater(&self) -> Box<dyn Worker + '_> {
        Box::new(Registered { site: self, thread: self.scheme.thread() })
    }

    fn freed(&self) -> u64 {
        S::freed().sum().cast_unsigned()
    }

    fn flush(&self) {
        self.scheme.flush();
    }

    #[cfg(test)]
    fn keeps_its_word(&self, name: &str) -> bool {
        crate::serve::tests::keeps_its_word::<S>(name);
        true
    }
}

impl<S: Replace, const WORDS: usize> Registered<'_, S, WORDS> {
    #[inline(always)]
    fn replace_one(&mut self) {
        self.site.scheme.replace(&mut self.thread, &self.site.place, Object::new());
    }

    #[inline(always)]
    fn read_one(&mut self) -> u64 {
        self.site.scheme.read(&mut self.thread, &self.site.place, Object::word)
    }
}

impl<S: Replace, const WORDS: usize> Worker for Registered<'_, S, WORDS> {
    fn replace(&mut self, count: u64) {
        for _ in 0..count / PAUSE {
            for _ in 0..PAUSE {
                self.replace_one();
            }
            S::pause(&mut self.thread);
        }
        for _ in 0..count % PAUSE {
            self.replace_one();
        }
        S::pause(&mut self.thread);
    }

    fn replace_timed(&mut self, samples: &mut [u32]) {
        for samples in samples.chunks_mut(PAUSE as usize) {
            for sample in samples {
                let begin = ticks();
                self.replace_one();
                *sample = ticks_since(begin);
            }
            S::pause(&mut self.thread);
        }
    }

    fn read_until(&mut self, stop: &AtomicI32) -> u64 {
        let (mut sum, mut reads) = (0_u64, 0);
        // Once at least: the others may be done before this thread has a CPU. Relaxed: the flag
        // ends the loop and publishes nothing.
        while reads == 0 || stop.load(Ordering::Relaxed) == 0 {
            for _ in 0..READS {
                sum = sum.wrapping_add(self.read_one());
            }
            reads += READS;
            S::pause(&mut self.thread);
        }
        assert_eq!(sum, reads, "every read saw an object");
        reads
    }

    fn read_timed(&mut self, samples: &mut [u32]) {
        let (mut sum, reads) = (0_u64, samples.len() as u64 * READS);
        for sample in samples {
            let begin = ticks();
            for _ in 0..READS {
                sum = sum.wrapping_add(self.read_one());
            }
            *sample = ticks_since(begin);
            S::pause(&mut self.thread);
        }
        assert_eq!(sum, reads, "every read saw an object");
    }

    fn hold(&mut self, entered: &AtomicI32, release: &AtomicI32) {
        let word = self.site.scheme.read(&mut self.thread, &self.site.place, |object| {
            // Release: pairs with the Acquire of who waits for it; the section has begun before.
            entered.store(1, Ordering::Release);
            // Relaxed: the flag ends the loop and publishes nothing.
            while release.load(Ordering::Relaxed) == 0 {
                thread::sleep(HOLD_LOOK);
            }
            object.word()
        });
        assert_eq!(word, 1, "the object is there for as long as the section lasts");
    }
}

/// Acts while another thread holds a section: until the act, or a panic of it, drops what it is
/// given. When this returns, that thread's last destructors, which may free, have run.
pub(crate) fn while_held<R>(site: &dyn Site, act: impl FnOnce(Release<'_>) -> R) -> R {
    let (entered, release) = (AtomicI32::new(0), AtomicI32::new(0));
    thread::scope(|scope| {
        let holder = scope.spawn(|| {
            site.reader().hold(&entered, &release);
        });
        // Acquire: pairs with the Release of the thread that has entered.
        while entered.load(Ordering::Acquire) == 0 {
            assert!(!holder.is_finished(), "who holds a section does not panic");
            thread::yield_now();
        }
        let result = act(Release(&release));
        holder.join().expect("who holds a section does not panic");
        result
    })
}

/// Measures on a site with this limit, in a thread of its own and after a warm-up: one at a time in
/// a process, the others wait.
pub(crate) fn on_site(
    make: Make,
    limit: Limit,
    measure: impl FnOnce(&dyn Site) -> Sample + Send,
) -> Sample {
    in_turn(|| {
        let site = make(limit);
        warm_up(&*site);
        measure(&*site)
    })
}

/// A thread that reads until it is told to stop.
pub(crate) fn reads(site: &dyn Site, cue: &Cue<'_>) -> Played<u64> {
    let mut reader = site.reader();
    cue.work(|stop| reader.read_until(stop))
}

/// Replaces a few objects in a thread of its own, and has them freed. So a library's helper threads
/// start here, where they may run on every CPU, and not in a measurement that ties its threads
/// to one.
fn warm_up(site: &dyn Site) {
    const OBJECTS: u64 = 2048;
    let before = site.freed();
    thread::scope(|scope| {
        scope.spawn(|| site.updater().replace(OBJECTS)).join().expect("a warm-up does not panic");
    });
    drain(site, before, OBJECTS);
}

/// Has the site free what was retired since it had freed `before`, as far as it can be made to.
pub(crate) fn drain(site: &dyn Site, before: u64, retired: u64) {
    /// Attempts without any progress until it is taken for all.
    const PATIENCE: u32 = 16;
    freed::drain(PATIENCE, || retired.saturating_sub(site.freed() - before), || site.flush());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::object::turn;
    use crate::rivals;

    #[test]
    fn every_rival_replaces_as_often_as_it_is_told_and_frees_what_was_retired() {
        let _turn = turn();
        for (name, make) in rivals::that(|rival| rival.replace) {
            for limit in [Limit::Usual, Limit::Low, Limit::High] {
                let site = make(limit);
                let before = site.freed();
                thread::scope(|scope| {
                    scope.spawn(|| {
                        let mut updater = site.updater();
                        updater.replace(3 * PAUSE + 1);
                        let mut samples = [0; 100];
                        updater.replace_timed(&mut samples);
                        assert!(samples.iter().any(|&ticks| ticks > 0), "{name}");
                        drop(updater);
                        let mut reader = site.reader();
                        reader.read_timed(&mut samples);
                        assert!(samples.iter().all(|&ticks| ticks > 0), "{name}");
                    });
                });
                let retired = 3 * PAUSE + 101;
                drain(&*site, before, retired);
                // What an earlier round had left may have been freed meanwhile, too.
                let left = retired.saturating_sub(site.freed() - before);
                // sdd and crossbeam keep a few; seize all that is not a full batch.
                assert!(left < 200, "{name}: {left} of {retired} are left");
                if ["quiescence", "std-rwlock", "arc-swap"].contains(&name) {
                    assert_eq!(left, 0, "{name}");
                }
            }
        }
    }

    #[test]
    fn what_a_reader_holds_is_not_freed() {
        let _turn = turn();
        for (name, make) in rivals::that(|rival| rival.replace.filter(|_| rival.hoards)) {
            let site = make(Limit::High);
            while_held(&*site, |_release| {
                let before = site.freed();
                thread::scope(|scope| scope.spawn(|| site.updater().replace(1000)).join().unwrap());
                assert_eq!(site.freed(), before, "{name}");
            });
        }
    }
}
