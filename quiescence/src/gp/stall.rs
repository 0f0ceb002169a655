//! When a grace period is to be reported: once it is older than the limit, and each time its age
//! doubles.
//!
//! The time is passed in. Used under the machine's lock.

use std::panic::Location;

use super::slot::GpWords;

/// What has been reported of the grace period in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    /// Its age when it was last reported.
    reported_ns: u64,
    /// Holdouts that the last scan found.
    pub(crate) holdouts: usize,
}

impl Watch {
    /// For a grace period that begins.
    pub(crate) const NEW: Self = Self { reported_ns: 0, holdouts: 0 };

    /// When the next report is due of a grace period that has had to wait since `since_ns`, under a
    /// limit of `limit_ns` (`u64::MAX`: never).
    pub(crate) fn due_ns(&self, since_ns: u64, limit_ns: u64) -> Option<u64> {
        if limit_ns == u64::MAX {
            return None;
        }
        since_ns.checked_add(limit_ns.max(self.reported_ns.saturating_mul(2)))
    }

    /// The grace period's age, if a report is due; that report then counts as made.
    pub(crate) fn take_due(&mut self, now_ns: u64, since_ns: u64, limit_ns: u64) -> Option<u64> {
        if self.due_ns(since_ns, limit_ns)? > now_ns {
            return None;
        }
        // At least 1: under a limit of 0 the age must double before the next report, or each check
        // would report.
        self.reported_ns = now_ns.saturating_sub(since_ns).max(1);
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

    #[test]
    fn a_report_at_the_limit_and_at_each_doubling() {
        let mut watch = Watch::NEW;
        assert_eq!(watch.due_ns(1_000, 100), Some(1_100));
        assert_eq!(watch.take_due(1_099, 1_000, 100), None);
        assert_eq!(watch.take_due(1_130, 1_000, 100), Some(130));
        assert_eq!(watch.due_ns(1_000, 100), Some(1_260));
        assert_eq!(watch.take_due(1_259, 1_000, 100), None);
        assert_eq!(watch.take_due(3_000, 1_000, 100), Some(2_000), "looked at late: one, not four");
        assert_eq!(watch.due_ns(1_000, 100), Some(5_000));
    }

    #[test]
    fn the_limit_may_change_meanwhile() {
        let mut watch = Watch::NEW;
        assert_eq!(watch.take_due(500, 0, 1_000), None);
        assert_eq!(watch.take_due(500, 0, 200), Some(500), "somebody in a hurry has come");
        assert_eq!(watch.due_ns(0, 1_000), Some(1_000));
        assert_eq!(watch.due_ns(0, u64::MAX), None, "turned off");
        assert_eq!(watch.take_due(u64::MAX, 0, u64::MAX), None);
    }

    #[test]
    fn extremes_do_no_harm() {
        let mut watch = Watch::NEW;
        assert_eq!(watch.take_due(7, 7, 0), Some(1), "a limit of nothing");
        assert_eq!(watch.take_due(8, 7, 0), None);
        assert_eq!(watch.due_ns(8, u64::MAX - 1), None, "no such time");
        assert_eq!(watch.take_due(u64::MAX, 7, 0), Some(u64::MAX - 7));
        assert_eq!(watch.due_ns(7, 0), None, "and no doubling of that");
    }
}
