//! Threads of the library's own: joinable, without signals, and on a CPU if they have one.

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use crate::signals;

/// What a thread is given.
struct Body<F> {
    name: &'static CStr,
    run: F,
}

/// Starts a joinable thread on which no signal is handled; none if the system gives none, and `run`
/// is dropped. The name has less than 16 bytes.
pub(crate) fn spawn<F: FnOnce() + Send + 'static>(
    name: &'static CStr,
    run: F,
) -> Option<libc::pthread_t> {
    extern "C" fn main<F: FnOnce()>(body: *mut c_void) -> *mut c_void {
        // SAFETY: from the box below, and this thread's alone.
        let Body { name, run } = *unsafe { Box::from_raw(body.cast::<Body<F>>()) };
        // SAFETY: asks for a number.
        let thread = unsafe { libc::pthread_self() };
        // SAFETY: the thread's own name.
        unsafe { libc::pthread_setname_np(thread, name.as_ptr()) };
        run();
        ptr::null_mut()
    }
    let body = Box::into_raw(Box::new(Body { name, run }));
    let mut thread = MaybeUninit::uninit();
    let create = || {
        // SAFETY: the function takes what it is given; the number is written if this returns 0.
        unsafe { libc::pthread_create(thread.as_mut_ptr(), ptr::null(), main::<F>, body.cast()) }
    };
    if signals::blocked(create) != 0 {
        // SAFETY: from the box above; no thread has taken it.
        drop(unsafe { Box::from_raw(body) });
        return None;
    }
    // SAFETY: written.
    Some(unsafe { thread.assume_init() })
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
