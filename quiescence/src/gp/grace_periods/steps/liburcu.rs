//! Steps that only liburcu readers need: they register in memory of the program's own, and a QSBR
//! reader that is alone ends a grace period without going offline.

use std::ptr;

use grace::{Action, Cookie, Urgency};

use super::{GracePeriods, Locked};
use crate::gp::registry::Registry;
use crate::gp::slot::{ReaderKind, Slot};

impl GracePeriods {
    /// As [`register`](Self::register), for a slot in the program's own memory.
    ///
    /// # Safety
    /// `slot` is unused, and valid until it is unregistered.
    pub(crate) unsafe fn register_at(
        &self,
        slot: *const Slot,
        owner: usize,
        reader_kind: ReaderKind,
    ) {
        let core = ptr::from_ref(self).cast();
        // SAFETY: the registry is this domain's; the slot by the contract.
        unsafe { Registry::register(&self.registry, Some(slot), core, owner, reader_kind) };
    }

    /// Gets memory for `readers` readers in all to register and be waited for; for one more than
    /// there are, if that is more.
    pub(crate) fn make_room(&self, readers: usize) {
        drop(Registry::lock_with_room(&self.registry, readers));
    }
}

impl Locked<'_> {
    /// Carries out a grace period in one hold of the lock, if the only readers are `own` ones of
    /// the caller. If there are others, the machine stays where it is, and the next driver
    /// continues from there. Returns whether it has ended.
    ///
    /// # Safety
    /// So many readers are the calling thread's, and it holds no reference by any of them.
    pub(in crate::gp::grace_periods) unsafe fn end_if_alone(&mut self, own: usize) -> bool {
        let is_wanted = self.driven || self.machine().is_wanted();
        //~ alone-beside-driver:
        if is_wanted {
            return false;
        }
        let _: Cookie = self.request(Urgency::Normal);
        if self.poll() != Action::Fence || self.begin_with(|_| own).is_some() {
            return false;
        }
        self.end_alone();
        true
    }
}
