//! Two copies of a few words, one of which is consistent at any time.
//!
//! ```text
//!   write, one at a time [SQ-3]              read
//!   sequence += 1 (odd)                        twice: before = sequence (Acquire)        [LT-1]
//!   fence; sleep while pins      [LT-3]                copy[before & 1] (Relaxed)
//!   copy[0] = value                                    fence (Acquire)                   [LT-2]
//!   sequence += 1 (Release)      [LT-1]                sequence = before? done
//!   fence; sleep while pins      [LT-3]        pins += 1; fence                          [LT-3]
//!   copy[1] = value                            copy[sequence & 1] (Acquire)              [LT-1]
//!                                              pins -= 1 (Release)                       [LT-4]
//! ```
//! The fences of the writer are release fences as well [LT-2]; it loads `pins` with Acquire [LT-4].
//!
//! **Invariant: while the sequence is `s`, `copy[s & 1]` is consistent and is not written.** So a
//! reader that finds the same number again has read one value. For a *pinned* reader, the copy that
//! it chooses is not written until it is unpinned. The writer stores the number that sends readers
//! to the other copy, executes a fence, and loads the pins; the reader pins, executes a fence, and
//! loads the number. So either the writer sees the pin, and waits; or the reader sees that number,
//! and takes the other copy, for which the same holds at the writer's next number. So a pinned
//! reader reads once and need not retry.
//!
//! **Writers wait for few readers:** a reader pins only after two steps of writers have overtaken
//! it, and no reader pins while a writer waits. So a writer waits only for reads in progress.

use std::fmt;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};

use bytemuck::NoUninit;

use super::words::Words;
use super::writers::{LOCKED, Writers};
use crate::domain::impls::made_of_value;
use crate::os::on_drop::OnDrop;
use crate::os::sync::{self, const_unless_loom};
use crate::os::user_code::{self, Site};
use crate::os::{self, nap};

/// How often a reader tries before it pins.
const ATTEMPTS: u32 = 2;

/// Looks of a writer at the pins before it lets time go by.
const LOOKS: u32 = 100;

/// A value of a few words whose readers never wait, in any context: two copies behind a sequence
/// number.
///
/// For values that are read in signal handlers, profilers and real-time threads, or by threads that
/// must not wait for a preempted writer: clocks and their conversion factors, tables of handlers.
/// [`SeqLock`](super::SeqLock) has a table of the differences.
///
/// ```
/// use quiescence::sync::Latch;
///
/// static RATE: Latch<[u64; 2]> = Latch::new([1, 1]);
/// RATE.write([1_000, 3]);
/// RATE.update(|[numerator, denominator]| [numerator + 1, denominator]);
/// assert_eq!(RATE.read(), [1_001, 3]);
/// ```
///
/// `T` is without padding, as for a [`SeqLock`](super::SeqLock#which-types).
///
/// # Waiting
/// [`read`](Self::read) is wait-free: at most three copies, and two locked instructions around the
/// last one. A handler that has interrupted a writer reads the value at the first attempt, since
/// that writer cannot continue meanwhile: it gets the old value until the new one is complete. (In
/// the kernel's latch, a reader retries for as long as writers interfere, by two steps each.)
///
/// A writer waits for other writers, as with `SeqLock`, and for readers that have pinned the
/// copies. A reader does that, for the duration of one copy, once two steps of writers have
/// interfered with it. If such a reader is preempted there, the writer checks every few
/// microseconds.
///
/// # Signal handlers and `fork`
/// A handler may read, whatever it interrupted; it must not write. In a child made by `fork` while
/// another thread was writing, or waiting to, or had pinned the copies, reads work, but a write may
/// wait forever.
///
/// # Cost
/// A read is two loads of the number and one of each word. A write is a locked instruction for the
/// lock, and two exchanges; each word is stored twice. 40 bytes in addition to the two copies,
/// aligned to a cache line.
///
/// Source of the idea: the kernel's `seqcount_latch_t`, by Mathieu Desnoyers and Peter Zijlstra.
/// Pins are our addition.
#[repr(C, align(64))]
pub struct Latch<T: NoUninit> {
    sequence: AtomicU64,
    writers: Writers,
    /// Readers between whose pin and end no copy is begun to be written, but the one at which the
    /// writer is.
    pins: AtomicU32,
    copies: [Words<T>; 2],
}

// SAFETY: a value that goes with it.
unsafe impl<T: NoUninit + Send> Send for Latch<T> {}
// SAFETY: threads get copies; what they share is words that are read and written atomically.
unsafe impl<T: NoUninit + Send> Sync for Latch<T> {}

impl<T: NoUninit> Latch<T> {
    const_unless_loom! {
        /// Creates a latch with a value.
        pub fn new(value: T) -> Self {
            Self {
                sequence: AtomicU64::new(0),
                writers: Writers::new(),
                pins: AtomicU32::new(0),
                copies: [Words::new(value), Words::new(value)],
            }
        }
    }

    /// Returns the current value.
    ///
    /// Wait-free, also in signal handlers.
    #[inline]
    pub fn read(&self) -> T {
        self.attempt().unwrap_or_else(|| Words::by_words(self.read_slow()))
    }

    /// The value, unless a writer's step comes between.
    #[inline(always)]
    fn attempt(&self) -> Option<T> {
        // Acquire: pairs with the Release in `publish` [LT-1]: the copy is whole.
        let before = self.sequence.load(Acquire);
        let value: MaybeUninit<T> = self.copy(before).load();
        // Acquire: pairs with the fences in `publish` [LT-2]. If one of the words is of a later
        // value, the number that is loaded next is a later one.
        fence(Acquire);
        let is_whole = self.sequence.load(Relaxed) == before;
        // SAFETY: the words are those of one value, by the module's invariant.
        is_whole.then(|| unsafe { value.assume_init() })
    }

    /// The copy that readers take at this number.
    #[inline(always)]
    fn copy(&self, sequence: u64) -> &Words<T> {
        &self.copies[(sequence & 1) as usize]
    }

    #[cold]
    #[inline(never)]
    fn read_slow(&self) -> T {
        for _ in 1..ATTEMPTS {
            if let Some(value) = self.attempt() {
                return value;
            }
        }
        self.read_pinned()
    }

    /// Reads while no writer begins to write the copy that is read.
    fn read_pinned(&self) -> T {
        // Relaxed: the fence orders it.
        self.pins.fetch_add(1, Relaxed);
        // Full: pairs with those in `publish` [LT-3].
        os::fence::full_after_locked();
        // Acquire: pairs with the Release in `publish` [LT-1].
        let value = self.copy(self.sequence.load(Acquire)).load();
        // Release: pairs with the Acquire in `until_unpinned` [LT-4]. What is written next has not
        // been read.
        self.pins.fetch_sub(1, Release);
        // SAFETY: the words are those of one value, by the module's invariant.
        unsafe { value.assume_init() }
    }

    /// Replaces the value. See [Waiting](Self#waiting).
    #[inline]
    pub fn write(&self, value: T) {
        let lock = self.lock();
        self.publish(value);
        drop(lock);
    }

    /// Replaces the value by the result of `f`, called with the current value, and returns the old
    /// one.
    ///
    /// `f` runs once, with the writers' lock held, and must not write to this latch: it would
    /// deadlock. Readers continue meanwhile. If `f` panics, nothing has changed.
    pub fn update(&self, f: impl FnOnce(T) -> T) -> T {
        let lock = self.lock();
        // SAFETY: under the lock both copies are whole, and stay so.
        let old = unsafe { *self.copies[0].get() };
        self.publish(user_code::run(Site::Scope, || f(old)));
        drop(lock);
        old
    }

    /// Keeps other writers out.
    #[inline]
    fn lock(&self) -> OnDrop<impl FnMut()> {
        let number = self.writers.take(LOCKED);
        OnDrop(move || self.writers.let_go(number))
    }

    /// Replaces the value; under the lock.
    fn publish(&self, value: T) {
        // Relaxed: it is written under the lock only.
        let before = self.sequence.load(Relaxed);
        for (step, copy) in (1..).zip(&self.copies) {
            //~ latch-copy-first
            // Release: pairs with the Acquire of readers [LT-1]. The thread that sees the number
            // sees the words of the copy that it is sent to.
            self.sequence.swap(before + step, Release);
            // Full: pairs with the fence in `read_pinned` [LT-3]; and as a release fence with that
            // in `attempt` [LT-2].
            os::fence::full_after_locked();
            self.until_unpinned(); //~ latch-no-pins
            copy.store(value);
        }
    }

    /// Waits until no reader is pinned.
    #[inline]
    fn until_unpinned(&self) {
        let mut looks = 0;
        // Acquire: pairs with the Release in `read_pinned` [LT-4].
        while self.pins.load(Acquire) != 0 {
            looks += 1;
            if looks < LOOKS { sync::relax() } else { nap::moment() }
        }
    }

    /// The value.
    ///
    /// # Panics
    /// If a writer has stopped half-way, which takes a `fork` during a write.
    pub fn into_inner(mut self) -> T {
        assert!(!self.writers.is_held(), "quiescence: a writer of this Latch never finished");
        // SAFETY: no thread is in the midst of a write, so the value is whole.
        unsafe { *self.copies[0].get_mut() }
    }
}

made_of_value!(Latch<T: NoUninit>, new);

impl<T: NoUninit + fmt::Debug> fmt::Debug for Latch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Latch").field(&self.read()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::threads::until;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    #[test]
    fn a_reader_that_is_pinned_reads_one_value() {
        let latch = Latch::new([1_u64; 8]);
        assert_eq!(latch.read_pinned(), [1; 8]);
        latch.write([2; 8]);
        assert_eq!((latch.read_pinned(), latch.read_slow()), ([2; 8], [2; 8]));
        assert_eq!(latch.pins.load(Relaxed), 0);
    }

    /// It comes to its first step, and no further; and readers read the old value meanwhile.
    #[test]
    fn a_writer_waits_for_a_reader_that_is_pinned() {
        let (latch, is_through) = (Latch::new(1_u64), AtomicBool::new(false));
        latch.pins.fetch_add(1, Relaxed);
        thread::scope(|scope| {
            scope.spawn(|| {
                latch.write(2);
                is_through.store(true, Release);
            });
            until(|| latch.sequence.load(Acquire) != 0);
            for _ in 0..100 {
                assert_eq!((latch.read(), latch.sequence.load(Acquire)), (1, 1));
                assert!(!is_through.load(Acquire));
                thread::yield_now();
            }
            latch.pins.fetch_sub(1, Release);
        });
        assert!(is_through.into_inner());
        assert_eq!(latch.read(), 2);
    }
}
