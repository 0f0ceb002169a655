//! What a thread asks about itself: whether it is in a section, and where it exceeds a limit. The
//! slots and queues that it has are in its [`table`].
//!
//! An error here makes a thread wait for itself, or exceed a limit. It cannot free anything too
//! early: pointers are followed in [`own`] only, whose fields are private, as the slot's is, and
//! the callbacks that run on this thread have waited for its sections as for any others.

use std::cell::Cell;
use std::ptr;

use crate::gp::record;
use crate::gp::slot::Slot;
use crate::gp::thread as thread_slots;
use crate::reclaim::domain_state::{DomainState, Handle};

mod own;
mod table;

use own::Own;
pub(crate) use own::{
    existing_slot, handle_slot, implicit_slot, last_queue, leave_thread, release_handle,
    unregister_if_unused,
};
use table::{HAS_OTHER_SLOTS, Table};
pub(crate) use table::{ended, own_objects, queue};

thread_local! {
    /// False only if the thread is above the limit in no domain: its table lists none.
    static MAY_BE_OVER_LIMIT: Cell<bool> = const { Cell::new(false) };
}

/// The slot of the section of a domain that the calling thread is in, or of its QSBR reader that is
/// online there, if there is one.
pub(crate) fn section_in(domain: &DomainState) -> Option<&Slot> {
    let gp_words = &raw const domain.grace_periods.gp_words;
    let liburcu = || record::own().filter(|slot| ptr::eq(slot.core_ptr(), gp_words));
    let is_in = |slot: &&Slot| !slot.is_quiescent();
    Table::with(|table| table.slots_in(domain).find(is_in)).or_else(|| liburcu().find(is_in))
}

/// How many slots the calling thread has in a domain, its liburcu record not counted.
pub(crate) fn slots_in(domain: &DomainState) -> usize {
    Table::with(|table| table.slots_in(domain).count())
}

/// Marks the sections that the thread is in, of any domain: it does its deferred work when they
/// end; for QSBR, at the next quiescent state.
pub(crate) fn make_overdue() {
    each_section(|slot| slot.marks.mark_overdue());
}

/// Marks the thread's online QSBR readers of a domain: it does its deferred work there at their
/// next quiescent states.
pub(crate) fn make_due(domain: &DomainState) {
    Table::with(|table| {
        let online = table.slots_in(domain).filter(|slot| slot.is_qsbr() && !slot.is_quiescent());
        online.for_each(|slot| slot.marks.mark_overdue());
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
    Table::with(|table| {
        let queues = table.find(domain).into_iter().flat_map(Own::queues);
        // `count`, as each stock must be refreshed.
        queues.filter(|queue| queue.local_stock().refresh_over_limit(domain)).count() != 0
    })
}

/// Notes that the thread is above the limit in a domain, in which it has a queue.
pub(crate) fn note_over_limit(domain: &DomainState) {
    Table::with(|table| table.watch(domain));
    MAY_BE_OVER_LIMIT.set(true);
}

/// Notes for [`may_be_over_limit`] whether one of the thread's local stocks is above the limit of
/// its domain. Returns it.
pub(crate) fn refresh_may_be_over_limit() -> bool {
    let has = Table::with(|table| table.watched().any(Own::is_over_limit));
    MAY_BE_OVER_LIMIT.set(has);
    has
}

/// The domains whose limits the thread exceeds.
pub(crate) fn domains_over_limit() -> Vec<Handle> {
    Table::with(|table| {
        table.watched().filter(|own| own.is_over_limit()).filter_map(Own::handle).collect()
    })
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
        // Most sections are of the global domain.
        if thread_slots::in_global_section() {
            return Self::Ordinary;
        }
        let mut all = Self::None;
        if HAS_OTHER_SLOTS.get() || record::own().next().is_some() {
            let kind = |slot: &Slot| if slot.is_qsbr() { Self::Qsbr } else { Self::Ordinary };
            each_section(|slot| all = all.max(kind(slot)));
        }
        all
    }
}

/// Whether the thread may be above the limit in some domain, and is in two sections, of any domains
/// of registered threads.
pub(crate) fn in_nested_sections_over_limit() -> bool {
    let mut sections = 0;
    if may_be_over_limit() {
        each_section(|slot| sections += if slot.is_outermost() { 1 } else { 2 });
    }
    sections >= 2
}

/// Calls `f`, which runs no user code, with the slot of each section that this thread is in, of any
/// domain.
#[inline(never)] // what calls it looks first whether it must
fn each_section(mut f: impl FnMut(&Slot)) {
    let mut if_section = |slot: &Slot| {
        if !slot.is_quiescent() {
            f(slot);
        }
    };
    // A domain must not end while its slots are read. Nor may it end under the borrow, since it
    // would run callbacks: so a handle here, which may become its last, is dropped after that.
    let mut handles = Vec::new();
    Table::with(|table| table.each_watched(&mut handles, &mut if_section));
    record::own().for_each(if_section);
    let_go(handles);
}

/// Drops handles of domains where the thread may be in a section. No domain ends here that would
/// run something [D-1]; unless others let go of it just now.
pub(crate) fn let_go(handles: Vec<Handle>) {
    let is_idle = |domain: &DomainState| domain.queues.is_empty(false) && domain.kept.is_empty();
    let is_last = |handle: &Handle| handle.is_last() && !is_idle(handle);
    handles.into_iter().filter(is_last).for_each(crate::HOOKS.ends_elsewhere);
}

#[cfg(test)]
mod tests {
    use std::mem::ManuallyDrop;
    use std::ptr;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::sync::{Arc, mpsc};
    use std::thread;

    use crate::common::threads::{OnDrop, gate, until};
    use crate::domain::hazard::{HazardDomain, HazardPointer};
    use crate::os::sync::AtomicPtr;
    use crate::reclaim::domain_state::Named;
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
        let own = unsafe { OwnQueue::at(queue) };
        // SAFETY: a closure of that kind.
        unsafe { own.add(&Closure::<F>::KIND, ManuallyDrop::new(Closure(f)), 0) };
    }

    /// A past error: a thread that looked whether it was in a section had the last handle of a
    /// domain when others let go of it meanwhile, and ran what waited there: in its section.
    #[test]
    fn a_domain_does_not_end_where_a_thread_looks_at_its_sections() {
        let (domain, (sender, run_by)) = (crate::Domain::new(), mpsc::channel());
        std::mem::forget(domain.read()); // so nothing is run before the domain ends
        domain.call(move || sender.send(thread::current().id()).unwrap()).unwrap();
        let mut domain = Some(domain);
        super::each_section(|_| drop(domain.take()));
        assert!(domain.is_none(), "it is in a section");
        assert_ne!(run_by.recv(), Ok(thread::current().id()));
    }

    /// Of a hazard domain in which nothing is queued, what is kept was freed there.
    #[test]
    fn what_is_kept_is_not_freed_where_a_thread_looks_at_its_sections() {
        let (sender, dropped_by) = mpsc::channel();
        let says = move || sender.send(thread::current().id()).unwrap();
        let (hazards, mut holder) = (HazardDomain::new(), HazardPointer::new());
        let place = AtomicPtr::new(Box::into_raw(Box::new(OnDrop(says))));
        // SAFETY: from a box, and retired below.
        let protected = unsafe { holder.protect(&place) };
        // SAFETY: from a box, and no thread finds it any more.
        hazards.retire(unsafe { Box::from_raw(place.swap(ptr::null_mut(), SeqCst)) });
        hazards.barrier();
        super::note_over_limit(hazards.core()); // so its entry is looked at, and first
        let domain = crate::Domain::new();
        let guard = domain.read();
        let mut hazards = Some(hazards);
        drop(protected);
        super::each_section(|_| drop(hazards.take()));
        assert!(hazards.is_none(), "it is in a section");
        drop(guard);
        assert_ne!(dropped_by.recv(), Ok(thread::current().id()));
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
        add(&core.queues.add_of_nobody(core, Contents::Closures), read);
        let (mut stays, has_read, locked) = gate();
        let reader = thread::spawn(move || {
            drop(inside.read());
            drop(inside);
            stays();
        });
        has_read.recv().unwrap();
        let held = core.grace_periods.registry();
        drop(locked);
        // Until the ending thread has a handle, and waits for the registry.
        until(|| handles.strong_count() >= 2);
        drop(domain);
        drop(held);
        reader.join().unwrap();
        assert_eq!(READ.each_ref().map(|count| count.load(SeqCst)), [1, 0]);
    }
}
