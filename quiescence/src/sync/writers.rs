//! The lock among the writers of a [`SeqLock`](super::SeqLock) or a [`Latch`](super::Latch). It
//! shares a word with a number: in a `SeqLock`, the sequence.
//!
//! One locked instruction takes the lock, and a plain store releases it. The release needs a fence
//! between that store and the check for waiters: with membarrier, the thread that is about to sleep
//! executes it.
//!
//! ```text
//! take:    word |= a bit, if it has none (Acquire)                                   [SQ-3]
//!   else   again, for a while; then
//!          turn = came; came += 1; heavy fence                                       [SQ-4]
//!          sleep while left is not turn
//!          until word |= a bit, or it has HANDED, which goes (Acquire):              [SQ-3]
//!              w = wakes (Acquire), before it looks                                 [SQ-6]
//!              sleep while wakes = w; in vain? hungry = 1
//!          hungry = 0; left = turn + 1 (Release); fence                              [SQ-5]
//!          came is not left? wake those who sleep on left
//! let go:  hungry? word = number, LOCKED, HANDED (Release)                           [SQ-3]
//!                  wakes += 1 (Release), wake                                        [SQ-6]
//!   else   word = number (Release); light fence                                 [SQ-3] [SQ-4]
//!          came is not left? wakes += 1 (Release), wake                              [SQ-6]
//! ```
//!
//! **Invariants.** *Exclusion:* the word has a bit from the moment that a thread takes the lock
//! until it releases it; only the thread whose turn is `left` takes `HANDED`. *No lost wake-up:* a
//! thread sleeps after its heavy fence. A thread that releases the lock after that sees `came`; if
//! it released the lock before, the sleeper sees the word. *Bounded bypass:* sleepers are served in
//! the order of their turns; if the first of them has been woken in vain, the next thread that
//! releases the lock and sees that hands it over.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::os::fence::{self, Fences};
use crate::os::futex;
use crate::os::sync::{self, AtomicU32, const_unless_loom};

/// How often a thread tries before it asks for its turn, each time after twice as long: the lock is
/// held for the time of a copy, mostly. All in all about as long as falling asleep takes.
const TRIALS: u32 = 10;

/// In the word: the holder is at the words of the value.
pub(super) const ODD: u64 = 1;
/// In the word: the lock is held.
pub(super) const LOCKED: u64 = 2;
/// In the word, beside [`LOCKED`]: it is for the first of those who wait.
const HANDED: u64 = 4;
const BITS: u64 = ODD | LOCKED | HANDED;
/// What a reader of a `SeqLock` compares: who holds the lock is nothing to it.
pub(super) const SEQUENCE: u64 = !(LOCKED | HANDED);
/// The number in the word goes up by this.
pub(super) const ONE: u64 = 8;

/// The lock, and the number.
pub(super) struct Writers {
    /// Those who hold the lock may store to it, with the same bits or more.
    pub(super) word: AtomicU64,
    /// Whether the first of those who wait has been woken in vain.
    hungry: AtomicU32,
    /// How many threads have ever waited asleep, and how many of them have had their turn.
    came: AtomicU32,
    left: AtomicU32,
    /// How often the first of them was woken: what it sleeps on.
    wakes: AtomicU32,
}

impl Writers {
    const_unless_loom! {
        pub(super) fn new() -> Self {
            Self {
                word: AtomicU64::new(0),
                hungry: AtomicU32::new(0),
                came: AtomicU32::new(0),
                left: AtomicU32::new(0),
                wakes: AtomicU32::new(0),
            }
        }
    }

    /// The number, for the thread that holds the lock.
    #[inline(always)]
    pub(super) fn number(&self) -> u64 {
        // Relaxed: no other thread changes it.
        self.word.load(Relaxed) & !BITS
    }

    /// Takes the lock by setting a bit. Sleeps if that takes long. Gives the number.
    #[inline(always)]
    pub(super) fn take(&self, bit: u64) -> u64 {
        self.try_take(bit).unwrap_or_else(|| self.take_slow(bit))
    }

    /// Whether a thread holds the lock, for one that has `&mut` of what it guards.
    pub(super) fn is_held(&mut self) -> bool {
        *self.word.get_mut() & BITS != 0
    }

    #[inline(always)]
    fn try_take(&self, bit: u64) -> Option<u64> {
        // Relaxed: the exchange says whether it is still so.
        let word = self.word.load(Relaxed);
        // Acquire: pairs with the Release in `let_go` [SQ-3]. All that the holder before has
        // written is seen.
        let is_taken = word & BITS == 0
            && self.word.compare_exchange(word, word | bit, Acquire, Relaxed).is_ok();
        is_taken.then_some(word)
    }

    #[cold]
    #[inline(never)]
    fn take_slow(&self, bit: u64) -> u64 {
        for trial in 0..TRIALS {
            (0..1_u32 << trial).for_each(|_| sync::relax()); // twice as long each time
            if let Some(number) = self.try_take(bit) {
                return number;
            }
        }
        // Relaxed: the fence orders it.
        let turn = self.came.fetch_add(1, Relaxed);
        // Heavy: pairs with the light fence in `let_go` [SQ-4]. Either the holder sees that we have
        // come, or we see that it has let go. And it pairs with that of the thread whose turn is
        // before ours [SQ-5].
        fence::heavy(std::iter::empty()); //~ no-writers-fence
        loop {
            // Acquire: pairs with the Release below; the thread before us has the lock, or had it.
            let left = self.left.load(Acquire);
            if left == turn {
                break;
            }
            futex::wait(&self.left, left, None);
        }
        let number = self.take_first(bit);
        // Release: pairs with the Acquire above. No other thread stores it: we have the lock.
        self.left.store(turn.wrapping_add(1), Release);
        // Full: pairs with the fence of the next one to come [SQ-5]. Either it finds its turn, or
        // the futex the word changed; or we see that it has come.
        fence::full();
        // Relaxed: the fence orders it.
        if self.came.load(Relaxed) != turn.wrapping_add(1) {
            futex::wake_all(&self.left);
        }
        number
    }

    /// Takes the lock, as the first of those who wait.
    fn take_first(&self, bit: u64) -> u64 {
        let mut returns = 0_u32;
        let number = loop {
            // Acquire: pairs with the Release in `wake` [SQ-6]. The word that is loaded next is not
            // older than this wake-up; and after the next one the futex returns.
            let wakes = self.wakes.load(Acquire);
            // Acquire: pairs with the Release in `hand_over` [SQ-3], if that was the last.
            let word = self.word.load(Acquire);
            if word & HANDED != 0 {
                // No other thread stores as long as it is handed to us. Release: an even word hands
                // on what the holder before has written; a reader may find this store [SQ-1].
                self.word.store(word & !BITS | bit, Release);
                break word & !BITS;
            }
            if let Some(number) = self.try_take(bit) {
                break number;
            }
            if returns == 1 {
                // Relaxed: it is seen by and by; and only who holds the lock acts on it.
                self.hungry.store(1, Relaxed);
            }
            futex::wait(&self.wakes, wakes, None);
            returns = returns.saturating_add(1);
        };
        // Relaxed: for the next one to let go, which is this thread, or takes the lock after it.
        self.hungry.store(0, Relaxed);
        number
    }

    /// Lets go of the lock, with this number.
    #[inline(always)]
    pub(super) fn let_go(&self, number: u64) {
        // Relaxed: a hint. The thread that has set it waits: it would clear it under the lock.
        if self.hungry.load(Relaxed) != 0 {
            return self.hand_over(number);
        }
        // Release: pairs with the Acquire of the next thread that takes it [SQ-3].
        self.word.store(number, Release);
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
    fn hand_over(&self, number: u64) {
        // Release: pairs with the Acquire in `take_first` [SQ-3].
        self.word.store(number | LOCKED | HANDED, Release);
        self.wake();
    }

    /// Wakes the first of those who wait.
    #[cold]
    #[inline(never)]
    fn wake(&self) {
        //~ no-writers-wake-up {
        // Release: pairs with the Acquire in `take_first` [SQ-6].
        self.wakes.fetch_add(1, Release);
        futex::wake_all(&self.wakes);
        //~ }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::threads::until;
    use std::thread;

    /// Those who wait asleep come in the order of their turns.
    #[test]
    fn those_who_sleep_come_in_the_order_of_their_turns() {
        let writers = Writers::new();
        let order = std::sync::Mutex::new(Vec::new());
        thread::scope(|scope| {
            let number = writers.take(LOCKED);
            for sleeper in 0..4 {
                let (writers, order) = (&writers, &order);
                scope.spawn(move || {
                    let number = writers.take(LOCKED);
                    order.lock().unwrap().push(sleeper);
                    writers.let_go(number + ONE);
                });
                until(|| writers.came.load(Relaxed) == sleeper + 1);
            }
            writers.let_go(number + ONE);
        });
        assert_eq!(order.into_inner().unwrap(), [0, 1, 2, 3]);
        assert_eq!((writers.left.load(Relaxed), writers.number()), (4, 5 * ONE));
    }

    /// The lock is handed to the first of those who wait, and to no other.
    #[test]
    fn a_lock_that_is_handed_over_is_taken_by_those_who_wait_only() {
        let writers = Writers::new();
        let number = writers.take(ODD);
        writers.hungry.store(1, Relaxed);
        writers.let_go(number + ONE);
        assert_eq!(writers.try_take(ODD), None, "not for those who come by");
        assert_eq!(writers.take(LOCKED), ONE); // waits for its turn
        assert_eq!(writers.hungry.load(Relaxed), 0);
        writers.let_go(ONE);
        assert_eq!(writers.try_take(ODD), Some(ONE), "it is free again");
    }
}
