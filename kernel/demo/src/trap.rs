//! Traps: the tick, interrupts from other harts, calls of user programs.
//!
//! Hooks, in this order: out of user mode `user_exit`; `irq_enter`; `tick`, if it is the timer's;
//! `irq_exit`; then perhaps the scheduler; and `user_enter` on the way back, with interrupts off.

use core::sync::atomic::Ordering::*;

use conformance::Rcu;

use crate::hart::{self, this};
use crate::platform::RCU;
use crate::{sbi, thread, torture, watch};

const INTERRUPT: usize = 1 << 63;
const SOFTWARE: usize = INTERRUPT | 1;
const TIMER: usize = INTERRUPT | 5;
const CALL_OF_USER: usize = 8;
/// In `sstatus`: the trap came out of the kernel.
const SPP: usize = 1 << 8;
/// Interrupts will be on after the return.
const SPIE: usize = 1 << 5;

/// What `entry.s` saves, and restores.
#[repr(C)]
struct Frame {
    /// The first is unused.
    registers: [usize; 32],
    pc: usize,
    status: usize,
    /// The hart, for traps out of user mode.
    hart: usize,
    _pad: usize,
}

#[unsafe(no_mangle)]
extern "C" fn on_trap(frame: &mut Frame, cause: usize) {
    let hart = this();
    hart::irqs_went_off();
    let is_of_user = frame.status & SPP == 0;
    if cause == SOFTWARE {
        hart::clear_interrupt();
    }
    // Acquire: what the hart that asks for it has written comes before. It comes before the hooks,
    // as an NMI may: the hart is perhaps still idle, or in user mode, as far as the crate knows.
    let is_nmi = hart.nmi.swap(false, Acquire) || hart.roll(8) == 0;
    if is_nmi && cause & INTERRUPT != 0 {
        torture::TORTURE.nmi_from(is_of_user, hart.threads.is_idle());
    }
    let has_hooks = !hart.is_of_2014.load(Relaxed);
    if is_of_user && has_hooks {
        RCU.user_exit();
    }
    match cause {
        SOFTWARE | TIMER => interrupt(cause == TIMER, is_of_user),
        CALL_OF_USER => leave_user(frame),
        _ => panic!("trap {cause:#x} at {:#x}", frame.pc),
    }
    // Only now: the handler's end is on the hart of its beginning. The idle loop looks itself.
    if hart.need_resched.load(Relaxed) && hart.is_preemptible() && !hart.threads.is_idle() {
        thread::schedule();
    }
    if frame.status & SPP == 0 && has_hooks {
        // Whether the tick may stop does not matter: it is what preempts the program.
        RCU.user_enter();
    }
    hart::irqs_go_on();
}

/// A handler, in which there is a section.
fn interrupt(is_timer: bool, is_of_user: bool) {
    let hart = this();
    let interrupt = RCU.irq_enter();
    if is_timer {
        hart.ticks.store(hart.ticks.load(Relaxed) + 1, Relaxed);
        let preempts = !hart.threads.is_idle() && !hart.is_lazy.load(Relaxed);
        hart.need_resched.fetch_or(preempts, Relaxed);
        RCU.tick(&interrupt, is_of_user);
        if hart.is_ticking.load(Relaxed) {
            hart.next_tick(u64::MAX);
        } else {
            sbi::set_timer(u64::MAX);
        }
        watch::tick();
    }
    torture::TORTURE.handler();
    hart.keeps_tick.store(RCU.irq_exit(interrupt), Relaxed);
}

/// The program is done: the thread goes on in the kernel, behind `enter_user`.
fn leave_user(frame: &mut Frame) {
    unsafe extern "C" {
        fn restore();
    }
    frame.registers[2] = core::ptr::from_mut(frame).addr() + size_of::<Frame>();
    frame.registers[4] = frame.hart;
    frame.pc = restore as *const () as usize;
    // Interrupts stay off, as `enter_user` found them.
    frame.status = frame.status & !SPIE | SPP;
}
