//! `<urcu/rculfqueue.h>`: the lock-free queue whose users are in read-side critical sections.

use std::ffi::c_int;

use quiescence::intrusive::{CallAfter, LockFreeQueue, SharedNode};

use super::node;
use crate::fatal::fatal;

#[unsafe(export_name = "quiescence_cds_lfq_node_init_rcu")]
unsafe extern "C" fn node_init(node: *mut SharedNode) {
    // SAFETY: liburcu's contract.
    unsafe { node.write(SharedNode::new()) };
}

#[unsafe(export_name = "quiescence_cds_lfq_init_rcu")]
unsafe extern "C" fn init(queue: *mut LockFreeQueue, call_rcu: Option<CallAfter>) {
    let Some(call_rcu) = call_rcu else {
        fatal(format_args!(
            "cds_lfq_init_rcu without a call_rcu: give it the one of the flavour that the queue is used with"
        ));
    };
    // SAFETY: liburcu's contract.
    unsafe { LockFreeQueue::write(queue, call_rcu) };
}

#[unsafe(export_name = "quiescence_cds_lfq_destroy_rcu")]
unsafe extern "C" fn destroy(queue: *const LockFreeQueue) -> c_int {
    // SAFETY: liburcu's contract.
    let queue = unsafe { &*queue };
    // SAFETY: as above. C's queues are not dropped.
    if unsafe { queue.destroy() }.is_ok() { 0 } else { -libc::EPERM }
}

#[unsafe(export_name = "quiescence_cds_lfq_enqueue_rcu")]
unsafe extern "C" fn enqueue(queue: *const LockFreeQueue, node: *mut SharedNode) {
    // SAFETY: liburcu's contract.
    let queue = unsafe { &*queue };
    // SAFETY: as above.
    unsafe { queue.enqueue(node) };
}

#[unsafe(export_name = "quiescence_cds_lfq_dequeue_rcu")]
unsafe extern "C" fn dequeue(queue: *const LockFreeQueue) -> *mut SharedNode {
    // SAFETY: liburcu's contract.
    let queue = unsafe { &*queue };
    // SAFETY: as above.
    node(Ok(unsafe { queue.dequeue() }))
}
