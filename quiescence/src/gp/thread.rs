//! The slots that a thread finds without a search: that of the global domain, and that of the
//! domain in which it read last. All its slots are in its table ([`crate::reclaim::local`]), which
//! it searches if it needs another one.
//!
//! Both are thread-local without a destructor, so they can be used at any moment of a thread's
//! life. Either is [`NOT_READY`] if its fast path may not be used.

use std::cell::Cell;
use std::ptr;

use super::ended;
use super::grace_periods::GracePeriods;
use super::slot::{NOT_READY, Slot};

thread_local! {
    static GLOBAL: Cell<*const Slot> = const { Cell::new(NOT_READY) };
    /// Its domain is watched: `Table::each_watched`.
    static LAST: Cell<Last> = const { Cell::new(Last::NONE) };
}

/// A slot and its domain; or null and `NOT_READY`.
#[derive(Clone, Copy)]
struct Last {
    domain: *const GracePeriods,
    slot: *const Slot,
    /// [`ended::so_far`] by then.
    ended: usize,
}

impl Last {
    const NONE: Self = Self { domain: ptr::null(), slot: NOT_READY, ended: 0 };
}

/// The slot for sections of the global domain.
#[inline(always)]
pub(crate) fn global_slot() -> &'static Slot {
    // SAFETY: points to `NOT_READY` or to a slot of the global domain, which is never freed.
    unsafe { &*GLOBAL.with(Cell::get) }
}

/// Whether the thread is in a section that began with [`global_slot`].
pub(crate) fn in_global_section() -> bool {
    let slot = GLOBAL.get();
    // SAFETY: as in `global_slot`.
    !ptr::eq(slot, NOT_READY) && !unsafe { &*slot }.is_quiescent()
}

/// The slot for sections in a domain, if it is the one that the thread last read in. Once
/// enough domains [have ended](ended) it is not, so that the thread comes to its table, which
/// forgets them.
#[inline(always)]
pub(crate) fn last_slot(domain: &GracePeriods) -> &Slot {
    let last = LAST.get();
    let is_last = ptr::eq(last.domain, domain) && !ended::is_garbage(last.ended, 0);
    let slot = if is_last { last.slot } else { NOT_READY };
    // SAFETY: `NOT_READY`, or registered with `domain`, which lives: what unregisters a slot
    // forgets the pair, and so does what forgets a domain that has ended.
    unsafe { &*slot }
}

/// Has [`global_slot`] find this one from now on.
pub(crate) fn remember_global(slot: &'static Slot) {
    if slot.is_fast() {
        GLOBAL.set(slot);
    }
}

/// Has [`last_slot`] find this one from now on.
pub(crate) fn remember_last(domain: &GracePeriods, slot: &Slot) {
    if slot.is_fast() {
        LAST.set(Last { domain, slot, ended: ended::so_far() });
    }
}

pub(crate) fn forget_last() {
    LAST.set(Last::NONE);
}

/// Forgets a slot that is about to be unregistered.
pub(crate) fn forget(slot: *const Slot) {
    if GLOBAL.get() == slot {
        GLOBAL.set(NOT_READY);
    }
    if LAST.get().slot == slot {
        forget_last();
    }
}

/// Whether sections begin with this slot, which is not null, without the table.
pub(crate) fn remembers(slot: *const Slot) -> bool {
    GLOBAL.get() == slot || LAST.get().slot == slot
}
