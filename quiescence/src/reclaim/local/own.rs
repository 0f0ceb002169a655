//! What the calling thread has in one domain: its slots and its queues. Its [table](super::table)
//! finds it.
//!
//! **If the table loses an [`Own`], or takes one for another, no pointer dangles.** It only finds
//! them: the code that registers and unregisters slots, and gives queues away, is here.
//! - An [`Own`] stays on its thread. It remembers its domain by a weak handle, so that no other
//!   domain gets the address. Slots are found through it only by code that holds the living domain,
//!   which keeps their memory.
//! - What the thread finds without its table ([`LAST`], [`thread_slots`]) is forgotten where an
//!   [`Own`] is dropped, and where the thread leaves.
//! - A queue stays in its domain's list until it is an orphan. It becomes one once
//!   [`Own::leave`] has given it away, and by then the thread finds it nowhere.

use std::cell::Cell;
use std::mem;
use std::ptr;
use std::sync::Arc;

use super::table::{self, Table};
use crate::gp::grace_periods::GracePeriods;
use crate::gp::slot::{ReaderKind, Slot};
use crate::gp::thread as thread_slots;
use crate::gp::wake::LEAVING;
use crate::os::thread;
use crate::reclaim::cache;
use crate::reclaim::domain_state::{DomainState, Handle, Named, WeakHandle};
use crate::reclaim::thread_queue::{Contents, OwnQueue, Queue};

thread_local! {
    /// The queue of objects that this thread last added to, and that of closures.
    static LAST: [Cell<Last>; 2] = const { [const { Cell::new(NONE) }; 2] };
}

/// A domain and a queue of it; or nulls.
type Last = (*const DomainState, *const Queue);

const NONE: Last = (ptr::null(), ptr::null());

fn forget_last() {
    LAST.with(|last| last.iter().for_each(|last| last.set(NONE)));
    thread_slots::forget_last();
}

/// See the module.
pub(super) struct Own {
    domain: WeakHandle,
    /// The slots: that of ordinary sections, if it has a user, and those of QSBR handles.
    slots: Vec<*const Slot>,
    /// Whether the former is kept registered because [`crate::read`] was called.
    implicit: bool,
    /// The queues, by their `Contents`.
    queues: [Option<Arc<Queue>>; 2],
}

impl Drop for Own {
    fn drop(&mut self) {
        forget_last();
    }
}

impl Own {
    pub(super) fn new(domain: WeakHandle) -> Self {
        Self { domain, slots: Vec::new(), implicit: false, queues: [None, None] }
    }

    /// The domain, if it has not ended.
    pub(super) fn handle(&self) -> Option<Handle> {
        self.domain.upgrade()
    }

    pub(super) fn address(&self) -> *const DomainState {
        self.domain.address()
    }

    pub(super) fn is_alive(&self) -> bool {
        self.domain.is_alive()
    }

    fn assert_of(&self, domain: &DomainState) {
        assert!(ptr::eq(self.address(), domain), "another domain's entry");
    }

    // ---- slots --------------------------------------------------------------------------------

    /// The slot for ordinary sections, if there is one.
    pub(super) fn ordinary<'d>(&self, domain: &'d DomainState) -> Option<&'d Slot> {
        self.slots(domain).find(|slot| !slot.is_qsbr())
    }

    /// All slots of this thread in the domain.
    pub(super) fn slots<'d>(&self, domain: &'d DomainState) -> impl Iterator<Item = &'d Slot> {
        self.assert_of(domain);
        // SAFETY: in the registry of this domain, which lives.
        self.slots.iter().map(|slot| unsafe { &**slot })
    }

    /// Whether the thread, which is exiting, has no slot left here.
    pub(super) fn is_unused(&self) -> bool {
        self.slots.is_empty()
    }

    /// The slot for ordinary sections, or, for a QSBR handle, one of its own; registers it if it is
    /// not there.
    fn registered<'d>(&mut self, domain: &'d DomainState, kind: ReaderKind) -> &'d Slot {
        let there = self.ordinary(domain).filter(|_| kind == ReaderKind::Ordinary);
        there.unwrap_or_else(|| {
            let slot = domain.grace_periods.register(thread::token(), kind);
            self.slots.push(slot);
            slot
        })
    }

    /// That of implicit sections. Unless the thread `exits`, has `remember` find it at once from
    /// then on.
    fn implicit<'d>(
        &mut self,
        domain: &'d DomainState,
        exits: bool,
        remember: impl FnOnce(&'d Slot),
    ) -> &'d Slot {
        let slot = self.registered(domain, ReaderKind::Ordinary);
        if exits {
            slot.marks.set(LEAVING);
        } else {
            self.implicit = true;
            remember(slot);
        }
        slot
    }

    /// That of one more handle, which keeps it registered.
    fn for_handle<'d>(&mut self, domain: &'d DomainState, kind: ReaderKind) -> &'d Slot {
        let slot = self.registered(domain, kind);
        slot.acquire(1);
        slot
    }

    /// Unregisters `slot`, if it is one of these, has no user and is in no section.
    #[inline(never)]
    fn unregister_if_unused(&mut self, slot: &Slot) {
        // Which slot it is comes first: what another thread's counts is not for this one to read.
        let Some(at) = self.slots.iter().position(|own| ptr::eq(*own, slot)) else { return };
        let has_users = slot.references() != 0 || self.implicit && !slot.is_qsbr();
        if has_users || !slot.is_quiescent() {
            return;
        }
        self.slots.swap_remove(at);
        thread_slots::forget(slot);
        // SAFETY: it is in the registry of its domain, which lives while the slot is reached; the
        // pointer is from a reference to the whole.
        unsafe { &*GracePeriods::of(slot.core_ptr()) }.unregister(slot);
    }

    // ---- queues -------------------------------------------------------------------------------

    /// The thread's queues here.
    pub(super) fn queues(&self) -> impl Iterator<Item = OwnQueue<'_>> {
        let queues = self.queues.iter().flatten();
        // SAFETY: held here, by the thread that adds.
        queues.map(|queue| unsafe { OwnQueue::at(Arc::as_ptr(queue)) })
    }

    /// The queue of these contents, if there is one.
    pub(super) fn queue_of<'d>(
        &self,
        domain: &'d DomainState,
        contents: Contents,
    ) -> Option<OwnQueue<'d>> {
        self.assert_of(domain);
        let queue = self.queues[contents as usize].as_ref()?;
        // SAFETY: in the list of the domain, which lives, until the thread has left.
        Some(unsafe { OwnQueue::at(Arc::as_ptr(queue)) })
    }

    /// The same; makes it if there is none. [`last_queue`] finds it at once from then on.
    pub(super) fn queue<'d>(
        &mut self,
        domain: &'d DomainState,
        contents: Contents,
    ) -> Option<OwnQueue<'d>> {
        self.assert_of(domain);
        let queue = &mut self.queues[contents as usize];
        let queue = Arc::as_ptr(queue.get_or_insert_with(|| domain.queues.add(domain, contents)));
        LAST.with(|last| last[contents as usize].set((domain, queue)));
        self.queue_of(domain, contents)
    }

    /// The thread ends: unregisters the slot, or has it unregistered when its section ends.
    /// Returns what has the queues in its stead.
    fn leave(&mut self, domain: Handle) -> (Handle, Self) {
        forget_last();
        self.implicit = false;
        if let Some(slot) = self.ordinary(&domain) {
            slot.marks.set(LEAVING);
            self.unregister_if_unused(slot);
        }
        let mut left = Self::new(self.domain.clone());
        left.queues = mem::take(&mut self.queues);
        (domain, left)
    }
}

// What hands a slot out, and takes it back, is here, and not in `table.rs`: a section that begins
// with the slot of another domain, or with one that is not registered any more, is not waited for.

/// The slot for implicit sections in a domain; registers on first use. Unless the thread is
/// exiting, has `remember` find it at once from then on.
#[cold]
pub(crate) fn implicit_slot<'c>(
    domain: &'c DomainState,
    tag: &dyn Named,
    remember: impl FnOnce(&'c Slot),
) -> &'c Slot {
    table::watched_slot(domain, tag, |own, exits| own.implicit(domain, exits, remember))
}

/// The slot of the thread's ordinary sections in a domain, if it is registered there.
pub(crate) fn existing_slot(domain: &DomainState) -> Option<&Slot> {
    Table::with(|table| table.find(domain)?.ordinary(domain))
}

/// The slot of an explicit handle: the thread's ordinary one, or one of a QSBR reader's own. It is
/// kept registered for the handle.
pub(crate) fn handle_slot<'c>(
    domain: &'c DomainState,
    tag: &dyn Named,
    kind: ReaderKind,
) -> &'c Slot {
    table::watched_slot(domain, tag, |own, _| own.for_handle(domain, kind))
}

/// Releases an explicit handle; one of a QSBR reader is offline.
///
/// # Safety
/// [`handle_slot`] has given the slot to the calling thread for this handle, which is not used any
/// more.
pub(crate) unsafe fn release_handle(slot: &Slot) {
    slot.release();
    unregister_if_unused(slot);
}

/// Unregisters a slot of the thread if it has no user and is in no section.
pub(crate) fn unregister_if_unused(slot: &Slot) {
    let domain = DomainState::of(slot.core_ptr());
    Table::with(|table| table.release(domain, |own| own.unregister_if_unused(slot)));
}

/// The thread ends: unregisters its slots, one that is in a section when that ends. Calls `orphan`
/// with its queues.
///
/// A handle may be its domain's last. When it is dropped, the domain ends and runs callbacks: by
/// then the table is not borrowed.
///
/// # Safety
/// No function of the library that is in progress on this thread goes on afterwards: it might have
/// one of the queues.
pub(crate) unsafe fn leave_thread(orphan: impl Fn(&Handle, OwnQueue<'_>)) {
    let leave = |own: &mut Own| own.handle().map(|handle| own.leave(handle));
    let orphans = Table::with(|table| table.leave(leave));
    cache::clear();
    for (handle, own) in orphans {
        own.queues().for_each(|queue| orphan(&handle, queue));
    }
}

/// The thread's queue, if it is the one of its contents that it last added to; else `None`.
#[inline(always)]
pub(crate) fn last_queue(domain: &DomainState, contents: Contents) -> Option<OwnQueue<'_>> {
    let (of, queue) = LAST.with(|last| last[contents as usize].get());
    if !ptr::eq(of, domain) {
        return None;
    }
    // SAFETY: in the list of this domain, which lives, until the thread has left, when the pair is
    // forgotten: as it is before another domain gets the address.
    Some(unsafe { OwnQueue::at(queue) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Domain;
    use crate::common::threads::elsewhere;
    use crate::reclaim::local;

    /// Though a handle keeps the entry, with which what was last would be forgotten.
    #[test]
    fn a_queue_that_was_given_away_is_not_found_as_the_last() {
        elsewhere(|| {
            let domain = Domain::new();
            let core = Named::core(domain.tag());
            handle_slot(core, domain.tag(), ReaderKind::Ordinary);
            assert!(local::queue(core, domain.tag(), Contents::Objects).is_some());
            // SAFETY: this thread is in no function of the library.
            unsafe { local::leave_thread(crate::reclaim::defer::orphan) };
            assert!(core.queues.all().is_empty(), "it has been taken out, and freed");
            assert!(last_queue(core, Contents::Objects).is_none());
        });
    }
}
