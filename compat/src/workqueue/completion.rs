//! Waiting until work items have run. A completion counts its markers that have not run: there is
//! one in each queue into which it was put.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::{Work, Workqueue};

/// `struct urcu_workqueue_completion`, which C knows by its address. Its creator has a reference,
/// and so has each marker.
#[derive(Default)]
pub(super) struct Completion {
    /// How many of its markers have not run.
    left: Mutex<u32>,
    changed: Condvar,
}

/// The work item that stands in a queue for a completion.
#[repr(C)]
struct Marker {
    work: Work,
    completion: Arc<Completion>,
}

impl Completion {
    pub(super) fn create() -> *const Self {
        Arc::into_raw(Arc::default())
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
        completion.change(|left| left + 1);
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
        marker.completion.change(|left| left - 1);
    }

    fn change(&self, change: impl FnOnce(u32) -> u32) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        *left = change(*left);
        self.changed.notify_all();
    }

    pub(super) fn wait(&self) {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_while(left, |left| *left != 0);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}
