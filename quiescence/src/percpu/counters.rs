//! Per-CPU words, small until they are used.
//!
//! Memory for them is handed out in *chunks*, each with a region per CPU and the same offset in
//! every region: `word of cpu c = word of cpu 0 + (c << STRIDE_SHIFT)`. So the words of many owners
//! stand side by side in one CPU's cache lines, and `W` words cost `8 W` bytes a CPU, rounded up to
//! a power of two. After the kernel's per-CPU allocator (Christoph Lameter, Tejun Heo).
//!
//! [`PerCpuCounters`] are `W` counters. They begin as `W` shared words, to which everybody adds
//! with an atomic instruction, and get words for every CPU once they have been used some, so that
//! thousands of them which are hardly used cost little. What has been counted in either place stays
//! there; a sum is over both.
//!
//! # Memory
//! A chunk has 64 KiB for each CPU that there may be: 128 KiB of addresses on 2, 16 MiB on 256.
//! Memory comes with the pages that are written to: of 4 KiB, on each CPU that counts, for the
//! first 126 `PerCpuCounters<4>` of a chunk, and so on. So 2,000 of them that are used on 2 CPUs
//! take 128 KiB. A sum reads the words of all CPUs that there may be; pages that no thread wrote to
//! are the system's one page of zeros. Chunks are never given back, places in them are used again.
//!
//! # Who may
//! Everything but giving back may be done in a signal handler: taking a place neither locks nor
//! allocates elsewhere, and where the system has no memory, counters stay small and right. In a
//! child made by `fork` all continues: there is no lock that another thread could have held.
//!
//! Leak checkers do not look into chunks, which are no heap: the thread that keeps the only pointer
//! to a heap object in one would see it reported.
//!
//! **Invariant [PC-1]: a CPU's word is written by restartable sequences only, or by atomic
//! instructions only**: which of the two is the process's [`PerCpuPath`]. The thread that cannot
//! use a sequence where others do (no rseq in this thread, a CPU without words, too many
//! interruptions) adds to the shared words.

use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};

use crate::os::memory;
use crate::os::percpu::{self, PerCpuPath, STRIDE_SHIFT};

/// Uses without words for every CPU between two attempts to get them.
const GROWS_EVERY: u64 = 64;

/// The header of a chunk, in front of the first region.
#[repr(C, align(64))]
struct Chunk {
    /// Bytes of each region that are in use.
    used: AtomicUsize,
}

/// Words of one kind: for each CPU, or one for all.
struct Arena {
    newest: AtomicPtr<Chunk>,
    /// Places that were given back, by the logarithm of their words: several stacks of each.
    free: [[Free; STACKS]; CLASSES],
    /// How many regions a chunk has; 0: one for each CPU.
    regions: usize,
}

const CLASSES: usize = 4;

/// A place always returns to the same stack. So if most places are free each stack has some, and a
/// thread that comes upon the takers of a few finds one in the next. One that finds all of them
/// taken from takes a fresh place.
const STACKS: usize = 8;

static PER_CPU: Arena = Arena::new(0);
static SHARED: Arena = Arena::new(1);

impl Arena {
    const fn new(regions: usize) -> Self {
        let newest = AtomicPtr::new(ptr::null_mut());
        Self { newest, free: [const { [const { Free::new() }; STACKS] }; CLASSES], regions }
    }

    fn regions(&self) -> usize {
        if self.regions == 0 { percpu::slots() } else { self.regions }
    }

    const fn class(words: usize) -> usize {
        assert!(words > 0 && words <= 1 << (CLASSES - 1), "at most a cache line");
        words.next_power_of_two().ilog2() as usize
    }

    /// So many words in each region, all zero; `None` where the system has no memory.
    fn take(&self, words: usize) -> Option<*mut u64> {
        let class = Self::class(words);
        let (stacks, first) = (&self.free[class], percpu::slot());
        if let Some(place) = (first..first + STACKS).find_map(|at| stacks[at % STACKS].pop()) {
            self.each(place, 1 << class, |word| word.store(0, Relaxed));
            return Some(place);
        }
        let bytes = 8 << class;
        loop {
            // Acquire: pairs with the exchange in `extend`.
            let chunk = self.newest.load(Acquire);
            if !chunk.is_null() {
                // SAFETY: chunks are never given back.
                let used = unsafe { &(*chunk).used };
                // Relaxed: a place is its taker's own; the memory is zero since it was mapped.
                // Places of one size are aligned to it, so that none lies in two cache lines.
                let place = fetch_update!(used, Relaxed, Relaxed, |used| {
                    let next = used.next_multiple_of(bytes) + bytes;
                    (next <= 1 << STRIDE_SHIFT).then_some(next)
                });
                if let Ok(used) = place {
                    // SAFETY: within the first region.
                    return Some(unsafe { chunk.byte_add(used.next_multiple_of(bytes)) }.cast());
                }
            }
            self.extend(chunk)?;
        }
    }

    /// A new chunk in place of a full one, unless somebody else was first.
    fn extend(&self, full: *mut Chunk) -> Option<()> {
        let bytes = self.regions() << STRIDE_SHIFT;
        let chunk: *mut Chunk = memory::map_zeroed(bytes)?.cast();
        let header = Chunk { used: AtomicUsize::new(size_of::<Chunk>()) };
        // SAFETY: just mapped, and no other thread's yet.
        unsafe { chunk.write(header) };
        // AcqRel: the thread that finds the chunk finds its header.
        if self.newest.compare_exchange(full, chunk, AcqRel, Relaxed).is_err() {
            // SAFETY: mapped above, and no thread has seen it.
            unsafe { memory::unmap(chunk.cast(), bytes) };
        }
        Some(())
    }

    fn give_back(&self, place: *mut u64, words: usize) {
        self.stack(place, words).push(place);
    }

    /// The stack of a place that has so many words.
    fn stack(&self, place: *mut u64, words: usize) -> &Free {
        let spread = (place.addr() as u64 / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15); // 2^64 / phi
        &self.free[Self::class(words)][(spread >> 32) as usize % STACKS]
    }

    /// All words of a place.
    fn each(&self, place: *mut u64, words: usize, f: impl Fn(&AtomicU64)) {
        for region in 0..self.regions() {
            // SAFETY: in the region of a place of so many words.
            (0..words).for_each(|word| f(unsafe { word_of(place, region, word) }));
        }
    }
}

/// A word of a place, in one region: of one CPU.
///
/// # Safety
/// The place has so many words, in so many regions.
pub(crate) unsafe fn word_of(place: *mut u64, region: usize, word: usize) -> &'static AtomicU64 {
    let word = place.wrapping_byte_add(region << STRIDE_SHIFT).wrapping_add(word);
    // SAFETY: by the contract; aligned and mapped for ever; written atomically, or by sequences
    // whose store is whole.
    unsafe { AtomicU64::from_ptr(word) }
}

/// Places that were given back, in a stack whose links are their first words.
struct Free {
    top: AtomicPtr<u64>,
    /// The process in which a thread is taking one, or 0. Only one takes at a time, so what it
    /// finds on top stays there, whatever is put above it. The thread that finds it set goes to the
    /// next stack, or takes a fresh place, so no thread waits; and a child process does not care
    /// what a thread that it does not have has left here.
    taker: AtomicU32,
}

impl Free {
    const fn new() -> Self {
        Self { top: AtomicPtr::new(ptr::null_mut()), taker: AtomicU32::new(0) }
    }

    /// Where a place has its link.
    fn link(place: *mut u64) -> &'static AtomicPtr<u64> {
        // SAFETY: a word that is mapped for ever, and that is a link as long as the place is on the
        // stack.
        unsafe { AtomicPtr::from_ptr(place.cast()) }
    }

    fn push(&self, place: *mut u64) {
        // Release: pairs with the Acquire in `pop`; what the last owner did to its words comes
        // before.
        let _below: Result<_, _> = fetch_update!(self.top, Release, Relaxed, |top| {
            Self::link(place).store(top, Relaxed);
            Some(place)
        });
    }

    fn pop(&self) -> Option<*mut u64> {
        self.pop_meanwhile(|| ())
    }

    /// The same, where something may come in between: for a test.
    #[inline(always)]
    fn pop_meanwhile(&self, mut meanwhile: impl FnMut()) -> Option<*mut u64> {
        // Relaxed: just a look.
        if self.top.load(Relaxed).is_null() {
            return None;
        }
        let process = std::process::id();
        let taker = self.taker.load(Relaxed);
        // Acquire: pairs with the Release below.
        if taker == process
            || self.taker.compare_exchange(taker, process, Acquire, Relaxed).is_err()
        {
            return None;
        }
        // Acquire: pairs with the exchange in `push`.
        let taken = fetch_update!(self.top, Acquire, Acquire, |top| {
            (!top.is_null()).then(|| {
                let next = Self::link(top).load(Relaxed);
                meanwhile();
                next
            })
        });
        // Release: the next taker comes after us.
        self.taker.store(0, Release);
        taken.ok()
    }
}

/// `W` counters, which only grow or wrap.
///
/// `first` is read by every addition, and `shared` written by those that use no words of a CPU's;
/// both stand where their owner puts them. What the owner writes often should not be in the same
/// cache line.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct PerCpuCounters<const W: usize> {
    /// The words of CPU 0, or null.
    pub(crate) first: AtomicPtr<u64>,
    shared: [AtomicU64; W],
    /// How often somebody came here while `first` was null.
    uses: AtomicU64,
}

impl<const W: usize> PerCpuCounters<W> {
    pub(crate) const fn new() -> Self {
        let shared = [const { AtomicU64::new(0) }; W];
        Self { first: AtomicPtr::new(ptr::null_mut()), shared, uses: AtomicU64::new(0) }
    }

    /// Adds one to the counter `word`, if it can be done in a sequence; else
    /// [`add_slow`](Self::add_slow) is to do it.
    #[inline(always)]
    pub(crate) fn try_increment(&self, word: usize) -> bool {
        debug_assert!(word < W);
        // Acquire: pairs with the exchange in `grow`. (The memory was zero before it was handed
        // out.)
        let first = self.first.load(Acquire);
        // SAFETY: every CPU has W words.
        !first.is_null() && unsafe { percpu::increment(first.wrapping_add(word)) }
    }

    /// The words of CPU 0, for sequences of the caller's own; null while there are none.
    #[inline(always)]
    pub(crate) fn first(&self) -> *mut u64 {
        self.first.load(Acquire) // as in `try_increment`
    }

    /// Adds with an atomic instruction. What the caller has done happens before what follows a sum
    /// that contains it. (An addition by a sequence orders nothing: the heavy fence does [SR-1].)
    #[cold]
    #[inline(never)]
    pub(crate) fn add_slow(&self, word: usize, amount: u64) {
        let first = self.first.load(Acquire); // as in `try_increment`
        if !first.is_null() && percpu::path() == PerCpuPath::Portable {
            // On this path no thread writes it but with atomic instructions [PC-1].
            // Release: pairs with the Acquire in `each` [SR-1].
            // SAFETY: every slot has W words.
            unsafe { word_of(first, percpu::slot(), word) }.fetch_add(amount, Release);
            return;
        }
        // Release: pairs with the Acquire in `shared` [SR-1].
        self.shared[word].fetch_add(amount, Release);
        if first.is_null() {
            self.note_use();
        }
    }

    /// A use without words for every CPU. Returns whether it has tried to get them.
    pub(crate) fn note_use(&self) -> bool {
        // Relaxed: it is a count.
        let is_time = self.uses.fetch_add(1, Relaxed) % GROWS_EVERY == GROWS_EVERY - 1;
        if is_time {
            self.grow();
        }
        is_time
    }

    /// Gets words for every CPU, if there is memory for them.
    fn grow(&self) {
        percpu::path(); // the thread that has words is about to use them
        if !self.first().is_null() {
            return;
        }
        let Some(place) = PER_CPU.take(W) else { return };
        // AcqRel: the thread that finds them finds them zero.
        if self.first.compare_exchange(ptr::null_mut(), place, AcqRel, Relaxed).is_err() {
            PER_CPU.give_back(place, W);
        }
    }

    /// What has been added to the counter `word` so far. Additions in progress may be in it or not.
    pub(crate) fn sum(&self, word: usize) -> u64 {
        let mut sum = self.shared(word);
        self.each(word, |_, count| sum = sum.wrapping_add(count)); //~ shared-only
        sum
    }

    /// What the counter `word` has of those who add with atomic instructions because they must.
    pub(crate) fn shared(&self, word: usize) -> u64 {
        self.shared[word].load(Acquire) // pairs with the Release in `add_slow` [SR-1]
    }

    /// Adds there.
    pub(crate) fn add_shared(&self, word: usize, amount: u64) {
        // Relaxed: for those who are gone, in a child process.
        self.shared[word].fetch_add(amount, Relaxed);
    }

    /// Hands over what each CPU has counted, once there are words for each.
    pub(crate) fn each(&self, word: usize, mut f: impl FnMut(usize, u64)) {
        let first = self.first();
        if first.is_null() {
            return;
        }
        for slot in 0..percpu::slots() {
            // Acquire: pairs with the Release in `add_slow` [SR-1].
            // SAFETY: every slot has W words.
            f(slot, unsafe { word_of(first, slot, word) }.load(Acquire));
        }
    }
}

impl<const W: usize> Drop for PerCpuCounters<W> {
    fn drop(&mut self) {
        let first = *self.first.get_mut();
        if !first.is_null() {
            PER_CPU.give_back(first, W);
        }
    }
}

/// A cache line that is zero, does not move, and is shared by all CPUs: for what must stay where it
/// is though its owner moves. `None` where the system has no memory.
pub(crate) fn take_line() -> Option<*mut u64> {
    SHARED.take(8)
}

/// Gives a line back.
///
/// # Safety
/// It came from [`take_line`], and no thread uses it any more.
pub(crate) unsafe fn give_line_back(line: *mut u64) {
    SHARED.give_back(line, 8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::threads::threads;

    #[test]
    fn what_is_given_back_is_used_again_and_zero() {
        static ARENA: Arena = Arena::new(3);
        let places: Vec<_> = (0..3).map(|_| ARENA.take(2).expect("there is memory")).collect();
        ARENA.each(places[1], 2, |word| word.store(7, Relaxed));
        ARENA.give_back(places[1], 2);
        let again = ARENA.take(2).expect("there is memory");
        assert_eq!(again, places[1]);
        ARENA.each(again, 2, |word| assert_eq!(word.load(Relaxed), 0));
    }

    /// Threads take places, write to them and give them back: none is anybody else's meanwhile.
    #[test]
    fn a_place_has_one_owner() {
        static ARENA: Arena = Arena::new(2);
        threads(4, |thread| {
            for round in 0..if cfg!(miri) { 200 } else { 20_000 } {
                let value = (thread as u64 + 1) << 32 | round;
                let mine = [1, 2, 4].map(|words| (words, ARENA.take(words).unwrap()));
                for (words, place) in mine {
                    ARENA.each(place, words, |word| assert_eq!(word.swap(value, Relaxed), 0));
                }
                for (words, place) in mine {
                    ARENA.each(place, words, |word| assert_eq!(word.load(Relaxed), value));
                    ARENA.give_back(place, words);
                }
            }
        });
    }

    /// The thread that takes a place and puts it back in the midst of another's taking (a handler,
    /// or a thread) does not make that one take it with a link to a place that is in use.
    #[test]
    fn what_happens_between_a_look_and_the_exchange_does_no_harm() {
        let free = Free::new();
        let mut places = [0_u64; 3];
        places.iter_mut().for_each(|place| free.push(place));
        let (mut in_use, mut once) = (None, true);
        let taken = free.pop_meanwhile(|| {
            if std::mem::take(&mut once) {
                let top = free.pop();
                in_use = free.pop();
                // On top again, as if nothing had happened; but what was under it is in use.
                top.into_iter().for_each(|place| free.push(place));
            }
        });
        let rest = std::iter::from_fn(|| free.pop());
        let mut all: Vec<_> = taken.into_iter().chain(in_use).chain(rest).collect();
        let owners = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!((owners, all.len()), (3, 3), "each place has one owner");
        assert!(taken.is_some() && in_use.is_none(), "nobody takes while another is taking");
    }

    /// A child process does not wait for a thread that it does not have.
    #[test]
    fn who_was_taking_a_place_in_another_process_keeps_nobody_from_it() {
        static ARENA: Arena = Arena::new(1);
        let place = ARENA.take(1).unwrap();
        ARENA.give_back(place, 1);
        let free = ARENA.stack(place, 1);
        free.taker.store(std::process::id(), Relaxed);
        assert_ne!(ARENA.take(1).unwrap(), place, "another thread is at it");
        free.taker.store(std::process::id() ^ 1, Relaxed);
        assert_eq!(ARENA.take(1).unwrap(), place);
    }

    /// A past error: while a thread was taking a place, others took fresh ones, however many had
    /// been given back. So memory grew for as long as threads met there.
    #[test]
    fn who_meets_one_that_takes_a_place_takes_another_that_was_given_back() {
        static ARENA: Arena = Arena::new(1);
        let place = ARENA.take(1).unwrap();
        ARENA.give_back(place, 1);
        ARENA.stack(place, 1).taker.store(std::process::id(), Relaxed); // and is stopped there
        let take_and_give_back = |_| {
            let place = ARENA.take(1).unwrap();
            ARENA.give_back(place, 1);
            place
        };
        let places: std::collections::HashSet<_> = (0..1_000).map(take_and_give_back).collect();
        assert!(places.len() < 16, "{} fresh places, one after the other", places.len());
    }

    #[test]
    fn chunks_that_are_full_are_followed_by_others() {
        static ARENA: Arena = Arena::new(2);
        let places: Vec<_> = (0..3_000).map(|_| ARENA.take(8).unwrap().addr()).collect();
        let mut sorted = places.clone();
        sorted.sort_unstable();
        assert!(sorted.windows(2).all(|two| two[1] - two[0] >= 64), "places are apart");
        assert!(places.iter().all(|place| place % 64 == 0), "none lies in two cache lines");
    }
}
