//! Records: slots in memory of programs that were compiled against liburcu, followed by fields of
//! liburcu's layout.

use std::fmt;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32};

use super::slot::Slot;
use crate::os::sync::AtomicU64;

/// One thread as a reader: liburcu's `struct urcu_reader`, of 256 bytes. A record of all zeroes is
/// not registered. Its first word is the reader's word, which liburcu calls `ctr`.
#[repr(C, align(128))]
pub struct Record {
    pub(crate) slot: Slot,
    /// Here liburcu has its list of readers, which is not used: this is the next record of the same
    /// thread, or null.
    next: AtomicPtr<Record>,
    _node: usize,
    /// QSBR: an updater sleeps until this reader has announced a quiescent state.
    waiting: AtomicI32,
    _unused: u32,
    /// 1 while the record is registered. For its own thread, which need not remember it elsewhere.
    registered: AtomicU32,
    _unused_too: u32,
    /// The same, where a QSBR reader that is compiled with liburcu's assertions loads it.
    registered_qsbr: AtomicU32,
    _rest: [u8; 92],
}

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<Record>() == 256);
    assert!(std::mem::offset_of!(Record, waiting) == 144);
    assert!(std::mem::offset_of!(Record, registered) == 152);
    assert!(std::mem::offset_of!(Record, registered_qsbr) == 160);
};

impl Record {
    /// The reader's word.
    pub fn word(&self) -> &AtomicU64 {
        self.slot.word()
    }

    /// The owner, a QSBR reader, is to wake the driver at its next quiescent state.
    ///
    /// # Safety
    /// `record` is valid.
    pub(crate) unsafe fn mark_waiting(record: *const Self) {
        // SAFETY: by the contract.
        let waiting = unsafe { &raw const (*record).waiting };
        // SAFETY: as above. Relaxed: a full fence comes before, after -1 was stored, and the
        // driver's heavy one follows [FR-1].
        unsafe { &*waiting }.store(1, Relaxed);
    }

    /// Whether the record is registered. A program may load this itself, 152 bytes from the
    /// beginning.
    pub fn is_registered(&self) -> bool {
        self.registered.load(Relaxed) != 0
    }

    pub(crate) fn set_registered(&self, now: bool) {
        self.registered.store(u32::from(now), Relaxed);
        self.registered_qsbr.store(u32::from(now), Relaxed);
    }

    /// Whether the reader is in no section; for QSBR, offline. For the reader's own thread.
    pub fn is_quiescent(&self) -> bool {
        self.slot.is_quiescent()
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("word", self.word()).finish_non_exhaustive()
    }
}

thread_local! {
    /// The calling thread's records, as a linked list. It has no destructor and allocates nothing,
    /// so a signal handler may register its thread whatever it has interrupted. Relaxed everywhere:
    /// only the thread itself and its handlers access it, and a handler leaves the list consistent.
    static OWN: AtomicPtr<Record> = const { AtomicPtr::new(ptr::null_mut()) };
}

/// Adds to the calling thread's records.
pub(crate) fn add_own(record: &Record) {
    let this = |first| {
        record.next.store(first, Relaxed);
        Some(ptr::from_ref(record).cast_mut())
    };
    // Again, if a handler comes in between.
    let _before: Result<_, _> = OWN.with(|own| fetch_update!(own, Relaxed, Relaxed, this));
}

/// Removes one of the calling thread's records.
pub(crate) fn remove_own(record: &Record) {
    let this = ptr::from_ref(record).cast_mut();
    let next = record.next.load(Relaxed);
    OWN.with(|own| {
        // This fails also if a handler has just added a record at the front.
        if own.compare_exchange(this, next, Relaxed, Relaxed).is_ok() {
            return;
        }
        let mut place = own.load(Relaxed);
        // SAFETY: null, or in the list, so registered and valid.
        while let Some(before) = unsafe { place.as_ref() } {
            let following = before.next.load(Relaxed);
            if following == this {
                return before.next.store(next, Relaxed);
            }
            place = following;
        }
    });
}

/// The slots of the calling thread's records, of any domain. Each is valid until the thread removes
/// the record.
pub(crate) fn own<'a>() -> impl Iterator<Item = &'a Slot> {
    let record = |place: *mut Record| -> Option<&'a Record> {
        // SAFETY: null, or in the list, so registered and valid; only the thread itself takes one
        // out.
        unsafe { place.as_ref() }
    };
    let first = record(OWN.with(|own| own.load(Relaxed)));
    let records = std::iter::successors(first, move |one| record(one.next.load(Relaxed)));
    records.map(|one| &one.slot)
}
