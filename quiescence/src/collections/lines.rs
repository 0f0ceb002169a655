//! Zeroed cache lines, for tables and nodes of maps.

use std::alloc::{self, Layout};
use std::ptr::NonNull;

use crate::os::memory;

/// From this on they are a mapping of their own.
const MAPPED_FROM: usize = 1 << 16;

/// Memory that begins a cache line, freed on drop.
pub(super) struct Lines {
    at: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns its memory; who writes to that is others' business.
unsafe impl Send for Lines {}
// SAFETY: as above.
unsafe impl Sync for Lines {}

impl Lines {
    /// So many bytes, all zero.
    ///
    /// # Panics
    /// If there are none, as their number was too large, or they do not fit in the address space.
    pub(super) fn new(bytes: Option<usize>) -> Self {
        let layout = bytes
            .and_then(|bytes| Layout::from_size_align(bytes, 64).ok())
            .expect("quiescence: a map with that many entries exceeds the address space");
        let memory = if layout.size() >= MAPPED_FROM {
            memory::map_zeroed_huge(layout.size()).unwrap_or(std::ptr::null_mut())
        } else {
            // SAFETY: not of no bytes.
            unsafe { alloc::alloc_zeroed(layout) }
        };
        match NonNull::new(memory) {
            Some(at) => Self { at, layout },
            None => alloc::handle_alloc_error(layout),
        }
    }

    pub(super) fn at(&self) -> NonNull<u8> {
        self.at
    }

    pub(super) fn bytes(&self) -> usize {
        self.layout.size()
    }

    /// Gives pages back to the system, if there are many; they may be zero from then on.
    ///
    /// # Safety
    /// What they hold does not matter any more, and nor does what threads write to them until this
    /// returns.
    pub(super) unsafe fn forget(&self) {
        if self.layout.size() >= MAPPED_FROM {
            // SAFETY: mapped with this size by `new`; by the contract.
            unsafe { memory::forget_huge(self.at.as_ptr(), self.layout.size()) };
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let (memory, layout) = (self.at.as_ptr(), self.layout);
        if layout.size() >= MAPPED_FROM {
            // SAFETY: mapped with this size by `new`.
            unsafe { memory::unmap_huge(memory, layout.size()) };
        } else {
            // SAFETY: allocated with this layout by `new`.
            unsafe { alloc::dealloc(memory, layout) };
        }
    }
}
