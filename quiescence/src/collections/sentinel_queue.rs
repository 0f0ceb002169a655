//! The older of liburcu's two wait-free queues. A node of its own circulates among the others, so
//! the list is never empty.
//!
//! It exists for C programs that still use `cds_wfq`. Rust programs should use a
//! [`WaitFreeQueue`](super::intrusive::WaitFreeQueue), which has no such node, and whose consumer
//! can take all nodes at once. The layout and the order of the stores are liburcu's.

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

use super::patience::Patience;
use super::wait_free_queue::QueueNode;
use crate::os::sync::AtomicPtr;

/// A queue of nodes embedded in their objects: the first 24 bytes of liburcu's `struct
/// cds_wfq_queue`, which are followed by a lock there. Any thread enqueues, one consumer at a time
/// dequeues.
///
/// # Promise
/// Nodes that one thread enqueues are dequeued in that order, and each node is dequeued once.
/// Everything written to an object before it is enqueued is visible to the thread that dequeues it.
///
/// # Progress and cost
/// [`enqueue`](Self::enqueue) is wait-free: one exchange and one store. A consumer is blocked by a
/// producer that was stopped between these two; it polls some hundred times, and then naps for
/// 200 µs at a time.
///
/// # Source
/// liburcu's `cds_wfq` (Desnoyers), after an idea of McKenney's.
#[repr(C)]
#[derive(Debug)]
pub struct SentinelQueue {
    /// The consumers'.
    first: AtomicPtr<QueueNode>,
    /// The producers'. A node is its link, and so this is C's pointer to the last link, too.
    last: AtomicPtr<QueueNode>,
    sentinel: QueueNode,
}

const _: () = assert!(size_of::<SentinelQueue>() == 24);

impl SentinelQueue {
    /// Creates an empty queue, whatever was there before.
    ///
    /// # Safety
    /// `queue` may be written, belongs to the caller alone, and does not move while it is a queue.
    /// It contains pointers to itself, so no `&mut` of it is made, and no box of it is moved,
    /// meanwhile.
    pub unsafe fn write(queue: *mut Self) {
        // SAFETY: by this function's contract.
        let sentinel = unsafe { &raw mut (*queue).sentinel };
        let empty = Self {
            first: AtomicPtr::new(sentinel),
            last: AtomicPtr::new(sentinel),
            sentinel: QueueNode::new(),
        };
        // SAFETY: by this function's contract.
        unsafe { queue.write(empty) };
    }

    fn sentinel(&self) -> *mut QueueNode {
        ptr::from_ref(&self.sentinel).cast_mut()
    }

    /// Enqueues a node.
    ///
    /// # Progress
    /// Wait-free.
    ///
    /// # Safety
    /// As [`WaitFreeQueue::enqueue`](super::intrusive::WaitFreeQueue::enqueue).
    #[inline]
    pub unsafe fn enqueue(&self, node: *mut QueueNode) {
        // Release and Acquire: the next producer writes the link after us. The consumer that puts
        // the sentinel in again sees through it all nodes before; the links alone would do, too.
        // SeqCst: as in `WaitFreeQueue`.
        let before = self.last.swap(node, SeqCst); //~ unseen-node
        // SAFETY: a consumer keeps the node that the tail names until its link is written.
        let link = unsafe { &(*before).next };
        // Release: pairs with the Acquire of the consumer that follows the link.
        link.store(node, Release); //~ unseen-node
    }

    /// Dequeues the first node; `None` if there is none. Waits for a half-done insertion.
    ///
    /// # Safety
    /// While it runs, no other thread dequeues nodes.
    pub unsafe fn dequeue(&self) -> Option<NonNull<QueueNode>> {
        let sentinel = self.sentinel();
        loop {
            // Relaxed: written by consumers, one after the other.
            let first = self.first.load(Relaxed);
            // Relaxed: nothing is read through it.
            if first == sentinel && self.last.load(Relaxed) == sentinel {
                return None;
            }
            // SAFETY: a node in the queue, which is the consumer's to take.
            let link = unsafe { &(*first).next };
            // There is a next node: if this is not the sentinel, the sentinel is behind it.
            let next = Patience::Wait.link(link).unwrap_or(ptr::null_mut());
            // Relaxed: as above.
            self.first.store(next, Relaxed);
            if first != sentinel {
                return NonNull::new(first);
            }
            // Relaxed: seen with the exchange that puts it in again.
            self.sentinel.next.store(ptr::null_mut(), Relaxed);
            // SAFETY: the queue's own, which is in no queue now.
            unsafe { self.enqueue(sentinel) };
        }
    }
}
