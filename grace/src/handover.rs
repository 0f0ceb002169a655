//! The hand-over: how long a thread that wants a grace period watches a driver that makes no
//! progress, before it takes the driver's place.
//!
//! A driver that loses its CPU between two steps would hold up every other updater. What the next
//! driver needs is in the machine: so a waiter that has seen no progress for its [`Patience`]
//! carries out the pending action itself. A caller that does not wait does the same
//! ([`PassersPatience`]).
//!
//! The decisions depend only on the progress seen and on the time passed. The library and the
//! simulator call this module, and do the sleeping and the taking over. Times in nanoseconds.

/// How long the first waiter sees no progress before it takes over: more than a grace period
/// without holdouts takes, and no more than the kernel's default timer slack.
pub const PATIENCE_NS: u64 = 50_000;

/// A waiter begins with one doubling for each other waiter, up to this.
const RANKS: u32 = 7;

/// The most doublings: the longest patience is 0.8 s.
const DOUBLINGS: u32 = 14;

/// How long a waiter sees no progress before it takes over: 50 us if no other waiter sleeps,
/// doubled for each one that does, so that few of many wake up; and doubled each time it has run
/// out, until a grace period ends.
///
/// ```
/// use grace::handover::{PATIENCE_NS, Patience};
///
/// let seen = 7; // steps that drivers have taken
/// let mut patience = Patience::NEW;
/// // No other waiter sleeps, and the driver's step takes no time of its own.
/// assert_eq!(patience.left_ns(seen, 0, 0, 0), PATIENCE_NS);
/// assert!(patience.slept(seen, PATIENCE_NS, 0)); // now it takes over
/// assert_eq!(patience.left_ns(seen, 0, 0, 0), 2 * PATIENCE_NS);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How many steps it saw last; `None` at first: a domain's first driver has taken none while it
    /// is at its first.
    seen: Option<u64>,
    ended: u64,
    doublings: u32,
    /// For how long `seen` has not changed.
    waited_ns: u64,
}

impl Patience {
    /// That of a new waiter.
    pub const NEW: Self = Self { seen: None, ended: 0, doublings: 0, waited_ns: 0 };

    /// How long it is still to sleep before it checks the driver, whose step takes at least
    /// `least_ns`. Drivers have taken `steps` steps, of which a take-over is one, `ended` grace
    /// periods have ended, and `sleepers` other waiters sleep.
    pub fn left_ns(&mut self, steps: u64, ended: u64, sleepers: usize, least_ns: u64) -> u64 {
        if self.seen.is_none() || self.ended != ended {
            self.doublings = RANKS.min(u32::try_from(sleepers).unwrap_or(RANKS));
            self.ended = ended;
        }
        if self.seen != Some(steps) {
            self.seen = Some(steps);
            self.waited_ns = 0;
        }
        self.longest_ns(least_ns).saturating_sub(self.waited_ns)
    }

    const fn longest_ns(&self, least_ns: u64) -> u64 {
        least_ns.saturating_add(PATIENCE_NS << self.doublings)
    }

    /// It has slept for `ns` without being notified. Returns whether its patience has run out
    /// without progress.
    #[must_use]
    pub fn slept(&mut self, steps: u64, ns: u64, least_ns: u64) -> bool {
        self.waited_ns = self.waited_ns.saturating_add(ns);
        if self.waited_ns < self.longest_ns(least_ns) {
            return false;
        }
        self.waited_ns = 0;
        self.doublings = DOUBLINGS.min(self.doublings + 1);
        self.seen == Some(steps)
    }
}

/// The patience that all callers that do not wait share: one of them takes over 50 us after another
/// saw the same progress, and twice as long after for each further take-over in a grace period.
/// Without the doubling, frequent callers would keep superseding each other while a step takes
/// longer than 50 us.
#[derive(Clone, Copy, Debug)]
pub struct PassersPatience {
    /// That of a waiter without others, which does not sleep.
    patience: Patience,
    /// When `seen` changed.
    since_ns: u64,
}

impl PassersPatience {
    /// That of a new domain.
    pub const NEW: Self = Self { patience: Patience::NEW, since_ns: 0 };

    /// A caller finds a driver at work, whose step takes at least `least_ns`. Returns whether the
    /// patience has run out.
    #[must_use]
    pub fn has_run_out(&mut self, now_ns: u64, steps: u64, ended: u64, least_ns: u64) -> bool {
        let has_progressed = self.patience.seen != Some(steps);
        let longest_ns = self.patience.left_ns(steps, ended, 0, least_ns);
        if has_progressed {
            self.since_ns = now_ns;
        }
        !has_progressed && now_ns.saturating_sub(self.since_ns) >= longest_ns
    }

    /// The caller has taken over.
    pub fn took_over(&mut self) {
        self.patience.doublings = DOUBLINGS.min(self.patience.doublings + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: u64 = 9;

    #[test]
    fn progress_and_the_end_of_a_grace_period_give_new_patience() {
        let mut patience = Patience::NEW;
        assert_eq!(patience.left_ns(SEEN, 5, 2, 0), PATIENCE_NS << 2, "the third of the sleepers");
        assert!(!patience.slept(SEEN, PATIENCE_NS, 0), "it was woken early");
        assert_eq!(patience.left_ns(SEEN, 5, 2, 0), 3 * PATIENCE_NS);
        let next = SEEN + 1;
        assert_eq!(patience.left_ns(next, 5, 2, 0), PATIENCE_NS << 2, "there was progress");
        assert!(!patience.slept(SEEN, PATIENCE_NS << 2, 0), "there is other progress");
        assert_eq!(patience.left_ns(next, 5, 2, 0), PATIENCE_NS << 3);
        assert_eq!(patience.left_ns(next, 6, 0, 0), PATIENCE_NS, "a grace period has ended");
    }

    #[test]
    fn a_driver_that_naps_is_given_its_nap() {
        let mut patience = Patience::NEW;
        assert_eq!(patience.left_ns(SEEN, 0, 0, 10_000_000), 10_000_000 + PATIENCE_NS);
        assert!(!patience.slept(SEEN, PATIENCE_NS, 10_000_000));
        assert!(patience.slept(SEEN, 10_000_000, 10_000_000));
        assert_eq!(patience.left_ns(SEEN, 0, 0, u64::MAX), u64::MAX);
    }

    #[test]
    fn patience_is_bounded() {
        let mut patience = Patience::NEW;
        for _ in 0..100 {
            let left = patience.left_ns(SEEN, 0, usize::MAX, 0);
            assert!(left <= PATIENCE_NS << DOUBLINGS);
            assert!(patience.slept(SEEN, left, 0));
        }
    }

    #[test]
    fn those_who_pass_are_patient_with_each_other() {
        let mut patience = PassersPatience::NEW;
        let mut now_ns = 1_000_000_000;
        for doublings in 0..5 {
            let steps = doublings; // the first driver is at its first
            assert!(!patience.has_run_out(now_ns, steps, 0, 0), "the look");
            let longest_ns = PATIENCE_NS << doublings;
            assert!(!patience.has_run_out(now_ns + longest_ns - 1, steps, 0, 0));
            now_ns += longest_ns;
            assert!(patience.has_run_out(now_ns, steps, 0, 0));
            patience.took_over();
        }
        assert!(!patience.has_run_out(now_ns, SEEN, 1, 0), "the look");
        assert!(patience.has_run_out(now_ns + PATIENCE_NS, SEEN, 1, 0), "in the next one anew");
    }
}
