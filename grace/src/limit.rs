//! Bounded memory: how much may wait for grace periods, and what happens at the limit. Numbers
//! only: the caller has the words that threads share, and does the waiting.
//!
//! A limit counter with stocks (McKenney, *Is Parallel Programming Hard*, "Limit Counters"). A
//! domain has a *charge*, with charge <= limit. A thread has a [`Stock`], which it refills from the
//! domain by a [`chunk`] at a time, and from which it admits objects; so it accesses the shared
//! words once in many objects. Waiting objects and bytes <= charged objects and bytes:
//!
//! ```text
//! retire:  stock.take(object)?                         it is admitted; else
//!          wanted = stock.shortfall(object, chunk); charge(wanted)? grant, take; else
//!          wanted = stock.shortfall(object, NONE);  charge(wanted)? grant, take; else
//!          stock.refresh_over_limit(), limit_action()
//! charge:  seen.objects = objects.fetch_add(wanted.objects)
//!          seen.bytes = bytes.fetch_add(wanted.bytes)
//!          admit(seen, limit, wanted)? else subtract both again
//! freed:   by its owner: what stock.give_back(finished, chunk) returns is subtracted
//!          by another thread: all of it is subtracted
//! exit:    what stock.empty() returns is subtracted
//! ```
//!
//! Objects and bytes are two words. A charge adds to one after the other, and each word is bounded
//! by itself: of all charges that stand, the last one to add to a word has seen the others in it. A
//! charge that is subtracted again may make another one fail needlessly, but lets none through.
//!
//! If there is no room, [`limit_action`] says what to do. Inside a section a thread must neither
//! wait nor free, so one object is admitted over the limit. The thread admits no second one until
//! it is within the limit again: [`Stock::borrow`].

/// A number of objects and a number of bytes. Arithmetic saturates.
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

    /// The most bytes that one object counts for: more than a process can have, and far below a
    /// counter's maximum, even if many threads add to it before any finds that there is no room.
    pub const BYTES_OF_OBJECT_MAX: u64 = 1 << 48;

    /// One object of `bytes` bytes, at most [`BYTES_OF_OBJECT_MAX`](Self::BYTES_OF_OBJECT_MAX).
    pub const fn object(bytes: u64) -> Self {
        Self { objects: 1, bytes: min(bytes, Self::BYTES_OF_OBJECT_MAX) }
    }

    /// The sum.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            objects: self.objects.saturating_add(other.objects),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// The difference; a number that would be negative is 0.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self {
            objects: self.objects.saturating_sub(other.objects),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    /// The minimum of each number.
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
    /// Both numbers are below three quarters: grace periods need not be expedited.
    Free,
    /// One number is at three quarters or more: grace periods should be expedited.
    Expedite,
    /// One number has reached the limit: no object fits any more.
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

/// Whether `waiting` is at least three quarters of `limit`, both in the same unit.
pub const fn presses(waiting: u64, limit: u64) -> bool {
    waiting >= limit - limit / 4
}

/// A chunk is `limit / PARTS` at most.
const PARTS: u64 = 256;

/// The amount that a thread takes from the domain at once, if there is room, when `threads` threads
/// have stocks, this one included. A thread keeps at most two chunks. A chunk is zero if the limit
/// is small: then each object is charged by itself.
///
/// A chunk is `limit / max(256, threads * threads / 4)`. Idle threads keep chunks from when there
/// were fewer threads; with the inverse square they keep at most half the limit together. (With the
/// plain inverse, the threads that came first would in time keep all of it.)
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

/// The charge including `wanted`, if that may be charged: if it fits; or if nothing else is
/// charged, since otherwise an object larger than the limit could never be retired. (A thread that
/// has such an object gives its stock back first.) A `wanted` of zero is always admitted.
pub const fn admit(charged: Amount, limit: Amount, wanted: Amount) -> Option<Amount> {
    let with = charged.plus(wanted);
    if with.fits(limit) || charged.is_none() || wanted.is_none() { Some(with) } else { None }
}

/// What a thread may admit without asking the domain (`left`), and what it has admitted over the
/// limit (`over_limit`). All of it is charged to the domain.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stock {
    left: Amount,
    over_limit: Amount,
}

impl Stock {
    /// The stock of a thread that has not asked for any.
    pub const EMPTY: Self = Self { left: Amount::NONE, over_limit: Amount::NONE };

    /// What can be admitted without asking.
    pub const fn left(&self) -> Amount {
        self.left
    }

    /// What was admitted over the limit and has not been paid back.
    pub const fn over_limit(&self) -> Amount {
        self.over_limit
    }

    /// Whether the stock is over the limit, in objects or in bytes.
    pub const fn is_over_limit(&self) -> bool {
        !self.over_limit.is_none()
    }

    /// Admits an object, if enough is left.
    #[inline(always)]
    pub const fn take(&mut self, object: Amount) -> bool {
        let Some(objects) = self.left.objects.checked_sub(object.objects) else { return false };
        let Some(bytes) = self.left.bytes.checked_sub(object.bytes) else { return false };
        self.left = Amount { objects, bytes };
        true
    }

    /// What to ask the domain for, so that the object can be admitted. For each number: 0 if enough
    /// of it is left, else `max(chunk, missing)`. With a chunk of [`Amount::NONE`] it is exactly
    /// what is missing.
    pub const fn shortfall(&self, object: Amount, chunk: Amount) -> Amount {
        Amount {
            objects: lack(self.left.objects, object.objects, chunk.objects),
            bytes: lack(self.left.bytes, object.bytes, chunk.bytes),
        }
    }

    /// Adds `charged`, which the domain has admitted. In each number that is not 0 in `charged`,
    /// the domain's charge is within the limit, or was 0 before; so the stock is no longer over the
    /// limit in that number.
    pub const fn grant(&mut self, charged: Amount) {
        if charged.objects != 0 {
            self.over_limit.objects = 0;
        }
        if charged.bytes != 0 {
            self.over_limit.bytes = 0;
        }
        self.left = self.left.plus(charged);
    }

    /// Adds `charged`, which was added to the domain's charge although it did not fit: the stock is
    /// over the limit by that.
    pub const fn borrow(&mut self, charged: Amount) {
        self.left = self.left.plus(charged);
        self.over_limit = self.over_limit.plus(charged);
    }

    /// Adds `finished`, the charge of objects that this thread has freed itself. `left` then pays
    /// for `over_limit`; the rest stays, but where a number of it is above two chunks only one
    /// chunk stays. Returns what to subtract from the domain's charge.
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

    /// Checks whether other threads have freed enough: if the domain's charge is within the limit,
    /// the stock is no longer over it. Returns whether it still is.
    pub const fn refresh_over_limit(&mut self, charged: Amount, limit: Amount) -> bool {
        if charged.fits(limit) {
            self.over_limit = Amount::NONE;
        }
        self.is_over_limit()
    }

    /// None of this thread's objects waits any more, so the stock is not over the limit: other
    /// threads have freed what was. (The charge may still be above the limit, because of an object
    /// larger than the limit or because of other threads.)
    pub const fn clear_over_limit(&mut self) {
        self.over_limit = Amount::NONE;
    }

    /// Empties `left`: the thread ends, or has an object larger than the limit. Returns what to
    /// subtract from the domain's charge. What `left` does not pay of `over_limit` stays: a thread
    /// that ends must settle that before.
    #[must_use = "it has to be subtracted from the domain's charge"]
    pub const fn empty(&mut self) -> Amount {
        self.give_back(Amount::NONE, Amount::NONE)
    }
}

/// The context in which an object is retired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Context {
    /// In no section and no callback.
    Outside,
    /// In a section of any domain, possibly inside a callback.
    Section,
    /// In a callback, and in no section.
    Callback,
}

/// What to do with an object that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitAction {
    /// Wait for a grace period, and run this thread's own callbacks that are ready. If there is
    /// still no room, free the object: its grace period has ended.
    WaitAndRun,
    /// Wait for a grace period, and free the object.
    WaitAndFree,
    /// Admit it over the limit. When the outermost section ends: wait for a grace period, run this
    /// thread's own callbacks that are ready, and uncharge them.
    Borrow,
    /// Give the object back to the caller.
    Refuse,
}

/// What to do with an object that does not fit. Of other threads, only sections are waited for.
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
