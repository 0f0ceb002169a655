//! Overflow nodes, for entries for which a bucket has no slot.
//!
//! A node has groups of eight slots, each with a word of tags without flags. Its slots are filled
//! once, one after the other; a full node is replaced by a copy. A node that readers cannot reach
//! any more is not written again.

use std::alloc::{self, Layout};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use super::headed::Headed;
use super::slot::Slot;
use crate::collections::tags;
use crate::os::sync::{AtomicU64, array_of};
use crate::reclaim::cache;

/// The head of a node; its groups follow.
#[repr(C)]
pub(super) struct Node<E> {
    groups: usize,
    /// Slots that have been filled: the first ones. For the updater that has the bucket,
    /// as all that follows.
    filled: Cell<usize>,
    /// Entries.
    live: Cell<usize>,
    /// The next one of those that are to be retired.
    link: Cell<*mut Node<E>>,
}

/// Slots that have one word of tags.
pub(super) const GROUP: usize = if cfg!(loom) { 2 } else { 8 };

/// Slots, and their tags.
pub(super) struct Group<E> {
    pub(super) tags: AtomicU64,
    pub(super) slots: [Slot<E>; GROUP],
}

impl<E> Group<E> {
    /// The bytes of its word that are slots.
    const SLOT_BYTES: u64 = tags::node_bytes(GROUP);
}

/// Where a slot is: its group, and its index there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place(usize, usize);

/// A node, with its groups.
pub(super) type NodeRef<E> = Headed<Node<E>, Group<E>>;

impl<E> NodeRef<E> {
    /// A node with the entries of `old` and room for at least `entries`.
    pub(super) fn new(entries: usize, old: Option<Self>) -> Self {
        let groups = entries.div_ceil(GROUP).next_power_of_two();
        let layout = Self::layout(groups);
        let Some(memory) = cache::allocate(layout) else { alloc::handle_alloc_error(layout) };
        let node = memory.cast();
        let (filled, live, link) = (Cell::new(0), Cell::new(0), Cell::default());
        // SAFETY: memory of this layout.
        unsafe { node.write(Node { groups, filled, live, link }) };
        // SAFETY: as above.
        let this = unsafe { Self::of(node) };
        for index in 0..groups {
            let group = Group { tags: AtomicU64::new(0), slots: array_of![Slot::empty(); GROUP] };
            // SAFETY: within the memory, which is ours.
            unsafe { this.element(index).write(group) };
        }
        for (tag, entry) in old.into_iter().flat_map(Self::live) {
            this.add(tag, entry, Relaxed); // what makes the node known publishes it
        }
        this
    }

    fn layout(groups: usize) -> Layout {
        let all = Layout::array::<Group<E>>(groups);
        let all = all.and_then(|groups| Layout::new::<Node<E>>().extend(groups));
        all.expect("a node is smaller than the address space").0
    }

    /// Gives its memory back.
    ///
    /// # Safety
    /// No thread uses it any more; boxes in it have other owners.
    pub(super) unsafe fn free(self) {
        let layout = Self::layout(self.head().groups);
        // SAFETY: from `new`.
        unsafe { cache::release(&[self.at.as_ptr().cast()], layout) };
    }

    /// Bytes of its memory.
    pub(super) fn bytes(self) -> usize {
        Self::layout(self.head().groups).size()
    }

    /// One of its groups.
    pub(super) fn group<'n>(self, index: usize) -> Option<&'n Group<E>> {
        // SAFETY: made by `new` with this many groups; it lives.
        (index < self.head().groups).then(|| unsafe { &*self.element(index) })
    }

    /// All of them.
    pub(super) fn groups<'n>(self) -> impl Iterator<Item = &'n Group<E>>
    where
        E: 'n,
    {
        (0..).map_while(move |index| self.group(index))
    }

    /// Whether there are slots that were never filled. The caller has the bucket.
    pub(super) fn has_room(self) -> bool {
        self.head().filled.get() < self.head().groups * GROUP
    }

    /// Adds an entry to a node that has room. The caller has the bucket.
    pub(super) fn add(self, tag: u64, entry: *const E, ordering: Ordering) {
        let head = self.head();
        let filled = head.filled.get();
        let (group, index) = (self.group(filled / GROUP).expect("there is room"), filled % GROUP);
        //~ map-node-tag-first
        group.slots[index].set(entry);
        // Relaxed: only the thread that has the bucket writes it.
        group.tags.store(tags::with(group.tags.load(Relaxed), index, tag), ordering);
        head.filled.set(filled + 1);
        head.live.set(head.live.get() + 1);
    }

    /// Ends an entry. The caller has the bucket.
    pub(super) fn end(self, Place(group, index): Place) {
        let tags = &self.group(group).expect("it has an entry").tags;
        // Relaxed: our own. Release: nothing is published; the order of our own stores.
        tags.store(tags::with(tags.load(Relaxed), index, tags::EMPTY), Release);
        self.head().live.set(self.head().live.get() - 1);
    }

    /// All entries, with their tags.
    pub(super) fn live<'n>(self) -> impl Iterator<Item = (u64, *const E)> + use<'n, E>
    where
        E: 'n,
    {
        let slots = self.slots(tags::live);
        slots.map(|(tags, Place(_, index), slot)| (tags::get(tags, index), slot.entry()))
    }

    /// The slots with a tag.
    pub(super) fn tagged<'n>(self, tag: u64) -> impl Iterator<Item = (Place, &'n Slot<E>)>
    where
        E: 'n,
    {
        let with_tag = move |tags| tags::matches(tags, tag) & Group::<E>::SLOT_BYTES;
        self.slots(with_tag).map(|(_, place, slot)| (place, slot))
    }

    /// The slots that `which` finds in the tags of their group; and these.
    fn slots<'n>(
        self,
        which: impl Fn(u64) -> u64,
    ) -> impl Iterator<Item = (u64, Place, &'n Slot<E>)>
    where
        E: 'n,
    {
        self.groups::<'n>().enumerate().flat_map(move |(at, group)| {
            // Acquire: pairs with the Release that stored the tag; the slot was written [HM-1].
            let tags = group.tags.load(Acquire); //~ map-relaxed-tag-load
            let indexes = tags::indexes(which(tags));
            indexes.map(move |index| (tags, Place(at, index), &group.slots[index]))
        })
    }

    /// How many entries it has. The caller has the bucket.
    pub(super) fn count(self) -> usize {
        self.head().live.get()
    }
}

/// What changes of buckets leave behind: the nodes that are out of reach, to be retired.
pub(super) struct Left<E>(Cell<*mut Node<E>>);

impl<E> Left<E> {
    pub(super) const fn nothing() -> Self {
        Self(Cell::new(std::ptr::null_mut()))
    }

    #[inline(always)]
    pub(super) fn is_nothing(&self) -> bool {
        self.0.get().is_null()
    }

    /// A node is out of reach.
    pub(super) fn push(&self, node: NodeRef<E>) {
        // Readers do not look at the link.
        node.head().link.set(self.0.replace(node.as_ptr()));
    }

    /// Takes one that is out of reach.
    pub(super) fn pop(&self) -> Option<NodeRef<E>> {
        // SAFETY: pushed, and alive until the caller retires it.
        let node = unsafe { NodeRef::of(NonNull::new(self.0.get())?) };
        self.0.set(node.head().link.get());
        Some(node)
    }
}
