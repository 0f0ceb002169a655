//! Waiting until work items have run. A completion counts its markers that have not run: there is
//! one in each queue into which it was put.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use quiescence::liburcu_readers::system::{futex_wait, futex_wake};

use super::{Work, Workqueue};

/// `struct urcu_workqueue_completion`, which C knows by its address. Its creator has a reference,
/// and so has each marker.
pub(super) struct Completion {
    /// How many of its markers have not run.
    left: AtomicU32,
}

/// The work item that stands in a queue for a completion.
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
    /// Called once, with the creator's reference.
    pub(super) unsafe fn release(completion: *const Self) {
        // SAFETY: by this function's contract.
        drop(unsafe { Arc::from_raw(completion) });
    }

    /// # Safety
    /// The caller has a reference.
    pub(super) unsafe fn queue(completion: *const Self, workqueue: &Workqueue) {
        // SAFETY: by this function's contract.
        unsafe { Arc::increment_strong_count(completion) };
        // SAFETY: the reference from above.
        let completion = unsafe { Arc::from_raw(completion) };
        // Relaxed: the queue carries it to the worker.
        completion.left.fetch_add(1, Relaxed);
        let work = Work { node: Default::default(), function: Self::one_has_run };
        let marker = Box::into_raw(Box::new(Marker { work, completion }));
        // SAFETY: a box that is freed when it is run; the work is its first field.
        unsafe { workqueue.add(marker.cast(), Self::one_has_run) };
    }

    /// # Safety
    /// `work` is that of a marker; called once, by the worker.
    unsafe extern "C" fn one_has_run(work: *mut Work) {
        // SAFETY: from `queue`; the work is its first field.
        let marker = unsafe { Box::from_raw(work.cast::<Marker>()) };
        let left = &marker.completion.left;
        // Release: pairs with the Acquire in `wait`: the waiter sees everything that ran before.
        // Acquire: with several queues, the last marker passes on what the others released.
        if left.fetch_sub(1, AcqRel) == 1 {
            futex_wake(left, true);
        }
    }

    pub(super) fn wait(&self) {
        loop {
            // Acquire: as above.
            match self.left.load(Acquire) {
                0 => return,
                left => _ = futex_wait(&self.left, true, left, None),
            }
        }
    }
}
