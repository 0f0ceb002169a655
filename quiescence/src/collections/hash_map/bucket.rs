//! Buckets: a word of tags and flags, a pointer, and slots, in one cache line.
//!
//! **Invariant [HM-I1]: an entry is in a slot from the store of its pointer there to the store of
//! another pointer or of null, and its tag is in the word all that time.** In a node it is there
//! from the store of its tag to the store of an empty tag, and its slot is not written again.
//!
//! **Invariant [HM-I2]: an entry may move from the node of a bucket to the bucket's slots, never
//! the other way; and a node that has left the bucket does not change any more.** So a reader that
//! loads the pointer, and then the word, misses no entry that is there all the time: it is in a
//! slot, as the word says, or in that node, where it stays.

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::node::{Left, Node, NodeRef, Place};
use super::search::Seen;
use super::slot::Slot;
use crate::collections::patience::Patience;
use crate::collections::tags::{self, EMPTY, LOCK, MOVED, OVER};
use crate::os::memory::prefetch;
use crate::os::sync::{AtomicPtr, AtomicU64, array_of, const_unless_loom};

/// Slots of a bucket: as many as fit.
pub(super) const SLOTS: usize = if cfg!(loom) { 2 } else { 6 };

/// The bytes of the word that are slots.
const SLOT_BYTES: u64 = tags::node_bytes(SLOTS) << 8;

/// A bucket. Zeroes are an empty one.
#[repr(C, align(64))]
pub(super) struct Bucket<E> {
    /// Byte 0: flags. The others: the state of each slot.
    pub(super) word: AtomicU64,
    /// The node; null, if it has none, which is so without the flag `OVER`.
    pub(super) over: AtomicPtr<Node<E>>,
    slots: [Slot<E>; SLOTS],
}

const _: () = assert!(cfg!(loom) || size_of::<Bucket<()>>() == 64);

/// The node that a bucket's pointer leads to, if there is one.
#[inline]
pub(super) fn node_of<E>(over: *mut Node<E>) -> Option<NodeRef<E>> {
    // SAFETY: buckets have nodes that live until they are out of reach and a grace period is over.
    NonNull::new(over).map(|node| unsafe { NodeRef::of(node) })
}

impl<E> Bucket<E> {
    const_unless_loom! {
        pub(super) fn empty() -> Self {
            Self {
                word: AtomicU64::new(0),
                over: AtomicPtr::new(ptr::null_mut()),
                slots: array_of![Slot::empty(); SLOTS],
            }
        }
    }

    /// The live entries in it, as a word says, and in a node; null for those that have not come
    /// yet, or are gone.
    pub(super) fn live(
        &self,
        word: u64,
        node: Option<NodeRef<E>>,
    ) -> impl Iterator<Item = *const E> {
        let head = tags::indexes(tags::live(word) & SLOT_BYTES);
        let head = head.map(|index| self.slot(index).entry());
        head.chain(node.into_iter().flat_map(|node| node.live().map(|(_, entry)| entry)))
    }

    /// Has the boxes of its slots' entries loaded.
    #[inline(always)]
    pub(super) fn prefetch(&self) {
        if !cfg!(loom) {
            self.slots.iter().for_each(|slot| prefetch(slot.entry().cast()));
        }
    }

    /// The slot of a byte of the word.
    #[inline(always)]
    pub(super) fn slot(&self, index: usize) -> &Slot<E> {
        &self.slots[index - 1]
    }

    /// The index of the byte of a slot.
    #[inline(always)]
    fn index_of(&self, slot: &Slot<E>) -> usize {
        let bytes = ptr::from_ref(slot).addr() - self.slots.as_ptr().addr();
        bytes / size_of::<Slot<E>>() + 1
    }

    /// The entry with a tag that `is_it` accepts, among the slots that a word speaks of, and its
    /// slot.
    ///
    /// # Safety
    /// The word was loaded from the bucket in the section that is in progress, with Acquire.
    #[inline(always)]
    pub(super) unsafe fn search_head(
        &self,
        word: u64,
        tag: u64,
        is_it: &mut impl FnMut(&E) -> bool,
    ) -> Option<(&Slot<E>, *const E)> {
        let mut found = tags::matches(word, tag) & SLOT_BYTES;
        while found != 0 {
            //~ point slot-found
            let index = tags::first(found);
            // SAFETY: the index of a byte of `SLOT_BYTES`: from 1 to `SLOTS`.
            unsafe { std::hint::assert_unchecked(index - 1 < SLOTS) };
            let slot = self.slot(index);
            let entry = slot.entry();
            // SAFETY: null, or an entry that is not freed before the section ends.
            if unsafe { entry.as_ref() }.is_some_and(&mut *is_it) {
                return Some((slot, entry));
            }
            found &= found - 1;
        }
        None
    }
}

/// What the updater that has the bucket does with its node. The word is given and returned, so that
/// on the usual road it stays in a register.
impl<E> Bucket<E> {
    fn node(&self, word: u64) -> Option<NodeRef<E>> {
        // Relaxed: only the thread that has the bucket writes it, and the lock is Acquire.
        if word & OVER == 0 { None } else { node_of(self.over.load(Relaxed)) }
    }

    /// Stores the word, with the lock.
    #[inline(always)]
    fn publish(&self, word: u64) {
        // Release: pairs with the Acquire of readers: slots and nodes that it speaks of have been
        // written [HM-1] [HM-2].
        self.word.store(word | LOCK, Release); //~ map-relaxed-tag
    }

    /// Takes the node out of the bucket, whose word does not speak of it any more.
    fn detach(&self, node: NodeRef<E>, left: &Left<E>) {
        // Release: a reader that finds null here finds the word that came before it [HM-2].
        self.over.store(ptr::null_mut(), Release); //~ map-relaxed-detach
        left.push(node);
    }

    /// Adds an entry to the node; if that has no room, to a copy of it.
    #[cold]
    fn add_to_node(&self, word: u64, left: &Left<E>, tag: u64, entry: *const E) -> u64 {
        let old = self.node(word);
        if let Some(node) = old.filter(|node| node.has_room()) {
            // Release: pairs with the Acquire of readers: the slot has been written [HM-1].
            node.add(tag, entry, Release); //~ map-relaxed-node-tag
            return word;
        }
        let count = old.map_or(0, NodeRef::count) + 1;
        let node = NodeRef::new(count + count / 2, old);
        node.add(tag, entry, Relaxed);
        // Release: pairs with the Acquire of readers: the node has been written [HM-2].
        self.over.store(node.as_ptr(), Release); //~ map-relaxed-overflow
        self.publish(word | OVER);
        if let Some(old) = old {
            left.push(old);
        }
        word | OVER
    }

    #[cold]
    fn remove_from_node(&self, word: u64, left: &Left<E>, place: Place) -> u64 {
        let node = self.node(word).expect("the entry was found in a node");
        node.end(place);
        if node.count() != 0 {
            return word;
        }
        self.publish(word & !OVER);
        self.detach(node, left);
        word & !OVER
    }
}

/// The same in a node.
///
/// # Safety
/// The node was loaded from its bucket in the section that is in progress.
pub(super) unsafe fn search_node<E>(
    node: NodeRef<E>,
    tag: u64,
    is_it: &mut impl FnMut(&E) -> bool,
) -> Option<*const E> {
    let mut entries = node.tagged(tag).map(|(_, slot)| slot.entry());
    // SAFETY: an entry that is not freed before the section ends.
    let entry_at = |entry: *const E| unsafe { entry.as_ref() }.expect("its tag is stored after it");
    entries.find(|entry| is_it(entry_at(*entry)))
}

/// What an update has seen of a bucket.
pub(super) struct Sight<'b, E> {
    bucket: &'b Bucket<E>,
    word: u64,
    /// The entry that it looks for, and its slot. If there is none, the bucket has no node.
    found: Option<(&'b Slot<E>, *const E)>,
}

impl<'b, E> Sight<'b, E> {
    /// Looks for the entry with a tag that `is_it` accepts. `None` if another updater has the
    /// bucket, if its entries have moved, or if the update must look into its node or
    /// [`tend`](Locked::tend) it.
    ///
    /// # Safety
    /// As [`search`](super::search::search).
    #[inline(always)]
    pub(super) unsafe fn of(
        bucket: &'b Bucket<E>,
        tag: u64,
        mut is_it: impl FnMut(&E) -> bool,
    ) -> Option<Self> {
        // Acquire: as in `search` [HM-1].
        let word = bucket.word.load(Acquire); //~ map-relaxed-tag-load
        let has_room = || tags::matches(word, EMPTY) & SLOT_BYTES != 0;
        if word & (LOCK | OVER | MOVED) != 0 && (word & (LOCK | MOVED) != 0 || has_room()) {
            return None;
        }
        // SAFETY: loaded in the section.
        let found = unsafe { bucket.search_head(word, tag, &mut is_it) };
        (found.is_some() || word & OVER == 0).then_some(Self { bucket, word, found })
    }

    /// Of what a reader has found for the key, perhaps in a node or in the next table. Its word is
    /// no bucket's, so [`Locked::lock_as_seen`] takes it for out of date.
    pub(super) fn of_reader(bucket: &'b Bucket<E>, found: Option<*const E>) -> Self {
        Self { bucket, word: tags::NEVER, found: found.map(|entry| (bucket.slot(1), entry)) }
    }

    /// The entry that it looks for.
    #[inline(always)]
    pub(super) fn entry(&self) -> Option<*const E> {
        self.found.map(|(_, entry)| entry)
    }
}

/// Its entries are in the next table.
pub(super) struct Moved;

/// An entry, and where it is.
pub(super) struct Found<'b, E> {
    /// In the node; `None` if it is in the bucket itself.
    place: Option<Place>,
    pub(super) slot: &'b Slot<E>,
    pub(super) entry: *const E,
}

/// There is an entry that has not been looked at.
pub(super) struct Unknown;

/// A bucket that the caller has, alone among updaters. Readers see what it stores at once; it is
/// unlocked when it is dropped.
pub(super) struct Locked<'l, E> {
    bucket: &'l Bucket<E>,
    /// The word without the flag `LOCK`.
    word: u64,
    /// What is left behind.
    left: &'l Left<E>,
}

impl<E> Drop for Locked<'_, E> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the Acquire of the next one that locks it, and of readers [HM-4].
        //~ map-relaxed-tag map-relaxed-moved:
        self.bucket.word.store(self.word, Release);
    }
}

impl<'l, E> Locked<'l, E> {
    /// Locks a bucket, if what was seen there is still so. Returns where the entry is, if it is
    /// there.
    ///
    /// A word may be the same again after other updates. So an entry that was found is looked for
    /// in its slot, where it is as long as the pointer is there [HM-I1]; and if none was found, the
    /// word has no such tag.
    #[inline(always)]
    pub(super) fn lock_as_seen(
        Sight { bucket, word, found }: Sight<'l, E>,
        tag: u64,
        left: &'l Left<E>,
    ) -> Option<(Self, Option<Found<'l, E>>)> {
        // Acquire: pairs with the Release in `drop` [HM-4]. Relaxed: seen again.
        //~ map-relaxed-lock:
        bucket.word.compare_exchange(word, word | LOCK, Acquire, Relaxed).ok()?;
        let locked = Self { bucket, word, left };
        //~ point bucket-locked
        let Some((slot, entry)) = found else {
            let is_still = tags::matches(word, tag) & SLOT_BYTES == 0; //~ map-unseen
            return is_still.then_some((locked, None));
        };
        let is_still = slot.entry() == entry; //~ map-stale-slot
        is_still.then_some((locked, Some(Found { place: None, slot, entry })))
    }

    /// Locks a bucket.
    ///
    /// Waits for other updaters of the same bucket, which are at most some hundred instructions
    /// away from unlocking it.
    pub(super) fn lock(bucket: &'l Bucket<E>, left: &'l Left<E>) -> Result<Self, Moved> {
        let mut polls = 0;
        loop {
            // Acquire: for `MOVED`: the entries have been copied, by stores that nothing else
            // orders [HM-3].
            let word = bucket.word.load(Acquire);
            if word & (MOVED | LOCK) == MOVED {
                return Err(Moved);
            }
            // As in `lock_as_seen` [HM-4].
            if word & LOCK == 0
                //~ map-relaxed-lock:
                && bucket.word.compare_exchange_weak(word, word | LOCK, Acquire, Relaxed).is_ok()
            {
                //~ point bucket-locked
                return Ok(Self { bucket, word, left });
            }
            Patience::Wait.pass(&mut polls).expect("it waits");
        }
    }

    fn node(&self) -> Option<NodeRef<E>> {
        self.bucket.node(self.word)
    }

    /// Moves the entries of the node into the slots of the bucket, if these have room again: before
    /// anything else.
    pub(super) fn tend(&mut self) {
        let Some(node) = self.node() else { return };
        let free = tags::matches(self.word, EMPTY) & SLOT_BYTES;
        if node.count() > free.count_ones() as usize {
            return;
        }
        let mut word = self.word & !OVER;
        for ((tag, entry), index) in node.live().zip(tags::indexes(free)) {
            // The entry in the node stays as it is.
            self.bucket.slot(index).set(entry);
            word = tags::with(word, index, tag);
        }
        // One store: a reader finds them in the node before, in the slots afterwards. Then the
        // pointer: a reader that finds null there finds this word.
        //~ map-fold-by-halves map-detach-first
        self.word = word;
        self.bucket.publish(word);
        self.bucket.detach(node, self.left);
    }

    /// Where the entry is that an update looks for, if it is there: by address [HM-I3].
    ///
    /// # Errors
    /// There is an entry with its tag of which it knows nothing yet.
    pub(super) fn locate(&self, tag: u64, seen: &Seen<E>) -> Result<Option<Found<'l, E>>, Unknown> {
        let head = tags::indexes(tags::matches(self.word, tag) & SLOT_BYTES);
        let head = head.map(|index| (None, self.bucket.slot(index)));
        let node = self.node().into_iter().flat_map(|node| node.tagged(tag));
        let node = node.map(|(place, slot)| (Some(place), slot));
        let (mut others, mut is_all_known) = (seen.others.iter(), true);
        for (place, slot) in head.chain(node) {
            let entry = slot.entry();
            if seen.found == Some(entry) {
                return Ok(Some(Found { place, slot, entry }));
            }
            // They are in the order in which they were seen, as long as none has come.
            is_all_known &= others.any(|other| *other == entry);
        }
        if is_all_known { Ok(None) } else { Err(Unknown) } //~ map-unseen
    }

    /// Whether at most one of its slots is free.
    #[inline(always)]
    pub(super) fn is_crowded(&self) -> bool {
        let free = tags::matches(self.word, EMPTY) & SLOT_BYTES;
        free & free.wrapping_sub(1) == 0
    }

    /// Adds an entry whose key is not there.
    #[inline(always)]
    pub(super) fn add(&mut self, tag: u64, entry: *const E) {
        let free = tags::matches(self.word, EMPTY) & SLOT_BYTES;
        if free == 0 {
            self.word = self.bucket.add_to_node(self.word, self.left, tag, entry);
            return;
        }
        let index = tags::first(free);
        self.word = tags::with(self.word, index, tag);
        // The pointer is null, and its store the moment; see `slot`.
        //~ map-pointer-first:
        self.bucket.publish(self.word);
        //~ point slot-tagged
        self.bucket.slot(index).set(entry);
    }

    /// Removes an entry.
    #[inline(always)]
    pub(super) fn remove(&mut self, found: &Found<'_, E>) {
        let Some(place) = found.place else {
            found.slot.set(ptr::null()); //~ map-no-null
            self.word = tags::with(self.word, self.bucket.index_of(found.slot), EMPTY);
            return;
        };
        self.word = self.bucket.remove_from_node(self.word, self.left, place);
    }

    /// All live entries.
    pub(super) fn live(&self) -> impl Iterator<Item = *const E> {
        self.bucket.live(self.word, self.node())
    }

    //~ publish-moved

    /// Unlocks it as one whose entries are in the next table, where readers find them from now on.
    pub(super) fn leave_moved(mut self) {
        if let Some(node) = self.node() {
            self.left.push(node);
        }
        // No tag is left: a reader that finds nothing sees the flag. By `drop`, with Release: the
        // entries have been copied [HM-3].
        self.word = MOVED;
    }
}

/// Adds an entry to a bucket that no other thread can reach.
pub(super) fn add_unseen<E>(bucket: &Bucket<E>, tag: u64, entry: *const E) {
    // Relaxed, but for `Slot::set`, which others need: the flag `MOVED` of the old bucket publishes
    // all of it [HM-3].
    let word = bucket.word.load(Relaxed);
    let free = tags::matches(word, EMPTY) & SLOT_BYTES;
    if free != 0 {
        let index = tags::first(free);
        bucket.slot(index).set(entry);
        return bucket.word.store(tags::with(word, index, tag), Relaxed);
    }
    let node = match node_of(bucket.over.load(Relaxed)) {
        Some(node) if node.has_room() => node,
        old => {
            let node = NodeRef::new(2 * old.map_or(0, NodeRef::count) + 1, old);
            bucket.over.store(node.as_ptr(), Relaxed);
            bucket.word.store(word | OVER, Relaxed);
            // (Without a step before it readers may have seen it, and are to find the fault.)
            if let Some(old) = old {
                // SAFETY: no other thread has seen it.
                unsafe { old.free() }; //~ map-moved-before-copy
            }
            node
        }
    };
    node.add(tag, entry, Relaxed);
}
