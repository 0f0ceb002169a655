//! A stack whose nodes are whole whenever they can be seen: no thread waits for a producer, but
//! producers may try again.
//!
//! Treiber's stack (IBM RJ 5118, 1986). That a node which was popped and put on again is not taken
//! for the same (ABA) is seen to by a grace period, or by a lock: see [`LockFreeStack::pop`].
//! Layout, and what is written when, are those of liburcu's `cds_lfs`, and of its older
//! `cds_lfs_rcu`: C programs have either side inlined.

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use super::wait_free_stack::StackNode;
use crate::os::sync::{AtomicPtr, const_unless_loom};

/// A stack of nodes that are part of their objects, laid out as liburcu's `struct __cds_lfs_stack`.
/// All zeroes is an empty one.
///
/// # Promise
/// What comes off has gone on once; of what is there the last comes first. What was written to an
/// object before it went on is seen by the thread that takes it off. A `push` is a sequentially
/// consistent operation.
///
/// # Progress and cost
/// [`push`](Self::push) and [`pop`](Self::pop) are lock-free: one compare-and-exchange, and another
/// one for each that somebody else had in between. [`pop_all`](Self::pop_all) and the walk over
/// what it gives are wait-free. Against a [`WaitFreeStack`](super::intrusive::WaitFreeStack):
/// no thread is ever blocked, and producers get in each other's way.
///
/// # Source
/// R. K. Treiber, "Systems programming: coping with parallelism", 1986; liburcu's `cds_lfs`.
///
/// ```
/// use quiescence::intrusive::{LockFreeStack, StackNode};
///
/// let stack = LockFreeStack::new();
/// let (below, above) = (Box::new(StackNode::new()), Box::new(StackNode::new()));
/// // SAFETY: nodes of boxes that are given away.
/// unsafe { stack.push(Box::into_raw(below)) };
/// // SAFETY: as above.
/// let was_there_one = unsafe { stack.push(Box::into_raw(above)) };
/// assert!(was_there_one);
/// for node in stack.pop_all() {
///     // SAFETY: a box from above, which no other thread can reach.
///     drop(unsafe { Box::from_raw(node.as_ptr()) });
/// }
/// ```
#[repr(C)]
#[derive(Debug, Default)]
pub struct LockFreeStack {
    top: AtomicPtr<StackNode>,
}

const _: () = assert!(size_of::<LockFreeStack>() == 8);

impl LockFreeStack {
    const_unless_loom! {
        /// An empty stack.
        pub fn new() -> Self {
            Self { top: AtomicPtr::new(ptr::null_mut()) }
        }
    }

    /// Whether nothing is on the stack. It may be otherwise a moment later. Orders nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Relaxed: nothing is read through it.
        self.top.load(Relaxed).is_null()
    }

    /// Puts a node on top. Whether there was one before.
    ///
    /// # Progress
    /// Lock-free.
    ///
    /// # Safety
    /// - `node` is on no stack, and no other thread's: who may be in [`pop`](Self::pop) has no hold
    ///   of it; see there.
    /// - It stays where it is, and valid, until it has come off.
    /// - The thread that takes it off may do so on any thread.
    #[inline]
    pub unsafe fn push(&self, node: *mut StackNode) -> bool {
        // SAFETY: by this function's contract.
        let link = unsafe { &(*node).next };
        // The exchange has Release: pairs with the Acquire of who takes it off. SeqCst, which is no
        // more on x86: liburcu promises a full fence.
        // Relaxed: nothing is read through it; that it is still the top is checked.
        let mut top = self.top.load(Relaxed);
        loop {
            // Relaxed: seen with the node.
            link.store(top, Relaxed);
            //~ unseen-node:
            match self.top.compare_exchange_weak(top, node, SeqCst, Relaxed) {
                Ok(_) => return !top.is_null(),
                Err(now) => top = now,
            }
        }
    }

    /// Takes the topmost node off; `None` if there is none.
    ///
    /// # Progress
    /// Lock-free.
    ///
    /// # Safety
    /// One of three, for all who take nodes off this stack, one or all:
    /// - they exclude each other;
    /// - there is one such thread;
    /// - those who pop are in a read-side critical section, and a node is not freed, nor put on
    ///   again, until a grace period of a domain of theirs has passed since it came off.
    #[inline]
    pub unsafe fn pop(&self) -> Option<NonNull<StackNode>> {
        // Acquire: pairs with the SeqCst of `push`: the node is whole.
        let mut top = self.top.load(Acquire);
        loop {
            let node = NonNull::new(top)?;
            // SAFETY: no thread frees it while we are here, by this function's contract.
            let link = unsafe { &(*top).next };
            // Relaxed: seen with the node; it does not change while the node is on the stack.
            let below = link.load(Relaxed);
            // Relaxed: nothing of ours is published; a thread that pops the next has seen it by its
            // own load, since an exchange continues with what the exchanges before it released.
            // Acquire: as above.
            match self.top.compare_exchange(top, below, Relaxed, Acquire) {
                Err(now) => top = now, //~ pop-unchecked
                Ok(_) => return Some(node),
            }
        }
    }

    /// Takes all nodes off, in constant time. They come topmost first.
    ///
    /// # Progress
    /// Wait-free, and so is the walk.
    pub fn pop_all(&self) -> Unstacked {
        // Acquire: pairs with the SeqCst of `push`. SeqCst: liburcu promises a full fence.
        Unstacked { next: self.top.swap(ptr::null_mut(), SeqCst) }
    }
}

/// Nodes that have come off a [`LockFreeStack`] together, topmost first; each is its taker's as
/// soon as it is out, but where somebody is in [`pop`](LockFreeStack::pop). Those that are left
/// when this is dropped have no owner: they leak.
#[derive(Debug)]
#[must_use = "what is in it leaks"]
pub struct Unstacked {
    next: *mut StackNode,
}

// SAFETY: by the contract of `push`, nodes may be taken off on any thread.
unsafe impl Send for Unstacked {}

impl Unstacked {
    /// The topmost node, which stays; `None` if nothing is left.
    pub fn first(&self) -> Option<NonNull<StackNode>> {
        NonNull::new(self.next)
    }
}

impl Iterator for Unstacked {
    type Item = NonNull<StackNode>;

    #[inline]
    fn next(&mut self) -> Option<NonNull<StackNode>> {
        let node = self.first()?;
        // SAFETY: a node that has come off, and not been handed out.
        let link = unsafe { &(*node.as_ptr()).next };
        // Relaxed: seen when they came off.
        self.next = link.load(Relaxed);
        Some(node)
    }
}
