//! A CPU's callbacks, in the order they were queued, by the grace period they need.
//!
//! Four lists, after the kernel's segmented ones: ready to run, waiting for one grace period,
//! waiting for the one after that, and queued since the CPU last looked which number is due. More
//! cannot be: what is queued while one is in progress needs the next, and what needed the one
//! before is ready. Queueing touches nothing but the CPU's own line.

use grace::Urgency;

use super::Callback;

/// Callbacks that wait for the same grace period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct List {
    count: u64,
    bytes: u64,
    /// The greatest of theirs.
    urgency: Urgency,
    /// The grace period; 0 in an empty list, so that what means the same is equal.
    number: u32,
}

impl List {
    const EMPTY: Self = Self { count: 0, bytes: 0, urgency: Urgency::Background, number: 0 };

    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.urgency = self.urgency.max(other.urgency);
    }
}

/// The lists of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Callbacks {
    ready: List,
    current: List,
    next: List,
    /// Without a number yet.
    queued: List,
}

impl Callbacks {
    pub(super) const EMPTY: Self =
        Self { ready: List::EMPTY, current: List::EMPTY, next: List::EMPTY, queued: List::EMPTY };

    /// How many may be queued before the CPU looks which number is due, should no tick come: so
    /// many that the look costs nothing beside them.
    const QUEUED_MAX: u64 = 64;

    /// Queues one.
    pub(super) fn queue(&mut self, callback: Callback) {
        let (bytes, urgency) = (u64::from(callback.bytes), callback.urgency);
        self.queued.add(List { count: 1, bytes, urgency, number: 0 });
    }

    /// Whether it is time to [`assign`](Self::assign) what was queued, without waiting for the
    /// tick: the first callback is to be heard of, and so are many. In between, queueing touches
    /// nothing shared.
    pub(super) const fn is_due(&self) -> bool {
        self.current.count == 0 || self.queued.count >= Self::QUEUED_MAX
    }

    /// What was queued needs grace period `number`, where that of `finished` has ended. Returns
    /// whether there was anything.
    pub(super) fn assign(&mut self, number: u32, finished: u32) -> bool {
        self.advance(finished);
        if self.queued.count == 0 {
            return false;
        }
        let list = if self.current.count == 0 || self.current.number == number {
            &mut self.current
        } else {
            // If others wait in `next`, for a grace period before `number`, they wait longer.
            &mut self.next
        };
        list.add(core::mem::replace(&mut self.queued, List::EMPTY));
        list.number = number;
        true
    }

    /// Makes ready what waits for grace periods up to `finished`: all but the next two, however
    /// many numbers ago the CPU looked last.
    pub(super) fn advance(&mut self, finished: u32) {
        let waits = |number: u32| matches!(number.wrapping_sub(finished), 1 | 2);
        while self.current.count != 0 && !waits(self.current.number) {
            self.ready.add(self.current);
            self.current = self.next;
            self.next = List::EMPTY;
        }
    }

    /// Takes out up to `limit` of those that are ready, to be run. Returns how many.
    pub(super) fn take(&mut self, limit: u64) -> u64 {
        let count = self.ready.count.min(limit);
        if count == self.ready.count {
            self.ready = List::EMPTY;
        } else {
            // Whose bytes are whose is not known: a fair share, exact when the last one goes.
            let share = u128::from(self.ready.bytes) * u128::from(count);
            self.ready.bytes -= (share / u128::from(self.ready.count)) as u64;
            self.ready.count -= count;
        }
        count
    }

    /// How many are ready, and whether somebody waits for one of them.
    pub(super) const fn ready(&self) -> (u64, Urgency) {
        (self.ready.count, self.ready.urgency)
    }

    /// How many wait for a grace period.
    pub(super) const fn unready(&self) -> u64 {
        self.current.count + self.next.count + self.queued.count
    }

    /// Whether somebody waits for one of those.
    pub(super) fn unready_urgency(&self) -> Urgency {
        self.current.urgency.max(self.next.urgency).max(self.queued.urgency)
    }

    /// All of them.
    pub(super) const fn count(&self) -> u64 {
        self.ready.count + self.unready()
    }

    /// What all of them will give back.
    pub(super) const fn bytes(&self) -> u64 {
        self.ready.bytes + self.current.bytes + self.next.bytes + self.queued.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Callback = Callback { urgency: Urgency::Background, bytes: 10 };

    #[test]
    fn callbacks_are_ready_however_late_that_is_noticed() {
        let mut callbacks = Callbacks::EMPTY;
        for late in [0, 1 << 30, 1 << 31, u32::MAX - 2] {
            callbacks.queue(SMALL);
            assert!(callbacks.assign(7, 5));
            callbacks.advance(7_u32.wrapping_add(late));
            assert_eq!(callbacks.take(2), 1, "{late} numbers later");
        }
    }

    #[test]
    fn bytes_and_urgency_go_with_their_callbacks() {
        let mut callbacks = Callbacks::EMPTY;
        let urgent = Callback { urgency: Urgency::Normal, bytes: 5 };
        for (number, callback) in [(1, SMALL), (2, urgent), (2, SMALL)] {
            callbacks.queue(callback);
            assert!(callbacks.assign(number, 0) && !callbacks.assign(number, 0));
        }
        assert_eq!((callbacks.count(), callbacks.bytes()), (3, 25));
        callbacks.advance(1);
        assert_eq!((callbacks.ready(), callbacks.unready()), ((1, Urgency::Background), 2));
        assert_eq!(callbacks.unready_urgency(), Urgency::Normal);
        callbacks.advance(2);
        assert_eq!((callbacks.ready(), callbacks.unready()), ((3, Urgency::Normal), 0));
        assert_eq!((callbacks.take(3), callbacks.bytes()), (3, 0));
        for _ in 0..3 {
            callbacks.queue(SMALL);
        }
        callbacks.assign(1, 0);
        callbacks.advance(1);
        assert_eq!((callbacks.take(2), callbacks.bytes()), (2, 10));
        assert_eq!((callbacks.take(2), callbacks.bytes()), (1, 0));
        assert_eq!(callbacks, Callbacks::EMPTY);
    }
}
