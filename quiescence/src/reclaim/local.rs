//! What a thread has in each domain: its slots and its queues.
//!
//! [`thread_slots`] has the slot that [`crate::read`] finds at once. The rest is in the thread's
//! [`table`], which a destructor frees. A section that begins after that (inside the destructor of
//! another thread-local) makes a new table, which is freed when the section ends.

use std::cell::Cell;
use std::panic::Location;
use std::ptr;
use std::sync::Arc;
use std::thread::LocalKey;

use crate::gp::grace_periods::GracePeriods;
use crate::gp::record;
use crate::gp::slot::{ReaderKind, Slot};
use crate::gp::thread as thread_slots;
use crate::os::thread;
use crate::reclaim::cache;
use crate::reclaim::domain_state::{DomainState, Handle, Named};
use crate::reclaim::thread_queue::{Contents, Queue};

mod table;

pub(crate) use table::ended;
use table::{Local, Table};

thread_local! {
    /// The table, or null. Without a destructor, so that it can be used until the very end.
    static TABLE: Cell<*mut Table> = const { Cell::new(ptr::null_mut()) };
    /// The queue of objects that this thread last added to.
    static OBJECTS: Cell<Last> = const { Cell::new(Last::NONE) };
    /// The queue of closures that this thread last added to.
    static CLOSURES: Cell<Last> = const { Cell::new(Last::NONE) };
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
    OBJECTS.set(Last::NONE);
    CLOSURES.set(Last::NONE);
    thread_slots::forget_last();
}

/// Has [`thread_slots::last_slot`] find the slot, unless the thread is exiting.
pub(crate) fn make_last(domain: &DomainState, slot: &Slot) {
    if !Table::get().exiting.get() {
        thread_slots::remember_last(&domain.grace_periods, slot);
    }
}

/// The slot for implicit sections in a domain; registers on first use.
#[cold]
pub(crate) fn implicit_slot<'c>(domain: &'c DomainState, tag: &dyn Named) -> &'c Slot {
    let table = Table::get();
    table.with_section(domain, tag, |local| {
        let slot = local.slot(domain);
        if table.exiting.get() {
            slot.mark_leaving();
        } else if !local.implicit {
            local.implicit = true;
            slot.acquire(1);
        }
        slot
    })
}

/// The slot of the thread's ordinary sections in a domain, if it is registered there.
pub(crate) fn existing_slot(domain: &DomainState) -> Option<&Slot> {
    let locals = Table::existing()?.locals();
    let local = locals.get(domain)?;
    // SAFETY: not null only while registered with the domain, which is alive.
    unsafe { local.slot.as_ref() }
}

/// Has [`thread_slots::global_slot`] find the slot, unless the thread is exiting.
pub(crate) fn make_global(slot: &'static Slot) {
    if !Table::get().exiting.get() {
        thread_slots::remember_global(slot);
    }
}

/// The slot of an explicit handle: the thread's ordinary one, kept registered for the handle.
pub(crate) fn handle_slot<'c>(domain: &'c DomainState, tag: &dyn Named) -> &'c Slot {
    Table::get().with_section(domain, tag, |local| {
        let slot = local.slot(domain);
        slot.acquire(1);
        slot
    })
}

/// Releases an explicit handle.
pub(crate) fn release_handle(domain: &DomainState, tag: &dyn Named, slot: &Slot) {
    slot.release();
    let table = Table::get();
    table.with_local(domain, tag, |local| local.unregister_if_unused(&domain.grace_periods));
    table.forget_unused(domain);
    Table::free_if_empty();
}

/// Registers a slot for one QSBR handle.
pub(crate) fn qsbr_slot<'c>(domain: &'c DomainState, tag: &dyn Named) -> &'c Slot {
    Table::get().with_section(domain, tag, |local| {
        let slot = domain.grace_periods.register(thread::token(), ReaderKind::Qsbr);
        local.others.push(slot);
        slot
    })
}

/// Releases a QSBR handle, which is offline.
pub(crate) fn release_other(domain: &DomainState, tag: &dyn Named, slot: &Slot) {
    let table = Table::get();
    table.with_local(domain, tag, |local| local.others.retain(|other| !ptr::eq(*other, slot)));
    domain.grace_periods.unregister(slot);
    table.forget_unused(domain);
    Table::free_if_empty();
}

/// The outermost section of a slot marked as leaving has ended.
pub(crate) fn left_last_section(slot: &Slot) {
    let domain = DomainState::of(slot.core_ptr());
    // SAFETY: the domain lives, since its slot can be reached; the pointer is from a reference.
    let grace_periods = unsafe { &*GracePeriods::of(slot.core_ptr()) };
    let table = Table::get();
    if let Some(local) = table.locals().get_mut(domain) {
        local.unregister_if_unused(grace_periods);
    }
    table.forget_unused(domain);
    Table::free_if_empty();
}

/// What a thread that ends leaves behind in a domain: its queues of objects and of closures.
pub(crate) type Orphans = (Handle, Option<Arc<Queue>>, Option<Arc<Queue>>);

/// The thread ends: unregisters its slots, one that is in a section when that ends. Returns its
/// queues.
///
/// A returned handle may be its domain's last. When it is dropped, the domain ends and runs
/// callbacks: by then the table is not borrowed.
pub(crate) fn leave_thread() -> Vec<Orphans> {
    let Some(table) = Table::existing() else {
        cache::clear();
        return Vec::new();
    };
    table.exiting.set(true);
    forget_last();
    let mut orphans = Vec::new();
    let mut locals = table.locals();
    for local in locals.iter_mut() {
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
        local.unregister_if_unused(&handle.grace_periods);
        orphans.push((handle, local.objects.take(), local.closures.take()));
    }
    locals.keep_used();
    drop(locals);
    Table::free_if_empty();
    cache::clear();
    orphans
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
        if let Some(table) = Table::existing() {
            let locals = table.locals();
            locals.get(domain).into_iter().flat_map(Local::slots).for_each(|slot| own.count(slot));
        }
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
pub(crate) fn objects<'c>(domain: &'c DomainState, tag: &dyn Named) -> Option<&'c Queue> {
    last_or_find(&OBJECTS, domain, tag, Contents::Objects)
}

/// The thread's queue of closures in a domain; as [`objects`].
#[inline]
pub(crate) fn closures<'c>(domain: &'c DomainState, tag: &dyn Named) -> Option<&'c Queue> {
    last_or_find(&CLOSURES, domain, tag, Contents::Closures)
}

/// The same, if it is the queue of closures that the thread last added to; else `None`.
#[inline]
pub(crate) fn last_closures(domain: &DomainState) -> Option<&Queue> {
    let known = CLOSURES.get();
    // SAFETY: as in `last_or_find`.
    if ptr::eq(known.domain, domain) { unsafe { known.queue.as_ref() } } else { None }
}

#[inline]
fn last_or_find<'c>(
    last: &'static LocalKey<Cell<Last>>,
    domain: &'c DomainState,
    tag: &dyn Named,
    contents: Contents,
) -> Option<&'c Queue> {
    let known = last.get();
    if ptr::eq(known.domain, domain) {
        // SAFETY: the table holds the queue of a living domain until `leave_thread`. Whatever
        // removes an ended domain from the table clears this pair as well; `domain` lives.
        return unsafe { known.queue.as_ref() };
    }
    let queue = find_queue(domain, tag, contents);
    last.set(Last { domain, queue: queue.map_or(ptr::null(), ptr::from_ref) });
    queue
}

#[cold]
fn find_queue<'c>(
    domain: &'c DomainState,
    tag: &dyn Named,
    contents: Contents,
) -> Option<&'c Queue> {
    let table = Table::get();
    if table.exiting.get() {
        Table::free_if_empty();
        return None;
    }
    let queue = table.with_local(domain, tag, |local| {
        let queue = match contents {
            Contents::Objects => &mut local.objects,
            Contents::Closures => &mut local.closures,
        };
        Arc::as_ptr(
            queue.get_or_insert_with(|| domain.queues.add(domain, thread::token(), contents)),
        )
    });
    // SAFETY: the table holds the queue until `leave_thread`, and while `domain` lives.
    unsafe { queue.as_ref() }
}

/// The thread's queue of retired objects in a domain, if it ever retired anything there.
pub(crate) fn existing_objects(domain: &DomainState) -> Option<Arc<Queue>> {
    Table::existing()?.locals().get(domain)?.objects.clone()
}

/// The same, without a count: the calling thread's table holds it until the thread ends.
pub(crate) fn own_objects(domain: &DomainState) -> Option<&Queue> {
    let locals = Table::existing()?.locals();
    let queue = Arc::as_ptr(locals.get(domain)?.objects.as_ref()?);
    // SAFETY: the table holds the queue until `leave_thread`, and while `domain` lives.
    unsafe { queue.as_ref() }
}

/// The thread's queue of closures in a domain, if it ever queued one there.
pub(crate) fn existing_closures(domain: &DomainState) -> Option<Arc<Queue>> {
    Table::existing()?.locals().get(domain)?.closures.clone()
}

/// Marks the sections that the thread is in, of any domain: it does its deferred work when they
/// end; for QSBR, at the next quiescent state.
pub(crate) fn make_overdue() {
    each_section(Slot::mark_overdue);
}

/// Marks the thread's online QSBR readers of a domain: it does its deferred work there at their
/// next quiescent states.
pub(crate) fn make_due(domain: &DomainState) {
    if let Some(table) = Table::existing()
        && let Some(local) = table.locals().get(domain)
    {
        local
            .slots()
            .filter(|slot| slot.is_qsbr() && !slot.is_quiescent())
            .for_each(Slot::mark_overdue);
    }
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
    let Some(table) = Table::existing() else { return false };
    let locals = table.locals();
    let queues = locals.get(domain).into_iter().flat_map(Local::queues);
    // `count`, as each stock must be refreshed.
    queues.filter(|queue| queue.local_stock().refresh_over_limit(domain)).count() != 0
}

/// Notes that the thread is above the limit in a domain, in which it has a queue.
pub(crate) fn note_over_limit(domain: &DomainState) {
    if let Some(table) = Table::existing() {
        table.locals().note_over_limit(domain);
        MAY_BE_OVER_LIMIT.set(true);
    }
}

/// Notes for [`may_be_over_limit`] whether one of the thread's local stocks is above the limit of
/// its domain. Returns it.
pub(crate) fn refresh_may_be_over_limit() -> bool {
    let has =
        Table::existing().is_some_and(|table| table.locals().queues_over_limit().next().is_some());
    MAY_BE_OVER_LIMIT.set(has);
    has
}

/// The queues whose local stocks are above the limit, each with its domain.
pub(crate) fn queues_over_limit() -> Vec<(Handle, Arc<Queue>)> {
    let Some(table) = Table::existing() else { return Vec::new() };
    let mut locals = table.locals();
    let over_limit = locals.queues_over_limit().flat_map(|local| {
        let queues = local.objects.iter().chain(&local.closures);
        let over_limit = queues.filter(|queue| queue.local_stock().stock().is_over_limit());
        over_limit.filter_map(|queue| Some((local.domain.upgrade()?, Arc::clone(queue))))
    });
    over_limit.collect()
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
    if let Some(table) = Table::existing() {
        let each = |local: &Local| local.slots().for_each(&mut if_section);
        table.locals().each_watched(&mut handles, each);
    }
    record::own().for_each(if_section);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::sync::{Arc, mpsc};
    use std::thread;

    use crate::reclaim::free::{Callback, Closure};
    use crate::reclaim::thread_queue::Contents;

    /// How often the callback below read, and how often it was refused.
    static READ: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

    fn read() {
        let refused = std::panic::catch_unwind(|| drop(crate::read())).is_err();
        READ[usize::from(refused)].fetch_add(1, SeqCst);
    }

    fn add<F: FnOnce() + Send + 'static>(queue: &crate::reclaim::thread_queue::Queue, f: F) {
        // SAFETY: only this thread adds; a closure of that kind.
        unsafe { queue.add(&Closure::<F>::KIND, Closure(f), 0) };
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
