//! Read-side critical sections of threads: [`Guard`], the kinds of domains that have them, and the
//! global domain, whose sections need no handle.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::ptr;

use grace::word;

use crate::domain::tag::{DomainTag, Section};
use crate::gp::reader::{NOT_READY, Slot};
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::handle::Handle;
use crate::reclaim::local;

/// Names a domain whose readers are threads: what [`Domain::read`](crate::Domain::read) and its kin
/// ask for. Implemented by [`Global`], [`Private`](crate::Private) and the types that
/// [`domain!`](crate::domain!) declares.
///
/// # Safety
/// The domain has an engine that waits for registered threads. Use [`domain!`](crate::domain!).
pub unsafe trait ThreadTag: for<'k> DomainTag<Section<'k> = Guard<'k, Self>> {}

/// The tag of the one global domain: what [`crate::read`] and the other free functions use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Global;

pub(crate) static GLOBAL: DomainState = DomainState::declared("global");

// SAFETY: one static.
unsafe impl DomainTag for Global {
    const STATIC: bool = true;

    type Section<'k> = Guard<'k, Self>;

    #[inline]
    fn enter(&self, location: &'static Location<'static>) -> Guard<'_, Self> {
        Guard::begin(self, location)
    }

    #[inline(always)]
    fn core(&self) -> &DomainState {
        &GLOBAL
    }

    fn handle(&self) -> Handle {
        Handle::Static(&GLOBAL)
    }
}

// SAFETY: its readers are threads.
unsafe impl ThreadTag for Global {}

/// A read-side critical section; it ends when the guard is dropped.
///
/// What [`Rcu::load`](crate::Rcu::load) hands out under it stays valid as long as the guard lives.
/// Guards nest, in any order of dropping. To drop one is wait-free, but for a thread that has
/// retired an object over the domain's limit in the section
/// ([`Domain::retire`](crate::Domain::retire)): the drop of its outermost guard waits for a grace
/// period then, and drops objects that the thread has retired. A guard that is leaked with
/// [`std::mem::forget`] is a section that never ends: sound, but every later grace period of the
/// domain waits for ever.
///
/// A guard belongs to its thread. Sections that end on another one, or are held across an `.await`,
/// are those of an [`Srcu`](crate::Srcu); the compiler says so:
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

/// What keeps a guard on its thread, whose slot it has: neither `Send` nor `Sync`. The compiler
/// prints this name, and the message below, where a guard is sent.
struct StaysOnItsThreadUnlikeSrcu<K>(PhantomData<fn() -> K>);

/// Domains whose guards may go to other threads while they are [`Guard`]s: there is none.
#[diagnostic::on_unimplemented(
    message = "a guard of a section of `{Self}` stays on the thread that began the section",
    label = "this would send the guard, or what was read under it, to another thread",
    note = "sections that end on another thread, or are held across an `.await`, are an `Srcu`'s",
    note = "make the value with `Rcu::sleepable` or `Srcu::rcu`",
    note = "or end the section before: drop the guard, or use `Rcu::with`"
)]
trait GuardsChangeThreads {}

// SAFETY: never: no type implements `GuardsChangeThreads`.
unsafe impl<K: GuardsChangeThreads> Send for StaysOnItsThreadUnlikeSrcu<K> {}
// SAFETY: as above.
unsafe impl<K: GuardsChangeThreads> Sync for StaysOnItsThreadUnlikeSrcu<K> {}

// SAFETY: the slot's nesting is not zero until the guard is dropped, so every scan that comes after
// the section's begin counts it [M-2].
unsafe impl<K: DomainTag> Section<K> for Guard<'_, K> {
    #[inline(always)]
    fn core(&self) -> *const DomainState {
        DomainState::of(self.slot.core_ptr())
    }
}

/// Begins a read-side critical section of the global domain.
///
/// # Promise
/// What is retired or waited for after this call is not freed before the guard is dropped.
///
/// # Progress and cost
/// Wait-free. To begin and to end a section takes three stores to the thread's own cache line, a
/// few loads from it, and one load of a word that changes once in a grace period; no atomic
/// read-modify-write, and no fence instruction where the kernel has `membarrier(2)`; a full fence
/// each way elsewhere. The section that a sleeping updater waits for last wakes it, by a system
/// call. A thread that retires in its sections may wait where the outermost one ends: see
/// [`Guard`]. The first call of a thread registers it, which takes a lock and may allocate.
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
#[inline]
#[track_caller]
pub fn read() -> Guard<'static> {
    read_at(Location::caller())
}

#[inline(always)]
fn read_at<K: DomainTag>(location: &'static Location<'static>) -> Guard<'static, K> {
    // SAFETY: points to NOT_READY or to a slot of the global domain, which is never freed.
    let slot: &'static Slot = unsafe { &*local::FAST.get() };
    enter(slot, &GLOBAL, location, || {
        let slot = local::implicit_slot(&GLOBAL, || Global.handle());
        local::make_fast(slot);
        slot
    })
}

/// Begins a section with `slot` if its fast path may be used, else with what `ready` gives.
#[inline(always)]
pub(super) fn enter<'d, K: DomainTag>(
    slot: &'d Slot,
    core: &'d DomainState,
    location: &'static Location<'static>,
    ready: impl FnOnce() -> &'d Slot,
) -> Guard<'d, K> {
    let word = slot.own_word();
    if word::nesting(word) == 0 {
        slot.enter_outermost(&core.gp, location);
        return Guard::on(slot);
    }
    if slot.enter_nested(word) {
        return Guard::on(slot);
    }
    enter_slow(slot, core, location, ready)
}

/// Not registered, or no membarrier, or too deep.
#[cold]
#[inline(never)]
fn enter_slow<'d, K: DomainTag>(
    slot: &'d Slot,
    core: &'d DomainState,
    location: &'static Location<'static>,
    ready: impl FnOnce() -> &'d Slot,
) -> Guard<'d, K> {
    let slot = if ptr::eq(slot, &raw const NOT_READY) { ready() } else { slot };
    slot.enter_slow(&core.gp, location);
    Guard::on(slot)
}

impl<'d, K: DomainTag> Guard<'d, K> {
    /// The guard of a section that has begun.
    #[inline(always)]
    fn on(slot: &'d Slot) -> Self {
        Guard { slot, tag: PhantomData, _thread: StaysOnItsThreadUnlikeSrcu(PhantomData) }
    }

    /// The slot, of whose section the caller ends one level instead.
    #[inline(always)]
    pub(super) fn into_slot(self) -> &'d Slot {
        std::mem::ManuallyDrop::new(self).slot
    }

    /// A section of the calling thread, by way of its table.
    #[inline]
    pub(crate) fn begin(tag: &'d K, location: &'static Location<'static>) -> Self {
        let core = tag.core();
        if ptr::eq(core, &raw const GLOBAL) {
            return read_at(location);
        }
        enter(local::last_slot(core), core, location, || {
            let slot = local::implicit_slot(core, || tag.handle());
            local::make_last(core, slot);
            slot
        })
    }
}

impl<K: DomainTag> Drop for Guard<'_, K> {
    #[inline]
    fn drop(&mut self) {
        self.slot.leave();
    }
}

impl<K: DomainTag> fmt::Debug for Guard<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("began", &self.slot.began()).finish_non_exhaustive()
    }
}
