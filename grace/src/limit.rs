//! Bounded memory: what may wait for grace periods, and what happens where no more may. Numbers
//! only: the words that threads share, and the waiting, are the driver's.
//!
//! A limit counter with stocks (McKenney, *Is Parallel Programming Hard*, "Limit Counters"). A
//! domain has been *charged* so much, never more than its limit. A thread has a [`Stock`], taken
//! from the domain a [`chunk`] at a time, out of which it admits objects; so it touches what others
//! touch once in many objects. What waits is at most what is charged:
//!
//! ```text
//! retire:  stock.take(object)?                         it is admitted; else
//!          wanted = stock.shortfall(object, chunk); charge(wanted)? grant, take; else
//!          wanted = stock.shortfall(object, NONE);  charge(wanted)? grant, take; else
//!          stock.is_still_over_limit(), limit_action()
//! charge:  seen.objects = objects.fetch_add(wanted.objects)
//!          seen.bytes = bytes.fetch_add(wanted.bytes)
//!          admit(seen, limit, wanted)? else subtract both again
//! freed:   by its owner: what stock.give_back(finished, chunk) returns is subtracted
//!          by anybody else: all of it is subtracted
//! exit:    what stock.empty() returns is subtracted
//! ```
//!
//! Two words that are added to one after the other bound each number by itself: of all charges that
//! were let stand, the last to add to a word has seen the others in it. A charge that is taken back
//! again may make another fail for no reason, and lets none through.
//!
//! Where there is no room, [`limit_action`] says what to do. Inside a section a thread may not
//! wait, nor free; so one object is admitted over the limit. The thread admits no second one until
//! it is within the limit again: [`Stock::borrow`].

/// So many objects, and so many bytes. Arithmetic stops at the ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Amount {
    /// Objects.
    pub objects: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Amount {
    /// Nothing.
    pub const NONE: Self = Self { objects: 0, bytes: 0 };

    /// What an object is counted as, at most: more than a process can have, and far from where
    /// counters end, though many threads add to one before any finds that there is no room.
    pub const BYTES_OF_OBJECT_MAX: u64 = 1 << 48;

    /// One object of so many bytes.
    pub const fn object(bytes: u64) -> Self {
        Self { objects: 1, bytes: min(bytes, Self::BYTES_OF_OBJECT_MAX) }
    }

    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            objects: self.objects.saturating_add(other.objects),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// What is left without the other; of each number nothing if there was less.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self {
            objects: self.objects.saturating_sub(other.objects),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    /// Of each number the smaller one.
    #[must_use]
    pub const fn common(self, other: Self) -> Self {
        Self { objects: min(self.objects, other.objects), bytes: min(self.bytes, other.bytes) }
    }

    /// Whether neither number is above the limit's.
    pub const fn fits(self, limit: Self) -> bool {
        self.objects <= limit.objects && self.bytes <= limit.bytes
    }

    /// Whether both numbers are 0.
    pub const fn is_none(self) -> bool {
        self.objects == 0 && self.bytes == 0
    }
}

/// How near a domain is to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Zone {
    /// Far enough: grace periods may take their time.
    Free,
    /// From three quarters on: they are wanted expedited.
    Expedite,
    /// No object fits any more, be it in objects or in bytes.
    Full,
}

/// Which zone a charge is in.
///
/// ```
/// use grace::limit::{Amount, Zone, zone};
///
/// let limit = Amount { objects: 100, bytes: 4096 };
/// assert_eq!(zone(Amount { objects: 74, bytes: 100 }, limit), Zone::Free);
/// assert_eq!(zone(Amount { objects: 10, bytes: 3072 }, limit), Zone::Expedite);
/// assert_eq!(zone(Amount { objects: 100, bytes: 100 }, limit), Zone::Full);
/// ```
pub const fn zone(charged: Amount, limit: Amount) -> Zone {
    if charged.objects >= limit.objects || charged.bytes >= limit.bytes {
        Zone::Full
    } else if presses(charged.objects, limit.objects) || presses(charged.bytes, limit.bytes) {
        Zone::Expedite
    } else {
        Zone::Free
    }
}

/// Whether so much is three quarters of the limit, or more. (The unit is the caller's.)
pub const fn presses(waiting: u64, limit: u64) -> bool {
    waiting >= limit - limit / 4
}

/// A thread takes one part in so many of the limit at once, or less.
const PARTS: u64 = 256;

/// How much a thread takes from the domain at once, if it has room, and keeps twice of at most,
/// where `threads` have stocks, this one included. Nothing if the limit is small: then each object
/// is charged by itself.
///
/// One part in 256, and less from 32 threads on: then as the inverse square of their number, so
/// that what idle threads keep, each by the number of threads in its own time, is never more than
/// half the limit. (Were it the inverse, the threads that came first would in time keep all of it.)
///
/// ```
/// use grace::limit::{Amount, chunk};
///
/// let limit = Amount { objects: 65_536, bytes: 16 << 20 };
/// assert_eq!(chunk(limit, 1), Amount { objects: 256, bytes: 65_536 });
/// assert_eq!(chunk(limit, 64), Amount { objects: 64, bytes: 16_384 });
/// ```
pub const fn chunk(limit: Amount, threads: u64) -> Amount {
    let parts = threads.saturating_mul(threads) / 4;
    let parts = if parts < PARTS { PARTS } else { parts };
    Amount { objects: limit.objects / parts, bytes: limit.bytes / parts }
}

/// The charge with `wanted` in it, if it may be charged: if it fits, or if nothing else is charged,
/// since an object that is larger than the limit could never be retired otherwise. (A thread that
/// has such an object gives its stock back first.) Nothing is always admitted.
pub const fn admit(charged: Amount, limit: Amount, wanted: Amount) -> Option<Amount> {
    let with = charged.plus(wanted);
    if with.fits(limit) || charged.is_none() || wanted.is_none() { Some(with) } else { None }
}

/// What a thread may admit without asking, and what it is over the limit. All of it is charged to
/// the domain.
///
/// ```
/// use grace::limit::{Stock, Amount, admit, chunk};
///
/// let limit = Amount { objects: 1024, bytes: 1 << 20 };
/// let (mut charged, object) = (Amount::NONE, Amount::object(64));
/// let mut stock = Stock::EMPTY;
/// assert!(!stock.take(object));
/// let wanted = stock.shortfall(object, chunk(limit, 1));
/// charged = admit(charged, limit, wanted).expect("there is room");
/// stock.grant(wanted);
/// assert!(stock.take(object));
/// assert!(stock.take(object), "without asking");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stock {
    left: Amount,
    over_limit: Amount,
}

impl Default for Stock {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Stock {
    /// Of a thread that has not asked for any.
    pub const EMPTY: Self = Self { left: Amount::NONE, over_limit: Amount::NONE };

    /// What can be admitted without asking.
    pub const fn left(&self) -> Amount {
        self.left
    }

    /// What was admitted over the limit and is not uncharged.
    pub const fn over_limit(&self) -> Amount {
        self.over_limit
    }

    /// Whether it is over the limit.
    pub const fn is_over_limit(&self) -> bool {
        !self.over_limit.is_none()
    }

    /// Admits an object, if enough is left.
    pub const fn take(&mut self, object: Amount) -> bool {
        let fits = object.fits(self.left);
        if fits {
            self.left = self.left.minus(object);
        }
        fits
    }

    /// What to ask the domain for, so that the object can be admitted: of each number nothing, if
    /// enough of it is left; else a chunk, or what is missing if that is more. With a chunk of
    /// [`Amount::NONE`] it is just what is missing.
    pub const fn shortfall(&self, object: Amount, chunk: Amount) -> Amount {
        Amount {
            objects: lack(self.left.objects, object.objects, chunk.objects),
            bytes: lack(self.left.bytes, object.bytes, chunk.bytes),
        }
    }

    /// So much more, which the domain has admitted: of what it was asked for, objects or bytes, its
    /// charge is within the limit, or was nothing; so the thread is over the limit with that no
    /// more.
    pub const fn grant(&mut self, charged: Amount) {
        if charged.objects != 0 {
            self.over_limit.objects = 0;
        }
        if charged.bytes != 0 {
            self.over_limit.bytes = 0;
        }
        self.left = self.left.plus(charged);
    }

    /// So much more, which was added to the domain's charge though it did not fit. It is over the
    /// limit.
    pub const fn borrow(&mut self, charged: Amount) {
        self.left = self.left.plus(charged);
        self.over_limit = self.over_limit.plus(charged);
    }

    /// What this thread's objects, freed by itself, were counted as. It is used first for what is
    /// over the limit; the rest stays here, unless that makes more than two chunks: then one chunk
    /// stays. Returns what to subtract from the domain's charge. (With nothing finished: what is
    /// left is used for it.)
    #[must_use = "it has to be subtracted from the domain's charge"]
    pub const fn give_back(&mut self, finished: Amount, chunk: Amount) -> Amount {
        self.left = self.left.plus(finished);
        let paid = self.left.common(self.over_limit);
        self.over_limit = self.over_limit.minus(paid);
        self.left = self.left.minus(paid);
        let surplus = Amount {
            objects: surplus(self.left.objects, chunk.objects),
            bytes: surplus(self.left.bytes, chunk.bytes),
        };
        self.left = self.left.minus(surplus);
        paid.plus(surplus)
    }

    /// It is not over the limit where the domain's charge is within it: others have freed enough.
    /// Returns whether it still is.
    pub const fn is_still_over_limit(&mut self, charged: Amount, limit: Amount) -> bool {
        if charged.fits(limit) {
            self.over_limit = Amount::NONE;
        }
        self.is_over_limit()
    }

    /// It is not over the limit where none of this thread's objects waits: others have freed what
    /// was. (The charge may be over the limit all the same, for an object that is larger or by
    /// other threads.)
    pub const fn clear_over_limit(&mut self) {
        self.over_limit = Amount::NONE;
    }

    /// The thread ends, or has an object that is larger than the limit. Returns what to subtract
    /// from the domain's charge. What is over the limit stays so: a thread that ends has to see to
    /// that before.
    #[must_use = "it has to be subtracted from the domain's charge"]
    pub const fn empty(&mut self) -> Amount {
        self.give_back(Amount::NONE, Amount::NONE)
    }
}

/// Where an object is retired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Context {
    /// In no section and no callback.
    Outside,
    /// In a section, of whatever domain; in a callback too, perhaps.
    Section,
    /// In a callback.
    Callback,
}

/// What to do with an object that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitAction {
    /// Wait for a grace period, and run this thread's own callbacks that are ready. Is there room
    /// now? If there is not, free the object: its grace period is over.
    WaitAndRun,
    /// Wait for a grace period, and free the object.
    WaitAndFree,
    /// Admit it over the limit. As the outermost section ends: wait for a grace period, run this
    /// thread's own callbacks that are ready, and uncharge them.
    Borrow,
    /// The caller gets the object back.
    Refuse,
}

/// What to do with an object that does not fit. Needs no other thread's progress but that of
/// sections.
///
/// ```
/// use grace::limit::{Amount, Context, LimitAction, Stock, limit_action};
///
/// let mut stock = Stock::EMPTY;
/// assert_eq!(limit_action(Context::Outside, &stock), LimitAction::WaitAndRun);
/// assert_eq!(limit_action(Context::Section, &stock), LimitAction::Borrow);
/// stock.borrow(Amount::object(64));
/// assert_eq!(limit_action(Context::Section, &stock), LimitAction::Refuse);
/// ```
pub const fn limit_action(context: Context, stock: &Stock) -> LimitAction {
    match context {
        Context::Outside => LimitAction::WaitAndRun,
        Context::Callback => LimitAction::WaitAndFree,
        Context::Section if stock.is_over_limit() => LimitAction::Refuse,
        Context::Section => LimitAction::Borrow,
    }
}

const fn lack(left: u64, wanted: u64, chunk: u64) -> u64 {
    let missing = wanted.saturating_sub(left);
    if missing == 0 || missing > chunk { missing } else { chunk }
}

const fn surplus(left: u64, chunk: u64) -> u64 {
    if left > chunk.saturating_mul(2) { left - chunk } else { 0 }
}

const fn min(one: u64, other: u64) -> u64 {
    if one < other { one } else { other }
}
