//! Bounded memory: [`grace::limit`], implemented with two atomic words and a stock for each thread.
//!
//! **Invariant [L-1]: everything that waits in a domain has been charged to it.** The charge is the
//! sum of what waits and what local stocks hold. It is <= the limit, except for one object of each
//! thread that is over the limit, and for what had to be admitted without a thread's stock; both
//! are counted ([`Statistics::limit_overruns`](crate::report::Statistics)).
//!
//! **Invariant [L-3]: in each number of a local stock, objects and bytes, `over_limit == 0` or
//! `left == 0`.** What is given back pays for `over_limit` first; and if the domain admits more,
//! its charge is within the limit or was 0, so the stock is no longer over the limit. An object
//! needs both numbers, so a stock that covers one is not over the limit. A thread has two stocks in
//! a domain, one for objects and one for closures: neither says anything about the other.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use grace::batch;
use grace::limit::{self, Amount, Stock, Zone};

use crate::os::sync::{AtomicU64, const_unless_loom};
use crate::reclaim::domain_state::DomainState;

/// What has been charged to a domain, and how many queues share the limit. In cache lines of its
/// own: updaters store here, and readers load what is beside it.
#[repr(align(128))]
#[derive(Debug)]
pub(crate) struct Charge {
    objects: AtomicU64,
    bytes: AtomicU64,
    /// How many queues share the limit: thread queues, and callback queues, which threads of the
    /// program run. Changes under the lock of the list that the queue is in.
    pub(crate) queues: AtomicU64,
}

// Relaxed, all of it: each count is checked by itself; `grace::limit` says why that is enough.
impl Charge {
    const_unless_loom! {
        pub(crate) fn new() -> Self {
            Self {
                objects: AtomicU64::new(0),
                bytes: AtomicU64::new(0),
                queues: AtomicU64::new(0),
            }
        }
    }

    /// Charges `wanted`, if it fits.
    fn admit(&self, limit: Amount, wanted: Amount) -> bool {
        let seen = self.add(wanted);
        //~ point charged
        let admitted = limit::admit(seen, limit, wanted).is_some();
        if !admitted {
            self.give_back(wanted);
        }
        admitted
    }

    /// Charges `wanted`, whether it fits or not; the words saturate, as [`Amount`]'s arithmetic
    /// does. Returns what was charged before.
    ///
    /// If the words wrapped, 65,536 objects that claim 2^48 bytes each would bring one back to 0. A
    /// saturated word is full, and reaches 0 before all those objects are freed, never later: so it
    /// does not stay full.
    fn add(&self, wanted: Amount) -> Amount {
        let add = |word: &AtomicU64, wanted: u64| match wanted {
            0 => word.load(Relaxed),
            _ => {
                let more = |charged: u64| Some(charged.saturating_add(wanted));
                fetch_update!(word, Relaxed, Relaxed, more).unwrap_or_else(|charged| charged)
            }
        };
        Amount {
            objects: add(&self.objects, wanted.objects),
            bytes: add(&self.bytes, wanted.bytes),
        }
    }

    /// Subtracts `amount`, which has been freed or is not needed.
    pub(crate) fn give_back(&self, amount: Amount) {
        // Not below 0, which would wrap and look full: a word may have saturated.
        for (word, less) in [(&self.objects, amount.objects), (&self.bytes, amount.bytes)] {
            if less != 0 {
                let subtract = |charged: u64| Some(charged.saturating_sub(less));
                let _ = fetch_update!(word, Relaxed, Relaxed, subtract);
            }
        }
    }

    /// In a child process, whose other threads are gone.
    pub(crate) fn set(&self, charged: Amount) {
        self.objects.store(charged.objects, Relaxed);
        self.bytes.store(charged.bytes, Relaxed);
    }

    pub(crate) fn get(&self) -> Amount {
        Amount { objects: self.objects.load(Relaxed), bytes: self.bytes.load(Relaxed) }
    }
}

impl DomainState {
    /// The most that may wait here.
    pub(crate) fn limit(&self) -> Amount {
        Amount {
            objects: self.grace_periods.tuning.objects_max(),
            bytes: self.grace_periods.tuning.bytes_max(),
        }
    }

    /// How near the limit the domain is.
    pub(crate) fn zone(&self) -> Zone {
        limit::zone(self.charge.get(), self.limit())
    }

    /// Whether more is charged than the limit says.
    pub(crate) fn is_over_limit(&self) -> bool {
        !self.charge.get().fits(self.limit())
    }

    /// Admits an object that no thread's local stock covers.
    pub(crate) fn admit(&self, object: Amount) -> bool {
        self.charge.admit(self.limit(), object)
    }

    /// Admits an object over the limit. A thread with a local stock records it there as well
    /// ([`LocalStock::borrow`]).
    pub(crate) fn admit_over(&self, object: Amount) {
        if !object.is_none() {
            self.grace_periods.counters().limit_overruns.fetch_add(1, Relaxed);
        }
        self.charge.add(object);
    }

    /// How much a thread or a callback queue takes of the limit at once.
    pub(crate) fn chunk(&self) -> Amount {
        // Relaxed: an approximate count is enough.
        limit::chunk(self.limit(), self.charge.queues.load(Relaxed))
    }
}

/// What one thread may still add to its queue, without asking; see [`Stock`].
#[derive(Debug, Default)]
pub(crate) struct LocalStock {
    stock: Cell<Stock>,
    /// [`DomainState::chunk`], as it was last computed.
    chunk: Cell<Amount>,
    /// Each so many additions it is time to tend the queue. A new number counts from the next round
    /// on.
    pub(crate) round: Cell<u64>,
    /// How many callbacks will have been added when the thread's round ends. One that is larger
    /// than a chunk ends it: so those of a round together are a small part of the limit.
    round_ends: Cell<u64>,
    /// Callbacks that had been added when [`take_added`](Self::take_added) was last called.
    taken: Cell<u64>,
    /// How often the thread has flushed since that last asked for a grace period.
    pub(crate) flushes: Cell<u32>,
}

impl LocalStock {
    pub(crate) fn new(is_hazard: bool) -> Self {
        let (round, _) = batch::round(is_hazard, false, Amount::NONE);
        Self { round: Cell::new(round), round_ends: Cell::new(round), ..Self::default() }
    }

    /// Whether it is time to tend the queue, to which so many have been added: at the end of each
    /// round.
    #[inline(always)]
    pub(crate) fn ends_round(&self, added: u64) -> bool {
        let ends = added >= self.round_ends.get();
        if ends {
            self.round_ends.set(added + self.round.get());
        }
        ends
    }

    /// How many of `written` callbacks have been added since [`take_added`](Self::take_added).
    pub(crate) fn added(&self, written: u64) -> u64 {
        written - self.taken.get()
    }

    /// The same, and restarts the count.
    pub(crate) fn take_added(&self, written: u64) -> u64 {
        written - self.taken.replace(written)
    }

    /// Admits an object out of what is left.
    #[inline(always)]
    pub(crate) fn take(&self, object: Amount) -> bool {
        let mut stock = self.stock.get();
        let taken = stock.take(object);
        if taken {
            self.stock.set(stock);
        }
        taken
    }

    /// Admits an object, taking more from the domain.
    #[cold]
    pub(crate) fn refill(&self, domain: &DomainState, object: Amount) -> bool {
        let limit = domain.limit();
        if !object.fits(limit) {
            self.empty(domain); // it is admitted if nothing else is charged
        }
        self.chunk.set(domain.chunk());
        if object.bytes > self.chunk.get().bytes {
            self.round_ends.set(0);
        }
        [self.chunk.get(), Amount::NONE].into_iter().any(|chunk| {
            let wanted = self.stock.get().shortfall(object, chunk);
            let admitted = domain.charge.admit(limit, wanted);
            if admitted {
                self.with(|stock| stock.grant(wanted)); // no longer over the limit [L-3]
            }
            admitted && self.take(object)
        })
    }

    /// Admits an object over the limit, to be settled.
    pub(crate) fn borrow(&self, domain: &DomainState, object: Amount) {
        let wanted = self.stock.get().shortfall(object, Amount::NONE);
        domain.admit_over(wanted);
        self.with(|stock| stock.borrow(wanted));
        self.take(object);
    }

    /// The thread has freed `finished` of its own objects, or has not needed what it took. A stock
    /// that is over the limit pays for that first [L-3]. What it need not keep goes back to the
    /// domain.
    pub(crate) fn give_back(&self, domain: &DomainState, finished: Amount) {
        domain.charge.give_back(self.with(|stock| stock.give_back(finished, self.chunk.get())));
    }

    /// Gives back what is above the present chunk's bound, since the limit may have been lowered.
    pub(crate) fn trim(&self, domain: &DomainState) {
        self.chunk.set(domain.chunk());
        self.give_back(domain, Amount::NONE);
    }

    /// Checks whether the domain's charge is within the limit by now: then the stock is, too.
    /// Returns whether the stock is still over the limit.
    pub(crate) fn refresh_over_limit(&self, domain: &DomainState) -> bool {
        self.stock.get().is_over_limit()
            && self.with(|stock| stock.refresh_over_limit(domain.charge.get(), domain.limit()))
    }

    /// All that the thread has admitted has been freed, so it is within the limit.
    pub(crate) fn clear_over_limit(&self) {
        self.with(Stock::clear_over_limit);
    }

    /// A copy, for [`grace::limit::limit_action`].
    pub(crate) fn stock(&self) -> Stock {
        self.stock.get()
    }

    /// Gives back what is left: the thread ends, or has an object larger than the limit.
    pub(crate) fn empty(&self, domain: &DomainState) {
        domain.charge.give_back(self.with(Stock::empty));
    }

    /// In a child process: its thread is gone.
    pub(crate) fn forget(&self) {
        self.stock.set(Stock::EMPTY);
    }

    fn with<R>(&self, f: impl FnOnce(&mut Stock) -> R) -> R {
        let mut stock = self.stock.get();
        let result = f(&mut stock);
        self.stock.set(stock);
        result
    }
}

#[cfg(test)]
mod tests {
    use grace::Start;

    use super::*;
    use crate::gp::engine::Settings;
    use crate::gp::tuning::Tuning;

    /// 65,536 objects that were refused, dropped, and so went over the limit. Together they claim
    /// 2^64 bytes.
    #[test]
    #[cfg_attr(miri, ignore = "65,536 objects")]
    fn huge_objects_do_not_charge_a_domain_with_nothing() {
        const HUGE: Amount = Amount::object(Amount::BYTES_OF_OBJECT_MAX);
        let limit = Amount { objects: u64::MAX, bytes: 1 << 20 };
        let charge = Charge::new();
        for _ in 0..1 << 16 {
            charge.add(HUGE);
        }
        assert!(!charge.admit(limit, Amount::object(8)), "it is full");
        charge.give_back(HUGE);
        assert!(!charge.admit(limit, HUGE) && !charge.admit(limit, Amount::object(8)), "still");
        for _ in 1..1 << 16 {
            charge.give_back(HUGE);
        }
        assert_eq!(charge.get(), Amount::NONE);
        assert!(charge.admit(limit, Amount::object(8)), "and not full for ever");
    }

    /// A past error: after the domain had admitted more, a stock still counted as over the limit.
    /// So a stock could cover an object and yet be over the limit.
    #[test]
    fn a_stock_that_is_over_the_limit_pays_for_nothing_else() {
        let core = DomainState::new(Start::ZERO, Settings::DEFAULT);
        core.grace_periods.tuning.set(Tuning {
            objects_max: 100,
            bytes_max: 10_000,
            ..Tuning::default()
        });
        let (stock, one) = (LocalStock::default(), Amount::object(100));
        core.charge.add(Amount { objects: 99, bytes: 9_950 });
        assert!(!stock.refill(&core, one), "50 bytes are left");
        stock.borrow(&core, one);
        assert!(stock.refresh_over_limit(&core) && !stock.take(one) && !stock.refill(&core, one));
        // Some bytes are given back.
        stock.give_back(&core, Amount { objects: 0, bytes: 50 });
        assert!(!stock.take(Amount { objects: 0, bytes: 1 }), "it pays for what is over the limit");
        // Other threads free nearly everything.
        core.charge.give_back(Amount { objects: 90, bytes: 9_000 });
        assert!(stock.stock().is_over_limit());
        assert!(stock.refill(&core, one) && !stock.stock().is_over_limit());
    }
}
