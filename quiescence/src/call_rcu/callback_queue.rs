//! Callback queues: callbacks that any thread queues without allocating, and that a thread of yours
//! runs. The feature `call_rcu`, which is off by default.
//!
//! A [`CallbackQueue`] takes [`Head`]s, memory that the objects bring along, and hands them to a
//! *runner*: a thread that you have [`attend`](CallbackQueue::attend) to it. The runner takes all
//! there is, waits for one grace period, shared with everybody who wants one, and calls the
//! functions, first in, first out. What waits in a callback queue is charged to the domain's limit,
//! counted in its statistics, found by a `fork`, and waited for by [`Domain::barrier`].
//!
//! Prefer [`call`](crate::call) and [`retire`](crate::retire): they need no runner, and no unsafe
//! code. A callback queue is for C interfaces (`call_rcu` and its `call_rcu_data`), for pushes that
//! must not allocate, and for callbacks that want a thread of their own.
//!
//! # When the runner looks
//! After a batch it waits for company: as long as the domain's
//! [`lazy`](crate::tuning::Tuning::lazy), but at most 10 ms; threads that push meanwhile wake it
//! when many thousands wait. Where so many wait already, or a barrier waits, or memory is short, it
//! continues at once. A runner that finds nothing sleeps without a timer, and the push that comes
//! then wakes it, unless the callback queue is [quiet](Wakes::Never).
//!
//! # At the limit
//! A push is never refused. One that finds no room goes over the limit, and its answer says that
//! the callback queue is [crowded](Pushed::crowded); the caller then waits for room, where it may:
//! [`wait_for_room`]. That ends after 10 ms at the latest, so a lock that a callback wants may be
//! held meanwhile.
//!
//! # At the end of the process
//! What waits in a callback queue then is not run, unless its runner comes to it.
//!
//! Source of the idea: `call_rcu` of liburcu (Desnoyers et al., *User-Level Implementations of
//! Read-Copy Update*, 2012).

use std::sync::Arc;
use std::time::Duration;

use grace::limit::Zone;

use crate::domain::domain::Domain;
use crate::domain::tag::DomainTag;
use crate::event::trace;
use crate::gp::grace_periods::Me;
use crate::os::thread;
use crate::os::user_code::{self, Site};
use crate::reclaim::defer::{self, Patience};
use crate::reclaim::domain_state::{self, DomainState, Handle};
use crate::reclaim::head::{Anywhere, Function, Head};
use crate::reclaim::head_queue::{self, Shared, forget_head, is_twice_checked};
pub use crate::reclaim::head_queue::{Left, Pushed, QueuedTwice, Wakes};
use crate::reclaim::llist::Chain;
use crate::reclaim::local::{Sections, section_in};
use crate::reclaim::running;
use crate::reclaim::worker;

/// A queue of heads, and the thread that runs them. See the [module](self).
///
/// ```
/// use std::sync::Arc;
/// use quiescence::callback_queue::{CallbackQueue, Wakes};
/// use quiescence::{Domain, raw};
///
/// #[repr(C)]
/// struct Route {
///     head: raw::Head, // first, so that a pointer to it is one to the route
///     metric: u32,
/// }
///
/// unsafe extern "C" fn free_route(head: *mut raw::Head) {
///     // SAFETY: from a box of a route, below, whose head comes first.
///     drop(unsafe { Box::from_raw(head.cast::<Route>()) });
/// }
///
/// let callback_queue = Arc::new(CallbackQueue::new(&Domain::global(), Wakes::Runner));
/// let runner = std::thread::spawn({
///     let callback_queue = Arc::clone(&callback_queue);
///     move || callback_queue.attend(None).unwrap()
/// });
/// let route = Box::into_raw(Box::new(Route { head: raw::Head::new(), metric: 10 }));
/// // ... published, read, and unlinked ...
/// // SAFETY: a head in a box that no thread can reach any more.
/// let pushed = unsafe { callback_queue.push(route.cast(), free_route) };
/// assert!(!pushed.unwrap().crowded);
/// quiescence::barrier(); // the route is freed
/// callback_queue.stop();
/// runner.join().unwrap();
/// ```
#[derive(Debug)]
pub struct CallbackQueue {
    shared: Arc<Shared>,
    handle: Handle,
}

impl CallbackQueue {
    /// A callback queue of a domain, which no thread attends to yet. Allocates.
    pub fn new<K: DomainTag>(domain: &Domain<K>, wakes: Wakes) -> Self {
        let handle = domain.tag().handle();
        let shared = {
            let domain = domain_state::known(&handle);
            domain.callback_queues.add(domain, wakes)
        };
        Self { shared, handle }
    }

    fn core(&self) -> &DomainState {
        &self.handle
    }

    /// Has `function(head)` called after a grace period, by the thread that attends to the callback
    /// queue.
    ///
    /// What the caller did before is visible to the function. The heads that one thread pushes are
    /// run in order. `function` may push the head again, to this callback queue or another one. A
    /// panic in it cannot leave it, since it is C: it ends the process.
    ///
    /// # Progress and cost
    /// Lock-free; a compare-exchange, and nothing is allocated; now and then, for the first pushes
    /// of a thread each time, an addition to the same cache line, and one to the domain's charge.
    /// Wakes the runner where it sleeps, which happens once after each of its breaks.
    ///
    /// # Errors
    /// If the head is seen to wait already: always where it was the last one that was pushed,
    /// otherwise in builds with debug assertions and under `QUIESCENCE_DEBUG=1`. The callback queue
    /// is as it was. (What goes unseen here ends in the answer of [`attend`](Self::attend), as a
    /// rule.)
    ///
    /// # Safety
    /// As [`raw::call_head`](crate::raw::call_head): the head is valid, stays where it is, and is
    /// not used by anybody else until its function is called; sections that begin from now on
    /// cannot reach what the function ends; and `function(head)` may be called on any thread.
    #[inline]
    pub unsafe fn push(&self, head: *mut Head, function: Function) -> Result<Pushed, QueuedTwice> {
        let core = self.core();
        // SAFETY: by the contract.
        unsafe { self.shared.push(core, &core.callback_queues.waiting_room, head, function) }
    }

    /// Runs what is pushed, until it is asked to [stop](Self::stop), or until nothing has come for
    /// `idle_after`.
    ///
    /// A runner that is asked to stop finishes the batch that it is running.
    ///
    /// # Errors
    /// If some head was queued twice: what was pushed with it is lost, for its order is lost. No
    /// thread attends to the callback queue then.
    ///
    /// # Panics
    /// If the calling thread is in a section of the domain (also one that a callback has begun on
    /// it and kept), or runs a callback. No thread attends to the callback queue then.
    pub fn attend(&self, idle_after: Option<Duration>) -> Result<Left, QueuedTwice> {
        self.attend_and(idle_after, || ())
    }

    /// As [`attend`](Self::attend); calls `after_round` after each batch, where no lock of ours is
    /// held. It may call [`Domain::barrier`], which runs the callback queue then.
    ///
    /// # Errors
    /// As [`attend`](Self::attend).
    ///
    /// # Panics
    /// As [`attend`](Self::attend), and if `after_round` does.
    pub fn attend_and(
        &self,
        idle_after: Option<Duration>,
        mut after_round: impl FnMut(),
    ) -> Result<Left, QueuedTwice> {
        let domain = self.core();
        assert!(
            section_in(domain).is_none() && !running::in_callback(),
            "quiescence: a callback queue is attended to in a section of its domain, or in a \
             callback"
        );
        let me = || {
            // In liburcu domains, not asserted: the stall report shows it.
            assert!(
                section_in(domain).is_none() || domain.grace_periods.gp_words.liburcu.is_some(),
                "quiescence: a callback queue's runner would wait for itself: a callback, or what \
                 is called after a batch, has begun a section of its domain there and kept the \
                 guard"
            );
            Me::this_thread()
        };
        let after_round = || user_code::run(Site::Attend, &mut after_round);
        self.shared.attend(domain, &domain.callback_queues, idle_after, me, after_round)
    }

    /// Has the runner leave after the batch that it is running; and every later one at once, until
    /// [`restart`](Self::restart). Does not wait for it.
    pub fn stop(&self) {
        self.shared.stop(true);
    }

    /// Takes a [`stop`](Self::stop) back.
    pub fn restart(&self) {
        self.shared.stop(false);
    }

    /// Keeps callbacks from being begun, and waits until none is being run: for a `fork`, whose
    /// child then finds all that waits. Calls are counted. In a callback of this callback queue it
    /// does not wait.
    ///
    /// A child has no pauses, since the threads that would end them may not be there: pause it
    /// again where nothing is to be begun yet.
    pub fn pause(&self) {
        self.shared.pause();
    }

    /// Ends a [`pause`](Self::pause). If there is none, as in a child, it does nothing.
    pub fn resume(&self) {
        self.shared.resume();
    }

    /// Says that a thread is about to attend to the callback queue: a barrier leaves it to that
    /// one, and runs nothing here itself.
    pub fn expect(&self) {
        self.shared.expect();
    }

    /// Says that the thread that was to attend to the callback queue could not: the next push finds
    /// again that none does.
    ///
    /// # Errors
    /// If a head turns out to be queued twice, where that is checked.
    pub fn neglect(&self) -> Result<(), QueuedTwice> {
        self.shared.neglect()
    }

    /// Whether some thread attends to it now.
    pub fn is_attended(&self) -> bool {
        self.shared.is_attended()
    }

    /// Whether the calling thread attends to it.
    pub fn is_attended_here(&self) -> bool {
        self.shared.is_attended_by(thread::token())
    }

    /// Whether nothing waits in it, nor is being run. Takes a lock.
    pub fn is_empty(&self) -> bool {
        self.shared.is_empty()
    }

    /// Moves all that waits to the end of another callback queue of the same domain. Waits until no
    /// callback of this callback queue is being run, unless by the calling thread; so what one
    /// thread has pushed stays in order.
    ///
    /// # Errors
    /// As [`attend`](Self::attend).
    ///
    /// # Panics
    /// If it is another domain's, or the same callback queue.
    pub fn hand_over(&self, to: &Self) -> Result<Pushed, QueuedTwice> {
        assert!(
            std::ptr::eq(self.core(), to.core()) && !Arc::ptr_eq(&self.shared, &to.shared),
            "quiescence: a callback queue is handed over to itself, or to one of another domain"
        );
        self.core().callback_queues.hand_over(self.core(), &self.shared, &to.shared)
    }
}

impl Drop for CallbackQueue {
    /// What is left is run by the worker.
    fn drop(&mut self) {
        let callback_queues = &self.handle.callback_queues;
        callback_queues.end(&self.handle, &self.shared, |left| run_by_worker(&self.handle, left));
    }
}

/// Has the worker run what a callback queue has left.
fn run_by_worker(handle: &Handle, mut left: Chain) {
    handle.charge.give_back(head_queue::amount(left.count()));
    let has_mark = left.links() != left.count();
    while let Some((link, marks)) = left.pop() {
        let head = Anywhere(link.cast::<Head>());
        let run = move || {
            if is_twice_checked() && !marks {
                forget_head(head.get());
            }
            // SAFETY: by the contract of `CallbackQueue::push`: it runs once, after a grace period.
            unsafe { Head::run(head.get()) };
        };
        //~ lost-callback-queue
        let _queued: Result<(), _> = defer::call(handle, run, Patience::InAnyCase);
    }
    if has_mark {
        worker::hurry(handle); // a barrier waits for the callbacks
    }
}

/// Waits until the domain has room again, but 10 ms at most. Does nothing in a section of
/// registered threads, of whatever domain, or in a callback: nothing may be waited for there.
pub fn wait_for_room<K: DomainTag>(domain: &Domain<K>) {
    let domain = domain.core();
    let may_wait = Sections::of_this_thread() == Sections::None && !running::in_callback();
    if domain.zone() == Zone::Full {
        trace::limit_reached(domain.grace_periods.source(), may_wait);
    }
    if may_wait {
        domain.callback_queues.waiting_room.wait(domain);
    }
}

/// Whether the calling thread is running callbacks, of whatever domain.
pub fn in_callback() -> bool {
    running::in_callback()
}

/// Whether heads that wait are remembered, so that one that is queued twice is found: in builds
/// with debug assertions, and under `QUIESCENCE_DEBUG=1`.
pub fn remembers_heads() -> bool {
    is_twice_checked()
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;
    use crate::gp::tuning::Tuning;
    use crate::os::sync::array_of;

    unsafe extern "C" fn nothing(_: *mut Head) {}

    /// One that has heard that somebody waits need not be told again.
    #[test]
    fn pushes_over_the_limit_ring_once() {
        let domain = Domain::new();
        domain.tune(Tuning { objects_max: 10, ..domain.tuning() });
        let callback_queue = CallbackQueue::new(&domain, Wakes::Runner);
        let mut heads = array_of![Head::new(); 50];
        let mut crowded = 0;
        for head in &mut heads {
            // SAFETY: run by the barrier, before it goes.
            crowded += u32::from(unsafe { callback_queue.push(head, nothing) }.unwrap().crowded);
        }
        assert_eq!((crowded, callback_queue.shared.front.0.llist.heard()), (40, 1));
        domain.barrier();
    }

    /// A thread counts blocks of its pushes; what it has not counted yet the runner counts.
    #[test]
    fn what_is_taken_is_counted() {
        let domain = Domain::new();
        let (one, other) = [(); 2].map(|()| CallbackQueue::new(&domain, Wakes::Runner)).into();
        let mut heads = array_of![Head::new(); 500];
        for (number, head) in heads.iter_mut().enumerate() {
            let callback_queue = if number < 300 { &one } else { &other };
            // SAFETY: run by the barrier, before it goes.
            let pushed = unsafe { callback_queue.push(head, nothing) };
            assert!(!pushed.unwrap().crowded);
        }
        let queued = domain.statistics().callbacks_queued;
        assert!(queued < 500, "each is counted at once: {queued}");
        domain.barrier();
        let statistics = domain.statistics();
        assert_eq!((statistics.callbacks_queued, statistics.callbacks_run), (500, 500));
        drop((one, other));
        assert!(domain.core().charge.get().is_none(), "all of it is given back");
    }

    /// It is held for moments by runners, barriers and forks; a thread that holds it may lose its
    /// CPU.
    #[test]
    fn a_push_waits_for_no_lock_of_its_callback_queue() {
        let domain = Domain::new();
        let callback_queue = CallbackQueue::new(&domain, Wakes::Runner);
        let mut head = Head::new();
        let inner = crate::os::sync::lock(&callback_queue.shared.inner);
        // SAFETY: run by the barrier, before it goes.
        let pushed = unsafe { callback_queue.push(&mut head, nothing) }.unwrap();
        drop(inner);
        assert!(pushed.unattended && !pushed.crowded);
        domain.barrier();
    }

    /// Pushes a head of the caller's as if nothing had been remembered of it, as in a release.
    fn push_unseen(callback_queue: &CallbackQueue, head: *mut Head) {
        // SAFETY: the caller's, and no thread runs it now.
        let link = unsafe { Head::set(head, nothing) };
        // SAFETY: not at all, where it waits already; that this ends well is what is tested.
        unsafe { callback_queue.shared.front.0.llist.push(link, false) };
    }

    /// The barrier's mark was given up with the heads, and the barrier waited for ever.
    #[test]
    fn a_barrier_ends_where_a_head_was_queued_twice() {
        let domain = Domain::new();
        let callback_queue = CallbackQueue::new(&domain, Wakes::Runner);
        let mut heads = array_of![Head::new(); 2];
        let [one, two] = heads.each_mut().map(ptr::from_mut);
        push_unseen(&callback_queue, one);
        push_unseen(&callback_queue, two);
        push_unseen(&callback_queue, one);
        domain.barrier();
        assert!(callback_queue.is_empty() && !callback_queue.is_attended());
        let mut third = Head::new();
        // SAFETY: run by the barrier, before it goes.
        assert!(unsafe { callback_queue.push(&mut third, nothing) }.unwrap().unattended);
        domain.barrier();
        assert!(callback_queue.is_empty());
    }

    /// The next push found nothing to say, as if the runner were there.
    #[test]
    fn no_thread_attends_after_a_runner_that_found_a_head_queued_twice_at_once() {
        let domain = Domain::new();
        let callback_queue = CallbackQueue::new(&domain, Wakes::Runner);
        let mut heads = array_of![Head::new(); 3];
        let [one, two, three] = heads.each_mut().map(ptr::from_mut);
        push_unseen(&callback_queue, one);
        push_unseen(&callback_queue, two);
        push_unseen(&callback_queue, one);
        assert!(callback_queue.attend(Some(Duration::ZERO)).is_err());
        // SAFETY: run by the barrier, before it goes.
        assert!(unsafe { callback_queue.push(three, nothing) }.unwrap().unattended);
        domain.barrier();
    }

    /// A visitor that found such a head left, and woke no runner that waited for it to go.
    #[test]
    fn a_runner_comes_after_a_visitor_that_has_given_up() {
        let domain = Domain::new();
        let callback_queue = CallbackQueue::new(&domain, Wakes::Runner);
        let mut heads = array_of![Head::new(); 3];
        let [one, two, three] = heads.each_mut().map(ptr::from_mut);
        for head in [one, two, three] {
            push_unseen(&callback_queue, head);
        }
        let waits_for_visitor = || crate::os::sync::lock(&callback_queue.shared.inner).waiters != 0;
        let (inside, leaves) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let guard = domain.read();
                inside.wait();
                leaves.wait();
                drop(guard);
            });
            inside.wait();
            let barrier = scope.spawn(|| domain.barrier());
            while !callback_queue.is_attended() {
                std::thread::yield_now();
            }
            let runner = scope.spawn(|| callback_queue.attend(Some(Duration::ZERO)));
            while !waits_for_visitor() {
                std::thread::yield_now();
            }
            push_unseen(&callback_queue, two); // the chain that the visitor has is torn
            leaves.wait();
            barrier.join().unwrap();
            assert_eq!(runner.join().unwrap(), Ok(Left::Idle));
        });
    }
}
