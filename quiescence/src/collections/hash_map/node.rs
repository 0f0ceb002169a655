//! Overflow nodes: what a bucket has no slot for.
//!
//! A node has one word of tags for each eight slots, without flags. Its slots are filled once: an
//! entry that is replaced goes to another slot of the same word, so that one store does both, or
//! the whole node is replaced by a copy. A node that is out of reach is never written to again.

use std::alloc::{self, Layout};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use super::entry::Form;
use super::formed::Formed;
use crate::collections::tags;
use crate::os::sync::AtomicU64;
use crate::reclaim::cache;

/// The head of a node; its words and slots follow.
#[repr(C)]
pub(super) struct Node {
    /// Words of tags.
    words: usize,
    /// Slots that have been filled: the first ones. For the updater that has the bucket,
    /// as all that follows.
    filled: Cell<usize>,
    /// Entries.
    live: Cell<usize>,
    /// The cookie of the bucket's dead slots, while the bucket has this node.
    pub(super) cookie: Cell<u64>,
    /// The next one of those that are to be retired.
    pub(super) link: Cell<*mut Node>,
}

/// Slots that have one word of tags.
pub(super) const WORD_SLOTS: usize = if cfg!(loom) { 2 } else { 8 };

/// A node, and of which form its slots are.
pub(super) type NodeRef<F> = Formed<F, Node>;

impl<F: Form> NodeRef<F> {
    const SLOTS_AT: usize = size_of::<Node>();

    /// An empty node with room for so many entries at least.
    pub(super) fn new(entries: usize) -> Self {
        let words = entries.div_ceil(WORD_SLOTS).next_power_of_two();
        let layout = Self::layout(words);
        let Some(memory) = cache::allocate(layout) else { alloc::handle_alloc_error(layout) };
        let node = memory.cast::<Node>();
        // SAFETY: memory of this layout.
        unsafe {
            node.write(Node {
                words,
                filled: Cell::new(0),
                live: Cell::new(0),
                cookie: Cell::new(0),
                link: Cell::default(),
            });
        }
        // SAFETY: the memory is for slots of this form.
        let this = unsafe { Self::of(node) };
        for word in 0..words {
            // SAFETY: within the memory, which is ours.
            unsafe { this.word_at(word).cast_mut().write(AtomicU64::new(0)) };
            if cfg!(loom) {
                // SAFETY: as above.
                (0..WORD_SLOTS).for_each(|index| unsafe { F::init(this.slot(word, index)) });
            }
        }
        this
    }

    fn layout(words: usize) -> Layout {
        let word = size_of::<AtomicU64>() + WORD_SLOTS * F::SLOT;
        let bytes = words.checked_mul(word).and_then(|bytes| bytes.checked_add(Self::SLOTS_AT));
        let layout = bytes.and_then(|bytes| Layout::from_size_align(bytes, 8).ok());
        layout.expect("a node is smaller than the address space")
    }

    /// Gives its memory back.
    ///
    /// # Safety
    /// No thread uses it any more; boxes in it have other owners.
    pub(super) unsafe fn free(self) {
        let layout = Self::layout(self.words());
        // SAFETY: from `new`.
        unsafe { cache::release(self.at.as_ptr().cast(), layout) };
    }

    /// Bytes of its memory.
    pub(super) fn bytes(self) -> usize {
        Self::layout(self.words()).size()
    }

    pub(super) fn words(self) -> usize {
        self.head().words
    }

    fn word_at(self, word: usize) -> *const AtomicU64 {
        // SAFETY: within the memory of the node.
        let words = unsafe { self.at.as_ptr().cast::<u8>().add(Self::SLOTS_AT) };
        // SAFETY: as above.
        unsafe { words.cast::<AtomicU64>().add(word) }
    }

    /// A word of tags.
    pub(super) fn word<'n>(self, word: usize) -> &'n AtomicU64 {
        debug_assert!(word < self.words());
        // SAFETY: made by `new`; it lives.
        unsafe { &*self.word_at(word) }
    }

    /// A slot.
    pub(super) fn slot(self, word: usize, index: usize) -> *mut u8 {
        let slots = self.word_at(self.words()).cast::<u8>().cast_mut();
        // SAFETY: within the memory of the node.
        unsafe { slots.add((word * WORD_SLOTS + index) * F::SLOT) }
    }

    /// The first slot that was never filled. The caller has the bucket.
    pub(super) fn free_slot(self) -> Option<(usize, usize)> {
        let filled = self.head().filled.get();
        (filled < self.words() * WORD_SLOTS).then_some((filled / WORD_SLOTS, filled % WORD_SLOTS))
    }

    /// The same in one word.
    pub(super) fn free_in(self, word: usize) -> Option<usize> {
        self.free_slot().and_then(|(free, index)| (free == word).then_some(index))
    }

    /// Stores the tag of the slot that [`free_slot`](Self::free_slot) gave, which has been written,
    /// and by the same store ends the entry of another slot of that word. The caller has the
    /// bucket.
    pub(super) fn fill(self, tag: u64, old: Option<usize>, ordering: Ordering) {
        let (word, index) = self.free_slot().expect("there is room");
        let (head, tags) = (self.head(), self.word(word));
        // Relaxed: only the thread that has the bucket writes it.
        let before = tags.load(Relaxed);
        let before = old.map_or(before, |old| tags::with(before, old, tags::DEAD));
        tags.store(tags::with(before, index, tag), ordering);
        head.filled.set(head.filled.get() + 1);
        head.live.set(head.live.get() + 1 - usize::from(old.is_some()));
    }

    /// Ends an entry. The caller has the bucket.
    pub(super) fn end(self, word: usize, index: usize) {
        let tags = self.word(word);
        // Relaxed: our own. Release: nothing is published; the order of our own stores.
        tags.store(tags::with(tags.load(Relaxed), index, tags::DEAD), Release);
        self.head().live.set(self.head().live.get() - 1);
    }

    /// All live slots, with their tags.
    pub(super) fn live(self) -> impl Iterator<Item = (u64, *mut u8)> {
        (0..self.words()).flat_map(move |word| {
            // Acquire: pairs with the Release that stored the tag; the slot was written [HM-1].
            let tags = self.word(word).load(Acquire);
            tags::indexes(tags::live(tags))
                .map(move |index| (tags::get(tags, index), self.slot(word, index)))
        })
    }

    /// How many entries it has. The caller has the bucket.
    pub(super) fn count(self) -> usize {
        self.head().live.get()
    }
}

/// What changes of buckets leave behind.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// The first of the nodes that are out of reach, to be retired.
    nodes: Cell<*mut Node>,
    /// Slots that have died.
    pub(super) died: Cell<u32>,
}

impl Left {
    /// A node is out of reach.
    pub(super) fn push<F: Form>(&self, node: NodeRef<F>) {
        // Readers do not look at the link.
        node.head().link.set(self.nodes.replace(node.as_ptr()));
    }

    /// Takes one that is out of reach.
    ///
    /// # Safety
    /// All that were pushed are of this form.
    pub(super) unsafe fn pop<F: Form>(&self) -> Option<NodeRef<F>> {
        let node = NonNull::new(self.nodes.get())?;
        // SAFETY: by the contract.
        let node = unsafe { NodeRef::of(node) };
        self.nodes.set(node.head().link.get());
        Some(node)
    }
}
