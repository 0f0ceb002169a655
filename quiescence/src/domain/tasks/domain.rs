//! Waits of tasks in a domain, in which threads would block.

use std::future::Future;

use super::{barrier, grace_period, room_for_closure, room_for_object};
use crate::domain::cookie::Cookie;
use crate::domain::domain::Domain;
use crate::domain::tag::DomainTag;
use crate::reclaim::defer::{self, Patience};
use crate::reclaim::free::{AtLimit, Pending};
use crate::reclaim::retire::Retire;
use crate::reclaim::unlink;

/// # For tasks
/// Futures that need no runtime and never block the thread that polls them. Each may be dropped at
/// any time. The library's worker thread drives the grace periods that no other thread drives; it
/// runs [callbacks](Domain::call), too, so one that blocks holds up the tasks.
///
/// These are most useful in [sleepable domains](crate::Srcu), whose guards may be held across an
/// `.await`: but not across the `.await` of one of these, since **a task that waits in its own
/// section waits for ever**, here without a panic. (`retire_async` and `store_async` wait once the
/// limit is reached.) Where readers are threads, so does a task in a section of its own thread.
impl<K: DomainTag> Domain<K> {
    /// Async [`synchronize`](Self::synchronize): requests the grace period now, and completes when
    /// it has ended.
    ///
    /// Polling may take a step of the grace period, which does not block. If the domain's readers
    /// are threads, the worker checks every millisecond whether they have left their sections.
    ///
    /// ```
    /// # use quiescence::{Domain, Rcu};
    /// async fn replace(config: &Rcu<String>) -> String {
    ///     let old = config.swap(String::from("new"));
    ///     Domain::global().synchronize_async().await;
    ///     old.into_inner() // at once: its grace period is over
    /// }
    /// ```
    pub fn synchronize_async(&self) -> impl Future<Output = ()> + Send + use<K> {
        grace_period(self.clone(), self.core().grace_periods.snapshot())
    }

    /// Async [`wait`](Self::wait): requests the grace period of `cookie` now, unless it has ended.
    ///
    /// # Panics
    /// If the cookie belongs to another domain.
    #[track_caller]
    pub fn wait_async(&self, cookie: Cookie) -> impl Future<Output = ()> + Send + use<K> {
        grace_period(self.clone(), self.own(cookie))
    }

    /// Async [`barrier`](Self::barrier): completes when everything has run that any thread had
    /// queued in this domain before the first poll.
    ///
    /// A separate thread runs the barrier, since a barrier runs callbacks and waits for others. If
    /// the future is dropped, that thread ends by itself once they have run. As long as the system
    /// gives none, the task asks again and again: its executor does not sleep then.
    ///
    /// ```
    /// # use quiescence::Srcu;
    /// async fn unload(plugins: &Srcu) {
    ///     plugins.barrier_async().await; // no callback of the plugin is left
    /// }
    /// ```
    ///
    /// # Panics
    /// In a poll, if a callback has begun a section of this domain on the polling thread and leaked
    /// it, and there is still a grace period to wait for: as [`barrier`](Self::barrier) does, with
    /// the same message.
    pub fn barrier_async(&self) -> impl Future<Output = ()> + Send + use<K> {
        barrier(self.clone())
    }

    /// Async [`retire`](Self::retire): at the limit it waits for room without blocking the thread.
    ///
    /// It waits for at most one grace period. Then the object is queued, or dropped in the poll if
    /// there is still no room. So it exceeds the limit only if that poll runs inside a section of
    /// its thread, where nothing may be dropped. It runs this thread's own pending drops, as
    /// `retire` does.
    ///
    /// **If the future is dropped** before it is ready, polled or not, the object is retired over
    /// the limit, because readers may still see it.
    /// [`Statistics::limit_overruns`](crate::report::Statistics::limit_overruns) counts that.
    ///
    /// ```
    /// # use quiescence::Srcu;
    /// async fn forget(sessions: &Srcu, session: Box<[u8; 4096]>) {
    ///     sessions.retire_async(session).await;
    /// }
    /// ```
    ///
    /// # Panics
    /// In a poll, as [`retire`](Self::retire) does.
    pub fn retire_async<P: Retire>(
        &self,
        object: P,
    ) -> impl Future<Output = ()> + Send + use<K, P> {
        let mut object = Kept { domain: self.clone(), object: Some(object) };
        async move {
            let domain = object.domain.clone();
            if let Err(cookie) = room_for_object(domain, || object.try_retire()).await {
                object.end(cookie);
            }
        }
    }

    /// Async [`call`](Self::call): at the limit it waits, without blocking the thread, until the
    /// worker has made room.
    ///
    /// Waiting tasks are woken in the order of arrival, all of them whenever callbacks have been
    /// run; a task that has just arrived may overtake them. It exceeds the limit only if no thread
    /// would make room: if nothing is queued in the domain, in what the library's own threads call
    /// (callbacks, wakers), and if the system provides no thread for the worker.
    ///
    /// **If the future is dropped** before it is ready, the closure is dropped with it, and never
    /// called.
    ///
    /// ```
    /// # use quiescence::Srcu;
    /// async fn log(domain: &Srcu) {
    ///     domain.call_async(|| println!("a grace period has gone by")).await;
    /// }
    /// ```
    pub fn call_async<F: FnOnce() + Send + 'static>(
        &self,
        f: F,
    ) -> impl Future<Output = ()> + Send + use<K, F> {
        let domain = self.clone();
        async move {
            let (mut f, tag) = (Some(f), domain.tag());
            let queued = room_for_closure(domain.clone(), || {
                let call = |f| defer::call(tag, f, Patience::Polls);
                f = f.take().and_then(|f| Some(call(f).err()?.into_inner()));
                f.is_none()
            });
            if !queued.await
                && let Some(f) = f
            {
                let _queued: Result<(), _> = defer::call(tag, f, Patience::Unowed);
            }
        }
    }
}

/// An object that is not dropped before its grace period, whatever becomes of the task.
struct Kept<K: DomainTag, P: Retire> {
    domain: Domain<K>,
    object: Option<P>,
}

impl<K: DomainTag, P: Retire> Kept<K, P> {
    /// Queues it, if there is room.
    fn try_retire(&mut self) -> bool {
        let Some(object) = self.object.take() else { return true };
        let queued = defer::retire(self.domain.tag(), object, Patience::Polls);
        self.object = queued.err().map(AtLimit::into_inner);
        self.object.is_none()
    }

    /// There is no room, and the grace period of this cookie, which was asked for after it came
    /// here, may be over.
    fn end(&mut self, cookie: grace::Cookie) {
        if let Some(object) = self.object.take() {
            let pending = Pending::value(self.domain.core(), object);
            // SAFETY: by what is said above.
            let timed = unsafe { pending.since(cookie) };
            unlink::end_after_wait(self.domain.tag(), timed);
        }
    }
}

impl<K: DomainTag, P: Retire> Drop for Kept<K, P> {
    fn drop(&mut self) {
        if let Some(object) = self.object.take() {
            defer::retire_over(&self.domain.tag().handle(), object);
        }
    }
}
