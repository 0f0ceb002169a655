//! What an update takes out of a map, to be freed after a grace period: a box, nodes, a table.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use super::entry::{Boxed, Entry, Form, Inline};
use super::map::{HashMap, by_form};
use super::node::{Left, NodeRef};
use crate::domain::tag::DomainTag;
use crate::reclaim::defer::{self, Patience};
use crate::reclaim::reserve::{self, Reservation};
use crate::reclaim::retire::Retire;

/// What one update takes out. It is retired when this is dropped: after the section of the update,
/// so that it can wait at the domain's limit.
pub(super) struct Garbage<'m, K, V, S, D>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    D: DomainTag,
{
    pub(super) map: &'m HashMap<K, V, S, D>,
    /// A box, or null.
    pub(super) entry: Cell<*mut Entry<K, V>>,
    /// Nodes, and how many slots have died.
    pub(super) left: Left,
    /// Buckets of the table.
    pub(super) buckets: Cell<usize>,
    /// Whether the update has moved buckets, and whether it has tried to change its own. It does
    /// each once, so that it leaves the nodes of so many at most.
    pub(super) has_helped: Cell<bool>,
    pub(super) has_tried: Cell<bool>,
    /// Whether it may be waited for at the limit.
    waits: bool,
    /// Room for the box.
    room: Option<Reservation<'m>>,
}

impl<'m, K, V, S, D> Garbage<'m, K, V, S, D>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    D: DomainTag,
{
    fn make(map: &'m HashMap<K, V, S, D>, waits: bool) -> Self {
        let (entry, left) = (Cell::new(ptr::null_mut()), Left::default());
        let (buckets, has_helped, has_tried) = (Cell::new(0), Cell::new(false), Cell::new(false));
        Self { map, entry, left, buckets, has_helped, has_tried, waits, room: None }
    }

    /// For an update that waits at the limit, where it may.
    pub(super) fn new(map: &'m HashMap<K, V, S, D>) -> Self {
        Self::make(map, true)
    }

    /// For an update that does not wait, of an entry in a slot, or that takes none out; `None`
    /// while the domain is over its limit. Which nodes it leaves is not known, so these go over
    /// the limit; but of each thread only those of one update, since none begins while the domain
    /// is over it.
    pub(super) fn of_nodes(map: &'m HashMap<K, V, S, D>) -> Option<Self> {
        (!map.domain.core().is_over_limit()).then(|| Self::make(map, false))
    }

    /// The same with room for a box that is charged so much, if there is any.
    pub(super) fn with_box(mut self, charge: usize) -> Option<Self> {
        self.room = Some(reserve::reserve_any(self.map.tag(), charge)?);
        Some(self)
    }
}

impl<K, V, S, D> Drop for Garbage<'_, K, V, S, D>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    D: DomainTag,
{
    fn drop(&mut self) {
        let (map, tag, entry) = (self.map, self.map.tag(), self.entry.get());
        if let Some(room) = self.room.take() {
            // SAFETY: it lives until it is retired; null has no weight.
            let bytes = unsafe { entry.as_ref() }.map_or(0, |entry| map.charge(entry));
            // SAFETY: from a box, or null; taken out of the map by this update.
            unsafe { room.retire(tag, entry, bytes) };
        } else if !entry.is_null() {
            // SAFETY: it lives until it is retired.
            let bytes = map.charge(unsafe { &*entry });
            // SAFETY: from a box; taken out of the map by this update.
            unsafe { defer::retire_raw(tag, entry, bytes) };
        }
        let mut died = self.left.died.get();
        by_form!(map, F, {
            // SAFETY: the map's form.
            while let Some(node) = unsafe { self.left.pop::<F<K, V>>() } {
                died += NODE;
                let node = NodeOwner(node);
                // In a section it goes over the limit, and the next update there is refused.
                let patience = if self.waits { Patience::InAnyCase } else { Patience::Unowed };
                let _queued: Result<(), _> = defer::retire(tag, node, patience);
            }
        });
        if died != 0 {
            let all = DIED.get() + died;
            let is_due = all >= patience(self.buckets.get());
            DIED.set(if is_due { 0 } else { all });
            if is_due {
                map.ask();
            }
        }
    }
}

thread_local! {
    /// Slots that have died in maps by this thread's updates, since it asked for a grace period.
    static DIED: Cell<u32> = const { Cell::new(0) };
}

/// For how many slots a node stands.
const NODE: u32 = 8;

/// Slots of a table of so many buckets that die in one thread's updates before it asks for a grace
/// period, which lets them be used again. So few that most buckets have none when it is over; but
/// as many as make up for the fence of a grace period, and no more than a thread should leave
/// behind.
#[inline]
fn patience(buckets: usize) -> u32 {
    (buckets / 4).clamp(64, 4_096) as u32
}

impl<K, V, S, D: DomainTag> HashMap<K, V, S, D> {
    /// Asks for a grace period, unless the one that was asked for last is not over: then does a
    /// step of that. Waits for nothing.
    #[cold]
    fn ask(&self) {
        let asked = self.domain.core().grace_periods.sequence();
        // Relaxed: a cookie of some thread's; if it is an old one, one grace period more is asked.
        if asked.is_done(grace::Cookie::from_bits(self.asked.load(Relaxed))) {
            let cookie = self.domain.start_poll();
            self.asked.store(self.domain.own(cookie).to_bits(), Relaxed);
        } else {
            self.domain.advance();
        }
    }
}

/// A node that is out of reach.
struct NodeOwner<F: Form>(NodeRef<F>);

// SAFETY: memory that no thread reads once it is dropped.
unsafe impl<F: Form> Send for NodeOwner<F> {}

impl<F: Form + 'static> Retire for NodeOwner<F> {
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

impl<F: Form> Drop for NodeOwner<F> {
    fn drop(&mut self) {
        // SAFETY: a grace period has gone by; boxes in it have other owners.
        unsafe { self.0.free() };
    }
}
