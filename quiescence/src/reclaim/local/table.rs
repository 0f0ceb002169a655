//! A thread's table: its slots and its queues in each domain.
//!
//! [`thread_slots`] has the slot that [`crate::read`] finds at once. The rest is in the table. The
//! end of the thread empties it. What a later section adds (in the destructor of another
//! thread-local) is removed when that section ends.
//!
//! An entry is found by its domain's address ([`ByAddress`]). A domain may end while threads have
//! entries for it. The thread that ends it removes its own ([`ended`]). Another thread sweeps its
//! table ([`Table::sweep`]) at a use that finds that enough domains have ended since the last
//! sweep. So after each use: dead entries < max(entries / 2, `GARBAGE_MIN`).
//!
//! Some entries are *watched*. They stand in a table of their own, so a thread goes through them
//! without going through all its domains.
//!
//! **Invariant [TT-1]: the domain of each section that the thread is in is watched,** except
//! liburcu readers'. A section begins with a slot from [`watched_slot`], or with the slot of a
//! domain that stays watched ([`Own::may_read`]).
//!
//! **Invariant [TT-2]: each domain whose limit the thread exceeds is watched.** Only
//! [`crate::reclaim::at_limit`] borrows, and calls [`Table::watch`].
//!
//! **Invariant [TT-3]: a thread without [`HAS_OTHER_SLOTS`] is in no section but those that began
//! with [`thread_slots::global_slot`],** and liburcu readers'. [`watched_slot`], which gives out
//! all slots, sets it, unless [`thread_slots::global_slot`] finds the slot from then on, until the
//! slot is unregistered outside of sections.

#![deny(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::ptr;

use super::own::{Own, last_queue};
use crate::gp::ended;
use crate::gp::slot::Slot;
use crate::gp::thread as thread_slots;
use crate::os::lock_rank::{OfLock, Rank};
use crate::os::thread;
use crate::reclaim::by_address::ByAddress;
use crate::reclaim::domain_state::{self, DomainState, Handle, Named};
use crate::reclaim::thread_queue::{Contents, OwnQueue};

thread_local! {
    /// Without a destructor, so that it can be used until the very end.
    static TABLE: RefCell<ManuallyDrop<Table>> = const {
        RefCell::new(ManuallyDrop::new(Table {
            watched: ByAddress::new(),
            others: ByAddress::new(),
            ended: 0,
            exiting: false,
        }))
    };
    /// Whether the thread was ever given a slot that [`thread_slots::global_slot`] does not find
    /// [TT-3].
    pub(super) static HAS_OTHER_SLOTS: Cell<bool> = const { Cell::new(false) };
}

pub(super) struct Table {
    /// The entries that are watched; none of them is among the others.
    watched: ByAddress<Own>,
    others: ByAddress<Own>,
    /// How many domains had ended at the last sweep.
    ended: usize,
    /// The thread's sentinel has been dropped: every registration ends with its section.
    exiting: bool,
}

/// A domain has ended that may be in threads' tables. The calling thread, which does not borrow its
/// table, forgets it.
pub(crate) fn ended(domain: &DomainState) {
    ended::note_end_of_domain();
    Table::with(|table| table.forget(domain));
}

impl Table {
    /// As [`with`](Self::with), for what may add an entry for the domain of `tag`: has forks find
    /// the domain, and the end of the thread noticed.
    fn with_more<R>(tag: &dyn Named, f: impl FnOnce(&mut Self) -> R) -> R {
        domain_state::known(tag);
        let exiting = !thread::notice_end();
        Self::with(|table| {
            table.exiting = exiting;
            f(table)
        })
    }

    /// Calls `f`, which runs no user code, with the thread's table. Sweeps the table before if
    /// enough domains have ended; and returns its memory afterwards if the thread is exiting and
    /// has nothing there.
    pub(super) fn with<R>(f: impl FnOnce(&mut Self) -> R) -> R {
        TABLE.with_borrow_mut(|table| {
            let _is_borrowed = OfLock::new(Rank::ThreadTable).taken();
            if ended::is_garbage(table.ended, (table.watched.len() + table.others.len()) / 2) {
                table.sweep();
            }
            let result = f(table);
            if table.exiting {
                let empty = table.both().into_iter().filter(|entries| entries.is_empty());
                empty.for_each(ByAddress::shrink);
            }
            result
        })
    }

    fn both(&mut self) -> [&mut ByAddress<Own>; 2] {
        [&mut self.watched, &mut self.others]
    }

    pub(super) fn find(&self, domain: &DomainState) -> Option<&Own> {
        self.watched.get(domain).or_else(|| self.others.get(domain))
    }

    fn find_mut(&mut self, domain: *const DomainState) -> Option<&mut Own> {
        self.watched.get_mut(domain).or_else(|| self.others.get_mut(domain))
    }

    /// The thread's slots in a domain.
    pub(super) fn slots_in<'d>(&self, domain: &'d DomainState) -> impl Iterator<Item = &'d Slot> {
        self.find(domain).into_iter().flat_map(|own| own.slots(domain))
    }

    /// Watches a domain's entry, if there is one.
    pub(super) fn watch(&mut self, domain: &DomainState) {
        if let Some(own) = self.others.remove(domain) {
            self.watched.insert(domain, own);
        }
    }

    /// The domains in which the thread may be in a section, or above the limit.
    pub(super) fn watched(&self) -> impl Iterator<Item = &Own> {
        self.watched.iter()
    }

    /// Calls `f`, which runs no user code, with the slots of each domain in which the thread may be
    /// in a section. None of them ends while the handles exist that are added to `handles`. A
    /// domain is not watched any more if the thread is in no section there, cannot begin one
    /// without [`watched_slot`], and is not above the limit.
    pub(super) fn each_watched(&mut self, handles: &mut Vec<Handle>, f: &mut dyn FnMut(&Slot)) {
        let mut left = Vec::new();
        for own in self.watched.iter() {
            let handle = own.handle();
            let domain = handle.as_ref().filter(|domain| own.may_read(domain));
            if let Some(domain) = domain {
                own.slots(domain).for_each(&mut *f);
            }
            if domain.is_none() && !own.is_over_limit() {
                left.push(own.address());
            }
            handles.extend(handle.filter(|handle| matches!(handle, Handle::Shared(_))));
        }
        for domain in left {
            if let Some(own) = self.watched.remove(domain) {
                self.others.insert(domain, own);
            }
        }
    }

    /// Calls `f` with a domain's entry, to unregister a slot. If the thread is exiting and has no
    /// slot left there, forgets the domain.
    pub(super) fn release(&mut self, domain: *const DomainState, f: impl FnOnce(&mut Own)) {
        let Some(own) = self.find_mut(domain) else { return };
        f(own);
        let is_unused = own.is_unused();
        if is_unused && self.exiting {
            self.forget(domain);
        }
    }

    /// The thread ends: calls `f` with each entry, then forgets those without a slot. Returns what
    /// `f` has returned.
    pub(super) fn leave<R>(&mut self, f: impl FnMut(&mut Own) -> Option<R>) -> Vec<R> {
        self.exiting = true;
        let left = self.both().into_iter().flat_map(ByAddress::iter_mut).filter_map(f).collect();
        self.sweep();
        left
    }

    /// Forgets one domain.
    fn forget(&mut self, domain: *const DomainState) {
        for entries in self.both() {
            entries.remove(domain);
        }
    }

    /// Forgets the domains that have ended and, if the thread is exiting, those where it has no
    /// slot.
    #[cold]
    #[inline(never)]
    fn sweep(&mut self) {
        self.ended = ended::so_far();
        let exiting = self.exiting;
        for entries in self.both() {
            entries.retain(|own| own.is_alive() && !(exiting && own.is_unused()));
        }
    }
}

impl Own {
    /// Whether the local stock of one of the queues is above the limit.
    pub(super) fn is_over_limit(&self) -> bool {
        self.is_alive() && self.queues().any(|queue| queue.local_stock().stock().is_over_limit())
    }

    /// Whether the thread is in a section of the domain, or can begin one without the table: with a
    /// handle, or with a slot that [`thread_slots`] remembers.
    fn may_read(&self, domain: &DomainState) -> bool {
        self.slots(domain).any(|slot| {
            slot.references() != 0 || thread_slots::remembers(slot) || !slot.is_quiescent()
        })
    }
}

// ---- slots ------------------------------------------------------------------------------------

/// The slot that `f` returns, with which a section may begin [TT-1]. `f` is called with the entry
/// of the domain, which is made if there is none, and with whether the thread is exiting.
pub(super) fn watched_slot<'c>(
    domain: &'c DomainState,
    tag: &dyn Named,
    f: impl FnOnce(&mut Own, bool) -> &'c Slot,
) -> &'c Slot {
    Table::with_more(tag, |table| {
        table.watch(domain);
        let own = match table.watched.get_mut(domain) {
            Some(own) => own,
            None => table.watched.insert(domain, Own::new(tag.handle().downgrade())),
        };
        let slot = f(own, table.exiting);
        if !ptr::eq(thread_slots::global_slot(), slot) {
            HAS_OTHER_SLOTS.set(true); // [TT-3]
        }
        slot
    })
}

// ---- queues -----------------------------------------------------------------------------------

/// The thread's queue of retired objects or of closures in a domain; `None` if the thread is
/// exiting.
///
/// The queue of the last call is found at once.
///
/// `domain` is that of `tag`, given beside it so that the fast path makes no dynamic call.
#[inline(always)]
pub(crate) fn queue<'c>(
    domain: &'c DomainState,
    tag: &dyn Named,
    contents: Contents,
) -> Option<OwnQueue<'c>> {
    match last_queue(domain, contents) {
        None => find_queue(domain, tag, contents),
        last => last,
    }
}

#[cold]
fn find_queue<'c>(
    domain: &'c DomainState,
    tag: &dyn Named,
    contents: Contents,
) -> Option<OwnQueue<'c>> {
    Table::with_more(tag, |table| {
        if table.exiting {
            return None;
        }
        let own = match table.find_mut(domain) {
            Some(own) => own,
            None => table.others.insert(domain, Own::new(tag.handle().downgrade())),
        };
        own.queue(domain, contents)
    })
}

/// The thread's queue of retired objects in a domain, if it ever retired anything there.
pub(crate) fn own_objects(domain: &DomainState) -> Option<OwnQueue<'_>> {
    Table::with(|table| table.find(domain)?.queue_of(domain, Contents::Objects))
}

#[cfg(test)]
mod tests;
