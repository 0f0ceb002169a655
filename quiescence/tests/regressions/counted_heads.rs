//! A head that counts the times it is run, for tests of callback queues.

use crate::common::*;
use quiescence::callback_queue::{CallbackQueue, Pushed};
use quiescence::raw::Head;

/// The head first, so that a pointer to it is one to both.
#[repr(C)]
struct Counted {
    head: Head,
    ran: Arc<AtomicU64>,
}

unsafe extern "C" fn count(head: *mut Head) {
    // SAFETY: from a box, in `push`.
    let counted = unsafe { Box::from_raw(head.cast::<Counted>()) };
    counted.ran.fetch_add(1, SeqCst);
}

/// Queues a head that adds one to `ran` when it is run.
pub(crate) fn push(queue: &CallbackQueue, ran: &Arc<AtomicU64>) -> Pushed {
    let counted = Box::into_raw(Box::new(Counted { head: Head::new(), ran: Arc::clone(ran) }));
    // SAFETY: a head in a box that no reader knows.
    unsafe { queue.push(counted.cast(), count) }.unwrap()
}
