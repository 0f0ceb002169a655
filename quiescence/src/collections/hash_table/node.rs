//! The node that an object embeds in order to be in a table; and how a hash is reversed.

use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

use crate::domain::impls::shown_in_part;
use crate::os::sync::{AtomicUsize, const_unless_loom};

/// What an object embeds to be in a [`HashTable`](super::HashTable): liburcu's `struct
/// cds_lfht_node`, of two words, with addresses that are multiples of 8.
#[repr(C, align(8))]
#[derive(Default)]
pub struct Node {
    /// The next node's address, with flags about *this* node: see `list`.
    pub(super) next: AtomicUsize,
    /// The order of the list: hashes whose low bits agree are adjacent, so a bucket that is split
    /// becomes two neighbours.
    reverse_hash: AtomicUsize,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Node>() == 16);

impl Node {
    const_unless_loom! {
        /// Creates a node that is in no table.
        pub fn new() -> Self {
            Self { next: AtomicUsize::new(0), reverse_hash: AtomicUsize::new(0) }
        }
    }

    #[inline(always)]
    pub(super) fn reverse_hash(&self) -> usize {
        // Relaxed: written before the node is published, and not again.
        self.reverse_hash.load(Relaxed)
    }

    #[inline(always)]
    pub(super) fn set_reverse_hash(&self, reverse_hash: usize) {
        self.reverse_hash.store(reverse_hash, Relaxed);
    }
}

shown_in_part!([] Node { reverse_hash: |node| node.reverse_hash() });

/// A node that was found, and where to continue: liburcu's `struct cds_lfht_iter`.
///
/// It is valid in the section in which it was obtained. It remembers the node's successor at *that
/// time*: a thread that continues does not visit a node that has replaced this one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    /// The node; null if there is none.
    pub node: *mut Node,
    pub(super) next: *mut Node,
}

impl Cursor {
    /// The node, if there is one.
    #[inline]
    pub const fn node(&self) -> Option<NonNull<Node>> {
        NonNull::new(self.node)
    }
}
