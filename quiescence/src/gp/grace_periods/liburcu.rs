//! What a driver does for [liburcu readers](crate::liburcu_readers): it announces numbers where
//! their programs look for them, and sleeps as liburcu's updaters do, on `gp.futex`.
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

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use grace::word;

use super::handover::Away;
use super::{Driver, GracePeriods, State};
use crate::gp::gp_words::{ASLEEP, Links, Readers, Words};
use crate::gp::registry::Registry;
use crate::os::sync::{self, MutexGuard};
use crate::os::{fence, futex, nap};

/// The first nap, and how often it doubles. The longest nap bounds how late the end of a grace
/// period may be noticed.
const NAP_FIRST: Duration = Duration::from_micros(20);
const NAP_DOUBLINGS: u32 = 6;

const _: () = assert!(NAP_FIRST.as_micros() << NAP_DOUBLINGS <= 1_300, "as is promised");

/// Memory is got for twice the readers that there are, and this many more.
const ROOM: usize = 64;

impl GracePeriods {
    /// Gets memory for `readers` readers in all to register and be waited for.
    pub(crate) fn make_room(&self, readers: usize) {
        if sync::lock(&self.registry).has_room_for(readers) {
            return;
        }
        let mut room = [(); 2].map(|()| Vec::with_capacity(readers));
        sync::lock(&self.registry).take_room(&mut room);
        // The smaller memory is given back here, where nothing is locked.
    }

    /// The registry, locked, with room for one more reader. Memory for it is got while nothing is
    /// locked.
    pub(super) fn registry_with_room(&self) -> MutexGuard<'_, Registry> {
        loop {
            let registry = sync::lock(&self.registry);
            let readers = registry.len() + 1;
            if registry.has_room_for(readers) {
                return registry;
            }
            drop(registry);
            self.make_room(2 * readers + ROOM);
        }
    }

    /// Sleeps until some reader has left, or naps; the driver has slept `before` times already in
    /// this grace period.
    pub(super) fn sleep_beside_liburcu<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        driver: &Driver,
        links: &Links,
        before: u32,
    ) -> MutexGuard<'a, State> {
        let is_silent = links.readers == Readers::Silent;
        // A second sleep means that the first was ended for nothing: nap before it.
        let nap = (before != 0 || is_silent).then(|| NAP_FIRST * (1 << before.min(NAP_DOUBLINGS)));
        let words = links.words().filter(|_| !is_silent);
        let least = nap.unwrap_or(Duration::ZERO);
        let away = if words.is_some() { Away::sleeps(least) } else { Away::naps(least) };
        // A superseded driver may be about to sleep on the word, which is -1 again, and take the
        // only wake-up.
        let longest = (state.conduct.superseded != 0).then_some(NAP_FIRST * (1 << NAP_DOUBLINGS));
        self.away(state, away, || {
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
        })
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
        let Some(mut registry) = self.registry_as(driver) else { return };
        // Relaxed: the heavy fence follows [FR-1].
        words.futex.store(ASLEEP, Relaxed);
        if readers == Readers::Qsbr {
            fence::full(); // before the marks [FR-1]
        }
        registry.mark_holdouts();
        drop(registry);
        self.heavy_fence(); // [FR-1] //~ no-liburcu-fence

        //~ point marked
        let number = word::number(self.gp_words.gp.load(Relaxed)); // the driver's own store
        let Some(mut registry) = self.registry_as(driver) else { return };
        let holdouts = registry.holdouts().filter(|slot| slot.is_holdout(number)).count();
        //~ no-liburcu-look:
        if holdouts == 0 {
            words.futex.store(0, Relaxed); // so that no reader makes a system call
            return;
        }
        registry.marked = true;
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
    use crate::gp::gp_words::Surroundings;
    use crate::gp::grace_periods::{Me, Until};
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
        core.announce(grace::Number(1));
        let begin = || {
            let driver = core.begin_term(Until::MustWait { tick: false }, Me::NOBODY);
            core.scan(grace::Number(1), &driver);
            driver
        };
        let (first, late) = (begin(), AtomicU32::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
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
            let mut state = sync::lock(&core.state);
            state.conduct.superseded = 1;
            drop(core.sleep_beside_liburcu(state, &second, links, 0));
            assert!(!core.is_superseded(&second));
        });
        core.unregister(&SLOT);
    }
}
