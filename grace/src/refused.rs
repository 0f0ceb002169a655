//! What a machine says to an event that it does not wait for, and to a cookie that is not its own.

use core::error::Error;
use core::fmt::{Debug, Display, Formatter, Result};

/// An event that does not fit the step the machine is at. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Refused<E, A> {
    /// The event that was reported.
    pub event: E,
    /// The action that the machine waits to see reported.
    pub pending: A,
}

impl<E: Debug, A: Debug> Display for Refused<E, A> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "event {:?} does not answer the pending action {:?}", self.event, self.pending)
    }
}

impl<E: Debug, A: Debug> Error for Refused<E, A> {}

/// A cookie that this machine cannot have given: it stands for a grace period later than any that
/// the machine has promised, or for none at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NotGiven;

impl Display for NotGiven {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(
            "this domain has not given out such a cookie: it is ahead of every grace period that \
             was ever requested here",
        )
    }
}

impl Error for NotGiven {}
