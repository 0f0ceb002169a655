//! Threads of the library's own: joinable, without signals, and on a CPU if they have one.

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use crate::signals;

/// Starts a joinable thread on which no signal is handled; none if the system gives none, and then
/// nobody has `body`. Allocates nothing: it is called for threads that retire, or queue.
pub(crate) fn spawn(
    main: extern "C" fn(*mut c_void) -> *mut c_void,
    body: *mut c_void,
) -> Option<libc::pthread_t> {
    let mut thread = MaybeUninit::uninit();
    let create = || {
        // SAFETY: the function takes what it is given; the number is written if this returns 0.
        unsafe { libc::pthread_create(thread.as_mut_ptr(), ptr::null(), main, body) }
    };
    // SAFETY: written.
    (signals::blocked(create) == 0).then(|| unsafe { thread.assume_init() })
}

/// Names the calling thread, in less than 16 bytes.
pub(crate) fn name(name: &CStr) {
    // SAFETY: asks for a number.
    let thread = unsafe { libc::pthread_self() };
    // SAFETY: the thread's own name.
    unsafe { libc::pthread_setname_np(thread, name.as_ptr()) };
}

/// Has the calling thread run on a CPU; on any, if the number is negative. Not all CPUs are there,
/// nor allowed: then it runs where it may.
pub(crate) fn bind(cpu: c_int) {
    let Ok(cpu) = usize::try_from(cpu) else { return };
    if cpu >= libc::CPU_SETSIZE as usize {
        return;
    }
    // SAFETY: all zeroes is the empty set.
    let mut set = unsafe { std::mem::zeroed::<libc::cpu_set_t>() };
    // SAFETY: within the set, as was looked at above.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: a set of the size that is given, and this thread.
    unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
}

/// The same if it is not there: a CPU that was taken out of the system has taken the thread's
/// affinity along.
pub(crate) fn stay_on(cpu: c_int) {
    // SAFETY: nothing is asked of the caller.
    if unsafe { libc::sched_getcpu() } != cpu {
        bind(cpu);
    }
}
