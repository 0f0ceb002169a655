//! What a [`Registry`] does in a domain of liburcu readers, where Rust's may read as well.
//!
//! Memory for the former is got while it is not locked, and freed then: one may register in a
//! signal handler that has interrupted `malloc`, and the thread that holds the registry's lock must
//! not wait for `malloc`'s.

use super::Registry;
use crate::gp::record::Record;
use crate::gp::slot::SlotRef;
use crate::gp::wake::WAITED_FOR;
use crate::os::sync::{self, Mutex, MutexGuard};

/// Memory is got for twice the readers that there are, and this many more.
const ROOM: usize = 64;

/// Memory for more readers and as many holdouts, allocated while the registry is not locked. After
/// [`take_room`](Registry::take_room), the memory that the registry does not use any more.
type Room = [Vec<SlotRef>; 2];

impl Registry {
    /// The registry, locked, with room for `readers` readers in all, or for one more than there
    /// are. Memory for them is got while nothing is locked.
    pub(crate) fn lock_with_room(this: &Mutex<Self>, readers: usize) -> MutexGuard<'_, Self> {
        loop {
            let registry = sync::lock(this);
            let needed = readers.max(registry.len() + 1);
            if registry.has_room_for(needed) {
                return registry;
            }
            drop(registry);
            let wanted = if needed == readers { readers } else { 2 * needed + ROOM };
            let mut room = [(); 2].map(|()| Vec::with_capacity(wanted));
            sync::lock(this).take_room(&mut room);
            // The smaller memory is given back here, where nothing is locked.
        }
    }

    /// Whether `readers` readers can be registered, and all be holdouts, without an allocation.
    fn has_room_for(&self, readers: usize) -> bool {
        self.readers.capacity() >= readers && self.holdouts.capacity() >= readers
    }

    /// Uses the memory in `room` if it is larger. The caller drops `room` after it has released the
    /// lock.
    fn take_room(&mut self, room: &mut Room) {
        for (list, larger) in [&mut self.readers, &mut self.holdouts].into_iter().zip(room) {
            if larger.capacity() > list.capacity() {
                larger.clear();
                larger.extend_from_slice(list);
                std::mem::swap(list, larger);
            }
        }
    }

    /// Marks the holdouts of the last scan, so that each wakes the driver, which is about to sleep,
    /// when it leaves. A liburcu reader that is not QSBR checks `gp.futex` without a mark.
    pub(crate) fn mark_holdouts(&self) {
        for holdout in &self.holdouts {
            if !holdout.is_liburcu() {
                holdout.marks.set(WAITED_FOR);
            } else if holdout.is_qsbr() {
                // SAFETY: it is registered, so its record is valid.
                unsafe { Record::mark_waiting(holdout.0.cast()) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gp::engine::Settings;
    use crate::gp::slot::{ReaderKind, Slot};
    use crate::os::sync::AtomicU64;
    use grace::Number;
    use grace::word::{self, QUIESCENT};

    fn room_for(readers: usize) -> Room {
        [(); 2].map(|()| Vec::with_capacity(readers))
    }

    #[test]
    fn room_that_was_made_ahead_is_what_readers_and_holdouts_use() {
        let mut core =
            crate::gp::grace_periods::GracePeriods::new(grace::Start::ZERO, Settings::DEFAULT);
        core.make_liburcu(crate::gp::links::Readers::Silent);
        let slots: Vec<Slot> = (0..100).map(|_| Slot::new(QUIESCENT)).collect();
        let this = Mutex::new(sync::Rank::Registry, Registry::new(None));
        let mut registry = sync::lock(&this);
        assert!(!registry.has_room_for(1));
        registry.take_room(&mut room_for(100));
        let used = (registry.readers.as_ptr(), registry.holdouts.as_ptr());
        assert!(registry.has_room_for(slots.len()));
        drop(registry);
        for slot in &slots {
            let reader_kind = ReaderKind::Liburcu(crate::gp::links::Readers::Silent);
            let core = (&raw const core).cast();
            // SAFETY: each slot once; it outlives the registry.
            unsafe { Registry::register(&this, Some(slot), core, 1, reader_kind) };
            slot.word().store(word::entered(Number(1)), std::sync::atomic::Ordering::Relaxed);
        }
        let mut registry = sync::lock(&this);
        let gp = AtomicU64::new(word::entered(Number(2)));
        assert_eq!(registry.scan(Number(2), &gp), 100);
        assert_eq!(used, (registry.readers.as_ptr(), registry.holdouts.as_ptr()), "same memory");
        // With readers registered: they and the holdouts stay, and no smaller memory is taken.
        let mut room = room_for(50);
        registry.take_room(&mut room);
        assert_eq!(used, (registry.readers.as_ptr(), registry.holdouts.as_ptr()));
        let mut room = room_for(200);
        registry.take_room(&mut room);
        assert!(registry.has_room_for(200));
        assert_eq!(used, (room[0].as_ptr(), room[1].as_ptr()), "to be dropped outside the lock");
        assert_eq!((registry.len(), registry.holdouts().count()), (100, 100));
        for slot in &slots {
            slot.word().store(QUIESCENT, std::sync::atomic::Ordering::Relaxed);
            registry.unregister(slot);
        }
        assert_eq!((registry.len(), registry.holdouts().count()), (0, 0));
    }
}
