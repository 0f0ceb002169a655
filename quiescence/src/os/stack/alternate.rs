//! Where the handler runs: on the alternate signal stack that a thread already has.
//!
//! Rust's standard library gives one to each of its threads, of 8 KiB or, if that is more, of the
//! size that the system says a signal needs. The library itself gives no thread one: the program's
//! own handlers would then run on it.
//!
//! A thread checks its stack when it registers as a reader, since no other thread can. **What is
//! not noticed**: that the program later removes the stack or replaces it with a smaller one, as
//! the standard library does before it runs a thread's last destructors; and that a thread runs,
//! rather than sleeps, on its alternate stack, in a section of one of the program's handlers.

use super::Alternate;

/// Bytes for the handler, behind the kernel's frame. It takes 2 KiB (a test measures that); the
/// unwinder of another release may take more.
const HANDLER: usize = 4 << 10;

/// The name in the auxiliary vector of what a signal takes.
const AT_MINSIGSTKSZ: libc::c_ulong = 51;

/// What the kernel's frame takes at most where the system does not say, and on x86-64 without the
/// tiles of AMX.
const FRAME: usize = 4 << 10;

/// The calling thread's alternate stack, while it is not on it.
pub(in super::super) fn of_this_thread() -> Alternate {
    // SAFETY: plain data, for which zero is a value.
    let mut found: libc::stack_t = unsafe { std::mem::zeroed() };
    // SAFETY: changes nothing, and writes to `found`. It does not fail.
    unsafe { libc::sigaltstack(std::ptr::null(), &raw mut found) };
    // `SS_AUTODISARM`: there is none while one of the program's handlers runs on it.
    if found.ss_flags != 0 {
        return Alternate::NONE;
    }
    Alternate { start: found.ss_sp.addr(), bytes: found.ss_size }
}

/// Whether the signal can be handled on this stack by a thread that sleeps with its stack pointer
/// there, or runs.
pub(super) fn has_room(stack: Alternate, sleeps_at: Option<usize>) -> bool {
    let is_on_it = |pointer: usize| pointer.wrapping_sub(stack.start) <= stack.bytes;
    stack.bytes >= frame_max() + HANDLER && !sleeps_at.is_some_and(is_on_it)
}

/// What the kernel's frame takes at most.
fn frame_max() -> usize {
    // SAFETY: asks for a number; 0 if it is not told.
    let told = unsafe { libc::getauxval(AT_MINSIGSTKSZ) } as usize;
    match told {
        0 => FRAME,
        // The system counts the data of AMX's tiles, 8 KiB, which a process has to ask for before
        // it has any.
        _ if cfg!(target_arch = "x86_64") && told > FRAME && !may_have_tiles() => FRAME,
        _ => told,
    }
}

/// Whether threads of this process may use AMX, as far as the system tells.
#[cfg(target_arch = "x86_64")]
fn may_have_tiles() -> bool {
    const ARCH_GET_XCOMP_PERM: libc::c_int = 0x1022;
    let mut permitted = 0_u64;
    // SAFETY: writes to `permitted`.
    let told =
        unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_GET_XCOMP_PERM, &raw mut permitted) };
    told != 0 || permits_tile_data(permitted)
}

/// Whether these components of the CPU's state have the data of tiles. Their configuration, which
/// is component 17 and 64 bytes, needs no permission: every process on such a CPU has it.
#[cfg(target_arch = "x86_64")]
const fn permits_tile_data(permitted: u64) -> bool {
    permitted & 1 << 18 != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn may_have_tiles() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_what_the_frame_and_the_handler_take() {
        let start = 1 << 20;
        let enough = Alternate { start, bytes: frame_max() + HANDLER };
        assert!(has_room(enough, None) && has_room(enough, Some(start - 1)));
        assert!(has_room(enough, Some(start + enough.bytes + 1)));
        assert!(!has_room(Alternate { bytes: enough.bytes - 1, ..enough }, None));
        for within in [start, start + 1, start + enough.bytes] {
            assert!(!has_room(enough, Some(within)), "it sleeps in a handler");
        }
        assert!(!has_room(Alternate::NONE, None));
    }

    /// Regression: on a CPU with AMX every process seemed to have asked for tiles, and threads of
    /// Rust to have no room. The first is what such a system permits by itself.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_configuration_of_tiles_is_not_their_data() {
        assert!(!permits_tile_data(0x2_00e7));
        assert!(permits_tile_data(0x6_00e7));
    }

    /// Threads of the standard library have one of sufficient size; others have none.
    #[test]
    fn threads_of_rust_have_one() {
        extern "C" fn look(found: *mut libc::c_void) -> *mut libc::c_void {
            // SAFETY: the variable of the thread that waits for this one.
            unsafe { *found.cast::<Alternate>() = of_this_thread() };
            std::ptr::null_mut()
        }
        let of_rust = std::thread::spawn(of_this_thread).join().unwrap();
        assert!(has_room(of_rust, None), "{of_rust:?}");
        let mut thread = 0;
        let mut found = of_rust;
        let (plain, argument) = (std::ptr::null(), (&raw mut found).cast());
        // SAFETY: the thread is waited for before its argument ends.
        assert_eq!(unsafe { libc::pthread_create(&raw mut thread, plain, look, argument) }, 0);
        // SAFETY: the thread made above.
        assert_eq!(unsafe { libc::pthread_join(thread, std::ptr::null_mut()) }, 0);
        assert_eq!(found, Alternate::NONE);
    }
}
