//! What an update takes out of a map: a box, nodes, a table. They are freed after a grace period.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr;

use super::handed_on::hands_on;
use super::map::{Entry, HashMap};
use super::node::{Left, NodeRef};
use crate::domain::tag::DomainTag;
use crate::reclaim::defer::{self, Patience, out_of_line};
use crate::reclaim::free::Pending;
use crate::reclaim::retire::Retire;
use crate::reclaim::unlink::{self, Reservation};
use crate::reclaim::weigh::charge_of_box;

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
    entry: Cell<*mut Entry<K, V>>,
    /// Whether its key was handed on.
    without_key: Cell<bool>,
    pub(super) left: Left<Entry<K, V>>,
    /// Whether the update has been on the slow road: its bucket has a node, its table grows, or
    /// others changed the bucket meanwhile. Only the first time it tends a node and moves other
    /// buckets, which bounds the number of nodes that it leaves.
    pub(super) has_tried: Cell<bool>,
    /// Whether the update may wait at the limit.
    waits: bool,
    /// Room for the box.
    pub(super) room: Option<Reservation<'m>>,
}

impl<'m, K, V, S, D> Garbage<'m, K, V, S, D>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    D: DomainTag,
{
    /// For an update that waits at the limit, where it may.
    pub(super) fn new(map: &'m HashMap<K, V, S, D>) -> Self {
        let (entry, left) = (Cell::new(ptr::null_mut()), Left::nothing());
        let (without_key, has_tried) = (Cell::new(false), Cell::new(false));
        Self { map, entry, without_key, left, has_tried, waits: true, room: None }
    }

    /// The same, if an update may take something out: not in a section in which this thread has
    /// gone over the limit already.
    #[inline]
    pub(super) fn if_room(map: &'m HashMap<K, V, S, D>) -> Option<Self> {
        unlink::may_replace(map.tag(), None).then(|| Self::new(map))
    }

    /// For an update that does not wait, and that takes no entry out; `None` while the domain is
    /// over its limit. Which nodes it leaves is not known, so these go over the limit; but of each
    /// thread only those of one update, since none begins while the domain is over it.
    pub(super) fn of_nodes(map: &'m HashMap<K, V, S, D>) -> Option<Self> {
        let mut this = (!map.domain.core().is_over_limit()).then(|| Self::new(map))?;
        this.waits = false;
        Some(this)
    }

    /// Takes charge of an entry that the update has taken out. Returns it.
    pub(super) fn take(&self, entry: *const Entry<K, V>) -> *const Entry<K, V> {
        self.entry.set(entry.cast_mut());
        entry
    }

    /// Whether an entry that is replaced hands its key on [HM-I5].
    #[inline(always)]
    pub(super) fn hands_on(&self) -> bool {
        hands_on::<K>() && self.map.weight.hands_on
    }

    /// Hands the key of an entry that is to be taken out on to the one in its place, which has
    /// none. In a section, with the bucket.
    #[inline(always)]
    pub(super) fn hand_on(&self, entry: *const Entry<K, V>, to: *mut Entry<K, V>) {
        // SAFETY: it is in the bucket, so it lives and has its key; nobody else has the new one.
        // (Not as a value: a `Box` that is moved is alone in having its memory.)
        unsafe { ptr::copy_nonoverlapping(entry.cast::<K>(), to.cast(), 1) };
        self.without_key.set(true); //~ map-key-of-two
    }

    /// Retires what was taken out, if it is what it usually is: a box that weighs its size, or
    /// nothing. Returns whether that was all.
    #[inline(always)]
    pub(super) fn retire_usual(&self) -> bool {
        let weight = &self.map.weight;
        if self.room.is_some() || !self.left.is_nothing() {
            return false;
        }
        let entry = || self.entry.replace(ptr::null_mut()); // once, whatever unwinds
        match hands_on::<K>() {
            true if self.without_key.get() && weight.value.is_none() => {
                self.without_key.set(false);
                self.retire_by_size(entry().cast::<Entry<MaybeUninit<K>, V>>());
            }
            false if weight.entry.is_none() => self.retire_by_size(entry()),
            _ => return false,
        }
        true
    }

    #[inline(always)]
    fn retire_by_size<T: Send + 'static>(&self, entry: *mut T) {
        let tag = self.map.tag();
        // SAFETY: from a box, or null; taken out of the map by this update.
        let entry = unsafe { Pending::boxed(tag.core(), entry) };
        unlink::retire_box(tag, entry, charge_of_box::<T>(size_of::<T>()));
    }

    fn retire<T: Send + 'static>(&mut self, entry: *mut T, bytes: usize) {
        let tag = self.map.tag();
        // SAFETY: from a box, or null; taken out of the map by this update.
        let entry = unsafe { Pending::boxed(tag.core(), entry) };
        match self.room.take() {
            Some(room) => out_of_line(move || room.retire(tag, entry, bytes)),
            None => unlink::retire_box(tag, entry, bytes),
        }
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
        if hands_on::<K>() && self.without_key.get() {
            let entry = entry.cast::<Entry<MaybeUninit<K>, V>>();
            // SAFETY: it lives until it is retired.
            let bytes = map.charge_value(unsafe { &(*entry).value });
            self.retire(entry, bytes);
        } else {
            // SAFETY: it lives until it is retired; null has no weight.
            let bytes = unsafe { entry.as_ref() }.map_or(0, |entry| map.charge(entry));
            self.retire(entry, bytes);
        }
        while let Some(node) = self.left.pop() {
            // In a section it goes over the limit, and the next update there is refused.
            let patience = if self.waits { Patience::InAnyCase } else { Patience::Unowed };
            let retire = move || defer::retire(tag, NodeOwner(node), patience);
            let _queued: Result<(), _> = out_of_line(retire);
        }
    }
}

/// A node that is out of reach.
struct NodeOwner<E>(NodeRef<E>);

// SAFETY: memory that no thread reads once it is dropped.
unsafe impl<E> Send for NodeOwner<E> {}

impl<E: 'static> Retire for NodeOwner<E> {
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

impl<E> Drop for NodeOwner<E> {
    fn drop(&mut self) {
        // SAFETY: a grace period has gone by; boxes in it have other owners.
        unsafe { self.0.free() };
    }
}
