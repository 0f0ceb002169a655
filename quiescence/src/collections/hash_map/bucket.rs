//! Buckets: a word of tags and flags, a pointer, and slots, in whole cache lines.
//!
//! **Invariant [HM-I1]: an entry is where a word of tags says, from the store that says so to the
//! store that does not.** Its slot is written before the first [HM-1], and not again after the
//! second before every section has ended that may have loaded the word in between.
//!
//! **Invariant [HM-I2]: an entry comes into the slots of a bucket out of its node, or the other way
//! round, only together with another node, or none, in the bucket's pointer.** So a reader that
//! finds the same pointer before it loaded the bucket's word and after it has searched the node has
//! missed no entry that was there all the time. (The address of a node that it loaded is not used
//! again while its section lasts.)

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::entry::{At, BoxOf, EntryOf, Form};
use super::formed::Formed;
use super::known::Seen;
use super::node::{Left, Node, NodeRef};
use crate::collections::patience::Patience;
use crate::collections::tags::{self, DEAD, EMPTY, LOCK, MOVED, OVER, STAMPED};
use crate::os::sync::{AtomicPtr, AtomicU64};

/// What a map must know of its domain's grace periods.
pub(super) trait GracePeriods {
    /// The cookie of a full grace period from now on; of a caller whose last step was an atomic
    /// exchange. It asks for none.
    fn snapshot(&self) -> u64;

    /// Whether it is over.
    fn is_over(&self, cookie: u64) -> bool;
}

/// The first words of a bucket.
#[repr(C)]
pub(super) struct Head {
    /// Byte 0: flags. The others: the state of each slot.
    pub(super) word: AtomicU64,
    /// With the flag `OVER` the node. Else the cookie of the dead slots that are stamped, and one.
    pub(super) over: AtomicPtr<Node>,
}

/// A bucket, and of which form its slots are.
pub(super) type Bucket<F> = Formed<F, Head>;

/// Where an entry is in a bucket.
#[derive(Clone, Copy, Debug)]
pub(super) enum Location {
    /// The index of its byte in the bucket's word.
    Head(usize),
    /// The word, and the index of its byte, in the node.
    Node(usize, usize),
}

/// The pointer that stands for a cookie.
fn of_cookie(cookie: u64) -> *mut Node {
    // Cookies are even.
    ptr::without_provenance_mut(cookie as usize | 1)
}

/// The node that a bucket's pointer leads to, if it is one.
#[inline]
pub(super) fn node_of<F: Form>(over: *mut Node) -> Option<NodeRef<F>> {
    let node = if over.addr() & 1 == 0 { NonNull::new(over)? } else { return None };
    // SAFETY: buckets have nodes of their own form.
    Some(unsafe { NodeRef::of(node) })
}

impl<F: Form> Bucket<F> {
    /// The bytes of the word that are slots.
    const SLOT_BYTES: u64 = tags::head_bytes(F::SLOTS);

    /// The slots of the live entries in it, as a word says, and in a node.
    pub(super) fn live(
        self,
        word: u64,
        node: Option<NodeRef<F>>,
    ) -> impl Iterator<Item = *mut u8> + use<F> {
        let head = tags::indexes(tags::live(word) & Self::SLOT_BYTES);
        let head = head.map(move |index| self.slot(index));
        head.chain(node.into_iter().flat_map(|node| node.live().map(|(_, slot)| slot)))
    }

    /// The slot of a byte of the word.
    #[inline(always)]
    pub(super) fn slot(self, index: usize) -> *mut u8 {
        let first = size_of::<Head>().wrapping_sub(F::SLOT);
        self.as_ptr().cast::<u8>().wrapping_add(first.wrapping_add(index * F::SLOT))
    }

    /// Makes a bucket of zeroes one that loom knows.
    ///
    /// # Safety
    /// It is the caller's alone.
    pub(super) unsafe fn init(self) {
        let head = Head { word: AtomicU64::new(0), over: AtomicPtr::new(ptr::null_mut()) };
        // SAFETY: by the contract.
        unsafe { self.at.write(head) };
        for index in 1..=F::SLOTS {
            // SAFETY: by the contract.
            unsafe { F::init(self.slot(index)) };
        }
    }

    /// The entry with a tag that `is_it` accepts, among the slots that a word speaks of.
    ///
    /// # Safety
    /// The word was loaded from the bucket in the section that is in progress, with Acquire.
    #[inline(always)]
    pub(super) unsafe fn search_head(
        self,
        word: u64,
        tag: u64,
        is_it: &mut impl FnMut(&EntryOf<F>) -> bool,
    ) -> Option<At<F>> {
        let mut found = tags::matches(word, tag) & Self::SLOT_BYTES;
        while found != 0 {
            let index = tags::first(found);
            //~ point slot-found
            // SAFETY: the tag says that there is an entry.
            let entry = unsafe { F::entry(self.slot(index)) };
            // SAFETY: as above; it is not written to, or freed, before the section ends.
            if (F::WAITS || !entry.is_null()) && is_it(unsafe { &*entry }) {
                return Some(entry);
            }
            found &= found - 1;
        }
        None
    }
}

/// The same in a node.
///
/// # Safety
/// The node was loaded from its bucket in the section that is in progress.
pub(super) unsafe fn search_node<F: Form>(
    node: NodeRef<F>,
    tag: u64,
    is_it: &mut impl FnMut(&EntryOf<F>) -> bool,
) -> Option<At<F>> {
    for word in 0..node.words() {
        // Acquire: pairs with the Release that stored the tag; the slot was written [HM-1].
        let found = tags::matches(node.word(word).load(Acquire), tag); //~ map-relaxed-tag-load
        for index in tags::indexes(found) {
            // SAFETY: the tag says that there is an entry.
            let entry = unsafe { F::entry(node.slot(word, index)) };
            // SAFETY: as in `search_head`.
            if is_it(unsafe { &*entry }) {
                return Some(entry);
            }
        }
    }
    None
}

/// Its entries are in the next table.
pub(super) struct Moved;

/// An entry, and where it is.
pub(super) struct Found<F: Form> {
    pub(super) location: Location,
    pub(super) entry: At<F>,
}

/// There is an entry that has not been looked at.
pub(super) struct Unknown;

/// A bucket that the caller has, alone among updaters. Readers see what it stores at once; it is
/// unlocked when it is dropped.
pub(super) struct Locked<'g, F: Form, G: GracePeriods> {
    bucket: Bucket<F>,
    /// The word without the flag `LOCK`.
    word: u64,
    grace_periods: &'g G,
    /// What is left behind.
    left: &'g Left,
    /// Whether a slot has died under this lock.
    has_died: bool,
    /// Entries that have been added under it, less those that have been removed.
    pub(super) added: i32,
}

impl<F: Form, G: GracePeriods> Drop for Locked<'_, F, G> {
    #[inline]
    fn drop(&mut self) {
        if F::WAITS && self.has_died {
            self.stamp_now();
        }
        // Release: pairs with the Acquire of the next one that locks it, and of readers [HM-5].
        //~ map-relaxed-tag map-relaxed-moved:
        self.bucket.head().word.store(self.word, Release);
    }
}

impl<'g, F: Form, G: GracePeriods> Locked<'g, F, G> {
    /// The bucket, which the caller has [`locked`](Self::lock) with this word.
    #[inline(always)]
    pub(super) fn new(bucket: Bucket<F>, word: u64, grace_periods: &'g G, left: &'g Left) -> Self {
        Self { bucket, word, grace_periods, left, has_died: false, added: 0 }
    }

    /// Empties dead slots whose grace period is over, and fills them from the node, if
    /// `may_collapse`: before anything else.
    #[inline(always)]
    pub(super) fn tend(&mut self, may_collapse: bool) {
        //~ point bucket-locked
        if F::WAITS {
            self.stamp();
        }
        if may_collapse && self.word & OVER != 0 {
            self.collapse();
        }
    }

    /// Locks a bucket. Returns its word.
    ///
    /// Waits for other updaters of the same bucket, which are at most some hundred instructions
    /// away from unlocking it.
    #[inline(always)]
    pub(super) fn lock(bucket: Bucket<F>) -> Result<u64, Moved> {
        let head = bucket.head();
        // Relaxed: the exchange checks it.
        let word = head.word.load(Relaxed);
        // Acquire: pairs with the Release in `drop` [HM-5]. Relaxed: tried again.
        if word & (LOCK | MOVED) == 0
            //~ map-relaxed-lock:
            && head.word.compare_exchange(word, word | LOCK, Acquire, Relaxed).is_ok()
        {
            return Ok(word);
        }
        Self::wait_for_lock(head)
    }

    /// Locks a bucket that another updater has. Returns its word.
    #[cold]
    fn wait_for_lock(head: &Head) -> Result<u64, Moved> {
        let mut polls = 0;
        loop {
            // Acquire: for `MOVED`: the entries have been copied, by stores that nothing else
            // orders [HM-3].
            let word = head.word.load(Acquire);
            if word & (MOVED | LOCK) == MOVED {
                return Err(Moved);
            }
            // As in `lock` [HM-5].
            if word & LOCK == 0
                //~ map-relaxed-lock:
                && head.word.compare_exchange_weak(word, word | LOCK, Acquire, Relaxed).is_ok()
            {
                return Ok(word);
            }
            Patience::Wait.pass(&mut polls).expect("it waits");
        }
    }

    /// Empties the dead slots whose grace period is over, and has a cookie cover others.
    #[inline]
    fn stamp(&mut self) {
        let dead = tags::matches(self.word, DEAD) & Bucket::<F>::SLOT_BYTES;
        let mut stamped = tags::matches(self.word, STAMPED) & Bucket::<F>::SLOT_BYTES;
        if stamped != 0 && self.is_over() {
            self.word = tags::with_all(self.word, stamped, EMPTY);
            stamped = 0;
        }
        if dead != 0 && stamped == 0 {
            //~ map-no-cookie
            // The last step was the exchange that locked the bucket: the updaters that killed these
            // entries did so before [HM-4].
            let cookie = self.grace_periods.snapshot();
            self.set_cookie(cookie);
            self.word = tags::with_all(self.word, dead, STAMPED);
        }
    }

    /// Has a cookie cover the slots that have died under this lock, if the bucket's is free.
    fn stamp_now(&mut self) {
        let dead = tags::matches(self.word, DEAD) & Bucket::<F>::SLOT_BYTES;
        self.left.died.set(self.left.died.get() + 1);
        //~ map-no-cookie
        //~ map-early-cookie
        // AcqRel: an exchange, so that the grace period of a cookie that is taken after it begins
        // later than this [HM-4]; and it publishes what the word speaks of [HM-1].
        self.bucket.head().word.swap(self.word | LOCK, AcqRel);
        let cookie = self.grace_periods.snapshot(); //~ map-early-cookie
        let stamped = tags::matches(self.word, STAMPED) & Bucket::<F>::SLOT_BYTES;
        if stamped == 0 {
            self.set_cookie(cookie);
        //~ map-shared-cookie:
        } else if cookie != self.cookie() {
            return; // covered when those that are stamped are empty
        }
        self.word = tags::with_all(self.word, dead, STAMPED);
    }

    fn node(&self) -> Option<NodeRef<F>> {
        // Relaxed: only the thread that has the bucket writes it, and the lock is Acquire.
        let over = self.bucket.head().over.load(Relaxed);
        if self.word & OVER == 0 { None } else { node_of(over) }
    }

    fn cookie(&self) -> u64 {
        match self.node() {
            Some(node) => node.head().cookie.get(),
            None => (self.bucket.head().over.load(Relaxed).addr() & !1) as u64,
        }
    }

    fn is_over(&self) -> bool {
        self.grace_periods.is_over(self.cookie())
    }

    fn set_cookie(&self, cookie: u64) {
        match self.node() {
            Some(node) => node.head().cookie.set(cookie),
            // Relaxed: readers do not follow it.
            None => self.bucket.head().over.store(of_cookie(cookie), Relaxed),
        }
    }

    /// Stores the word, with the lock.
    fn publish(&self) {
        // Release: pairs with the Acquire of readers: slots and nodes that it speaks of have been
        // written [HM-1] [HM-2].
        self.bucket.head().word.store(self.word | LOCK, Release); //~ map-relaxed-tag
    }

    /// Moves the entries of the node into the slots of the bucket, if these have room again.
    #[inline(never)]
    fn collapse(&mut self) {
        let Some(node) = self.node() else { return };
        let free = tags::matches(self.word, EMPTY) & Bucket::<F>::SLOT_BYTES;
        if node.count() > free.count_ones() as usize {
            return;
        }
        let mut word = self.word & !OVER;
        for ((tag, from), index) in node.live().zip(tags::indexes(free)) {
            // SAFETY: an empty slot, which is ours; the entry in the node stays as it is.
            unsafe { F::copy(from, self.bucket.slot(index)) };
            word = tags::with(word, index, tag);
        }
        // One store: a reader finds them in the node before, in the slots afterwards. Then the
        // pointer: a reader that loaded the old word and comes too late to the node polls again.
        //~ map-fold-by-halves
        self.word = word;
        self.publish();
        self.detach(node);
    }

    /// Takes the node out of the bucket, whose word does not speak of it any more.
    fn detach(&mut self, node: NodeRef<F>) {
        // Release: a reader that finds it here finds the word that came before it [HM-2].
        self.bucket.head().over.store(of_cookie(node.head().cookie.get()), Release);
        self.left.push(node);
    }

    /// Where the entry is that an update looks for, if it is there: by address [HM-I3].
    ///
    /// # Errors
    /// There is an entry with its tag of which it knows nothing yet.
    #[inline(always)]
    pub(super) fn locate(&self, tag: u64, seen: &Seen<F>) -> Result<Option<Found<F>>, Unknown> {
        let mut is_all_known = true;
        for index in tags::indexes(tags::matches(self.word, tag) & Bucket::<F>::SLOT_BYTES) {
            // SAFETY: we have the bucket, and the tag says that there is an entry.
            let entry = unsafe { F::entry(self.bucket.slot(index)) };
            if seen.found == Some(entry) {
                return Ok(Some(Found { location: Location::Head(index), entry }));
            }
            is_all_known &= seen.others.get(entry).is_some();
        }
        if self.word & OVER != 0 {
            is_all_known &= match self.locate_in_node(tag, seen) {
                Ok(Some(found)) => return Ok(Some(found)),
                result => result.is_ok(),
            };
        }
        if is_all_known { Ok(None) } else { Err(Unknown) } //~ map-unseen
    }

    #[cold]
    fn locate_in_node(&self, tag: u64, seen: &Seen<F>) -> Result<Option<Found<F>>, Unknown> {
        let (node, mut is_all_known) = (self.node().expect("the word says so"), true);
        for word in 0..node.words() {
            // Relaxed: only the thread that has the bucket writes it.
            for index in tags::indexes(tags::matches(node.word(word).load(Relaxed), tag)) {
                // SAFETY: we have the bucket, and the tag says that there is an entry.
                let entry = unsafe { F::entry(node.slot(word, index)) };
                if seen.found == Some(entry) {
                    return Ok(Some(Found { location: Location::Node(word, index), entry }));
                }
                is_all_known &= seen.others.get(entry).is_some();
            }
        }
        if is_all_known { Ok(None) } else { Err(Unknown) }
    }

    /// Entries in it.
    pub(super) fn count(&self) -> usize {
        let head = tags::live(self.word) & Bucket::<F>::SLOT_BYTES;
        let head = head.count_ones() as usize;
        head + self.node().map_or(0, NodeRef::count)
    }

    fn free_slot(&self) -> Option<usize> {
        let free = tags::matches(self.word, EMPTY) & Bucket::<F>::SLOT_BYTES;
        (free != 0).then(|| tags::first(free))
    }

    /// Adds an entry whose key is not there. Returns where it is.
    pub(super) fn add(&mut self, tag: u64, stored: F::Stored) -> At<F> {
        self.added += 1;
        if let Some(index) = self.free_slot() {
            return self.fill(index, tag, stored, self.word);
        }
        match self.node() {
            Some(node) if node.free_slot().is_some() => fill_node(node, tag, stored, None),
            node => self.copy_node(node, None, tag, stored),
        }
    }

    /// Replaces an entry. Returns where the new one is, and the box of the old one, if it has one.
    #[inline]
    pub(super) fn replace(
        &mut self,
        at: Location,
        tag: u64,
        stored: F::Stored,
    ) -> (At<F>, BoxOf<F>) {
        let slot = self.slot(at);
        // SAFETY: we have the bucket, and there is an entry.
        let stored = match unsafe { F::exchange(slot, stored) } {
            // SAFETY: as above.
            Ok(old) => return (unsafe { F::entry(slot) }, old),
            Err(stored) => stored,
        };
        let new = match (at, self.node()) {
            (Location::Head(old), node) => {
                self.has_died = true;
                let without = tags::with(self.word, old, DEAD);
                //~ map-dead-first
                match self.free_slot() {
                    // One store: the new entry, and the old one's end.
                    Some(index) => self.fill(index, tag, stored, without),
                    None => {
                        //~ map-overflow-late
                        // The new one first: a reader that does not find the old one finds it.
                        let new = self.copy_node(node, None, tag, stored);
                        self.word = tags::with(self.word, old, DEAD);
                        new
                    }
                }
            }
            (Location::Node(word, old), Some(node)) => match node.free_in(word) {
                Some(_) => fill_node(node, tag, stored, Some(old)),
                None => self.copy_node(Some(node), Some((word, old)), tag, stored),
            },
            (Location::Node(..), None) => unreachable!("the entry was found in a node"),
        };
        (new, ptr::null_mut())
    }

    /// Removes an entry. Returns its box, if it has one.
    pub(super) fn remove(&mut self, at: Location) -> BoxOf<F> {
        self.added -= 1;
        // SAFETY: we have the bucket, and there is an entry.
        let old = unsafe { F::boxed(self.slot(at)) };
        match at {
            Location::Head(index) => {
                self.has_died = true;
                // SAFETY: we have the bucket, and there is an entry.
                unsafe { F::clear(self.bucket.slot(index)) }; //~ map-no-null
                self.word = tags::with(self.word, index, if F::WAITS { DEAD } else { EMPTY });
            }
            Location::Node(word, index) => {
                let node = self.node().expect("the entry was found in a node");
                node.end(word, index);
                if node.count() == 0 {
                    self.word &= !OVER;
                    self.publish();
                    self.detach(node);
                }
            }
        }
        old
    }

    fn slot(&self, at: Location) -> *mut u8 {
        match at {
            Location::Head(index) => self.bucket.slot(index),
            Location::Node(word, index) => {
                self.node().expect("the entry was found in a node").slot(word, index)
            }
        }
    }

    /// Writes an entry into an empty slot; the word will be `word` and the tag.
    fn fill(&mut self, index: usize, tag: u64, stored: F::Stored, word: u64) -> At<F> {
        self.word = tags::with(word, index, tag);
        //~ map-tag-before-key map-pointer-first:
        if !F::WAITS {
            // The pointer is null, and its store the moment; see `entry`.
            self.publish();
            //~ point slot-tagged
        }
        let slot = self.bucket.slot(index);
        // SAFETY: empty, and ours. Readers look at it once the tag is stored [HM-1], by `drop`; or
        // find null.
        unsafe { F::write(slot, stored) };
        // SAFETY: written above.
        unsafe { F::entry(slot) }
    }

    /// Puts a new node into the bucket: a copy of the old one, without the entry at `without`, and
    /// with another one. Returns where that is.
    fn copy_node(
        &mut self,
        old: Option<NodeRef<F>>,
        without: Option<(usize, usize)>,
        tag: u64,
        stored: F::Stored,
    ) -> At<F> {
        let count = old.map_or(0, NodeRef::count) + 1;
        let node = NodeRef::<F>::new(count + count / 2);
        let without = without.zip(old).map(|((word, index), old)| old.slot(word, index));
        for (tag, from) in old.into_iter().flat_map(NodeRef::live) {
            if Some(from) != without {
                // SAFETY: the node is ours alone; the old entry stays as it is.
                unsafe { add_to_node(node, tag, from) };
            }
        }
        let new = fill_node(node, tag, stored, None);
        node.head().cookie.set(self.cookie());
        // Release: pairs with the Acquire of readers: the node has been written [HM-2].
        self.bucket.head().over.store(node.as_ptr(), Release); //~ map-relaxed-overflow
        self.word |= OVER;
        self.publish();
        if let Some(old) = old {
            self.left.push(old);
        }
        new
    }

    /// The slots of all live entries.
    pub(super) fn live(&self) -> impl Iterator<Item = *mut u8> + use<F, G> {
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

/// Writes an entry into the first slot of a node that was never filled, and ends another one of the
/// same word, by one store.
fn fill_node<F: Form>(node: NodeRef<F>, tag: u64, stored: F::Stored, old: Option<usize>) -> At<F> {
    let (word, index) = node.free_slot().expect("there is room");
    let slot = node.slot(word, index);
    // SAFETY: never filled, and the caller has the bucket.
    unsafe { F::write(slot, stored) };
    // Release: pairs with the Acquire of readers: the slot has been written [HM-1].
    node.fill(tag, old, Release); //~ map-relaxed-node-tag
    // SAFETY: written above.
    unsafe { F::entry(slot) }
}

/// Adds an entry to a bucket that no other thread can reach.
///
/// # Safety
/// It is so; `from` has an entry, which readers find there until then.
pub(super) unsafe fn add_copy<F: Form>(bucket: Bucket<F>, tag: u64, from: *const u8) {
    let head = bucket.head();
    // Relaxed, all of it: the flag `MOVED` of the old bucket publishes it [HM-3].
    let word = head.word.load(Relaxed);
    let free = tags::matches(word, EMPTY) & Bucket::<F>::SLOT_BYTES;
    if free != 0 {
        let index = tags::first(free);
        // SAFETY: empty, and ours.
        unsafe { F::copy(from, bucket.slot(index)) };
        return head.word.store(tags::with(word, index, tag), Relaxed);
    }
    let old = node_of::<F>(head.over.load(Relaxed));
    let node = match old {
        Some(node) if node.free_slot().is_some() => node,
        old => {
            let count = old.map_or(0, NodeRef::count);
            let node = NodeRef::<F>::new(2 * count + 1);
            for (tag, from) in old.into_iter().flat_map(NodeRef::live) {
                // SAFETY: as for the whole.
                unsafe { add_to_node(node, tag, from) };
            }
            head.over.store(node.as_ptr(), Relaxed);
            head.word.store(word | OVER, Relaxed);
            // (Without a step before it readers may have seen it, and are to find the fault.)
            if let Some(old) = old {
                // SAFETY: no other thread has seen it.
                unsafe { old.free() }; //~ map-moved-before-copy
            }
            node
        }
    };
    // SAFETY: as for the whole.
    unsafe { add_to_node(node, tag, from) };
}

/// Adds an entry to a node that has room, and that no other thread can reach.
unsafe fn add_to_node<F: Form>(node: NodeRef<F>, tag: u64, from: *const u8) {
    let (word, index) = node.free_slot().expect("there is room");
    // SAFETY: never filled, and ours.
    unsafe { F::copy(from, node.slot(word, index)) };
    // Relaxed: what makes the node known publishes it.
    node.fill(tag, None, Relaxed);
}
