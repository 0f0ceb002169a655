//! A lock-free stack. A node is complete before other threads can see it, so no thread waits for a
//! producer; producers may have to retry.
//!
//! Treiber's stack (IBM RJ 5118, 1986). A grace period or a lock prevents ABA, in which a node that
//! was popped and pushed again is taken for an unchanged top: see [`LockFreeStack::pop`]. The
//! layout and the order of the stores are those of liburcu's `cds_lfs` and of its older
//! `cds_lfs_rcu`: C programs may have either side inlined.

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use super::wait_free_stack::StackNode;
use crate::os::sync::{AtomicPtr, const_unless_loom};

/// A stack of nodes embedded in their objects, laid out as liburcu's `struct __cds_lfs_stack`. All
/// zeroes is an empty stack.
///
/// # Promise
/// Each node is popped once, the node pushed last first. Everything written to an object before it
/// is pushed is visible to the thread that pops it. A `push` is a sequentially consistent
/// operation.
///
/// # Progress and cost
/// [`push`](Self::push) and [`pop`](Self::pop) are lock-free: one compare-and-exchange, and another
/// one for each by another thread that came first. [`pop_all`](Self::pop_all) and the walk over its
/// result are wait-free. In contrast to a [`WaitFreeStack`](super::intrusive::WaitFreeStack), no
/// thread is ever blocked, but producers contend with each other.
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

/// The node at the address that a top or a link has. The address is all that it says: a push may
/// have loaded it when another node was there, which has come off and been freed since.
fn node_at(link: *mut StackNode) -> Option<NonNull<StackNode>> {
    NonNull::new(ptr::with_exposed_provenance_mut(link.addr()))
}

impl LockFreeStack {
    const_unless_loom! {
        /// Creates an empty stack.
        pub fn new() -> Self {
            Self { top: AtomicPtr::new(ptr::null_mut()) }
        }
    }

    /// Whether the stack is empty. This may change a moment later. Orders no memory accesses.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Relaxed: nothing is read through it.
        self.top.load(Relaxed).is_null()
    }

    /// Pushes a node. Returns whether the stack was not empty before.
    ///
    /// # Progress
    /// Lock-free.
    ///
    /// # Safety
    /// - `node` is on no stack, and belongs to the caller alone: no thread that may be in
    ///   [`pop`](Self::pop) can still reach it; see there.
    /// - It does not move, and stays valid, until it is popped.
    /// - Any thread may pop it.
    #[inline]
    pub unsafe fn push(&self, node: *mut StackNode) -> bool {
        // SAFETY: the same contract.
        unsafe { self.push_meanwhile(node, || ()) }
    }

    /// The same, where something may come in between: for a test.
    ///
    /// # Safety
    /// As [`push`](Self::push).
    #[inline(always)]
    unsafe fn push_meanwhile(&self, node: *mut StackNode, mut meanwhile: impl FnMut()) -> bool {
        node.expose_provenance(); // for `node_at`
        // SAFETY: by this function's contract.
        let link = unsafe { &(*node).next };
        // The exchange has Release: pairs with the Acquire of the thread that takes the node off.
        // SeqCst, which costs no more on x86: liburcu promises a full fence.
        let push = |top| {
            // Relaxed: seen with the node.
            link.store(top, Relaxed);
            meanwhile();
            Some(node)
        };
        let below = fetch_update!(self.top, SeqCst, Relaxed, push); //~ unseen-node
        below.is_ok_and(|below| !below.is_null())
    }

    /// Pops the topmost node; `None` if there is none.
    ///
    /// # Progress
    /// Lock-free.
    ///
    /// # Safety
    /// One of the following holds for all threads that pop nodes of this stack, one or all:
    /// - they exclude each other;
    /// - there is only one such thread;
    /// - those that pop are in a read-side critical section, and a node is not freed, nor pushed
    ///   again, until a grace period of a domain of theirs has passed since it was popped.
    #[inline]
    pub unsafe fn pop(&self) -> Option<NonNull<StackNode>> {
        // Acquire: pairs with the SeqCst of `push`: the node is whole.
        let mut top = self.top.load(Acquire);
        loop {
            let node = node_at(top)?;
            // SAFETY: no thread frees it while we are here, by this function's contract.
            let link = unsafe { &node.as_ref().next };
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

    /// Pops all nodes, in constant time. They come topmost first.
    ///
    /// # Progress
    /// Wait-free, and so is the walk.
    pub fn pop_all(&self) -> Unstacked {
        // Acquire: pairs with the SeqCst of `push`. SeqCst: liburcu promises a full fence.
        Unstacked { next: self.top.swap(ptr::null_mut(), SeqCst) }
    }
}

/// Nodes that were popped from a [`LockFreeStack`] together, topmost first. Each belongs to the
/// caller as soon as the iterator has returned it, unless a thread is in
/// [`pop`](LockFreeStack::pop). Nodes that are left when this is dropped have no owner: they leak.
#[derive(Debug)]
#[must_use = "what is in it leaks"]
pub struct Unstacked {
    next: *mut StackNode,
}

// SAFETY: by the contract of `push`, nodes may be taken off on any thread.
unsafe impl Send for Unstacked {}

impl Unstacked {
    /// The topmost node, without removing it; `None` if none is left.
    pub fn first(&self) -> Option<NonNull<StackNode>> {
        node_at(self.next)
    }
}

impl Iterator for Unstacked {
    type Item = NonNull<StackNode>;

    #[inline]
    fn next(&mut self) -> Option<NonNull<StackNode>> {
        let node = self.first()?;
        // SAFETY: a node that has come off, and not been handed out.
        let link = unsafe { &node.as_ref().next };
        // Relaxed: seen when they came off.
        self.next = link.load(Relaxed);
        Some(node)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A past error: the new node led there by a pointer to the freed one, as Miri tells.
    #[test]
    fn a_push_above_a_node_that_is_freed_meanwhile_leads_to_the_one_at_its_address() {
        let stack = LockFreeStack::new();
        let new = || Box::into_raw(Box::new(StackNode::new()));
        // SAFETY: a node of a box, which is given away.
        let push = |node| unsafe { stack.push(node) };
        // SAFETY: this is the only thread.
        let pop = || unsafe { stack.pop() }.map(NonNull::as_ptr);
        push(new());
        let replace = || {
            let old = pop().expect("one below");
            // SAFETY: from a box, and taken off.
            drop(unsafe { Box::from_raw(old) });
            let mut others: Vec<_> = (0..100).map(|_| Box::new(StackNode::new())).collect();
            let same = others.iter().position(|node| ptr::eq(&raw const **node, old));
            push(Box::into_raw(others.swap_remove(same.unwrap_or(0))));
        };
        let upper = new();
        // SAFETY: as above.
        unsafe { stack.push_meanwhile(upper, replace) };
        assert_eq!(pop(), Some(upper));
        let lower = pop().expect("one below");
        assert!(stack.is_empty());
        // SAFETY: from boxes, and taken off.
        [upper, lower].into_iter().for_each(|node| drop(unsafe { Box::from_raw(node) }));
    }
}
