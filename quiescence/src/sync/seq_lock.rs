//! A few words that are read consistently, between two loads of a sequence number.
//!
//! ```text
//!   write                                            read
//!   sequence |= ODD, if free (Acquire)     [SQ-3]    before = sequence (Acquire)         [SQ-1]
//!   fence (Release)                        [SQ-2]    words (Relaxed)
//!   words (Relaxed)                                  fence (Acquire)                     [SQ-2]
//!   sequence = the next (Release)          [SQ-1]    sequence = before, not ODD? else again
//! ```
//!
//! **Invariant: while the words are not those of one value, the sequence is odd.** A reader that
//! finds the same even number twice has loaded no word of a later value, since it would then see
//! the odd number that was stored before that word [SQ-2]; and no word of an earlier value [SQ-1].
//!
//! The sequence is also the writers' lock (`writers.rs`). So a write is one locked instruction, the
//! words, and one store, all in one cache line if the value is small. `lock` takes the lock without
//! making the sequence odd.

use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::fence;

use bytemuck::NoUninit;

use super::words::Words;
use super::writers::{LOCKED, ODD, ONE, SEQUENCE, Writers};
use crate::domain::impls::{made_of_value, shown_as_target};
use crate::os::sync::{self, const_unless_loom};
use crate::os::user_code::{self, Site};

/// How often a reader tries again before it takes the writers' lock.
const RETRIES: u32 = 64;

/// A value of a few words that many threads read as a whole and that is written often: a sequence
/// lock.
///
/// [`read`](Self::read) copies the value between two loads of a sequence number, and writes nothing
/// to memory; a writer makes the number odd, writes, and makes it even again. There is no
/// allocation and no system call, so a write takes nanoseconds; a
/// [`Snapshot`](crate::cell::Snapshot) needs a `membarrier(2)` for it. In return readers wait for
/// writers, even for one that is preempted in the middle of a copy.
///
/// | | [`Snapshot`](crate::cell::Snapshot) | [`SeqLock`] | [`Latch`](super::Latch) |
/// |---|---|---|---|
/// | a read | wait-free | waits for writers | wait-free |
/// | a read in a signal handler | yes | [`try_read`](Self::try_read) only | yes |
/// | a write | a system call | a locked instruction | three locked instructions, two copies |
/// | a writer waits for | other updaters | other writers | other writers, occasionally readers |
/// | `T` | any `Copy` type, up to 8 KiB | no padding, any size | no padding, any size |
///
/// ```
/// use quiescence::sync::SeqLock;
///
/// static POSITION: SeqLock<[f64; 3]> = SeqLock::new([0.0; 3]);
/// POSITION.write([1.0, 2.0, 3.0]);
/// POSITION.update(|[x, y, z]| [x, y, z + 1.0]);
/// assert_eq!(POSITION.read(), [1.0, 2.0, 4.0]);
/// ```
///
/// # Which types
/// The value is read and written in words, each of them atomic, so that there is no data race. A
/// padding byte has no defined value that a word could hold. So `T` must have no padding, which
/// [`NoUninit`] asserts: numbers, arrays of them, and structs that derive it. The derive is that of
/// the crate `bytemuck`, feature `derive`, which your `Cargo.toml` has to name.
///
/// ```
/// # // As the derive of `bytemuck` writes it.
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Clock { base_ns: u64, mult: u32, shift: u32 } // #[derive(bytemuck::NoUninit)]
/// # unsafe impl quiescence::sync::NoUninit for Clock {}
///
/// let clock = quiescence::sync::SeqLock::new(Clock { base_ns: 0, mult: 1, shift: 0 });
/// assert_eq!(clock.read().mult, 1);
/// ```
/// ```compile_fail,E0277
/// quiescence::sync::SeqLock::new((1_u8, 2_u64)); // a tuple with padding
/// ```
///
/// # Waiting
/// A reader that meets a writer retries, 64 times. Then it takes the writers' lock for the duration
/// of one copy, without disturbing other readers; so each read ends, however often others write.
/// Threads that sleep on the lock take turns, and each can be overtaken only until it has been
/// woken once in vain. [`try_read`](Self::try_read) is wait-free and may fail.
///
/// A writer waits for other writers, including the time spent in the closure of
/// [`update`](Self::update) and under a guard of [`lock`](Self::lock). Readers continue during that
/// time: the sequence is odd only while the words are written. A leaked guard blocks writers, and
/// unlucky readers, forever.
///
/// # Signal handlers and `fork`
/// A handler that may have interrupted a writer may call only `try_read`. In a child made by `fork`
/// while another thread held the lock, or waited for it (a reader may, too), writes and reads may
/// wait forever.
///
/// # Cost
/// A read is two loads of the number and one of each word. A write is one locked instruction and a
/// store of each word. It takes 24 bytes in addition to the value, aligned to a cache line: number,
/// lock and a value of up to 40 bytes share one line, which moves to the writer once per write.
///
/// Source of the idea: the kernel's `seqlock_t`, by Stephen Hemminger and Andrea Arcangeli; its
/// orderings in C11: Hans-J. Boehm, "Can seqlocks get along with programming language memory
/// models?" (MSPC 2012).
#[repr(C, align(64))]
pub struct SeqLock<T: NoUninit> {
    /// With the sequence.
    writers: Writers,
    words: Words<T>,
}

// SAFETY: a value that goes with it.
unsafe impl<T: NoUninit + Send> Send for SeqLock<T> {}
// SAFETY: threads get copies; what they share is words that are read and written atomically.
unsafe impl<T: NoUninit + Send> Sync for SeqLock<T> {}

impl<T: NoUninit> SeqLock<T> {
    const_unless_loom! {
        /// Creates a sequence lock around a value.
        pub fn new(value: T) -> Self {
            Self { writers: Writers::new(), words: Words::new(value) }
        }
    }

    /// Returns the current value. See [Waiting](Self#waiting).
    #[inline]
    pub fn read(&self) -> T {
        self.try_read().unwrap_or_else(|| Words::by_words(self.read_slow()))
    }

    /// Returns the value, unless a thread is writing.
    ///
    /// Wait-free, also in signal handlers.
    #[inline]
    pub fn try_read(&self) -> Option<T> {
        let sequence = &self.writers.word;
        // Acquire: pairs with the Release in `write` [SQ-1]. If it is not odd, all words of that
        // value are seen, or later ones.
        let before = sequence.load(Acquire);
        let value: MaybeUninit<T> = self.words.load();
        // Acquire: pairs with the fence in `store` [SQ-2]. If one of the words is of a later value,
        // the sequence that is loaded next is a later one.
        fence(Acquire);
        // Odd or changed: one comparison finds both, since it becomes even by another number only.
        let is_whole = (sequence.load(Relaxed) ^ before & !ODD) & SEQUENCE == 0;
        //~ seq-no-recheck:
        if is_whole {
            // SAFETY: the words are those of one value, by the module's invariant.
            return Some(unsafe { value.assume_init() });
        }
        None
    }

    #[cold]
    #[inline(never)]
    fn read_slow(&self) -> T {
        for _ in 0..RETRIES {
            // Relaxed: a hint; while it is odd there is nothing to be copied.
            if self.writers.word.load(Relaxed) & ODD != 0 {
                sync::relax();
            } else if let Some(value) = self.try_read() {
                return value;
            }
        }
        *self.lock()
    }

    /// Replaces the value.
    ///
    /// Blocks while another thread writes.
    #[inline]
    pub fn write(&self, value: T) {
        let number = self.writers.take(ODD); //~ seq-no-odd
        self.store(value);
        // Release, in there: pairs with the Acquire in `try_read` [SQ-1]. The thread that sees the
        // number sees all words.
        self.writers.let_go(number + ONE);
    }

    /// Stores the words, while the sequence is odd.
    #[inline(always)]
    fn store(&self, value: T) {
        // Release: pairs with the fence in `try_read` [SQ-2]. The thread that loads one of the
        // words sees the odd number.
        fence(Release);
        self.words.store(value);
    }

    /// Replaces the value by the result of `f`, called with the current value, and returns the old
    /// one.
    ///
    /// Blocks while another thread writes. `f` runs once, with the writers' lock held, and must not
    /// write to this lock: it would deadlock. Readers are not delayed by it. If `f` panics, nothing
    /// has changed.
    #[inline]
    pub fn update(&self, f: impl FnOnce(T) -> T) -> T {
        let mut guard = self.lock();
        let old = *guard;
        guard.set(user_code::run(Site::Scope, || f(old)));
        old
    }

    /// Excludes other writers until the guard is dropped. Readers continue.
    #[inline]
    pub fn lock(&self) -> SeqLockGuard<'_, T> {
        self.writers.take(LOCKED);
        SeqLockGuard { lock: self, value: PhantomData }
    }

    /// Borrows the value. The thread that has `&mut` has no readers.
    ///
    /// # Panics
    /// If a writer has stopped half-way (which requires a `fork` during a write), or a guard was
    /// leaked.
    pub fn get_mut(&mut self) -> &mut T {
        assert!(!self.writers.is_held(), "quiescence: a writer of this SeqLock never finished");
        // SAFETY: no thread is in the midst of a write, so the value is whole.
        unsafe { self.words.get_mut() }
    }

    /// Returns the value.
    ///
    /// # Panics
    /// As [`get_mut`](Self::get_mut).
    pub fn into_inner(mut self) -> T {
        *self.get_mut()
    }
}

made_of_value!(SeqLock<T: NoUninit>, new);

impl<T: NoUninit + fmt::Debug> fmt::Debug for SeqLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_tuple("SeqLock");
        match self.try_read() {
            Some(value) => f.field(&value).finish(),
            None => f.field(&format_args!("<written>")).finish(),
        }
    }
}

/// Excludes other writers of a [`SeqLock`] until it is dropped, on any thread. Dereferences to the
/// value.
#[must_use = "the lock is let go when the guard is dropped"]
pub struct SeqLockGuard<'l, T: NoUninit> {
    lock: &'l SeqLock<T>,
    /// `Sync` only if references to a `T` may be shared.
    value: PhantomData<&'l T>,
}

impl<T: NoUninit> SeqLockGuard<'_, T> {
    /// Replaces the value; readers see it, too.
    #[inline]
    pub fn set(&mut self, value: T) {
        let SeqLock { writers, .. } = self.lock;
        let number = writers.number();
        // Relaxed: the fence in `store` orders it [SQ-2].
        writers.word.store(number | LOCKED | ODD, Relaxed); //~ seq-no-odd
        self.lock.store(value);
        // Release: as in `write` [SQ-1].
        writers.word.store((number + ONE) | LOCKED, Release);
    }
}

impl<T: NoUninit> Drop for SeqLockGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.writers.let_go(self.lock.writers.number());
    }
}

impl<T: NoUninit> Deref for SeqLockGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: only `set` stores, which needs this guard for itself; it leaves a whole value.
        unsafe { self.lock.words.get() }
    }
}

shown_as_target!(impl<T: NoUninit + fmt::Debug> fmt::Debug for SeqLockGuard<'_, T>);
