//! What can be watched from outside: one function for each event, called where it happens.
//!
//! Here, and nowhere else, an event becomes a USDT probe (feature `probes`; they are described in
//! `docs/PROBES.md`) and an event of the crate `tracing` (feature `tracing`). What such a function
//! has is counted in it; what is only counted (a heavy fence, a sleep) is counted where it happens.
//!
//! These functions may be called under the library's locks: a probe is one `nop` that a tracer puts
//! its breakpoint on, and a `tracing` event is only noted, for [`deliver`] to hand on where no lock
//! is held. A grace period has one number here, in all events: how many had ended when it has,
//! which is one more than when it begins.

use std::sync::atomic::Ordering::Relaxed;

use grace::{Cookie, Sequence, Urgency};

use super::statistics::Counters;

#[cfg(feature = "tracing")]
mod events;

/// A probe of the provider `quiescence`, where the feature is on. Loom knows no addresses.
///
/// What is reported in more than one place is not inlined: a linker that leaves one of the places
/// out, which a program does not use, leaves a note behind that leads nowhere.
macro_rules! probe {
    ($name:ident, $domain:expr $(, $argument:expr)*) => {{
        #[cfg(feature = "probes")]
        probe::probe!(quiescence, $name, $domain.identity $(, $argument)*);
        #[cfg(not(feature = "probes"))]
        let _ = ($domain.identity, $($argument),*);
    }};
}

/// Notes an event for [`deliver`], where the feature is on.
macro_rules! event {
    ($domain:expr, $event:ident { $($field:ident),* }) => {
        #[cfg(feature = "tracing")]
        events::note($domain.identity, events::Event::$event { $($field),* });
    };
}

/// Where an event happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    /// The number that stands for the domain.
    pub(crate) identity: usize,
    /// What is counted there.
    pub(crate) counters: &'a Counters,
}

/// A grace period begins: the one after `sequence`.
#[inline(never)]
pub(crate) fn grace_period_began(domain: Source<'_>, sequence: Sequence, urgency: Urgency) {
    let (number, urgency) = (sequence.ended().wrapping_add(1), urgency as u64);
    probe!(grace_period_begin, domain, number, urgency);
    event!(domain, GracePeriodBegin { number, urgency });
}

/// A grace period has ended. `latency_ns` since it began, unless no other thread was registered;
/// `expedited` if somebody in a hurry wanted it. Under the machine's lock, which the counts rely
/// on.
#[inline(never)]
pub(crate) fn grace_period_ended(
    domain: Source<'_>,
    sequence: Sequence,
    latency_ns: Option<u64>,
    expedited: bool,
) {
    if expedited {
        domain.counters.expedited.add_alone(1);
    }
    if let Some(ns) = latency_ns {
        domain.counters.latency.record_alone(ns);
    }
    let (number, latency_ns) = (sequence.ended(), latency_ns.unwrap_or(0));
    probe!(grace_period_end, domain, number, latency_ns);
    event!(domain, GracePeriodEnd { number, latency_ns });
}

/// A batch of `callbacks` was closed, and waits for `cookie`: a grace period, by its number.
#[inline(never)]
pub(crate) fn batch_closed(domain: Source<'_>, callbacks: u64, cookie: Cookie) {
    domain.counters.batches.fetch_add(1, Relaxed);
    let number = Sequence::from_bits(cookie.to_bits()).ended();
    probe!(batch, domain, callbacks, number);
    event!(domain, Batch { callbacks, number });
}

/// So many callbacks have been run in one go.
#[inline(never)]
pub(crate) fn callbacks_run(domain: Source<'_>, callbacks: u64) {
    probe!(callbacks, domain, callbacks);
    event!(domain, Callbacks { callbacks });
}

/// A thread comes to the limit of what may wait, and has to wait (`true`) or is refused.
#[inline(never)]
pub(crate) fn limit_reached(domain: Source<'_>, waits: bool) {
    let counters = &domain.counters;
    if waits { &counters.limit_waits } else { &counters.limit_refusals }.fetch_add(1, Relaxed);
    probe!(limit, domain, u64::from(waits));
    event!(domain, Limit { waits });
}

/// The grace period `number` (see the module) has been in progress for `age_ns`, and so many
/// readers hold it up.
#[inline(never)]
pub(crate) fn stalled(domain: Source<'_>, number: u64, age_ns: u64, holdouts: u64) {
    domain.counters.stalls.fetch_add(1, Relaxed);
    probe!(stall, domain, number, age_ns, holdouts);
}

/// A report of a stall has been made, by its own thread: the thread that noticed it may be about to
/// sleep, and [`deliver`] when it is over. No lock is held.
pub(crate) fn stall_reported(domain: usize, number: u64, age_ns: u64, holdouts: u64) {
    #[cfg(feature = "tracing")]
    {
        events::note(domain, events::Event::Stall { number, age_ns, holdouts });
        events::deliver();
    }
    #[cfg(not(feature = "tracing"))]
    let _ = (domain, number, age_ns, holdouts);
}

/// The worker has spent so much CPU time on callbacks of this domain.
#[inline]
pub(crate) fn worker_ran_callbacks(domain: Source<'_>, spent_ns: u64) {
    domain.counters.worker_callbacks_ns.fetch_add(spent_ns, Relaxed);
}

/// Hands the events that this thread has noted to the subscriber, which is code of the user: the
/// caller holds none of our locks, and no borrow of what the thread knows of itself.
#[inline]
pub(crate) fn deliver() {
    #[cfg(feature = "tracing")]
    events::deliver();
}
