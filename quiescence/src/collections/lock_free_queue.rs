//! A lock-free queue for any number of producers and consumers, all of them in read-side critical
//! sections.
//!
//! Michael and Scott's queue (PODC 1996). It always contains a node: an empty queue has a dummy,
//! which is made when the last other node is taken, and freed a grace period after it was dequeued.
//! Threads access nodes only in sections, and nodes are reused only after a grace period. So no
//! address can stand for two nodes during one operation, and the counted pointers of the original
//! are not needed.
//!
//! The tail never names a node that was taken out: a section that begins afterwards would find it,
//! and the node's grace period would not wait for that section. An enqueuer that has linked its
//! node but not yet moved the tail leaves the tail one node behind, so a thread that takes the node
//! at the tail moves the tail first. The tail is never further behind: the thread that links the
//! next node has found the tail at the node before. (liburcu 0.13 does not move the tail, so a
//! consumer with liburcu's inlined code leaves it behind here too.)
//!
//! The layout and the order of the stores are those of liburcu's `cds_lfq_rcu`, by Desnoyers: C
//! programs may have either side inlined. So dummies come from `malloc`.

use std::alloc::{Layout, handle_alloc_error};
use std::fmt;
use std::iter;
use std::mem::offset_of;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::domain::domain::Domain;
use crate::domain::impls::{default_by, shown_in_part};
use crate::domain::raw;
use crate::os::sync::{AtomicPtr, const_unless_loom};

/// What an object embeds to be in a [`LockFreeQueue`]: liburcu's `struct cds_lfq_node_rcu`.
#[repr(C)]
#[derive(Debug, Default)]
pub struct SharedNode {
    pub(super) next: AtomicPtr<SharedNode>,
    /// Whether it is one of the queue's own. Written before it is put in.
    is_dummy: i32,
}

impl SharedNode {
    const_unless_loom! {
        /// Creates a node that is in no queue.
        pub fn new() -> Self {
            Self { next: AtomicPtr::new(ptr::null_mut()), is_dummy: 0 }
        }
    }

    /// Whether a node is one of the queue's own.
    ///
    /// # Safety
    /// It has come out of the queue's ends or links, and the caller's section has lasted since
    /// then.
    unsafe fn is_dummy(node: *mut Self) -> bool {
        // SAFETY: by this function's contract; it is not written while it is in a queue.
        unsafe { (*node).is_dummy != 0 }
    }
}

/// The function that defers a callback until after a grace period: `call_rcu` of the domain in
/// which the queue's users read.
pub type CallAfter = unsafe extern "C" fn(*mut raw::Head, raw::Function);

/// liburcu's `struct cds_lfq_node_rcu_dummy`, which its inlined functions make and free as well.
#[repr(C)]
struct Dummy {
    node: SharedNode,
    head: raw::Head,
    /// Where C's functions find what to call. Ours ask the queue at hand.
    queue: *const LockFreeQueue,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Dummy>() == 40 && offset_of!(Dummy, head) == 16);

impl Dummy {
    fn allocate(queue: *const LockFreeQueue) -> *mut SharedNode {
        // SAFETY: nothing is asked of the caller.
        let memory = unsafe { libc::malloc(size_of::<Self>()) }.cast::<Self>();
        if memory.is_null() {
            // A queue cannot be without its dummy, and its operations have no error to return.
            handle_alloc_error(Layout::new::<Self>());
        }
        let node = SharedNode { is_dummy: 1, ..SharedNode::new() };
        // SAFETY: memory of this size, aligned for anything.
        unsafe { memory.write(Self { node, head: raw::Head::new(), queue }) };
        memory.cast()
    }

    /// # Safety
    /// `node` is one of [`allocate`](Self::allocate), or of C's counterpart, and no thread can
    /// reach it.
    unsafe fn free(node: *mut SharedNode) {
        // SAFETY: by this function's contract.
        unsafe { libc::free(node.cast()) };
    }

    /// # Safety
    /// As [`free`](Self::free), for the dummy that has this head.
    unsafe extern "C" fn free_by_head(head: *mut raw::Head) {
        // SAFETY: by this function's contract.
        unsafe { Self::free(dummy_of(head)) };
    }
}

/// The dummy that has this head.
pub(super) fn dummy_of(head: *mut raw::Head) -> *mut SharedNode {
    head.wrapping_byte_sub(offset_of!(Dummy, head)).cast()
}

/// The queue is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NotEmpty;

impl fmt::Display for NotEmpty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the queue is not empty: dequeue its nodes first")
    }
}

impl std::error::Error for NotEmpty {}

/// A queue of nodes embedded in their objects, laid out as liburcu's `struct cds_lfq_queue_rcu`.
/// Any thread enqueues and dequeues, in sections of one domain.
///
/// # Promise
/// Nodes that one thread enqueues are dequeued in that order, and each node is dequeued once.
/// Everything written to an object before it is enqueued is visible to the thread that dequeues it.
/// An `enqueue` is a sequentially consistent operation.
///
/// # Progress and cost
/// Lock-free: two compare-and-exchanges to enqueue, one to dequeue, and more under contention. When
/// the last node is dequeued, a dummy of 40 bytes is allocated, and the previous dummy is freed
/// after a grace period. If there is no memory for it, the process ends as it does for a `Box`.
///
/// # Source
/// M. M. Michael, M. L. Scott, "Simple, fast, and practical non-blocking and blocking concurrent
/// queue algorithms", PODC 1996; with grace periods, liburcu's `cds_lfq_rcu`.
///
/// ```
/// use quiescence::intrusive::{LockFreeQueue, SharedNode};
///
/// #[repr(C)]
/// struct Job {
///     node: SharedNode, // first, so that a pointer to it is one to the job
///     number: u32,
/// }
///
/// let queue = LockFreeQueue::new();
/// let job = Box::new(Job { node: SharedNode::new(), number: 7 });
/// let section = quiescence::read();
/// // SAFETY: in a section of the queue's domain; the box is given away, and freed below.
/// unsafe { queue.enqueue(Box::into_raw(job).cast()) };
/// // SAFETY: in a section of the queue's domain.
/// let job = unsafe { queue.dequeue() }.unwrap();
/// drop(section);
/// quiescence::synchronize();
/// // SAFETY: the box from above, a grace period after it came out.
/// let job = unsafe { Box::from_raw(job.as_ptr().cast::<Job>()) };
/// assert_eq!(job.number, 7);
/// ```
#[repr(C)]
pub struct LockFreeQueue {
    first: AtomicPtr<SharedNode>,
    /// The last node, or the one before it. A thread that finds it behind moves it on; a thread
    /// that takes the node that it names does so first. So the node that it names has not been
    /// taken out, and a thread that loads it in a section may follow it.
    last: AtomicPtr<SharedNode>,
    call_after: CallAfter,
}

const _: () = assert!(size_of::<LockFreeQueue>() == 24 && size_of::<SharedNode>() == 16);

/// [`CallAfter`] of the global domain.
unsafe extern "C" fn call_after_global(head: *mut raw::Head, function: raw::Function) {
    // SAFETY: by the contract of `CallAfter`'s users: a head that no other thread uses.
    unsafe { raw::call_head(&Domain::global(), head, function) };
}

/// [`CallAfter`] of the global domain that retires a dummy as an object, for queues whose nodes are
/// retired as well: the thread that has taken it out frees it.
unsafe extern "C" fn retire_in_global(head: *mut raw::Head, _free: raw::Function) {
    unsafe fn free(dummy: *mut ()) {
        // SAFETY: a dummy, whose grace period is over, by the contract of `CallAfter`'s users.
        unsafe { Dummy::free(dummy.cast()) };
    }
    let dummy = dummy_of(head).cast::<Dummy>();
    // SAFETY: by the same contract: only the queue calls this, with a dummy that is out of reach.
    unsafe { raw::retire_with(&Domain::global(), dummy, size_of::<Dummy>(), free) };
}

impl LockFreeQueue {
    /// Creates an empty queue whose users read in the global domain.
    pub fn new() -> Self {
        // SAFETY: it calls after a grace period of the global domain, as is asked.
        unsafe { Self::with(call_after_global) }
    }

    /// The same, whose dummies are retired by the thread that takes them out: it may wait for that
    /// where its section ends.
    pub(super) fn retiring() -> Self {
        // SAFETY: it frees dummies after a grace period of the global domain, as is asked.
        unsafe { Self::with(retire_in_global) }
    }

    /// Creates an empty queue whose users read in the domain to which this `call_rcu` belongs.
    ///
    /// # Safety
    /// `call_after(head, function)` calls `function(head)` once, after a grace period of that
    /// domain.
    pub unsafe fn with(call_after: CallAfter) -> Self {
        let dummy = Dummy::allocate(ptr::null());
        Self { first: AtomicPtr::new(dummy), last: AtomicPtr::new(dummy), call_after }
    }

    /// Creates an empty queue at an address, for C, whatever was there before.
    ///
    /// # Safety
    /// `queue` may be written, belongs to the caller alone, and does not move while it is a queue;
    /// `call_after` as for [`with`](Self::with).
    pub unsafe fn write(queue: *mut Self, call_after: CallAfter) {
        let dummy = Dummy::allocate(queue);
        let (first, last) = (AtomicPtr::new(dummy), AtomicPtr::new(dummy));
        // SAFETY: by this function's contract.
        unsafe { queue.write(Self { first, last, call_after }) };
    }

    /// Enqueues a node.
    ///
    /// # Progress
    /// Lock-free.
    ///
    /// # Safety
    /// - The caller is in a read-side critical section of the queue's domain.
    /// - `node` is a [`SharedNode::new`] that was written after it was last in a queue.
    /// - It does not move, and stays valid, until a grace period has passed since it was dequeued.
    ///   Any thread may dequeue it.
    #[inline]
    pub unsafe fn enqueue(&self, node: *mut SharedNode) {
        // The exchange has Release: pairs with the Acquire of a thread that follows the link.
        // SeqCst, which costs no more on x86: liburcu promises a full fence.
        loop {
            // Acquire: pairs with the Release that moved it here.
            let last = self.last.load(Acquire);
            // SAFETY: what the tail names has not been taken out, and is not freed while our
            // section lasts.
            let link = unsafe { &(*last).next };
            // Acquire: the next node is handed on, to threads that load the tail.
            let null = ptr::null_mut();
            //~ unseen-node:
            let (appended, next) = match link.compare_exchange(null, node, SeqCst, Acquire) {
                Ok(_) => (true, node),
                Err(next) => (false, next),
            };
            // Release: pairs with the Acquire above. If it fails, another thread has moved it.
            let _ = self.last.compare_exchange(last, next, Release, Relaxed);
            if appended {
                return;
            }
        }
    }

    /// Dequeues the first node; `None` if there is none.
    ///
    /// # Progress
    /// Lock-free, except for the allocation of a dummy.
    ///
    /// # Safety
    /// The caller is in a read-side critical section of the queue's domain. Until a grace period
    /// has passed since then, it does not free the node, change it, make a `&mut` of it (or of an
    /// object around it) or put it anywhere.
    pub unsafe fn dequeue(&self) -> Option<NonNull<SharedNode>> {
        loop {
            // Acquire: pairs with the Release that moved it here: the node's content is seen.
            let first = self.first.load(Acquire);
            // SAFETY: it was the first in our section, and is not freed in it.
            let is_dummy = unsafe { SharedNode::is_dummy(first) };
            // SAFETY: as above.
            let link = unsafe { &(*first).next };
            // Acquire: pairs with the exchange that linked it; handed on below.
            let mut next = link.load(Acquire);
            if next.is_null() {
                if is_dummy {
                    return None;
                }
                // One has to stay.
                // SAFETY: a dummy that is in no queue; the caller is in a section.
                unsafe { self.enqueue(Dummy::allocate(self)) };
                // Acquire: as above. There is one now, perhaps not this dummy.
                next = link.load(Acquire);
            }
            // Sections that begin afterwards must not find a removed node at the tail. Relaxed: the
            // thread that linked `next` had found the tail at `first` or beyond, so this load does
            // too; and the tail is at `first` only once.
            //~ tail-left-behind:
            if self.last.load(Relaxed) == first {
                // Release: pairs with the Acquire in `enqueue`. If it fails, another thread has
                // moved it.
                let _ = self.last.compare_exchange(first, next, Release, Relaxed);
            }
            // Release: pairs with the Acquire above.
            let taken = self.first.compare_exchange(first, next, Release, Relaxed);
            //~ pop-unchecked:
            if taken.is_err() {
                continue;
            }
            if !is_dummy {
                return NonNull::new(first);
            }
            // SAFETY: no other thread has passed it; a thread that still looks at it is in a
            // section.
            unsafe { self.free_after(first) };
        }
    }

    /// Whether no node but dummies is in the queue. It may be otherwise a moment later.
    ///
    /// # Safety
    /// The caller is in a read-side critical section of the queue's domain.
    pub(super) unsafe fn is_empty(&self) -> bool {
        // SAFETY: by the contract.
        let mut nodes = unsafe { self.nodes() };
        // SAFETY: as above.
        nodes.all(|node| unsafe { SharedNode::is_dummy(node.as_ptr()) })
    }

    /// Its nodes, from the first to the last, with its dummies.
    ///
    /// # Safety
    /// As of [`is_empty`](Self::is_empty), as long as the iterator is used.
    pub(super) unsafe fn nodes(&self) -> impl Iterator<Item = NonNull<SharedNode>> {
        // Acquire: pairs with the Release that moved it here. Null once `take_first` has taken the
        // last.
        iter::successors(NonNull::new(self.first.load(Acquire)), |node| {
            // SAFETY: it was the first in our section, or behind that, and is not freed in it.
            let link = unsafe { &node.as_ref().next };
            // Acquire: pairs with the exchange that linked it.
            NonNull::new(link.load(Acquire))
        })
    }

    /// Takes the first node of a queue that has one user, at its end: once it has taken the last,
    /// the queue may be asked whether it is empty, and dropped, and no more.
    pub(super) fn take_first(&mut self) -> Option<NonNull<SharedNode>> {
        loop {
            // Relaxed: the thread that gave us the queue saw to the order.
            let first = NonNull::new(self.first.load(Relaxed))?;
            // SAFETY: in the queue, which no other thread uses.
            let link = unsafe { &first.as_ref().next };
            // Relaxed: as above, and there is no other thread to see it.
            self.first.store(link.load(Relaxed), Relaxed);
            // SAFETY: as above.
            if !unsafe { SharedNode::is_dummy(first.as_ptr()) } {
                return Some(first);
            }
            // SAFETY: a dummy that no thread can reach any more.
            unsafe { Dummy::free(first.as_ptr()) };
        }
    }

    /// Frees a dummy that is not in the queue any more.
    ///
    /// # Safety
    /// The caller took it out.
    unsafe fn free_after(&self, dummy: *mut SharedNode) {
        // SAFETY: it is a dummy, and valid for a grace period at least.
        let head = unsafe { &raw mut (*dummy.cast::<Dummy>()).head };
        // SAFETY: by the contract of `with`; the head is this dummy's, which no thread comes to
        // from now on.
        unsafe { (self.call_after)(head, Dummy::free_by_head) };
    }

    /// Frees the dummy of an empty queue, which is no longer a queue then.
    ///
    /// # Errors
    /// The queue is not empty. Nothing has changed.
    ///
    /// # Safety
    /// No other thread uses the queue any more. After a success the caller does not use it either,
    /// nor drop it.
    pub unsafe fn destroy(&self) -> Result<(), NotEmpty> {
        // Acquire: as in `dequeue`.
        let first = self.first.load(Acquire);
        // SAFETY: in the queue, which no other thread uses.
        let is_dummy = unsafe { SharedNode::is_dummy(first) };
        // SAFETY: as above.
        let link = unsafe { &(*first).next };
        // Acquire: the thread that was here is gone.
        if !is_dummy || !link.load(Acquire).is_null() {
            return Err(NotEmpty);
        }
        // SAFETY: a dummy, and all there is.
        unsafe { Dummy::free(first) };
        Ok(())
    }
}

default_by!(new, impl Default for LockFreeQueue);

shown_in_part!([] LockFreeQueue);

impl Drop for LockFreeQueue {
    /// Frees the queue's own nodes. Others that are still in it have no owner: they leak.
    fn drop(&mut self) {
        while self.take_first().is_some() {}
    }
}
