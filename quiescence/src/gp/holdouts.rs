//! The scan: which readers of a domain hold a grace period up, and how they wake the driver that
//! sleeps until they leave.
//!
//! Done under the registry's lock. The first scan under a number goes over all readers; those that
//! it finds in a section that began before are the holdouts, and later scans go over these alone.

use grace::Number;

use crate::chaos::{self, Mutant};
use crate::gp::reader::Slot;
use crate::gp::registry::Registry;
use crate::os::sync::AtomicU64;

impl Registry {
    /// Looks at every reader the first time under a number, and then at those who held it up
    /// before. QSBR readers that hand the number on are looked at by the relay. Returns how many
    /// hold it up.
    pub(crate) fn scan(&mut self, number: Number, gp: &AtomicU64) -> usize {
        if chaos::mutant(Mutant::NoScan) {
            return 0;
        }
        if self.pass == Some(number) {
            // SAFETY: see `register`.
            self.holdouts.retain(|slot| unsafe { &**slot }.is_holdout(number));
        } else {
            let skip = usize::from(chaos::mutant(Mutant::SkipLastReader));
            let looked_at = &self.readers[..self.readers.len().saturating_sub(skip)];
            let relays = self.relay.is_some();
            let holdouts = looked_at.iter().filter(|slot| {
                // SAFETY: see `register`.
                let slot = unsafe { &***slot };
                !(relays && slot.is_qsbr()) && slot.is_holdout(number)
            });
            self.holdouts.clear();
            self.holdouts.extend(holdouts);
            self.pass = Some(number);
        }
        let resting = self.relay.as_mut().map_or(0, |relay| {
            // SAFETY: see `register`; `gp` is the domain's, which owns this registry.
            unsafe { relay.scan(number, gp) }
        });
        self.holdouts.len() + resting
    }

    /// The readers that the last scan found inside a section.
    pub(crate) fn holdouts(&self) -> impl Iterator<Item = &Slot> {
        // SAFETY: see `register`.
        self.holdouts.iter().map(|slot| unsafe { &**slot })
    }

    /// Has the readers that the last scan found inside a section tell the driver, which is about to
    /// sleep, when they leave. A liburcu one looks at `gp.futex` by itself, but for a QSBR reader.
    pub(crate) fn mark_holdouts(&mut self) {
        self.marked = false;
        for &holdout in &self.holdouts {
            // SAFETY: see `register`.
            let slot = unsafe { &*holdout };
            if !slot.is_liburcu() {
                slot.mark_waited_for();
                continue;
            }
            #[cfg(not(loom))]
            if slot.is_qsbr() {
                // SAFETY: the slot of a liburcu reader is the beginning of its record, and
                // registered.
                unsafe { crate::gp::record::Record::mark_waiting(holdout.cast()) };
            }
        }
    }

    /// The driver has looked at the holdouts again that it has marked.
    pub(crate) fn set_marked(&mut self) {
        self.marked = true;
    }

    /// Whether a sleeping driver has nothing left to do but to be woken.
    pub(crate) fn is_marked(&self) -> bool {
        self.marked
    }

    /// Takes the marks of a superseded driver away. Returns how many readers will not report.
    pub(crate) fn withdraw_marks(&mut self) -> u32 {
        self.marked = false;
        let marked = self.holdouts().filter(|slot| !slot.is_liburcu() && slot.clear_waited_for());
        marked.count() as u32
    }

    /// The readers that hold up the grace period under `number`, as of the last scan and of now:
    /// readers in sections that began before, and those that the relay waits for.
    #[cfg(not(loom))]
    pub(crate) fn holding_up(&self, number: Number) -> impl Iterator<Item = &Slot> {
        // SAFETY: see `register`.
        let resting = self.relay.iter().flat_map(move |relay| unsafe { relay.resting(number) });
        self.holdouts().filter(move |slot| slot.is_holdout(number)).chain(resting)
    }
}
