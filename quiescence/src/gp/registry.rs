//! The registry of a domain: its readers; and the scan, which finds which of them hold the grace
//! period up.
//!
//! Slots live in chunks that are never moved, and not freed while the domain lives, so a pointer to
//! a slot stays valid. The slots of a chunk are contiguous, so a scan of ten thousand runs at
//! memory speed. Everything here is done under one lock, which no thread holds while it waits:
//! threads register while a grace period waits for a stalled reader.
//!
//! The first scan under a number checks all readers. Those that it finds in a section that began
//! before are the holdouts, and later scans check only these.
//!
//! **Invariant [RG-1]: a reader is in `readers` from before its first section to after its last.**
//! The lock orders a registration before a scan, which then sees the reader, or after it, and then
//! the reader sees what was published before the scan [GP-5].
//!
//! For liburcu readers, memory is allocated before the lock is taken, and freed after it is
//! released: [`liburcu`].

use crate::gp::relay::Relay;
use crate::gp::slot::{GpWords, ReaderKind, Slot, SlotRef};
use crate::gp::wake::WAITED_FOR;
use crate::os::fence;
use crate::os::stack::Alternate;
use crate::os::sync::{self, AtomicU64, Mutex};
use grace::Number;
use grace::word::QUIESCENT;
use std::cell::Cell;
use std::sync::Arc;

mod liburcu;

/// Slots in a chunk: 64 of 128 bytes are two pages. (What the `Arc` counts is beside them.)
const CHUNK: usize = if cfg!(loom) { 3 } else { 64 };

/// The readers of a domain. See the module.
#[derive(Debug)]
pub(crate) struct Registry {
    /// Shared with none, but not boxes: a box must not be moved while pointers into it exist.
    chunks: Vec<Arc<[Slot]>>,
    free: Vec<SlotRef>,
    readers: Vec<SlotRef>,
    /// How many readers have light fences, so that the updater's must be heavy.
    light: usize,
    /// Readers that the pass under `pass` waits for.
    holdouts: Vec<SlotRef>,
    /// The number that was last scanned; `None` before the first scan.
    pass: Option<Number>,
    /// Whether the driver that sleeps, or slept last, has marked its holdouts and checked them a
    /// second time: each of them that holds it up still will report.
    pub(super) marked: Cell<bool>,
    /// How the QSBR readers hand the number on, under the engine `token`.
    relay: Option<Relay>,
}

// SAFETY: the pointers lead into `chunks`, which move with the registry, or to liburcu readers'
// slots, which are valid while registered; what they point to is Sync.
unsafe impl Send for Registry {}

impl Registry {
    pub(crate) const fn new(relay: Option<Relay>) -> Self {
        Self {
            chunks: Vec::new(),
            free: Vec::new(),
            readers: Vec::new(),
            light: 0,
            holdouts: Vec::new(),
            pass: None,
            marked: Cell::new(false),
            relay,
        }
    }

    /// Registers a reader of the calling thread: in `slot`, or else in a slot of the registry's
    /// own, which lives as long as the registry. In `slot` it allocates nothing under the lock.
    ///
    /// # Safety
    /// `core` is of the domain of `this`. `slot`, if given, is unused, and valid until it is
    /// unregistered.
    pub(super) unsafe fn register(
        this: &Mutex<Self>,
        slot: Option<*const Slot>,
        core: *const GpWords,
        owner: usize,
        reader_kind: ReaderKind,
    ) -> *const Slot {
        fence::chosen(); // before the first reader, never after
        let alternate = Alternate::of_this_thread(); // a system call: before the lock
        let mut registry = match slot {
            None => sync::lock(this),
            Some(_) => Self::lock_with_room(this, 0),
        };
        // The driver counts holdouts in a futex's word, which has 32 bits.
        assert!(
            registry.readers.len() < u32::MAX as usize,
            "quiescence: 2^32 readers of one domain: handles are being leaked with mem::forget"
        );
        let slot = SlotRef(slot.unwrap_or_else(|| registry.free_slot()));
        let relays = reader_kind == ReaderKind::Qsbr && registry.relay.is_some();
        // SAFETY: it is free, in `chunks`, which only ever grows, or by the contract; and the
        // registry, which is locked, is the domain's.
        unsafe { slot.adopt(core, registry.readers.len(), owner, reader_kind) };
        slot.notes.adopt(&slot.core().gp, relays, alternate);
        if relays && let Some(relay) = &mut registry.relay {
            relay.is_stale = true; // it has its place from the next grace period on
        }
        //~ no-registration {
        registry.readers.push(slot);
        registry.light += usize::from(slot.has_light_fences());
        //~ }
        drop(registry);
        // A full fence besides the lock [GP-5]: a reader that a scan or an `Alone` did not see sees
        // what was published before them.
        fence::full();
        slot.0
    }

    /// A slot of the chunks that no reader has.
    fn free_slot(&mut self) -> *const Slot {
        if self.free.is_empty() {
            let chunk: Arc<[Slot]> = (0..CHUNK).map(|_| Slot::new(QUIESCENT)).collect();
            self.free.extend(chunk.iter().rev().map(|slot| SlotRef(slot)));
            self.chunks.push(chunk);
        }
        self.free.pop().expect("a chunk was added above").0
    }

    /// Removes a reader, which is in no section.
    pub(crate) fn unregister(&mut self, slot: &Slot) {
        let index = slot.index.get();
        if self.readers.get(index).is_some_and(|reader| std::ptr::eq(reader.0, slot)) {
            self.readers.swap_remove(index);
            if let Some(moved) = self.readers.get(index) {
                moved.index.set(index);
            }
            self.light -= usize::from(slot.has_light_fences());
        }
        if slot.is_liburcu() {
            // The program may free its memory.
            self.holdouts.retain(|holdout| !std::ptr::eq(holdout.0, slot));
            return;
        }
        if let Some(relay) = &mut self.relay {
            relay.remove(slot);
        }
        self.free.push(SlotRef(slot));
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
        self.readers.iter().map(|slot| &**slot)
    }

    /// How many readers use light fences, so that the updater's must be heavy.
    pub(crate) fn light(&self) -> usize {
        self.light
    }

    /// The fences of all slots, registered or not.
    pub(crate) fn fences(&self) -> impl Iterator<Item = &fence::Cell> {
        self.slots().map(|slot| &slot.fence)
    }

    /// The slots of the chunks, registered or not.
    fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    // ---- the scan -----------------------------------------------------------------------------

    /// Checks every reader in the first scan under `number`, and the holdouts in later ones. The
    /// relay checks the QSBR readers that pass the number on. Returns the number of holdouts, plus
    /// the number of the relay's chains that are not through.
    pub(crate) fn scan(&mut self, number: Number, gp: &AtomicU64) -> usize {
        //~ no-scan
        if self.pass == Some(number) {
            self.holdouts.retain(|slot| slot.is_holdout(number));
        } else {
            let relays = self.relay.is_some();
            //~ skip-last-reader:
            let holdouts = self.readers.iter().filter(|slot| {
                // Those in a relay are its scan's.
                !(relays && slot.is_qsbr()) && slot.is_holdout(number)
            });
            self.holdouts.clear();
            self.holdouts.extend(holdouts);
            self.pass = Some(number);
        }
        let resting = self.relay.as_mut().map_or(0, |relay| relay.scan(number, gp));
        self.holdouts.len().saturating_add(resting)
    }

    /// The readers that the last scan found inside a section.
    pub(crate) fn holdouts(&self) -> impl Iterator<Item = &Slot> {
        self.holdouts.iter().map(|slot| &**slot)
    }

    /// The readers that hold up the grace period under `number`: those that the last scan found and
    /// that still do, and those that the relay waits for.
    pub(crate) fn holding_up(&self, number: Number) -> impl Iterator<Item = &Slot> {
        let resting = self.relay.iter().flat_map(move |relay| relay.resting(number));
        self.holdouts().filter(move |slot| slot.is_holdout(number)).chain(resting)
    }

    // ---- the relay, fork -----------------------------------------------------------------------

    /// Links the relay's readers, before a number is announced.
    pub(crate) fn link(&mut self, gp: &AtomicU64) {
        if let Some(relay) = &mut self.relay {
            relay.link(&self.readers, gp);
        }
    }

    /// In a child process: removes all readers but those of `owner`, the calling thread.
    ///
    /// # Safety
    /// No other reader will use its slot again, nor what it has seen.
    pub(crate) unsafe fn keep_only(&mut self, owner: usize) {
        self.holdouts.clear();
        self.pass = None;
        self.marked.set(false);
        let (own, gone): (Vec<_>, Vec<_>) =
            self.readers.iter().copied().partition(|slot| slot.owner() == owner);
        own.iter().for_each(|slot| slot.notes.note_thread()); // it has another id here
        for slot in &gone {
            // A liburcu reader's record is its thread's, whose memory may be used again.
            if !slot.is_liburcu() {
                // SAFETY: by the contract.
                unsafe { slot.forget_section() };
            }
            self.unregister(slot);
        }
        // No thread sleeps in this process any more. A free slot may have a mark too, which its
        // next owner would report to a sleeper that did not set it.
        for slot in self.slots() {
            slot.marks.take(WAITED_FOR);
        }
    }
}

/// Whether a slot of the calling thread is in a section, or online.
fn reads(own: &Slot) -> bool {
    !own.is_quiescent() //~ own-section-unseen
}
