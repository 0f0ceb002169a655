//! A stack of values: [`Stack`].
//!
//! Its nodes are in a [`LockFreeStack`], and are protected by sections of the global domain.

use std::iter::FusedIterator;
use std::marker::PhantomData;

use super::lock_free_stack::{LockFreeStack, Unstacked};
use super::valued::{Valued, collected_by_push, drop_all};
use super::wait_free_stack::StackNode;
use crate::domain::guard;
use crate::os::sync::const_unless_loom;

type Node<T> = Valued<StackNode, T>;

/// A last-in, first-out stack: any thread can push values and pop them.
///
/// # Promise
/// Each value is popped once, or is dropped with the stack; the value pushed last is popped first.
/// Everything done before a `push` happens before the return of the `pop` that returns the value.
///
/// # Progress and cost
/// [`push`](Self::push) is lock-free, except for the allocator: it allocates a node, and links it
/// with one compare-and-exchange. [`pop`](Self::pop) and [`pop_all`](Self::pop_all) are lock-free,
/// except at the limit of the global domain; `pop_all` takes everything with one exchange. So a
/// thread that is stopped in the middle of one of them does not prevent others from making
/// progress.
///
/// # Memory
/// As with a [`Queue`](super::Queue#memory), a popped value belongs to the caller at once, and its
/// node, which takes 8 bytes and the size of the value, is retired in the global domain.
///
/// # Source
/// The algorithm is that of [`intrusive::LockFreeStack`](crate::intrusive::LockFreeStack): Treiber,
/// 1986, with grace periods against ABA.
///
/// ```
/// use quiescence::collections::Stack;
///
/// let free = Stack::new();
/// free.push("first");
/// free.push("last");
/// assert_eq!(free.pop(), Some("last"));
/// free.push("again");
/// assert!(free.pop_all().eq(["again", "first"]));
/// assert!(free.is_empty());
/// ```
pub struct Stack<T: Send + 'static> {
    nodes: LockFreeStack,
    /// As in [`Queue`](super::Queue).
    values: PhantomData<fn(T) -> T>,
}

// SAFETY: values go from thread to thread, which `T: Send` allows; no two threads see one at once.
unsafe impl<T: Send + 'static> Send for Stack<T> {}
// SAFETY: as above.
unsafe impl<T: Send + 'static> Sync for Stack<T> {}

impl<T: Send + 'static> Stack<T> {
    const_unless_loom! {
        /// Creates an empty stack; may be a static.
        ///
        /// ```
        /// use quiescence::collections::Stack;
        ///
        /// static FREE: Stack<Vec<u8>> = Stack::new();
        /// FREE.push(Vec::new());
        /// assert!(FREE.pop().is_some());
        /// ```
        pub fn new() -> Self {
            Self { nodes: LockFreeStack::new(), values: PhantomData }
        }
    }

    /// Pushes a value.
    ///
    /// # Progress
    /// Lock-free, except for the allocator.
    pub fn push(&self, value: T) {
        let node = Node::boxed(StackNode::new(), value);
        // SAFETY: a node of a box that is given away. It is new, so no `pop` has a hold of it; and
        // its address is another one than those that a `pop` in progress has seen, since nodes are
        // freed a grace period after they have come off.
        unsafe { self.nodes.push(node) };
    }

    /// Takes the topmost value; `None` if there is none.
    ///
    /// # Progress
    /// Lock-free, except at the limit of the global domain: see [above](Self#memory).
    #[track_caller]
    pub fn pop(&self) -> Option<T> {
        let section = guard::read();
        // SAFETY: in a section; the node is retired, below, so it is neither freed nor put on again
        // before a grace period has passed.
        let node = unsafe { self.nodes.pop() }?;
        // SAFETY: made by `push`; this thread has taken it off.
        let value = unsafe { Node::value(node) };
        drop(section);
        // SAFETY: taken off above, so that later sections do not find it.
        unsafe { Node::<T>::retire(node) };
        Some(value)
    }

    /// Takes all values at one moment; they come topmost first. Values left over when the iterator
    /// is dropped are dropped with it.
    ///
    /// # Progress
    /// Wait-free. So is the iterator, except at the limit of the global domain.
    pub fn pop_all(&self) -> PopAll<T> {
        PopAll { nodes: self.nodes.pop_all(), values: PhantomData }
    }

    /// Whether the stack has no values. This may change a moment later.
    ///
    /// # Progress
    /// Wait-free: one load.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

collected_by_push!(Stack);

impl<T: Send + 'static> Drop for Stack<T> {
    fn drop(&mut self) {
        drop(IntoIter::<T> { nodes: self.nodes.pop_all(), values: PhantomData });
    }
}

impl<T: Send + 'static> IntoIterator for Stack<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    /// The values, topmost first. Nothing is retired: no other thread has the stack.
    fn into_iter(self) -> IntoIter<T> {
        IntoIter { nodes: self.nodes.pop_all(), values: PhantomData }
    }
}

/// Values that were taken off a [`Stack`] together, topmost first: returned by [`Stack::pop_all`].
/// If `OWNED` is true, the stack belonged to one thread alone, and no longer exists.
#[must_use = "the values are dropped with it"]
#[derive(Debug)]
pub struct PopAll<T: Send + 'static, const OWNED: bool = false> {
    nodes: Unstacked,
    values: PhantomData<T>,
}

/// The values of a [`Stack`], topmost first.
pub type IntoIter<T> = PopAll<T, true>;

// SAFETY: the values are its own, and may go to another thread; nodes may be taken by any.
unsafe impl<T: Send + 'static, const OWNED: bool> Send for PopAll<T, OWNED> {}
// SAFETY: a shared reference gives out nothing.
unsafe impl<T: Send + 'static, const OWNED: bool> Sync for PopAll<T, OWNED> {}

impl<T: Send + 'static, const OWNED: bool> Iterator for PopAll<T, OWNED> {
    type Item = T;

    #[track_caller]
    fn next(&mut self) -> Option<T> {
        let node = self.nodes.next()?;
        if OWNED {
            // SAFETY: made by `push`; the stack was this thread's alone, so the nodes are, too.
            return Some(unsafe { Node::unboxed(node) });
        }
        // SAFETY: made by `push`; it came off, with all above it, by one exchange of this thread's
        // or of one that has sent the iterator here, and is retired below.
        let value = unsafe { Node::value(node) };
        // SAFETY: it came off, so later sections do not find it.
        unsafe { Node::<T>::retire(node) };
        Some(value)
    }
}

impl<T: Send + 'static, const OWNED: bool> FusedIterator for PopAll<T, OWNED> {}

impl<T: Send + 'static, const OWNED: bool> Drop for PopAll<T, OWNED> {
    fn drop(&mut self) {
        drop_all(|| self.next());
    }
}
