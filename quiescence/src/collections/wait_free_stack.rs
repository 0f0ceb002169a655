//! A stack onto which any thread pushes nodes with one exchange.
//!
//! A producer exchanges the top for its node, and then writes the previous top into the node's
//! link. A consumer that finds a node whose link is not yet written waits for the producer
//! ([`patience`](super::patience)). An address that no node has marks the bottom, since null means
//! "not yet written".
//!
//! The layout and the order of the stores are those of liburcu's `cds_wfs`, by Desnoyers: C
//! programs may have either side inlined.

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use super::patience::{Patience, WouldBlock};
use crate::domain::impls::default_by;
use crate::os::sync::{AtomicPtr, const_unless_loom};

/// What an object embeds to be on a stack: one word, liburcu's `struct cds_wfs_node` and `struct
/// cds_lfs_node`.
#[repr(C)]
#[derive(Debug, Default)]
pub struct StackNode {
    pub(super) next: AtomicPtr<StackNode>,
}

impl StackNode {
    const_unless_loom! {
        /// Creates a node that is on no stack.
        pub fn new() -> Self {
            Self { next: AtomicPtr::new(ptr::null_mut()) }
        }
    }
}

/// What lies under the lowest node.
const BOTTOM: *mut StackNode = ptr::without_provenance_mut(1);

/// The result of [`WaitFreeStack::pop`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Popped {
    /// The node.
    pub node: NonNull<StackNode>,
    /// Whether the stack was empty afterwards: liburcu's `CDS_WFS_STATE_LAST`.
    pub last: bool,
}

/// A stack of nodes embedded in their objects, laid out as liburcu's `struct __cds_wfs_stack`.
///
/// # Promise
/// Each node is popped once, the node pushed last first. Everything written to an object before it
/// is pushed is visible to the thread that pops it. A `push` is a sequentially consistent
/// operation.
///
/// # Progress and cost
/// [`push`](Self::push) is wait-free: one exchange and one store. [`pop_all`](Self::pop_all) is
/// wait-free: one exchange. The walk over its result, and [`pop`](Self::pop), are blocked by a
/// producer that was stopped between its exchange and its store; they poll some hundred times, and
/// then nap for 200 µs at a time.
///
/// # Source
/// liburcu's `cds_wfs` (Desnoyers).
///
/// ```
/// use quiescence::intrusive::{StackNode, WaitFreeStack};
///
/// #[repr(C)]
/// struct Job {
///     node: StackNode, // first, so that a pointer to it is one to the job
///     number: u32,
/// }
///
/// let stack = WaitFreeStack::new();
/// for number in 0..3 {
///     let job = Box::new(Job { node: StackNode::new(), number });
///     // SAFETY: a node of a box that is given away; it is turned into the box again below.
///     unsafe { stack.push(Box::into_raw(job).cast()) };
/// }
/// let numbers = stack.pop_all().map(|node| {
///     // SAFETY: a box from above, whose node comes first.
///     unsafe { Box::from_raw(node.as_ptr().cast::<Job>()) }.number
/// });
/// assert!(numbers.eq([2, 1, 0]));
/// ```
#[repr(C)]
#[derive(Debug)]
pub struct WaitFreeStack {
    top: AtomicPtr<StackNode>,
}

const _: () = assert!(size_of::<WaitFreeStack>() == 8 && size_of::<StackNode>() == 8);

impl WaitFreeStack {
    const_unless_loom! {
        /// Creates an empty stack.
        pub fn new() -> Self {
            Self { top: AtomicPtr::new(BOTTOM) }
        }
    }

    /// Whether the stack is empty. This may change a moment later. Orders no memory accesses.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Relaxed: nothing is read through it.
        self.top.load(Relaxed) == BOTTOM
    }

    /// Pushes a node. Returns whether the stack was not empty before.
    ///
    /// # Progress
    /// Wait-free.
    ///
    /// # Safety
    /// - `node` is a [`StackNode::new`] that was written since it was last on a stack.
    /// - It does not move, and stays valid, until it has been popped, and no thread that may be in
    ///   [`pop`](Self::pop) can reach it any more; see there.
    /// - Any thread may pop it.
    #[inline]
    pub unsafe fn push(&self, node: *mut StackNode) -> bool {
        // The exchange has Release: pairs with the Acquire of the thread that takes the node off,
        // which sees its content. SeqCst, which costs no more on x86: liburcu promises a full
        // fence, as for the queue.
        let before = self.top.swap(node, SeqCst); //~ unseen-node
        // SAFETY: no thread takes it off before this is written.
        let link = unsafe { &(*node).next };
        // Release: pairs with the Acquire of a thread that continues with the next node; it carries
        // what the exchange has seen.
        link.store(before, Release); //~ unseen-node
        before != BOTTOM
    }

    /// Pops the topmost node; `None` if there is none. Waits for a half-done push.
    ///
    /// # Safety
    /// One of the following holds for all threads that pop nodes of this stack, one or all:
    /// - they exclude each other;
    /// - there is only one such thread;
    /// - those that pop are in a read-side critical section, and a node is not freed, changed or
    ///   pushed again until a grace period of a domain of theirs has passed since it was popped.
    #[inline]
    pub unsafe fn pop(&self) -> Option<Popped> {
        // SAFETY: by this function's contract.
        unsafe { self.pop_with(Patience::Wait) }.unwrap_or(None)
    }

    /// Like [`pop`](Self::pop), but does not wait.
    ///
    /// # Progress
    /// Wait-free.
    ///
    /// # Errors
    /// A push is half done, or has just been done. Nothing has changed.
    ///
    /// # Safety
    /// As [`pop`](Self::pop).
    #[inline]
    pub unsafe fn try_pop(&self) -> Result<Option<Popped>, WouldBlock> {
        // SAFETY: by this function's contract.
        unsafe { self.pop_with(Patience::Refuse) }
    }

    /// Takes the topmost node off.
    ///
    /// # Safety
    /// As [`pop`](Self::pop).
    #[inline]
    unsafe fn pop_with(&self, patience: Patience) -> Result<Option<Popped>, WouldBlock> {
        loop {
            // Acquire: pairs with the exchange in `push`: the link is null or below it, and the
            // content is seen.
            let top = self.top.load(Acquire);
            if top == BOTTOM {
                return Ok(None);
            }
            // SAFETY: no thread frees it while we are here, by this function's contract.
            let link = unsafe { &(*top).next };
            let below = patience.link(link)?; //~ unlinked-end
            // Relaxed: nothing of ours is published. A thread that pops the next has seen its
            // content by its own load, since an exchange continues with what the exchanges before
            // it released.
            let popped = self.top.compare_exchange(top, below, Relaxed, Relaxed);
            //~ pop-unchecked:
            if popped.is_ok() {
                return Ok(NonNull::new(top).map(|node| Popped { node, last: below == BOTTOM }));
            }
            if patience == Patience::Refuse {
                return Err(WouldBlock);
            }
        }
    }

    /// Pops all nodes, in constant time. They come topmost first.
    ///
    /// # Progress
    /// Wait-free; the walk may block.
    pub fn pop_all(&self) -> Stacked {
        // Acquire: pairs with the exchanges in `push`. SeqCst: as there.
        Stacked { next: self.top.swap(BOTTOM, SeqCst) }
    }
}

default_by!(new, impl Default for WaitFreeStack);

/// Nodes that were popped from a [`WaitFreeStack`] together, topmost first. Each belongs to the
/// caller as soon as the iterator has returned it, unless a thread is in
/// [`pop`](WaitFreeStack::pop). Nodes that are left when this is dropped have no owner: they leak.
#[derive(Debug)]
#[must_use = "what is in it leaks"]
pub struct Stacked {
    next: *mut StackNode,
}

// SAFETY: by the contract of `push`, nodes may be taken off on any thread.
unsafe impl Send for Stacked {}

impl Stacked {
    /// The topmost node, without removing it; `None` if none is left.
    pub fn first(&self) -> Option<NonNull<StackNode>> {
        if self.next == BOTTOM { None } else { NonNull::new(self.next) }
    }

    /// The node below `node`, among those that were popped together; `None` below the lowest.
    ///
    /// # Errors
    /// A push is half done, and `patience` does not allow waiting.
    ///
    /// # Safety
    /// `node` was popped from a [`WaitFreeStack`] with others, by `pop_all`, and was not written
    /// since.
    #[inline]
    pub unsafe fn below(
        node: NonNull<StackNode>,
        patience: Patience,
    ) -> Result<Option<NonNull<StackNode>>, WouldBlock> {
        // SAFETY: the caller's own node.
        let link = unsafe { &(*node.as_ptr()).next };
        let below = patience.link(link)?;
        Ok(if below == BOTTOM { None } else { NonNull::new(below) })
    }
}

impl Iterator for Stacked {
    type Item = NonNull<StackNode>;

    #[inline]
    fn next(&mut self) -> Option<NonNull<StackNode>> {
        let node = self.first()?;
        // SAFETY: a node that has come off, and not been handed out.
        let below = unsafe { Self::below(node, Patience::Wait) }.unwrap_or(None);
        self.next = below.map_or(BOTTOM, NonNull::as_ptr);
        Some(node)
    }
}
