//! A queue to which any thread adds nodes with one exchange, and from which one consumer at a time
//! takes them in order.
//!
//! It is a list with two ends. A producer exchanges the tail for its node, which fixes the node's
//! position, and then links the node behind the previous tail. The consumer follows the links. If a
//! link is missing although the tail is further on, a producer is between its two steps, and the
//! consumer waits ([`patience`]). When it takes the last node, it moves the tail back by
//! compare-and-exchange, which fails if a producer was faster.
//!
//! The list is Michael and Scott's (PODC 1996), with the exchange of Mellor-Crummey's queue (1987)
//! instead of their loop. The layout and the order of the stores are those of liburcu's `cds_wfcq`,
//! by Desnoyers and Jiangshan: C programs may have either side inlined.
//!
//! [`patience`]: super::patience

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use super::patience::{Patience, WouldBlock};
use crate::domain::impls::{default_by, shown_in_part};
use crate::os::sync::{self, AtomicPtr, Mutex, MutexGuard, Rank, const_unless_loom};

/// What an object embeds to be in a [`WaitFreeQueue`]: one word, liburcu's `struct cds_wfcq_node`.
#[repr(C)]
#[derive(Debug, Default)]
pub struct QueueNode {
    pub(super) next: AtomicPtr<QueueNode>,
}

impl QueueNode {
    const_unless_loom! {
        /// Creates a node that is in no queue.
        pub fn new() -> Self {
            Self { next: AtomicPtr::new(ptr::null_mut()) }
        }
    }
}

/// The consumer's end of a queue: liburcu's `struct __cds_wfcq_head`. Made by [`Ends::write`].
#[repr(C)]
#[derive(Debug)]
pub struct QueueHead {
    node: QueueNode,
}

/// The producers' end of a queue: liburcu's `struct cds_wfcq_tail`. Made by [`Ends::write`].
#[repr(C)]
#[derive(Debug)]
pub struct QueueTail {
    last: AtomicPtr<QueueNode>,
}

const _: () = assert!(size_of::<QueueHead>() == 8 && size_of::<QueueTail>() == 8);

/// The result of [`Consumer::dequeue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dequeued {
    /// The node, which belongs to the caller again.
    pub node: NonNull<QueueNode>,
    /// Whether the queue was empty afterwards: liburcu's `CDS_WFCQ_STATE_LAST`. The thread that
    /// enqueues the next node finds the queue empty, and gets `false`.
    pub last: bool,
}

/// The two ends of a queue, wherever they are in memory. All operations of a queue are implemented
/// on this type.
///
/// For code that provides an interface to C, or keeps the ends apart. Otherwise use
/// [`WaitFreeQueue`].
#[derive(Clone, Copy)]
pub struct Ends<'q> {
    head: &'q QueueHead,
    tail: &'q QueueTail,
    /// What the tail holds when the queue is empty. C's queues have the head there, which cannot
    /// move then; Rust's have null, and move.
    empty: *mut QueueNode,
}

impl<'q> Ends<'q> {
    /// The ends of a queue that C code made, laid out as liburcu's.
    ///
    /// # Safety
    /// Both are ends of one queue, which was made by [`write`](Self::write) or by C itself, and has
    /// not moved since. Its nodes fulfil the conditions of [`WaitFreeQueue::enqueue`].
    #[inline]
    pub unsafe fn new(head: &'q QueueHead, tail: &'q QueueTail) -> Self {
        Self { head, tail, empty: ptr::from_ref(&head.node).cast_mut() }
    }

    /// Creates an empty queue in C's representation, whatever was there before.
    ///
    /// # Safety
    /// Both may be written, belong to the caller alone, and do not move.
    pub unsafe fn write(head: *mut QueueHead, tail: *mut QueueTail) {
        // SAFETY: by this function's contract.
        unsafe { head.write(QueueHead { node: QueueNode::new() }) };
        // The head's node is all there is to it.
        let tail_of_empty = QueueTail { last: AtomicPtr::new(head.cast::<QueueNode>()) };
        // SAFETY: by this function's contract.
        unsafe { tail.write(tail_of_empty) };
    }

    /// Whether the queue is empty, with no insertion in progress. For any thread; this may change a
    /// moment later. Orders no memory accesses.
    #[inline]
    pub fn is_empty(self) -> bool {
        // Relaxed: the tail alone says it, and nothing is read through it. The head comes first so
        // that a consumer of a queue that is not empty leaves the producers' cache line alone.
        self.head.node.next.load(Relaxed).is_null() && self.tail.last.load(Relaxed) == self.empty
    }

    /// [`WaitFreeQueue::enqueue`].
    ///
    /// # Safety
    /// As there.
    #[inline]
    pub unsafe fn enqueue(self, node: *mut QueueNode) -> bool {
        // SAFETY: by this function's contract.
        unsafe { self.link(node, node) }
    }

    /// [`WaitFreeQueue::append`].
    pub fn append(self, chain: Chain) -> bool {
        // SAFETY: the nodes are in no queue, and valid as long as they were to be in the one they
        // come from; the last was that one's last, and its link is null.
        !chain.is_empty() && unsafe { self.link(chain.next, chain.last) }
    }

    /// Puts nodes that are linked behind the last. Whether there was one.
    ///
    /// # Safety
    /// As for [`enqueue`](Self::enqueue), for each of them; the last one's link is null.
    #[inline]
    unsafe fn link(self, first: *mut QueueNode, last: *mut QueueNode) -> bool {
        // Release: the next producer sees that `last`'s link is null before it writes there.
        // Acquire: and so do we. SeqCst, which costs no more on x86: a thread that enqueues and
        // then checks whether a consumer sleeps is ordered against a consumer that says that it
        // will sleep and then checks the queue; liburcu promises a full fence.
        let before = self.tail.last.swap(last, SeqCst);
        let link = if before == self.empty {
            &self.head.node.next
        } else {
            // SAFETY: a consumer keeps the node that the tail names until its link is written,
            // which is below.
            unsafe { &(*before).next }
        };
        // Release: pairs with the Acquire of the consumer that follows the link.
        link.store(first, Release); //~ unseen-node
        before != self.empty
    }

    /// Dequeues the first node; `None` if the queue is empty.
    ///
    /// # Errors
    /// An insertion is half done, and `patience` does not allow waiting. Nothing has changed.
    ///
    /// # Safety
    /// The caller is the only consumer: its operations and those of other consumers do not overlap.
    /// All nodes fulfil the conditions of [`WaitFreeQueue::enqueue`].
    #[inline]
    pub unsafe fn dequeue(self, patience: Patience) -> Result<Option<Dequeued>, WouldBlock> {
        if self.is_empty() {
            return Ok(None);
        }
        let first = patience.link(&self.head.node.next)?;
        // SAFETY: a node in the queue, which is the consumer's to take.
        let link = unsafe { &(*first).next };
        // Acquire: pairs with the Release that linked the next one.
        let mut next = link.load(Acquire);
        let mut last = false;
        if next.is_null() {
            // Perhaps the last. The head is emptied first: once the tail is moved back, the link
            // there is a producer's.
            self.head.node.next.store(ptr::null_mut(), Relaxed); //~ late-head
            // Release: pairs with the producers' exchange; a thread that finds the queue empty
            // writes the head after us.
            let moved = self.tail.last.compare_exchange(first, self.empty, Release, Relaxed);
            //~ tail-unchecked:
            if moved.is_ok() {
                //~ late-head
                last = true;
            } else {
                // A producer was faster. No other thread writes the head while the queue is not
                // empty.
                next = patience.link(link).inspect_err(|_| {
                    self.head.node.next.store(first, Relaxed);
                })?;
            }
        }
        if !last {
            // Relaxed: read by consumers, one after the other.
            self.head.node.next.store(next, Relaxed);
        }
        Ok(NonNull::new(first).map(|node| Dequeued { node, last }))
    }

    /// Takes all nodes. Walking the chain may still have to wait for insertions.
    ///
    /// # Errors
    /// The insertion of the first node is half done, and `patience` does not allow waiting. Nothing
    /// has changed.
    ///
    /// # Safety
    /// As [`dequeue`](Self::dequeue), but other threads may take all nodes as well.
    pub unsafe fn take_all(self, patience: Patience) -> Result<Chain, WouldBlock> {
        let mut looks = 0;
        loop {
            if self.is_empty() {
                return Ok(Chain::EMPTY);
            }
            // Acquire: pairs with the Release that linked the first node.
            let first = self.head.node.next.load(Acquire);
            // Of several threads that take all, one gets the first node, and with it the rest.
            //~ take-unchecked:
            if !first.is_null() && self.take_first(first) {
                // Release: as in `dequeue`. Acquire: the thread that puts the chain into another
                // queue has its last link null.
                let last = self.tail.last.swap(self.empty, AcqRel);
                return Ok(Chain { next: first, last });
            }
            // A producer, or a thread that takes all, is between two steps.
            patience.pass(&mut looks)?;
        }
    }

    /// Empties the head, unless another thread has.
    fn take_first(self, first: *mut QueueNode) -> bool {
        // Relaxed: it has been acquired, and the tail is what releases.
        self.head.node.next.compare_exchange(first, ptr::null_mut(), Relaxed, Relaxed).is_ok()
    }

    /// The first node, without removing it.
    ///
    /// # Errors
    /// An insertion is half done, and `patience` does not allow waiting.
    ///
    /// # Safety
    /// No thread removes nodes during the call, nor while the caller uses the node.
    pub unsafe fn first(
        self,
        patience: Patience,
    ) -> Result<Option<NonNull<QueueNode>>, WouldBlock> {
        if self.is_empty() {
            return Ok(None);
        }
        patience.link(&self.head.node.next).map(NonNull::new)
    }

    /// The node after `node`; `None` after the last.
    ///
    /// # Errors
    /// As [`first`](Self::first).
    ///
    /// # Safety
    /// As for [`first`](Self::first). `node` is a result of `first` or of this function.
    pub unsafe fn next(
        self,
        node: NonNull<QueueNode>,
        patience: Patience,
    ) -> Result<Option<NonNull<QueueNode>>, WouldBlock> {
        // SAFETY: it is in the queue, by this function's contract.
        let link = unsafe { &(*node.as_ptr()).next };
        // Acquire: as in `dequeue`; and the tail is looked at afterwards.
        let next = link.load(Acquire);
        // Relaxed: only whether it is this node. A node that is the last now had no next before.
        if next.is_null() && self.tail.last.load(Relaxed) == node.as_ptr() {
            return Ok(None);
        }
        patience.link(link).map(NonNull::new)
    }
}

shown_in_part!([] Ends<'_> { is_empty: |ends| ends.is_empty() });

/// Two cache lines, the second of which CPUs fetch along with the first.
#[derive(Debug)]
#[repr(align(128))]
struct Apart<T>(T);

/// A queue of nodes embedded in their objects. Any thread enqueues, one consumer at a time
/// dequeues.
///
/// # Promise
/// Nodes that one thread enqueues are dequeued in that order, and each node is dequeued once.
/// Everything written to an object before it is enqueued is visible to the thread that dequeues it.
/// An `enqueue` is a sequentially consistent operation.
///
/// # Progress and cost
/// [`enqueue`](Self::enqueue) is wait-free: one exchange and one store, and no memory but the node.
/// A consumer is blocked only by a producer that was stopped between these two. It polls some
/// hundred times, and then naps for 200 µs at a time. Consumers exclude each other with a lock.
///
/// # Source
/// liburcu's `cds_wfcq` (Desnoyers, Jiangshan), with which C programs share this code; see the
/// crate `compat`.
///
/// ```
/// use quiescence::intrusive::{QueueNode, WaitFreeQueue};
///
/// #[repr(C)]
/// struct Job {
///     node: QueueNode, // first, so that a pointer to it is one to the job
///     number: u32,
/// }
///
/// let queue = WaitFreeQueue::new();
/// for number in 0..3 {
///     let job = Box::new(Job { node: QueueNode::new(), number });
///     // SAFETY: a node of a box that is given away; it is turned into the box again below.
///     unsafe { queue.enqueue(Box::into_raw(job).cast()) };
/// }
/// let mut consumer = queue.consumer();
/// let mut numbers = Vec::new();
/// while let Some(job) = consumer.dequeue() {
///     // SAFETY: a box from above, whose node comes first.
///     let job = unsafe { Box::from_raw(job.node.as_ptr().cast::<Job>()) };
///     numbers.push(job.number);
/// }
/// assert_eq!(numbers, [0, 1, 2]);
/// ```
#[derive(Debug)]
pub struct WaitFreeQueue {
    tail: Apart<QueueTail>,
    head: QueueHead,
    consumers: Mutex<()>,
}

impl WaitFreeQueue {
    const_unless_loom! {
        /// Creates an empty queue.
        pub fn new() -> Self {
            Self {
                tail: Apart(QueueTail { last: AtomicPtr::new(ptr::null_mut()) }),
                head: QueueHead { node: QueueNode::new() },
                consumers: Mutex::new(Rank::Consumers, ()),
            }
        }
    }

    /// The queue's two ends, with C's interface: its caller must ensure that only one thread at a
    /// time removes nodes, or looks at them.
    #[inline]
    pub fn ends(&self) -> Ends<'_> {
        Ends { head: &self.head, tail: &self.tail.0, empty: ptr::null_mut() }
    }

    /// Enqueues a node. Returns whether the queue was not empty before: the thread that gets
    /// `false` should wake a consumer.
    ///
    /// # Progress
    /// Wait-free.
    ///
    /// # Safety
    /// - `node` is a [`QueueNode::new`] that was written since it was last in a queue.
    /// - It does not move, and stays valid, until it has been dequeued, or taken from a [`Chain`].
    /// - Any thread may dequeue it.
    #[inline]
    pub unsafe fn enqueue(&self, node: *mut QueueNode) -> bool {
        // SAFETY: by this function's contract.
        unsafe { self.ends().enqueue(node) }
    }

    /// Appends all nodes of a chain, in its order. Returns whether the queue was not empty before.
    ///
    /// # Progress
    /// Wait-free.
    pub fn append(&self, chain: Chain) -> bool {
        self.ends().append(chain)
    }

    /// Whether the queue is empty, with no insertion in progress. This may change a moment later.
    /// Orders no memory accesses.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ends().is_empty()
    }

    /// Waits until no other thread is the consumer, and returns the right to dequeue nodes.
    pub fn consumer(&self) -> Consumer<'_> {
        Consumer { ends: self.ends(), _others: Some(sync::lock_another(&self.consumers)) }
    }

    /// Like [`consumer`](Self::consumer), without the lock.
    ///
    /// # Safety
    /// As [`Ends::dequeue`], for all operations of the consumer.
    #[inline]
    pub unsafe fn only_consumer(&self) -> Consumer<'_> {
        Consumer { ends: self.ends(), _others: None }
    }
}

default_by!(new, impl Default for WaitFreeQueue);

/// The thread that dequeues nodes. While it lives, no other thread does.
#[derive(Debug)]
pub struct Consumer<'q> {
    ends: Ends<'q>,
    _others: Option<MutexGuard<'q, ()>>,
}

impl Consumer<'_> {
    /// Dequeues the first node; `None` if the queue is empty. Waits for a half-done insertion.
    #[inline]
    pub fn dequeue(&mut self) -> Option<Dequeued> {
        // SAFETY: this is the only consumer.
        unsafe { self.ends.dequeue(Patience::Wait) }.unwrap_or(None)
    }

    /// Like [`dequeue`](Self::dequeue), but does not wait.
    ///
    /// # Errors
    /// An insertion is half done. Nothing has changed.
    #[inline]
    pub fn try_dequeue(&mut self) -> Result<Option<Dequeued>, WouldBlock> {
        // SAFETY: this is the only consumer.
        unsafe { self.ends.dequeue(Patience::Refuse) }
    }

    /// Takes all nodes of the queue, in constant time. Waits for a half-done insertion of the first
    /// node.
    pub fn take_all(&mut self) -> Chain {
        // SAFETY: this is the only consumer.
        unsafe { self.ends.take_all(Patience::Wait) }.unwrap_or(Chain::EMPTY)
    }

    /// Like [`take_all`](Self::take_all), but does not wait. Walking the chain may still have to.
    ///
    /// # Errors
    /// The insertion of the first node is half done. Nothing has changed.
    pub fn try_take_all(&mut self) -> Result<Chain, WouldBlock> {
        // SAFETY: this is the only consumer.
        unsafe { self.ends.take_all(Patience::Refuse) }
    }

    /// Iterates over the nodes from first to last; they stay in the queue.
    pub fn iter(&self) -> impl Iterator<Item = NonNull<QueueNode>> {
        let ends = self.ends;
        // SAFETY: this is the only consumer, and does not dequeue as long as it is borrowed.
        let first = unsafe { ends.first(Patience::Wait) }.unwrap_or(None);
        // SAFETY: as above; the node came from this queue.
        std::iter::successors(first, move |node| unsafe {
            ends.next(*node, Patience::Wait).unwrap_or(None)
        })
    }
}

/// Nodes that were taken from a queue together. They come out in order. Each belongs to the caller
/// as soon as the iterator has returned it, to be freed or to be put anywhere. Nodes that are left
/// when this is dropped have no owner: they leak.
///
/// The walk waits for insertions into the old queue that are half done.
#[derive(Debug)]
#[must_use = "what is in it leaks"]
pub struct Chain {
    /// Null when nothing is left.
    next: *mut QueueNode,
    last: *mut QueueNode,
}

// SAFETY: by the contract of `enqueue`, nodes may be taken out on any thread.
unsafe impl Send for Chain {}

impl Chain {
    const EMPTY: Self = Self { next: ptr::null_mut(), last: ptr::null_mut() };

    /// Whether no node is left.
    pub fn is_empty(&self) -> bool {
        self.next.is_null()
    }
}

impl Iterator for Chain {
    type Item = NonNull<QueueNode>;

    #[inline]
    fn next(&mut self) -> Option<NonNull<QueueNode>> {
        let node = NonNull::new(self.next)?;
        self.next = if self.next == self.last {
            ptr::null_mut()
        } else {
            // SAFETY: the chain's own node, not handed out yet.
            let link = unsafe { &(*node.as_ptr()).next };
            Patience::Wait.link(link).unwrap_or(ptr::null_mut())
        };
        Some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads that take beside each other find two consumers at once by chance only.
    #[test]
    fn a_consumer_keeps_others_away_until_it_goes() {
        let queue = WaitFreeQueue::new();
        let consumer = queue.consumer();
        assert!(sync::try_lock(&queue.consumers).is_none(), "a second consumer");
        drop(consumer);
        assert!(sync::try_lock(&queue.consumers).is_some());
    }
}
