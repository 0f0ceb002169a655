//! Read-side critical sections of threads: [`Guard`], the kinds of domains that have such sections,
//! and the global domain, whose sections need no handle.

use std::marker::PhantomData;
use std::panic::Location;
use std::ptr;

use grace::word;

use crate::domain::impls::shown_in_part;
use crate::domain::tag::{DomainTag, Section};
use crate::gp::slot::{NOT_READY, Slot};
use crate::gp::thread;
use crate::os::sync::const_unless_loom;
use crate::reclaim::domain_state::{DomainState, Handle, Named};
use crate::reclaim::local;

/// The tag of a domain whose readers are threads, so that [`Domain::read`](crate::Domain::read)
/// returns a [`Guard`]. Implemented by [`Global`], [`Private`](crate::tag::Private) and the types
/// that [`domain!`](crate::domain!) declares.
///
/// # Safety
/// The domain has an engine that waits for registered threads. Use [`domain!`](crate::domain!).
pub unsafe trait ThreadTag: for<'k> DomainTag<Section<'k> = Guard<'k, Self>> {}

/// The tag of the global domain, which [`crate::read`] and the other free functions use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Global;

const_unless_loom! {
    pub(crate) static GLOBAL: DomainState = DomainState::declared("global");
}

impl Named for Global {
    #[inline(always)]
    fn core(&self) -> &DomainState {
        &GLOBAL
    }

    fn handle(&self) -> Handle {
        Handle::Static(&GLOBAL)
    }
}

// SAFETY: one static.
unsafe impl DomainTag for Global {
    const STATIC: bool = true;

    type Section<'k> = Guard<'k, Self>;

    #[inline]
    fn enter(&self, location: &'static Location<'static>) -> Guard<'_, Self> {
        Guard::on(enter_global(location))
    }
}

// SAFETY: its readers are threads.
unsafe impl ThreadTag for Global {}

/// A read-side critical section; it ends when the guard is dropped.
///
/// A reference from [`Rcu::load`](crate::Rcu::load) under the guard is valid while the guard lives.
/// Guards nest, and may be dropped in any order. Dropping one is wait-free, with one exception. If
/// the thread has retired an object above the domain's limit in the section
/// ([`Domain::retire`](crate::Domain::retire)), dropping its outermost guard waits for a grace
/// period, and drops objects that the thread has retired. A guard that is leaked with
/// [`std::mem::forget`] is a section that never ends: this is sound, but no later grace period of
/// the domain ends.
///
/// For sections that end on another thread, or are held across an `.await`, use an
/// [`Srcu`](crate::Srcu). A guard stays on its thread, which the compiler checks:
/// ```compile_fail,E0277
/// let guard = quiescence::read();
/// std::thread::spawn(move || drop(guard));
/// ```
#[must_use = "the section ends when the guard is dropped"]
pub struct Guard<'d, K: DomainTag = Global> {
    slot: &'d Slot,
    tag: PhantomData<&'d K>,
    _thread: StaysOnItsThreadUnlikeSrcu<K>,
}

/// Makes what refers to its thread's slot, a guard or a handle, neither `Send` nor `Sync`, even if
/// `T` is. The compiler prints this name, and the message below, if one is sent.
pub(super) struct StaysOnItsThreadUnlikeSrcu<K, T = ()>(pub(super) T, pub(super) PhantomData<K>);

/// Domains whose [`Guard`]s and handles may be sent to other threads: there are none.
#[diagnostic::on_unimplemented(
    message = "a guard of `{Self}`, or a handle to it, stays on the thread that made it",
    label = "this would send it, or what was read under it, to another thread",
    note = "sections held across `.await`, or sent, are an `Srcu`'s: `Rcu::sleepable`, `Srcu::rcu`",
    note = "or end the block that holds the guard before the `.await`; `drop` is not enough:\n\
            `let max = {{ let guard = read(); *config.load(&guard) }};`\n`wait(max).await;`",
    note = "another thread gets a handle of its own by `reader()` or `qsbr()` of the `Domain`"
)]
pub(super) trait GuardsChangeThreads {}

// SAFETY: never: no type implements `GuardsChangeThreads`.
unsafe impl<K: GuardsChangeThreads, T> Send for StaysOnItsThreadUnlikeSrcu<K, T> {}
// SAFETY: as above.
unsafe impl<K: GuardsChangeThreads, T> Sync for StaysOnItsThreadUnlikeSrcu<K, T> {}

// SAFETY: the slot's nesting is not zero until the guard is dropped, so every scan that comes after
// the section's begin counts it [GM-2].
unsafe impl<K: DomainTag> Section<K> for Guard<'_, K> {
    #[inline(always)]
    fn core(&self) -> *const DomainState {
        DomainState::of(self.slot.core_ptr())
    }
}

/// Begins a read-side critical section of the global domain.
///
/// # Promise
/// An object that is retired after this call is not freed before the guard is dropped. A grace
/// period that begins after this call does not end before the guard is dropped.
///
/// # Progress and cost
/// Wait-free. Beginning and ending a section takes three stores to the thread's own cache line, a
/// few loads from it, and one load of a word that changes once per grace period. There is no atomic
/// read-modify-write. There is no fence instruction if the kernel has `membarrier(2)`; otherwise a
/// section takes one full fence to begin and one to end. The last section that a sleeping updater
/// waits for wakes it with a system call. A thread that retires objects inside its sections may
/// wait when the outermost one ends: see [`Guard`]. A thread's first call registers it: this takes
/// a lock and may allocate.
///
/// # Panics
/// If sections are nested 2^32 deep.
///
/// # Source
/// The reader of liburcu's memb flavour (Desnoyers, McKenney, Stern, Dagenais, Walpole, IEEE TPDS
/// 2012), with a full counter in place of the phase bit.
///
/// ```
/// use quiescence::Rcu;
///
/// let greeting = Rcu::new(String::from("hello"));
/// let guard = quiescence::read();
/// assert_eq!(greeting.load(&guard), "hello");
/// ```
#[doc(alias = "rcu_read_lock")]
#[inline(always)]
#[track_caller]
pub fn read() -> Guard<'static> {
    Guard::on(enter_global(Location::caller()))
}

/// Begins a section of the global domain, which ends when its slot is left.
#[inline(always)]
pub(super) fn enter_global(location: &'static Location<'static>) -> &'static Slot {
    enter(thread::global_slot(), &GLOBAL, location, || {
        local::implicit_slot(&GLOBAL, &Global, thread::remember_global)
    })
}

/// Begins a section with `slot` if its fast path may be used. If `slot` is [`NOT_READY`], uses the
/// slot that `ready` returns. Returns the slot; the section ends when that is left.
#[inline(always)]
pub(super) fn enter<'d>(
    slot: &'d Slot,
    core: &'d DomainState,
    location: &'static Location<'static>,
    ready: impl FnOnce() -> &'d Slot,
) -> &'d Slot {
    let word = slot.own_word();
    if word::nesting(word) == 0 {
        slot.enter_outermost(&core.grace_periods.gp_words.gp, location);
        return slot;
    }
    if slot.enter_nested(word) {
        return slot;
    }
    enter_slow(slot, core, location, ready)
}

/// The slot is [`NOT_READY`], or sections are nested too deep.
#[cold]
#[inline(never)]
fn enter_slow<'d>(
    slot: &'d Slot,
    core: &'d DomainState,
    location: &'static Location<'static>,
    ready: impl FnOnce() -> &'d Slot,
) -> &'d Slot {
    let slot = if ptr::eq(slot, NOT_READY) { ready() } else { slot };
    slot.enter_slow(&core.grace_periods.gp_words.gp, location);
    slot
}

impl<'d, K: DomainTag> Guard<'d, K> {
    /// The guard of a section that has begun.
    #[inline(always)]
    pub(super) fn on(slot: &'d Slot) -> Self {
        Guard { slot, tag: PhantomData, _thread: StaysOnItsThreadUnlikeSrcu((), PhantomData) }
    }

    /// Begins a section of the calling thread in any domain but the global one, of which
    /// [`enter_global`] begins them. Uses the thread's table unless it read here last.
    #[inline]
    pub(crate) fn begin(tag: &'d K, location: &'static Location<'static>) -> Self {
        let core = tag.core();
        let slot = enter(thread::last_slot(&core.grace_periods), core, location, || {
            let remember = |slot: &Slot| thread::remember_last(&core.grace_periods, slot);
            local::implicit_slot(core, tag, remember)
        });
        Self::on(slot)
    }
}

impl<K: DomainTag> Drop for Guard<'_, K> {
    #[inline]
    fn drop(&mut self) {
        self.slot.leave();
    }
}

shown_in_part!([K: DomainTag] Guard<'_, K> { began: |guard| guard.slot.notes.began() });
