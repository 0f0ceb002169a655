//! The registry of a domain: the readers in it. Which of them hold the grace period up is found by
//! the scan in [`holdouts`](super::holdouts).
//!
//! Slots live in chunks that are never moved and never given back while the domain lives, so that a
//! pointer to one stays good; and side by side, so that a scan of ten thousand runs at the speed of
//! memory. Everything here is done under one lock, which is held for a look and never for a wait:
//! threads register while a grace period waits for a stalled reader.
//!
//! **Invariant: a reader is in `readers` from before its first section to after its last.**
//! The lock orders a registration before a scan, which then sees the reader, or after it, and then
//! the reader sees what was published before the scan [GP-5].
//!
//! Where readers are liburcu readers, memory is got before the lock is taken ([`Room`]), and given
//! back after: one may register in a signal handler that has interrupted `malloc`, and the thread
//! that holds the lock must not wait for that.

use crate::chaos::{self, Mutant};
use crate::gp::gp_words::GpWords;
use crate::gp::reader::{ReaderKind, Slot};
use crate::gp::relay::Relay;
#[cfg(loom)]
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
    /// Each from a box, which is not moved while pointers into it are about.
    chunks: Vec<NonNull<[Slot]>>,
    free: Vec<*const Slot>,
    pub(super) readers: Vec<*const Slot>,
    /// How many of the readers have light fences: they need heavy ones.
    light: usize,
    /// Readers that the pass under `pass` waits for.
    pub(super) holdouts: Vec<*const Slot>,
    /// The number of the pass that has been scanned; none yet.
    pub(super) pass: Option<Number>,
    /// Whether the driver that sleeps, or slept last, has marked its holdouts and looked at them a
    /// second time: each of them that holds it up still will report.
    pub(super) marked: bool,
    /// How the QSBR readers hand the number on, under the engine `token`.
    pub(super) relay: Option<Relay>,
}

// SAFETY: the pointers lead into `chunks`, which move with the registry; what they point to is
// Sync.
unsafe impl Send for Registry {}

/// Memory for so many readers, got while the registry is not locked; afterwards what it has no use
/// for any more.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct Room {
    readers: Vec<*const Slot>,
    holdouts: Vec<*const Slot>,
}

#[cfg(not(loom))]
impl Room {
    pub(crate) fn new(readers: usize) -> Self {
        Self { readers: Vec::with_capacity(readers), holdouts: Vec::with_capacity(readers) }
    }
}

/// Moves what is in `list` to `larger`, if that is larger, and exchanges the two. Gets and gives
/// back no memory.
#[cfg(not(loom))]
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

    /// Enters a reader. The caller fences after it has released the lock [GP-5].
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
            // SAFETY: leaked above, and given back by `drop` only.
            self.free.extend(unsafe { chunk.as_ref() }.iter().rev().map(std::ptr::from_ref));
        }
        let slot = self.free.pop().expect("a chunk was added above");
        // SAFETY: it leads into `chunks`, which only ever grows.
        unsafe { self.enter(slot, core, owner, reader_kind) };
        slot
    }

    /// Whether so many readers can be entered, and all of them be holdouts, without any more
    /// memory.
    #[cfg(not(loom))]
    pub(crate) fn has_room_for(&self, readers: usize) -> bool {
        self.readers.capacity() >= readers && self.holdouts.capacity() >= readers
    }

    /// Uses that memory from now on; what is left in `room` is to be dropped when the lock has been
    /// given back.
    #[cfg(not(loom))]
    pub(crate) fn take_room(&mut self, room: &mut Room) {
        exchange(&mut self.readers, &mut room.readers);
        exchange(&mut self.holdouts, &mut room.holdouts);
    }

    /// The same as [`register`](Self::register), with a slot that is its program's. Gets no memory,
    /// if there is [room](Self::has_room_for).
    ///
    /// # Safety
    /// It is unused, and valid until it is unregistered.
    #[cfg(not(loom))]
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
        if !chaos::mutant(Mutant::NoRegistration) {
            self.readers.push(slot);
            self.light += usize::from(entry.has_light_fences());
        }
    }

    /// Takes out a reader, which is in no section.
    pub(crate) fn unregister(&mut self, slot: &Slot) {
        let index = slot.index();
        if self.readers.get(index).is_some_and(|reader| std::ptr::eq(*reader, slot)) {
            self.readers.swap_remove(index);
            if let Some(moved) = self.readers.get(index) {
                // SAFETY: it leads into `chunks`, which only ever grows.
                unsafe { &**moved }.set_index(index);
            }
            self.light -= usize::from(slot.has_light_fences());
        }
        if slot.is_liburcu() {
            // Its memory may go.
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

    /// How many of them are `owner`'s, the calling thread's, and quiescent; counted up to the first
    /// that is not. All, or too few for the caller to be alone.
    pub(crate) fn quiescent(&self, owner: usize) -> usize {
        self.readers().take_while(|slot| slot.owner() == owner && !reads(slot)).count()
    }

    /// Whether `owner`, the calling thread, is in a section of this domain, or online.
    pub(crate) fn reads(&self, owner: usize) -> bool {
        self.readers().any(|slot| slot.owner() == owner && reads(slot))
    }

    /// All of them.
    pub(crate) fn readers(&self) -> impl Iterator<Item = &Slot> {
        // SAFETY: see `register`.
        self.readers.iter().map(|slot| unsafe { &**slot })
    }

    /// The reader with this slot, if it is registered. The slot may be gone.
    #[cfg(not(loom))]
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
    #[cfg(loom)]
    pub(crate) fn fences(&self) -> impl Iterator<Item = &fence::Cell> {
        // SAFETY: see `register`.
        let chunks = self.chunks.iter().map(|chunk| unsafe { chunk.as_ref() });
        chunks.flat_map(|chunk| chunk.iter().map(|slot| &slot.fence))
    }

    /// Before a number is announced.
    pub(crate) fn link(&mut self, gp: &AtomicU64) {
        if let Some(relay) = &mut self.relay {
            // SAFETY: see `register`; `gp` is the domain's, which owns this registry.
            unsafe { relay.link(&self.readers, gp) };
        }
    }

    /// In a child process: only `owner`'s readers are left, who calls.
    #[cfg(not(loom))]
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
            // The record of a liburcu reader was that of a thread whose stack may be used again.
            if !slot.is_liburcu() {
                slot.forget_section();
            }
            self.unregister(slot);
        }
        // No thread sleeps in this process any more. A free slot may bear a mark too, which its
        // next owner would keep, and report to a sleeper that did not make it.
        for chunk in &self.chunks {
            // SAFETY: see `register`.
            for slot in unsafe { chunk.as_ref() } {
                slot.clear_waited_for();
            }
        }
    }
}

/// Whether a slot of the calling thread's is in use.
fn reads(own: &Slot) -> bool {
    !own.is_quiescent() && !chaos::mutant(Mutant::OwnSectionUnseen)
}

impl Drop for Registry {
    fn drop(&mut self) {
        for chunk in self.chunks.drain(..) {
            // SAFETY: leaked by `register`, and the domain ends: no thread holds a pointer into it.
            drop(unsafe { Box::from_raw(chunk.as_ptr()) });
        }
    }
}

#[cfg(all(test, not(loom)))]
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
        // In the midst of it: readers and holdouts stay, and what is too small is not taken.
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
