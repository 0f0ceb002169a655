//! What a consumer does while a producer is between the two steps of an insertion.
//!
//! A producer publishes its node with one exchange, and links it with a store right after. Between
//! the two a consumer can only wait, and the producer wakes no thread, since an insertion is
//! wait-free (and is inlined in C programs). The store is nearly always a few instructions away,
//! unless the producer has lost its CPU there. So a consumer first polls some times, then yields
//! its CPU, then naps, until the store. It never waits if no insertion is half done.

use std::fmt;
use std::sync::atomic::Ordering::Acquire;
use std::time::Duration;

use crate::os::nap;
use crate::os::sync::{self, AtomicPtr};

/// An insertion is half done, and the caller did not want to wait for its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WouldBlock;

impl fmt::Display for WouldBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an insertion is half done: try again")
    }
}

impl std::error::Error for WouldBlock {}

/// Looks, without a pause between them but the CPU's own.
const LOOKS: u32 = 100;

/// Times the CPU is given away, after that. Then come naps.
const YIELDS: u32 = 20;

const NAP: Duration = Duration::from_micros(200);

/// Whether, and how, an operation waits for half-done insertions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Wait until the insertion is done.
    Wait,
    /// Do not wait.
    Refuse,
}

impl Patience {
    /// The value of a link that a producer is about to write, once it is not null.
    pub(super) fn link<T>(self, link: &AtomicPtr<T>) -> Result<*mut T, WouldBlock> {
        let mut looks = 0;
        loop {
            // Acquire: pairs with the Release that linked the node, so that its content is seen.
            let next = link.load(Acquire);
            if !next.is_null() {
                return Ok(next);
            }
            self.pass(&mut looks)?;
        }
    }

    /// Lets time go by before the next look, of which `looks` is the count.
    pub(super) fn pass(self, looks: &mut u32) -> Result<(), WouldBlock> {
        if self == Self::Refuse {
            return Err(WouldBlock);
        }
        *looks = looks.saturating_add(1);
        if *looks <= LOOKS || cfg!(loom) {
            sync::relax();
        } else if *looks <= LOOKS + YIELDS {
            std::thread::yield_now();
        } else {
            nap::nap(NAP); // no cancellation point
        }
        Ok(())
    }
}
