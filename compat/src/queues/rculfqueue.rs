//! `<urcu/rculfqueue.h>`: the lock-free queue whose users are in read-side critical sections.

use std::ffi::c_int;

use quiescence::intrusive::{CallAfter, LockFreeQueue, SharedNode};

use super::node;
use crate::fatal::fatal;

exported! {
    fn quiescence_cds_lfq_node_init_rcu(node: *mut SharedNode) { node.write(SharedNode::new()) }

    fn quiescence_cds_lfq_init_rcu(queue: *mut LockFreeQueue, call_rcu: Option<CallAfter>) {
        let Some(call_rcu) = call_rcu else {
            fatal(format_args!(
                "cds_lfq_init_rcu() without a call_rcu; pass that of the flavour with which the \
                 queue is used"
            ));
        };
        LockFreeQueue::write(queue, call_rcu);
    }

    /// Not `drop`: C owns the memory.
    fn quiescence_cds_lfq_destroy_rcu(queue: &LockFreeQueue) -> c_int {
        if queue.destroy().is_ok() { 0 } else { -libc::EPERM }
    }

    fn quiescence_cds_lfq_enqueue_rcu(queue: &LockFreeQueue, node: *mut SharedNode) {
        queue.enqueue(node)
    }

    fn quiescence_cds_lfq_dequeue_rcu(queue: &LockFreeQueue) -> *mut SharedNode {
        node(Ok(queue.dequeue()))
    }
}
