//! What tasks wait for in a sleepable domain.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::{Sleepable, Srcu};
use crate::domain::domain::Cookie;
use crate::domain::tasks::GracePeriod;
use crate::reclaim::retire::Retire;

/// # For tasks
/// Futures that need no runtime, and never block the thread that polls them.
impl Srcu {
    /// As [`synchronize`](Self::synchronize), for tasks: asks for the grace period now, and ends
    /// when it has.
    ///
    /// Needs no runtime: where no other thread drives the grace period, the library's worker thread
    /// does, and wakes the task. To poll it may take a step of the grace period, which does not
    /// wait. May be dropped at any time. The worker runs [callbacks](Self::call), too: one that
    /// blocks holds up tasks that wait.
    pub fn synchronize_async(&self) -> Synchronize<'_> {
        Synchronize { grace_period: GracePeriod::new(self.domain()), domain: PhantomData }
    }

    /// As [`wait`](Self::wait), for tasks.
    ///
    /// # Panics
    /// If the cookie is another domain's.
    pub fn wait_async(&self, cookie: Cookie) -> Synchronize<'_> {
        let cookie = self.sleepable().own(cookie);
        Synchronize { grace_period: GracePeriod::of(self.domain(), cookie), domain: PhantomData }
    }

    /// As [`barrier`](Self::barrier), for tasks. See
    /// [`Domain::barrier_async`](crate::Domain::barrier_async).
    pub fn barrier_async(&self) -> impl Future<Output = ()> + Send + use<> {
        self.sleepable().barrier_async()
    }

    /// As [`retire`](Self::retire), for tasks: waits for room, and never goes over the limit unless
    /// the future is dropped. See [`Domain::retire_async`](crate::Domain::retire_async).
    pub fn retire_async<P: Retire>(&self, object: P) -> impl Future<Output = ()> + Send + use<P> {
        self.sleepable().retire_async(object)
    }

    /// As [`call`](Self::call), for tasks: waits for room. See
    /// [`Domain::call_async`](crate::Domain::call_async).
    pub fn call_async<F: FnOnce() + Send + 'static>(
        &self,
        f: F,
    ) -> impl Future<Output = ()> + Send + use<F> {
        self.sleepable().call_async(f)
    }
}

/// A grace period that a task waits for: [`Srcu::synchronize_async`].
#[must_use = "the grace period has been asked for; whether it has ended is known once this has been awaited"]
pub struct Synchronize<'s> {
    grace_period: GracePeriod<Sleepable>,
    domain: PhantomData<&'s Srcu>,
}

impl Future for Synchronize<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.grace_period).poll(context)
    }
}

impl fmt::Debug for Synchronize<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cookie = self.grace_period.cookie();
        f.debug_struct("Synchronize").field("cookie", &cookie).finish_non_exhaustive()
    }
}
