//! The scan: which readers of a domain hold up a grace period, and how they wake the driver that
//! sleeps until they leave.
//!
//! Done under the registry's lock. The first scan under a number checks all readers; those that it
//! finds in a section that began before are the holdouts, and later scans check only these.

use grace::Number;

use crate::gp::registry::Registry;
use crate::gp::slot::Slot;
use crate::os::sync::AtomicU64;

impl Registry {
    /// Checks every reader in the first scan under `number`, and the holdouts in later ones. The
    /// relay checks the QSBR readers that pass the number on. Returns the number of holdouts, plus
    /// the number of the relay's chains that are not through.
    pub(crate) fn scan(&mut self, number: Number, gp: &AtomicU64) -> usize {
        //~ no-scan
        if self.pass == Some(number) {
            // SAFETY: see `register`.
            self.holdouts.retain(|slot| unsafe { &**slot }.is_holdout(number));
        } else {
            let relays = self.relay.is_some();
            //~ skip-last-reader:
            let holdouts = self.readers.iter().filter(|slot| {
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

    /// Marks the holdouts of the last scan, so that each wakes the driver, which is about to sleep,
    /// when it leaves. A liburcu reader that is not QSBR checks `gp.futex` without a mark.
    pub(crate) fn mark_holdouts(&mut self) {
        self.marked = false;
        for &holdout in &self.holdouts {
            // SAFETY: see `register`.
            let slot = unsafe { &*holdout };
            if !slot.is_liburcu() {
                slot.mark_waited_for();
                continue;
            }
            if slot.is_qsbr() {
                // SAFETY: the slot of a liburcu reader is the beginning of its record, and
                // registered.
                unsafe { crate::gp::record::Record::mark_waiting(holdout.cast()) };
            }
        }
    }

    /// The driver has marked the holdouts and has checked them once more.
    pub(crate) fn set_marked(&mut self) {
        self.marked = true;
    }

    /// Whether a sleeping driver has only to be woken.
    pub(crate) fn is_marked(&self) -> bool {
        self.marked
    }

    /// Clears the marks of a superseded driver. Returns how many: those readers will not report.
    pub(crate) fn withdraw_marks(&mut self) -> u32 {
        self.marked = false;
        let marked = self.holdouts().filter(|slot| !slot.is_liburcu() && slot.clear_waited_for());
        marked.count() as u32
    }

    /// The readers that hold up the grace period under `number`: those that the last scan found and
    /// that still do, and those that the relay waits for.
    pub(crate) fn holding_up(&self, number: Number) -> impl Iterator<Item = &Slot> {
        // SAFETY: see `register`.
        let resting = self.relay.iter().flat_map(move |relay| unsafe { relay.resting(number) });
        self.holdouts().filter(move |slot| slot.is_holdout(number)).chain(resting)
    }
}
