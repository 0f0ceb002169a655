//! The test: how many instructions the functions of the crate take that a kernel calls often, where
//! the emulator counts them. And a function for each hook, whose bytes `cargo xtask` counts.

use core::arch::asm;
use core::hint::black_box;
use core::ptr::NonNull;

use kernel::Head;

use crate::hart::{self, Section};
use crate::platform::KERNEL;
use crate::sbi::{self, say};
use crate::thread::{self, When};
use crate::{all_harts, watch};

/// The emulator's `-icount shift=3`: its counter goes up by so much at each instruction.
const INSTRUCTION: u64 = 8;
/// The least of so many runs counts.
const RUNS: usize = 8;

static HEADS: [Head; RUNS] = [const { Head::new() }; RUNS];

unsafe fn nothing(_: NonNull<Head>) {}

fn instructions() -> u64 {
    let count: u64;
    // SAFETY: reads a counter.
    unsafe { asm!("rdinstret {}", out(reg) count) };
    count / INSTRUCTION
}

/// The least that `what` has taken, but for the reading of the counter.
fn least<R>(mut what: impl FnMut(usize) -> R) -> u64 {
    let took = |run: usize, what: &mut dyn FnMut(usize)| {
        let before = instructions();
        what(run);
        instructions() - before
    };
    let runs = |what: &mut dyn FnMut(usize)| (0..RUNS).map(|run| took(run, what)).min();
    let empty = runs(&mut |run| _ = black_box(run));
    let full = runs(&mut |run| _ = black_box(what(run)));
    full.zip(empty).map_or(0, |(full, empty)| full - empty)
}

/// The functions that a kernel calls, each in a function of its own.
macro_rules! hooks {
    ($($name:ident: $call:expr;)*) => {
        mod hooks {
            use super::*;
            $(
                #[inline(never)]
                pub(super) fn $name() {
                    let _ = black_box($call);
                }
            )*
        }
        static HOOKS: &[fn()] = &[$(hooks::$name),*];
    };
}

hooks! {
    context_switch: KERNEL.context_switch();
    cond_resched: KERNEL.cond_resched();
    tick: KERNEL.tick(&KERNEL.irq_enter(), black_box(false));
    irq: KERNEL.irq_exit(KERNEL.irq_enter());
    nmi: KERNEL.nmi_exit(KERNEL.nmi_enter());
    user_enter: KERNEL.user_enter();
    user_exit: KERNEL.user_exit();
    idle_enter: KERNEL.idle_enter();
    idle_exit: KERNEL.idle_exit();
    // SAFETY: never called.
    call: unsafe { KERNEL.call(NonNull::from(&HEADS[0]), nothing) };
    has_callbacks: KERNEL.has_callbacks();
    run_callbacks: KERNEL.run_callbacks(black_box(0), black_box(1));
    cookie: KERNEL.poll(KERNEL.cookie());
    synchronize: KERNEL.synchronize();
    synchronize_expedited: KERNEL.synchronize_expedited();
    barrier: KERNEL.barrier();
    cpu_starting: KERNEL.cpu_starting(black_box(0));
    cpu_online: KERNEL.cpu_online(black_box(0));
    cpu_dying: KERNEL.cpu_dying(black_box(0));
    cpu_dead: KERNEL.cpu_dead(black_box(0));
    snapshot: KERNEL.snapshot();
    cpu_snapshot: KERNEL.cpu_snapshot(black_box(0));
}

/// Says what it has counted.
pub(crate) fn main() -> ! {
    all_harts();
    watch::END.store(sbi::time() + hart::SECOND, core::sync::atomic::Ordering::Relaxed);
    // All that was before is over, and the next tick is far.
    thread::sleep(When::At(sbi::time() + 20 * hart::TICK));
    black_box(HOOKS);
    let irq = hart::irqs_off();
    let interrupt = KERNEL.irq_enter();
    let figures = [
        ("section", 10, least(|_| Section::new())),
        ("context_switch", 25, least(|_| KERNEL.context_switch())),
        ("tick with nothing to do", 50, least(|_| KERNEL.tick(&interrupt, false))),
        (
            "irq_enter and irq_exit, in the kernel",
            80,
            least(|_| KERNEL.irq_exit(KERNEL.irq_enter())),
        ),
        ("irq_enter and irq_exit, in idle", 125, {
            KERNEL.idle_enter();
            let pair = least(|_| KERNEL.irq_exit(KERNEL.irq_enter()));
            KERNEL.idle_exit();
            pair
        }),
        ("idle_enter and idle_exit", 165, {
            least(|_| {
                KERNEL.idle_enter();
                KERNEL.idle_exit();
            })
        }),
        ("cookie", 10, least(|_| KERNEL.cookie())),
        ("has_callbacks", 20, least(|_| KERNEL.has_callbacks())),
        // SAFETY: they are in no queue, and stay in their place.
        ("call", 65, least(|run| unsafe { KERNEL.call(NonNull::from(&HEADS[run]), nothing) })),
    ];
    KERNEL.irq_exit(interrupt);
    drop(irq);
    let mut is_ok = true;
    for (name, most, count) in figures {
        say!("{count:>4} instructions: {name}");
        if count > most {
            say!("wrong: {name} takes more than {most} instructions");
            is_ok = false;
        }
    }
    sbi::power_off(is_ok);
}
