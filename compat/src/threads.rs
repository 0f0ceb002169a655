//! The library's own threads: joinable, with all signals blocked, and bound to a CPU if they have
//! one.

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use quiescence::liburcu_readers::system::without;

use crate::fatal::warn;

/// Starts a joinable thread with all signals blocked. `None` if the system provides none, which is
/// reported once: then no thread has `body`. Allocates only what `pthread_create` needs: threads
/// that retire objects or queue callbacks call it.
pub(crate) fn spawn(
    main: extern "C" fn(*mut c_void) -> *mut c_void,
    body: *mut c_void,
) -> Option<libc::pthread_t> {
    let mut thread = MaybeUninit::uninit();
    let create = || {
        // SAFETY: `main` is called with `body`; the id is written if this returns 0.
        unsafe { libc::pthread_create(thread.as_mut_ptr(), ptr::null(), main, body) }
    };
    let error = without(create);
    if error != 0 {
        static SAID: AtomicBool = AtomicBool::new(false);
        // Relaxed: exactly one thread finds it unset.
        if !SAID.swap(true, Relaxed) {
            warn(format_args!(
                "pthread_create() failed with error {error}: what a thread of the library would \
                 do waits until one can be made (reported once)"
            ));
        }
        return None;
    }
    // SAFETY: written.
    Some(unsafe { thread.assume_init() })
}

/// Names the calling thread, in less than 16 bytes.
pub(crate) fn name(name: &CStr) {
    // SAFETY: `pthread_self` has no preconditions.
    let thread = unsafe { libc::pthread_self() };
    // SAFETY: the thread's own name.
    unsafe { libc::pthread_setname_np(thread, name.as_ptr()) };
}

/// Binds the calling thread to a CPU; does nothing if the number is negative. If that CPU is absent
/// or not allowed, the thread runs where it may.
pub(crate) fn bind(cpu: c_int) {
    let Ok(cpu) = usize::try_from(cpu) else { return };
    if cpu >= libc::CPU_SETSIZE as usize {
        return;
    }
    // SAFETY: all zeroes is the empty set.
    let mut set = unsafe { std::mem::zeroed::<libc::cpu_set_t>() };
    // SAFETY: within the set, as checked above.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: a set of the given size, and this thread.
    unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
}

/// Binds the thread again if it is on another CPU: unplugging a CPU resets the affinity of the
/// threads that were bound to it.
pub(crate) fn stay_on(cpu: c_int) {
    // SAFETY: `sched_getcpu` has no preconditions.
    if unsafe { libc::sched_getcpu() } != cpu {
        bind(cpu);
    }
}
