//! `<urcu/wfqueue.h>`: the older queue with wait-free enqueue. liburcu has deprecated it, but still
//! exports it.

use quiescence::intrusive::{QueueNode, SentinelQueue};

use super::{DESTROY, INIT, Locked, Structure, node};

/// `struct cds_wfq_queue`.
type LockedQueue = Locked<SentinelQueue>;

const _: () = assert!(size_of::<LockedQueue>() == 64 || cfg!(not(target_arch = "x86_64")));

impl Structure for SentinelQueue {
    const NAME: &str = "struct cds_wfq_queue";
}

exported! {
    fn quiescence_cds_wfq_init(queue: *mut LockedQueue) {
        LockedQueue::posix(queue, INIT);
        SentinelQueue::write(queue.cast());
    }

    fn quiescence_cds_wfq_destroy(queue: *mut LockedQueue) { LockedQueue::posix(queue, DESTROY) }

    fn quiescence_cds_wfq_enqueue(queue: &SentinelQueue, node: *mut QueueNode) {
        queue.enqueue(node)
    }

    fn quiescence___cds_wfq_dequeue_blocking(queue: &SentinelQueue) -> *mut QueueNode {
        node(Ok(queue.dequeue()))
    }

    fn quiescence_cds_wfq_dequeue_blocking(queue: *mut LockedQueue) -> *mut QueueNode {
        LockedQueue::locked(queue, |queue| node(Ok(queue.dequeue())))
    }
}
