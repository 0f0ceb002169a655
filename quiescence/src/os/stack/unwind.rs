//! The calling thread's frames, by the unwinder that panics use: that of the compiler's library
//! (`libgcc_s`), which the standard library links into every program.

use libc::{c_int, c_void};

/// Where the unwinder is.
#[repr(C)]
struct Context {
    opaque: [u8; 0],
}

type Visit = extern "C" fn(*mut Context, *mut c_void) -> c_int;

unsafe extern "C" {
    fn _Unwind_Backtrace(visit: Visit, argument: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut Context) -> usize;
}

/// `_URC_NO_REASON`: go on.
const GO_ON: c_int = 0;
/// `_URC_FAILURE`: whatever is not the one above ends it.
const END: c_int = 9;

/// Calls `each` with the instruction pointers of the calling thread's frames, innermost first,
/// until it says no. Async-signal-safe where the C library has `_dl_find_object`, if `each` is: the
/// unwinder has all its state on the stack.
pub(super) fn frames<F: FnMut(usize) -> bool>(mut each: F) {
    extern "C" fn visit<F: FnMut(usize) -> bool>(at: *mut Context, each: *mut c_void) -> c_int {
        // SAFETY: the frame at which the unwinder calls this.
        let pointer = unsafe { _Unwind_GetIP(at) };
        // SAFETY: `each` of the function below, which does nothing with it meanwhile.
        let goes_on = unsafe { (*each.cast::<F>())(pointer) };
        if goes_on { GO_ON } else { END }
    }
    // SAFETY: `visit` takes what it is given here, by its type.
    unsafe { _Unwind_Backtrace(visit::<F>, (&raw mut each).cast()) };
}
