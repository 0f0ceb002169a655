//! The relay of the engine `token`: QSBR readers pass the number of a grace period on.
//!
//! Under the other engines every reader copies `gp.ctr` at a quiescent state, and the updater loads
//! every reader's word. Here the readers form *chains* of up to [`CHAIN`]: the first copies
//! `gp.ctr`, every other one its predecessor's word. When the last word of a chain shows the
//! number, every reader of the chain has had a quiescent state since it was announced; so the
//! updater loads one line for each chain. No reader executes an atomic instruction, and none writes
//! a line but its own. After rcu_sched, whose token, with its counter of pending callbacks, runs
//! through all CPUs one after the other; chains bound the time, and offline readers are skipped.
//!
//! **Invariant [RL-1]: a reader's word shows the number of the grace period in progress only if
//! every reader before it in its chain has had a quiescent state, or been offline, since it was
//! announced.** Four rules keep it:
//! 1. Chains change between grace periods, before the number is announced ([`Relay::link`]). A
//!    reader that loaded its source before the change and the number after it loads its source once
//!    more (`Slot::renew`): a thread that has acquired the number sees the links that were made
//!    before it.
//! 2. A reader that comes online first shows a word that no grace period announces
//!    (`qsbr::ARRIVED`), so that its successor does not take it for one that has passed.
//! 3. A reader that is offline when the driver scans is skipped. The first one that is online and
//!    has not passed may copy `gp.ctr`, since all before it have passed; and it must, if its
//!    predecessor does not show the number any more ([`Relay::let_through`]).
//! 4. A reader that unregisters hands its source to its successor ([`Relay::remove`]).
//!
//! A reader that registers during a grace period is in no chain until the next one: it need not be
//! waited for, and no thread copies from it.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::gp::slot::Slot;
use crate::os::sync::AtomicU64;
use grace::{Number, word};

/// Readers in a chain: a grace period takes up to this many quiescent states, one after the other,
/// and costs the updater a load of one line for each chain.
const CHAIN: usize = if cfg!(loom) { 3 } else { 16 };

/// The chains of a domain. Under the registry's lock.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    /// The readers in the order of their chains; null where one has unregistered.
    stations: Vec<*const Slot>,
    /// For each chain the first station that has not been seen to have passed.
    next: Vec<usize>,
    /// Whether the links must be rebuilt before the next number is announced.
    is_stale: bool,
}

impl Relay {
    pub(crate) const fn new() -> Self {
        Self { stations: Vec::new(), next: Vec::new(), is_stale: false }
    }

    /// A reader has registered: it has its place from the next grace period on.
    pub(crate) fn add(&mut self) {
        self.is_stale = true;
    }

    /// A reader unregisters: the one that copied from it copies from its source.
    ///
    /// # Safety
    /// The stations are slots that live.
    pub(crate) unsafe fn remove(&mut self, slot: &Slot) {
        let station = slot.station();
        if self.stations.get(station).is_none_or(|other| !std::ptr::eq(*other, slot)) {
            return; // it had no place yet
        }
        self.is_stale = true;
        // SAFETY: by the contract.
        if let Some(successor) = unsafe { self.successor(station) }
            && std::ptr::eq(successor.source(), slot.word())
        {
            successor.set_source(slot.source());
        }
        self.stations[station] = std::ptr::null();
    }

    /// Before a number is announced: every QSBR reader gets a place, and each chain begins at its
    /// head.
    ///
    /// # Safety
    /// The readers are slots that live, and so does `gp`, as long as they do.
    pub(crate) unsafe fn link(&mut self, readers: &[*const Slot], gp: &AtomicU64) {
        if self.is_stale {
            self.is_stale = false;
            // SAFETY: by the contract.
            let is_qsbr = |slot: &&*const Slot| unsafe { &***slot }.is_qsbr();
            self.stations.clear();
            self.stations.extend(readers.iter().filter(is_qsbr));
            for (station, slot) in self.stations.iter().enumerate() {
                // SAFETY: by the contract.
                let slot = unsafe { &**slot };
                let source = if station.is_multiple_of(CHAIN) {
                    gp
                } else {
                    // SAFETY: by the contract.
                    unsafe { &*self.stations[station - 1] }.word()
                };
                slot.set_station(station);
                slot.set_source(source);
            }
        }
        self.next.clear();
        self.next.extend((0..self.stations.len()).step_by(CHAIN));
    }

    /// Looks for the token. Returns how many chains it has not run through yet.
    ///
    /// # Safety
    /// The stations are slots that live, and so does `gp`, as long as they do.
    pub(crate) unsafe fn scan(&mut self, number: Number, gp: &AtomicU64) -> usize {
        // SAFETY: by the contract.
        (0..self.next.len())
            .filter(|chain| !unsafe { self.ran_through(*chain, number, gp) })
            .count()
    }

    /// For each chain that the token has not run through, the next online reader that has not
    /// passed. Changes nothing.
    ///
    /// # Safety
    /// The stations are slots that live.
    pub(crate) unsafe fn resting(&self, number: Number) -> impl Iterator<Item = &Slot> {
        self.next.iter().enumerate().filter_map(move |(chain, next)| {
            let end = ((chain + 1) * CHAIN).min(self.stations.len());
            self.stations.get(*next..end)?.iter().find_map(|slot| {
                // SAFETY: by the contract.
                let slot = unsafe { slot.as_ref() }?;
                // Relaxed: it is reported, and decides nothing.
                let is_online = word::nesting(slot.word().load(Relaxed)) != 0;
                (is_online && !has_passed(slot, number)).then_some(slot)
            })
        })
    }

    /// Whether the token has run through `chain`. Skips readers that are offline, and lets the
    /// first other reader continue.
    ///
    /// # Safety
    /// As `scan`.
    unsafe fn ran_through(&mut self, chain: usize, number: Number, gp: &AtomicU64) -> bool {
        let end = ((chain + 1) * CHAIN).min(self.stations.len());
        // If the last one has passed, all have [RL-1].
        // SAFETY: by the contract.
        let last = unsafe { self.stations[end - 1].as_ref() };
        if last.is_some_and(|last| has_passed(last, number)) {
            self.next[chain] = end;
        }
        while self.next[chain] < end {
            let station = self.next[chain];
            // SAFETY: by the contract.
            if let Some(slot) = unsafe { self.stations[station].as_ref() }
                && !has_passed(slot, number)
            {
                // Acquire: pairs with the Release in `offline` [GP-2].
                if word::nesting(slot.word().load(Acquire)) != 0 {
                    self.let_through(slot, number, gp);
                    return false;
                }
            }
            self.next[chain] = station + 1;
        }
        true
    }

    /// All before `slot` have passed. If the reader that it copies from does not show the number,
    /// since it went offline before or after it passed, `slot` copies `gp.ctr`.
    fn let_through(&mut self, slot: &Slot, number: Number, gp: &AtomicU64) {
        //~ no-passing-over
        // Relaxed: that they have passed was acquired when they were scanned. If a predecessor
        // stops showing the number later, the next scan finds it.
        if slot.source().load(Relaxed) != word::entered(number) {
            slot.set_source(gp);
            self.is_stale = true;
        }
    }

    /// The reader that copies from the one at `station`.
    ///
    /// # Safety
    /// The stations are slots that live.
    unsafe fn successor(&self, station: usize) -> Option<&Slot> {
        let end = (station / CHAIN + 1) * CHAIN;
        let end = end.min(self.stations.len());
        let after = &self.stations[station + 1..end];
        // SAFETY: by the contract.
        after.iter().find_map(|slot| unsafe { slot.as_ref() })
    }
}

/// Whether the token has passed this reader.
fn has_passed(slot: &Slot, number: Number) -> bool {
    // Acquire: pairs with the Release in `renew` [GP-2]; and through its Acquire of the
    // predecessor's word with those of all before it.
    slot.word().load(Acquire) == word::entered(number)
}

/// Step by step, without threads: what a driver must get past, and what it must not.
#[cfg(test)]
mod tests {
    use std::panic::Location;

    use grace::policy::Budget;
    use grace::{Cookie, Number, Start, Urgency, word};

    use crate::gp::engine::{Engine, Settings};
    use crate::gp::grace_periods::{GracePeriods, Me};
    use crate::gp::slot::{ReaderKind, Slot};

    /// The driver has no slot of its own.
    const STRANGER: Me = Me::NOBODY;

    fn core() -> GracePeriods {
        let start = Start { number_bits: 2, ..Start::ZERO };
        GracePeriods::new(start, Settings::of(Engine::Token, Budget::DEFAULT))
    }

    fn online(core: &GracePeriods) -> &Slot {
        let slot = core.register(1, ReaderKind::Qsbr);
        slot.online(&core.gp_words.gp, Location::caller());
        slot
    }

    fn start(core: &GracePeriods) -> Cookie {
        let cookie = core.request(Urgency::Normal);
        core.advance(STRANGER);
        cookie
    }

    /// The driver scans. Returns whether the grace period has ended.
    fn look(core: &GracePeriods, cookie: Cookie) -> bool {
        core.advance_at_tick(STRANGER);
        core.sequence().is_done(cookie)
    }

    #[test]
    fn who_has_passed_and_gone_offline_holds_nobody_up() {
        let core = core();
        let (first, second) = (online(&core), online(&core));
        let cookie = start(&core);
        first.renew();
        assert!(!look(&core, cookie), "the second has done nothing");
        first.offline();
        second.renew();
        look(&core, cookie);
        second.renew();
        assert!(look(&core, cookie));
    }

    #[test]
    fn who_is_passed_over_and_unregisters_takes_nothing_back() {
        let core = core();
        let [first, second, third] = [(); 3].map(|()| online(&core));
        second.offline();
        let cookie = start(&core);
        first.renew();
        assert!(!look(&core, cookie), "the third has done nothing");
        first.offline();
        core.unregister(second);
        third.renew();
        look(&core, cookie);
        third.renew();
        assert!(look(&core, cookie));
    }

    /// Going offline and coming back is a quiescent state like any other, whenever the driver
    /// scans.
    #[test]
    fn who_is_offline_between_two_looks_has_passed() {
        let core = core();
        let readers = [(); 2].map(|()| online(&core));
        let cookie = start(&core);
        for slot in readers {
            assert!(!look(&core, cookie), "this one is still in its first section");
            slot.offline();
            slot.online(&core.gp_words.gp, Location::caller());
        }
        assert!(look(&core, cookie));
    }

    /// Even a reader that stalls in `online` for as many grace periods as there are numbers stores
    /// none of them.
    #[test]
    fn who_comes_online_shows_no_number_of_its_own() {
        let core = core();
        let (first, second) = (online(&core), online(&core));
        let _cookie = start(&core);
        first.offline();
        second.offline();
        second.online(&core.gp_words.gp, Location::caller());
        let shown = second.word().load(std::sync::atomic::Ordering::Relaxed);
        assert_ne!(word::nesting(shown), 0, "it is online");
        for number in 0..4 {
            assert_ne!(shown, word::entered(Number(number)));
        }
    }

    /// In a child process a reader may be left whose predecessor is gone.
    #[test]
    fn who_is_left_after_a_fork_copies_from_nobody_who_is_gone() {
        let core = core();
        let gone = online(&core);
        let left = core.register(2, ReaderKind::Qsbr);
        left.online(&core.gp_words.gp, Location::caller());
        let cookie = start(&core);
        gone.renew();
        left.renew();
        assert!(look(&core, cookie));
        core.after_fork(2);
        let other = core.register(3, ReaderKind::Ordinary);
        assert!(std::ptr::eq(other, gone), "in the slot of the one that is gone");
        other.enter_slow(&core.gp_words.gp, Location::caller());
        other.enter_slow(&core.gp_words.gp, Location::caller());
        left.renew();
        left.offline();
        assert!(left.is_quiescent());
        let cookie = start(&core);
        left.online(&core.gp_words.gp, Location::caller());
        assert!(!look(&core, cookie), "two readers are inside");
        other.leave();
        other.leave();
        assert!(look(&core, cookie));
    }
}
