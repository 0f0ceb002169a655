//! A bucket: a state, a word of tags, and slots with pairs; and everything done under one state.
//!
//! The words of pairs are atomics, read and written with relaxed order. (`sync/words` does the same
//! for a single value. Here loom must see the words, and key and value may share one.)

use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::collections::lines::Lines;
use crate::collections::tags;
use crate::os::sync::{AtomicPtr, AtomicU64, fence};
use crate::sync::NoUninit;

/// In a state: a thread changes the bucket.
pub(super) const LOCKED: u64 = 1;
/// In a state: the pairs of its hashes are in this bucket.
pub(super) const HERE: u64 = 2;
/// The number in a state goes up by this.
pub(super) const ONE: u64 = 4;

/// Words of the largest pair.
const WORDS_MAX: usize = 6;

/// What a bucket begins with; the words of its pairs follow.
#[repr(C)]
pub(super) struct Head {
    state: AtomicU64,
    pub(super) tags: AtomicU64,
    over: AtomicPtr<Head>,
}

/// A bucket of a table, or a node of its chain.
#[derive(Clone, Copy)]
pub(super) struct Bucket<K, V> {
    at: NonNull<Head>,
    of: PhantomData<fn() -> (K, V)>,
}

// SAFETY: it refers to atomics, and hands out copies of pairs that may be sent.
unsafe impl<K: Send, V: Send> Send for Bucket<K, V> {}

/// Where a pair is: a bucket or node, and a slot.
type At<K, V> = (Bucket<K, V>, usize);

/// What a search has found, all of it under one state.
pub(super) struct Seen<K, V> {
    pub(super) found: Option<(At<K, V>, (K, V))>,
    /// There was no slot for another pair; known if none was found.
    pub(super) is_full: bool,
}

impl<K: NoUninit, V: NoUninit> Bucket<K, V> {
    const WORDS: usize = {
        let bytes = size_of::<K>() + size_of::<V>();
        assert!(bytes <= 8 * WORDS_MAX, "a CopyMap's key and value must fit in 48 bytes together");
        if bytes == 0 { 1 } else { bytes.div_ceil(8) }
    };

    /// Pairs that it has room for: as many as fit in a cache line if they are a word each, and in
    /// two if they are larger. Two under loom.
    pub(super) const SLOTS: usize = {
        let bytes = if Self::WORDS == 1 { 64 } else { 128 } - 24;
        if cfg!(loom) { 2 } else { bytes / (8 * Self::WORDS) }
    };

    /// Bytes from one to the next.
    const STRIDE: usize = {
        let words = Self::SLOTS * Self::WORDS * size_of::<AtomicU64>();
        (size_of::<Head>() + words).next_multiple_of(64)
    };

    const SLOT_BYTES: u64 = tags::node_bytes(Self::SLOTS);

    /// Memory for `buckets` buckets.
    pub(super) fn lines(buckets: usize) -> Lines {
        let lines = Lines::new(buckets.checked_mul(Self::STRIDE));
        for index in (0..buckets).filter(|_| cfg!(loom)) {
            // SAFETY: the memory has `buckets` buckets.
            let bucket = unsafe { Self::at(&lines, index) };
            // SAFETY: ours alone.
            unsafe { bucket.init() };
        }
        lines
    }

    /// One of them.
    ///
    /// # Safety
    /// It was made by [`lines`](Self::lines), of more than `index` buckets, and stays as long as
    /// this is used.
    #[inline(always)]
    pub(super) unsafe fn at(lines: &Lines, index: usize) -> Self {
        // SAFETY: by the contract.
        let at = unsafe { lines.at().add(index * Self::STRIDE) };
        Self { at: at.cast(), of: PhantomData }
    }

    /// Makes loom's atomics, which are not zeros.
    ///
    /// # Safety
    /// No other thread has the bucket.
    unsafe fn init(self) {
        let (state, tags) = (AtomicU64::new(0), AtomicU64::new(0));
        let head = Head { state, tags, over: AtomicPtr::new(ptr::null_mut()) };
        // SAFETY: by the contract of `at`, and ours alone.
        unsafe { self.at.write(head) };
        for index in 0..Self::SLOTS * Self::WORDS {
            let word = ptr::from_ref(self.word(0, index)).cast_mut();
            // SAFETY: as above.
            unsafe { word.write(AtomicU64::new(0)) };
        }
    }

    #[inline(always)]
    pub(super) fn head<'h>(self) -> &'h Head {
        // SAFETY: by the contract of `at`: atomics, for which zero is a value.
        unsafe { self.at.as_ref() }
    }

    #[inline(always)]
    fn word<'h>(self, slot: usize, index: usize) -> &'h AtomicU64 {
        let words = self.at.as_ptr().wrapping_add(1).cast::<AtomicU64>();
        // SAFETY: a word of a slot, as above.
        unsafe { &*words.wrapping_add(slot * Self::WORDS + index) }
    }

    /// Has its lines loaded that are not the first one.
    #[inline(always)]
    pub(super) fn prefetch(self) {
        if Self::STRIDE > 64 {
            crate::os::memory::prefetch(self.at.as_ptr().cast::<u8>().wrapping_add(64));
        }
    }

    /// Its state; if that is [`HERE`] and not [`LOCKED`], it may be searched.
    #[inline(always)]
    pub(super) fn state(self) -> u64 {
        // SeqCst: Acquire, pairs with the Release in `release` [CM-1]: what was stored before it is
        // seen. And of one order with the locks of other buckets [CM-4].
        self.head().state.load(SeqCst) //~ copy-relaxed-state
    }

    /// Whether all that was loaded since `state` is of that state.
    #[inline(always)]
    fn is_still(self, state: u64) -> bool {
        // Acquire: pairs with the fence in `lock` [CM-2]. If a word was of a later state, the state
        // that is loaded next is a later one.
        fence(Acquire); //~ copy-no-reader-fence
        self.head().state.load(Relaxed) == state //~ copy-no-recheck
    }

    /// Locks it, if the state is still the one under which it was searched.
    #[inline(always)]
    pub(super) fn lock(self, state: u64) -> bool {
        // SeqCst: of one order with the loads of other buckets' states [CM-4]. With the same state
        // there is nothing to be seen that `state` has not shown.
        let exchange = self.head().state.compare_exchange(state, state | LOCKED, SeqCst, Relaxed);
        //~ copy-stolen:
        if exchange.is_err() {
            return false;
        }
        // Release: pairs with the fence in `is_still` [CM-2]. Who loads what is stored from here on
        // sees that the state is another one. So does a reader of the memory in an earlier use.
        fence(Release); //~ copy-no-lock-fence
        true
    }

    /// Unlocks the bucket, or begins or ends it, with this state.
    #[inline(always)]
    pub(super) fn release(self, state: u64) {
        // Release: pairs with the Acquire in `state` [CM-1].
        self.head().state.store(state, Release); //~ copy-relaxed-release
    }

    /// The node after this one. Of the same state, if that still is, or the caller has the lock: so
    /// what the node was made of has been seen.
    #[inline(always)]
    fn over(self) -> Option<Self> {
        let at = NonNull::new(self.head().over.load(Relaxed))?;
        Some(Self { at, ..self })
    }

    /// The node after a part of this bucket; unless that has changed since `state`.
    #[inline(always)]
    fn after(self, part: Self, state: u64) -> Option<Option<Self>> {
        let over = part.over();
        self.is_still(state).then_some(over)
    }

    /// A pair of `self`, which is `bucket` or in its chain; unless that has changed since `state`.
    #[inline(always)]
    fn pair(self, slot: usize, bucket: Self, state: u64) -> Option<(K, V)> {
        let mut words = [0_u64; WORDS_MAX];
        for (index, word) in words[..Self::WORDS].iter_mut().enumerate() {
            *word = self.word(slot, index).load(Relaxed);
        }
        if !bucket.is_still(state) {
            return None;
        }
        let bytes = words.as_ptr().cast::<u8>();
        // SAFETY: the bytes of one pair, as `store` had them: a tag said so under this state.
        let key = unsafe { bytes.cast::<K>().read_unaligned() };
        // SAFETY: as above.
        let value = unsafe { bytes.wrapping_add(size_of::<K>()).cast::<V>().read_unaligned() };
        Some((key, value))
    }

    /// Looks for a key. `None` if the bucket has changed since `state`. `is_key` may be user code:
    /// it gets whole keys only, and nothing is locked.
    #[inline(always)]
    pub(super) fn search(
        self,
        state: u64,
        tag: u64,
        is_key: impl Fn(&K) -> bool,
    ) -> Option<Seen<K, V>> {
        let (mut part, mut is_full) = (self, true);
        loop {
            let tags = part.head().tags.load(Relaxed);
            for slot in tags::indexes(tags::matches(tags, tag)) {
                let pair = part.pair(slot, self, state)?;
                if is_key(&pair.0) {
                    return Some(Seen { found: Some(((part, slot), pair)), is_full: false });
                }
            }
            is_full &= part.room().is_none();
            match self.after(part, state)? {
                Some(node) => part = node,
                None => return Some(Seen { found: None, is_full }),
            }
        }
    }

    /// Copies its pairs; no more than `into` has room for, without allocation. How many there are;
    /// `None` if it has changed since `state`.
    pub(super) fn copy(self, state: u64, into: &mut Vec<(K, V)>) -> Option<usize> {
        let (mut part, mut count) = (self, 0);
        loop {
            for slot in tags::indexes(tags::live(part.head().tags.load(Relaxed))) {
                count += 1;
                if into.len() < into.capacity() {
                    into.push(part.pair(slot, self, state)?);
                }
            }
            match self.after(part, state)? {
                Some(node) => part = node,
                None => return Some(count),
            }
        }
    }

    /// A slot without a pair.
    #[inline(always)]
    fn room(self) -> Option<usize> {
        let empty = tags::matches(self.head().tags.load(Relaxed), tags::EMPTY) & Self::SLOT_BYTES;
        (empty != 0).then(|| tags::first(empty))
    }

    /// Its nodes. The caller has locked the bucket, or no other thread can change it.
    pub(super) fn nodes(self) -> impl Iterator<Item = Self> {
        std::iter::successors(self.over(), |node| node.over())
    }
}

/// Changes, by the thread that has the lock; or that has the lock of the bucket from which this one
/// is filled.
impl<K: NoUninit, V: NoUninit> Bucket<K, V> {
    /// Has no pairs and no nodes.
    pub(super) fn clear(self) {
        self.head().tags.store(0, Relaxed);
        self.head().over.store(ptr::null_mut(), Relaxed);
    }

    /// Adds a pair; if there is no slot for it, in one of `spare`, which must not be empty then.
    #[inline]
    pub(super) fn add(self, tag: u64, pair: (K, V), spare: &mut Vec<Self>) {
        let mut part = self;
        let slot = loop {
            if let Some(slot) = part.room() {
                break slot;
            }
            part = part.over().unwrap_or_else(|| {
                let node = spare.pop().expect("as many as are needed");
                node.clear();
                part.head().over.store(node.at.as_ptr(), Relaxed);
                node
            });
        };
        part.store(slot, pair);
        part.set_tag(slot, tag);
    }

    /// Removes the pair of a slot of this bucket, or of its chain. If there is a chain, its last
    /// pair gets the slot: so only the last node has room, and none is empty. One that would be is
    /// taken out and given.
    #[inline]
    pub(super) fn remove(self, (part, slot): At<K, V>) -> Option<Self> {
        let Some(mut last) = self.over() else {
            part.set_tag(slot, tags::EMPTY);
            return None;
        };
        let mut before = self;
        while let Some(node) = last.over() {
            (before, last) = (last, node);
        }
        let tags = last.head().tags.load(Relaxed);
        let from = tags::first(tags::live(tags));
        for index in 0..Self::WORDS {
            part.word(slot, index).store(last.word(from, index).load(Relaxed), Relaxed);
        }
        part.set_tag(slot, tags::get(tags, from));
        last.set_tag(from, tags::EMPTY);
        let is_empty = tags::live(last.head().tags.load(Relaxed)) == 0;
        is_empty.then(|| {
            before.head().over.store(ptr::null_mut(), Relaxed);
            last
        })
    }

    /// Stores a pair in a slot.
    #[inline(always)]
    pub(super) fn store(self, slot: usize, (key, value): (K, V)) {
        let mut words = [0_u64; WORDS_MAX];
        let bytes = words.as_mut_ptr().cast::<u8>();
        // SAFETY: inside of the words. `NoUninit`: each byte is initialised, so each word is.
        unsafe { bytes.cast::<K>().write_unaligned(key) };
        // SAFETY: as above.
        unsafe { bytes.wrapping_add(size_of::<K>()).cast::<V>().write_unaligned(value) };
        for (index, word) in words[..Self::WORDS].iter().enumerate() {
            self.word(slot, index).store(*word, Relaxed);
        }
    }

    /// Says what a slot has.
    #[inline(always)]
    fn set_tag(self, slot: usize, tag: u64) {
        let tags = self.head().tags.load(Relaxed);
        self.head().tags.store(tags::with(tags, slot, tag), Relaxed);
    }
}
