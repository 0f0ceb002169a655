//! Callbacks: what an object embeds to be called back, and a CPU's queue of them.

use core::cell::Cell;
use core::fmt;
use core::ptr::{self, NonNull};

use crate::sync::{AtomicPtr, Ordering, constant};

/// The function that runs when the grace period of a [`Head`] has ended. It gets the head back: it
/// may free the object around it, or queue it again.
pub type Run = unsafe fn(NonNull<Head>);

/// Embedded in an object; [`Kernel::call`](crate::Kernel::call) queues it. It belongs to the queue
/// until its function is called.
///
/// If that function derives a pointer to the object around the head, and frees it, the queued
/// pointer must come from a pointer to the whole object, not from a reference to its head.
pub struct Head {
    next: Cell<Option<NonNull<Head>>>,
    /// A [`Run`], or null if it is not queued.
    run: AtomicPtr<()>,
    /// What its object counts for.
    bytes: u32,
}

// SAFETY: no safe function reads or writes the cell. Those that do are the queue's, which has the
// head to itself: so `Kernel::call` demands.
unsafe impl Send for Head {}
// SAFETY: as above; `run` is atomic.
unsafe impl Sync for Head {}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Head").field("is_queued", &self.is_queued()).finish_non_exhaustive()
    }
}

impl Head {
    constant! {
        /// Creates a head that is not queued, of an object that counts for no bytes.
        pub fn new() -> Self {
            Self::of(0)
        }
    }

    constant! {
        /// Creates a head that is not queued, of an object that counts for so many bytes against
        /// [`Options::bytes_max`](crate::Options::bytes_max): all that its function will free.
        pub fn of(bytes: u32) -> Self {
            Self { next: Cell::new(None), run: AtomicPtr::new(ptr::null_mut()), bytes }
        }
    }

    /// What its object counts for.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.into()
    }

    /// Whether it is queued already. Two CPUs that queue one head at the same time may both be told
    /// no; one after the other are not.
    #[inline]
    pub(crate) fn is_queued(&self) -> bool {
        // Relaxed, here and in the queue: whoever queues it again has it from its function, or from
        // somebody who had, and so comes after `pop`. Any other is a race.
        !self.run.load(Ordering::Relaxed).is_null()
    }
}

impl Default for Head {
    fn default() -> Self {
        Self::new()
    }
}

/// Heads in the order they were queued. Touched by one CPU at a time.
#[derive(Debug)]
pub(crate) struct Queue {
    first: Option<NonNull<Head>>,
    last: Option<NonNull<Head>>,
}

// SAFETY: whoever has the queue has its heads.
unsafe impl Send for Queue {}

impl Queue {
    pub(crate) const EMPTY: Self = Self { first: None, last: None };

    /// Adds a head at the end.
    ///
    /// # Safety
    /// It is valid, stays in its place, is touched by no other until it is popped, and is in no
    /// queue.
    #[inline]
    pub(crate) unsafe fn push(&mut self, head: NonNull<Head>, run: Run) {
        // SAFETY: the caller says that it is valid and its own.
        let own = unsafe { head.as_ref() };
        // The last one's next is not looked at.
        own.run.store(run as *mut (), Ordering::Relaxed);
        match self.last.replace(head) {
            None => self.first = Some(head),
            // SAFETY: a queued head is valid and touched by its queue alone.
            Some(last) => unsafe { last.as_ref() }.next.set(Some(head)),
        }
    }

    /// Takes the first head out, which belongs to its function now.
    pub(crate) fn pop(&mut self) -> Option<(NonNull<Head>, Run)> {
        let head = self.first?;
        // SAFETY: a queued head is valid and touched by its queue alone.
        let own = unsafe { head.as_ref() };
        if self.last == Some(head) {
            *self = Self::EMPTY;
        } else {
            self.first = own.next.get();
        }
        let run = own.run.load(Ordering::Relaxed);
        own.run.store(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: `push` has made it of such a function, and nobody has written it since.
        Some((head, unsafe { core::mem::transmute::<*mut (), Run>(run) }))
    }

    /// Adds all of another queue at the end.
    pub(crate) fn append(&mut self, other: &mut Self) {
        let Self { first: Some(first), last } = core::mem::replace(other, Self::EMPTY) else {
            return;
        };
        match self.last {
            None => self.first = Some(first),
            // SAFETY: a queued head is valid and touched by its queue alone.
            Some(end) => unsafe { end.as_ref() }.next.set(Some(first)),
        }
        self.last = last;
    }
}
