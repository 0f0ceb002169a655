//! What a thread has in each domain: its slots and its queues.
//!
//! [`thread_slots`] has the slot that [`crate::read`] finds at once. The rest is in the thread's
//! [`table`], which a destructor frees. A section that begins after that (inside the destructor of
//! another thread-local) makes a new table, which is freed when the section ends.

use std::cell::Cell;
use std::panic::Location;
use std::ptr;
use std::sync::Arc;

use crate::gp::record;
use crate::gp::slot::{ReaderKind, Slot};
use crate::gp::thread as thread_slots;
use crate::os::thread;
use crate::reclaim::cache;
use crate::reclaim::domain_state::{DomainState, Handle, Named};
use crate::reclaim::thread_queue::{Contents, OwnQueue, Queue};

mod table;

pub(crate) use table::ended;
use table::{Local, Table};

thread_local! {
    /// The queue of objects that this thread last added to, and that of closures.
    static LAST: [Cell<Last>; 2] = const { [const { Cell::new(Last::NONE) }; 2] };
    /// False only if the thread is above the limit in no domain: its table lists none.
    static MAY_BE_OVER_LIMIT: Cell<bool> = const { Cell::new(false) };
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

/// The slot for implicit sections in a domain; registers on first use. Unless the thread is
/// exiting, has `remember` find it at once from then on.
#[cold]
pub(crate) fn implicit_slot<'c>(
    domain: &'c DomainState,
    tag: &dyn Named,
    remember: impl FnOnce(&'static Slot),
) -> &'c Slot {
    Table::get(|table| {
        let exiting = table.exiting;
        let local = table.watched_entry(domain, tag);
        let slot = local.slot(domain);
        if exiting {
            slot.mark_leaving();
            return slot;
        }
        if !local.implicit {
            local.implicit = true;
            slot.acquire(1);
        }
        remember(slot);
        slot
    })
}

/// The slot of the thread's ordinary sections in a domain, if it is registered there.
pub(crate) fn existing_slot(domain: &DomainState) -> Option<&Slot> {
    let slot = Table::existing(|table| table.find(domain).map(|local| local.slot))??;
    // SAFETY: not null only while registered with the domain, which is alive.
    unsafe { slot.as_ref() }
}

/// The slot of an explicit handle: the thread's ordinary one, kept registered for the handle.
pub(crate) fn handle_slot<'c>(domain: &'c DomainState, tag: &dyn Named) -> &'c Slot {
    Table::get(|table| {
        let slot = table.watched_entry(domain, tag).slot(domain);
        slot.acquire(1);
        slot
    })
}

/// Releases an explicit handle.
pub(crate) fn release_handle(slot: &Slot) {
    slot.release();
    unregister_if_unused(slot);
}

/// Registers a slot for one QSBR handle.
pub(crate) fn qsbr_slot<'c>(domain: &'c DomainState, tag: &dyn Named) -> &'c Slot {
    Table::get(|table| {
        let local = table.watched_entry(domain, tag);
        let slot = domain.grace_periods.register(thread::token(), ReaderKind::Qsbr);
        local.others.push(slot);
        slot
    })
}

/// Releases a QSBR handle, which is offline.
pub(crate) fn release_other(domain: &DomainState, slot: &Slot) {
    Table::existing(|table| {
        table.release(domain, |local| {
            local.others.retain(|other| !ptr::eq(*other, slot));
            domain.grace_periods.unregister(slot);
        });
    });
}

/// Unregisters a slot of the thread's ordinary sections if it has no user and is in no section.
pub(crate) fn unregister_if_unused(slot: &Slot) {
    let domain = DomainState::of(slot.core_ptr());
    Table::existing(|table| table.release(domain, Local::unregister_if_unused));
}

/// The thread ends: unregisters its slots, one that is in a section when that ends. Calls `orphan`
/// with its queues.
///
/// A handle may be its domain's last. When it is dropped, the domain ends and runs callbacks: by
/// then the table is not borrowed.
pub(crate) fn leave_thread(orphan: impl Fn(&Handle, OwnQueue<'_>)) {
    let orphans = Table::existing(|table| {
        table.exiting = true;
        forget_last();
        let mut orphans = Vec::new();
        for local in table.iter_mut() {
            let Some(handle) = local.domain.upgrade() else {
                continue;
            };
            // SAFETY: not null only while registered with the domain, which `handle` keeps alive.
            if let Some(slot) = unsafe { local.slot.as_ref() } {
                if std::mem::take(&mut local.implicit) {
                    slot.release();
                }
                slot.mark_leaving();
            }
            local.unregister_if_unused();
            orphans.push((handle, std::mem::take(&mut local.queues)));
        }
        table.keep_used();
        orphans
    });
    cache::clear();
    for (handle, queues) in orphans.unwrap_or_default() {
        let queues = queues.iter().flatten();
        // SAFETY: held here, and this thread's, which adds no more.
        let own = queues.flat_map(|queue| unsafe { OwnQueue::at(Arc::as_ptr(queue)) });
        own.for_each(|queue| orphan(&handle, queue));
    }
}

/// What the calling thread itself has registered in a domain.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Own {
    /// How many slots.
    slots: usize,
    /// The first of them that is not quiescent.
    section: Option<Section>,
}

/// A section, or an online QSBR reader, of the calling thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    /// Whether it is a QSBR reader.
    pub(crate) qsbr: bool,
    /// Where it began.
    pub(crate) began: Option<&'static Location<'static>>,
}

impl Own {
    pub(crate) fn in_domain(domain: &DomainState) -> Self {
        let mut own = Self::default();
        Table::existing(|table| {
            let slots = table.find(domain).into_iter().flat_map(Local::slots);
            slots.for_each(|slot| own.count(slot));
        });
        if domain.grace_periods.gp_words.liburcu.is_some() {
            record::own()
                .filter(|slot| ptr::eq(slot.core_ptr(), &raw const domain.grace_periods.gp_words))
                .for_each(|s| own.count(s));
        }
        own
    }

    fn count(&mut self, slot: &Slot) {
        self.slots += 1;
        if self.section.is_none() && !slot.is_quiescent() {
            self.section = Some(Section { qsbr: slot.is_qsbr(), began: slot.began() });
        }
    }

    /// The section that the thread is in.
    pub(crate) fn section(&self) -> Option<Section> {
        self.section
    }

    /// How many slots the thread has.
    pub(crate) fn slots(&self) -> usize {
        self.slots
    }
}

/// The thread's queue of retired objects in a domain; `None` if the thread is exiting.
///
/// The queue of the last call is found at once.
///
/// `domain` is that of `tag`, given beside it so that the fast path makes no dynamic call.
#[inline]
pub(crate) fn objects<'c>(domain: &'c DomainState, tag: &dyn Named) -> Option<OwnQueue<'c>> {
    last_or_find(domain, tag, Contents::Objects)
}

/// The thread's queue of closures in a domain; as [`objects`].
#[inline]
pub(crate) fn closures<'c>(domain: &'c DomainState, tag: &dyn Named) -> Option<OwnQueue<'c>> {
    last_or_find(domain, tag, Contents::Closures)
}

/// The same, if it is the queue of closures that the thread last added to; else `None`.
#[inline]
pub(crate) fn last_closures(domain: &DomainState) -> Option<OwnQueue<'_>> {
    last(domain, Contents::Closures)?
}

/// The thread's queue, or the lack of one, if the thread last asked for this domain's.
#[inline]
fn last(domain: &DomainState, contents: Contents) -> Option<Option<OwnQueue<'_>>> {
    let known = LAST.with(|last| last[contents as usize].get());
    if !ptr::eq(known.domain, domain) {
        return None;
    }
    // SAFETY: the table holds the queue of a living domain until `leave_thread`. Whatever removes
    // an ended domain from the table clears this pair as well; `domain` lives.
    Some(unsafe { OwnQueue::at(known.queue) })
}

#[inline]
fn last_or_find<'c>(
    domain: &'c DomainState,
    tag: &dyn Named,
    contents: Contents,
) -> Option<OwnQueue<'c>> {
    last(domain, contents).unwrap_or_else(|| find_queue(domain, tag, contents))
}

#[cold]
fn find_queue<'c>(
    domain: &'c DomainState,
    tag: &dyn Named,
    contents: Contents,
) -> Option<OwnQueue<'c>> {
    let queue = Table::get(|table| {
        if table.exiting {
            return ptr::null();
        }
        let queue = &mut table.entry(domain, tag).queues[contents as usize];
        let add = || domain.queues.add(domain, thread::token(), contents);
        Arc::as_ptr(queue.get_or_insert_with(add))
    });
    LAST.with(|last| last[contents as usize].set(Last { domain, queue }));
    // SAFETY: null, or the table holds the queue until `leave_thread`, and while `domain` lives.
    unsafe { OwnQueue::at(queue) }
}

/// The thread's queues in a domain, of those to which it ever added there.
pub(crate) fn own_queues(domain: &DomainState) -> Vec<Arc<Queue>> {
    let queues = |table: &mut Table| Some(table.find(domain)?.queues.clone());
    Table::existing(queues).flatten().into_iter().flatten().flatten().collect()
}

/// The thread's queue of retired objects in a domain, if it ever retired anything there. Without a
/// count: the calling thread's table holds it until the thread ends.
pub(crate) fn own_objects(domain: &DomainState) -> Option<OwnQueue<'_>> {
    let queue = Table::existing(|table| {
        table.find(domain)?.queues[Contents::Objects as usize].as_ref().map(Arc::as_ptr)
    });
    // SAFETY: the table holds the queue until `leave_thread`, and while `domain` lives.
    unsafe { OwnQueue::at(queue??) }
}

/// Marks the sections that the thread is in, of any domain: it does its deferred work when they
/// end; for QSBR, at the next quiescent state.
pub(crate) fn make_overdue() {
    each_section(Slot::mark_overdue);
}

/// Marks the thread's online QSBR readers of a domain: it does its deferred work there at their
/// next quiescent states.
pub(crate) fn make_due(domain: &DomainState) {
    Table::existing(|table| {
        let slots = table.find(domain).into_iter().flat_map(Local::slots);
        let online = slots.filter(|slot| slot.is_qsbr() && !slot.is_quiescent());
        online.for_each(Slot::mark_overdue);
    });
}

/// Whether the thread may be above the limit in some domain, by an object or a closure. If it may,
/// [`refresh_may_be_over_limit`] finds out.
#[inline]
pub(crate) fn may_be_over_limit() -> bool {
    MAY_BE_OVER_LIMIT.get()
}

/// Checks whether a domain now has room for what the thread holds above its limit: then the thread
/// is within it again. Returns whether one of its two local stocks there is still above.
pub(crate) fn refresh_over_limit(domain: &DomainState) -> bool {
    let is_over_limit = Table::existing(|table| {
        let queues = table.find(domain).into_iter().flat_map(Local::queues);
        // `count`, as each stock must be refreshed.
        queues.filter(|queue| queue.local_stock().refresh_over_limit(domain)).count() != 0
    });
    is_over_limit == Some(true)
}

/// Notes that the thread is above the limit in a domain, in which it has a queue.
pub(crate) fn note_over_limit(domain: &DomainState) {
    Table::existing(|table| table.watch_over_limit(domain));
    MAY_BE_OVER_LIMIT.set(true);
}

/// Notes for [`may_be_over_limit`] whether one of the thread's local stocks is above the limit of
/// its domain. Returns it.
pub(crate) fn refresh_may_be_over_limit() -> bool {
    let has = Table::existing(|table| table.watched().any(Local::is_over_limit)) == Some(true);
    MAY_BE_OVER_LIMIT.set(has);
    has
}

/// The domains whose limits the thread exceeds.
pub(crate) fn domains_over_limit() -> Vec<Handle> {
    let domains = Table::existing(|table| {
        let over_limit = table.watched().filter(|local| local.is_over_limit());
        over_limit.filter_map(|local| local.domain.upgrade()).collect()
    });
    domains.unwrap_or_default()
}

/// What kind of sections a thread is in, of any domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sections {
    /// None.
    None,
    /// Only those of QSBR readers that are online.
    Qsbr,
    /// Ordinary ones.
    Ordinary,
}

impl Sections {
    pub(crate) fn of_this_thread() -> Self {
        let mut all = Self::None;
        each_section(|slot| {
            all = all.max(if slot.is_qsbr() { Self::Qsbr } else { Self::Ordinary });
        });
        all
    }
}

/// Calls `f`, which runs no user code, with the slot of each section that this thread is in, of any
/// domain.
fn each_section(mut f: impl FnMut(&Slot)) {
    let mut if_section = |slot: &Slot| {
        if !slot.is_quiescent() {
            f(slot);
        }
    };
    // A domain must not end while its slots are read. Nor may it end under the borrow, since it
    // would run callbacks: so a handle here, which may become its last, is dropped after that.
    let mut handles = Vec::new();
    let each = |local: &Local| local.slots().for_each(&mut if_section);
    Table::existing(|table| table.each_watched(&mut handles, each));
    record::own().for_each(if_section);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::sync::{Arc, mpsc};
    use std::thread;

    use crate::reclaim::free::{Callback, Closure};
    use crate::reclaim::thread_queue::{Contents, OwnQueue};

    /// How often the callback below read, and how often it was refused.
    static READ: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

    fn read() {
        let refused = std::panic::catch_unwind(|| drop(crate::read())).is_err();
        READ[usize::from(refused)].fetch_add(1, SeqCst);
    }

    fn add<F: FnOnce() + Send + 'static>(queue: &crate::reclaim::thread_queue::Queue, f: F) {
        // SAFETY: only this thread adds.
        let own = unsafe { OwnQueue::at(queue) }.expect("not null");
        // SAFETY: a closure of that kind.
        unsafe { own.add(&Closure::<F>::KIND, Closure(f), 0) };
    }

    /// An exiting thread may hold the last handle of a domain, and runs the callbacks that wait
    /// there: user code, during which the thread's table must not be borrowed.
    #[test]
    fn a_domain_may_end_with_a_thread_that_read_in_it() {
        let domain = crate::Domain::new();
        let (inside, handles) = (domain.clone(), Arc::downgrade(&domain.tag().0));
        // SAFETY: until the lock below is released a handle exists: `domain`, then the thread's.
        let core = unsafe { &*handles.as_ptr() };
        // Not by `call`, which tells the worker: then the worker might have the last handle.
        add(&core.queues.add(core, 1, Contents::Closures), read);
        let (has_read, is_told) = mpsc::channel();
        let (locked, may_end) = mpsc::channel::<()>();
        let reader = thread::spawn(move || {
            drop(inside.read());
            drop(inside);
            has_read.send(()).unwrap();
            may_end.recv().unwrap();
        });
        is_told.recv().unwrap();
        let held = core.grace_periods.registry();
        locked.send(()).unwrap();
        while handles.strong_count() < 2 {
            thread::yield_now(); // until the ending thread has a handle, and waits for the registry
        }
        drop(domain);
        drop(held);
        reader.join().unwrap();
        assert_eq!(READ.each_ref().map(|count| count.load(SeqCst)), [1, 0]);
    }
}
