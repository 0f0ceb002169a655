//! What a domain does after a grace period: calls, drops, and the barrier that waits for both.
//!
//! All of it goes to [`defer`], with the domain.

use std::panic::Location;

use crate::domain::domain::Domain;
use crate::domain::own_section::may_wait;
use crate::domain::tag::DomainTag;
#[cfg(doc)]
use crate::gp::tuning::Tuning;
use crate::reclaim::defer::{self, Patience};
use crate::reclaim::free::AtLimit;
use crate::reclaim::retire::{Retire, WithSize};
use crate::reclaim::worker;

impl<K: DomainTag> Domain<K> {
    /// Calls `f` after a grace period, on the worker thread or on a thread in
    /// [`barrier`](Self::barrier).
    ///
    /// The call is *lazy*: it waits for other callbacks before it requests a grace period, for at
    /// most [`Tuning::lazy`]; see [`call_hurry`](Self::call_hurry). Closures of up to four words
    /// need no allocation. Callbacks still queued at an orderly end of the process run then, unless
    /// sections prevent it: of other threads, or one in which `exit` is called.
    ///
    /// The callbacks that one thread queues in one domain run in order. A callback may queue
    /// others, itself included. It must not call `barrier`, which panics there. If a callback
    /// panics, the panic is reported like any other and counted, and the remaining callbacks still
    /// run. The worker is one thread for the whole process: a callback that blocks delays those of
    /// all domains.
    ///
    /// # Progress and cost
    /// A few plain stores to the thread's own memory; once in many calls, a lock and a step of a
    /// grace period. At the domain's limit ([`Tuning::objects_max`], [`Tuning::bytes_max`]) it
    /// waits until the worker has made room. **Do not hold a lock then that callbacks take, or that
    /// readers take in their sections**; or use [`try_call`](Self::try_call). (In a [sleepable
    /// domain](crate::Srcu#at-the-limit) it waits for at most 10 ms.)
    ///
    /// # Errors
    /// At the limit, if the thread may not wait: `f`, in an [`AtLimit`]. In a section of registered
    /// threads, a thread's first closure is still accepted; the next one is refused until there is
    /// room. In a callback, one closure is accepted for each callback that has run. In what else
    /// the library's own threads call (wakers, `tracing` subscribers, stall hooks), none is.
    #[inline(always)]
    pub fn call<F: FnOnce() + Send + 'static>(&self, f: F) -> Result<(), AtLimit<F>> {
        defer::call(self.tag(), f, Patience::Waits)
    }

    /// Like [`call`](Self::call), but does not wait for other callbacks: the worker attends to the
    /// domain at once.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    #[inline]
    pub fn call_hurry<F: FnOnce() + Send + 'static>(&self, f: F) -> Result<(), AtLimit<F>> {
        defer::call(self.tag(), f, Patience::Waits)?;
        worker::hurry(&self.tag().handle());
        Ok(())
    }

    /// Like [`call`](Self::call), but never waits: at the limit it returns `f`.
    ///
    /// # Errors
    /// At the limit.
    #[inline]
    pub fn try_call<F: FnOnce() + Send + 'static>(&self, f: F) -> Result<(), AtLimit<F>> {
        defer::call(self.tag(), f, Patience::Never)
    }

    /// Drops `object`, a [`Box`], an [`Arc`](std::sync::Arc) or another owner, after a grace
    /// period.
    ///
    /// Readers whose sections begin from now on must not be able to reach what it owns; the methods
    /// of [`Rcu`](crate::Rcu) ensure that themselves. The object is dropped by this thread when it
    /// next retires something outside of sections (a QSBR reader: at a quiescent state), by the
    /// worker thread, or by a thread in [`barrier`](Self::barrier); never by a reader. There is no
    /// allocation per object. A drop that panics is reported and counted, and does not stop other
    /// drops. Even without any further call, the object is dropped within [`Tuning::lazy`], one
    /// tick and one grace period.
    ///
    /// **An object whose drop takes a lock** must not be retired by a thread that holds that lock:
    /// this very call may drop an earlier object. Unlock first, or use
    /// `try_call(move || drop(object))`, which drops nothing and never waits. (At the limit
    /// [`call`](Self::call) waits for callbacks, which may take that lock.) **A lock that readers
    /// take in their sections** must not be held either if the limit may be reached, since this
    /// call then waits for those readers; or use [`try_retire`](Self::try_retire).
    ///
    /// # Progress and cost
    /// A few plain stores to the thread's own memory; at every 33rd call at the latest, a lock of
    /// the thread's own and the drops of some earlier objects; once in up to 8,192 calls, the fewer
    /// the larger the objects, a step of a grace period. At the domain's limit
    /// ([`Tuning::objects_max`], [`Tuning::bytes_max`]) it waits for a grace period. After that the
    /// object is queued, or dropped at once if there is still no room. It waits for sections only.
    /// (In a [sleepable domain](crate::Srcu#at-the-limit) it waits for at most 10 ms, then exceeds
    /// the limit.)
    ///
    /// # Errors
    /// In a section of registered threads, of any domain, a thread may not wait. There its first
    /// object that finds no room is accepted above the limit, and the thread waits when its
    /// outermost section ends; a second object is returned in an [`AtLimit`]. (A QSBR reader waits
    /// at its next quiescent state.)
    ///
    /// # Panics
    /// In debug builds, if a box at the same address is already retired and not yet freed, which
    /// only unsafe code can cause; the message names both places.
    #[track_caller]
    pub fn retire<P: Retire>(&self, object: P) -> Result<(), AtLimit<P>> {
        defer::retire(self.tag(), object, Patience::Waits)
    }

    /// Like [`retire`](Self::retire), for an owner of `bytes` bytes: one whose size is not known,
    /// or that owns more than [`Retire::bytes`] reports.
    ///
    /// ```
    /// let slabs: Vec<Vec<u8>> = (0..16).map(|_| vec![0; 65_536]).collect();
    /// let domain = quiescence::Domain::global();
    /// domain.retire_sized(slabs, 16 * 65_536).expect("not in a section");
    /// assert!(domain.statistics().bytes_waiting >= 16 * 65_536);
    /// # domain.barrier();
    /// ```
    ///
    /// # Errors
    /// As [`retire`](Self::retire).
    #[track_caller]
    pub fn retire_sized<P: Send + 'static>(
        &self,
        object: P,
        bytes: usize,
    ) -> Result<(), AtLimit<WithSize<P>>> {
        defer::retire(self.tag(), WithSize::new(object, bytes), Patience::Waits)
    }

    /// Like [`retire`](Self::retire), but never waits: at the limit it returns the object.
    ///
    /// # Errors
    /// At the limit. It may be reached early, because other threads have reserved room: see
    /// [`Tuning::objects_max`].
    #[track_caller]
    pub fn try_retire<P: Retire>(&self, object: P) -> Result<(), AtLimit<P>> {
        defer::retire(self.tag(), object, Patience::Never)
    }

    /// Waits until all callbacks and objects queued in this domain so far, by any thread, have run
    /// or been dropped.
    ///
    /// Blocks for grace periods and for callbacks, many of which it runs itself. So do not call it
    /// while holding a lock that they take, or in a section of another domain that they wait for.
    ///
    /// # Panics
    /// If the calling thread is in a section of this domain (even one that a callback has just
    /// begun on it and leaked, if there is still a grace period to wait for), or is running a
    /// callback. Either would deadlock.
    #[track_caller]
    pub fn barrier(&self) {
        let (core, location) = (self.core(), Location::caller());
        may_wait(core, "barrier", location);
        assert!(
            !crate::reclaim::running::in_callback(),
            "quiescence: barrier() called by a callback would wait for that callback; \
             queue the work with call() instead"
        );
        defer::barrier(core, || may_wait(core, "barrier", location));
    }
}
