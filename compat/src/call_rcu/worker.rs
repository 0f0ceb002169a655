//! One worker: a callback queue, and the loop of its thread.

use std::ffi::{c_int, c_ulong};
use std::sync::Arc;

use quiescence::callback_queue::{CallbackQueue, QueuedTwice, Wakes};
use quiescence::raw::{Function, Head};

use super::workers::{self, Next};
use crate::errno_guard::with_errno;
use crate::fatal::fatal;
use crate::flavor::Flavor;
use crate::threads;

/// `URCU_CALL_RCU_RT`: a thread that queues a callback makes no system call; the worker polls.
const RT: c_ulong = 1;

/// The number of batches between two checks that the worker is still on its CPU.
const LOOK_EVERY: u32 = 256;

/// `struct call_rcu_data`.
pub(crate) struct Worker {
    pub(super) callback_queue: CallbackQueue,
    pub(super) flavor: Flavor,
    /// The CPU on which its thread runs; any if it is negative.
    cpu: c_int,
}

impl Worker {
    pub(super) fn new(flavor: Flavor, flags: c_ulong, cpu: c_int) -> Arc<Self> {
        let wakes = if flags & RT == 0 { Wakes::Runner } else { Wakes::Never };
        Arc::new(Self {
            callback_queue: CallbackQueue::new(&flavor.domain().domain(), wakes),
            flavor,
            cpu,
        })
    }

    /// Queues a callback. Returns whether the domain is at its limit.
    ///
    /// # Safety
    /// As [`CallbackQueue::push`].
    #[inline(always)]
    pub(super) unsafe fn push(&self, head: *mut Head, function: Function) -> bool {
        // SAFETY: by the contract.
        match unsafe { self.callback_queue.push(head, function) } {
            Ok(pushed) => {
                if pushed.unattended {
                    with_errno(|| workers::start(self));
                }
                pushed.crowded
            }
            Err(twice) => self.queued_twice(twice),
        }
    }

    #[cold]
    pub(super) fn queued_twice(&self, twice: QueuedTwice) -> ! {
        let advice = if quiescence::callback_queue::remembers_heads() {
            "a head may be queued again from its own callback on, not before"
        } else {
            "set QUIESCENCE_DEBUG=1 to have the second call_rcu() named"
        };
        fatal(format_args!("{}_call_rcu(): {twice}; {advice}", self.flavor))
    }

    /// The thread's loop: it runs the callback queue until the worker is freed, or has been idle
    /// for long.
    pub(super) fn run(self: Arc<Self>) {
        threads::bind(self.cpu);
        let mut idle_after = workers::idle_after(&self);
        let mut batches = 0_u32;
        loop {
            let after_batch = || {
                batches = batches.wrapping_add(1);
                if batches.is_multiple_of(LOOK_EVERY) {
                    threads::stay_on(self.cpu);
                }
            };
            let left = self.callback_queue.attend_and(idle_after, after_batch);
            let left = left.unwrap_or_else(|twice| self.queued_twice(twice));
            match workers::next(&self, left) {
                Next::Attend(after) => idle_after = after,
                Next::HandOver(to) => {
                    let handed = self.callback_queue.hand_over(&to.callback_queue);
                    let handed = handed.unwrap_or_else(|twice| self.queued_twice(twice));
                    if handed.unattended {
                        workers::start(to);
                    }
                    return workers::ended(&self);
                }
                Next::End => return,
            }
        }
    }
}
