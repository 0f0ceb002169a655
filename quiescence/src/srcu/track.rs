//! Which threads are in sections of a sleepable domain, if a program asks for that.
//!
//! Guards are counted, not listed, so their threads are not known. A domain that is asked to track
//! guards ([`Srcu::track_guards`](crate::Srcu::track_guards)) lists those that begin from then on.
//! Each costs a lock and an entry in a table, so this is for investigating a stall, not for normal
//! operation.

use std::panic::Location;

use crate::gp::by_number::ByNumber;
use crate::gp::stall::Live;
use crate::os::forking::{AtFork, ForkMutex};
use crate::os::sync::{Rank, const_unless_loom};
use crate::os::{clock, thread};

const_unless_loom! {
    /// Live guards by their tickets, each with the address of its domain's counts.
    static LIVE: ForkMutex<ByNumber<(usize, Live)>> = ForkMutex::new(Rank::Guards, ByNumber::new());
}

/// Lists a guard. Returns its ticket, which is not 0.
#[cold]
pub(crate) fn note(srcu_counts: usize, location: &'static Location<'static>) -> u64 {
    let live = Live { location, thread: thread::id(), since_ns: clock::monotonic_ns() };
    LIVE.lock().add((srcu_counts, live))
}

/// The guard with this ticket has ended.
#[cold]
pub(crate) fn forget(ticket: u64) {
    LIVE.lock().remove(ticket);
}

/// The oldest listed guard of a domain, and how many there are.
pub(crate) fn oldest(srcu_counts: usize) -> Option<(Live, usize)> {
    let table = LIVE.lock();
    let mut live = table.iter().filter(|(of_domain, _)| *of_domain == srcu_counts);
    let (_, oldest) = live.next()?;
    Some((*oldest, live.count() + 1))
}

/// The domain has ended, and its guards with it: a leaked one is not to be taken for one of the
/// next domain in its place.
pub(crate) fn forget_all(srcu_counts: usize) {
    LIVE.lock().retain(&mut |(of_domain, _)| *of_domain != srcu_counts);
}

impl AtFork for ByNumber<(usize, Live)> {}
