//! A thread's table: what it has in each domain.
//!
//! An entry is found by its domain's address ([`ByAddress`]). A domain may end while threads have
//! entries for it. The thread that ends it removes its own ([`ended`]). Another thread sweeps its
//! table ([`Locals::sweep`]) at a use that finds that enough domains have ended since the last
//! sweep. So after each use: dead entries < max(entries / 2, `GARBAGE_MIN`).
//!
//! **Invariant [TT-1]: the domain of each section that the thread is in is in `watched`,** except
//! liburcu readers'. A section begins with a slot from [`Table::with_section`], which adds the
//! domain, or with the slot of a domain that stays in the list ([`Local::is_kept`]). So a thread
//! finds its sections without going through all its domains.
//!
//! **Invariant [TT-2]: each domain whose limit the thread exceeds is in `over_limit`.** Only
//! [`crate::reclaim::at_limit`] borrows, and calls [`Locals::note_over_limit`].

use std::cell::{Cell, RefCell, RefMut};
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::Arc;

use super::{TABLE, forget_last};
use crate::gp::grace_periods::GracePeriods;
use crate::gp::slot::{ReaderKind, Slot};
use crate::gp::thread as thread_slots;
use crate::os::thread;
use crate::os::user_code::Borrow;
use crate::reclaim::by_address::{ByAddress, HasAddress};
use crate::reclaim::domain_state::{DomainState, Named, WeakHandle};
use crate::reclaim::domains;
use crate::reclaim::thread_end;
use crate::reclaim::thread_queue::Queue;

/// The place of a domain that is not in the list.
const NOWHERE: u32 = u32::MAX;

/// What the thread has in one domain.
pub(super) struct Local {
    pub(super) domain: WeakHandle,
    /// The slot of ordinary sections; null before the first, and after its last user has gone.
    pub(super) slot: *const Slot,
    /// Whether `slot` is kept registered because [`crate::read`] was called.
    pub(super) implicit: bool,
    /// The domain's place in `watched`, or [`NOWHERE`].
    watched: u32,
    /// Its place in `over_limit`, or [`NOWHERE`].
    in_over_limit: u32,
    /// The slots of QSBR handles.
    pub(super) others: Vec<*const Slot>,
    /// Retired objects.
    pub(super) objects: Option<Arc<Queue>>,
    /// Closures given to `call`.
    pub(super) closures: Option<Arc<Queue>>,
}

impl HasAddress for Local {
    type Of = DomainState;

    fn address(&self) -> *const DomainState {
        self.domain.as_ptr()
    }
}

/// A list of some of a table's domains, each once. An entry stores its place in it.
struct Listed {
    domains: Vec<*const DomainState>,
    place: fn(&mut Local) -> &mut u32,
}

impl Listed {
    fn add(&mut self, local: &mut Local) {
        if *(self.place)(local) == NOWHERE {
            *(self.place)(local) = self.domains.len() as u32;
            self.domains.push(local.address());
        }
    }

    /// Removes the domain of an entry that has left the table.
    fn remove(&mut self, all: &mut ByAddress<Local>, local: &mut Local) {
        let place = *(self.place)(local);
        if place != NOWHERE {
            self.domains.swap_remove(place as usize);
            self.renumber(all, place as usize..self.domains.len().min(place as usize + 1));
        }
    }

    /// Removes the domains for which `keep` returns false, and those that have left the table.
    fn retain(&mut self, all: &mut ByAddress<Local>, mut keep: impl FnMut(&Local) -> bool) {
        let before = self.domains.len();
        self.domains.retain(|domain| {
            let Some(local) = all.get_mut(*domain) else { return false };
            let keep = keep(local);
            if !keep {
                *(self.place)(local) = NOWHERE;
            }
            keep
        });
        if self.domains.len() != before {
            self.domains.shrink_to(2 * self.domains.len());
            self.renumber(all, 0..self.domains.len());
        }
    }

    /// Stores the places of the domains at `places`, which may have moved.
    fn renumber(&self, all: &mut ByAddress<Local>, places: std::ops::Range<usize>) {
        for place in places {
            if let Some(local) = all.get_mut(self.domains[place]) {
                *(self.place)(local) = place as u32;
            }
        }
    }

    fn iter<'l>(&self, all: &'l ByAddress<Local>) -> impl Iterator<Item = &'l Local> {
        self.domains.iter().filter_map(|domain| all.get(*domain))
    }
}

#[derive(Default)]
pub(super) struct Table {
    locals: RefCell<Locals>,
    /// The thread's sentinel has been dropped: every registration ends with its section.
    pub(super) exiting: Cell<bool>,
}

/// The contents of a table.
pub(super) struct Locals {
    all: ByAddress<Local>,
    /// Domains in which the thread may be in a section [TT-1].
    watched: Listed,
    /// Domains whose limit it may exceed [TT-2].
    over_limit: Listed,
    /// How many domains had ended at the last sweep.
    ended: usize,
}

/// A borrow of the contents, under which no user code runs.
pub(super) struct Borrowed<'t> {
    locals: RefMut<'t, Locals>,
    _is_one: Borrow,
}

impl Deref for Borrowed<'_> {
    type Target = Locals;

    fn deref(&self) -> &Locals {
        &self.locals
    }
}

impl DerefMut for Borrowed<'_> {
    fn deref_mut(&mut self) -> &mut Locals {
        &mut self.locals
    }
}

/// A domain has ended that may be in threads' tables. The calling thread, which does not borrow its
/// table, forgets it.
pub(crate) fn ended(domain: &DomainState) {
    thread_slots::note_end_of_domain();
    if let Some(table) = Table::existing() {
        table.borrow().forget(domain);
        Table::free_if_empty();
    }
}

impl Table {
    /// The thread's table; makes it if there is none.
    pub(super) fn get() -> &'static Self {
        let table = TABLE.get();
        if !table.is_null() {
            // SAFETY: made below by this thread, and freed by `free_if_empty` only, which is not
            // called while a reference to the table is in use.
            return unsafe { &*table };
        }
        let exiting = !thread_end::notice();
        let table =
            Box::into_raw(Box::new(Self { exiting: Cell::new(exiting), ..Self::default() }));
        TABLE.set(table);
        // SAFETY: as above.
        unsafe { &*table }
    }

    /// The thread's table, if it has one.
    pub(super) fn existing() -> Option<&'static Self> {
        let table = TABLE.get();
        // SAFETY: see `get`.
        unsafe { table.as_ref() }
    }

    fn borrow(&self) -> Borrowed<'_> {
        Borrowed { locals: self.locals.borrow_mut(), _is_one: Borrow::begin() }
    }

    /// The contents. Sweeps them first if enough domains have ended.
    pub(super) fn locals(&self) -> Borrowed<'_> {
        let mut locals = self.borrow();
        if thread_slots::is_garbage(locals.ended, locals.all.len() / 2) {
            locals.sweep();
        }
        locals
    }

    /// Calls `f` with a domain's entry, which it makes if there is none. `f` runs no user code.
    pub(super) fn with_local<R>(
        &self,
        domain: &DomainState,
        tag: &dyn Named,
        f: impl FnOnce(&mut Local) -> R,
    ) -> R {
        let mut locals = self.locals();
        let place = locals.find_or_insert(domain, tag);
        f(locals.all.at_mut(place))
    }

    /// As [`with_local`](Self::with_local), if `f` returns a slot with which a section may begin:
    /// adds the domain to `watched` [TT-1].
    pub(super) fn with_section<R>(
        &self,
        domain: &DomainState,
        tag: &dyn Named,
        f: impl FnOnce(&mut Local) -> R,
    ) -> R {
        let mut locals = self.locals();
        let place = locals.find_or_insert(domain, tag);
        let Locals { all, watched, .. } = &mut *locals;
        let local = all.at_mut(place);
        if local.watched == NOWHERE {
            watched.add(local);
        }
        f(local)
    }

    /// If the thread is exiting: forgets a domain if the thread has no slot left there.
    pub(super) fn forget_unused(&self, domain: *const DomainState) {
        if self.exiting.get() {
            let mut locals = self.locals();
            if locals.all.get(domain).is_some_and(Local::is_unused) {
                locals.forget(domain);
            }
        }
    }

    /// If the thread is exiting: frees the table if it is empty. The caller uses no reference to
    /// the table afterwards.
    pub(super) fn free_if_empty() {
        let Some(table) = Self::existing().filter(|table| table.exiting.get()) else { return };
        if table.locals.borrow().all.is_empty() {
            let table = TABLE.replace(ptr::null_mut());
            // SAFETY: made by `get` from a box, and not reachable any more.
            drop(unsafe { Box::from_raw(table) });
        }
    }
}

impl Default for Locals {
    fn default() -> Self {
        Self {
            all: ByAddress::new(),
            watched: Listed { domains: Vec::new(), place: |local| &mut local.watched },
            over_limit: Listed { domains: Vec::new(), place: |local| &mut local.in_over_limit },
            ended: thread_slots::ended_so_far(),
        }
    }
}

impl Locals {
    /// The place of a domain's entry, which it makes if there is none.
    fn find_or_insert(&mut self, domain: &DomainState, tag: &dyn Named) -> usize {
        if let Some(place) = self.all.place(domain) {
            return place;
        }
        let handle = tag.handle();
        domains::remember(&handle);
        self.all.insert(Local {
            domain: handle.downgrade(),
            slot: ptr::null(),
            implicit: false,
            watched: NOWHERE,
            in_over_limit: NOWHERE,
            others: Vec::new(),
            objects: None,
            closures: None,
        })
    }

    pub(super) fn get(&self, domain: &DomainState) -> Option<&Local> {
        self.all.get(domain)
    }

    pub(super) fn get_mut(&mut self, domain: *const DomainState) -> Option<&mut Local> {
        self.all.get_mut(domain)
    }

    /// All entries: for an exiting thread.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Local> {
        self.all.iter_mut()
    }

    /// Forgets the domains in which the exiting thread has no slot left, and those that have ended.
    pub(super) fn keep_used(&mut self) {
        self.retain(|local| !local.is_unused());
    }

    /// Forgets the domains that have ended.
    fn sweep(&mut self) {
        self.ended = thread_slots::ended_so_far();
        self.retain(|_| true);
    }

    fn retain(&mut self, keep: impl Fn(&Local) -> bool) {
        forget_last();
        self.all.retain(|local| local.domain.is_alive() && keep(local));
        let Self { all, watched, over_limit, .. } = self;
        watched.retain(all, |_| true);
        over_limit.retain(all, |_| true);
    }

    /// Forgets one domain.
    fn forget(&mut self, domain: *const DomainState) {
        if let Some(mut local) = self.all.remove(domain) {
            forget_last();
            self.watched.remove(&mut self.all, &mut local);
            self.over_limit.remove(&mut self.all, &mut local);
        }
    }

    /// Calls `f`, which runs no user code, with the entry of each domain in which the thread may be
    /// in a section. None of them ends while the handles exist that are added to `handles`. Removes
    /// from `watched` each domain in which the thread is in no section, and cannot begin one
    /// without [`Table::with_section`].
    pub(super) fn each_watched(
        &mut self,
        handles: &mut Vec<Arc<DomainState>>,
        mut f: impl FnMut(&Local),
    ) {
        self.watched.retain(&mut self.all, |local| {
            handles.extend(local.domain.keep());
            let stays = local.domain.is_alive() && (local.is_kept() || local.has_section());
            if stays {
                f(local);
            }
            stays
        });
    }

    /// Notes that the thread is above the limit in a domain [TT-2].
    pub(super) fn note_over_limit(&mut self, domain: &DomainState) {
        if let Some(local) = self.all.get_mut(domain) {
            self.over_limit.add(local);
        }
    }

    /// The entries with a queue whose local stock is above the limit.
    pub(super) fn queues_over_limit(&mut self) -> impl Iterator<Item = &Local> {
        let Self { all, over_limit, .. } = self;
        over_limit.retain(all, |local| {
            local.domain.is_alive()
                && local.queues().any(|queue| queue.local_stock().stock().is_over_limit())
        });
        over_limit.iter(all)
    }
}

impl Local {
    /// The slot for ordinary sections; registers if there is none.
    pub(super) fn slot(&mut self, domain: &DomainState) -> &'static Slot {
        if self.slot.is_null() {
            self.slot = domain.grace_periods.register(thread::token(), ReaderKind::Ordinary);
        }
        // SAFETY: the domain is alive, and so are its slots; the callers shorten the
        // lifetime to that of `domain`.
        unsafe { &*self.slot }
    }

    /// Unregisters the slot if it has no user and is in no section.
    pub(super) fn unregister_if_unused(&mut self, grace_periods: &GracePeriods) {
        // SAFETY: not null only while registered with the domain, which is alive.
        if let Some(slot) = unsafe { self.slot.as_ref() }
            && slot.references() == 0
            && slot.is_quiescent()
        {
            thread_slots::forget(self.slot);
            self.slot = ptr::null();
            grace_periods.unregister(slot);
        }
    }

    /// All slots of this thread in the domain. The domain must be alive.
    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot> {
        // SAFETY: not null only while registered; the domain is alive by this function's contract.
        let ordinary = unsafe { self.slot.as_ref() };
        // SAFETY: in the list only while registered; as above.
        ordinary.into_iter().chain(self.others.iter().map(|slot| unsafe { &**slot }))
    }

    /// The thread's queues there.
    pub(super) fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.objects.iter().chain(&self.closures).map(|queue| &**queue)
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
        // SAFETY: not null only while registered; the domain is alive by this function's contract.
        let references = unsafe { self.slot.as_ref() }.map_or(0, Slot::references);
        !self.others.is_empty()
            || references > u64::from(self.implicit)
            || !self.slot.is_null() && thread_slots::remembers(self.slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Domain;
    use crate::domain::tag::DomainTag;
    use crate::os::fence::{self, Fences};
    use crate::reclaim::local;

    /// How many entries the calling thread has, and how many it checks to find its sections.
    fn entries() -> (usize, usize) {
        let table = Table::existing().expect("the thread has read");
        let locals = table.locals.borrow();
        (locals.all.len(), locals.watched.domains.len())
    }

    fn steps_to(domain: &Domain) -> usize {
        let table = Table::existing().expect("the thread has read");
        table.locals.borrow().all.steps_to(DomainTag::core(domain.tag()))
    }

    /// Runs `f` in a thread of its own, so with a table of its own.
    fn apart(f: impl FnOnce() + Send) {
        std::thread::scope(|scope| scope.spawn(f).join().unwrap());
    }

    /// The table was once a list, searched from its beginning: a read took 95 us in the last of
    /// 20,000 domains.
    #[test]
    #[cfg_attr(miri, ignore = "thousands of domains")]
    fn the_last_of_many_domains_is_found_in_a_few_steps() {
        apart(|| {
            let domains: Vec<_> = (0..5_000).map(|_| Domain::new()).collect();
            domains.iter().for_each(|domain| drop(domain.read()));
            assert_eq!(entries().0, 5_000);
            let steps = domains.iter().map(steps_to);
            assert!(steps.clone().sum::<usize>() <= 3 * domains.len());
            assert!(steps.max() <= Some(64));
        });
    }

    /// A thread once went through all its domains at every ninth retirement, to see whether it was
    /// in a section.
    ///
    /// If other tests end enough domains meanwhile that the table is swept, the thread forgets the
    /// domain that it last read in; then the steps are repeated.
    #[test]
    #[cfg_attr(miri, ignore = "thousands of domains")]
    fn sections_are_found_without_going_through_all_domains() {
        use local::Sections::{None, Ordinary};
        let went_through_table = || Table::get().locals.borrow().ended;
        let in_section_and_entries = || (local::Sections::of_this_thread(), entries().1);
        let steps = || {
            let domains: Vec<_> = (0..2_000).map(|_| Domain::new()).collect();
            domains.iter().for_each(|domain| drop(domain.read()));
            let began = went_through_table();
            let (reader, guard) = (domains[7].reader(), domains[1_234].read());
            assert_eq!(entries().0, 2_000, "all of them may be");
            let in_first = in_section_and_entries();
            drop(guard);
            let after_first = in_section_and_entries();
            let guard = reader.read();
            let in_handles = in_section_and_entries().0;
            drop(guard);
            let again = domains[1_234].read();
            let in_second = in_section_and_entries().0;
            drop((again, reader));
            let after_second = in_section_and_entries();
            drop(domains[3].read());
            let after_third = in_section_and_entries();
            (went_through_table() == began).then_some((
                [in_first, after_first, after_second, after_third],
                [in_handles, in_second],
            ))
        };
        let seen =
            std::iter::repeat_with(|| std::thread::scope(|s| s.spawn(steps).join().unwrap()))
                .find_map(|seen| seen);
        let (steps, others) = seen.expect("tests beside this one end");
        assert_eq!(steps[0], (Ordinary, 2), "the handle's, and the one with a section");
        // Under portable fences there is no fast path, and the last one is not remembered.
        let last = usize::from(fence::chosen() == Fences::Membarrier);
        assert_eq!(steps[1], (None, 1 + last), "the last one that was read in is remembered");
        assert_eq!(steps[2..], [(None, last); 2], "the last one alone");
        assert_eq!(others, [Ordinary; 2]);
    }

    /// Entries of ended domains are removed: at once by the thread that ends them, by others at a
    /// later use.
    #[test]
    fn what_ended_domains_leave_in_tables_is_forgotten() {
        apart(|| {
            let mine = Domain::new();
            let theirs: Vec<_> = (0..100).map(|_| Domain::new()).collect();
            theirs.iter().chain([&mine]).for_each(|domain| drop(domain.read()));
            let gone = Domain::new();
            drop(gone.read());
            assert_eq!(entries().0, 102);
            drop(gone);
            assert_eq!(entries(), (101, 101));
            std::thread::scope(|scope| scope.spawn(move || drop(theirs)).join().unwrap());
            assert_eq!(entries(), (101, 101), "nobody else touches the table");
            drop(mine.read());
            assert_eq!(entries(), (1, 1));
        });
    }

    /// The places in the lists stay right when entries move: removing a domain from any place
    /// removes no other.
    #[test]
    fn lists_of_a_table_follow_its_entries() {
        apart(|| {
            let many = if cfg!(miri) { 12 } else { 64 };
            let mut domains: Vec<_> = (0..many).map(|_| Domain::new()).collect();
            domains.iter().for_each(|domain| drop(domain.read()));
            let mut random = 7_u64;
            while let Some(last) = domains.pop() {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = (random >> 33) as usize % (domains.len() + 1);
                let guard = last.read();
                assert_eq!(local::Sections::of_this_thread(), local::Sections::Ordinary);
                drop(guard);
                // The domain that ends is not the one that was read in last, if there is another.
                drop(if at < domains.len() {
                    std::mem::replace(&mut domains[at], last)
                } else {
                    last
                });
                domains.iter().step_by(3).for_each(|domain| drop(domain.read()));
                let table = Table::existing().expect("the thread has read");
                let mut locals = table.locals.borrow_mut();
                let Locals { all, watched, .. } = &mut *locals;
                assert_eq!(all.len(), domains.len());
                for (place, core) in watched.domains.iter().enumerate() {
                    assert_eq!(all.get(*core).expect("it has not ended").watched, place as u32);
                }
                let listed = all.iter().filter(|local| local.watched != NOWHERE).count();
                assert_eq!(listed, watched.domains.len());
            }
        });
    }
}
