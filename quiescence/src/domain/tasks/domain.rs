//! What tasks wait for in a domain, where threads would block.

use std::future::{Future, poll_fn};

use super::{Barrier, GracePeriod, RoomWaiter};
use crate::domain::domain::{Cookie, Domain};
use crate::domain::tag::DomainTag;
use crate::reclaim::defer::{self, Patience};
use crate::reclaim::free::Pending;
use crate::reclaim::retire::{AtLimit, Retire};

/// # For tasks
/// Futures that need no runtime and never block the thread that polls them. Each may be dropped at
/// any time. The library's worker thread drives the grace periods that no other thread drives; it
/// runs [callbacks](Domain::call), too, so one that blocks holds up the tasks.
///
/// These are most useful in [sleepable domains](crate::Srcu), whose guards may be held across an
/// `.await`. Where readers are threads, a task that waits in a section of its own thread waits for
/// ever, like a thread; here nothing panics.
impl<K: DomainTag> Domain<K> {
    /// As [`synchronize`](Self::synchronize), for tasks: asks for the grace period now, and ends
    /// when it has.
    ///
    /// To poll it may take a step of the grace period, which does not wait. Where readers are
    /// threads, the worker looks once in a millisecond whether they have left.
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
        GracePeriod::new(self.clone())
    }

    /// As [`wait`](Self::wait), for tasks: asks for the grace period of `cookie` now, if it is not
    /// over.
    ///
    /// # Panics
    /// If the cookie is another domain's.
    pub fn wait_async(&self, cookie: Cookie) -> impl Future<Output = ()> + Send + use<K> {
        GracePeriod::of(self.clone(), self.own(cookie))
    }

    /// As [`barrier`](Self::barrier), for tasks: ends when everything has run that was queued in
    /// this domain before the first poll, by any thread.
    ///
    /// A thread of its own makes the barrier, since that runs callbacks and waits for others. If
    /// the future is dropped, the thread ends by itself once they have run.
    ///
    /// ```
    /// # use quiescence::Srcu;
    /// async fn unload(plugins: &Srcu) {
    ///     plugins.barrier_async().await; // no callback of the plugin's is left
    /// }
    /// ```
    ///
    /// # Panics
    /// When it is polled, where a callback has begun a section of this domain on that thread, which
    /// keeps it, and a grace period is still to be waited for: as [`barrier`](Self::barrier), and
    /// with its message.
    pub fn barrier_async(&self) -> impl Future<Output = ()> + Send + use<K> {
        Barrier::new(self.clone())
    }

    /// As [`retire`](Self::retire), for tasks: at the limit it waits for room without blocking the
    /// thread.
    ///
    /// It waits for one grace period at most; then the object is queued, or dropped in the poll if
    /// there is still no room. So it goes over the limit only if that poll is in a section of its
    /// thread, where nothing may be dropped. It runs this thread's own drops as `retire` does.
    ///
    /// **If the future is dropped** before it is ready, polled or not, the object is retired over
    /// the limit: readers may still see it.
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
    /// When it is polled, as [`retire`](Self::retire).
    pub fn retire_async<P: Retire>(
        &self,
        object: P,
    ) -> impl Future<Output = ()> + Send + use<K, P> {
        let mut object = Kept { domain: self.clone(), object: Some(object) };
        async move {
            let mut limit = RoomWaiter::new(object.domain.clone());
            let queued =
                poll_fn(|context| limit.poll_object(context, || object.try_retire())).await;
            if !queued && let Some(cookie) = limit.cookie() {
                object.end(cookie);
            }
        }
    }

    /// As [`call`](Self::call), for tasks: at the limit it waits, without blocking the thread,
    /// until the worker has made room.
    ///
    /// Tasks that wait are woken in the order in which they came, and all of them where callbacks
    /// have been run: one that has just come may be ahead of one that waits. Goes over the limit
    /// only where no thread would make room: if nothing waits in the domain, in a callback, and if
    /// the system gives us no thread for the worker.
    ///
    /// **If the future is dropped** before it is ready, the closure is dropped with it, and not
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
            let (mut f, mut limit) = (Some(f), RoomWaiter::new(domain.clone()));
            let tag = domain.tag();
            let queued = poll_fn(|context| {
                limit.poll_closure(context, || {
                    let call = |f| defer::call(tag, f, Patience::Polls);
                    f = f.take().and_then(|f| Some(call(f).err()?.into_inner()));
                    f.is_none()
                })
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
            defer::end_after_wait(self.domain.tag(), timed);
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
