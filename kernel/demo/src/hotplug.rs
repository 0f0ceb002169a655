//! Harts that stop and start, as the supervisor binary interface (HSM) has it.
//!
//! Hooks: `cpu_starting` before all else, `cpu_online` when threads may run (both in `main.rs`);
//! `cpu_dying` when the worker is parked, as the last; and `cpu_dead` on another hart, when OpenSBI
//! says that this one has stopped. Its threads wait for it to come again.

use core::sync::atomic::Ordering::*;

use conformance::Rcu;

use crate::hart::{self, this};
use crate::platform::RCU;
use crate::thread::{self, When};
use crate::{UP, hart_entry, sbi, torture};

/// A hart's thread that stops it. It begins anew whenever the hart does.
pub(crate) fn stopper() -> ! {
    thread::sleep(When::Stop);
    let hart = this();
    let _irq = loop {
        let irq = hart::irqs_off();
        if hart.threads.is_parked(torture::WORKER) {
            break irq;
        }
        drop(irq);
        hart.has_work.store(true, Relaxed);
        thread::sleep_ticks(1);
    };
    torture::TORTURE.leave();
    RCU.cpu_dying(hart.id);
    hart.stop_tick(u64::MAX);
    // Release: as in `hart_main`. From now on nobody interrupts this hart.
    UP.fetch_and(!(1 << hart.id), Release);
    sbi::stop_hart();
}

/// The worker is in no callback: if the hart is to stop, it sleeps until that has started again.
pub(crate) fn worker_is_between() {
    let hart = this();
    if hart.stops.load(Relaxed) {
        thread::sleep(When::Start);
    }
}

/// Stops another hart, and buries it.
pub(crate) fn stop(hart: usize) {
    // Release: pairs with the Acquire of `When::Stop`; the stopper finds the free objects.
    hart::of(hart).stops.store(true, Release);
    sbi::interrupt(1 << hart);
    while !sbi::is_stopped(hart) {
        thread::sleep_ticks(1);
    }
    RCU.cpu_dead(hart);
}

/// Starts it again, and waits until it is online.
pub(crate) fn start(hart: usize) {
    assert!(sbi::start_hart(hart, hart_entry as *const () as usize), "it had stopped");
    // Acquire: pairs with the Release of `hart_main`; its hooks come before.
    while UP.load(Acquire) >> hart & 1 == 0 {
        thread::sleep_ticks(1);
    }
}
