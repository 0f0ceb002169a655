//! How long the grace period in progress has taken, and when that is to be reported: once it is
//! older than the limit, and each time its age doubles.
//!
//! Used under the machine's lock.

use std::panic::Location;

use super::slot::GpWords;
use crate::os::clock;

/// The grace period in progress, or the last one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Current {
    /// How many grace periods have ended once it has; `None` before the first one begins, and in a
    /// child process.
    pub(crate) number: Option<u64>,
    /// When its latency began, if it is timed.
    pub(crate) began_ns: Option<u64>,
    /// When it first had to wait: the thread that holds it up was in a section by then.
    pub(crate) waits_since_ns: Option<u64>,
    /// Whether it has been expedited so far.
    pub(crate) expedited: bool,
    /// Holdouts that the last scan found.
    pub(crate) holdouts: usize,
    /// How often a driver has slept for holdouts.
    pub(crate) pauses: u32,
    /// Its age when it was last reported.
    pub(super) reported_ns: u64,
}

impl Current {
    /// None has begun.
    pub(crate) const NONE: Self = Self {
        number: None,
        began_ns: None,
        waits_since_ns: None,
        expedited: false,
        holdouts: 0,
        pauses: 0,
        reported_ns: 0,
    };

    /// Records that holdouts were found.
    pub(crate) fn must_wait(&mut self, is_expedited: bool) {
        self.expedited |= is_expedited;
        if self.waits_since_ns.is_none() {
            self.waits_since_ns = Some(clock::monotonic_ns());
            self.began_ns = self.began_ns.or(self.waits_since_ns);
        }
    }

    /// How long it has taken, if it is timed.
    pub(crate) fn latency_ns(&self) -> Option<u64> {
        self.began_ns.map(|began_ns| clock::monotonic_ns().saturating_sub(began_ns))
    }

    /// When the next report is due, if it has had to wait, under a limit of `limit_ns` (`u64::MAX`:
    /// never).
    pub(crate) fn due_ns(&self, limit_ns: u64) -> Option<u64> {
        let since_ns = self.waits_since_ns.filter(|_| limit_ns != u64::MAX)?;
        since_ns.checked_add(limit_ns.max(self.reported_ns.saturating_mul(2)))
    }

    /// Its age, if a report is due; that report then counts as made.
    pub(crate) fn take_due(&mut self, now_ns: u64, limit_ns: u64) -> Option<u64> {
        if self.due_ns(limit_ns)? > now_ns {
            return None;
        }
        // At least 1: under a limit of 0 the age must double before the next report, or each check
        // would report.
        self.reported_ns = now_ns.saturating_sub(self.waits_since_ns?).max(1);
        Some(self.reported_ns)
    }
}

/// What the reporter receives about a stall.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Note {
    /// The domain, by its address and its identity: it may end before the report is made.
    pub(crate) core: *const GpWords,
    pub(crate) identity: usize,
    /// Which grace period, as
    /// [`Statistics::grace_periods`](crate::report::Statistics::grace_periods) counts.
    pub(crate) grace_period: u64,
    pub(crate) age_ns: u64,
    pub(crate) expedited: bool,
}

// SAFETY: the pointer is only compared, never dereferenced.
unsafe impl Send for Note {}

/// Counted sections that a grace period waits for.
#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    pub(crate) sections: u64,
    pub(crate) slots: Vec<SlotBalance>,
}

/// The counts of one CPU under the index of a sleepable domain that the grace period waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotBalance {
    /// The CPU's number; `None` for sections counted in the words that all CPUs share.
    pub cpu: Option<u32>,
    /// Sections that began on this CPU since the domain was created.
    pub begun: u64,
    /// Sections that ended on this CPU.
    pub ended: u64,
}

/// A guard that is listed: of a counted section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live {
    pub(crate) location: &'static Location<'static>,
    /// The thread that made it. By now another thread may hold it, or none.
    pub(crate) thread: u32,
    /// When, as `clock::monotonic_ns`.
    pub(crate) since_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting_since(since_ns: u64) -> Current {
        Current { waits_since_ns: Some(since_ns), ..Current::NONE }
    }

    #[test]
    fn a_report_at_the_limit_and_at_each_doubling() {
        let mut current = waiting_since(1_000);
        assert_eq!(current.due_ns(100), Some(1_100));
        assert_eq!(current.take_due(1_099, 100), None);
        assert_eq!(current.take_due(1_130, 100), Some(130));
        assert_eq!(current.due_ns(100), Some(1_260));
        assert_eq!(current.take_due(1_259, 100), None);
        assert_eq!(current.take_due(3_000, 100), Some(2_000), "looked at late: one, not four");
        assert_eq!(current.due_ns(100), Some(5_000));
    }

    #[test]
    fn the_limit_may_change_meanwhile() {
        let mut current = waiting_since(0);
        assert_eq!(current.take_due(500, 1_000), None);
        assert_eq!(current.take_due(500, 200), Some(500), "somebody in a hurry has come");
        assert_eq!(current.due_ns(1_000), Some(1_000));
        assert_eq!(current.due_ns(u64::MAX), None, "turned off");
        assert_eq!(current.take_due(u64::MAX, u64::MAX), None);
        let mut idle = Current::NONE;
        assert_eq!(idle.take_due(u64::MAX, 0), None, "it need not wait");
    }

    #[test]
    fn extremes_do_no_harm() {
        let mut current = waiting_since(7);
        assert_eq!(current.take_due(7, 0), Some(1), "a limit of nothing");
        assert_eq!(current.take_due(8, 0), None);
        assert_eq!(waiting_since(8).due_ns(u64::MAX - 1), None, "no such time");
        assert_eq!(current.take_due(u64::MAX, 0), Some(u64::MAX - 7));
        assert_eq!(current.due_ns(0), None, "and no doubling of that");
    }
}
