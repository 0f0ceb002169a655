//! The lock among the writers of a [`SeqLock`](super::SeqLock) or a [`Latch`](super::Latch).
//!
//! One locked instruction takes it, and a plain store lets it go: with membarrier, the thread that
//! is about to sleep pays for the fence between that store and the look whether a thread waits.
//!
//! ```text
//! take:    state FREE -> HELD (Acquire)                                              [SQ-3]
//!   else   a few looks; then
//!          turn = came; came += 1; heavy fence                                       [SQ-4]
//!          sleep while left is not turn
//!          until state FREE -> HELD, or HANDED -> HELD (Acquire):                    [SQ-3]
//!              sleep while HELD; woken in vain? hungry = 1
//!          hungry = 0; left = turn + 1; wake those who sleep on left
//! let go:  hungry? state = HANDED (Release), wake                                    [SQ-3]
//!   else   state = FREE (Release); light fence                                  [SQ-3] [SQ-4]
//!          came is not left? wake
//! ```
//!
//! **Invariants.** *Exclusion:* the state is not `FREE` from the moment that a thread has taken the
//! lock until it lets go of it; `HANDED` is taken by the thread only whose turn is `left`. *No lost
//! wake-up:* a thread sleeps after its heavy fence; a thread that lets go later sees that it has
//! come, and of one that let go before the sleeper sees the state. *Bounded bypass:* those who
//! sleep come in the order of their turns, and the first of them is passed by others only until it
//! has been woken once in vain.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::chaos::{self, Mutant};
use crate::os::fence::{self, Fences};
use crate::os::{futex, sync};

/// Looks before a thread asks for its turn: the lock is held for the time of a copy, mostly.
const LOOKS: u32 = 100;

const FREE: u32 = 0;
const HELD: u32 = 1;
const HANDED: u32 = 2;

/// The lock.
#[derive(Debug)]
pub(super) struct Writers {
    state: AtomicU32,
    /// Whether the first of those who wait has been woken in vain.
    hungry: AtomicU32,
    /// How many threads have ever waited asleep, and how many of them have had their turn.
    came: AtomicU32,
    left: AtomicU32,
}

/// The lock is held, until it is dropped, on whatever thread.
pub(super) struct Held<'w>(&'w Writers);

impl Writers {
    pub(super) const fn new() -> Self {
        Self {
            state: AtomicU32::new(FREE),
            hungry: AtomicU32::new(0),
            came: AtomicU32::new(0),
            left: AtomicU32::new(0),
        }
    }

    /// Takes the lock. Sleeps if that takes long.
    #[inline]
    pub(super) fn lock(&self) -> Held<'_> {
        if !self.try_take() {
            self.take_slow();
        }
        Held(self)
    }

    /// Whether a thread holds the lock, for one that has `&mut` of what it guards.
    pub(super) fn is_held(&mut self) -> bool {
        *self.state.get_mut() != FREE
    }

    #[inline]
    fn try_take(&self) -> bool {
        // Acquire: pairs with the Release in `let_go` [SQ-3]. All that the holder before has
        // written is seen.
        self.state.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }

    #[cold]
    #[inline(never)]
    fn take_slow(&self) {
        for _ in 0..LOOKS {
            // Relaxed: a hint.
            if self.state.load(Relaxed) == FREE && self.try_take() {
                return;
            }
            sync::relax();
        }
        // Relaxed: the fence orders it.
        let turn = self.came.fetch_add(1, Relaxed);
        // Heavy: pairs with the light fence in `let_go` [SQ-4]. Either the holder sees that we have
        // come, or we see that it has let go.
        if !chaos::mutant(Mutant::NoWritersFence) {
            fence::heavy(std::iter::empty());
        }
        loop {
            // Acquire: pairs with the Release below; the thread before us has the lock, or had it.
            let left = self.left.load(Acquire);
            if left == turn {
                break;
            }
            futex::wait(&self.left, left, None);
        }
        self.take_first();
        // Release: pairs with the Acquire above. No other thread stores it: we have the lock.
        self.left.store(turn.wrapping_add(1), Release);
        // Relaxed: who comes later finds its turn, or its futex the word changed.
        if self.came.load(Relaxed) != turn.wrapping_add(1) {
            futex::wake_all(&self.left);
        }
    }

    /// Takes the lock, as the first of those who wait.
    fn take_first(&self) {
        let mut woken = false;
        loop {
            // Relaxed: what takes the lock acquires.
            match self.state.load(Relaxed) {
                FREE if self.try_take() => break,
                FREE => {}
                HANDED => {
                    // Acquire: pairs with the Release in `hand_over` [SQ-3]. Nobody else takes it.
                    self.state.swap(HELD, Acquire);
                    break;
                }
                _ => {
                    if woken {
                        // Relaxed: it is seen by and by; and only who holds the lock acts on it.
                        self.hungry.store(1, Relaxed);
                    }
                    futex::wait(&self.state, HELD, None);
                    woken = true;
                }
            }
        }
        // Relaxed: for the next one to let go, which is this thread, or takes the lock after it.
        self.hungry.store(0, Relaxed);
    }

    #[inline]
    fn let_go(&self) {
        // Relaxed: a hint; if it is there the first of those who wait is not gone.
        if self.hungry.load(Relaxed) != 0 {
            return self.hand_over();
        }
        // Release: pairs with the Acquire of whoever takes it [SQ-3].
        self.state.store(FREE, Release);
        match fence::chosen() {
            // Light: pairs with the heavy fence in `take_slow` [SQ-4].
            Fences::Membarrier => fence::light(&fence::Cell::new()),
            Fences::Portable => fence::full(),
        }
        // Relaxed: the fence orders them.
        if self.came.load(Relaxed) != self.left.load(Relaxed) {
            self.wake();
        }
    }

    #[cold]
    #[inline(never)]
    fn hand_over(&self) {
        // Release: pairs with the Acquire in `take_first` [SQ-3].
        self.state.store(HANDED, Release);
        self.wake();
    }

    /// Wakes the first of those who wait.
    #[cold]
    #[inline(never)]
    fn wake(&self) {
        if !chaos::mutant(Mutant::NoWritersWakeUp) {
            futex::wake_all(&self.state);
        }
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.let_go();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// A thread that waits asleep is passed by no thread that comes after it has been woken in
    /// vain; and those who sleep come in their order.
    #[test]
    fn those_who_sleep_come_in_the_order_of_their_turns() {
        let writers = Writers::new();
        let order = std::sync::Mutex::new(Vec::new());
        thread::scope(|scope| {
            let held = writers.lock();
            for number in 0..4 {
                let (writers, order) = (&writers, &order);
                scope.spawn(move || {
                    let _held = writers.lock();
                    order.lock().unwrap().push(number);
                });
                while writers.came.load(Relaxed) != number + 1 {
                    thread::yield_now();
                }
            }
            drop(held);
        });
        assert_eq!(order.into_inner().unwrap(), [0, 1, 2, 3]);
        assert_eq!(writers.left.load(Relaxed), 4);
    }

    /// The lock is handed to the first of those who wait, and to no other.
    #[test]
    fn a_lock_that_is_handed_over_is_taken_by_those_who_wait_only() {
        let writers = Writers::new();
        let held = writers.lock();
        writers.hungry.store(1, Relaxed);
        drop(held);
        assert!(!writers.try_take(), "not for those who come by");
        drop(writers.lock()); // waits for its turn
        assert_eq!(writers.hungry.load(Relaxed), 0);
        assert!(writers.try_take(), "it is free again");
    }
}
