//! The registry of a domain: its readers. The scan in [`holdouts`](super::holdouts) finds which of
//! them hold the grace period up.
//!
//! Slots live in chunks that are never moved, and not freed while the domain lives, so a pointer to
//! a slot stays valid. A chunk's are contiguous, so a scan of ten thousand runs at memory speed.
//! Everything here is done under one lock, which no thread holds while it waits: threads register
//! while a grace period waits for a stalled reader.
//!
//! **Invariant [RG-1]: a reader is in `readers` from before its first section to after its last.**
//! The lock orders a registration before a scan, which then sees the reader, or after it, and then
//! the reader sees what was published before the scan [GP-5].
//!
//! For liburcu readers, memory is allocated before the lock is taken ([`Room`]), and freed after it
//! is released: a reader may register in a signal handler that has interrupted `malloc`, and the
//! thread that holds this lock must not wait for `malloc`'s.

use crate::gp::gp_words::GpWords;
use crate::gp::relay::Relay;
use crate::gp::slot::{ReaderKind, Slot};
use crate::os::fence;
use crate::os::sync::AtomicU64;
use grace::Number;
use grace::word::QUIESCENT;
use std::ptr::NonNull;

/// Slots in a chunk: 64 of 128 bytes are two pages.
const CHUNK: usize = if cfg!(loom) { 3 } else { 64 };

/// The readers of a domain. See the module.
#[derive(Debug)]
pub(crate) struct Registry {
    /// Each is a leaked box, as a box must not be moved while pointers into it exist.
    chunks: Vec<NonNull<[Slot]>>,
    free: Vec<*const Slot>,
    pub(super) readers: Vec<*const Slot>,
    /// How many readers have light fences, so that the updater's must be heavy.
    light: usize,
    /// Readers that the pass under `pass` waits for.
    pub(super) holdouts: Vec<*const Slot>,
    /// The number that was last scanned; `None` before the first scan.
    pub(super) pass: Option<Number>,
    /// Whether the driver that sleeps, or slept last, has marked its holdouts and checked them a
    /// second time: each of them that holds it up still will report.
    pub(super) marked: bool,
    /// How the QSBR readers hand the number on, under the engine `token`.
    pub(super) relay: Option<Relay>,
}

// SAFETY: the pointers lead into `chunks`, which move with the registry, or to liburcu readers'
// slots, which are valid while registered; what they point to is Sync.
unsafe impl Send for Registry {}

/// Memory for more readers, allocated while the registry is not locked. After
/// [`take_room`](Registry::take_room), the memory that the registry does not use any more.
#[derive(Debug)]
pub(crate) struct Room {
    readers: Vec<*const Slot>,
    holdouts: Vec<*const Slot>,
}

impl Room {
    pub(crate) fn new(readers: usize) -> Self {
        Self { readers: Vec::with_capacity(readers), holdouts: Vec::with_capacity(readers) }
    }
}

/// If `larger` has more capacity, copies `list` to it and swaps the two. Allocates and frees
/// nothing.
fn exchange(list: &mut Vec<*const Slot>, larger: &mut Vec<*const Slot>) {
    if larger.capacity() > list.capacity() {
        larger.clear();
        larger.extend_from_slice(list);
        std::mem::swap(list, larger);
    }
}

impl Registry {
    pub(crate) const fn new(relay: Option<Relay>) -> Self {
        Self {
            chunks: Vec::new(),
            free: Vec::new(),
            readers: Vec::new(),
            light: 0,
            holdouts: Vec::new(),
            pass: None,
            marked: false,
            relay,
        }
    }

    /// Registers a reader. The caller executes a fence after it has released the lock [GP-5].
    pub(crate) fn register(
        &mut self,
        core: *const GpWords,
        owner: usize,
        reader_kind: ReaderKind,
    ) -> *const Slot {
        if self.free.is_empty() {
            let chunk: Box<[Slot]> = (0..CHUNK).map(|_| Slot::new(QUIESCENT)).collect();
            let chunk = NonNull::from(Box::leak(chunk));
            self.chunks.push(chunk);
            // SAFETY: leaked above, and freed by `drop` only.
            self.free.extend(unsafe { chunk.as_ref() }.iter().rev().map(std::ptr::from_ref));
        }
        let slot = self.free.pop().expect("a chunk was added above");
        // SAFETY: it leads into `chunks`, which only ever grows.
        unsafe { self.enter(slot, core, owner, reader_kind) };
        slot
    }

    /// Whether `readers` readers can be registered, and all be holdouts, without an allocation.
    pub(crate) fn has_room_for(&self, readers: usize) -> bool {
        self.readers.capacity() >= readers && self.holdouts.capacity() >= readers
    }

    /// Uses the memory in `room` if it is larger. The caller drops `room` after it has released the
    /// lock.
    pub(crate) fn take_room(&mut self, room: &mut Room) {
        exchange(&mut self.readers, &mut room.readers);
        exchange(&mut self.holdouts, &mut room.holdouts);
    }

    /// As [`register`](Self::register), with a slot in the program's memory. Allocates nothing if
    /// there is [room](Self::has_room_for).
    ///
    /// # Safety
    /// `slot` is unused, and valid until it is unregistered.
    pub(crate) unsafe fn register_at(
        &mut self,
        slot: *const Slot,
        core: *const GpWords,
        owner: usize,
        reader_kind: ReaderKind,
    ) {
        // SAFETY: by the contract.
        unsafe { self.enter(slot, core, owner, reader_kind) };
    }

    /// # Safety
    /// `slot` is unused, and valid as long as it is in the list.
    unsafe fn enter(
        &mut self,
        slot: *const Slot,
        core: *const GpWords,
        owner: usize,
        reader_kind: ReaderKind,
    ) {
        // The driver counts holdouts in a futex's word, which has 32 bits.
        assert!(
            self.readers.len() < u32::MAX as usize,
            "quiescence: 2^32 readers of one domain: handles are being leaked with mem::forget"
        );
        // SAFETY: by the contract.
        let entry = unsafe { &*slot };
        let relays = reader_kind == ReaderKind::Qsbr && self.relay.is_some();
        entry.adopt(core, self.readers.len(), owner, reader_kind, relays);
        if relays && let Some(relay) = &mut self.relay {
            relay.add();
        }
        //~ no-registration {
        self.readers.push(slot);
        self.light += usize::from(entry.has_light_fences());
        //~ }
    }

    /// Removes a reader, which is in no section.
    pub(crate) fn unregister(&mut self, slot: &Slot) {
        let index = slot.index();
        if self.readers.get(index).is_some_and(|reader| std::ptr::eq(*reader, slot)) {
            self.readers.swap_remove(index);
            if let Some(moved) = self.readers.get(index) {
                // SAFETY: it is in the list, so valid: see `enter`.
                unsafe { &**moved }.set_index(index);
            }
            self.light -= usize::from(slot.has_light_fences());
        }
        if slot.is_liburcu() {
            // The program may free its memory.
            self.holdouts.retain(|holdout| !std::ptr::eq(*holdout, slot));
            return;
        }
        if let Some(relay) = &mut self.relay {
            // SAFETY: see `register`.
            unsafe { relay.remove(slot) };
        }
        self.free.push(slot);
    }

    /// How many readers there are.
    pub(crate) fn len(&self) -> usize {
        self.readers.len()
    }

    /// Counts readers up to the first that is not `owner`'s, or not quiescent; `owner` is the
    /// calling thread. If fewer than all, other threads may read, or this one is in a section.
    pub(crate) fn quiescent(&self, owner: usize) -> usize {
        self.readers().take_while(|slot| slot.owner() == owner && !reads(slot)).count()
    }

    /// Whether `owner`, the calling thread, is in a section of this domain, or online.
    pub(crate) fn reads(&self, owner: usize) -> bool {
        self.readers().any(|slot| slot.owner() == owner && reads(slot))
    }

    /// All readers.
    pub(crate) fn readers(&self) -> impl Iterator<Item = &Slot> {
        // SAFETY: see `register`.
        self.readers.iter().map(|slot| unsafe { &**slot })
    }

    /// The reader with this slot, if it is registered. The slot's memory may have been freed.
    pub(crate) fn registered(&self, slot: *const Slot) -> Option<&Slot> {
        let found = self.readers.iter().find(|reader| std::ptr::eq(**reader, slot))?;
        // SAFETY: see `register`.
        Some(unsafe { &**found })
    }

    /// How many readers use light fences, so that the updater's must be heavy.
    pub(crate) fn light(&self) -> usize {
        self.light
    }

    /// The fences of all slots, registered or not.
    pub(crate) fn fences(&self) -> impl Iterator<Item = &fence::Cell> {
        // SAFETY: see `register`.
        let chunks = self.chunks.iter().map(|chunk| unsafe { chunk.as_ref() });
        chunks.flat_map(|chunk| chunk.iter().map(|slot| &slot.fence))
    }

    /// Links the relay's readers, before a number is announced.
    pub(crate) fn link(&mut self, gp: &AtomicU64) {
        if let Some(relay) = &mut self.relay {
            // SAFETY: see `register`; `gp` is the domain's, which owns this registry.
            unsafe { relay.link(&self.readers, gp) };
        }
    }

    /// In a child process: removes all readers but those of `owner`, the calling thread.
    pub(crate) fn keep_only(&mut self, owner: usize) {
        self.holdouts.clear();
        self.pass = None;
        self.marked = false;
        let gone: Vec<*const Slot> = self
            .readers
            .iter()
            .copied()
            // SAFETY: see `register`.
            .filter(|slot| unsafe { &**slot }.owner() != owner)
            .collect();
        for reader in self.readers.iter() {
            // SAFETY: see `register`.
            let reader = unsafe { &**reader };
            if reader.owner() == owner {
                reader.note_thread(); // it has another id here
            }
        }
        for slot in gone {
            // SAFETY: see `register`.
            let slot = unsafe { &*slot };
            // A liburcu reader's record is its thread's, whose memory may be used again.
            if !slot.is_liburcu() {
                slot.forget_section();
            }
            self.unregister(slot);
        }
        // No thread sleeps in this process any more. A free slot may have a mark too, which its
        // next owner would report to a sleeper that did not set it.
        for chunk in &self.chunks {
            // SAFETY: see `register`.
            for slot in unsafe { chunk.as_ref() } {
                slot.clear_waited_for();
            }
        }
    }
}

/// Whether a slot of the calling thread is in a section, or online.
fn reads(own: &Slot) -> bool {
    !own.is_quiescent() //~ own-section-unseen
}

impl Drop for Registry {
    fn drop(&mut self) {
        for chunk in self.chunks.drain(..) {
            // SAFETY: leaked by `register`, and the domain ends: no thread holds a pointer into it.
            drop(unsafe { Box::from_raw(chunk.as_ptr()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gp::engine::Settings;
    use grace::Number;
    use grace::word;

    #[test]
    fn room_that_was_made_ahead_is_what_readers_and_holdouts_use() {
        let mut core =
            crate::gp::grace_periods::GracePeriods::new(grace::Start::ZERO, Settings::DEFAULT);
        core.make_liburcu(crate::gp::gp_words::Readers::Silent);
        let slots: Vec<Slot> = (0..100).map(|_| Slot::new(QUIESCENT)).collect();
        let mut registry = Registry::new(None);
        assert!(!registry.has_room_for(1));
        registry.take_room(&mut Room::new(100));
        let used = (registry.readers.as_ptr(), registry.holdouts.as_ptr());
        for slot in &slots {
            assert!(registry.has_room_for(registry.len() + 1));
            let reader_kind = ReaderKind::Liburcu(crate::gp::gp_words::Readers::Silent);
            // SAFETY: each slot once; it outlives the registry.
            unsafe { registry.register_at(slot, (&raw const core).cast(), 1, reader_kind) };
            slot.word().store(word::entered(Number(1)), std::sync::atomic::Ordering::Relaxed);
        }
        let gp = AtomicU64::new(word::entered(Number(2)));
        assert_eq!(registry.scan(Number(2), &gp), 100);
        assert_eq!(
            used,
            (registry.readers.as_ptr(), registry.holdouts.as_ptr()),
            "the same memory"
        );
        // With readers registered: they and the holdouts stay, and no smaller memory is taken.
        let mut room = Room::new(50);
        registry.take_room(&mut room);
        assert_eq!(used, (registry.readers.as_ptr(), registry.holdouts.as_ptr()));
        let mut room = Room::new(200);
        registry.take_room(&mut room);
        assert!(registry.has_room_for(200));
        assert_eq!(
            used,
            (room.readers.as_ptr(), room.holdouts.as_ptr()),
            "to be dropped outside the lock"
        );
        assert_eq!((registry.len(), registry.holdouts().count()), (100, 100));
        for slot in &slots {
            slot.word().store(QUIESCENT, std::sync::atomic::Ordering::Relaxed);
            registry.unregister(slot);
        }
        assert_eq!((registry.len(), registry.holdouts().count()), (0, 0));
    }
}
