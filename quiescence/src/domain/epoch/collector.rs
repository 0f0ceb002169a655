//! [`Collector`] and [`LocalHandle`]: in which domain a guard pins its thread, and what keeps that
//! domain alive.

use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::due;
use super::guard::Guard;
use crate::domain::domain::Domain;
use crate::domain::guard::{self, Global, StaysOnItsThreadUnlikeSrcu};
use crate::domain::impls::{default_by, shown_in_part};
use crate::domain::names::Private;
use crate::domain::reader::Reader;
use crate::gp::slot::Slot;
use crate::reclaim::domain_state::Handle;
use crate::reclaim::worker;

/// A domain: guards of one collector wait for each other, and for no others.
///
/// Clones are handles to the same collector.
///
/// ```
/// use quiescence::epoch::Collector;
///
/// let collector = Collector::new();
/// let handle = collector.register();
/// drop(collector);
/// let guard = handle.pin();
/// guard.defer(|| println!("no guard is left that began before this one ended"));
/// ```
#[derive(Clone)]
pub struct Collector(
    /// None: the global domain.
    Option<Arc<OwnDomain>>,
);

/// The domain of a collector: until the last handle is gone, and the last guard.
struct OwnDomain(ManuallyDrop<Domain<Private>>);

static DEFAULT: Collector = Collector(None);

impl Collector {
    /// Creates a collector with a domain of its own.
    pub fn new() -> Self {
        Self::new_in(Domain::new())
    }

    /// Creates a collector whose guards are sections of `domain`, which has its own limit and name,
    /// and may have other sections as well.
    ///
    /// ```
    /// use quiescence::{Domain, epoch::Collector, tuning::Tuning};
    ///
    /// let domain = Domain::new();
    /// let mut tuning = Tuning::default();
    /// tuning.objects_max = 10_000;
    /// domain.tune(tuning);
    /// let handle = Collector::new_in(domain.clone()).register();
    /// handle.pin().defer(|| {});
    /// assert_eq!(domain.statistics().callbacks_queued, 1);
    /// ```
    pub fn new_in(domain: Domain<Private>) -> Self {
        Self(Some(Arc::new(OwnDomain(ManuallyDrop::new(domain)))))
    }

    /// Registers the calling thread. The thread's first handle takes a lock.
    pub fn register(&self) -> LocalHandle {
        let thread = match self.own_domain() {
            None => Thread::Default(Domain::global().reader()),
            Some(domain) => Thread::Own(domain.reader()),
        };
        let (guards, kept) = (Cell::new(0), Cell::new(1));
        let local = Local { thread, collector: self.clone(), guards, kept };
        let local = NonNull::from(Box::leak(Box::new(local)));
        LocalHandle { local: StaysOnItsThreadUnlikeSrcu(local, PhantomData) }
    }

    /// The domain of a collector of its own.
    pub(super) fn own_domain(&self) -> Option<&Domain<Private>> {
        self.0.as_ref().map(|domain| &*domain.0)
    }
}

impl Drop for OwnDomain {
    /// Runs what has been deferred. No guard is left, so it waits for sections at most that others
    /// have begun in the domain of [`Collector::new_in`]. Where the thread may run nothing the
    /// worker does: it is given this very handle, which may be the last [D-1].
    fn drop(&mut self) {
        // SAFETY: not used any more.
        let domain = unsafe { ManuallyDrop::take(&mut self.0) };
        if due::may_drain() {
            domain.barrier();
        } else if !domain.core().queues.is_empty(false) {
            worker::end_domain(Handle::Shared(domain.into_tag().0));
        }
    }
}

default_by!(new, impl Default for Collector);

/// Whether they are handles to the same one.
impl PartialEq for Collector {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_ref().map(Arc::as_ptr) == other.0.as_ref().map(Arc::as_ptr)
    }
}

impl Eq for Collector {}

shown_in_part!([] Collector);

/// A thread's registration with a collector. It stays on its thread.
pub struct LocalHandle {
    local: StaysOnItsThreadUnlikeSrcu<Global, NonNull<Local>>,
}

/// A registration, shared by a handle and the guards that it has made: these may outlive it. It is
/// freed when both counts are 0. A guard that pins is in one of them only: so to pin and to unpin
/// changes one count, and nothing else while another guard of it pins.
pub(super) struct Local {
    thread: Thread,
    /// After the thread's registration: it keeps the domain.
    pub(super) collector: Collector,
    /// Guards that pin the thread. The first of them begins a section, and the last one ends it
    /// [EP-1].
    pub(super) guards: Cell<u64>,
    /// The handle, and guards that live and do not pin the thread.
    kept: Cell<u64>,
}

/// The thread in the domain.
enum Thread {
    Default(Reader),
    Own(Reader<Private>),
}

impl Local {
    /// Pins the thread by a guard more. Returns the slot of its section, which begins at `location`
    /// if there is none yet.
    #[inline]
    pub(super) fn pin(&self, location: &'static Location<'static>) -> &Slot {
        let guards = self.guards.get();
        if guards != 0 {
            self.guards.set(guards + 1);
            return match &self.thread {
                Thread::Default(reader) => reader.slot(),
                Thread::Own(reader) => reader.slot(),
            };
        }
        let slot = match &self.thread {
            Thread::Default(reader) => reader.enter(location),
            Thread::Own(reader) => reader.enter(location),
        };
        self.guards.set(1);
        slot
    }

    /// A guard that was kept pins the thread again.
    pub(super) fn pin_kept(&self, location: &'static Location<'static>) -> &Slot {
        let slot = self.pin(location);
        self.kept.set(self.kept.get() - 1);
        slot
    }

    /// A guard pins the thread no more, and lives on. Returns whether it was the last, so that the
    /// section is to be ended.
    pub(super) fn keep(&self) -> bool {
        self.kept.set(self.kept.get() + 1);
        self.guards.set(self.guards.get() - 1);
        self.guards.get() == 0 //~ unpins-early
    }

    /// A guard is gone. The last one of a registration ends the section.
    ///
    /// The slot is no reference, which as an argument would have to be valid until this returns:
    /// the registration may be what keeps the domain, whose slot it is.
    ///
    /// # Safety
    /// `local` is that guard's, which does not use it any more; or null, for one of the default
    /// collector's. `slot` is of its section.
    #[inline(always)]
    pub(super) unsafe fn unpin(local: *const Self, slot: *const Slot) {
        // SAFETY: null, or the guard is counted until here.
        let shared = unsafe { local.as_ref() };
        if let Some(shared) = shared {
            let others = shared.guards.get() - 1;
            shared.guards.set(others);
            //~ unpins-early:
            if others != 0 {
                return;
            }
        }
        // SAFETY: registered while its section lasts, in a domain that the registration keeps, or
        // the global one.
        if unsafe { &*slot }.leave_quietly() {
            // SAFETY: by the contract; it is counted no more.
            return unsafe { Self::unpin_slowly(local, slot) };
        }
        if shared.is_some_and(|shared| shared.kept.get() == 0) {
            // SAFETY: this was the last that shared it.
            unsafe { Self::free(local) };
        }
    }

    /// The rest of [`unpin`](Self::unpin) where user code may run, which may drop the handle.
    ///
    /// # Safety
    /// As there, and the guard is in no count.
    #[cold]
    #[inline(never)]
    unsafe fn unpin_slowly(local: *const Self, slot: *const Slot) {
        // SAFETY: as there; no other code has run since the section ended.
        let slot = unsafe { &*slot };
        // SAFETY: null, or not freed: for the same reason.
        let Some(shared) = (unsafe { local.as_ref() }) else { return slot.leave_slow() };
        shared.kept.set(shared.kept.get() + 1); //~ uncounted-unpin
        slot.leave_slow();
        // SAFETY: counted above, and not used any more.
        unsafe { Self::release(local) }; //~ uncounted-unpin
    }

    /// The handle is gone, or a guard that was kept.
    ///
    /// # Safety
    /// `local` is from it, and it does not use it any more.
    pub(super) unsafe fn release(local: *const Self) {
        // SAFETY: counted until here.
        let shared = unsafe { &*local };
        shared.kept.set(shared.kept.get() - 1);
        if shared.guards.get() | shared.kept.get() == 0 {
            // SAFETY: this was the last that shared it.
            unsafe { Self::free(local) };
        }
    }

    /// # Safety
    /// `local` is from `register`, and is used no more.
    #[cold]
    unsafe fn free(local: *const Self) {
        // SAFETY: by the contract.
        drop(unsafe { Box::from_raw(local.cast_mut()) });
    }
}

impl LocalHandle {
    /// Pins the thread until the guard is dropped.
    ///
    /// # Progress and cost
    /// As [`read`](crate::read).
    ///
    /// # Panics
    /// If sections are nested 2^32 deep.
    #[inline]
    #[track_caller]
    pub fn pin(&self) -> Guard {
        let slot = self.local().pin(Location::caller());
        // SAFETY: the section is of this slot, and the guard is counted. The registration's pointer
        // is the one from the box, which the last that shares it frees.
        unsafe { Guard::new(slot, self.local.0.as_ptr()) }
    }

    /// Whether a guard of this handle pins the thread.
    #[inline]
    pub fn is_pinned(&self) -> bool {
        self.local().guards.get() != 0
    }

    /// The collector.
    #[inline]
    pub fn collector(&self) -> &Collector {
        &self.local().collector
    }

    #[inline]
    fn local(&self) -> &Local {
        // SAFETY: counted until this is dropped.
        unsafe { self.local.0.as_ref() }
    }
}

impl Drop for LocalHandle {
    fn drop(&mut self) {
        // SAFETY: this is the handle.
        unsafe { Local::release(self.local.0.as_ptr()) };
    }
}

shown_in_part!([] LocalHandle);

/// The collector that [`pin`] uses: the global domain.
pub fn default_collector() -> &'static Collector {
    &DEFAULT
}

/// Pins the calling thread in the default collector until the guard is dropped.
///
/// # Progress and cost
/// As [`read`](crate::read): wait-free, and a few loads and stores. Dropping the thread's outermost
/// guard may wait, if the thread has deferred something over the domain's limit.
///
/// # Panics
/// If sections are nested 2^32 deep.
#[inline]
#[track_caller]
pub fn pin() -> Guard {
    // SAFETY: the section began with this slot.
    unsafe { Guard::new(guard::enter_global(Location::caller()), ptr::null()) }
}

/// Whether the calling thread is pinned in the default collector: in a section of the global
/// domain.
pub fn is_pinned() -> bool {
    crate::domain::raw::nesting(&Domain::global()) != 0
}
