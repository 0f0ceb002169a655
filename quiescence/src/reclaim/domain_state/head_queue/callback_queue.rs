//! What users hold of a callback queue. What also needs to know of domains and sections is in
//! [`callback_queue`](crate::callback_queue).

use std::sync::Arc;

use super::{Pushed, QueuedTwice, Shared, block, double_queue};
use crate::os::{forking, sync, thread};
use crate::reclaim::domain_state::Handle;
use crate::reclaim::head::{Function, Head};
use crate::reclaim::llist::Found;

/// A queue of heads, and the thread that runs them. See the [module](crate::callback_queue).
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
    pub(crate) shared: Arc<Shared>,
    pub(crate) handle: Handle,
}

impl CallbackQueue {
    /// Queues `function(head)` to be called after a grace period, by the thread that attends to the
    /// callback queue.
    ///
    /// Everything the caller did before is visible to the function. The heads that one thread
    /// pushes are run in order. `function` may push the head again, to this callback queue or
    /// another one. A panic cannot unwind out of it, since it is a C function: it aborts the
    /// process.
    ///
    /// # Progress and cost
    /// Lock-free: a compare-exchange, without allocation. Occasionally, for a thread's first pushes
    /// in a row, an addition to the same cache line, and one to the domain's charge. Wakes the
    /// runner if it sleeps, once each time that it has found the queue empty.
    ///
    /// # Errors
    /// If the head is found to be queued already. That is always detected if it was the last one
    /// pushed, otherwise only in builds with debug assertions and under `QUIESCENCE_DEBUG=1`. The
    /// callback queue is unchanged. (What is not detected here usually shows in the result of
    /// [`attend`](Self::attend).)
    ///
    /// # Safety
    /// As [`raw::call_head`](crate::raw::call_head): the head is valid, does not move, and is not
    /// used by any other code until its function is called; sections that begin from now on cannot
    /// reach anything that the function destroys; and `function(head)` may be called on any thread.
    #[inline]
    pub unsafe fn push(&self, head: *mut Head, function: Function) -> Result<Pushed, QueuedTwice> {
        if double_queue::is_on() && !double_queue::note(head) {
            return Err(QueuedTwice { head, about: false });
        }
        // SAFETY: by the contract.
        let link = unsafe { Head::set(head, function) };
        let front = &self.shared.front.0;
        let crowded = block::note(front.id) && self.shared.count_block(&self.handle);
        // SAFETY: by the contract.
        let found = unsafe { front.llist.push(link, false) };
        if found == Found::Asleep {
            front.llist.ring();
        }
        if found == Found::Itself {
            return Err(QueuedTwice { head, about: false });
        }
        Ok(Pushed { unattended: found == Found::Unattended, crowded })
    }

    /// Makes the runner leave after its current batch, and every later one leave at once, until
    /// [`restart`](Self::restart). Does not wait for it.
    pub fn stop(&self) {
        self.shared.stop(true);
    }

    /// Undoes a [`stop`](Self::stop).
    pub fn restart(&self) {
        self.shared.stop(false);
    }

    /// Prevents callbacks from starting, and waits until none is running: for a `fork`, whose child
    /// then finds everything that is queued. Calls are counted. In a callback of this callback
    /// queue it does not wait.
    ///
    /// A child has no pauses, since the threads that would end them may not exist there. Pause it
    /// again if nothing may start yet.
    ///
    /// # Panics
    /// If 2^32 pauses of it have not ended.
    pub fn pause(&self) {
        if forking::is_here() {
            return; // this thread holds the lock already: nothing is begun
        }
        let mut inner = sync::lock(&self.shared.inner);
        let paused = inner.paused.checked_add(1);
        inner.paused = paused.expect("quiescence: 2^32 pauses of a callback queue at once");
        drop(self.shared.until_still(inner));
    }

    /// Ends a [`pause`](Self::pause). If there is none, as in a child, does nothing.
    pub fn resume(&self) {
        if forking::is_here() {
            return;
        }
        let mut inner = sync::lock(&self.shared.inner);
        inner.paused = inner.paused.saturating_sub(1);
        self.shared.tell(&inner);
    }

    /// Announces that a thread is about to attend to the callback queue. A barrier then leaves the
    /// queue to that thread, and runs nothing in it itself. Does nothing if a thread attends.
    pub fn expect(&self) {
        let mut inner = sync::lock(&self.shared.inner);
        inner.expected = !inner.has_runner();
    }

    /// Announces that the expected thread could not attend to the callback queue: the next push
    /// again finds no runner.
    ///
    /// # Errors
    /// If a head turns out to be queued twice, if that is checked.
    pub fn neglect(&self) -> Result<(), QueuedTwice> {
        let mut inner = sync::lock(&self.shared.inner);
        inner.expected = false;
        if inner.has_runner() { Ok(()) } else { self.shared.abandon(&mut inner) }
    }

    /// Whether a thread attends to it now. One that runs it for a barrier does not count.
    pub fn is_attended(&self) -> bool {
        sync::lock(&self.shared.inner).has_runner()
    }

    /// Whether the calling thread attends to it.
    pub fn is_attended_here(&self) -> bool {
        sync::lock(&self.shared.inner).runner == thread::token()
    }

    /// Whether no callback is queued or running. Takes a lock.
    pub fn is_empty(&self) -> bool {
        self.shared.is_empty()
    }

    /// Moves all queued heads to the end of another callback queue of the same domain. Waits until
    /// no callback of this callback queue is running, except in the calling thread; so the pushes
    /// of one thread stay in order.
    ///
    /// # Errors
    /// As [`attend`](Self::attend).
    ///
    /// # Panics
    /// If the other queue belongs to another domain, or is this one.
    pub fn hand_over(&self, to: &Self) -> Result<Pushed, QueuedTwice> {
        assert!(
            std::ptr::eq(&*self.handle, &*to.handle) && !Arc::ptr_eq(&self.shared, &to.shared),
            "quiescence: a callback queue can be handed over only to another one of its domain"
        );
        let callback_queues = &self.handle.callback_queues;
        let (_list, chain) = callback_queues.take_away(&self.handle, &self.shared)?;
        //~ lost-callback-queue
        Ok(to.shared.take_over(chain))
    }
}
