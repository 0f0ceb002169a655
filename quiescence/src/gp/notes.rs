//! What a slot notes of its reader beside its word: for reports, which thread it is and where its
//! section began; for a QSBR reader, where it finds the number of the grace period.
//!
//! No section of a guard rests on this: an error here misleads a report, or QSBR readers.

use std::panic::Location;
use std::sync::atomic::Ordering::{Relaxed, Release};

use crate::os::stack::Alternate;
use crate::os::sync::{AtomicPtr, AtomicU64, Cell, const_unless_loom};

/// See the module. The cells are under the registry's lock, except that the owner reads `relays`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Notes {
    /// Where the outermost section began, for messages; null while unknown.
    began: AtomicPtr<Location<'static>>,
    /// What a QSBR reader copies at a quiescent state: `gp.ctr`, or the word of its predecessor in
    /// the [relay](crate::gp::relay).
    pub(super) source: AtomicPtr<AtomicU64>,
    /// Its index in the relay's stations.
    pub(super) station: Cell<usize>,
    /// The alternate signal stack that the owner had when it registered.
    pub(crate) alternate: Cell<Alternate>,
    /// The owner's id in the system, see `os::thread`; 0 where there is none.
    pub(crate) thread: Cell<u32>,
    /// Whether it takes part in a relay. Set before the slot is handed out.
    pub(super) relays: Cell<bool>,
}

impl Notes {
    const_unless_loom! {
        pub(super) fn new() -> Self {
            Self {
                began: AtomicPtr::new(std::ptr::null_mut()),
                source: AtomicPtr::new(std::ptr::null_mut()),
                station: Cell::new(usize::MAX),
                alternate: Cell::new(Alternate::NONE),
                thread: Cell::new(0),
                relays: Cell::new(false),
            }
        }
    }

    /// The calling thread has the slot from now on.
    pub(super) fn adopt(&self, gp: &AtomicU64, relays: bool, alternate: Alternate) {
        self.note_thread();
        self.alternate.set(alternate);
        self.relays.set(relays);
        self.station.set(usize::MAX);
        self.set_source(gp);
    }

    /// Stores the calling thread's id; it is the owner.
    pub(super) fn note_thread(&self) {
        self.thread.set(crate::os::thread::id());
    }

    /// The owner's outermost section begins there.
    #[inline(always)]
    pub(super) fn begin(&self, location: &'static Location<'static>) {
        self.began.store(std::ptr::from_ref(location).cast_mut(), Relaxed);
    }

    /// Where the outermost section began, if it is known.
    pub(crate) fn began(&self) -> Option<&'static Location<'static>> {
        let location = self.began.load(Relaxed);
        // SAFETY: the pointer is null or was made from a `&'static Location` by `begin`.
        unsafe { location.as_ref() }
    }

    pub(super) fn source(&self) -> &AtomicU64 {
        // SAFETY: as in `Slot::renew`; set by `adopt`. Relaxed: the registry's lock orders it.
        unsafe { &*self.source.load(Relaxed) }
    }

    /// Sets the word that the reader copies at quiescent states, which lives as long as this slot.
    pub(super) fn set_source(&self, source: &AtomicU64) {
        // Release: pairs with the Acquire in `renew`; the reader finds the word initialised.
        self.source.store(std::ptr::from_ref(source).cast_mut(), Release);
    }
}
