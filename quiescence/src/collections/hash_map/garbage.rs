//! What an update takes out of a map, to be freed after a grace period: a box, nodes, a table.

use std::cell::Cell;
use std::ptr;

use super::entry::{Boxed, Entry, Inline};
use super::map::{HashMap, by_form};
use super::node::{NodeRef, Nodes};
use super::table::TableRef;
use crate::domain::tag::DomainTag;
use crate::reclaim::defer::{self, Reserved};
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
    pub(super) nodes: Nodes,
    /// Whether it may be waited for at the limit.
    waits: bool,
    /// Room for the box.
    room: Option<Reserved<'m>>,
}

impl<'m, K, V, S, D> Garbage<'m, K, V, S, D>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    D: DomainTag,
{
    /// For an update that waits at the limit, where it may.
    pub(super) fn new(map: &'m HashMap<K, V, S, D>) -> Self {
        let (entry, nodes) = (Cell::new(ptr::null_mut()), Nodes::default());
        Self { map, entry, nodes, waits: true, room: None }
    }

    /// For an update that does not wait; `None` if there is no room for what it may take out.
    pub(super) fn without_waiting(map: &'m HashMap<K, V, S, D>) -> Option<Self> {
        let room = match map.is_inline() {
            true => None,
            false => Some(defer::reserve_any(map.tag(), map.charge_by_size())?),
        };
        let (entry, nodes) = (Cell::new(ptr::null_mut()), Nodes::default());
        Some(Self { map, entry, nodes, waits: false, room })
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
        by_form!(map, F, {
            // SAFETY: the map's form.
            while let Some(node) = unsafe { self.nodes.pop::<F<K, V>>() } {
                // What is refused is retired over the limit.
                drop(defer::retire(tag, NodeOwner(node), self.waits));
            }
        });
    }
}

/// A node that is out of reach.
struct NodeOwner<F: super::entry::Form>(NodeRef<F>);

// SAFETY: memory that no thread reads once it is dropped.
unsafe impl<F: super::entry::Form> Send for NodeOwner<F> {}

impl<F: super::entry::Form> Retire for NodeOwner<F> {
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

impl<F: super::entry::Form> Drop for NodeOwner<F> {
    fn drop(&mut self) {
        // SAFETY: a grace period has gone by; boxes in it have other owners.
        unsafe { self.0.free() };
    }
}

/// A table that is out of reach, all of whose entries have moved.
pub(super) struct TableOwner<F: super::entry::Form>(pub(super) TableRef<F>);

// SAFETY: as for nodes.
unsafe impl<F: super::entry::Form> Send for TableOwner<F> {}

impl<F: super::entry::Form> Drop for TableOwner<F> {
    fn drop(&mut self) {
        // SAFETY: a grace period has gone by since it was out of reach.
        unsafe { self.0.free() };
    }
}
