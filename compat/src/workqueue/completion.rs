//! Waiting until work has run: a count of works that are still to run, one for each queue that the
//! completion was put into.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use super::{Work, Workqueue};
use crate::futex::{sleep, wake_all};

/// `struct urcu_workqueue_completion`, which C knows by its address. Its maker holds it, and so
/// does each queue that it is in.
pub(super) struct Completion {
    /// How many of its works have not run.
    left: AtomicU32,
}

/// What stands in a queue for a completion.
#[repr(C)]
struct Marker {
    work: Work,
    completion: Arc<Completion>,
}

impl Completion {
    pub(super) fn create() -> *const Self {
        Arc::into_raw(Arc::new(Self { left: AtomicU32::new(0) }))
    }

    /// # Safety
    /// The hold of its maker, given back once.
    pub(super) unsafe fn release(completion: *const Self) {
        // SAFETY: by this function's contract.
        drop(unsafe { Arc::from_raw(completion) });
    }

    /// # Safety
    /// Somebody holds it.
    pub(super) unsafe fn queue(completion: *const Self, workqueue: &Workqueue) {
        // SAFETY: by this function's contract.
        unsafe { Arc::increment_strong_count(completion) };
        // SAFETY: the hold from above.
        let completion = unsafe { Arc::from_raw(completion) };
        // Relaxed: the queue carries it to the worker.
        completion.left.fetch_add(1, Relaxed);
        let work = Work { node: Default::default(), function: Self::one_has_run };
        let marker = Box::into_raw(Box::new(Marker { work, completion }));
        // SAFETY: a box that is taken back when it is run; the work comes first.
        unsafe { workqueue.add(marker.cast(), Self::one_has_run) };
    }

    /// # Safety
    /// The work of a marker, by the worker.
    unsafe extern "C" fn one_has_run(work: *mut Work) {
        // SAFETY: from `queue`; the work comes first.
        let marker = unsafe { Box::from_raw(work.cast::<Marker>()) };
        let left = &marker.completion.left;
        // Release: pairs with the Acquire of the waiter: all that has run before is seen. Acquire:
        // of several queues, the last one hands on what the others released.
        if left.fetch_sub(1, AcqRel) == 1 {
            wake_all(left);
        }
    }

    pub(super) fn wait(&self) {
        loop {
            // Acquire: as above.
            match self.left.load(Acquire) {
                0 => return,
                left => sleep(&self.left, left, None),
            }
        }
    }
}
