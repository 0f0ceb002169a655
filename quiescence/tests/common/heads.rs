//! Heads of callback queues, which call a closure.

use quiescence::callback_queue::{CallbackQueue, Pushed};
use quiescence::raw::Head;

/// Calls a closure, with its own address in case it wants to be pushed again.
#[repr(C)]
struct Work {
    head: Head,
    run: Option<Box<dyn FnMut(*mut Head) -> bool>>,
}

pub(crate) unsafe extern "C" fn run(head: *mut Head) {
    let work = head.cast::<Work>();
    // SAFETY: the head comes first in a work that `boxed` has made.
    let mut run = unsafe { (*work).run.take() }.expect("pushed with one");
    if run(head) {
        // SAFETY: as above; it is not pushed again.
        drop(unsafe { Box::from_raw(work) });
    } else {
        // SAFETY: as above; it was pushed again, and its callback queue's runner is this thread.
        unsafe { (*work).run = Some(run) };
    }
}

/// A head to be pushed with [`run`], whose closure says whether it is the last time.
pub(crate) fn boxed(f: impl FnMut(*mut Head) -> bool + 'static) -> *mut Head {
    Box::into_raw(Box::new(Work { head: Head::new(), run: Some(Box::new(f)) })).cast()
}

pub(crate) fn push(queue: &CallbackQueue, mut f: impl FnMut() + 'static) -> Pushed {
    let head = boxed(move |_| {
        f();
        true
    });
    // SAFETY: a box, which `run` frees, and a closure of the test's, which it may be called with.
    unsafe { queue.push(head, run) }.unwrap()
}
