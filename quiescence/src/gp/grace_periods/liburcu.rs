//! How a driver sleeps until [liburcu readers](crate::liburcu_readers) leave: on `gp.futex`, as
//! liburcu's updaters do; and a grace period that has none of them to wait for.
//!
//! **Invariant [FR-1]: a liburcu reader that leaves sees that the driver sleeps, or the driver sees
//! that it has left.** The driver stores -1, executes a heavy fence and scans once more; the reader
//! stores its word, passes its fence and loads `gp.futex`. A reader that finds -1, holdout or not,
//! stores 0 and wakes the driver, which polls again: so busy readers wake a sleeping driver for
//! nothing. The driver naps before it stores -1 again, for a time that doubles up to a limit, so
//! that those readers make few system calls.
//!
//! A QSBR reader looks for -1 only if its record's `waiting` is set, which it clears; this may be
//! an old mark, just as a new one is stored. So -1 is stored before any mark is, with a full fence
//! between the two; the reader's own fence comes after it has cleared the mark.
//!
//! A driver that sleeps here too short scans once more; one that misses a wake-up sleeps too long.
//! Neither ends a grace period early: see [`super::steps`].

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::patience::Away;
use super::{Driver, GracePeriods, Locked};
use crate::gp::links::{ASLEEP, Links, Readers, Words};
use crate::gp::tuning::{AtomicTuning, Kind};
use crate::os::{fence, futex, nap};

/// The first nap, and how often it doubles. The longest nap bounds how late the end of a grace
/// period may be noticed.
const NAP_FIRST: Duration = Duration::from_micros(20);
const NAP_DOUBLINGS: u32 = 6;

const _: () = assert!(NAP_FIRST.as_micros() << NAP_DOUBLINGS <= 1_300, "as is promised");

impl GracePeriods {
    /// Makes this a domain of liburcu readers.
    pub(crate) const fn make_liburcu(&mut self, readers: Readers) {
        self.tuning = AtomicTuning::new(Kind::Liburcu);
        let links = Some(Links::new(readers));
        // The old value is `None`, forgotten because a constant may not drop it.
        std::mem::forget(std::mem::replace(&mut self.gp_words.liburcu, links));
    }

    /// A grace period that has nothing to wait for: the only readers are `own` ones of the caller,
    /// and no other thread wants a grace period. The readers' words are not loaded, so a QSBR
    /// reader need not go offline. Returns false if that is not so, or not certain: then nothing
    /// has been waited for.
    ///
    /// # Safety
    /// `own` readers are the calling thread's, and it holds no reference by any of them.
    pub(crate) unsafe fn synchronize_alone(&self, own: usize) -> bool {
        // Relaxed: a hint, which may save the lock; the registry is asked below.
        if !self.alone.load(Relaxed) {
            return false;
        }
        let Some(mut state) = self.try_lock() else { return false };
        // SAFETY: by the contract.
        let is_over = unsafe { state.end_if_alone(own) };
        self.tell_those_due(&mut state);
        drop(state);
        if is_over {
            self.unlocked_again();
        }
        is_over
    }

    /// Sleeps until some reader has left, or naps; the driver has slept `before` times already in
    /// this grace period.
    pub(super) fn sleep_beside_liburcu(
        &self,
        state: &mut Locked<'_>,
        driver: &Driver,
        links: &Links,
        before: u32,
    ) {
        let is_silent = links.readers == Readers::Silent;
        // A second sleep means that the first was ended for nothing: nap before it.
        let nap = (before != 0 || is_silent).then(|| NAP_FIRST * (1 << before.min(NAP_DOUBLINGS)));
        let words = links.words().filter(|_| !is_silent);
        let least = nap.unwrap_or(Duration::ZERO);
        let away = if words.is_some() { Away::sleeps(least) } else { Away::naps(least) };
        // A superseded driver may be about to sleep on the word, which is -1 again, and take the
        // only wake-up.
        let longest = (state.conduct.superseded != 0).then_some(NAP_FIRST * (1 << NAP_DOUBLINGS));
        state.away(away, || {
            if let Some(nap) = nap {
                let _ = self.watched_asleep();
                nap::nap(nap);
            }
            if let Some(words) = words {
                self.sleep_on(words, links.readers, driver, longest);
                if longest.is_some() {
                    // Whatever the word is: this thread may have had the only wake-up, and the
                    // superseded drivers still sleep.
                    words.wake_all();
                }
            }
        });
    }

    /// Sleeps until some reader has left, or for at most `longest`.
    fn sleep_on(
        &self,
        words: &'static Words,
        readers: Readers,
        driver: &Driver,
        longest: Option<Duration>,
    ) {
        //~ point before-mark
        let Some(registry) = self.registry_as(driver) else { return };
        // Relaxed: the heavy fence follows [FR-1].
        words.futex.store(ASLEEP, Relaxed);
        registry.marked.set(false);
        if readers == Readers::Qsbr {
            fence::full(); // before the marks [FR-1]
        }
        registry.mark_holdouts();
        drop(registry);
        self.heavy_fence(); // [FR-1] //~ no-liburcu-fence

        //~ point marked
        let number = self.announced(); // the driver's own store
        let Some(registry) = self.registry_as(driver) else { return };
        let holdouts = registry.holdouts().filter(|slot| slot.is_holdout(number)).count();
        //~ no-liburcu-look:
        if holdouts == 0 {
            words.futex.store(0, Relaxed); // so that no reader makes a system call
            return;
        }
        registry.marked.set(true);
        drop(registry);
        self.counters().sleeps.fetch_add(1, Relaxed);
        // Relaxed: the scan that follows loads the words themselves.
        while words.futex.load(Relaxed) == ASLEEP && !self.is_superseded(driver) {
            let most = [self.watched_asleep(), longest].into_iter().flatten().min();
            futex::wait_shared(&words.futex, ASLEEP, most);
            if longest.is_some() {
                break;
            }
        }
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use std::panic::Location;
    use std::ptr;
    use std::sync::OnceLock;
    use std::sync::atomic::Ordering::SeqCst;
    use std::thread;

    use grace::Start;

    use super::*;
    use crate::gp::engine::Settings;
    use crate::gp::grace_periods::{Me, Until};
    use crate::gp::links::Surroundings;
    use crate::gp::slot::{ReaderKind, Slot};
    use crate::os::sync::{AtomicU32, AtomicU64, const_unless_loom};
    use crate::os::thread as system;
    use crate::os::thread_state::{self, ThreadState};

    static CORE: OnceLock<GracePeriods> = OnceLock::new();
    const_unless_loom! {
        static WORDS: Words = Words { ctr: AtomicU64::new(0), futex: AtomicU32::new(0) };
        static SLOT: Slot = Slot::new(grace::word::QUIESCENT);
    }

    /// The driver of the next term used to find no reader in a section, and wake no thread: the
    /// superseded driver, late to its sleep, slept until the next report of a stall, or for ever.
    #[test]
    fn a_superseded_driver_that_is_late_to_its_sleep_is_woken() {
        let core = CORE.get_or_init(|| {
            let mut core = GracePeriods::new(Start::ZERO, Settings::DEFAULT);
            core.make_liburcu(Readers::Light);
            core
        });
        let links = core.gp_words.liburcu.as_ref().unwrap();
        links.attach(&WORDS, Surroundings { begin: || 0, end: |_| () });
        core.tuning.set(crate::gp::tuning::Tuning { stall_after: None, ..core.tuning.get() });
        // SAFETY: a slot that lives for ever, registered once.
        unsafe {
            core.register_at(ptr::from_ref::<Slot>(&SLOT), 1, ReaderKind::Liburcu(Readers::Light))
        };
        SLOT.enter_slow(&core.gp_words.gp, Location::caller());
        core.lock().request(grace::Urgency::Normal);
        core.advance(Me::NOBODY);
        assert_eq!(core.registry().holdouts().count(), 1);
        let begin = || core.lock().begin_term(Until::MustWait { tick: false }, Me::NOBODY);
        let late = AtomicU32::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                let first = begin();
                late.store(system::id(), SeqCst);
                core.sleep_on(&WORDS, Readers::Light, &first, None);
            });
            while late.load(SeqCst) == 0
                || WORDS.futex.load(SeqCst) != ASLEEP
                || core.counters().sleeps.load(SeqCst) == 0
                || thread_state::look_at(late.load(SeqCst)).state != ThreadState::Sleeping
            {
                thread::yield_now();
            }
            let second = begin();
            SLOT.leave();
            let mut state = core.lock();
            state.conduct.superseded = 1;
            core.sleep_beside_liburcu(&mut state, &second, links, 0);
            drop(state);
            assert!(!core.is_superseded(&second));
        });
        core.unregister(&SLOT);
    }
}
