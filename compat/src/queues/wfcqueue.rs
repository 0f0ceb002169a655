//! `<urcu/wfcqueue.h>`: the queue with wait-free enqueue, and the consumers' functions, with the
//! lock and without.
//!
//! Its head is passed as a union of pointers, with a lock behind it or without, which is a pointer
//! to the head.

use std::ffi::c_int;
use std::ptr::{self, NonNull};

use quiescence::intrusive::{Dequeued, Ends, Patience, QueueHead, QueueNode, QueueTail};

use super::{Locked, node, say_last};

/// `struct cds_wfcq_head`.
type LockedHead = Locked<QueueHead>;

const _: () = assert!(size_of::<LockedHead>() == 48 || cfg!(not(target_arch = "x86_64")));

const NAME: &str = "struct cds_wfcq_head";

/// `enum cds_wfcq_ret`.
#[repr(i32)]
enum Spliced {
    WouldBlock = -1,
    DestinationEmpty = 0,
    DestinationNonEmpty = 1,
    SourceEmpty = 2,
}

/// A queue's ends, where they lie.
///
/// # Safety
/// liburcu's contract.
unsafe fn ends<'q>(head: *const QueueHead, tail: *const QueueTail) -> Ends<'q> {
    // SAFETY: by this function's contract.
    let head = unsafe { &*head };
    // SAFETY: as above.
    let tail = unsafe { &*tail };
    // SAFETY: as above.
    unsafe { Ends::new(head, tail) }
}

/// Takes the first node, and says in `state`, unless that is null, whether it was the last.
///
/// # Safety
/// liburcu's contract: the calling thread excludes other consumers.
unsafe fn dequeue(ends: Ends<'_>, state: *mut c_int, patience: Patience) -> *mut QueueNode {
    // SAFETY: by this function's contract.
    let dequeued = unsafe { ends.dequeue(patience) };
    let last = matches!(dequeued, Ok(Some(Dequeued { last: true, .. })));
    // SAFETY: as above.
    unsafe { say_last(state, last) };
    node(dequeued.map(|dequeued| dequeued.map(|dequeued| dequeued.node)))
}

/// Puts all that is in one queue into another, and says what was found.
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

#[unsafe(export_name = "quiescence_cds_wfcq_node_init")]
unsafe extern "C" fn node_init(node: *mut QueueNode) {
    // SAFETY: liburcu's contract.
    unsafe { node.write(QueueNode::new()) };
}

#[unsafe(export_name = "quiescence_cds_wfcq_init")]
unsafe extern "C" fn init(head: *mut LockedHead, tail: *mut QueueTail) {
    // SAFETY: liburcu's contract.
    unsafe { LockedHead::init(head, NAME) };
    // SAFETY: as above.
    unsafe { Ends::write(head.cast(), tail) };
}

#[unsafe(export_name = "quiescence___cds_wfcq_init")]
unsafe extern "C" fn init_without_lock(head: *mut QueueHead, tail: *mut QueueTail) {
    // SAFETY: liburcu's contract.
    unsafe { Ends::write(head, tail) };
}

#[unsafe(export_name = "quiescence_cds_wfcq_destroy")]
unsafe extern "C" fn destroy(head: *mut LockedHead, _tail: *mut QueueTail) {
    // SAFETY: liburcu's contract.
    unsafe { LockedHead::destroy(head, NAME) };
}

#[unsafe(export_name = "quiescence_cds_wfcq_empty")]
unsafe extern "C" fn empty(head: *const QueueHead, tail: *const QueueTail) -> bool {
    // SAFETY: liburcu's contract.
    unsafe { ends(head, tail) }.is_empty()
}

#[unsafe(export_name = "quiescence_cds_wfcq_enqueue")]
unsafe extern "C" fn enqueue(
    head: *const QueueHead,
    tail: *const QueueTail,
    node: *mut QueueNode,
) -> bool {
    // SAFETY: liburcu's contract.
    let ends = unsafe { ends(head, tail) };
    // SAFETY: as above.
    unsafe { ends.enqueue(node) }
}

#[unsafe(export_name = "quiescence_cds_wfcq_dequeue_lock")]
unsafe extern "C" fn dequeue_lock(head: *mut LockedHead, _tail: *mut QueueTail) {
    // SAFETY: liburcu's contract.
    unsafe { LockedHead::lock(head, NAME) };
}

#[unsafe(export_name = "quiescence_cds_wfcq_dequeue_unlock")]
unsafe extern "C" fn dequeue_unlock(head: *mut LockedHead, _tail: *mut QueueTail) {
    // SAFETY: liburcu's contract.
    unsafe { LockedHead::unlock(head, NAME) };
}

#[unsafe(export_name = "quiescence_cds_wfcq_dequeue_blocking")]
unsafe extern "C" fn dequeue_blocking(
    head: *mut LockedHead,
    tail: *const QueueTail,
) -> *mut QueueNode {
    // SAFETY: liburcu's contract; null is for no state.
    unsafe { dequeue_with_state_blocking(head, tail, ptr::null_mut()) }
}

#[unsafe(export_name = "quiescence_cds_wfcq_dequeue_with_state_blocking")]
unsafe extern "C" fn dequeue_with_state_blocking(
    head: *mut LockedHead,
    tail: *const QueueTail,
    state: *mut c_int,
) -> *mut QueueNode {
    // SAFETY: liburcu's contract, of this function and of the one that is called under the lock.
    let dequeue = || unsafe { dequeue_alone_with_state_blocking(head.cast(), tail, state) };
    // SAFETY: as above.
    unsafe { LockedHead::locked(head, NAME, dequeue) }
}

#[unsafe(export_name = "quiescence___cds_wfcq_dequeue_blocking")]
unsafe extern "C" fn dequeue_alone_blocking(
    head: *const QueueHead,
    tail: *const QueueTail,
) -> *mut QueueNode {
    // SAFETY: liburcu's contract; null is for no state.
    unsafe { dequeue_alone_with_state_blocking(head, tail, ptr::null_mut()) }
}

#[unsafe(export_name = "quiescence___cds_wfcq_dequeue_with_state_blocking")]
unsafe extern "C" fn dequeue_alone_with_state_blocking(
    head: *const QueueHead,
    tail: *const QueueTail,
    state: *mut c_int,
) -> *mut QueueNode {
    // SAFETY: liburcu's contract.
    let ends = unsafe { ends(head, tail) };
    // SAFETY: as above.
    unsafe { dequeue(ends, state, Patience::Wait) }
}

#[unsafe(export_name = "quiescence___cds_wfcq_dequeue_nonblocking")]
unsafe extern "C" fn dequeue_alone_nonblocking(
    head: *const QueueHead,
    tail: *const QueueTail,
) -> *mut QueueNode {
    // SAFETY: liburcu's contract; null is for no state.
    unsafe { dequeue_alone_with_state_nonblocking(head, tail, ptr::null_mut()) }
}

#[unsafe(export_name = "quiescence___cds_wfcq_dequeue_with_state_nonblocking")]
unsafe extern "C" fn dequeue_alone_with_state_nonblocking(
    head: *const QueueHead,
    tail: *const QueueTail,
    state: *mut c_int,
) -> *mut QueueNode {
    // SAFETY: liburcu's contract.
    let ends = unsafe { ends(head, tail) };
    // SAFETY: as above.
    unsafe { dequeue(ends, state, Patience::Refuse) }
}

#[unsafe(export_name = "quiescence_cds_wfcq_splice_blocking")]
unsafe extern "C" fn splice_blocking(
    to_head: *mut LockedHead,
    to_tail: *const QueueTail,
    from_head: *mut LockedHead,
    from_tail: *const QueueTail,
) -> Spliced {
    // SAFETY: liburcu's contract, of this function and of the one that is called under the lock.
    let splice =
        || unsafe { splice_alone_blocking(to_head.cast(), to_tail, from_head.cast(), from_tail) };
    // SAFETY: as above.
    unsafe { LockedHead::locked(from_head, NAME, splice) }
}

#[unsafe(export_name = "quiescence___cds_wfcq_splice_blocking")]
unsafe extern "C" fn splice_alone_blocking(
    to_head: *const QueueHead,
    to_tail: *const QueueTail,
    from_head: *const QueueHead,
    from_tail: *const QueueTail,
) -> Spliced {
    // SAFETY: liburcu's contract.
    let to = unsafe { ends(to_head, to_tail) };
    // SAFETY: as above.
    let from = unsafe { ends(from_head, from_tail) };
    // SAFETY: as above.
    unsafe { splice(to, from, Patience::Wait) }
}

#[unsafe(export_name = "quiescence___cds_wfcq_splice_nonblocking")]
unsafe extern "C" fn splice_alone_nonblocking(
    to_head: *const QueueHead,
    to_tail: *const QueueTail,
    from_head: *const QueueHead,
    from_tail: *const QueueTail,
) -> Spliced {
    // SAFETY: liburcu's contract.
    let to = unsafe { ends(to_head, to_tail) };
    // SAFETY: as above.
    let from = unsafe { ends(from_head, from_tail) };
    // SAFETY: as above.
    unsafe { splice(to, from, Patience::Refuse) }
}

#[unsafe(export_name = "quiescence___cds_wfcq_first_blocking")]
unsafe extern "C" fn first_blocking(
    head: *const QueueHead,
    tail: *const QueueTail,
) -> *mut QueueNode {
    // SAFETY: liburcu's contract.
    let ends = unsafe { ends(head, tail) };
    // SAFETY: as above.
    node(unsafe { ends.first(Patience::Wait) })
}

#[unsafe(export_name = "quiescence___cds_wfcq_first_nonblocking")]
unsafe extern "C" fn first_nonblocking(
    head: *const QueueHead,
    tail: *const QueueTail,
) -> *mut QueueNode {
    // SAFETY: liburcu's contract.
    let ends = unsafe { ends(head, tail) };
    // SAFETY: as above.
    node(unsafe { ends.first(Patience::Refuse) })
}

#[unsafe(export_name = "quiescence___cds_wfcq_next_blocking")]
unsafe extern "C" fn next_blocking(
    head: *const QueueHead,
    tail: *const QueueTail,
    before: NonNull<QueueNode>,
) -> *mut QueueNode {
    // SAFETY: liburcu's contract.
    let ends = unsafe { ends(head, tail) };
    // SAFETY: as above.
    node(unsafe { ends.next(before, Patience::Wait) })
}

#[unsafe(export_name = "quiescence___cds_wfcq_next_nonblocking")]
unsafe extern "C" fn next_nonblocking(
    head: *const QueueHead,
    tail: *const QueueTail,
    before: NonNull<QueueNode>,
) -> *mut QueueNode {
    // SAFETY: liburcu's contract.
    let ends = unsafe { ends(head, tail) };
    // SAFETY: as above.
    node(unsafe { ends.next(before, Patience::Refuse) })
}
