//! Futures for what tasks wait for: the end of a grace period, room at the limit, a barrier.
//! [`crate::gp::grace_periods::sleepers`] says how tasks are woken. The functions that users call
//! are in `tasks/domain.rs`, and in the `tasks.rs` of [`crate::domain::rcu`].
//!
//! No future needs a runtime, and none blocks the thread that polls it. Each may be dropped at any
//! time; then its waker is removed, and no task is woken for it.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use grace::limit::Context::Outside;
use grace::{Cookie, Urgency};

use crate::domain::domain::Domain;
use crate::domain::tag::DomainTag;
use crate::event::trace;
use crate::gp::grace_periods::Me;
use crate::gp::grace_periods::sleepers::Wanted;
use crate::os::exit;
use crate::os::sync::{self, Mutex, Rank};
use crate::os::user_code::{self, Site};
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::{at_limit, defer, local, running, worker};

mod domain;

/// A task among those that a domain tells.
struct Waiter<K: DomainTag> {
    domain: Domain<K>,
    told: Option<Told>,
}

/// How a domain knows a task.
struct Told {
    number: u64,
    /// Another one of those that it has been given.
    waker: Waker,
    /// The worker sees to the domain as long as the task waits.
    is_attended: bool,
}

impl<K: DomainTag> Waiter<K> {
    fn core(&self) -> &DomainState {
        self.domain.core()
    }

    /// Ready if the grace period of `cookie` has ended, each time of the same one; else has the
    /// task told when it has. For a task whose waker is known already it takes no lock, but to take
    /// a step of the grace period, if it is free.
    fn poll(&mut self, cookie: Cookie, context: &mut Context<'_>) -> Poll<()> {
        if self.is_done(cookie) {
            self.told = None; // it is not known any more; see `knows`
            return Poll::Ready(());
        }
        let core = self.core();
        let is_told = self.told.as_ref().is_some_and(|told| {
            told.is_attended
                && told.waker.will_wake(context.waker())
                && core.grace_periods.knows(told.number)
        });
        if !is_told && self.tell(Wanted { cookie: Some(cookie), room: false }, context) {
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// Whether the grace period of `cookie` has ended, after a step of it perhaps. A task that the
    /// worker does not see to polls again and again: each time counts as a tick.
    fn is_done(&self, cookie: Cookie) -> bool {
        let grace_periods = &self.core().grace_periods;
        let is_tick = self.told.as_ref().is_some_and(|told| !told.is_attended);
        grace_periods.sequence().is_done(cookie) || {
            grace_periods.advance_at(Me::this_thread(), is_tick);
            grace_periods.sequence().is_done(cookie)
        }
    }

    /// Has the task told of what is wanted. Returns whether the grace period among that is over, so
    /// that it is not.
    fn tell(&mut self, wanted: Wanted, context: &mut Context<'_>) -> bool {
        let waker = user_code::run(Site::WakerClone, || context.waker().clone());
        let number = self.core().grace_periods.tell(
            wanted,
            self.told.as_ref().map(|told| told.number),
            &waker,
        );
        let Some(number) = number else {
            self.told = None;
            return true;
        };
        // Else the worker waits for this very task, perhaps, or the system gives us none: the
        // task's own thread has to do.
        let is_attended =
            !running::holds_up_worker() && worker::attend(&self.domain.tag().handle());
        self.told = Some(Told { number, waker, is_attended });
        if !is_attended {
            user_code::run(Site::Wake, || context.waker().wake_by_ref());
        }
        false
    }

    /// The task has what it waited for.
    fn forget(&mut self) {
        if let Some(told) = self.told.take() {
            self.core().grace_periods.tell_no_more(told.number);
        }
    }
}

impl<K: DomainTag> Drop for Waiter<K> {
    fn drop(&mut self) {
        self.forget();
    }
}

// Nothing in it is pinned.
impl<K: DomainTag> Unpin for Waiter<K> {}

/// Requests the grace period of a cookie that this domain has given. Ready when it has ended.
pub(crate) fn grace_period<K: DomainTag>(
    domain: Domain<K>,
    cookie: Cookie,
) -> impl Future<Output = ()> + Send + use<K> {
    domain.core().grace_periods.lock().require(cookie, Urgency::Normal);
    let mut waiter = Waiter { domain, told: None };
    poll_fn(move |context| waiter.poll(cookie, context))
}

/// Calls `attempt`, which returns whether there was room for an object, until it says so, or a full
/// grace period has gone by since it first said no: so it ends if sections do, even if others take
/// all room.
///
/// # Errors
/// The cookie of that grace period, after which `attempt` has said no once more.
pub(crate) async fn room_for_object<K: DomainTag>(
    domain: Domain<K>,
    mut attempt: impl FnMut() -> bool,
) -> Result<(), Cookie> {
    let (mut waiter, mut asked) = (Waiter { domain, told: None }, None);
    let ended = poll_fn(|context| {
        if attempt() {
            return Poll::Ready(None);
        }
        let cookie = *asked.get_or_insert_with(|| ask_for_room(&waiter.domain));
        let wanted = Wanted { cookie: Some(cookie), room: true };
        if waiter.is_done(cookie) || waiter.tell(wanted, context) {
            return Poll::Ready(Some(cookie));
        }
        // What came free before the task was noted [TK-1].
        if attempt() { Poll::Ready(None) } else { Poll::Pending }
    });
    let Some(cookie) = ended.await else { return Ok(()) };
    waiter.forget();
    let core = waiter.core();
    if at_limit::context() == Outside
        && let Some(queue) = local::own_objects(core)
    {
        // All that is ready, also where the domain is not near its limit any more: what the task
        // wants room for may be large.
        defer::run_share(core, &queue, u64::MAX);
    }
    if attempt() { Ok(()) } else { Err(cookie) }
}

/// The same for a closure, for which the worker has to make room: ends if callbacks do as well.
/// Returns what `attempt` said last: `false` only where no thread would make any.
pub(crate) async fn room_for_closure<K: DomainTag>(
    domain: Domain<K>,
    mut attempt: impl FnMut() -> bool,
) -> bool {
    let (mut waiter, mut asked) = (Waiter { domain, told: None }, None);
    let said = poll_fn(|context| {
        if attempt() {
            return Poll::Ready(true);
        }
        asked.get_or_insert_with(|| ask_for_room(&waiter.domain));
        let _: bool = waiter.tell(Wanted { cookie: None, room: true }, context);
        // Again each time: what others have queued meanwhile is not to wait for company.
        let is_attended = worker::hurry(&waiter.domain.tag().handle());
        // What came free before the task was noted [TK-1].
        let admitted = attempt();
        if admitted
            || !is_attended
            || running::holds_up_worker()
            || waiter.core().queues.is_empty(false)
        {
            return Poll::Ready(admitted);
        }
        Poll::Pending
    });
    said.await
}

/// A task has reached the limit: makes what waits ready as soon as possible. Asks for a grace
/// period that begins after this call, and returns its cookie.
#[cold]
fn ask_for_room<K: DomainTag>(domain: &Domain<K>) -> Cookie {
    let core = domain.core();
    trace::limit_reached(core.grace_periods.source(), true);
    if let Some(queue) = local::own_objects(core) {
        queue.close(core, Urgency::Expedited);
    }
    let cookie = core.grace_periods.lock().request(Urgency::Expedited);
    worker::hurry(&domain.tag().handle()); // without one, the polls do the work
    cookie
}

/// A barrier, on a thread of its own: it runs callbacks and waits for those that others run.
///
/// A panic of that thread continues in the task: [`Domain::barrier`] panics where the wait would
/// never end, and so does this.
struct Barrier<K: DomainTag> {
    domain: Domain<K>,
    started: Option<Started>,
}

/// The thread of a barrier.
struct Started {
    said: Arc<Mutex<Said>>,
    /// In which process it was started.
    process: u32,
}

/// How far the thread is.
#[derive(Debug, Default)]
struct Said {
    /// Once it has ended: what it has panicked with, if it has.
    ended: Option<std::thread::Result<()>>,
    waker: Option<Waker>,
}

/// A barrier in `domain`, from the first poll on.
pub(crate) fn barrier<K: DomainTag>(domain: Domain<K>) -> impl Future<Output = ()> + Send + use<K> {
    let mut barrier = Barrier { domain, started: None };
    poll_fn(move |context| barrier.poll(context))
}

impl<K: DomainTag> Barrier<K> {
    /// Starts the thread; `None` if the system gives none.
    fn start(&self, process: u32) -> Option<Started> {
        let said = Arc::new(Mutex::new(Rank::BarrierTask, Said::default()));
        let (domain, says) = (self.domain.clone(), Arc::clone(&said));
        let run = move || {
            let ended = catch_unwind(AssertUnwindSafe(|| domain.barrier()));
            let mut said = sync::lock(&says);
            said.ended = Some(ended);
            let waker = said.waker.take();
            drop(said);
            if let Some(waker) = waker {
                // It may panic: this thread is at its end.
                user_code::run(Site::Wake, || waker.wake());
            }
        };
        exit::start_thread("quiescence-barrier", Box::new(run))
            .ok()
            .map(|()| Started { said, process })
    }

    /// Forgets the thread, if this is a child of its process: it is gone, perhaps in the midst of
    /// saying something, and the waker is one of the parent's.
    fn forget_in_child(&mut self, process: u32) {
        std::mem::forget(self.started.take_if(|started| started.process != process));
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let process = std::process::id();
        self.forget_in_child(process);
        if self.started.is_none() {
            self.started = self.start(process);
        }
        let Some(started) = &self.started else {
            // There may be a thread to be had the next time.
            user_code::run(Site::Wake, || context.waker().wake_by_ref());
            return Poll::Pending;
        };
        let waker = user_code::run(Site::WakerClone, || context.waker().clone());
        let mut said = sync::lock(&started.said);
        let Some(ended) = said.ended.take() else {
            let old = said.waker.replace(waker);
            drop(said);
            user_code::run(Site::WakerDrop, || drop(old));
            return Poll::Pending;
        };
        drop(said);
        self.started = None; // polled again it would make another barrier
        match ended {
            Ok(()) => Poll::Ready(()),
            Err(panic) => resume_unwind(panic),
        }
    }
}

// Nothing in it is pinned.
impl<K: DomainTag> Unpin for Barrier<K> {}

impl<K: DomainTag> Drop for Barrier<K> {
    /// The thread continues, and wakes no task.
    fn drop(&mut self) {
        self.forget_in_child(std::process::id());
        if let Some(started) = &self.started {
            let waker = sync::lock(&started.said).waker.take();
            user_code::run(Site::WakerDrop, || drop(waker));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    /// Not `Waker::noop`, of which there may be several.
    struct Nothing;

    impl std::task::Wake for Nothing {
        fn wake(self: Arc<Self>) {
            drop(self);
        }
    }

    /// Where very many tasks wait, each poll of each searched them all under the lock of the
    /// domain.
    #[test]
    fn a_task_that_is_polled_again_takes_no_lock() {
        let domain = Domain::new();
        let core = domain.core();
        let mut task = pin!(grace_period(domain.clone(), core.grace_periods.snapshot()));
        let slot = core.grace_periods.register(1, crate::gp::slot::ReaderKind::Ordinary);
        slot.enter_slow(&core.grace_periods.gp_words.gp, std::panic::Location::caller());
        // A clone: under Miri the waker that it is cloned from has another table of functions, so
        // `will_wake` says no.
        let waker = Waker::from(Arc::new(Nothing)).clone();
        let mut poll = || task.as_mut().poll(&mut Context::from_waker(&waker));
        // Until the worker, which is notified, is in no step of the grace period.
        let state = loop {
            assert!(poll().is_pending());
            if let Some(state) = core.grace_periods.try_lock() {
                break state;
            }
        };
        assert!(poll().is_pending());
        drop(state);
        slot.leave();
        while poll().is_pending() {}
        core.grace_periods.unregister(slot);
    }
}
