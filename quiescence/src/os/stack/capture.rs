//! The request: in the thread that makes it, and in the handler of the thread that it names.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use libc::{c_int, c_void, siginfo_t};

use super::{Alternate, FRAMES_MAX, StackMissing};
use crate::os::sync::{AtomicU32, const_unless_loom};
use crate::os::{calls, clock, thread_state};

#[path = "alternate.rs"]
mod alternate_stack;
mod signal;
mod unwind;

pub(super) use alternate_stack::of_this_thread as alternate;

/// No thread asks.
const IDLE: u32 = 0;
/// A thread is asked and has not begun to answer.
const WANTED: u32 = 1;
/// It writes the answer.
const BUSY: u32 = 2;
/// It has.
const DONE: u32 = 3;

const_unless_loom! {
    /// Which thread is asked, and how far it has got: one word, so that no signal that comes late
    /// takes one thread's request for another's. Thread ids have 22 bits.
    static REQUEST: AtomicU32 = AtomicU32::new(IDLE);
}
/// The answer, and how many frames it has.
static FRAMES: [AtomicUsize; FRAMES_MAX] = [const { AtomicUsize::new(0) }; FRAMES_MAX];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// How long to wait for an answer.
const PATIENCE_NS: u64 = 100_000_000;

const fn request(thread: u32, phase: u32) -> u32 {
    thread << 2 | phase
}

/// The instruction pointers of a thread's frames, innermost first: the first is where it was
/// interrupted, the others are where their callees return to. At most [`FRAMES_MAX`]. `alternate`
/// is what the thread found when it registered. For one caller at a time.
pub(crate) fn take(thread: u32, alternate: Alternate) -> Result<Vec<usize>, StackMissing> {
    if thread == 0 {
        return Err(StackMissing::Unsupported);
    }
    signal::wanted()?;
    // First of all: no signal is taken in a program whose threads could not be sent it.
    if !alternate_stack::has_room(alternate, thread_state::sleeps_at(thread)) {
        return Err(StackMissing::NoAlternateStack);
    }
    let signal = signal::usable()?;
    if thread_state::blocks(thread, signal) {
        return Err(StackMissing::SignalBlocked(signal));
    }
    // Relaxed: only a thread that is asked changes it, and no thread is now, or BUSY tells so.
    if REQUEST.load(Relaxed) & 3 == BUSY {
        return Err(StackMissing::NoAnswer); // one that was asked before was stopped in the handler
    }
    // Release: pairs with the Acquire in `answer`: the answer before has been read.
    REQUEST.store(request(thread, WANTED), Release);
    let process = std::process::id();
    // What the system was asked of the thread takes time, in which the program may have installed a
    // handler. Nothing comes between this and the signal but what the module's text says.
    if let Err(missing) = signal::usable() {
        REQUEST.store(IDLE, Relaxed);
        return Err(missing);
    }
    // SAFETY: sends a signal, which has a handler, to a thread of this process or to none.
    let send = || unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal) };
    if let Err(errno) = calls::call(send) {
        REQUEST.store(IDLE, Relaxed);
        let ended = errno == libc::ESRCH;
        return Err(if ended { StackMissing::ThreadEnded } else { StackMissing::NoAnswer });
    }
    wait_for_answer(thread)?;
    let count = COUNT.load(Relaxed).min(FRAMES_MAX);
    Ok(FRAMES[..count].iter().map(|frame| frame.load(Relaxed)).collect())
}

fn wait_for_answer(thread: u32) -> Result<(), StackMissing> {
    let until_ns = clock::monotonic_ns() + PATIENCE_NS;
    loop {
        // Acquire: pairs with the Release in `answer`: the frames are there.
        let now = REQUEST.load(Acquire);
        if now == request(thread, DONE) {
            return Ok(());
        }
        match until_ns.saturating_sub(clock::monotonic_ns()) {
            left_ns @ 1.. => {
                calls::futex_wait(&REQUEST, true, now, Some(Duration::from_nanos(left_ns)));
            }
            0 => {
                // If it has begun meanwhile it stays BUSY until it has done.
                let wanted = request(thread, WANTED);
                let _ = REQUEST.compare_exchange(wanted, IDLE, Relaxed, Relaxed);
                return Err(StackMissing::NoAnswer);
            }
        }
    }
}

/// In a child process: the thread that asked is gone, and so is the thread that was asked.
pub(crate) fn after_fork() {
    REQUEST.store(IDLE, Relaxed);
}

// ---- in the thread that is asked ----------------------------------------------------------------

/// Async-signal-safe; see the module.
extern "C" fn handler(_: c_int, _: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel's third argument to a handler with SA_SIGINFO.
    calls::keeping_errno(|| answer(unsafe { interrupted_at(context) }));
}

/// Writes the calling thread's frames down, from the one that was interrupted at `at` on, if it is
/// this thread that is asked.
fn answer(at: usize) {
    let me = calls::thread_id();
    // Acquire: pairs with the Release in `take`.
    let (wanted, busy) = (request(me, WANTED), request(me, BUSY));
    if REQUEST.compare_exchange(wanted, busy, Acquire, Relaxed).is_err() {
        return;
    }
    let mut count = 0;
    unwind::frames(|pointer| {
        // Those of the handler come first.
        if pointer != 0 && (count != 0 || pointer == at || at == 0) {
            // Relaxed, here and below: the Release at the end shows them all.
            FRAMES[count].store(pointer, Relaxed);
            count += 1;
        }
        count < FRAMES_MAX
    });
    if count == 0 {
        // The unwinder does not come through the signal's frame: the place is better than nothing.
        FRAMES[0].store(at, Relaxed);
        count = 1;
    }
    COUNT.store(count, Relaxed);
    // Release: pairs with the Acquire in `wait_for_answer`.
    REQUEST.store(request(me, DONE), Release);
    // The kernel's futex in any case: `os::futex` may lock, by `QUIESCENCE_FUTEX=portable`.
    calls::futex_wake(&REQUEST, true);
}

/// The instruction pointer in a signal's context; 0 where it is not known how to find it.
///
/// # Safety
/// `context` is what the kernel gave a handler.
unsafe fn interrupted_at(context: *mut c_void) -> usize {
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: the caller's word.
    let _machine = unsafe { &(*context).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    return _machine.gregs[libc::REG_RIP as usize] as usize;
    #[cfg(target_arch = "aarch64")]
    return _machine.pc as usize;
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::again::*;
    use crate::os::futex;

    /// The handler woke the reporter by a futex that locks, under `QUIESCENCE_FUTEX=portable`: a
    /// thread that was interrupted while it had the lock waited for itself.
    #[test]
    #[cfg_attr(miri, ignore = "a child process")]
    fn a_handler_takes_no_lock() {
        in_its_own_process!(&[("QUIESCENCE_FUTEX", "portable")]);
        let held = futex::twin::LOCK.lock();
        let me = calls::thread_id();
        REQUEST.store(request(me, WANTED), Release);
        answer(0);
        assert_eq!(REQUEST.swap(IDLE, Relaxed), request(me, DONE));
        drop(held);
    }
}
