//! `<urcu/wfcqueue.h>`: the queue with wait-free enqueue. The consumers' functions exist with and
//! without the lock.
//!
//! C passes the head as a transparent union of pointers, to a head with or without a lock behind
//! it: at the level of the ABI that is a pointer to the head.

use std::ffi::c_int;
use std::ptr::NonNull;

use quiescence::intrusive::Patience::{Refuse, Wait};
use quiescence::intrusive::{Dequeued, Ends, Patience, QueueHead, QueueNode, QueueTail};

use super::{DESTROY, INIT, LOCK, Locked, Structure, UNLOCK, node, say_last};

/// `struct cds_wfcq_head`.
type LockedHead = Locked<QueueHead>;

const _: () = assert!(size_of::<LockedHead>() == 48 || cfg!(not(target_arch = "x86_64")));

impl Structure for QueueHead {
    const NAME: &str = "struct cds_wfcq_head";
}

/// `enum cds_wfcq_ret`.
#[repr(i32)]
enum Spliced {
    WouldBlock = -1,
    DestinationEmpty = 0,
    DestinationNonEmpty = 1,
    SourceEmpty = 2,
}

/// Takes the first node, and stores in `state`, unless that is null, whether it was the last.
///
/// # Safety
/// liburcu's contract: the calling thread excludes other consumers.
unsafe fn dequeue(
    (head, tail): (&QueueHead, &QueueTail),
    state: *mut c_int,
    patience: Patience,
) -> *mut QueueNode {
    // SAFETY: by this function's contract.
    let ends = unsafe { Ends::new(head, tail) };
    // SAFETY: as above.
    let dequeued = unsafe { ends.dequeue(patience) };
    let last = matches!(dequeued, Ok(Some(Dequeued { last: true, .. })));
    // SAFETY: as above.
    unsafe { say_last(state, last) };
    node(dequeued.map(|dequeued| dequeued.map(|dequeued| dequeued.node)))
}

/// Moves all nodes of one queue to the end of another.
///
/// # Safety
/// liburcu's contract: the calling thread excludes other consumers of the queue that it empties.
unsafe fn splice(to: Ends<'_>, from: Ends<'_>, patience: Patience) -> Spliced {
    // SAFETY: by this function's contract.
    let Ok(chain) = (unsafe { from.take_all(patience) }) else { return Spliced::WouldBlock };
    if chain.is_empty() {
        return Spliced::SourceEmpty;
    }
    if to.append(chain) { Spliced::DestinationNonEmpty } else { Spliced::DestinationEmpty }
}

exported! {
    fn quiescence_cds_wfcq_node_init(node: *mut QueueNode) { node.write(QueueNode::new()) }

    fn quiescence_cds_wfcq_init(head: *mut LockedHead, tail: *mut QueueTail) {
        LockedHead::posix(head, INIT);
        Ends::write(head.cast(), tail);
    }

    fn quiescence___cds_wfcq_init(head: *mut QueueHead, tail: *mut QueueTail) {
        Ends::write(head, tail)
    }

    fn quiescence_cds_wfcq_destroy(head: *mut LockedHead, _tail: *mut QueueTail) {
        LockedHead::posix(head, DESTROY)
    }

    fn quiescence_cds_wfcq_empty(head: &QueueHead, tail: &QueueTail) -> bool {
        Ends::new(head, tail).is_empty()
    }

    fn quiescence_cds_wfcq_enqueue(
        head: &QueueHead,
        tail: &QueueTail,
        node: *mut QueueNode
    ) -> bool {
        Ends::new(head, tail).enqueue(node)
    }

    fn quiescence_cds_wfcq_dequeue_lock(head: *mut LockedHead, _tail: *mut QueueTail) {
        LockedHead::posix(head, LOCK)
    }

    fn quiescence_cds_wfcq_dequeue_unlock(head: *mut LockedHead, _tail: *mut QueueTail) {
        LockedHead::posix(head, UNLOCK)
    }

    fn quiescence_cds_wfcq_dequeue_with_state_blocking(
        head: *mut LockedHead,
        tail: &QueueTail,
        state: *mut c_int
    ) -> *mut QueueNode {
        LockedHead::locked(head, |head| dequeue((head, tail), state, Wait))
    }

    fn quiescence___cds_wfcq_dequeue_with_state_blocking(
        head: &QueueHead,
        tail: &QueueTail,
        state: *mut c_int
    ) -> *mut QueueNode {
        dequeue((head, tail), state, Wait)
    }

    fn quiescence___cds_wfcq_dequeue_with_state_nonblocking(
        head: &QueueHead,
        tail: &QueueTail,
        state: *mut c_int
    ) -> *mut QueueNode {
        dequeue((head, tail), state, Refuse)
    }

    fn quiescence_cds_wfcq_splice_blocking(
        to_head: &QueueHead,
        to_tail: &QueueTail,
        from_head: *mut LockedHead,
        from_tail: &QueueTail
    ) -> Spliced {
        let to = Ends::new(to_head, to_tail);
        LockedHead::locked(from_head, |head| splice(to, Ends::new(head, from_tail), Wait))
    }

    fn quiescence___cds_wfcq_splice_blocking(
        to_head: &QueueHead,
        to_tail: &QueueTail,
        from_head: &QueueHead,
        from_tail: &QueueTail
    ) -> Spliced {
        splice(Ends::new(to_head, to_tail), Ends::new(from_head, from_tail), Wait)
    }

    fn quiescence___cds_wfcq_splice_nonblocking(
        to_head: &QueueHead,
        to_tail: &QueueTail,
        from_head: &QueueHead,
        from_tail: &QueueTail
    ) -> Spliced {
        splice(Ends::new(to_head, to_tail), Ends::new(from_head, from_tail), Refuse)
    }

    fn quiescence___cds_wfcq_first_blocking(head: &QueueHead, tail: &QueueTail) -> *mut QueueNode {
        node(Ends::new(head, tail).first(Wait))
    }

    fn quiescence___cds_wfcq_first_nonblocking(
        head: &QueueHead,
        tail: &QueueTail
    ) -> *mut QueueNode {
        node(Ends::new(head, tail).first(Refuse))
    }

    fn quiescence___cds_wfcq_next_blocking(
        head: &QueueHead,
        tail: &QueueTail,
        before: NonNull<QueueNode>
    ) -> *mut QueueNode {
        node(Ends::new(head, tail).next(before, Wait))
    }

    fn quiescence___cds_wfcq_next_nonblocking(
        head: &QueueHead,
        tail: &QueueTail,
        before: NonNull<QueueNode>
    ) -> *mut QueueNode {
        node(Ends::new(head, tail).next(before, Refuse))
    }
}
