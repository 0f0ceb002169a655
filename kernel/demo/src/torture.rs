//! The torture of the conformance kit in this kernel: its threads, what it asks of the kernel, and
//! what our crate itself says of mistakes.

use core::fmt;
use core::sync::atomic::Ordering::*;

use conformance::torture::{Cpu, Torture};
use conformance::{Machine, Rcu};

use crate::hart::{self, HARTS, HZ, IrqsOff, SECOND, TICK, this};
use crate::platform::{Board, Design, KERNEL, RCU};
use crate::sbi::{self, say};
use crate::thread::{self, When};
use crate::{all_harts, hotplug, parameters, watch};

/// Threads of each hart that do what the dice say.
pub(crate) const ACTORS: usize = 3;
/// Its worker's place among them; then comes the one that stops the hart, or on hart 0 [`main`].
pub(crate) const WORKER: usize = ACTORS;

static CPUS: [Cpu<<Design as Rcu>::Head>; HARTS] = [const { Cpu::new::<Design>() }; HARTS];
pub(crate) static TORTURE: Torture<Board> = Torture::new(&CPUS);

// SAFETY: threads stay on their hart, where with interrupts off nothing else runs but simulated
// NMIs; each hart has a number, and `CPUS` are those of one torture.
unsafe impl Machine for Board {
    type Rcu = Design;
    type IrqsOff = IrqsOff;

    const TICK: u64 = TICK;
    const RCU: &'static Design = &RCU;
    const TORTURE: &'static Torture<Self> = &TORTURE;

    fn this_cpu() -> usize {
        this().id
    }

    fn irqs_off() -> IrqsOff {
        hart::irqs_off()
    }

    fn now() -> u64 {
        sbi::time()
    }

    /// An interrupt may get the same.
    fn roll(sides: u64) -> u64 {
        this().roll(sides)
    }

    fn yields() {
        thread::yields();
    }

    fn sleep_ticks(ticks: u64) {
        thread::sleep_ticks(ticks);
    }

    fn disturb(cpu: usize, with_nmi: bool) {
        hart::of(cpu).need_resched.store(true, Relaxed);
        if with_nmi {
            // Release: pairs with the Acquire of `on_trap`.
            hart::of(cpu).nmi.store(true, Release);
        }
        sbi::interrupt(1 << cpu);
    }

    /// A million steps are 2,000,000 instructions: 16 ticks at 1,000 Hz where they are counted.
    fn run_program(steps: u64) {
        unsafe extern "C" {
            fn enter_user(rounds: u64);
        }
        let _irq = hart::irqs_off();
        if this().is_of_2014.load(Relaxed) {
            // What comes meanwhile interrupts the program.
            hart::give_turn();
        } else {
            RCU.user_enter();
        }
        // SAFETY: interrupts are off, and the hook has been called; it returns by a trap.
        unsafe { enter_user(steps) };
    }

    fn plug(cpu: usize, ticks: u64) {
        hotplug::stop(cpu);
        thread::sleep_ticks(ticks);
        hotplug::start(cpu);
    }

    #[cfg(not(feature = "rival"))]
    fn own(torture: &'static Torture<Self>, is_over: bool) {
        crate::cells::use_one(torture, is_over);
    }

    fn say(what: fmt::Arguments<'_>) {
        say!("{what}");
    }
}

/// Makes this hart's actors.
pub(crate) fn make() {
    thread::make(0, When::Now, || act(true));
    (1..ACTORS).for_each(|thread| thread::make(thread, When::Now, || act(false)));
}

fn act(is_first: bool) -> ! {
    TORTURE.act(is_first);
    thread::sleep(When::Never);
    unreachable!("nobody wakes it");
}

/// The thread of hart 0 that begins the torture, ends it, and says what came of it.
pub(crate) fn main() -> ! {
    let harts = all_harts();
    let (begun, seconds) = (sbi::time(), parameters().seconds);
    say!("torture: {harts} harts, {HZ} Hz, {seconds} s, seed {}", parameters().seed);
    let until = begun + seconds * SECOND;
    watch::END.store(until, Relaxed);
    let all = || (0..harts).map(hart::of);
    let stops = || all().map(|hart| hart.tick_stops.load(Relaxed)).sum::<u64>();
    let is_right = TORTURE.run((harts, ACTORS), until, || stops() != 0);
    say!("{:>18}: {}", "ticks", all().map(|hart| hart.ticks.load(Relaxed)).sum::<u64>());
    say!("{:>18}: {}", "ticks stopped", stops());
    let is_ok = is_right & has_no_mistakes(harts);
    if !is_ok {
        watch::report();
    }
    sbi::power_off(is_ok);
}

/// What our crate has counted, if it is the one that is tested.
fn has_no_mistakes(harts: usize) -> bool {
    if cfg!(feature = "rival") {
        return true;
    }
    let seen = (0..1_000).find_map(|_| KERNEL.snapshot()).expect("all is still");
    say!("{:>18}: {:?}", "grace periods", seen.sequence);
    say!("{:>18}: {}", "misuses", seen.misuses.0);
    let of = |hart| (0..1_000).find_map(|_| KERNEL.cpu_snapshot(hart)).expect("all is still");
    let bytes = (0..harts).map(|hart| of(hart).bytes).sum::<u64>();
    let wrongs =
        [(seen.misuses.0 != 0, "hooks were misused"), (bytes != 0, "bytes are said to wait")];
    for (_, what) in wrongs.iter().filter(|(is_so, _)| *is_so) {
        say!("wrong: {what}");
    }
    wrongs.iter().all(|(is_so, _)| !is_so)
}
