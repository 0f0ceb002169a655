//! Ctrl-C: asks a long run to write what it has and stop; a second one ends the process at once.
//!
//! The handler only sets a flag, which long runs poll.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

use crate::exit::Exit;

/// A shared flag that says whether the user wants the command to stop.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Installs the handlers for SIGINT and SIGTERM (`timeout 10 rcu advise` is a user too).
    pub(crate) fn install() -> io::Result<Interrupt> {
        let requested = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The order matters: handlers run in the order of registration, so the first signal
            // finds the flag unset and only the second one ends the process.
            flag::register_conditional_shutdown(
                signal,
                Exit::Interrupted as i32,
                Arc::clone(&requested),
            )?;
            flag::register(signal, Arc::clone(&requested))?;
        }
        // A file that may not grow is an error of a write, and no end of the process.
        flag::register(SIGXFSZ, Arc::default())?;
        Ok(Interrupt(requested))
    }

    /// Stops the command as the user's signal does.
    pub(crate) fn request(&self) {
        // Relaxed: the flag carries no data; it only has to be seen soon.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the user asked to stop.
    pub(crate) fn requested(&self) -> bool {
        // Relaxed: as above.
        self.0.load(Ordering::Relaxed)
    }
}
