//! A queue of values: [`Queue`].
//!
//! Its nodes are in a [`LockFreeQueue`], and are protected by sections of the global domain.

use std::marker::PhantomData;

use super::lock_free_queue::{LockFreeQueue, SharedNode};
use super::valued::{Valued, collected_by_push, drop_all};
use crate::domain::guard;

type Node<T> = Valued<SharedNode, T>;

/// A first-in, first-out queue: any thread can push values and pop them.
///
/// # Promise
/// Values that one thread pushes are popped in that order. Each value is popped once, or is dropped
/// with the queue. Everything done before a `push` happens before the return of the `pop` that
/// returns the value.
///
/// # Progress and cost
/// [`push`](Self::push) is lock-free, except for the allocator: it allocates a node, and links it
/// with two compare-and-exchanges. [`pop`](Self::pop) is lock-free, except at the limit of the
/// global domain: it takes one compare-and-exchange, in a section. So a thread that is stopped in
/// the middle of either does not prevent others from making progress. When the last value is
/// popped, a node of the queue's own is allocated as well.
///
/// # Memory
/// A popped value belongs to the caller at once. Its *node*, which takes 16 bytes and the size of
/// the value, may still be read by other threads in `pop`. So it is retired in the global domain,
/// and counts against the limit there ([`Tuning`](crate::tuning::Tuning)). A `pop` may therefore
/// wait as [`retire`](crate::retire) does, but is never refused: in a section at the limit, the
/// node exceeds it, and the thread waits when its section ends.
///
/// # Source
/// The algorithm is that of [`intrusive::LockFreeQueue`](crate::intrusive::LockFreeQueue): Michael
/// and Scott, PODC 1996, with grace periods.
///
/// ```
/// use quiescence::collections::Queue;
/// use std::thread;
///
/// let jobs = Queue::new();
/// thread::scope(|scope| {
///     for producer in 0..2 {
///         let jobs = &jobs;
///         scope.spawn(move || (0..100).for_each(|number| jobs.push((producer, number))));
///     }
/// });
/// let numbers = |of| jobs.drain().filter(move |job| job.0 == of).map(|job| job.1);
/// assert!(numbers(0).eq(0..100)); // everything the other thread pushed has been popped by now
/// assert!(jobs.is_empty());
/// ```
pub struct Queue<T: Send + 'static> {
    nodes: LockFreeQueue,
    /// Values come in by a shared reference, so the type is invariant.
    values: PhantomData<fn(T) -> T>,
}

// SAFETY: values go from thread to thread, which `T: Send` allows; no two threads see one at once.
unsafe impl<T: Send + 'static> Send for Queue<T> {}
// SAFETY: as above.
unsafe impl<T: Send + 'static> Sync for Queue<T> {}

impl<T: Send + 'static> Queue<T> {
    /// Creates an empty queue. Allocates 40 bytes.
    pub fn new() -> Self {
        Self { nodes: LockFreeQueue::retiring(), values: PhantomData }
    }

    /// Appends a value.
    ///
    /// # Progress
    /// Lock-free, except for the allocator.
    pub fn push(&self, value: T) {
        let node = Node::boxed(SharedNode::new(), value);
        let _section = guard::read();
        // SAFETY: in a section of the queue's domain; the box is given away.
        unsafe { self.nodes.enqueue(node) };
    }

    /// Takes the first value; `None` if there is none.
    ///
    /// # Progress
    /// Lock-free, except for the allocator and at the limit of the global domain: see
    /// [above](Self#memory).
    #[track_caller]
    pub fn pop(&self) -> Option<T> {
        let section = guard::read();
        // SAFETY: in a section of the queue's domain; what becomes of the node is seen to below.
        let node = unsafe { self.nodes.dequeue() }?;
        // SAFETY: all nodes but the queue's own are made by `push`; this thread has taken it out.
        let value = unsafe { Node::value(node) };
        drop(section);
        // SAFETY: taken out above, so that later sections do not find it.
        unsafe { Node::<T>::retire(node) };
        Some(value)
    }

    /// Pops values for as long as there are any, including those pushed meanwhile.
    ///
    /// ```
    /// let queue: quiescence::collections::Queue<_> = (0..3).collect();
    /// assert!(queue.drain().eq(0..3));
    /// ```
    pub fn drain(&self) -> impl Iterator<Item = T> {
        std::iter::from_fn(|| self.pop())
    }

    /// Whether the queue has no values. This may change a moment later.
    ///
    /// # Progress
    /// Wait-free, except that it walks over nodes of the queue's own, of which there may be one for
    /// each thread that is popping.
    pub fn is_empty(&self) -> bool {
        let _section = guard::read();
        // SAFETY: in a section of the queue's domain.
        unsafe { self.nodes.is_empty() }
    }

    /// Takes the first value of a queue that is this thread's alone.
    fn take_first(&mut self) -> Option<T> {
        // SAFETY: no other thread uses the queue, so the node is this thread's as well.
        self.nodes.take_first().map(|node| unsafe { Node::unboxed(node) })
    }
}

collected_by_push!(Queue);

impl<T: Send + 'static> Drop for Queue<T> {
    fn drop(&mut self) {
        drop_all(|| self.take_first());
    }
}

impl<T: Send + 'static> IntoIterator for Queue<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    /// The values, from the first to the last. Nothing is retired: no other thread has the queue.
    fn into_iter(self) -> IntoIter<T> {
        IntoIter { queue: self }
    }
}

/// The values of a [`Queue`].
#[derive(Debug)]
pub struct IntoIter<T: Send + 'static> {
    queue: Queue<T>,
}

impl<T: Send + 'static> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.queue.take_first()
    }
}

impl<T: Send + 'static> std::iter::FusedIterator for IntoIter<T> {}
