//! The slots that a thread finds at once: that of the global domain, and that of the domain that it
//! read in last. All that it has is in its table ([`crate::reclaim::local`]), which begins where
//! these do not serve.
//!
//! Both are thread-local without a destructor, so they can be used at any moment of a thread's
//! life. Either is [`NOT_READY`] where its fast path may not be used.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

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
    /// [`ENDED`] by then.
    ended: usize,
}

impl Last {
    const NONE: Self = Self { domain: ptr::null(), slot: NOT_READY, ended: 0 };
}

/// Ended domains whose entries a thread leaves in its table, at least.
const GARBAGE_MIN: usize = 8;

/// How many domains have ended that threads may have in their tables.
static ENDED: AtomicUsize = AtomicUsize::new(0);

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
/// [`GARBAGE_MIN`] domains have ended it is not, so that the thread comes to its table, which
/// forgets them.
#[inline(always)]
pub(crate) fn last_slot(domain: &GracePeriods) -> &Slot {
    let last = LAST.get();
    let is_last = ptr::eq(last.domain, domain) && !is_garbage(last.ended, 0);
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
        LAST.set(Last { domain, slot, ended: ended_so_far() });
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

/// A domain has ended that threads may have in their tables.
pub(crate) fn note_end_of_domain() {
    // Relaxed: only when a table is gone through depends on it.
    ENDED.fetch_add(1, Relaxed);
}

/// How many domains have ended.
#[inline(always)]
pub(crate) fn ended_so_far() -> usize {
    // Relaxed: see `note_end_of_domain`.
    ENDED.load(Relaxed)
}

/// Whether a table that was gone through when `since` domains had ended is to be gone through: at
/// least [`GARBAGE_MIN`] and `least` have ended since.
#[inline(always)]
pub(crate) fn is_garbage(since: usize, least: usize) -> bool {
    let ended = ended_so_far().wrapping_sub(since);
    ended >= GARBAGE_MIN && ended >= least
}
