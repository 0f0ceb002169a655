//! Bounded memory: [`grace::limit`], executed with two atomic words and a local stock for each
//! thread.
//!
//! **Invariant [L-1]: what waits in a domain has been charged to it.** The domain's charge is what
//! waits and what is in local stocks. It is at most the limit, but for one object of each thread
//! that is over it, and what had to be admitted without a thread to charge: that is counted
//! ([`Statistics::limit_overruns`](crate::Statistics)).
//!
//! **Invariant [L-3]: of what a local stock is over the limit with, objects or bytes, nothing is
//! left in it.** What comes in pays for that first; and where the domain admits more, its charge is
//! within the limit or was nothing, so the stock is over the limit no more. So a stock that pays
//! for an object, which is one and has bytes, is not over the limit. A thread has two stocks in a
//! domain, one of objects and one of closures: what one pays for says nothing of the other.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::atomic::Ordering::Relaxed;

use grace::Start;
use grace::limit::{self, Amount, Stock, Zone};

use crate::chaos::{self, Point};
use crate::gp::engine::Settings;
use crate::gp::gp_words::Line;
use crate::gp::grace_periods::GracePeriods;
use crate::os::sync::{AtomicU64, const_unless_loom};
#[cfg(not(loom))]
use crate::reclaim::kept::Kept;

/// What has been charged to a domain, and how many share the limit.
#[derive(Debug)]
pub(crate) struct Charge {
    objects: AtomicU64,
    bytes: AtomicU64,
    /// How many thread queues are in the domain's list; they and the callback queues share the
    /// limit.
    pub(crate) queues: AtomicU64,
    /// How many callback queues, which threads of the program run, are in its list.
    pub(crate) callback_queues: AtomicU64,
}

// Relaxed, all of it: counts that are checked one by one; `grace::limit` says why that is enough.
impl Charge {
    const_unless_loom! {
        pub(crate) fn new() -> Self {
            Self {
                objects: AtomicU64::new(0),
                bytes: AtomicU64::new(0),
                queues: AtomicU64::new(0),
                callback_queues: AtomicU64::new(0),
            }
        }
    }

    /// Charges so much, if it fits.
    fn admit(&self, limit: Amount, wanted: Amount) -> bool {
        let seen = self.add(wanted);
        chaos::point(Point::Charged);
        let admitted = limit::admit(seen, limit, wanted).is_some();
        if !admitted {
            self.give_back(wanted);
        }
        admitted
    }

    /// Charges so much, whether it fits or not; the words stop at their ends, as [`Amount`]'s
    /// arithmetic does. Returns what was charged before.
    ///
    /// 65,536 objects that say that they are 2^48 bytes each would bring a word that wraps back to
    /// nothing. One that has stopped is full, and is down to nothing before all of them are freed,
    /// not later: so it never stays full.
    fn add(&self, wanted: Amount) -> Amount {
        let add = |word: &AtomicU64, wanted: u64| match wanted {
            0 => word.load(Relaxed),
            _ => {
                let more = |charged: u64| Some(charged.saturating_add(wanted));
                word.fetch_update(Relaxed, Relaxed, more).unwrap_or_else(|charged| charged)
            }
        };
        Amount {
            objects: add(&self.objects, wanted.objects),
            bytes: add(&self.bytes, wanted.bytes),
        }
    }

    /// So much has been freed, or is not needed after all.
    pub(crate) fn give_back(&self, amount: Amount) {
        // Not below nothing, which would be as good as full: a word may have stopped at its end,
        // and a `Retire::bytes` of the user's may say more than it did when it was charged.
        for (word, less) in [(&self.objects, amount.objects), (&self.bytes, amount.bytes)] {
            if less != 0 {
                let subtract = |charged: u64| Some(charged.saturating_sub(less));
                let _ = word.fetch_update(Relaxed, Relaxed, subtract);
            }
        }
    }

    /// In a child process, whose other threads are gone.
    #[cfg(not(loom))]
    pub(crate) fn set(&self, charged: Amount) {
        self.objects.store(charged.objects, Relaxed);
        self.bytes.store(charged.bytes, Relaxed);
    }

    pub(crate) fn get(&self) -> Amount {
        Amount { objects: self.objects.load(Relaxed), bytes: self.bytes.load(Relaxed) }
    }
}

/// A domain as its thread queues and callback queues know it: its grace periods, and what is
/// charged to it.
// In the order of C: see `DomainState::of`.
#[derive(Debug)]
#[repr(C)]
pub struct Charged {
    pub(crate) grace_periods: GracePeriods,
    pub(crate) charge: Line<Charge>,
    /// Of a hazard domain: what was protected when it was to be freed.
    #[cfg(not(loom))]
    pub(crate) kept: Kept,
}

const _: () = assert!(std::mem::offset_of!(Charged, grace_periods) == 0);

impl Deref for Charged {
    type Target = GracePeriods;

    #[inline(always)]
    fn deref(&self) -> &GracePeriods {
        &self.grace_periods
    }
}

impl Charged {
    const_unless_loom! {
        pub(crate) fn new(start: Start, settings: Settings) -> Self {
            Self {
                grace_periods: GracePeriods::new(start, settings),
                charge: Line(Charge::new()),
                #[cfg(not(loom))]
                kept: Kept::new(),
            }
        }
    }

    /// What may wait here.
    pub(crate) fn limit(&self) -> Amount {
        Amount { objects: self.tuning.objects_max(), bytes: self.tuning.bytes_max() }
    }

    /// How near the limit the domain is.
    pub(crate) fn zone(&self) -> Zone {
        limit::zone(self.charge.0.get(), self.limit())
    }

    /// Whether more is charged than the limit says.
    #[cfg(not(loom))]
    pub(crate) fn is_over_limit(&self) -> bool {
        !self.charge.0.get().fits(self.limit())
    }

    /// Admits an object that no thread's local stock pays for.
    pub(crate) fn admit(&self, object: Amount) -> bool {
        self.charge.0.admit(self.limit(), object)
    }

    /// Admits an object over the limit; the thread that has a local stock may remember it by that
    /// ([`LocalStock::borrow`]).
    pub(crate) fn admit_over(&self, object: Amount) {
        if !object.is_none() {
            self.counters().limit_overruns.fetch_add(1, Relaxed);
        }
        self.charge.0.add(object);
    }

    /// What a thread or a callback queue takes of the limit at once.
    pub(crate) fn chunk(&self) -> Amount {
        // Relaxed, both: about.
        let charge = &self.charge.0;
        let sharers = charge.queues.load(Relaxed) + charge.callback_queues.load(Relaxed);
        limit::chunk(self.limit(), sharers)
    }
}

/// What one thread may still add to its queue, without asking; see [`Stock`].
#[derive(Debug)]
pub(crate) struct LocalStock {
    stock: Cell<Stock>,
    /// How much to take and to keep at once, as it was found last.
    chunk: Cell<Amount>,
}

impl LocalStock {
    pub(crate) fn new() -> Self {
        Self { stock: Cell::new(Stock::EMPTY), chunk: Cell::new(Amount::NONE) }
    }

    /// Admits an object out of what is left.
    #[inline]
    pub(crate) fn take(&self, object: Amount) -> bool {
        let mut stock = self.stock.get();
        let taken = stock.take(object);
        if taken {
            self.stock.set(stock);
        }
        taken
    }

    /// Admits an object with more from the domain.
    #[cold]
    pub(crate) fn refill(&self, core: &Charged, object: Amount) -> bool {
        let limit = core.limit();
        if !object.fits(limit) {
            core.charge.0.give_back(self.empty()); // it is admitted if nothing else is charged
        }
        self.chunk.set(core.chunk());
        [self.chunk.get(), Amount::NONE].into_iter().any(|chunk| {
            let wanted = self.stock.get().shortfall(object, chunk);
            let admitted = core.charge.0.admit(limit, wanted);
            if admitted {
                self.with(|stock| stock.grant(wanted)); // it is over the limit no more [L-3]
            }
            admitted && self.take(object)
        })
    }

    /// Admits an object over the limit, to be settled.
    pub(crate) fn borrow(&self, core: &Charged, object: Amount) {
        let wanted = self.stock.get().shortfall(object, Amount::NONE);
        core.admit_over(wanted);
        self.with(|stock| stock.borrow(wanted));
        self.take(object);
    }

    /// The thread's objects, so many, were freed by itself. Returns what is to be given back to the
    /// domain.
    #[must_use]
    pub(crate) fn give_back(&self, finished: Amount) -> Amount {
        self.with(|stock| stock.give_back(finished, self.chunk.get()))
    }

    /// What was taken is not needed after all.
    pub(crate) fn put_back(&self, core: &Charged, object: Amount) {
        // A stock that is over the limit pays for that first [L-3].
        core.charge.0.give_back(self.give_back(object));
    }

    /// Keeps no more than [`Self::give_back`] leaves here: the limit may have been lowered.
    pub(crate) fn trim(&self, core: &Charged) {
        self.chunk.set(core.chunk());
        core.charge.0.give_back(self.give_back(Amount::NONE));
    }

    /// Whether the thread is over the limit; not if there is room for it by now.
    pub(crate) fn is_over_limit(&self, core: &Charged) -> bool {
        self.stock.get().is_over_limit()
            && self.with(|stock| stock.is_still_over_limit(core.charge.0.get(), core.limit()))
    }

    /// All that the thread has admitted has been freed, so it is within the limit.
    pub(crate) fn clear_over_limit(&self) {
        self.with(Stock::clear_over_limit);
    }

    /// What [`grace::limit::limit_action`] asks.
    pub(crate) fn stock(&self) -> Stock {
        self.stock.get()
    }

    /// The thread ends. Returns what is to be given back to the domain.
    #[must_use]
    pub(crate) fn empty(&self) -> Amount {
        self.with(Stock::empty)
    }

    /// In a child process: its thread is gone.
    #[cfg(not(loom))]
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::gp::tuning::Tuning;

    /// 65,536 objects that were refused, dropped, and so went over the limit: they say that they
    /// are 2^64 bytes.
    #[test]
    #[cfg_attr(miri, ignore = "65,536 objects")]
    fn objects_that_say_they_are_huge_do_not_charge_a_domain_with_nothing() {
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

    /// After the domain had admitted more, a stock still counted as over the limit: so that it paid
    /// for an object did not say that it was within the limit.
    #[test]
    fn a_stock_that_is_over_the_limit_pays_for_nothing_else() {
        let core = Charged::new(Start::ZERO, Settings::DEFAULT);
        core.tuning.set(Tuning { objects_max: 100, bytes_max: 10_000, ..Tuning::default() });
        let (stock, one) = (LocalStock::new(), Amount::object(100));
        core.charge.0.add(Amount { objects: 99, bytes: 9_950 });
        assert!(!stock.refill(&core, one), "50 bytes are left");
        stock.borrow(&core, one);
        assert!(stock.is_over_limit(&core) && !stock.take(one) && !stock.refill(&core, one));
        // Some bytes come back.
        stock.put_back(&core, Amount { objects: 0, bytes: 50 });
        assert!(!stock.take(Amount { objects: 0, bytes: 1 }), "it pays for what is over the limit");
        // Others free nearly everything.
        core.charge.0.give_back(Amount { objects: 90, bytes: 9_000 });
        assert!(stock.stock().is_over_limit());
        assert!(stock.refill(&core, one) && !stock.stock().is_over_limit());
    }
}
