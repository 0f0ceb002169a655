//! Who is in a section of a sleepable domain, where that was asked for.
//!
//! Guards are counted, not listed, so their threads are not known. A domain that is asked to track
//! them ([`Srcu::track_guards`](crate::Srcu::track_guards)) lists those that begin from then on: a
//! lock and an entry in a table each, so it is for looking into a stall, not for every day.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::panic::Location;

use crate::os::sync::{self, Mutex, MutexGuard, Rank};
use crate::os::{clock, thread};

/// A guard that lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live {
    /// Where it was taken.
    pub(crate) location: &'static Location<'static>,
    /// The thread that took it, as the system knows it; it may be held by another one, or by none,
    /// by now.
    pub(crate) thread: u32,
    /// When, as `clock::monotonic_ns`.
    pub(crate) since_ns: u64,
}

/// Live guards, by the address of their domain's counts and their tickets: those of one domain in
/// the order in which they were taken.
#[derive(Debug)]
struct Table {
    live: BTreeMap<(usize, u64), Live>,
    last: u64,
}

/// The keys of a domain's guards.
fn of_domain(srcu_counts: usize) -> RangeInclusive<(usize, u64)> {
    (srcu_counts, 0)..=(srcu_counts, u64::MAX)
}

static TABLE: Mutex<Table> = Mutex::new(Rank::Guards, Table { live: BTreeMap::new(), last: 0 });

/// Lists a guard. Returns its ticket, which is not 0.
#[cold]
pub(crate) fn note(srcu_counts: usize, location: &'static Location<'static>) -> u64 {
    let live = Live { location, thread: thread::id(), since_ns: clock::monotonic_ns() };
    let mut table = sync::lock(&TABLE);
    table.last += 1;
    let ticket = table.last;
    table.live.insert((srcu_counts, ticket), live);
    ticket
}

/// The guard with this ticket has ended.
#[cold]
pub(crate) fn forget(srcu_counts: usize, ticket: u64) {
    sync::lock(&TABLE).live.remove(&(srcu_counts, ticket));
}

/// The oldest listed guard of a domain, and how many there are.
pub(crate) fn oldest(srcu_counts: usize) -> Option<(Live, usize)> {
    let table = sync::lock(&TABLE);
    let mut live = table.live.range(of_domain(srcu_counts));
    let (_, oldest) = live.next()?;
    Some((*oldest, live.count() + 1))
}

/// The domain has ended, and its guards with it: a leaked one is not to be taken for one of the
/// next domain in its place.
pub(crate) fn forget_all(srcu_counts: usize) {
    let mut table = sync::lock(&TABLE);
    while let Some((key, _)) = table.live.range(of_domain(srcu_counts)).next() {
        let key = *key;
        table.live.remove(&key);
    }
}

/// The table's lock, held across a `fork`.
pub(crate) struct Held {
    _table: MutexGuard<'static, Table>,
}

/// Before a `fork`.
pub(crate) fn hold() -> Held {
    Held { _table: sync::lock(&TABLE) }
}
