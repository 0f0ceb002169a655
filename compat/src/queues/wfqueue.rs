//! `<urcu/wfqueue.h>`: the older queue with wait-free enqueue. Deprecated by liburcu, and exported
//! still.

use quiescence::intrusive::{QueueNode, SentinelQueue};

use super::{Locked, node};

/// `struct cds_wfq_queue`.
type LockedQueue = Locked<SentinelQueue>;

const _: () = assert!(size_of::<LockedQueue>() == 64 || cfg!(not(target_arch = "x86_64")));

const NAME: &str = "struct cds_wfq_queue";

#[unsafe(export_name = "quiescence_cds_wfq_node_init")]
unsafe extern "C" fn node_init(node: *mut QueueNode) {
    // SAFETY: liburcu's contract.
    unsafe { node.write(QueueNode::new()) };
}

#[unsafe(export_name = "quiescence_cds_wfq_init")]
unsafe extern "C" fn init(queue: *mut LockedQueue) {
    // SAFETY: liburcu's contract.
    unsafe { LockedQueue::init(queue, NAME) };
    // SAFETY: as above; the queue comes first.
    unsafe { SentinelQueue::write(queue.cast()) };
}

#[unsafe(export_name = "quiescence_cds_wfq_destroy")]
unsafe extern "C" fn destroy(queue: *mut LockedQueue) {
    // SAFETY: liburcu's contract.
    unsafe { LockedQueue::destroy(queue, NAME) };
}

#[unsafe(export_name = "quiescence_cds_wfq_enqueue")]
unsafe extern "C" fn enqueue(queue: *const SentinelQueue, node: *mut QueueNode) {
    // SAFETY: liburcu's contract.
    let queue = unsafe { &*queue };
    // SAFETY: as above.
    unsafe { queue.enqueue(node) };
}

#[unsafe(export_name = "quiescence___cds_wfq_dequeue_blocking")]
unsafe extern "C" fn dequeue_alone_blocking(queue: *const SentinelQueue) -> *mut QueueNode {
    // SAFETY: liburcu's contract.
    let queue = unsafe { &*queue };
    // SAFETY: as above.
    node(Ok(unsafe { queue.dequeue() }))
}

#[unsafe(export_name = "quiescence_cds_wfq_dequeue_blocking")]
unsafe extern "C" fn dequeue_blocking(queue: *mut LockedQueue) -> *mut QueueNode {
    // SAFETY: liburcu's contract, of this function and of the one that is called under the lock.
    let dequeue = || unsafe { dequeue_alone_blocking(queue.cast()) };
    // SAFETY: as above.
    unsafe { LockedQueue::locked(queue, NAME, dequeue) }
}
