//! Events of the crate `tracing`: noted where they happen, handed on when no lock is held.
//!
//! A subscriber is user code. It may take locks of its own, wait for a grace period, or panic. So
//! only [`deliver`] calls it, when the thread has released all of the library's locks. Until then a
//! thread keeps up to [`KEPT`] events, and counts further ones as lost. Events of calls that a
//! subscriber itself makes are not noted: delivering them would never end.

use std::cell::Cell;

use tracing::Level;
use tracing::level_filters::LevelFilter;

use crate::os::user_code::{Site, caught};

/// The largest number of events that a thread keeps.
const KEPT: usize = 32;

#[derive(Clone, Copy)]
pub(super) enum Event {
    GracePeriodBegin { number: u64, urgency: u64 },
    GracePeriodEnd { number: u64, latency_ns: u64 },
    Batch { callbacks: u64, number: u64 },
    Callbacks { callbacks: u64 },
    Limit { waits: bool },
    Stall { number: u64, age_ns: u64, holdouts: u64 },
}

/// What a thread has noted and not yet handed on.
#[derive(Clone, Copy)]
struct Noted {
    events: [Option<(usize, Event)>; KEPT],
    count: usize,
    lost: u64,
}

impl Noted {
    const NOTHING: Self = Self { events: [None; KEPT], count: 0, lost: 0 };
}

thread_local! {
    // Without destructors, so that they can be used until the very end of a thread.
    static NOTED: Cell<Noted> = const { Cell::new(Noted::NOTHING) };
    /// Whether there is anything in `NOTED`.
    static ANY: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread is in a subscriber.
    static DELIVERING: Cell<bool> = const { Cell::new(false) };
}

impl Event {
    fn level(self) -> Level {
        match self {
            Self::Stall { .. } => Level::WARN,
            Self::Limit { .. } => Level::DEBUG,
            _ => Level::TRACE,
        }
    }

    fn hand_on(self, domain: usize) {
        match self {
            Self::GracePeriodBegin { number, urgency } => {
                let urgency = ["background", "normal", "expedited"][urgency as usize];
                tracing::trace!(target: "quiescence", domain, number, urgency, "grace_period_begin");
            }
            Self::GracePeriodEnd { number, latency_ns } => {
                tracing::trace!(target: "quiescence", domain, number, latency_ns, "grace_period_end");
            }
            Self::Batch { callbacks, number } => {
                tracing::trace!(target: "quiescence", domain, callbacks, number, "batch");
            }
            Self::Callbacks { callbacks } => {
                tracing::trace!(target: "quiescence", domain, callbacks, "callbacks");
            }
            Self::Limit { waits } => {
                tracing::debug!(target: "quiescence", domain, waits, "limit");
            }
            Self::Stall { number, age_ns, holdouts } => {
                tracing::warn!(target: "quiescence", domain, number, age_ns, holdouts, "stall");
            }
        }
    }
}

/// Notes an event, if a subscriber may want it. Only the level is checked here: it is a number,
/// while `enabled` would call the subscriber.
pub(super) fn note(domain: usize, event: Event) {
    if event.level() > LevelFilter::current() || DELIVERING.get() {
        return;
    }
    let mut noted = NOTED.get();
    match noted.events.get_mut(noted.count) {
        Some(place) => {
            *place = Some((domain, event));
            noted.count += 1;
        }
        None => noted.lost += 1,
    }
    NOTED.set(noted);
    ANY.set(true);
}

/// Hands on what this thread has noted. A subscriber that panics loses only the event that it was
/// called with.
pub(super) fn deliver() {
    if !ANY.get() || DELIVERING.replace(true) {
        return;
    }
    ANY.set(false);
    let Noted { events, lost, .. } = NOTED.replace(Noted::NOTHING);
    for (domain, event) in events.into_iter().flatten() {
        caught(Site::Subscriber, || event.hand_on(domain));
    }
    if lost != 0 {
        caught(Site::Subscriber, || tracing::debug!(target: "quiescence", lost, "lost"));
    }
    DELIVERING.set(false);
}
