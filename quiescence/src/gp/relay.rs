//! The relay: under the engine `token` QSBR readers pass the number of a grace period on.
//!
//! The registry scans all other readers itself: an error here ends a grace period too early for
//! QSBR readers of a domain with that engine, and for nobody else.
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
//!    ([`ARRIVED`]), so that its successor does not take it for one that has passed.
//! 3. A reader that is offline when the driver scans is skipped. The first one that is online and
//!    has not passed may copy `gp.ctr`, since all before it have passed; and it must, if its
//!    predecessor does not show the number any more ([`Relay::let_through`]).
//! 4. A reader that unregisters hands its source to its successor ([`Relay::remove`]).
//!
//! A reader that registers during a grace period is in no chain until the next one: it need not be
//! waited for, and no thread copies from it.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use grace::Number;
use grace::word::{self, COUNT};

use crate::gp::slot::{Slot, SlotRef};
use crate::os::sync::AtomicU64;

/// The word of a QSBR reader in a [`Relay`] from when it comes online until it first hands a number
/// on. Its nesting, 2, shows the reader online, and differs from that of `gp.ctr`, always 1. So the
/// successor does not take the reader for one that has passed, however long it stalls before it
/// stores this.
pub(super) const ARRIVED: u64 = 2 * COUNT;

impl Slot {
    /// The word at the source, if it hands a number on. `source` and `current` were loaded before.
    ///
    /// The links of a grace period are made before its number is announced, so a thread that has
    /// acquired the number sees them: if the source is the same as before, it is the right one
    /// [RL-1].
    pub(super) fn relayed(&self, mut source: *mut AtomicU64, mut current: u64) -> Option<u64> {
        loop {
            if word::nesting(current) != 1 {
                // The predecessor is offline, and the updater will pass it over; or it shows
                // `ARRIVED`; or its slot is an ordinary reader's by now.
                return None;
            }
            let again = self.notes.source.load(Acquire);
            //~ no-second-source:
            if again == source {
                return Some(current);
            }
            source = again;
            // SAFETY: as in `renew`. Acquire: likewise.
            current = unsafe { &*source }.load(Acquire);
        }
    }
}

/// Readers in a chain: a grace period takes up to this many quiescent states, one after the other,
/// and costs the updater a load of one line for each chain.
const CHAIN: usize = if cfg!(loom) { 3 } else { 16 };

/// The chains of a domain. Under the registry's lock.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    /// The readers in the order of their chains; `None` where one has unregistered.
    stations: Vec<Option<SlotRef>>,
    /// For each chain the first station that has not been seen to have passed.
    next: Vec<usize>,
    /// Whether the links must be rebuilt before the next number is announced.
    pub(super) is_stale: bool,
}

impl Relay {
    pub(crate) const fn new() -> Self {
        Self { stations: Vec::new(), next: Vec::new(), is_stale: false }
    }

    /// A reader unregisters: the one that copied from it copies from its source.
    pub(crate) fn remove(&mut self, slot: &Slot) {
        let station = slot.notes.station.get();
        if !matches!(self.stations.get(station), Some(Some(other)) if std::ptr::eq(other.0, slot)) {
            return; // it had no place yet
        }
        self.is_stale = true;
        let after = &self.stations[station + 1..self.end_of(station / CHAIN)];
        // The reader that copies from this one.
        if let Some(successor) = after.iter().flatten().next()
            && std::ptr::eq(successor.notes.source(), slot.word())
        {
            successor.notes.set_source(slot.notes.source());
        }
        self.stations[station] = None;
    }

    /// Before a number is announced: every QSBR reader gets a place, and each chain begins at its
    /// head. `gp` lives as long as the readers.
    pub(super) fn link(&mut self, readers: &[SlotRef], gp: &AtomicU64) {
        if self.is_stale {
            self.is_stale = false;
            self.stations.clear();
            let mut source = gp;
            for (station, slot) in readers.iter().filter(|slot| slot.is_qsbr()).enumerate() {
                if station.is_multiple_of(CHAIN) {
                    source = gp;
                }
                slot.notes.station.set(station);
                slot.notes.set_source(source);
                source = slot.word();
                self.stations.push(Some(*slot));
            }
        }
        self.next.clear();
        self.next.extend((0..self.stations.len()).step_by(CHAIN));
    }

    /// Looks for the token. Returns how many chains it has not run through yet. `gp` lives as long
    /// as the readers.
    pub(crate) fn scan(&mut self, number: Number, gp: &AtomicU64) -> usize {
        (0..self.next.len()).filter(|chain| !self.ran_through(*chain, number, gp)).count()
    }

    /// For each chain that the token has not run through, the next online reader that has not
    /// passed. Changes nothing.
    pub(crate) fn resting(&self, number: Number) -> impl Iterator<Item = &Slot> {
        self.next.iter().enumerate().filter_map(move |(chain, next)| {
            let mut rest = self.stations.get(*next..self.end_of(chain))?.iter().flatten();
            // Relaxed: it is reported, and decides nothing.
            let is_online = |slot: &SlotRef| word::nesting(slot.word().load(Relaxed)) != 0;
            rest.find(|slot| is_online(slot) && !has_passed(slot, number)).map(|slot| &**slot)
        })
    }

    /// The station after the last one of a chain.
    fn end_of(&self, chain: usize) -> usize {
        ((chain + 1) * CHAIN).min(self.stations.len())
    }

    /// Whether the token has run through `chain`. Skips readers that are offline, and lets the
    /// first other reader continue.
    fn ran_through(&mut self, chain: usize, number: Number, gp: &AtomicU64) -> bool {
        let end = self.end_of(chain);
        // If the last one has passed, all have [RL-1].
        if self.stations[end - 1].is_some_and(|last| has_passed(&last, number)) {
            self.next[chain] = end;
        }
        while self.next[chain] < end {
            let station = self.next[chain];
            if let Some(slot) = self.stations[station]
                && !has_passed(&slot, number)
                // Acquire: pairs with the Release in `offline` [GP-2].
                && word::nesting(slot.word().load(Acquire)) != 0
            {
                self.let_through(&slot, number, gp);
                return false;
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
        if slot.notes.source().load(Relaxed) != word::entered(number) {
            slot.notes.set_source(gp);
            self.is_stale = true;
        }
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
        let cookie = core.lock().request(Urgency::Normal);
        core.advance(STRANGER);
        cookie
    }

    /// The driver scans. Returns whether the grace period has ended.
    fn look(core: &GracePeriods, cookie: Cookie) -> bool {
        core.advance_at(STRANGER, true);
        core.sequence().is_done(cookie)
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
        // SAFETY: the other reader has only its slot, which it does not use again.
        unsafe { core.keep_only(2) };
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
