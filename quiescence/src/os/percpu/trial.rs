//! A trial of restartable sequences before the process relies on them: interrupted sequences must
//! be restarted, and their counts must be exact.
//!
//! What may be wrong: an emulator or a sandbox that accepts the system calls and does nothing, a
//! faulty kernel, a C library that claims a registration that it has not made. The trial needs a
//! second thread for a moment, which is created by hand, since the trial may run in a signal
//! handler. If it cannot be created, sequences are not used. It ends by itself once the choice is
//! made.

use std::sync::atomic::Ordering::Relaxed;

use crate::os::calls::call;
use crate::os::on_drop::OnDrop;

use super::super::imp;
use super::super::{Area, CHOSEN};

/// Turns of a loop in one sequence: about a microsecond.
const TURNS: u64 = 2_000;

/// How many sequences are tried, at most: some 20 ms, where the first interruption is due after 50
/// µs.
const TRIES_MAX: u32 = 20_000;

/// Between two barriers of the thread that interrupts. It sleeps, so that it interrupts on one CPU,
/// too: by waking up.
static PAUSE: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 10_000 };

/// Whether sequences in `area` do what they are to.
pub(in super::super) fn passes(area: Area) -> bool {
    knows_its_cpu(area) && begins_anew(area)
}

/// Whether the area has the number that the system has. Either may change between two looks.
fn knows_its_cpu(area: Area) -> bool {
    for _ in 0..100 {
        // SAFETY: the C library says that there is one.
        let before = unsafe { imp::cpu_of(area) };
        let cpu = cpu();
        // SAFETY: as above.
        if before == unsafe { imp::cpu_of(area) } && Some(before) == cpu {
            return true;
        }
    }
    false
}

/// The CPU's number, of the kernel itself: glibc's `sched_getcpu` reads the area that is tried.
fn cpu() -> Option<u32> {
    let mut cpu = 0_u32;
    let nothing = std::ptr::null_mut::<u8>();
    // SAFETY: writes to `cpu`.
    call(|| unsafe { libc::syscall(libc::SYS_getcpu, &raw mut cpu, nothing, nothing) }).ok()?;
    Some(cpu)
}

fn begins_anew(area: Area) -> bool {
    // So that a CPU without words of its own may be the one where it is tried.
    let area = Area { limit: 1 << 31, ..area };
    let blocked = block();
    // SAFETY: signals are blocked, and what the thread calls has been tried.
    let started = calls_pass() && unsafe { imp::start_interrupter(&CHOSEN.state, &PAUSE) };
    drop(blocked);
    if !started {
        return false;
    }
    let (mut word, mut happened, mut interrupted) = (0_u64, 0, 0);
    for _ in 0..TRIES_MAX {
        // SAFETY: our own word.
        match unsafe { imp::add_slowly(area, &raw mut word, true, TURNS) } {
            true => happened += 1,
            false => interrupted += 1,
        }
        // Relaxed: once somebody has chosen it does not matter what we find, and no thread
        // interrupts us any more.
        if (happened > 0 && interrupted > 0) || CHOSEN.state.load(Relaxed) != 0 {
            break;
        }
    }
    happened > 0 && interrupted > 0 && word == happened
}

/// Makes each call of the thread that interrupts once here, with the same arguments. If a filter of
/// system calls forbids one, by an error or by a SIGSYS, that is known before there is that thread:
/// a handler of SIGSYS would run on *its maker's* stack, beside its maker. (Its last call, `exit`,
/// cannot be tried. Where that is forbidden no thread can end.)
fn calls_pass() -> bool {
    let restart = libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ;
    // SAFETY: a barrier.
    let barrier = || unsafe { libc::syscall(libc::SYS_membarrier, restart, 0, 0) };
    // SAFETY: reads the time that it is given; what is left of it is not asked for.
    let nap = || unsafe { libc::syscall(libc::SYS_nanosleep, &raw const PAUSE, 0) };
    call(barrier) == Ok(0) && call(nap) == Ok(0)
}

/// Blocks signals of the calling thread until the result is dropped.
///
/// All but SIGSYS: that is how a filter of system calls says no, and it would end a process that
/// blocks it, though the call is one that we can do without: `clone`, or those of [`calls_pass`].
/// The thread that interrupts gets none of a filter, as its calls have passed; but it would of one
/// that forbids them and is installed meanwhile.
fn block() -> OnDrop<impl FnMut()> {
    let before = set_mask(!(1 << (libc::SIGSYS - 1)));
    OnDrop(move || _ = set_mask(before))
}

/// Returns the mask before. Not `pthread_sigmask`, which leaves out what glibc uses itself.
fn set_mask(mask: u64) -> u64 {
    let (how, bytes, mut before) = (libc::SIG_SETMASK, size_of::<u64>(), 0_u64);
    let (mask, place) = (&raw const mask, &raw mut before);
    // SAFETY: reads and writes the sets that it is given, of the size that the kernel has.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, mask, place, bytes) };
    before
}
