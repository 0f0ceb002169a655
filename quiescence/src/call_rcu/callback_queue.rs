//! Callback queues: any thread queues callbacks without allocating, and a thread of yours runs
//! them. Requires the feature `call_rcu`, which is off by default.
//!
//! A [`CallbackQueue`] takes [`Head`]s, which are embedded in the objects, and passes them to a
//! *runner*: a thread that [`attend`](CallbackQueue::attend)s to it. The runner takes all queued
//! heads, waits for one grace period, shared with all other waiters, and calls the functions in
//! first-in, first-out order. Heads in a callback queue are charged to the domain's limit, counted
//! in its statistics, found by a `fork`, and waited for by [`Domain::barrier`].
//!
//! Prefer [`call`](crate::call) and [`retire`](crate::retire): they need no runner, and no unsafe
//! code. Callback queues are for C interfaces (`call_rcu` and its `call_rcu_data`), for pushes that
//! must not allocate, and for callbacks that need a thread of their own.
//!
//! # When the runner runs
//! After a batch it waits for more callbacks, for as long as the domain's
//! [`lazy`](crate::tuning::Tuning::lazy) but at most 10 ms. Threads that push meanwhile wake it
//! once many thousands are queued. If so many are queued already, if a barrier waits, or if memory
//! is short, it continues at once. A runner that finds the queue empty sleeps without a timer, and
//! the next push wakes it, unless the callback queue is [quiet](Wakes::Never).
//!
//! # At the limit
//! A push is never refused. If there is no room, it exceeds the limit, and its result says that the
//! callback queue is [crowded](Pushed::crowded). The caller then waits for room, if it may:
//! [`wait_for_room`]. That takes at most 10 ms, so the caller may hold a lock that a callback
//! takes.
//!
//! # At the end of the process
//! Callbacks still in a callback queue are not run, unless its runner gets to them.
//!
//! Source of the idea: `call_rcu` of liburcu (Desnoyers et al., *User-Level Implementations of
//! Read-Copy Update*, 2012).

use std::time::Duration;

use grace::limit::Zone;

use crate::domain::domain::Domain;
use crate::domain::tag::DomainTag;
use crate::event::trace;
use crate::gp::grace_periods::Me;
use crate::os::user_code::{self, Site};
use crate::reclaim::defer::{self, Patience};
use crate::reclaim::domain_state::{self, Handle};
use crate::reclaim::head::{Anywhere, Head};
use crate::reclaim::head_queue::{self, forget_head, is_twice_checked};
pub use crate::reclaim::head_queue::{CallbackQueue, Left, Pushed, QueuedTwice, Wakes};
use crate::reclaim::llist::Chain;
use crate::reclaim::local::{Sections, section_in};
use crate::reclaim::{running, worker};

impl CallbackQueue {
    /// Creates a callback queue of a domain, without a runner. Allocates.
    pub fn new<K: DomainTag>(domain: &Domain<K>, wakes: Wakes) -> Self {
        let handle = domain.tag().handle();
        let shared = {
            let domain = domain_state::known(&handle);
            domain.callback_queues.add(domain, wakes)
        };
        Self { shared, handle }
    }

    /// Runs pushed callbacks until it is asked to [stop](Self::stop), or until the queue has been
    /// empty for `idle_after`.
    ///
    /// A runner that is asked to stop finishes its current batch.
    ///
    /// # Errors
    /// If a head was queued twice: the callbacks pushed with it are lost, because their order is.
    /// No thread attends to the callback queue then.
    ///
    /// # Panics
    /// If the calling thread is in a section of the domain (even one that a callback has begun on
    /// it and leaked), or runs a callback. No thread attends to the callback queue then.
    pub fn attend(&self, idle_after: Option<Duration>) -> Result<Left, QueuedTwice> {
        self.attend_and(idle_after, || ())
    }

    /// Like [`attend`](Self::attend), but calls `after_round` after each batch, when the library
    /// holds no lock. It may call [`Domain::barrier`], which then runs the callback queue.
    ///
    /// # Errors
    /// As [`attend`](Self::attend).
    ///
    /// # Panics
    /// As [`attend`](Self::attend), and if `after_round` panics.
    pub fn attend_and(
        &self,
        idle_after: Option<Duration>,
        mut after_round: impl FnMut(),
    ) -> Result<Left, QueuedTwice> {
        let domain = &*self.handle;
        assert!(
            section_in(domain).is_none() && !running::in_callback(),
            "quiescence: a callback queue must not be attended to in a section of its domain, or \
             in a callback"
        );
        let me = || {
            // In liburcu domains, not asserted: the stall report shows it.
            assert!(
                section_in(domain).is_none() || domain.grace_periods.gp_words.liburcu.is_some(),
                "quiescence: the runner of a callback queue would wait for itself: a callback, or \
                 the function called after a batch, began a section of its domain and kept the \
                 guard"
            );
            Me::this_thread()
        };
        let after_round = || user_code::run(Site::Attend, &mut after_round);
        self.shared.attend(domain, idle_after, me, after_round)
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

/// Waits until the domain has room again, for at most 10 ms. Does nothing in a section of
/// registered threads, of any domain, or in a callback, since neither may wait. While a callback
/// does not return, which may want a lock that the caller holds, it waits ever more seldom.
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

/// Whether the calling thread is running callbacks, of any domain.
pub fn in_callback() -> bool {
    running::in_callback()
}

/// Whether queued heads are remembered, so that one queued twice is detected: in builds with debug
/// assertions, and under `QUIESCENCE_DEBUG=1`.
pub fn remembers_heads() -> bool {
    is_twice_checked()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::ptr;

    use super::*;
    use crate::common::threads::*;
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

    /// A head whose function calls a closure.
    #[repr(C)]
    struct Calling<'a> {
        head: Head,
        function: &'a dyn Fn(),
    }

    unsafe extern "C" fn call(head: *mut Head) {
        // SAFETY: the first part of a `Calling`, which its test keeps until it has run.
        let calling = unsafe { &*head.cast::<Calling<'_>>() };
        (calling.function)();
    }

    /// It was told when the whole chunk had run. A function in that which took a lock of the
    /// barrier's caller made both wait for ever.
    #[test]
    fn a_barrier_waited_for_a_head_that_came_later() {
        let domain = Domain::new();
        let callback_queue = CallbackQueue::new(&domain, Wakes::Runner);
        let mut before = Head::new();
        // SAFETY: run by `attend`, before it goes.
        let _ = unsafe { callback_queue.push(&mut before, nothing) }.unwrap();
        let barrier = domain.core().callback_queues.begin_barrier();
        let was_over = Cell::new(None);
        let function = || was_over.set(Some(barrier.is_over()));
        let mut later = Calling { head: Head::new(), function: &function };
        // SAFETY: as above.
        let _ = unsafe { callback_queue.push((&raw mut later).cast(), call) }.unwrap();
        assert_eq!(callback_queue.attend(Some(Duration::ZERO)), Ok(Left::Idle));
        assert_eq!(was_over.get(), Some(true));
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
    #[cfg_attr(miri, ignore = "leaks on purpose: what was queued behind such a head")]
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

    /// What it was to run had been handed over, and no thread ended the pause of what is left.
    #[test]
    fn a_barrier_slept_in_a_paused_callback_queue_that_is_empty() {
        let domain = Domain::new();
        let [from, to] = [(); 2].map(|()| CallbackQueue::new(&domain, Wakes::Runner));
        let mut head = Head::new();
        push_unseen(&from, &mut head);
        from.pause();
        std::thread::scope(|scope| {
            let barrier = scope.spawn(|| domain.barrier());
            until(|| crate::os::sync::lock(&from.shared.inner).waiters != 0);
            assert!(from.hand_over(&to).unwrap().unattended);
            barrier.join().unwrap();
        });
        assert!(to.is_empty());
    }

    /// A visitor that found such a head left, and woke no runner that waited for it to go.
    #[test]
    #[cfg_attr(miri, ignore = "leaks on purpose: what was queued behind such a head")]
    fn a_runner_comes_after_a_visitor_that_has_given_up() {
        let domain = Domain::new();
        let callback_queue = CallbackQueue::new(&domain, Wakes::Runner);
        let mut heads = array_of![Head::new(); 3];
        let [one, two, three] = heads.each_mut().map(ptr::from_mut);
        for head in [one, two, three] {
            push_unseen(&callback_queue, head);
        }
        let waits_for_visitor = || crate::os::sync::lock(&callback_queue.shared.inner).waiters != 0;
        let beside_section = |leave: &dyn Fn()| {
            std::thread::scope(|scope| {
                let barrier = scope.spawn(|| domain.barrier());
                until(|| domain.statistics().sleeps != 0);
                let runner = scope.spawn(|| callback_queue.attend(Some(Duration::ZERO)));
                until(waits_for_visitor);
                push_unseen(&callback_queue, two); // the chain that the visitor has is torn
                leave();
                barrier.join().unwrap();
                assert_eq!(runner.join().unwrap(), Ok(Left::Idle));
            });
        };
        while_held(|| domain.read(), beside_section);
    }
}
