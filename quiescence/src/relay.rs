//! The relay of the engine `token`: QSBR readers hand the number of a grace period on.
//!
//! Under the other engines every reader copies `gp.ctr` at a quiescent state, and the updater looks at
//! every reader's word. Here the readers stand in *chains* of up to [`CHAIN`]: the first copies
//! `gp.ctr`, every other one its predecessor's word. When the last word of a chain shows the number,
//! every reader of the chain has had a quiescent state since it was announced; so the updater looks at
//! one line for each chain. No reader executes an atomic instruction, and none writes a line but its
//! own. After rcu_sched, whose token runs through all processors one after the other, with its counter
//! of pending callbacks; chains bound the time, and idle readers are passed over.
//!
//! **Invariant [T-1]: a reader's word shows the number of the grace period in progress only if every
//! reader before it in its chain has had a quiescent state, or been offline, since it was announced.**
//! Four rules keep it:
//! 1. Chains change between grace periods, before the number is announced ([`Relay::link`]). A reader
//!    that saw its source before and the number after looks at its source once more
//!    (`Slot::renew`): whoever has acquired the number sees the links that were made before it.
//! 2. A reader that comes online records a number *before* the current one (`Slot::online`), so that
//!    its successor does not take it for one that has passed.
//! 3. A reader that is offline when the driver looks is passed over: its successor copies `gp.ctr`
//!    from then on, for everybody before has passed ([`Relay::pass_over`]).
//! 4. A reader that unregisters leaves its source to its successor ([`Relay::remove`]).
//!
//! A reader that registers in mid grace period stands in no chain until the next one: it need not be
//! waited for, and nobody copies from it.

use std::sync::atomic::Ordering::Acquire;

use crate::chaos::{self, Mutant};
use crate::os::sync::AtomicU64;
use crate::slot::Slot;
use grace::{Number, word};

/// Readers in a chain: a grace period takes as many quiescent states, one after the other, and costs
/// the updater a look at one line for so many readers.
const CHAIN: usize = if cfg!(loom) { 3 } else { 16 };

/// The chains of a domain. Under the registry's lock.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    /// The readers in the order of their chains; null where one has unregistered.
    stations: Vec<*const Slot>,
    /// For each chain the first station that has not been seen to have passed.
    next: Vec<usize>,
    /// Whether the links are to be made anew before the next number is announced.
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

    /// A reader unregisters: who copied from it copies from its source.
    ///
    /// # Safety
    /// The stations are slots that live.
    pub(crate) unsafe fn remove(&mut self, slot: &Slot) {
        let station = slot.station();
        if self.stations.get(station).is_none_or(|other| !std::ptr::eq(*other, slot)) {
            return; // it had no place yet
        }
        self.is_stale = true;
        // SAFETY: the caller's word.
        if let Some(successor) = unsafe { self.successor(station) } {
            successor.set_source(slot.source());
        }
        self.stations[station] = std::ptr::null();
    }

    /// In a child process: links are made anew for those who are left.
    #[cfg(not(loom))]
    pub(crate) fn clear(&mut self) {
        self.stations.clear();
        self.next.clear();
        self.is_stale = true;
    }

    /// Before a number is announced: everybody has a place, and the token is at the heads.
    ///
    /// # Safety
    /// The readers are slots that live, and so does `gp`, as long as they do.
    pub(crate) unsafe fn link(&mut self, readers: &[*const Slot], gp: &AtomicU64) {
        if self.is_stale {
            self.is_stale = false;
            // SAFETY: the caller's word.
            let is_qsbr = |slot: &&*const Slot| unsafe { &***slot }.is_qsbr();
            self.stations.clear();
            self.stations.extend(readers.iter().filter(is_qsbr));
            for (station, slot) in self.stations.iter().enumerate() {
                // SAFETY: the caller's word.
                let slot = unsafe { &**slot };
                let source = if station.is_multiple_of(CHAIN) {
                    gp
                } else {
                    // SAFETY: the caller's word.
                    unsafe { &*self.stations[station - 1] }.word()
                };
                slot.set_station(station);
                slot.set_source(source);
            }
        }
        self.next.clear();
        self.next.extend((0..self.stations.len()).step_by(CHAIN));
    }

    /// Looks for the token; answers how many chains it has not run through.
    ///
    /// # Safety
    /// The stations are slots that live, and so does `gp`, as long as they do.
    pub(crate) unsafe fn look(&mut self, number: Number, gp: &AtomicU64) -> usize {
        // SAFETY: the caller's word.
        (0..self.next.len())
            .filter(|chain| !unsafe { self.ran_through(*chain, number, gp) })
            .count()
    }

    /// Whether the token has run through this chain. Passes over who is offline.
    ///
    /// # Safety
    /// As `look`.
    unsafe fn ran_through(&mut self, chain: usize, number: Number, gp: &AtomicU64) -> bool {
        let end = ((chain + 1) * CHAIN).min(self.stations.len());
        // The last one speaks for all [T-1].
        // SAFETY: the caller's word.
        let last = unsafe { self.stations[end - 1].as_ref() };
        if last.is_some_and(|last| has_passed(last, number)) {
            self.next[chain] = end;
        }
        while self.next[chain] < end {
            let station = self.next[chain];
            // SAFETY: the caller's word.
            if let Some(slot) = unsafe { self.stations[station].as_ref() }
                && !has_passed(slot, number)
            {
                // Acquire: pairs with the Release in `leave` [GP-2].
                if word::nesting(slot.word().load(Acquire)) != 0 {
                    return false;
                }
                // SAFETY: the caller's word.
                unsafe { self.pass_over(station, gp) };
            }
            self.next[chain] = station + 1;
        }
        true
    }

    /// The reader at this station is offline, and all before it have passed.
    ///
    /// # Safety
    /// As `look`.
    unsafe fn pass_over(&mut self, station: usize, gp: &AtomicU64) {
        if chaos::mutant(Mutant::NoPassingOver) {
            return;
        }
        // SAFETY: the caller's word.
        if let Some(successor) = unsafe { self.successor(station) } {
            successor.set_source(gp);
            self.is_stale = true;
        }
    }

    /// Who copies from the reader at this station.
    ///
    /// # Safety
    /// The stations are slots that live.
    unsafe fn successor(&self, station: usize) -> Option<&Slot> {
        let end = (station / CHAIN + 1) * CHAIN;
        let end = end.min(self.stations.len());
        let after = &self.stations[station + 1..end];
        // SAFETY: the caller's word.
        after.iter().find_map(|slot| unsafe { slot.as_ref() })
    }
}

/// Whether the token has passed this reader.
fn has_passed(slot: &Slot, number: Number) -> bool {
    // Acquire: pairs with the Release in `renew` [GP-2]; and through its Acquire of the predecessor's
    // word with those of all before it.
    slot.word().load(Acquire) == word::entered(number)
}
