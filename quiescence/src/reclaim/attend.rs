//! Running callback queues: by a thread of the program; and by the worker, for what a callback
//! queue leaves behind when it ends.

use std::sync::Arc;
use std::time::Duration;

use grace::limit::Zone;

use crate::event::trace;
use crate::reclaim::defer;
use crate::reclaim::domain_state::{DomainState, Handle};
use crate::reclaim::head::{Anywhere, Head};
use crate::reclaim::head_queue::{self, Left, QueuedTwice, Shared, forget_head, is_twice_checked};
use crate::reclaim::llist::Chain;
use crate::reclaim::local::{Own, Sections};
use crate::reclaim::running;
use crate::reclaim::worker;

/// [`CallbackQueue::attend`](crate::callback_queue::CallbackQueue::attend).
pub(crate) fn attend(
    domain: &DomainState,
    callback_queue: &Shared,
    idle_after: Option<Duration>,
    after_round: impl FnMut(),
) -> Result<Left, QueuedTwice> {
    assert!(
        Own::in_domain(domain).section().is_none() && !running::in_callback(),
        "quiescence: a callback queue is attended to in a section of its domain, or in a callback"
    );
    let me = || {
        let own = Own::in_domain(domain);
        // In liburcu domains, not asserted: the stall report shows it.
        assert!(
            own.section().is_none() || domain.grace_periods.gp_words.liburcu.is_some(),
            "quiescence: a callback queue's runner would wait for itself: a callback, or what is \
             called after a batch, has begun a section of its domain there and kept the guard"
        );
        own.me()
    };
    callback_queue.attend(domain, &domain.callback_queues, idle_after, me, after_round)
}

/// A callback queue ends: the worker runs what is left in it.
pub(crate) fn end(handle: &Handle, callback_queue: &Arc<Shared>) {
    handle.callback_queues.end(handle, callback_queue, |left| run_by_worker(handle, left));
}

/// Has the worker run what a callback queue has left.
fn run_by_worker(handle: &Handle, mut left: Chain) {
    handle.charge.give_back(head_queue::amount(left.count()));
    let has_mark = left.links() != left.count();
    while let Some((link, marks)) = left.pop() {
        let head = Anywhere(link.cast::<Head>());
        //~ lost-callback-queue
        defer::call_over(handle, move || {
            if is_twice_checked() && !marks {
                forget_head(head.get());
            }
            // SAFETY: by the contract of `CallbackQueue::push`: it runs once, after a grace period.
            unsafe { Head::run(head.get()) };
        });
    }
    if has_mark {
        worker::hurry(handle); // a barrier waits for the callbacks
    }
}

/// [`wait_for_room`](crate::callback_queue::wait_for_room).
pub(crate) fn wait_for_room(domain: &DomainState) {
    let may_wait = Sections::of_this_thread() == Sections::None && !running::in_callback();
    if domain.zone() == Zone::Full {
        trace::limit_reached(domain.grace_periods.source(), may_wait);
    }
    if may_wait {
        domain.callback_queues.waiting_room.wait(domain);
    }
}
