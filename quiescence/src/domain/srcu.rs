//! Sleepable domains (SRCU): [`Srcu`], whose sections may last, move to other threads, and be held
//! across `.await`.
//!
//! Readers are counted, not registered: [`counts`](crate::srcu::counts) says how. `grace::srcu`
//! says how a grace period uses the counts, and `srcu/driver.rs` who drives it. Everything else
//! (callbacks, limits, statistics, reports) is as in other domains. So an [`Srcu`] is a place for
//! the counts and, from the first grace period on, a [`Domain<Sleepable>`]: see
//! `reclaim/sleepable.rs`.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::Location;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use grace::srcu::AdaptiveDelay;

use crate::domain::domain::Domain;
use crate::domain::impls::{default_by, shown_in_part};
use crate::domain::tag::{DomainTag, Section};
use crate::reclaim::domain_state::{DomainState, Handle, Named};
use crate::reclaim::sleepable::SleepableDomain;
use crate::srcu::{self, Place, SrcuCounts, track};

/// A sleepable domain: its sections may block for as long as they like, begin on one thread and end
/// on another, and be held across an `.await`.
///
/// No thread registers. A reader counts itself in and out on its current CPU, under one of two
/// indexes, of which one is current. A grace period waits only for the sections of its own domain.
/// So use one domain per subsystem, or even per object: the sections of one may last for minutes
/// without any effect on the updaters of the others.
///
/// ```
/// use quiescence::Srcu;
///
/// static ZONES: Srcu = Srcu::new();
///
/// let serial = ZONES.rcu(1);
/// let guard = ZONES.read();
/// let seen = serial.load(&guard);
/// let also_here = std::thread::spawn(move || drop(guard)); // ends on another thread
/// also_here.join().unwrap();
/// serial.store(2); // the 1 is dropped after a grace period
/// ZONES.synchronize();
/// ```
///
/// A guard in a task, held across an `.await`, and a grace period that is awaited:
/// ```
/// # use quiescence::Srcu;
/// static CONFIG: Srcu = Srcu::new();
///
/// async fn serve() {
///     let guard = CONFIG.read();
///     std::future::ready(()).await; // something that takes long
///     drop(guard);
/// }
///
/// async fn replace() {
///     CONFIG.synchronize_async().await; // every section that had begun has ended
///     CONFIG.retire_async(Box::new([0; 1000])).await; // at the limit, waits for room
/// }
/// # fn is_send<T: Send>(task: T) -> T { task }
/// # let mut task = Box::pin(is_send(async { serve().await; replace().await }));
/// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// # while task.as_mut().poll(&mut context).is_pending() {}
/// ```
///
/// # Cost
/// Beginning and ending a section each increment a word of the current CPU. With restartable
/// sequences this takes no locked instruction and no fence
/// ([`PerCpuPath::Restartable`](crate::tuning::PerCpuPath)); on the portable path, one atomic
/// addition each. Wait-free, except for the first sections in a domain and in the process, which
/// map memory and choose how to count ([`per_cpu_path`](crate::tuning::per_cpu_path)). Safe in
/// a signal handler, unless guards are [tracked](Self::track_guards).
///
/// A grace period reads the counts of all CPUs twice, with a heavy fence each time.
///
/// Memory: an unused domain takes 32 bytes. The first read adds a cache line; heavy use adds
/// 32 bytes for each CPU; the first grace period or callback adds some 2 KiB, plus whatever is
/// queued.
///
/// # At the limit
/// At the limit that the domain's [tuning](Domain::tune) sets, an update waits for a grace period,
/// in every kind of domain. In a sleepable domain the section that delays this grace period may be
/// the calling thread's own, or belong to a task that only the calling thread would poll. The
/// domain cannot know, since guards move between threads and tasks. Therefore
/// [`retire`](Domain::retire), [`call`](Domain::call), the `store` and `update` of
/// [`Rcu`](crate::Rcu), and a dropped [`Unlinked`](crate::Unlinked) **wait for at most 10 ms and
/// then exceed the limit**. Nothing is lost, nothing hangs, and
/// [`Statistics::limit_overruns`](crate::report::Statistics::limit_overruns) counts it. While a
/// section does not end, each thread can add a hundred objects per second in this way. (In a
/// section of a domain that is not sleepable a thread waits for nothing: there updates exceed the
/// limit at once, each time, and `retire` or `call` does once, then is refused.)
///
/// If the limit must hold, use the methods that never exceed it this way.
/// [`try_retire`](Domain::try_retire), [`try_call`](Domain::try_call) and, with one exception,
/// [`Rcu::try_store`](crate::Rcu::try_store) return their argument;
/// [`retire_async`](Domain::retire_async), [`call_async`](Domain::call_async),
/// [`Rcu::store_async`](crate::Rcu::store_async) and
/// [`Rcu::update_async`](crate::Rcu::update_async) are futures that wait for room without blocking
/// the thread. **Tasks should await these**, and [`synchronize_async`](Domain::synchronize_async),
/// [`barrier_async`](Domain::barrier_async) and
/// [`Unlinked::into_inner_async`](crate::Unlinked::into_inner_async), instead of calling the
/// blocking methods.
///
/// # Pitfalls
/// - **A thread that waits for a grace period in a section of the same domain deadlocks**: in
///   [`synchronize`](Domain::synchronize), [`wait`](Domain::wait), [`barrier`](Domain::barrier),
///   and [`Unlinked::into_inner`](crate::Unlinked::into_inner) before the value's grace period has
///   ended. So does a thread that waits for sections of tasks that only it would poll: await
///   instead. Nothing panics here; the stall is reported
///   ([`set_stall_hook`](crate::report::set_stall_hook)).
/// - **Wakers of tasks run on the thread that drives the grace period or runs callbacks.** That may
///   be any thread that waits, polls or retires here, so it must not hold a lock that a waker
///   takes.
/// - Other domains do not know about these sections: retiring something there may drop earlier
///   objects inside one, or wait.
/// - A guard that is leaked, or held by a task that never ends, is a section that never ends.
/// - In a child process made by `fork`, sections of threads that do not exist there never end. See
///   [`forget_sections`](Self::forget_sections).
///
/// # Source
/// Sleepable RCU (McKenney 2006; Linux, `kernel/rcu/srcutree.c`), with counters updated by
/// restartable sequences (Turner, Hunter, Desnoyers) instead of disabled preemption, and with
/// `membarrier(2)` instead of fences in readers.
pub struct Srcu(SleepableDomain);

impl Srcu {
    /// Creates a domain without readers; may be a static.
    pub const fn new() -> Self {
        Self(SleepableDomain::new())
    }

    /// Creates a domain with a name, which appears in stall reports and statistics.
    pub const fn named(name: &'static str) -> Self {
        Self(SleepableDomain::named(name))
    }

    /// With other waits between looks: for benchmarks.
    #[doc(hidden)]
    pub const fn with_delay(delay: &'static AdaptiveDelay) -> Self {
        Self(SleepableDomain::with_delay(delay))
    }

    /// Begins a section.
    ///
    /// Wait-free. The first section in a domain takes a cache line from the system.
    ///
    /// # Panics
    /// If the system has no memory for the domain's first section.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> SrcuGuard<'_> {
        SrcuGuard(srcu::Section::begin(self.srcu_counts(), Location::caller()))
    }

    /// Begins a section whose guard keeps the domain alive: for domains created at run time, in
    /// tasks and threads that are `'static`.
    ///
    /// ```
    /// use quiescence::Srcu;
    /// use std::sync::Arc;
    ///
    /// let domain = Arc::new(Srcu::new());
    /// let guard = domain.read_owned();
    /// std::thread::spawn(move || drop(guard)).join().unwrap();
    /// domain.synchronize();
    /// ```
    ///
    /// # Panics
    /// As [`read`](Self::read).
    #[inline]
    #[track_caller]
    pub fn read_owned(self: &Arc<Self>) -> SrcuOwnedGuard {
        SrcuOwnedGuard(srcu::Section::begin(Arc::clone(self), Location::caller()))
    }

    /// The domain as a [`Domain`], for [`Rcu::new_in`](crate::Rcu::new_in) and code that is generic
    /// over domains. It is the same domain: its grace periods wait for these sections.
    pub fn domain(&self) -> Domain<Sleepable> {
        Domain::clone(self)
    }

    /// Turns on or off the tracking of guards: with it, each guard created from now on is listed
    /// with its place and its thread.
    ///
    /// Stall reports then name the oldest listed guard
    /// ([`StallReport::oldest_guard`](crate::report::StallReport::oldest_guard)). A section then
    /// costs a lock and an entry in a table, and must not be begun in a signal handler. Guards
    /// created earlier are not listed.
    pub fn track_guards(&self, on: bool) {
        self.srcu_counts().track(on);
    }

    /// Treats every section of this domain as ended: for a child process, which lacks the threads
    /// that held them.
    ///
    /// # Safety
    /// Every live guard of this domain in this process was lost with its thread in a `fork`, and
    /// will never be dropped.
    pub unsafe fn forget_sections(&self) {
        self.srcu_counts().forget_sections();
        track::forget_all(self.srcu_counts().address());
    }
}

impl Place for Srcu {
    #[inline(always)]
    fn srcu_counts(&self) -> &SrcuCounts {
        self.0.srcu_counts()
    }
}

/// All that a [`Domain`] has, but for sections: those are the [`Srcu`]'s own.
impl Deref for Srcu {
    type Target = Domain<Sleepable>;

    fn deref(&self) -> &Domain<Sleepable> {
        let state = ptr::from_ref(self.0.state_place());
        // SAFETY: a domain is its tag, and this tag is such a pointer. The reference that it stands
        // for is the `Srcu`'s, and is not dropped by who borrows it.
        unsafe { &*state.cast() }
    }
}

default_by!(new, impl Default for Srcu);

shown_in_part!([] Srcu {
    name: |srcu| srcu.0.name(),
    sections: |srcu| srcu.0.srcu_counts_if_any().map_or(0, SrcuCounts::sections),
    grace_periods: |srcu| {
        srcu.0.state_if_any().map_or(0, |state| state.grace_periods.sequence().ended())
    }
});

/// The tag of the domain that an [`Srcu`] contains: see [`Srcu::domain`].
// A reference that is counted, as an `Arc`; in the form in which a `SleepableDomain` has it.
#[repr(transparent)]
pub struct Sleepable(NonNull<DomainState>);

// SAFETY: an `Arc<DomainState>` is.
unsafe impl Send for Sleepable where Arc<DomainState>: Send {}

// SAFETY: as above.
unsafe impl Sync for Sleepable where Arc<DomainState>: Sync {}

impl Clone for Sleepable {
    fn clone(&self) -> Self {
        // SAFETY: from `Arc::into_raw`, and one of its references is this one.
        unsafe { Arc::increment_strong_count(self.0.as_ptr()) };
        Self(self.0)
    }
}

impl Drop for Sleepable {
    fn drop(&mut self) {
        // SAFETY: as above; it is given up.
        unsafe { Arc::decrement_strong_count(self.0.as_ptr()) };
    }
}

impl Named for Sleepable {
    fn core(&self) -> &DomainState {
        // SAFETY: one of its references is this one.
        unsafe { self.0.as_ref() }
    }

    fn handle(&self) -> Handle {
        let reference = ManuallyDrop::new(self.clone());
        // SAFETY: from `Arc::into_raw`, with the clone's reference, which is not given up.
        Handle::Shared(unsafe { Arc::from_raw(reference.0.as_ptr()) })
    }
}

// SAFETY: clones lead to the same place.
unsafe impl DomainTag for Sleepable {
    const STATIC: bool = false;

    type Section<'k> = SrcuGuard<'k>;

    #[inline]
    fn enter(&self, location: &'static Location<'static>) -> SrcuGuard<'_> {
        SrcuGuard(srcu::Section::begin(self.core().srcu_counts(), location))
    }
}

impl fmt::Debug for Sleepable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sleepable").field(&self.core().grace_periods.observers.label()).finish()
    }
}

/// A section of a sleepable domain; it ends when the guard is dropped, on whatever thread.
///
/// A reference from [`Rcu::load`](crate::Rcu::load) under the guard is valid while the guard lives.
#[must_use = "the section ends when the guard is dropped"]
pub struct SrcuGuard<'s>(srcu::Section<&'s SrcuCounts>);

// SAFETY: its lock count is not matched by an unlock count until it is dropped, so no grace period
// that begins meanwhile ends (`grace::srcu`, [TB-2] and [TB-3]).
unsafe impl<P: Place> Section<Sleepable> for srcu::Section<P> {
    #[inline(always)]
    fn core(&self) -> *const DomainState {
        self.state().cast()
    }
}

// SAFETY: its section's.
unsafe impl Section<Sleepable> for SrcuGuard<'_> {
    #[inline(always)]
    fn core(&self) -> *const DomainState {
        self.0.core()
    }
}

shown_in_part!([] SrcuGuard<'_>);

/// Like [`SrcuGuard`], but keeps the domain alive. Returned by [`Srcu::read_owned`].
#[must_use = "the section ends when the guard is dropped"]
pub struct SrcuOwnedGuard(srcu::Section<Arc<Srcu>>);

// SAFETY: its section's.
unsafe impl Section<Sleepable> for SrcuOwnedGuard {
    #[inline(always)]
    fn core(&self) -> *const DomainState {
        self.0.core()
    }
}

shown_in_part!([] SrcuOwnedGuard { srcu: |guard| &guard.0.place });

#[cfg(test)]
mod tests {
    use super::*;

    /// What the documentation of [`Srcu`] says a domain takes.
    #[test]
    fn domains_are_small() {
        assert!(size_of::<Srcu>() <= 32);
        assert!(size_of::<SrcuCounts>() <= 64);
        assert!(size_of::<DomainState>() <= 2_048);
    }
}
