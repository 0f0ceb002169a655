//! A reader-writer lock whose readers mark a word of their CPU.
//!
//! A reader adds one to a word of its CPU, and at its end subtracts one, on whatever CPU it is
//! then. A writer folds the words into one, which then is the number of readers. New readers wait,
//! and the last of the old ones finds that no reader is left, and wakes the writer.
//!
//! ```text
//!   read                                      write, one at a time
//!   word 0 += 1                      [FD-1]   readers |= STOPPED; words gone
//!   refused: readers += 1, unless STOPPED:    readers += sum of the words     [FD-1]
//!            wait for our turn                sleep until no thread reads        [LG-2] [LG-3]
//!     ... reads ...                  [LG-1]     ... writes ...
//!   word 1 -= 1                               readers += the waiting ones
//!   refused: readers -= 1;                    unless another writer waits:
//!            the last wakes                     readers &= !STOPPED; words back  [LG-1]
//! ```
//!
//! A writer that ends counts the waiting readers as readers before the next writer may begin. So
//! they have their turn, whenever the system lets them run. New readers wait while a writer waits.
//! So turns alternate.

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::fence;

use super::folding::Folding;
use crate::domain::impls::{made_of_value, shown_as_target};
use crate::os::futex;
use crate::os::sync::{self, AtomicU32, Condvar, Mutex, Rank, const_unless_loom};

/// Looks of a writer before it sleeps: readers are mostly short.
const LOOKS: u32 = 100;

const MINUS_ONE: u64 = 1_u64.wrapping_neg();

/// In the number of readers while none may begin.
const STOPPED: u64 = 1 << 63;

/// The number of readers when there is none: so that it stays below [`STOPPED`], and above zero, if
/// more of them end there than have begun there.
const NOBODY: u64 = 1 << 62;

/// A reader-writer lock for data that is read all the time and seldom written. A reader costs a few
/// plain instructions on its own CPU's words; a writer costs a `membarrier(2)` and the wait for the
/// readers.
///
/// ```
/// use quiescence::sync::LocalGlobalLock;
///
/// static MOUNTS: LocalGlobalLock<Vec<&str>> = LocalGlobalLock::new(Vec::new());
/// MOUNTS.write().push("/");
/// let mounts = MOUNTS.read();
/// assert_eq!(mounts[0], "/");
/// ```
///
/// In contrast to [`Rcu`](crate::Rcu), a reader sees the newest value, and it does not change while
/// the reader holds the lock; so readers and writers wait for each other.
///
/// # Promise
/// Guards may be sent to other threads and dropped there. Writers get the lock in the order of
/// their calls. New readers do not overtake a waiting writer, and readers that wait while a thread
/// writes have their turn before the next writer. So a thread that takes a *second* read guard
/// deadlocks if a writer has arrived in between, as with the standard library's lock: use
/// [`try_read`](Self::try_read) for it.
///
/// A leaked guard holds the lock forever. There is no poisoning, as in `parking_lot`: if a writer
/// panics, the value stays as the writer left it. Not for signal handlers, except `try_read`. In a
/// child made by `fork` while another thread held the lock, or waited for it, `read` and `write`
/// may wait forever.
///
/// # Cost
/// About a hundred bytes, and 16 bytes for each CPU once it has been used 64 times. A thread that
/// waits checks a few times, then sleeps. Source: the local-global locks of Linux, and
/// percpu-rwsem, from which stopping readers and the grace period are taken.
pub struct LocalGlobalLock<T: ?Sized> {
    readers: Folding<2>,
    /// Changes when the last reader finds a writer waiting.
    drained: AtomicU32,
    turns: Mutex<Turns>,
    read_turn: Condvar,
    write_turn: Condvar,
    value: UnsafeCell<T>,
}

/// The writer that is next.
struct Turns {
    /// The number that the next writer gets.
    writers_came: u64,
    /// The number of the writer whose turn it is, or who will come next.
    writers_left: u64,
    readers_waiting: u64,
    /// How often readers that waited had their turn.
    read_turns: u64,
}

// SAFETY: the value moves with its lock.
unsafe impl<T: ?Sized + Send> Send for LocalGlobalLock<T> {}
// SAFETY: readers share the value, on several threads; a writer has it alone, on whatever thread.
unsafe impl<T: ?Sized + Send + Sync> Sync for LocalGlobalLock<T> {}

impl<T> LocalGlobalLock<T> {
    const_unless_loom! {
        /// Creates a lock around a value.
        pub fn new(value: T) -> Self {
            let turns =
                Turns { writers_came: 0, writers_left: 0, readers_waiting: 0, read_turns: 0 };
            Self {
                readers: Folding::new(NOBODY, false),
                drained: AtomicU32::new(0),
                turns: Mutex::new(Rank::LocalGlobal, turns),
                read_turn: Condvar::new(),
                write_turn: Condvar::new(),
                value: UnsafeCell::new(value),
            }
        }
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> LocalGlobalLock<T> {
    /// Borrows the value. The lock is borrowed exclusively, so no other thread uses it.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Takes the lock for reading. Waits while a thread writes or waits to write.
    #[inline]
    pub fn read(&self) -> LocalGlobalReadGuard<'_, T> {
        if !self.readers.add(1) {
            self.read_slow();
        }
        self.reading()
    }

    /// Takes the lock for reading, unless a thread writes or waits to write.
    #[must_use = "the lock is let go when the guard is dropped"]
    #[inline]
    pub fn try_read(&self) -> Option<LocalGlobalReadGuard<'_, T>> {
        (self.readers.add(1) || self.begin_at_once()).then(|| self.reading())
    }

    #[inline]
    fn reading(&self) -> LocalGlobalReadGuard<'_, T> {
        // Acquire, by way of the look at the words' place: pairs with the Release in
        // `Folding::go_on` [LG-1]. What a writer that is through has written is seen.
        fence(Acquire);
        LocalGlobalReadGuard { lock: self }
    }

    /// Begins to read where this CPU has no word for us, unless stopped.
    fn begin_at_once(&self) -> bool {
        let begin = |readers: u64| (readers & STOPPED == 0).then_some(readers + 1);
        // Acquire: pairs with the Release in `end_write` [LG-1].
        fetch_update!(self.readers.central, Acquire, Acquire, begin).is_ok()
    }

    #[cold]
    #[inline(never)]
    fn read_slow(&self) {
        if self.begin_at_once() {
            return;
        }
        let mut turns = sync::lock(&self.turns);
        // The thread that stops us has to take this lock before.
        if self.begin_at_once() {
            return;
        }
        turns.readers_waiting += 1;
        let turn = turns.read_turns;
        while turns.read_turns == turn {
            turns = sync::wait(&self.read_turn, turns);
        }
        // We have been counted by the writer that is through, and have taken the lock after it
        // [LG-1].
    }

    #[cold]
    #[inline(never)]
    fn end_slow(&self) {
        // AcqRel: what we have read happens before what the writer writes [LG-2].
        let before = self.readers.central.fetch_sub(1, AcqRel);
        // (Before all words are in it, this number may come by chance, and wakes for nothing.)
        //~ no-writer-wake-up:
        if before == (NOBODY | STOPPED) + 1 {
            self.drained.fetch_add(1, Release); // [LG-3]
            futex::wake_all(&self.drained);
        }
    }

    /// Takes the lock for writing. Waits for all readers and other writers.
    pub fn write(&self) -> LocalGlobalWriteGuard<'_, T> {
        let mut turns = sync::lock(&self.turns);
        let number = turns.writers_came;
        turns.writers_came += 1;
        while turns.writers_left != number {
            turns = sync::wait(&self.write_turn, turns);
        }
        let stopped = self.stop(&turns);
        drop(turns);
        if stopped {
            self.readers.gather(0);
        } // else the writer before us has left them so
        self.until_drained();
        LocalGlobalWriteGuard { lock: self }
    }

    /// Takes the lock for writing, unless a thread reads, writes, or waits to write. Even if it
    /// fails, readers that arrive meanwhile wait for some microseconds.
    #[must_use = "the lock is let go when the guard is dropped"]
    pub fn try_write(&self) -> Option<LocalGlobalWriteGuard<'_, T>> {
        // It may be torn; then somebody has read in this moment.
        if self.readers.guess() != NOBODY {
            return None;
        }
        let mut turns = sync::lock(&self.turns);
        if turns.writers_left != turns.writers_came {
            return None;
        }
        turns.writers_came += 1;
        self.stop(&turns);
        drop(turns);
        let readers = self.readers.gather(0);
        let guard = LocalGlobalWriteGuard { lock: self };
        // Acquire, in `gather`: pairs with the last reader's end [LG-2].
        (readers == NOBODY | STOPPED).then_some(guard) // else dropped, and that lets others go on
    }

    /// Has no reader begin from soon on. Returns `false` if that is so already, and all words are
    /// folded.
    fn stop(&self, _turns: &Turns) -> bool {
        // Relaxed: a word's own order is enough for a thread that comes to it, and `gather` is for
        // the others.
        self.readers.central.fetch_or(STOPPED, Relaxed);
        self.readers.stop(&self.readers.turn())
    }

    /// Sleeps until there is no reader.
    fn until_drained(&self) {
        let mut looks = 0;
        loop {
            // Acquire: pairs with the Release of the reader that wakes us [LG-3]. If it has been
            // there already, its end is seen below; else the futex finds the word changed.
            let seen = self.drained.load(Acquire);
            // Acquire: pairs with the end of the last reader [LG-2].
            if self.readers.central.load(Acquire) == NOBODY | STOPPED {
                return;
            }
            looks += 1;
            if looks <= LOOKS { sync::relax() } else { _ = futex::wait(&self.drained, seen, None) }
        }
    }

    fn end_write(&self) {
        let mut turns = sync::lock(&self.turns);
        turns.writers_left += 1;
        let (readers, writer) = (turns.readers_waiting, turns.writers_left != turns.writers_came);
        if readers != 0 {
            turns.readers_waiting = 0;
            turns.read_turns = turns.read_turns.wrapping_add(1);
            // Relaxed: the thread that writes next takes the lock after us.
            self.readers.central.fetch_add(readers, Relaxed);
        }
        if !writer {
            // Release: pairs with the Acquire in `begin_at_once`, and with those who find the words
            // again [LG-1].
            self.readers.central.fetch_and(!STOPPED, Release);
            self.readers.go_on(&self.readers.turn());
        }
        drop(turns);
        if readers != 0 {
            self.read_turn.notify_all();
        }
        if writer {
            self.write_turn.notify_all();
        }
    }
}

made_of_value!(LocalGlobalLock<T:>, new);

impl<T: ?Sized + fmt::Debug> fmt::Debug for LocalGlobalLock<T>
where
    Self: Sync,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("LocalGlobalLock");
        match self.try_read() {
            Some(guard) => f.field("value", &&*guard).finish(),
            None => f.field("value", &format_args!("<locked>")).finish(),
        }
    }
}

/// Holds a [`LocalGlobalLock`] for reading until it is dropped, on any thread.
#[must_use = "the lock is let go when the guard is dropped"]
pub struct LocalGlobalReadGuard<'l, T: ?Sized> {
    lock: &'l LocalGlobalLock<T>,
}

impl<T: ?Sized> Deref for LocalGlobalReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: no thread writes as long as we are counted.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for LocalGlobalReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Release: what was read was so before our end is seen [LG-2]. On x86 a matter of the
        // compiler only.
        fence(Release);
        // SAFETY: we borrow the lock.
        if !unsafe { Folding::add_second(&self.lock.readers, MINUS_ONE) } {
            self.lock.end_slow();
        }
    }
}

shown_as_target!(impl<T: ?Sized + fmt::Debug> fmt::Debug for LocalGlobalReadGuard<'_, T>);

/// Holds a [`LocalGlobalLock`] for writing until it is dropped, on any thread.
#[must_use = "the lock is let go when the guard is dropped"]
pub struct LocalGlobalWriteGuard<'l, T: ?Sized> {
    lock: &'l LocalGlobalLock<T>,
}

impl<T: ?Sized> Deref for LocalGlobalWriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: no other thread has it.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for LocalGlobalWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: no other thread has it.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for LocalGlobalWriteGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.end_write();
    }
}

shown_as_target!(impl<T: ?Sized + fmt::Debug> fmt::Debug for LocalGlobalWriteGuard<'_, T>);

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    fn until(lock: &LocalGlobalLock<Vec<u32>>, happened: impl Fn(&Turns) -> bool) {
        while !happened(&sync::lock(&lock.turns)) {
            thread::yield_now();
        }
    }

    #[test]
    fn readers_that_wait_have_their_turn_before_the_next_writer() {
        let lock = LocalGlobalLock::new(Vec::new());
        for _ in 0..100 {
            let mut first = lock.write();
            first.clear();
            thread::scope(|scope| {
                scope.spawn(|| lock.write().push(2));
                until(&lock, |turns| turns.writers_came - turns.writers_left == 2);
                let readers: Vec<_> = (0..3).map(|_| scope.spawn(|| lock.read().clone())).collect();
                until(&lock, |turns| turns.readers_waiting == 3);
                first.push(1);
                drop(first);
                for reader in readers {
                    assert_eq!(reader.join().expect("no panic"), [1], "between the two");
                }
            });
            assert_eq!(*lock.read(), [1, 2]);
        }
    }

    #[test]
    fn writers_come_in_the_order_of_their_calls() {
        let lock = LocalGlobalLock::new(Vec::new());
        let reader = lock.read();
        thread::scope(|scope| {
            for number in 0..8 {
                let lock = &lock;
                scope.spawn(move || lock.write().push(number));
                until(lock, |turns| turns.writers_came == u64::from(number) + 1);
            }
            drop(reader);
        });
        assert_eq!(lock.into_inner(), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn between_writers_that_follow_each_other_nothing_is_folded_again() {
        let lock = LocalGlobalLock::new(Vec::new());
        let first = lock.write();
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            scope.spawn({
                let lock = &lock;
                move || {
                    let second = lock.write();
                    sender.send(lock.readers.is_stopped()).expect("somebody receives");
                    drop(second);
                }
            });
            until(&lock, |turns| turns.writers_came == 2);
            drop(first);
            assert!(receiver.recv().expect("no panic"));
        });
        assert!(!lock.readers.is_stopped());
    }
}
