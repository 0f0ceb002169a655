//! Threads that are moved from CPU to CPU all the time.

use std::sync::Barrier;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::threads;

/// The CPUs that this process may use.
pub(crate) fn cpus() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU).filter(|n| set.is_set(*n)).collect()
}

/// Moves the calling thread to that one of the CPUs, as often as this is called.
pub(crate) fn move_to(cpus: &[usize], which: usize) {
    let mut set = CpuSet::new();
    set.set(cpus[which % cpus.len()]);
    let _ = sched_setaffinity(None, &set); // it may have been taken away
}

/// Has so many threads call `f(thread, round)` so often, each of them moved about.
pub(crate) fn shuffled(many: usize, rounds: usize, f: impl Fn(usize, usize) + Sync) {
    let (cpus, begin) = (cpus(), Barrier::new(many));
    threads(many, |thread| {
        begin.wait();
        for round in 0..rounds {
            if round % 512 == 0 {
                move_to(&cpus, thread + round / 512);
            }
            f(thread, round);
        }
    });
}

/// Makes the calling thread one without rseq in a process that has it, as one started behind the C
/// library's back. Returns what the system call does: 0, unless the thread had none.
#[cfg(all(target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn unregister_rseq() -> libc::c_long {
    unsafe extern "C" {
        static __rseq_offset: isize;
    }
    let area: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the first word of the thread's block is its own address (x86-64's ABI).
    unsafe {
        std::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) area, options(nostack, readonly))
    };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads the register that the thread's block is found by.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) area, options(nostack, nomem))
    };
    const SIGNATURE: u32 = if cfg!(target_arch = "x86_64") { 0x5305_3053 } else { 0xd428_bc00 };
    // SAFETY: glibc's constant.
    let area = area.wrapping_add_signed(unsafe { __rseq_offset });
    // SAFETY: unregisters what glibc registered; no other thread looks at it. If it was not
    // registered, nothing is done.
    unsafe { libc::syscall(libc::SYS_rseq, area, 32, 1, SIGNATURE) }
}

/// Numbers that look random, the same in each run.
pub(crate) fn random(thread: usize, round: usize) -> u64 {
    let mut word = ((thread as u64) << 40 | round as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word ^= word >> 29;
    word.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32
}
