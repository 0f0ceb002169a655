//! The program around a measurement: shows how far it is, and may end it early.

use std::fmt::{self, Display};
use std::io;
use std::time::Duration;

/// The program that measures.
pub trait Host {
    /// Whether the run is to end early: it was interrupted, or no one reads its results any more.
    fn must_stop(&mut self) -> bool;

    /// Shows what is measured now.
    fn announce(&mut self, what: &dyn Display);

    /// Shows that `by` more of the announced duration is done.
    fn advance(&mut self, by: Duration);

    /// Shows a note about something odd that stops nothing.
    fn note(&mut self, text: &dyn Display);
}

/// Why something could not be measured.
#[derive(Debug)]
pub enum Error {
    /// An argument is wrong; the message says which, and what would be right.
    Usage(String),
    /// This machine or this program lacks something; the message says what.
    Unsupported(String),
    /// The system refused something.
    Io {
        /// What was being done, as in "cannot start".
        doing: String,
        /// What the system said.
        error: io::Error,
    },
}

impl Error {
    pub(crate) fn io(doing: impl Into<String>, error: io::Error) -> Self {
        Self::Io { doing: doing.into(), error }
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) | Self::Unsupported(message) => f.write_str(message),
            Self::Io { doing, error } => write!(f, "{doing}: {error}"),
        }
    }
}

impl std::error::Error for Error {}

/// Spends a millisecond, by the clock: what registering takes, or leaving, of designs whose threads
/// take their time.
#[cfg(test)]
pub(crate) fn spend() {
    let begin = std::time::Instant::now();
    while begin.elapsed() < Duration::from_millis(1) {
        std::hint::spin_loop();
    }
}

/// A host that shows nothing. One test at a time has it: measurements that are disturbed are made
/// again, 25 times at worst.
#[cfg(test)]
pub(crate) struct Quiet {
    /// What stops it.
    pub(crate) stops: std::sync::Arc<std::sync::atomic::AtomicBool>,
    _turn: parking_lot::MutexGuard<'static, ()>,
}

#[cfg(test)]
impl Default for Quiet {
    fn default() -> Self {
        static TURN: parking_lot::Mutex<()> = parking_lot::Mutex::new(());
        Self { _turn: TURN.lock(), stops: Default::default() }
    }
}

#[cfg(test)]
impl Host for Quiet {
    fn must_stop(&mut self) -> bool {
        // Relaxed: the flag carries no data.
        self.stops.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn announce(&mut self, _what: &dyn Display) {}

    fn advance(&mut self, _by: Duration) {}

    fn note(&mut self, _text: &dyn Display) {}
}
