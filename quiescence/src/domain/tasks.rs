//! What tasks wait for, as futures: the end of a grace period, room at the limit, a barrier.
//! [`crate::gp::grace_periods::sleepers`] says how they are told; what users call is in
//! `tasks/domain.rs`, and in the `tasks.rs` of [`crate::domain::srcu`] and [`crate::domain::rcu`].
//!
//! None of them needs a runtime, and none blocks the thread that polls it. Each may be dropped at
//! any time: then its waker is forgotten, and no task is woken on its behalf.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use grace::{Cookie, Urgency};

use crate::domain::domain::Domain;
use crate::domain::tag::DomainTag;
use crate::gp::grace_periods::sleepers::Wanted;
use crate::os::sync::{self, Mutex, Rank};
use crate::os::thread;
use crate::os::user_code::{self, Site};
use crate::reclaim::defer;
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::domains;
use crate::reclaim::local::Own;
use crate::reclaim::running;
use crate::reclaim::worker;

mod domain;

/// A task among those that a domain tells.
#[derive(Debug)]
pub(crate) struct Waiter<K: DomainTag> {
    domain: Domain<K>,
    /// What the domain knows it by.
    number: Option<u64>,
}

impl<K: DomainTag> Waiter<K> {
    pub(crate) fn new(domain: Domain<K>) -> Self {
        Self { domain, number: None }
    }

    fn core(&self) -> &DomainState {
        domains::known(self.domain.tag())
    }

    /// Has the task told of what is wanted. Returns whether the grace period among that is over, so
    /// that it is not.
    fn poll(&mut self, wanted: Wanted, context: &mut Context<'_>) -> bool {
        let core = self.core();
        if wanted.cookie.is_some_and(|cookie| !core.sequence().is_done(cookie)) {
            core.advance(Own::in_domain(core).me());
        }
        self.number = core.tell(wanted, self.number, context.waker());
        if self.number.is_none() {
            return true;
        }
        if running::in_callback() || !worker::attend(&self.domain.tag().handle()) {
            // The worker waits for this very task, perhaps, or the system gives us none: the task's
            // own thread has to do.
            user_code::run(Site::Wake, || context.waker().wake_by_ref());
        }
        false
    }

    /// The task has what it waited for.
    fn forget(&mut self) {
        if let Some(number) = self.number.take() {
            self.core().tell_no_more(number);
        }
    }
}

impl<K: DomainTag> Drop for Waiter<K> {
    fn drop(&mut self) {
        self.forget();
    }
}

/// A grace period that has been asked for.
#[derive(Debug)]
pub(crate) struct GracePeriod<K: DomainTag> {
    waiter: Waiter<K>,
    cookie: Cookie,
}

impl<K: DomainTag> GracePeriod<K> {
    /// A full one from now on.
    pub(crate) fn new(domain: Domain<K>) -> Self {
        let cookie = domains::known(domain.tag()).request(Urgency::Normal);
        Self { waiter: Waiter::new(domain), cookie }
    }

    /// The one of a cookie that this domain has given.
    pub(crate) fn of(domain: Domain<K>, cookie: Cookie) -> Self {
        let required = domains::known(domain.tag()).require(cookie, Urgency::Normal);
        required.expect("given by this domain");
        Self { waiter: Waiter::new(domain), cookie }
    }

    pub(crate) fn cookie(&self) -> Cookie {
        self.cookie
    }
}

impl<K: DomainTag> Future for GracePeriod<K> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let wanted = Wanted { cookie: Some(self.cookie), room: false };
        if self.waiter.poll(wanted, context) { Poll::Ready(()) } else { Poll::Pending }
    }
}

// Nothing in it is pinned.
impl<K: DomainTag> Unpin for GracePeriod<K> {}

/// A wait at a domain's limit.
#[derive(Debug)]
pub(crate) struct AtLimit<K: DomainTag> {
    waiter: Waiter<K>,
    /// A full grace period from the first time on that there was no room.
    cookie: Option<Cookie>,
}

impl<K: DomainTag> AtLimit<K> {
    pub(crate) fn new(domain: Domain<K>) -> Self {
        Self { waiter: Waiter::new(domain), cookie: None }
    }

    fn domain(&self) -> &Domain<K> {
        &self.waiter.domain
    }

    /// Calls `attempt`, which returns whether there was room for what it does, until it says so or
    /// a grace period has gone by: so it ends if sections do, even if others take all room. Ready
    /// with what `attempt` said last.
    pub(crate) fn poll_object(
        &mut self,
        context: &mut Context<'_>,
        mut attempt: impl FnMut() -> bool,
    ) -> Poll<bool> {
        if attempt() {
            self.waiter.forget();
            return Poll::Ready(true);
        }
        let domain = &self.waiter.domain;
        let cookie = *self.cookie.get_or_insert_with(|| defer::ask_for_room(domain.tag()));
        if self.waiter.poll(Wanted { cookie: Some(cookie), room: true }, context) {
            defer::run_own_objects(self.waiter.core());
            return Poll::Ready(attempt());
        }
        // What came free before the task was noted [TK-1].
        if !attempt() {
            return Poll::Pending;
        }
        self.waiter.forget();
        Poll::Ready(true)
    }

    /// The same for a closure, for which the worker has to make room: ends if callbacks do as well.
    /// It says `false` only where no thread would make any.
    pub(crate) fn poll_closure(
        &mut self,
        context: &mut Context<'_>,
        mut attempt: impl FnMut() -> bool,
    ) -> Poll<bool> {
        if attempt() {
            self.waiter.forget();
            return Poll::Ready(true);
        }
        let domain = &self.waiter.domain;
        self.cookie.get_or_insert_with(|| defer::ask_for_room(domain.tag()));
        let _: bool = self.waiter.poll(Wanted { cookie: None, room: true }, context);
        // Again each time: what others have queued meanwhile is not to wait for company.
        let is_attended = worker::hurry(&self.domain().tag().handle());
        // What came free before the task was noted [TK-1].
        let admitted = attempt();
        if admitted
            || !is_attended
            || running::in_callback()
            || defer::nothing_waits(self.waiter.core())
        {
            self.waiter.forget();
            return Poll::Ready(admitted);
        }
        Poll::Pending
    }
}

/// A barrier, on a thread of its own: it runs callbacks and waits for those that others run.
#[derive(Debug)]
pub(crate) struct Barrier<K: DomainTag> {
    domain: Domain<K>,
    /// What the thread says, and in which process it was started.
    started: Option<(Arc<Mutex<Said>>, u32)>,
}

/// How far the thread is.
#[derive(Debug, Default)]
struct Said {
    done: bool,
    waker: Option<Waker>,
}

impl<K: DomainTag> Barrier<K> {
    pub(crate) fn new(domain: Domain<K>) -> Self {
        Self { domain, started: None }
    }

    /// Starts the thread; `None` if the system gives none.
    fn start(&self) -> Option<Arc<Mutex<Said>>> {
        let said = Arc::new(Mutex::new(Rank::BarrierTask, Said::default()));
        let (domain, says) = (self.domain.clone(), Arc::clone(&said));
        let run = move || {
            domain.barrier();
            let mut said = sync::lock(&says);
            said.done = true;
            let waker = said.waker.take();
            drop(said);
            if let Some(waker) = waker {
                // It may panic: this thread is at its end.
                user_code::run(Site::Wake, || waker.wake());
            }
        };
        thread::start("quiescence-barrier", run).ok().map(|()| said)
    }
}

impl<K: DomainTag> Future for Barrier<K> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let process = std::process::id();
        if self.started.as_ref().is_none_or(|(_, started_in)| *started_in != process) {
            self.started = self.start().map(|said| (said, process));
        }
        let Some((said, _)) = &self.started else {
            // There may be a thread to be had the next time.
            user_code::run(Site::Wake, || context.waker().wake_by_ref());
            return Poll::Pending;
        };
        let waker = user_code::run(Site::WakerClone, || context.waker().clone());
        let mut said = sync::lock(said);
        if said.done {
            return Poll::Ready(());
        }
        let old = said.waker.replace(waker);
        drop(said);
        user_code::run(Site::WakerDrop, || drop(old));
        Poll::Pending
    }
}

// Nothing in it is pinned.
impl<K: DomainTag> Unpin for Barrier<K> {}

impl<K: DomainTag> Drop for Barrier<K> {
    /// The thread continues, and wakes no task.
    fn drop(&mut self) {
        if let Some((said, _)) = &self.started {
            let waker = sync::lock(said).waker.take();
            user_code::run(Site::WakerDrop, || drop(waker));
        }
    }
}
