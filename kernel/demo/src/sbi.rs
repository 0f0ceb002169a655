//! What OpenSBI does for this kernel: console, timer, interrupts between harts, harts that start
//! and stop, power off.

use core::arch::asm;
use core::fmt::{self, Write};
use core::sync::atomic::{Ordering::*, fence};

use crate::hart::HARTS;
use crate::{PANICKED, UP};

const TIME: usize = 0x5449_4D45;
const IPI: usize = 0x73_5049;
const HSM: usize = 0x48_534D;
const RESET: usize = 0x5352_5354;
const PUTCHAR: usize = 1;

/// Returns the error, which is 0 if there is none, and the value.
fn call(extension: usize, function: usize, a: usize, b: usize, c: usize) -> (isize, usize) {
    let (error, value);
    // SAFETY: an ecall changes these two registers and what the interface says of the function;
    // the addresses that callers here pass are entry points of this kernel.
    unsafe {
        asm!(
            "ecall",
            inlateout("a0") a as isize => error,
            inlateout("a1") b => value,
            in("a2") c,
            in("a6") function,
            in("a7") extension,
        );
    }
    (error, value)
}

/// The console.
pub(crate) struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            call(PUTCHAR, 0, byte.into(), 0, 0);
        }
        Ok(())
    }
}

/// Prints a line.
macro_rules! say {
    ($($what:tt)*) => {{
        use core::fmt::Write as _;
        let _ = writeln!($crate::sbi::Console, $($what)*);
    }};
}
pub(crate) use say;

/// The timer interrupts this hart at that time, and not before.
pub(crate) fn set_timer(time: u64) {
    call(TIME, 0, time as usize, 0, 0);
}

/// Interrupts those harts of the mask that are online. One that comes later looks itself at what it
/// is asked.
pub(crate) fn interrupt(harts: u64) {
    // Full fence: pairs with the one of `hart_main`.
    fence(SeqCst);
    let harts = harts & UP.load(Relaxed);
    if harts == 0 || call(IPI, 0, harts as usize, 0, 0).0 == 0 {
        return;
    }
    // One of them has stopped meanwhile, for which OpenSBI may refuse them all.
    for hart in (0..HARTS).filter(|hart| harts >> hart & 1 != 0) {
        call(IPI, 0, 1, hart, 0);
    }
}

/// Starts a hart at an address of this kernel. Returns whether the hart existed and was stopped.
pub(crate) fn start_hart(hart: usize, entry: usize) -> bool {
    call(HSM, 0, hart, entry, 0).0 == 0
}

/// Stops this hart.
pub(crate) fn stop_hart() -> ! {
    call(HSM, 1, 0, 0, 0);
    unreachable!("a hart that has stopped goes on")
}

/// Whether a hart has stopped.
pub(crate) fn is_stopped(hart: usize) -> bool {
    call(HSM, 2, hart, 0, 0) == (0, 1)
}

/// Switches the machine off. How that looks outside is not the same everywhere: what came of a test
/// is the last line. If another hart has panicked, that one ends the run.
pub(crate) fn power_off(is_ok: bool) -> ! {
    // Relaxed: it is about what is printed only.
    while is_ok && PANICKED.load(Relaxed) != 0 {
        core::hint::spin_loop();
    }
    say!("result: {}", if is_ok { "ok" } else { "failed" });
    call(RESET, 0, 0, usize::from(!is_ok), 0);
    loop {
        core::hint::spin_loop();
    }
}

/// Ticks of the machine's clock: ten a microsecond.
pub(crate) fn time() -> u64 {
    let time;
    // SAFETY: reads a counter.
    unsafe { asm!("rdtime {}", out(reg) time, options(nomem, nostack)) };
    time
}
