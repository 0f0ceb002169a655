//! A thread's table: what it has in each domain.
//!
//! Found by the domain's address ([`ByDomain`]). Domains may end while a thread has something of
//! theirs in its table: the thread that ends a domain removes its own entry ([`ended`]), and the
//! others find at a later use of their tables that domains have ended since they last looked, and
//! go through them ([`Table::sweep`]). So a table has, when it was used last, fewer entries of
//! ended domains than half of what it had of others, or [`GARBAGE_MIN`].
//!
//! **Invariant [TT-1]: the domain of each section that the thread is in is in `watched`,** but for
//! liburcu readers'. A section begins with a slot that was asked of the table ([`Table::watch`]),
//! or with one that stays in the list: that of a handle, and that of the global domain. So no
//! thread goes through all domains to find the sections of a thread.
//!
//! **Invariant [TT-2]: each domain in which the thread is over the limit is in `over_limit`.** Only
//! [`crate::reclaim::defer`] borrows, and says so ([`Table::note_over_limit`]).

use std::cell::{Cell, RefCell, RefMut};
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::{FAST, SECTION, TABLE, forget_last};
use crate::gp::grace_periods::GracePeriods;
use crate::gp::reader::{NOT_READY, ReaderKind, Slot};
use crate::os::thread;
use crate::os::user_code::Borrow;
use crate::reclaim::by_domain::{ByDomain, OfDomain};
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::domains;
use crate::reclaim::handle::{Handle, WeakHandle};
use crate::reclaim::thread_end;
use crate::reclaim::thread_queue::Queue;

/// So many domains end at least before a table is gone through for their sake.
const GARBAGE_MIN: usize = 8;

/// The place in a list of a domain that is not in it.
const NOWHERE: u32 = u32::MAX;

/// How many domains have ended that threads may have in their tables.
static ENDED: AtomicUsize = AtomicUsize::new(0);

/// What the thread has in one domain.
pub(super) struct Local {
    pub(super) core: WeakHandle,
    /// The slot of ordinary sections; null until the first, or when its last user has gone.
    pub(super) slot: *const Slot,
    /// Whether `slot` is kept registered because [`crate::read`] was called.
    pub(super) implicit: bool,
    /// Where the domain stands in `watched`, or [`NOWHERE`].
    watched: u32,
    /// Where it stands in `over_limit`.
    in_over_limit: u32,
    /// The slots of QSBR handles.
    pub(super) others: Vec<*const Slot>,
    /// Retired objects.
    pub(super) objects: Option<Arc<Queue>>,
    /// Closures given to `call`.
    pub(super) closures: Option<Arc<Queue>>,
}

impl OfDomain for Local {
    type Domain = DomainState;

    fn domain(&self) -> *const DomainState {
        self.core.as_ptr()
    }
}

/// Some of a table's domains, each once; an entry knows its place here.
struct Listed {
    domains: Vec<*const DomainState>,
    place: fn(&mut Local) -> &mut u32,
}

impl Listed {
    fn add(&mut self, local: &mut Local) {
        if *(self.place)(local) == NOWHERE {
            *(self.place)(local) = self.domains.len() as u32;
            self.domains.push(local.domain());
        }
    }

    /// Takes out the domain of an entry that has left the table.
    fn remove(&mut self, all: &mut ByDomain<Local>, local: &mut Local) {
        let place = *(self.place)(local);
        if place != NOWHERE {
            self.domains.swap_remove(place as usize);
            self.renumber(all, place as usize..self.domains.len().min(place as usize + 1));
        }
    }

    /// Takes out what `keep` says no to.
    fn retain(&mut self, all: &mut ByDomain<Local>, mut keep: impl FnMut(&Local) -> bool) {
        let before = self.domains.len();
        self.domains.retain(|core| {
            let Some(local) = all.get_mut(*core) else { return false };
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

    /// Notes the places of those that may have moved.
    fn renumber(&self, all: &mut ByDomain<Local>, places: std::ops::Range<usize>) {
        for place in places {
            if let Some(local) = all.get_mut(self.domains[place]) {
                *(self.place)(local) = place as u32;
            }
        }
    }

    fn iter<'l>(&self, all: &'l ByDomain<Local>) -> impl Iterator<Item = &'l Local> {
        self.domains.iter().filter_map(|core| all.get(*core))
    }
}

#[derive(Default)]
pub(super) struct Table {
    locals: RefCell<Locals>,
    /// The sentinel is gone: every registration ends with its section.
    pub(super) exiting: Cell<bool>,
}

/// What is in a table.
pub(super) struct Locals {
    all: ByDomain<Local>,
    /// Domains in which the thread may be in a section [TT-1].
    watched: Listed,
    /// Domains in which it may be over the limit [TT-2].
    over_limit: Listed,
    /// [`ENDED`] when the table was last gone through.
    ended: usize,
}

/// A borrow of it, under which no user code runs.
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

/// How many domains have ended.
#[inline(always)]
pub(super) fn ended_so_far() -> usize {
    // Relaxed: see `ended`.
    ENDED.load(Relaxed)
}

/// Whether so many domains have ended since, that a table is to be gone through.
#[inline(always)]
pub(super) fn is_garbage(since: usize, least: usize) -> bool {
    let ended = ended_so_far().wrapping_sub(since);
    ended >= GARBAGE_MIN && ended >= least
}

/// A domain has ended that threads may have in their tables: the calling thread, under no borrow of
/// its own, forgets it.
pub(crate) fn ended(core: &DomainState) {
    // Relaxed: only when a table is gone through depends on it.
    ENDED.fetch_add(1, Relaxed);
    if let Some(table) = Table::existing() {
        table.borrow().forget(core);
        Table::free_if_empty();
    }
}

impl Table {
    /// The thread's table; made if need be.
    pub(super) fn get() -> &'static Self {
        let table = TABLE.get();
        if !table.is_null() {
            // SAFETY: made below by this thread and freed by `free_if_empty` only, which no thread
            // calls while a borrow of the table is in use.
            return unsafe { &*table };
        }
        let exiting = !thread_end::is_noticed();
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

    /// What is in it, without what other threads' ends of domains have left, if that is much.
    pub(super) fn locals(&self) -> Borrowed<'_> {
        let mut locals = self.borrow();
        if is_garbage(locals.ended, locals.all.len() / 2) {
            locals.sweep();
        }
        locals
    }

    /// Calls `f` with what the thread has in a domain; made if need be. `f` runs no user code.
    pub(super) fn with_local<R>(
        &self,
        core: &DomainState,
        handle: impl FnOnce() -> Handle,
        f: impl FnOnce(&mut Local) -> R,
    ) -> R {
        let mut locals = self.locals();
        let place = locals.find_or_insert(core, handle);
        f(locals.all.at_mut(place))
    }

    /// As [`with_local`](Self::with_local), where `f` gives a slot with which a section may begin
    /// [TT-1].
    pub(super) fn with_section<R>(
        &self,
        core: &DomainState,
        handle: impl FnOnce() -> Handle,
        f: impl FnOnce(&mut Local) -> R,
    ) -> R {
        let mut locals = self.locals();
        let place = locals.find_or_insert(core, handle);
        let Locals { all, watched, .. } = &mut *locals;
        let local = all.at_mut(place);
        if local.watched == NOWHERE {
            watched.add(local);
        }
        f(local)
    }

    /// At the end of a thread: forgets a domain if it has nothing left there.
    pub(super) fn forget_unused(&self, core: *const DomainState) {
        if self.exiting.get() {
            let mut locals = self.locals();
            if locals.all.get(core).is_some_and(Local::is_unused) {
                locals.forget(core);
            }
        }
    }

    /// At the end of a thread: forgets the table once it has nothing in it. The caller uses no
    /// reference to the table afterwards.
    pub(super) fn free_if_empty() {
        let Some(table) = Self::existing().filter(|table| table.exiting.get()) else { return };
        if table.locals.borrow().all.is_empty() {
            let table = TABLE.replace(ptr::null_mut());
            // SAFETY: made by `get` from a box, and no longer reachable.
            drop(unsafe { Box::from_raw(table) });
        }
    }
}

impl Default for Locals {
    fn default() -> Self {
        Self {
            all: ByDomain::new(),
            watched: Listed { domains: Vec::new(), place: |local| &mut local.watched },
            over_limit: Listed { domains: Vec::new(), place: |local| &mut local.in_over_limit },
            ended: ENDED.load(Relaxed), // see `ended`
        }
    }
}

impl Locals {
    /// The place of a domain's entry; made if need be.
    fn find_or_insert(&mut self, core: &DomainState, handle: impl FnOnce() -> Handle) -> usize {
        if let Some(place) = self.all.place(core) {
            return place;
        }
        let handle = handle();
        domains::remember(&handle);
        self.all.insert(Local {
            core: handle.downgrade(),
            slot: ptr::null(),
            implicit: false,
            watched: NOWHERE,
            in_over_limit: NOWHERE,
            others: Vec::new(),
            objects: None,
            closures: None,
        })
    }

    pub(super) fn get(&self, core: &DomainState) -> Option<&Local> {
        self.all.get(core)
    }

    pub(super) fn get_mut(&mut self, core: *const DomainState) -> Option<&mut Local> {
        self.all.get_mut(core)
    }

    /// All of them: for the end of a thread.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Local> {
        self.all.iter_mut()
    }

    /// Forgets those in which the thread has nothing left, at its end, and those that have ended.
    pub(super) fn keep_used(&mut self) {
        self.retain(|local| !local.is_unused());
    }

    /// Forgets the domains that have ended.
    fn sweep(&mut self) {
        self.ended = ended_so_far();
        self.retain(|_| true);
    }

    fn retain(&mut self, keep: impl Fn(&Local) -> bool) {
        forget_last();
        self.all.retain(|local| local.core.is_alive() && keep(local));
        let Self { all, watched, over_limit, .. } = self;
        watched.retain(all, |_| true);
        over_limit.retain(all, |_| true);
    }

    /// Forgets one domain.
    fn forget(&mut self, core: *const DomainState) {
        if let Some(mut local) = self.all.remove(core) {
            forget_last();
            self.watched.remove(&mut self.all, &mut local);
            self.over_limit.remove(&mut self.all, &mut local);
        }
    }

    /// Calls `f`, which runs no user code, with the domains that the thread may be in a section of,
    /// and that do not end while the handles that are added to `handles` exist. Forgets those in
    /// which it is in none, and cannot begin one without asking for the slot again.
    pub(super) fn each_watched(
        &mut self,
        handles: &mut Vec<Arc<DomainState>>,
        mut f: impl FnMut(&Local),
    ) {
        self.watched.retain(&mut self.all, |local| {
            handles.extend(local.core.keep());
            let stays = local.core.is_alive() && (local.is_kept() || local.has_section());
            if stays {
                f(local);
            }
            stays
        });
    }

    /// The thread has gone over the limit in a domain [TT-2].
    pub(super) fn note_over_limit(&mut self, core: &DomainState) {
        if let Some(local) = self.all.get_mut(core) {
            self.over_limit.add(local);
        }
    }

    /// Where the thread is over the limit, as far as it knows.
    pub(super) fn queues_over_limit(&mut self) -> impl Iterator<Item = &Local> {
        let Self { all, over_limit, .. } = self;
        over_limit.retain(all, |local| {
            local.core.is_alive()
                && local.queues().any(|queue| queue.local_stock().stock().is_over_limit())
        });
        over_limit.iter(all)
    }
}

impl Local {
    /// The slot for ordinary sections; registers if there is none.
    pub(super) fn slot(&mut self, core: &DomainState) -> &'static Slot {
        if self.slot.is_null() {
            self.slot = core.register(thread::token(), ReaderKind::Ordinary);
        }
        // SAFETY: the domain is alive (`core`), and so are its slots; the lifetime is cut to the
        // domain's by the callers.
        unsafe { &*self.slot }
    }

    /// Unregisters the slot if no thread uses it.
    pub(super) fn unregister_if_unused(&mut self, core: &GracePeriods) {
        // SAFETY: not null only while registered with the domain, which is alive (`core`).
        if let Some(slot) = unsafe { self.slot.as_ref() }
            && slot.references() == 0
            && slot.is_quiescent()
        {
            if FAST.get() == self.slot {
                FAST.set(&raw const NOT_READY);
            }
            if SECTION.get().slot == self.slot {
                forget_last();
            }
            self.slot = ptr::null();
            core.unregister(slot);
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

    /// Whether the thread, which is at its end, has no reader left here.
    fn is_unused(&self) -> bool {
        self.slot.is_null() && self.others.is_empty()
    }

    /// Whether the thread is in a section of the domain, which must be alive.
    fn has_section(&self) -> bool {
        self.slots().any(|slot| !slot.is_quiescent())
    }

    /// Whether sections begin here without the table: with a handle, or by what is remembered of
    /// the global domain ([`FAST`]) and of the last other one ([`SECTION`]). The domain must be
    /// alive.
    fn is_kept(&self) -> bool {
        // SAFETY: not null only while registered; the domain is alive by this function's contract.
        let references = unsafe { self.slot.as_ref() }.map_or(0, Slot::references);
        !self.others.is_empty()
            || references > u64::from(self.implicit)
            || !self.slot.is_null() && (FAST.get() == self.slot || SECTION.get().slot == self.slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Domain;
    use crate::domain::tag::DomainTag;
    use crate::os::fence::{self, Fences};
    use crate::reclaim::local;

    /// How many entries the calling thread has, and how many of them it goes through to find its
    /// sections.
    fn entries() -> (usize, usize) {
        let table = Table::existing().expect("the thread has read");
        let locals = table.locals.borrow();
        (locals.all.len(), locals.watched.domains.len())
    }

    fn steps_to(domain: &Domain) -> usize {
        let table = Table::existing().expect("the thread has read");
        table.locals.borrow().all.steps_to(domain.tag().core())
    }

    /// Runs `f` in a thread, whose table it has for itself.
    fn apart(f: impl FnOnce() + Send) {
        std::thread::scope(|scope| scope.spawn(f).join().unwrap());
    }

    /// It was a list that was searched from its beginning: 95 us a read in the last of 20,000
    /// domains.
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

    /// To see whether it is in a section, a thread went through all its domains, at every ninth
    /// retirement.
    ///
    /// Where tests beside this one end so many domains that the table is gone through, the thread
    /// forgets the last one that it read in; then its steps are done once more.
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

    /// Entries of ended domains go: at once in the thread that ends them, in others at their next
    /// uses.
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

    /// The places in the lists hold whatever entry moves: a domain that is taken out anywhere takes
    /// no other with it.
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
                // Another one ends than that which was read in last.
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
