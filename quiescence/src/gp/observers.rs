//! What watches a domain, apart from what its grace periods need: its name and number, and the
//! counters of its events. Probes, tracing and statistics are told of events with these
//! ([`trace::Source`]); stall reports and the statistics server show them.

#[cfg(not(loom))]
use std::borrow::Cow;
#[cfg(not(loom))]
use std::sync::atomic::AtomicUsize;
#[cfg(not(loom))]
use std::sync::atomic::Ordering::Relaxed;

use crate::event::statistics::Counters;
use crate::event::trace;

/// What watches one domain.
#[derive(Debug)]
pub(crate) struct Observers {
    /// What cookies know a domain by that may end; 0 in one that lives for ever. See
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

    /// A number for a domain that may end. An address would not do to know it by: it is used again
    /// once the domain has ended. Odd: see [`identity`](Self::identity).
    #[cfg(not(loom))]
    pub(crate) fn next_number() -> usize {
        static NUMBERS: AtomicUsize = AtomicUsize::new(1);
        // Relaxed: a number of its own is all that is wanted. Where a word has 32 bits a program
        // may come to the end.
        let next = NUMBERS.fetch_update(Relaxed, Relaxed, |number| number.checked_add(2));
        next.expect("quiescence: there are no more numbers for domains")
    }

    /// What people know the domain by: its name, or else its number among those made at run time.
    #[cfg(not(loom))]
    pub(crate) fn label(&self) -> Cow<'_, str> {
        match (self.declared_name, &self.given_name) {
            (Some(name), _) => name.into(),
            (None, Some(name)) => name.into(),
            // The numbers are odd; see `identity`.
            (None, None) => format!("#{}", self.number.div_ceil(2)).into(),
        }
    }

    /// A number that no other domain has, had or will have.
    #[cfg(not(loom))]
    pub(crate) fn identity(&self) -> usize {
        // The numbers are odd and the addresses, by the alignment, are not.
        if self.number != 0 { self.number } else { std::ptr::from_ref(self).addr() }
    }

    /// Where the events of this domain happen.
    pub(crate) fn source(&self) -> trace::Source<'_> {
        #[cfg(not(loom))]
        let identity = self.identity();
        #[cfg(loom)]
        let identity = 0;
        trace::Source { identity, counters: &self.counters }
    }
}
