//! The events that can be watched from outside: one function for each, called where it happens.
//!
//! Only here does an event become a USDT probe (feature `probes`; `docs/PROBES.md` describes them)
//! and an event of the crate `tracing` (feature `tracing`). An event that has a function here is
//! counted in that function. One that is only counted (a heavy fence, a sleep) is counted where it
//! happens.
//!
//! These functions may be called under the library's locks. A probe is one `nop` on which a tracer
//! puts its breakpoint. A `tracing` event is only noted: [`deliver`] hands it on when no lock is
//! held. A grace period has the same number in all events: how many grace periods have ended once
//! it has.

use std::sync::atomic::Ordering::Relaxed;

use grace::{Cookie, Sequence, Urgency};

use super::statistics::{Counters, add_alone};

#[cfg(feature = "tracing")]
mod events;

/// A probe of the provider `quiescence`, if the feature is on.
///
/// A function with a probe is not inlined if it is called in more than one place: when a linker
/// drops a place that the program does not use, the probe's note there would lead nowhere.
macro_rules! probe {
    ($name:ident, $domain:expr $(, $argument:expr)*) => {{
        #[cfg(feature = "probes")]
        probe::probe!(quiescence, $name, $domain.identity $(, $argument)*);
        #[cfg(not(feature = "probes"))]
        let _ = ($domain.identity, $($argument),*);
    }};
}

/// Notes an event for [`deliver`], if the feature is on.
macro_rules! event {
    ($domain:expr, $event:ident { $($field:ident),* }) => {
        #[cfg(feature = "tracing")]
        events::note($domain.identity, events::Event::$event { $($field),* });
    };
}

/// The domain in which an event happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    /// The domain's number.
    pub(crate) identity: usize,
    /// The domain's counters.
    pub(crate) counters: &'a Counters,
}

/// A grace period begins: the one after `sequence`.
#[inline(never)]
pub(crate) fn grace_period_began(domain: Source<'_>, sequence: Sequence, urgency: Urgency) {
    let (number, urgency) = (sequence.ended().wrapping_add(1), urgency as u64);
    probe!(grace_period_begin, domain, number, urgency);
    event!(domain, GracePeriodBegin { number, urgency });
}

/// A grace period has ended. `latency_ns` is `None` if it was not timed. The caller holds the
/// machine's lock, on which the counts rely.
#[inline(never)]
pub(crate) fn grace_period_ended(
    domain: Source<'_>,
    sequence: Sequence,
    latency_ns: Option<u64>,
    expedited: bool,
) {
    if expedited {
        add_alone(&domain.counters.grace_periods_expedited);
    }
    if let Some(ns) = latency_ns {
        domain.counters.latency.record_alone(ns);
    }
    let (number, latency_ns) = (sequence.ended(), latency_ns.unwrap_or(0));
    probe!(grace_period_end, domain, number, latency_ns);
    event!(domain, GracePeriodEnd { number, latency_ns });
}

/// A batch of `callbacks` was closed, and waits for the grace period of `cookie`.
#[inline(never)]
pub(crate) fn batch_closed(domain: Source<'_>, callbacks: u64, cookie: Cookie) {
    domain.counters.batches.fetch_add(1, Relaxed);
    let number = Sequence::from_bits(cookie.to_bits()).ended();
    probe!(batch, domain, callbacks, number);
    event!(domain, Batch { callbacks, number });
}

/// A batch of `callbacks` has been run.
#[inline(never)]
pub(crate) fn callbacks_run(domain: Source<'_>, callbacks: u64) {
    probe!(callbacks, domain, callbacks);
    event!(domain, Callbacks { callbacks });
}

/// A thread has reached the memory limit, and waits or is refused.
#[inline(never)]
pub(crate) fn limit_reached(domain: Source<'_>, waits: bool) {
    let counters = &domain.counters;
    if waits { &counters.limit_waits } else { &counters.limit_refusals }.fetch_add(1, Relaxed);
    probe!(limit, domain, u64::from(waits));
    event!(domain, Limit { waits });
}

/// The grace period `number` (see the module) has waited for `age_ns`, and `holdouts` readers hold
/// it up.
#[inline(never)]
pub(crate) fn stalled(domain: Source<'_>, number: u64, age_ns: u64, holdouts: u64) {
    domain.counters.stalls.fetch_add(1, Relaxed);
    probe!(stall, domain, number, age_ns, holdouts);
}

/// A stall report has been made. Called on the reporter's thread: the one that noticed the stall
/// may be about to sleep, and would [`deliver`] only when the stall is over. No lock is held.
pub(crate) fn stall_reported(domain: usize, number: u64, age_ns: u64, holdouts: u64) {
    #[cfg(feature = "tracing")]
    {
        events::note(domain, events::Event::Stall { number, age_ns, holdouts });
        events::deliver();
    }
    #[cfg(not(feature = "tracing"))]
    let _ = (domain, number, age_ns, holdouts);
}

/// The worker has spent `spent_ns` of CPU time on callbacks of this domain.
#[inline]
pub(crate) fn worker_ran_callbacks(domain: Source<'_>, spent_ns: u64) {
    domain.counters.worker_callbacks_ns.fetch_add(spent_ns, Relaxed);
}

/// Hands the events that this thread has noted to the subscriber, which is user code: the caller
/// holds none of the library's locks, and no borrow of thread-local state.
#[inline]
pub(crate) fn deliver() {
    #[cfg(feature = "tracing")]
    events::deliver();
}
