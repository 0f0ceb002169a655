//! A thread's table: its slots and its queues in each domain.
//!
//! [`thread_slots`] has the slot that [`crate::read`] finds at once. The rest is in the table. The
//! end of the thread empties it; what a section adds that begins after that (inside the destructor
//! of another thread-local) goes when the section ends.
//!
//! An entry is found by its domain's address ([`ByAddress`]). A domain may end while threads have
//! entries for it. The thread that ends it removes its own ([`ended`]). Another thread sweeps its
//! table ([`Table::sweep`]) at a use that finds that enough domains have ended since the last
//! sweep. So after each use: dead entries < max(entries / 2, `GARBAGE_MIN`).
//!
//! Some entries are *watched*. They stand before the others, so a thread goes through them without
//! going through all its domains.
//!
//! **Invariant [TT-1]: the domain of each section that the thread is in is watched,** except
//! liburcu readers'. A section begins with a slot from [`Table::watched_entry`], or with the slot
//! of a domain that stays watched ([`Local::is_kept`]).
//!
//! **Invariant [TT-2]: each domain whose limit the thread exceeds is watched.** Only
//! [`crate::reclaim::at_limit`] borrows, and calls [`Table::watch_over_limit`].
//!
//! **Invariant [TT-3]: a thread without [`HAS_OTHER_SLOTS`] is in no section but those that began
//! with [`thread_slots::global_slot`],** and liburcu readers'. [`given`], through which each slot
//! is given out, sets it unless from then on the slot is found there, which it is until it is
//! unregistered, in no section.

use std::cell::{Cell, RefCell};
use std::mem::{self, ManuallyDrop};
use std::ptr;
use std::sync::Arc;

use crate::gp::grace_periods::GracePeriods;
use crate::gp::slot::{ReaderKind, Slot};
use crate::gp::thread as thread_slots;
use crate::os::thread;
use crate::os::user_code::Borrow;
use crate::reclaim::by_address::{ByAddress, HasAddress};
use crate::reclaim::cache;
use crate::reclaim::domain_state::{self, DomainState, Handle, Named, WeakHandle};
use crate::reclaim::thread_queue::{Contents, OwnQueue, Queue};

thread_local! {
    /// Without a destructor, so that it can be used until the very end.
    static TABLE: RefCell<ManuallyDrop<Table>> = const {
        RefCell::new(ManuallyDrop::new(Table {
            entries: ByAddress::new(),
            watched: 0,
            ended: 0,
            exiting: false,
        }))
    };
    /// The queue of objects that this thread last added to, and that of closures.
    static LAST: [Cell<Last>; 2] = const { [const { Cell::new(Last::NONE) }; 2] };
    /// Whether the thread was ever given a slot that [`thread_slots::global_slot`] does not find
    /// [TT-3].
    pub(super) static HAS_OTHER_SLOTS: Cell<bool> = const { Cell::new(false) };
}

/// A queue and its domain; or nulls.
#[derive(Clone, Copy)]
struct Last {
    domain: *const DomainState,
    queue: *const Queue,
}

impl Last {
    const NONE: Self = Self { domain: ptr::null(), queue: ptr::null() };
}

fn forget_last() {
    LAST.with(|last| last.iter().for_each(|last| last.set(Last::NONE)));
    thread_slots::forget_last();
}

/// What the thread has in one domain.
pub(super) struct Local {
    domain: WeakHandle,
    /// The slot of ordinary sections; null before the first, and after its last user has gone.
    slot: *const Slot,
    /// Whether `slot` is kept registered because [`crate::read`] was called.
    implicit: bool,
    /// The slots of QSBR handles.
    others: Vec<*const Slot>,
    /// The queues, by their `Contents`.
    queues: [Option<Arc<Queue>>; 2],
}

impl HasAddress for Local {
    type Of = DomainState;

    fn address(&self) -> *const DomainState {
        self.domain.address()
    }
}

pub(super) struct Table {
    entries: ByAddress<Local>,
    /// How many entries are watched: the first ones.
    watched: usize,
    /// How many domains had ended at the last sweep.
    ended: usize,
    /// The thread's sentinel has been dropped: every registration ends with its section.
    exiting: bool,
}

/// A domain has ended that may be in threads' tables. The calling thread, which does not borrow its
/// table, forgets it.
pub(crate) fn ended(domain: &DomainState) {
    thread_slots::note_end_of_domain();
    Table::with(|table| table.forget(domain));
}

impl Table {
    /// As [`with`](Self::with), for what may add to the table: has the end of the thread noticed.
    fn with_more<R>(f: impl FnOnce(&mut Self) -> R) -> R {
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
            let _is_borrowed = Borrow::begin();
            if thread_slots::is_garbage(table.ended, table.entries.len() / 2) {
                table.sweep();
            }
            let result = f(table);
            if table.exiting && table.entries.is_empty() {
                table.entries.shrink();
            }
            result
        })
    }

    /// A domain's entry, which it makes if there is none.
    fn entry(&mut self, domain: &DomainState, tag: &dyn Named) -> &mut Local {
        let place = self.find_or_insert(domain, tag);
        self.at(place, domain)
    }

    /// The entry at that place, which is that domain's.
    fn at(&mut self, place: usize, domain: *const DomainState) -> &mut Local {
        let local = self.entries.at_mut(place);
        assert!(ptr::eq(local.address(), domain), "another domain's entry");
        local
    }

    /// As [`entry`](Self::entry), for a slot with which a section may begin [TT-1].
    fn watched_entry(&mut self, domain: &DomainState, tag: &dyn Named) -> &mut Local {
        let place = self.find_or_insert(domain, tag);
        let place = self.watch(place);
        self.at(place, domain)
    }

    /// The place of a domain's entry, which it makes if there is none.
    fn find_or_insert(&mut self, domain: &DomainState, tag: &dyn Named) -> usize {
        if let Some(place) = self.entries.place(domain) {
            return place;
        }
        let handle = tag.handle();
        domain_state::remember(&handle);
        self.entries.insert(Local {
            domain: handle.downgrade(),
            slot: ptr::null(),
            implicit: false,
            others: Vec::new(),
            queues: [None, None],
        })
    }

    pub(super) fn find(&self, domain: &DomainState) -> Option<&Local> {
        self.entries.get(domain).filter(|local| ptr::eq(local.address(), domain))
    }

    /// The thread's slots in a domain.
    pub(super) fn slots_in(&self, domain: &DomainState) -> impl Iterator<Item = &Slot> {
        self.find(domain).into_iter().flat_map(Local::slots)
    }

    /// Watches an entry. Returns its new place.
    fn watch(&mut self, place: usize) -> usize {
        if place < self.watched {
            return place;
        }
        self.entries.swap(place, self.watched);
        self.watched += 1;
        self.watched - 1
    }

    /// Watches an entry no more; another one takes its place.
    fn unwatch(&mut self, place: usize) {
        self.watched -= 1;
        self.entries.swap(place, self.watched);
    }

    /// The thread is above the limit in a domain [TT-2].
    pub(super) fn watch_over_limit(&mut self, domain: &DomainState) {
        if let Some(place) = self.entries.place(domain) {
            self.watch(place);
        }
    }

    /// The domains in which the thread may be in a section, or above the limit.
    pub(super) fn watched(&self) -> impl Iterator<Item = &Local> {
        self.entries.iter().take(self.watched)
    }

    /// Calls `f`, which runs no user code, with the slots of each domain in which the thread may be
    /// in a section. None of them ends while the handles exist that are added to `handles`. A
    /// domain is not watched any more if the thread is in no section there, cannot begin one
    /// without [`watched_entry`](Self::watched_entry), and is not above the limit.
    pub(super) fn each_watched(&mut self, handles: &mut Vec<Handle>, f: &mut dyn FnMut(&Slot)) {
        let mut place = 0;
        while place < self.watched {
            let local = self.entries.at_mut(place);
            handles.extend(local.handle().filter(|handle| matches!(handle, Handle::Shared(_))));
            let reads = local.domain.is_alive() && (local.is_kept() || local.has_section());
            if reads {
                local.slots().for_each(&mut *f);
            }
            if reads || local.is_over_limit() {
                place += 1;
            } else {
                self.unwatch(place);
            }
        }
    }

    /// Calls `f` with a domain's entry, to unregister a slot. If the thread is exiting and has no
    /// slot left there, forgets the domain.
    fn release(&mut self, domain: *const DomainState, f: impl FnOnce(&mut Local)) {
        let Some(place) = self.entries.place(domain) else { return };
        let local = self.at(place, domain);
        f(local);
        if local.is_unused() && self.exiting {
            self.forget(domain);
        }
    }

    /// Forgets one domain.
    fn forget(&mut self, domain: *const DomainState) {
        let Some(place) = self.entries.place(domain) else { return };
        forget_last();
        if place < self.watched {
            self.unwatch(place);
        }
        self.entries.remove(domain);
    }

    /// Forgets the domains that have ended.
    #[cold]
    #[inline(never)]
    fn sweep(&mut self) {
        self.ended = thread_slots::ended_so_far();
        self.retain(&|_| true);
    }

    /// Forgets the domains for which `keep` is false, and those that have ended.
    fn retain(&mut self, keep: &dyn Fn(&Local) -> bool) {
        forget_last();
        let keep = |local: &Local| local.domain.is_alive() && keep(local);
        let (mut place, mut watched) = (0, 0);
        self.entries.retain(|local| {
            let stays = keep(local);
            watched += usize::from(stays && place < self.watched);
            place += 1;
            stays
        });
        self.watched = watched;
    }
}

impl Local {
    /// The slot for ordinary sections; registers if there is none.
    fn slot(&mut self, domain: &DomainState) -> &'static Slot {
        if self.slot.is_null() {
            self.slot = domain.grace_periods.register(thread::token(), ReaderKind::Ordinary);
        }
        self.ordinary().expect("registered above")
    }

    /// The same, if there is one. The domain must be alive: the callers shorten the lifetime to
    /// its.
    fn ordinary(&self) -> Option<&'static Slot> {
        // SAFETY: not null only while registered; the domain is alive by this function's contract.
        unsafe { self.slot.as_ref() }
    }

    /// Unregisters the slot if it has no user and is in no section. The domain must be alive.
    fn unregister_if_unused(&mut self) {
        if let Some(slot) = self.ordinary()
            && slot.references() == 0
            && slot.is_quiescent()
        {
            thread_slots::forget(self.slot);
            self.slot = ptr::null();
            // SAFETY: the domain is alive; the pointer is from a reference to the whole.
            unsafe { &*GracePeriods::of(slot.core_ptr()) }.unregister(slot);
        }
    }

    /// All slots of this thread in the domain. The domain must be alive.
    fn slots(&self) -> impl Iterator<Item = &Slot> {
        // SAFETY: in the list only while registered; the domain is alive by this function's
        // contract.
        let others = self.others.iter().map(|slot| unsafe { &**slot });
        self.ordinary().into_iter().chain(others)
    }

    /// The thread's queues there.
    pub(super) fn queues(&self) -> impl Iterator<Item = OwnQueue<'_>> {
        let queues = self.queues.iter().flatten();
        // SAFETY: held here, in the table of the thread that adds.
        queues.map(|queue| unsafe { OwnQueue::at(Arc::as_ptr(queue)) })
    }

    /// The domain, if it has not ended.
    pub(super) fn handle(&self) -> Option<Handle> {
        self.domain.upgrade()
    }

    /// Whether the local stock of one of them is above the limit.
    pub(super) fn is_over_limit(&self) -> bool {
        self.domain.is_alive() && self.queues().any(|q| q.local_stock().stock().is_over_limit())
    }

    /// Whether the thread, which is exiting, has no slot left here.
    fn is_unused(&self) -> bool {
        self.slot.is_null() && self.others.is_empty()
    }

    /// Whether the thread is in a section of the domain, which must be alive.
    fn has_section(&self) -> bool {
        self.slots().any(|slot| !slot.is_quiescent())
    }

    /// Whether sections can begin here without the table: with a handle, or with a slot that
    /// [`thread_slots`] remembers. The domain must be alive.
    fn is_kept(&self) -> bool {
        !self.others.is_empty()
            || self.ordinary().is_some_and(|slot| {
                slot.references() > u64::from(self.implicit) || thread_slots::remembers(slot)
            })
    }
}

// ---- slots ------------------------------------------------------------------------------------

/// The slot for implicit sections in a domain; registers on first use. Unless the thread is
/// exiting, has `remember` find it at once from then on.
#[cold]
pub(crate) fn implicit_slot<'c>(
    domain: &'c DomainState,
    tag: &dyn Named,
    remember: impl FnOnce(&'static Slot),
) -> &'c Slot {
    Table::with_more(|table| {
        let exiting = table.exiting;
        let local = table.watched_entry(domain, tag);
        let slot = local.slot(domain);
        if exiting {
            slot.mark_leaving();
        } else {
            if !mem::replace(&mut local.implicit, true) {
                slot.acquire(1);
            }
            remember(slot);
        }
        given(slot)
    })
}

/// The slot of the thread's ordinary sections in a domain, if it is registered there.
pub(crate) fn existing_slot(domain: &DomainState) -> Option<&Slot> {
    Table::with(|table| table.find(domain)?.ordinary())
}

/// The slot of an explicit handle: the thread's ordinary one, kept registered for the handle.
pub(crate) fn handle_slot<'c>(domain: &'c DomainState, tag: &dyn Named) -> &'c Slot {
    Table::with_more(|table| {
        let slot = table.watched_entry(domain, tag).slot(domain);
        slot.acquire(1);
        given(slot)
    })
}

/// A slot that is given out [TT-3].
fn given(slot: &Slot) -> &Slot {
    if !ptr::eq(thread_slots::global_slot(), slot) {
        HAS_OTHER_SLOTS.set(true); // [TT-3]
    }
    slot
}

/// Releases an explicit handle.
///
/// # Safety
/// [`handle_slot`] has given the slot to the calling thread for this handle, which is not used any
/// more.
pub(crate) unsafe fn release_handle(slot: &Slot) {
    slot.release();
    unregister_if_unused(slot);
}

/// Registers a slot for one QSBR handle.
pub(crate) fn qsbr_slot<'c>(domain: &'c DomainState, tag: &dyn Named) -> &'c Slot {
    Table::with_more(|table| {
        let local = table.watched_entry(domain, tag);
        let slot = domain.grace_periods.register(thread::token(), ReaderKind::Qsbr);
        local.others.push(slot);
        given(slot)
    })
}

/// Releases a QSBR handle, which is offline.
///
/// # Safety
/// [`qsbr_slot`] has given the slot to the calling thread for this handle, which is offline and not
/// used any more.
pub(crate) unsafe fn release_other(domain: &DomainState, slot: &Slot) {
    Table::with(|table| {
        table.release(domain, |local| {
            local.others.retain(|other| !ptr::eq(*other, slot));
            domain.grace_periods.unregister(slot);
        });
    });
}

/// Unregisters a slot of the thread's ordinary sections if it has no user and is in no section.
pub(crate) fn unregister_if_unused(slot: &Slot) {
    let domain = DomainState::of(slot.core_ptr());
    Table::with(|table| table.release(domain, Local::unregister_if_unused));
}

/// The thread ends: unregisters its slots, one that is in a section when that ends. Calls `orphan`
/// with its queues.
///
/// A handle may be its domain's last. When it is dropped, the domain ends and runs callbacks: by
/// then the table is not borrowed.
pub(crate) fn leave_thread(orphan: impl Fn(&Handle, OwnQueue<'_>)) {
    let orphans = Table::with(|table| {
        table.exiting = true;
        forget_last();
        let mut orphans = Vec::new();
        for local in table.entries.iter_mut() {
            let Some(handle) = local.domain.upgrade() else {
                continue;
            };
            if let Some(slot) = local.ordinary() {
                if mem::take(&mut local.implicit) {
                    slot.release();
                }
                slot.mark_leaving();
                // SAFETY: null, by the thread itself.
                unsafe { slot.set_objects(ptr::null()) };
            }
            local.unregister_if_unused();
            orphans.push((handle, mem::take(&mut local.queues)));
        }
        table.retain(&|local| !local.is_unused());
        orphans
    });
    cache::clear();
    for (handle, queues) in orphans {
        let queues = queues.iter().flatten();
        // SAFETY: held here, and this thread's, which adds no more.
        let own = queues.map(|queue| unsafe { OwnQueue::at(Arc::as_ptr(queue)) });
        own.for_each(|queue| orphan(&handle, queue));
    }
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

/// The thread's queue of retired objects, which its slot in the domain remembers: for guards, which
/// have the slot at hand. `None` if the thread is exiting.
///
/// # Safety
/// The slot is the calling thread's, and of the domain of `tag`.
#[inline(always)]
pub(crate) unsafe fn slots_queue<'c>(slot: &Slot, tag: &'c dyn Named) -> Option<OwnQueue<'c>> {
    let known = slot.objects();
    if known.is_null() {
        let queue = queue(tag.core(), tag, Contents::Objects)?;
        // SAFETY: the queue, until `leave_thread`, by this thread.
        unsafe { slot.set_objects(ptr::from_ref(&*queue).cast()) };
        return Some(queue);
    }
    // SAFETY: the table holds the queue until `leave_thread`, which clears this, and while the
    // domain lives; no other thread gets the slot with it.
    Some(unsafe { OwnQueue::at(known.cast()) })
}

/// The thread's queue, if it is the one of its contents that it last added to; else `None`.
#[inline(always)]
pub(crate) fn last_queue(domain: &DomainState, contents: Contents) -> Option<OwnQueue<'_>> {
    let last = LAST.with(|last| last[contents as usize].get());
    if !ptr::eq(last.domain, domain) {
        return None;
    }
    // SAFETY: the table holds the queue of a living domain until `leave_thread`. Whatever removes
    // an ended domain from the table clears this pair as well; `domain` lives.
    Some(unsafe { OwnQueue::at(last.queue) })
}

#[cold]
fn find_queue<'c>(
    domain: &'c DomainState,
    tag: &dyn Named,
    contents: Contents,
) -> Option<OwnQueue<'c>> {
    let queue = Table::with_more(|table| {
        if table.exiting {
            return None;
        }
        let queue = &mut table.entry(domain, tag).queues[contents as usize];
        let queue = Arc::as_ptr(queue.get_or_insert_with(|| domain.queues.add(domain, contents)));
        LAST.with(|last| last[contents as usize].set(Last { domain, queue }));
        Some(queue)
    });
    // SAFETY: the table holds the queue until `leave_thread`, and while `domain` lives.
    Some(unsafe { OwnQueue::at(queue?) })
}

/// The thread's queues in a domain, of those to which it ever added there.
pub(crate) fn own_queues(domain: &DomainState) -> Vec<Arc<Queue>> {
    let of = |local: &Local| local.queues.iter().flatten().cloned().collect();
    Table::with(|table| table.find(domain).map(of)).unwrap_or_default()
}

/// The thread's queue of retired objects in a domain, if it ever retired anything there. Without a
/// count: the calling thread's table holds it until the thread ends.
pub(crate) fn own_objects(domain: &DomainState) -> Option<OwnQueue<'_>> {
    let queue = Table::with(|table| {
        table.find(domain)?.queues[Contents::Objects as usize].as_ref().map(Arc::as_ptr)
    });
    // SAFETY: the table holds the queue until `leave_thread`, and while `domain` lives.
    Some(unsafe { OwnQueue::at(queue?) })
}

#[cfg(test)]
mod tests;
