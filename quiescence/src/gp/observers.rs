//! What identifies a domain to its observers: its name and number, and the counters of its events.
//! Grace periods do not need it. Probes, tracing and statistics get events with these
//! ([`trace::Source`]); stall reports and the statistics server show them.

use std::borrow::Cow;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use crate::event::statistics::Counters;
use crate::event::trace;

/// The name, number and counters of one domain.
#[derive(Debug)]
pub(crate) struct Observers {
    /// What cookies know a domain by, if it may end; 0 if it lives for ever. See
    /// [`identity`](Self::identity).
    pub(crate) number: usize,
    /// The name that the domain is declared by; see [`label`](Self::label).
    pub(crate) declared_name: Option<&'static str>,
    /// The name that it was given when it was made.
    pub(crate) given_name: Option<String>,
    /// What is counted by [`trace`].
    pub(crate) counters: Counters,
}

impl Observers {
    pub(crate) const fn new() -> Self {
        Self { number: 0, declared_name: None, given_name: None, counters: Counters::new() }
    }

    /// A number for a domain that may end. An address would not identify it: it is used again once
    /// the domain has ended. Odd: see [`identity`](Self::identity).
    pub(crate) fn next_number() -> usize {
        static NUMBERS: AtomicUsize = AtomicUsize::new(1);
        // Relaxed: the number only has to be unique.
        let next = fetch_update!(NUMBERS, Relaxed, Relaxed, |number| number.checked_add(2));
        next.expect("quiescence: there are no more numbers for domains")
    }

    /// The domain's name for people: its name, or else its number among those made at run time.
    pub(crate) fn label(&self) -> Cow<'_, str> {
        match (self.declared_name, &self.given_name) {
            (Some(name), _) => name.into(),
            (None, Some(name)) => name.into(),
            // The numbers are odd; see `identity`.
            (None, None) => format!("#{}", self.number.div_ceil(2)).into(),
        }
    }

    /// A number that no other domain has, had or will have.
    pub(crate) fn identity(&self) -> usize {
        // The numbers are odd and the addresses, by the alignment, are not.
        if self.number != 0 { self.number } else { std::ptr::from_ref(self).addr() }
    }

    /// This domain as the source of events.
    pub(crate) fn source(&self) -> trace::Source<'_> {
        trace::Source { identity: self.identity(), counters: &self.counters }
    }
}
