//! What the grace periods of a sleepable domain ask of its readers.

use std::time::Duration;

use grace::Urgency;

use super::{Attention, Driver, GracePeriods, Locked};
use crate::gp::stall::{Live, Unfinished};

/// Readers that are counted, and not registered: those of a sleepable domain.
///
/// To the domain's machine they are no readers. It begins a grace period, and their driver ends it
/// ([`Locked::end_counted`]) once all sections that had been counted by then have ended.
pub(crate) trait Counted: Send + Sync {
    /// How many sections are in progress.
    fn sections(&self) -> u64;

    /// Carries out the actions of the domain's machine, until `driver.until` is reached or another
    /// driver has taken over. The caller has set `driven`.
    fn drive(&self, domain: &GracePeriods, state: &mut Locked<'_>, driver: &Driver);

    /// Waits for a full grace period, but for at most `longest`. Returns whether it has ended.
    fn synchronize_within(
        &self,
        domain: &GracePeriods,
        urgency: Urgency,
        longest: Duration,
    ) -> bool;

    /// The sections that the grace period in progress waits for, if there is one.
    fn unfinished(&self, domain: &GracePeriods) -> Option<Unfinished>;

    /// The oldest guard that is listed, and how many are.
    fn oldest_guard(&self) -> Option<(Live, usize)>;
}

impl GracePeriods {
    /// Makes this a sleepable domain.
    pub(crate) fn make_sleepable(&mut self, counted: Box<dyn Counted>) {
        self.counted = Some(counted);
        self.when_wanted = Attention::None;
    }

    /// Whether this is a sleepable domain, whose sections belong to no thread.
    pub(crate) fn is_sleepable(&self) -> bool {
        self.counted.is_some()
    }

    /// The readers of a sleepable domain.
    pub(crate) fn counted(&self) -> Option<&dyn Counted> {
        self.counted.as_deref()
    }

    /// How many readers are registered; in a sleepable domain, how many sections are in progress.
    pub(crate) fn readers(&self) -> usize {
        match &self.counted {
            None => self.registry().len(),
            Some(counted) => usize::try_from(counted.sections()).unwrap_or(usize::MAX),
        }
    }
}
