//! A counter with a limit: the CPUs have stocks of what may still be added, which are recalled near
//! the limit.
//!
//! The counter stores the *room*, `limit - value`: a part in a shared pool, the rest as stocks of
//! the CPUs. An addition takes from the CPU's stock, a subtraction gives to it. A stock that is too
//! small is refilled with a part of the pool. If the pool is too small as well, all stocks are
//! folded into it. Then the pool *is* the room, and tells exactly whether the addition fits. The
//! counter stays folded until there is enough room to hand out again.

use std::sync::atomic::Ordering::Relaxed;

use super::folding::Folding;
use crate::domain::impls::shown_in_part;
use crate::os::percpu;
use crate::os::sync::const_unless_loom;

/// A stock is filled with at least so much, if there is.
const STOCK_MIN: u64 = 16;

/// Room for each CPU without which stocks are not worth their folding.
const ROOM_MIN: u64 = 64;

/// A counter that stays between zero and a limit.
///
/// ```
/// use quiescence::sync::LimitCounter;
///
/// static CONNECTIONS: LimitCounter = LimitCounter::new(10_000);
/// assert!(CONNECTIONS.try_add(1));
/// assert!(!CONNECTIONS.try_add(10_000));
/// assert_eq!(CONNECTIONS.value(), 1);
/// CONNECTIONS.sub(1);
/// ```
///
/// # Promise
/// The value never exceeds the limit. [`try_add`](Self::try_add) returns `false` only if at one
/// moment of the call the addition would have exceeded it. It orders no other memory accesses: a
/// thread that gets `true` does not necessarily see what the threads that subtracted did before.
/// Not for signal handlers, since it takes locks.
///
/// # Cost
/// Far from the limit an addition or subtraction is a few plain instructions on the CPU's stock,
/// and occasionally a lock, more often the less room there is. Within an eighth of the limit, or
/// with room for fewer than 64 per CPU, all threads share one word and use an atomic
/// compare-and-swap. The change to that word costs one `membarrier(2)`, as [`value`](Self::value)
/// does. Source: McKenney's exact limit counters; sharing one word near the limit is from Kent
/// Overstreet's percpu-refcount.
pub struct LimitCounter {
    /// `limit - value`. Starts folded: in the pool. The thread that moves room between the pool and
    /// a stock takes a turn for that, too: so the one whose turn it is finds all room in its place.
    room: Folding<1>,
    limit: u64,
}

impl LimitCounter {
    const_unless_loom! {
        /// Creates a counter at zero.
        pub fn new(limit: u64) -> Self {
            Self { room: Folding::new(limit, true), limit }
        }
    }

    /// The limit.
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Adds `amount` and returns `true`, unless the value would exceed the limit: then returns
    /// `false`.
    #[must_use = "not added if false"]
    #[inline]
    pub fn try_add(&self, amount: u64) -> bool {
        self.room.take(amount) || self.try_add_slow(amount)
    }

    /// Subtracts `amount`, which must have been added before. (This is not checked. If it was not,
    /// the value is wrong from then on, and more than the limit may be added.)
    #[inline]
    pub fn sub(&self, amount: u64) {
        if !self.room.add(amount) {
            self.sub_slow(amount);
        }
    }

    /// Returns the value at one moment of the call.
    pub fn value(&self) -> u64 {
        let turn = self.room.turn();
        let fold = self.room.stop(&turn);
        // While it is folded for longer, all room is in the pool already.
        let room = if fold { self.room.gather(0) } else { self.room.central.load(Relaxed) };
        if fold {
            self.room.go_on(&turn);
        }
        self.limit.saturating_sub(room)
    }

    #[cold]
    #[inline(never)]
    fn try_add_slow(&self, amount: u64) -> bool {
        if self.room.is_stopped() && self.take_from_pool(amount, 0) {
            self.unfold_if_roomy();
            return true;
        }
        let turn = self.room.turn();
        if !self.room.is_stopped() {
            if self.take_with_stock(amount) {
                return true;
            }
            self.room.stop(&turn);
            self.room.gather(0);
        }
        // No thread unfolds but who has the turn: the pool is the room.
        let fits = self.take_from_pool(amount, 0);
        drop(turn);
        self.unfold_if_roomy();
        fits
    }

    #[cold]
    #[inline(never)]
    fn sub_slow(&self, amount: u64) {
        // Relaxed, as everywhere: the pool's own order is all that is needed, and it has the fold's
        // in it.
        self.room.central.fetch_add(amount, Relaxed);
        self.unfold_if_roomy();
    }

    /// Takes `amount` and `more` out of the pool, if `amount` is there.
    fn take_from_pool(&self, amount: u64, more: u64) -> bool {
        let take = |room: u64| room.checked_sub(amount)?.checked_sub(more);
        fetch_update!(self.room.central, Relaxed, Relaxed, take).is_ok()
    }

    /// Takes `amount` out of the pool, and a stock for this CPU. By the thread that has the turn:
    /// what is on its way would be missing in a fold.
    fn take_with_stock(&self, amount: u64) -> bool {
        let pool = self.room.central.load(Relaxed);
        let Some(left) = pool.checked_sub(amount) else { return false };
        let stock = (left / (4 * percpu::slots() as u64)).max(STOCK_MIN).min(left);
        if !self.take_from_pool(amount, stock) {
            // Somebody was faster.
            return self.take_from_pool(amount, 0);
        }
        if !self.room.add(stock) {
            self.room.central.fetch_add(stock, Relaxed); // no word for us here
        }
        true
    }

    /// Hands room out to the CPUs again, once there is enough.
    fn unfold_if_roomy(&self) {
        let enough = (self.limit / 8).max(ROOM_MIN * percpu::slots() as u64);
        let is_roomy = || self.room.has_words() && self.room.central.load(Relaxed) >= enough;
        if is_roomy()
            && let Some(turn) = self.room.try_turn()
            && self.room.is_stopped()
            && is_roomy()
        {
            self.room.go_on(&turn);
        }
    }
}

// Without the value, which would have to be folded.
shown_in_part!([] LimitCounter { limit: |counter| counter.limit });
