//! The one system call here that no safe interface has.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;

use mutants::with_quarantine_held;

/// Runs `child` in a child process made by `fork`, which ends with the code that it returns. Gives
/// the child's number.
///
/// The child has the calling thread only. `child` must need no lock but the library's and the
/// allocator's: another one may be held there by a thread that it does not have, for ever.
///
/// # Errors
/// What the system says.
pub(crate) fn fork(child: impl FnOnce() -> i32) -> io::Result<u32> {
    let forked = with_quarantine_held(|| {
        // SAFETY: the library makes itself whole in the child, and glibc its allocator; and `child`
        // needs no other lock, by its contract. (If it does it hangs, and touches nothing that is
        // half made.)
        let forked = unsafe { libc::fork() };
        (forked, io::Error::last_os_error())
    });
    match forked {
        (-1, error) => Err(error),
        (0, _) => {
            let code = catch_unwind(AssertUnwindSafe(child));
            process::exit(code.unwrap_or(101))
        }
        (pid, _) => Ok(pid.cast_unsigned()),
    }
}
