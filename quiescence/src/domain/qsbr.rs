//! Quiescent-state-based readers: sections without an instruction of their own.
//!
//! A [`Qsbr`] reader is inside a section all the time, except at its quiescent states
//! ([`Qsbr::quiescent_state`]) and while it is [offline](Qsbr::offline). So beginning and ending a
//! section costs nothing, and the type system enforces what liburcu leaves to discipline: while a
//! [`QsbrGuard`] lives, `quiescent_state` cannot be called.

use std::marker::PhantomData;
use std::panic::Location;

use crate::domain::domain::{self, Domain};
use crate::domain::guard::{Global, StaysOnItsThreadUnlikeSrcu, ThreadTag};
use crate::domain::impls::shown_in_part;
use crate::domain::tag::Section;
use crate::gp::slot::{ReaderKind, Slot};
use crate::gp::wake::OVERDUE;
use crate::os::on_drop::OnDrop;
use crate::os::user_code::{self, Site};
use crate::reclaim::at_limit::settle;
use crate::reclaim::defer;
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::local::{self, Sections};
use crate::reclaim::running;
use grace::limit::Zone;
use grace::{Urgency, batch};

impl<K: ThreadTag> Domain<K> {
    /// Registers the calling thread as a QSBR reader. Takes a lock.
    #[track_caller]
    pub fn qsbr(&self) -> Qsbr<K> {
        let slot: *const Slot = local::handle_slot(self.tag().core(), self.tag(), ReaderKind::Qsbr);
        let slot = StaysOnItsThreadUnlikeSrcu(slot, PhantomData);
        let reader = Qsbr { slot, domain: self.clone() };
        reader.enter(Location::caller());
        reader
    }
}

/// A QSBR reader of the calling thread. Online when created; unregisters when dropped.
///
/// An online reader that does not announce quiescent states delays every grace period of its
/// domain. Go [offline](Self::while_offline) before you block.
///
/// ```
/// use quiescence::{Domain, Rcu};
///
/// let table = Rcu::new(vec![1, 2, 3]);
/// let mut reader = Domain::global().qsbr();
/// for packet in 0..3 {
///     let section = reader.read(); // free
///     assert_eq!(table.load(&section)[packet], packet + 1);
///     drop(section);
///     reader.quiescent_state();
/// }
/// ```
///
/// A quiescent state in the middle of a section does not compile:
/// ```compile_fail,E0502
/// let table = quiescence::Rcu::new(7);
/// let mut reader = quiescence::Domain::global().qsbr();
/// let section = reader.read();
/// let seven = table.load(&section);
/// reader.quiescent_state();
/// assert_eq!(*seven, 7);
/// ```
///
/// Source: liburcu's flavour qsbr (Desnoyers, McKenney, Stern, Dagenais, Walpole, IEEE TPDS 2012).
/// There the program, not the compiler, keeps quiescent states out of sections.
pub struct Qsbr<K: ThreadTag = Global> {
    domain: Domain<K>,
    slot: StaysOnItsThreadUnlikeSrcu<K, *const Slot>,
}

/// A QSBR reader that is offline: it delays no grace period and cannot read.
///
/// Returned by [`Qsbr::offline`]; [`online`](Self::online) returns the reader. Unregisters when
/// dropped.
#[must_use = "online() gives the reader back"]
pub struct QsbrOffline<K: ThreadTag = Global>(Qsbr<K>);

/// A section of an online [`Qsbr`] reader. Creating and dropping it does nothing.
#[must_use = "what is loaded is protected while the guard lives"]
pub struct QsbrGuard<'q, K: ThreadTag = Global> {
    /// Borrowed from the reader.
    core: StaysOnItsThreadUnlikeSrcu<K, &'q DomainState>,
}

shown_in_part!([K: ThreadTag] QsbrGuard<'_, K>);

// SAFETY: a `Qsbr` that can be borrowed is online, so its word's nesting is not zero; and it stays
// under the number it has until `quiescent_state`, `while_offline` or `offline`, which need the
// reader exclusively. (`offline` takes it away altogether: a type of its own, so that no check is
// needed.)
unsafe impl<K: ThreadTag> Section<K> for QsbrGuard<'_, K> {
    #[inline(always)]
    fn core(&self) -> *const DomainState {
        self.core.0
    }
}

impl<K: ThreadTag> Qsbr<K> {
    /// Begins a section. Wait-free: it takes no instruction at all.
    #[inline(always)]
    pub fn read(&self) -> QsbrGuard<'_, K> {
        QsbrGuard { core: StaysOnItsThreadUnlikeSrcu(self.domain.tag().core(), PhantomData) }
    }

    /// Announces that this thread holds no reference obtained before.
    ///
    /// # Progress and cost
    /// Four loads and a comparison if no updater has asked since the last call. Otherwise one store
    /// (under [`Engine::Token`](crate::tuning::Engine::Token), once its predecessor in the chain
    /// has passed on the number) and, if an updater sleeps, one system call.
    ///
    /// In a thread that retires objects in the domain, this call also drops earlier ones whose
    /// grace periods have ended; the reader is offline meanwhile. It does so once some 32 are
    /// ready, and drops a few more than the thread has retired since the last call, so that their
    /// memory is still in the CPU's cache when it is reused. At three quarters of the domain's
    /// limit ([`Tuning`](crate::tuning::Tuning)) or more it waits for a grace period, as
    /// [`Domain::retire`] does elsewhere at the limit.
    #[inline]
    pub fn quiescent_state(&mut self) {
        let core = self.domain.tag().core();
        if self.slot().renew() && is_due(core) {
            self.catch_up();
        }
    }

    #[cold]
    fn catch_up(&mut self) {
        let slot = self.slot();
        slot.marks.take(OVERDUE);
        let began = slot.notes.began().unwrap_or_else(|| Location::caller());
        let domain = self.domain.clone();
        self.offline_since(began, || catch_up(domain.tag().core()));
    }

    /// Goes offline, so that the reader delays no grace period. For use before a blocking call, if
    /// [`while_offline`] does not fit.
    ///
    /// [`while_offline`]: Self::while_offline
    ///
    /// ```
    /// let reader = quiescence::Domain::global().qsbr();
    /// let away = reader.offline();
    /// // ... something that blocks ...
    /// let reader = away.online();
    /// # drop(reader);
    /// ```
    pub fn offline(self) -> QsbrOffline<K> {
        self.leave();
        QsbrOffline(self)
    }

    /// Goes offline, calls `f`, which may block, and comes online again, even if `f` panics.
    ///
    /// ```
    /// let mut reader = quiescence::Domain::global().qsbr();
    /// let line = reader.while_offline(|| "a line that took long to come");
    /// # assert!(!line.is_empty());
    /// ```
    #[track_caller]
    pub fn while_offline<R>(&mut self, f: impl FnOnce() -> R) -> R {
        self.offline_since(Location::caller(), f)
    }

    /// Calls `f` offline; `place` is where the reader says it came online again.
    fn offline_since<R>(
        &mut self,
        location: &'static Location<'static>,
        f: impl FnOnce() -> R,
    ) -> R {
        self.leave();
        let _online = OnDrop(|| self.enter(location));
        user_code::run(Site::Scope, f)
    }

    /// Waits for a grace period. The reader is offline meanwhile, so it does not wait for itself.
    ///
    /// # Panics
    /// If this thread is in another section of the same domain.
    #[track_caller]
    pub fn synchronize(&mut self) {
        let location = Location::caller();
        let domain = self.domain.clone();
        self.while_offline(|| domain::synchronize(domain.tag(), Urgency::Normal, location));
    }

    /// Comes online.
    pub(super) fn enter(&self, location: &'static Location<'static>) {
        self.slot().online(&self.domain.tag().core().grace_periods.gp_words.gp, location);
    }

    pub(super) fn is_online(&self) -> bool {
        !self.slot().is_quiescent()
    }

    /// Goes offline, if it is not.
    pub(super) fn leave(&self) {
        if self.is_online() {
            self.slot().offline();
        }
    }

    fn slot(&self) -> &Slot {
        // SAFETY: registered by `Domain::qsbr`, unregistered in `drop`; `self.domain` keeps the
        // memory.
        unsafe { &*self.slot.0 }
    }
}

impl<K: ThreadTag> Drop for Qsbr<K> {
    fn drop(&mut self) {
        self.leave();
        // SAFETY: it has been given for this handle, which stays on its thread, is offline now, and
        // is dropped.
        unsafe { local::release_handle(self.slot()) };
    }
}

shown_in_part!([K: ThreadTag] Qsbr<K> { online: |reader| reader.is_online() });

impl<K: ThreadTag> QsbrOffline<K> {
    /// Comes online again. Executes a full fence.
    #[track_caller]
    pub fn online(self) -> Qsbr<K> {
        self.0.enter(Location::caller());
        self.0
    }
}

shown_in_part!([K: ThreadTag] QsbrOffline<K>);

/// Whether a QSBR reader, at a quiescent state, is to [catch up](catch_up): it has objects that
/// wait, or may be over the limit.
fn is_due(domain: &DomainState) -> bool {
    !running::in_callback()
        && (local::own_objects(domain).is_some_and(|queue| !queue.is_empty())
            || local::may_be_over_limit() && local::refresh_may_be_over_limit())
}

/// What a QSBR reader does then, offline: drops a few more ready objects than it has retired since
/// the last call, as [`defer::tend`] does outside sections; and waits if the domain is near the
/// limit.
fn catch_up(domain: &DomainState) {
    if local::may_be_over_limit() {
        defer::settle_over_limit();
    }
    let Some(queue) = local::own_objects(domain) else { return };
    if Sections::of_this_thread() != Sections::None {
        return;
    }
    let share = match queue.local_stock().take_added(queue.written()) {
        0 => domain.grace_periods.tuning.run_min(), // it has retired nothing since
        added => batch::run_share(added),
    };
    if defer::run_or_advance(domain, &queue, share) {
        defer::run_share(domain, &queue, share);
    }
    if domain.zone() != Zone::Free {
        settle(domain, Some(queue));
    }
}
