//! Where a table's memory comes from: the process's allocator, or one that the table's maker
//! passes.
//!
//! The latter is user code: it is called under none of the library's locks, and in no section.
//! Memory that a change of the table may need is allocated before the board is locked ([`Stock`]),
//! and memory that the change releases is freed afterwards.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr;
use std::sync::Arc;

use super::node::Node;
use super::worker::Work;
use crate::os::user_code::{self, Site};

/// An allocator for a [`HashTable`](super::HashTable) in place of the process's own: liburcu's
/// `struct cds_lfht_alloc`. All of the table's memory is from it, but for what is counted per CPU,
/// and buckets that are kept in addresses reserved from the system ([`Memory::Mmap`]).
///
/// It is called by the threads that make, resize or end the table, and by the library's thread that
/// resizes tables, never in a section.
///
/// # Safety
/// `allocate` returns null or memory of that layout, all zero, which no other user has until it is
/// freed. Neither function unwinds.
///
/// [`Memory::Mmap`]: super::Memory::Mmap
pub unsafe trait Allocator: Send + Sync + 'static {
    /// Memory, all zero; null if there is none.
    fn allocate(&self, layout: Layout) -> *mut u8;

    /// Takes memory back.
    ///
    /// # Safety
    /// From `allocate`, of this layout, once.
    unsafe fn free(&self, memory: *mut u8, layout: Layout);
}

/// One or the other.
#[derive(Clone)]
pub(super) struct Source(pub(super) Option<Arc<dyn Allocator>>);

impl Source {
    /// Whether it is user code.
    pub(super) fn is_callers(&self) -> bool {
        self.0.is_some()
    }

    /// Memory, all zero; null if there is none.
    pub(super) fn take(&self, layout: Layout) -> *mut u8 {
        match &self.0 {
            Some(allocator) => user_code::run(Site::Allocate, || allocator.allocate(layout)),
            // SAFETY: all that a table allocates has a size.
            None => unsafe { alloc_zeroed(layout) },
        }
    }

    /// Takes memory back.
    ///
    /// # Safety
    /// From `take` of this source, of this layout, once.
    pub(super) unsafe fn give_back(&self, memory: *mut u8, layout: Layout) {
        match &self.0 {
            Some(allocator) => {
                // SAFETY: by the contract.
                let free = || unsafe { allocator.free(memory, layout) };
                user_code::run(Site::Allocate, free);
            }
            // SAFETY: by the contract.
            None => unsafe { dealloc(memory, layout) },
        }
    }

    /// So many nodes, all zero; null if there is no memory.
    pub(super) fn take_nodes(&self, count: usize) -> *mut Node {
        layout(count).map_or(ptr::null_mut(), |layout| self.take(layout)).cast()
    }

    /// Takes nodes back, unless there are none.
    ///
    /// # Safety
    /// `nodes` is null, or from `take_nodes(count)`, and is given back once.
    pub(super) unsafe fn give_back_nodes(&self, nodes: *mut Node, count: usize) {
        let Some(layout) = layout(count).filter(|_| !nodes.is_null()) else {
            return;
        };
        // SAFETY: by the contract.
        unsafe { self.give_back(nodes.cast(), layout) };
    }
}

fn layout(count: usize) -> Option<Layout> {
    let layout = Layout::array::<Node>(count).ok()?;
    layout.align_to(16).ok().filter(|layout| layout.size() != 0)
}

/// Ends a table, and gives its memory back.
///
/// # Safety
/// It came from `Table::new`, no thread uses it any more, and no lock is held.
pub(super) unsafe fn end(table: *mut dyn Work) {
    // SAFETY: valid until it is dropped below.
    let this = unsafe { &*table };
    let (source, layout) = (this.source(), Layout::for_value(this));
    // SAFETY: by the contract.
    unsafe { ptr::drop_in_place(table) };
    // SAFETY: from the same source.
    unsafe { source.give_back(table.cast(), layout) };
}

/// Nodes that have been allocated and are not in a table yet, or not any more: what is left when it
/// is dropped is given back. Of the process's allocator it holds nothing; that one is called where
/// memory is needed.
pub(super) struct Stock<'s> {
    source: &'s Source,
    pieces: Vec<(*mut Node, usize)>,
}

impl<'s> Stock<'s> {
    pub(super) fn new(source: &'s Source) -> Self {
        Self { source, pieces: Vec::new() }
    }

    /// Allocates `count` nodes in one piece. Returns `false` if there is no memory.
    pub(super) fn add(&mut self, count: usize) -> bool {
        self.pieces.reserve(1);
        let nodes = self.source.take_nodes(count);
        if !nodes.is_null() {
            self.pieces.push((nodes, count));
        }
        !nodes.is_null()
    }

    /// A piece of `count` nodes, all zero; null if there is none.
    pub(super) fn take(&mut self, count: usize) -> *mut Node {
        if !self.source.is_callers() {
            return self.source.take_nodes(count);
        }
        let found = self.pieces.iter().position(|piece| piece.1 == count);
        found.map_or(ptr::null_mut(), |at| self.pieces.swap_remove(at).0)
    }

    /// Takes nodes back, unless there are none.
    ///
    /// # Safety
    /// `nodes` is null, or a piece of `count` from a stock of the same source; no thread uses it.
    pub(super) unsafe fn give_back(&mut self, nodes: *mut Node, count: usize) {
        if self.source.is_callers() && !nodes.is_null() {
            self.pieces.push((nodes, count));
        } else {
            // SAFETY: by the contract.
            unsafe { self.source.give_back_nodes(nodes, count) };
        }
    }
}

impl Drop for Stock<'_> {
    fn drop(&mut self) {
        for (nodes, count) in self.pieces.drain(..) {
            // SAFETY: from `take_nodes`, and no table's.
            unsafe { self.source.give_back_nodes(nodes, count) };
        }
    }
}
